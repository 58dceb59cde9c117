//! Child processes as actors: groups, stop ladder, captured logs.
//!
//! A [`Process`] is a handle to one child that leads its own process group. One task owns the
//! child; every handle talks to that task. Invariants:
//!
//! * A child sees the environment of its [`ProcessSpec`] and the few names of
//!   [`BaseEnvironment`], never the daemon's whole environment.
//! * [`ProcessState::Exited`] means that the whole group is gone, not only its leader.
//! * A child whose last handle is dropped is killed, and so is a child whose daemon dies (Linux).
//!
//! Bytes and lines only: what the child speaks on its pipes is the caller's business, and so are
//! restarts.

mod environment;
mod error;
mod group;
mod log;
mod parent_death;
mod process;
mod spawner;
mod spec;

pub use environment::BaseEnvironment;
pub use error::SpawnError;
pub use process::{ChildIo, ExitInfo, Process, ProcessState};
pub use spec::{ProcessSpec, Redact};
