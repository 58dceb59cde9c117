//! Servers of runs as devices of the namespace of mounts: each operation becomes a call of the
//! gateway, which checks, bounds and records it as every other call.
//!
//! Here is also the one way in which those who know no MCP call something: [`ask`].

mod asking;
mod mounts;
mod seen;
mod server;
mod telling;

pub use asking::{ProtocolError, Reply, ask, request};
pub use mounts::{Numbered, Numbering, Numbers, RunMounts};
pub use seen::Seen;
pub use server::ServerDevice;
