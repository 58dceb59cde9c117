//! Permissions of runs in memory, equal to those in the store: the grants and the rules of each
//! workspace, and the turn of each session.
//!
//! A caller that writes grants or rules to the store holds the lock `changing` and updates them
//! here too, so that the change counts at once. Changes by other daemons on the store are found
//! within [`POLL`].
//!
//! A separate layer: imports no other module of this crate.

mod by_workspace;
mod grants;
mod keyed;
mod polls;
mod proof;
mod rules;
mod turns;

use std::time::Duration;

pub(crate) use grants::LiveGrants;
pub use keyed::KeyedLock;
pub(crate) use polls::Polls;
pub(crate) use proof::ProofRule;
pub(crate) use rules::LiveRules;
pub(crate) use turns::LiveTurns;
pub use turns::Speaker;

/// Time between two readings of the store for changes by other daemons.
pub const POLL: Duration = Duration::from_secs(2);
/// Time for which permissions count while the store cannot be read.
pub const STALE: Duration = Duration::from_secs(60);
