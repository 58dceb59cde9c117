//! Child processes as actors: groups, stop ladder, captured logs.
//!
//! A [`Process`] is a handle to one child that leads its own process group. One task owns the
//! child; every handle talks to that task. On Linux a small process runs between the two, the
//! [`shim`], which controls all processes that the child starts. Invariants:
//!
//! * A child sees the environment of its [`ProcessSpec`] and the few names of [`BaseEnvironment`],
//!   never the daemon's whole environment.
//! * [`ProcessState::Exited`] means that the child's whole tree is gone; without a shim, its group.
//! * A child whose last handle is dropped is killed with its tree, and so is a child whose daemon
//!   dies.
//!
//! Bytes and lines only: the caller defines the protocol on the child's pipes, and decides about
//! restarts.

mod confine;
mod environment;
mod error;
mod group;
mod hold;
mod log;
mod parent_death;
#[cfg(target_os = "linux")]
mod proc;
mod process;
pub mod shim;
#[cfg(target_os = "linux")]
mod shimmed;
mod spawner;
mod spec;
mod usage;
mod watch;

pub use confine::ConfinementFault;
pub use environment::BaseEnvironment;
pub use error::SpawnError;
pub use log::{LogLimits, LogPart, LogRing};
pub use process::{ChildIo, ExitInfo, Process, ProcessState};
pub use shim::Shim;
pub use spec::{ProcessSpec, Redact};
pub use usage::{TreeUse, trees};
