//! Presents the servers of runs as devices of the mount namespace. Each file operation becomes a
//! call of the gateway, which checks, limits and records it as it does every other call.
//!
//! Callers that speak no MCP use one function for all calls: [`ask`].
//!
//! A separate layer: it imports no other module of this crate.

mod asking;
mod mounts;
mod seen;
mod server;
mod telling;

pub(crate) use asking::{ProtocolError, Reply, ask, request};
pub(crate) use mounts::{Numbered, Numbering, Numbers, RunMounts};
pub(crate) use seen::Seen;
pub(crate) use server::ServerDevice;
