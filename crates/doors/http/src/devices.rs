//! Servers of runs as devices of the namespace of mounts: each operation becomes a call of the
//! gateway, which checks, bounds and records it as every other call.
//!
//! For callers that know no MCP, there is one way to make a call: [`ask`].
//!
//! A layer of its own: imports no other module of this crate.

mod asking;
mod mounts;
mod seen;
mod server;
mod telling;

pub(crate) use asking::{ProtocolError, Reply, ask, request};
pub(crate) use mounts::{Numbered, Numbering, Numbers, RunMounts};
pub(crate) use seen::Seen;
pub(crate) use server::ServerDevice;
