//! The audit: the record of all actions, from the shape of an event to a verifier of exports.
//!
//! * [`AuditEvent`] is one action or refusal. It has names and never values, except an [`Excerpt`]
//!   of a call's contents in a workspace with that setting.
//! * [`Audit`] records events. Each call takes an [`AuditSlot`], and changes are [`Noted`] before
//!   they are made. One thread writes to the spool, the files on the way to a store.
//! * [`SpoolReader`] reads the spool, for the task that moves its lines into the store.
//! * [`Chains`] writes events as lines, each with the hash of the line before it in its chain. A
//!   chain belongs to one writer and one workspace, so that a workspace's export is whole.
//! * [`Verifier`] reads lines again and reports the first changed or missing one.
//!
//! This crate knows no gateway and no store. Only the recorder and the spool do I/O.

mod canonical;
mod chain;
mod columns;
mod contents;
mod event;
pub mod kind;
mod recorder;
mod spool;
mod tool_set;
mod verify;

pub use canonical::{NotCanonical, canonical, line_hash};
use chain::Link;
pub use chain::{Chains, Head};
pub use columns::{LineColumns, LineName};
pub use contents::{CONTENTS, ContentsSwitch, EXCERPT_BYTES, Excerpt};
pub use event::{Actor, ActorKind, AuditEvent, Resource};
pub use recorder::{
    Audit, AuditError, AuditFull, AuditRecord, AuditSettings, AuditSlot, Noted, Outcome, Refused,
    TOOL,
};
pub use spool::{SpoolBatch, SpoolFiles, SpoolGrown, SpoolReader};
pub use tool_set::{DefinitionDigest, SeenTool, ToolSet};
pub use verify::{Broken, ChainReport, DeclaredChain, Fault, KnownHead, Report, Verifier, Waiting};

/// Number of records that a background thread handles before a thread with a call may run.
/// Schedulers let a thread that is awake run for milliseconds, also if a more urgent one waits.
pub const YIELD_EVERY: usize = 32;
