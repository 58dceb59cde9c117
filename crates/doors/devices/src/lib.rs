//! Servers of runs as devices of the namespace of mounts: each operation becomes a call of the
//! gateway, which checks, bounds and records it as every other call.
//!
//! For callers that know no MCP, there is one way to make a call: [`ask`].

mod asking;
mod mounts;
mod seen;
mod server;
mod telling;

pub use asking::{ProtocolError, Reply, ask, request};
pub use mounts::{Numbered, Numbering, Numbers, RunMounts};
pub use seen::Seen;
pub use server::ServerDevice;
