//! The audit: the shape of its events, the hash chain they stand in, and its verifier.
//!
//! * [`AuditEvent`] is one thing that somebody did or was refused. It has names and never values.
//! * [`Chains`] writes events as lines, each with the hash of the line before it in its chain. A
//!   chain belongs to one writer and one workspace, so that what a workspace exports is whole.
//! * [`Verifier`] reads lines again and says which is the first that is not as it was written.
//!
//! * [`spool`] is the files that lines go to on their way into a store. It alone does I/O.

mod canonical;
mod chain;
mod event;
pub mod kind;
pub mod spool;
mod verify;

pub use canonical::{NotCanonical, canonical, line_hash};
pub use chain::{Chains, Head, Link};
pub use event::{Actor, ActorKind, AuditEvent, Resource};
pub use verify::{Broken, ChainReport, DeclaredChain, Fault, Report, Verifier};
