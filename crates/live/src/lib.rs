//! What runs may, in memory, as the store has it: the grants and the rules of each workspace, and
//! whose turn it is in each session.
//!
//! Whoever writes one to the store holds `changing` meanwhile and sets it here too, so that it
//! counts at once. What other daemons on the store write is found within [`POLL`].

mod by_workspace;
mod grants;
mod keyed;
mod polls;
mod proof;
mod rules;
mod turns;

use std::time::Duration;

pub use grants::LiveGrants;
pub use keyed::KeyedLock;
pub use polls::Polls;
pub use proof::ProofRule;
pub use rules::{KnownRules, LiveRules};
pub use turns::{LiveTurns, Speaker};

/// How often daemons on one store look for what others have written.
pub const POLL: Duration = Duration::from_secs(2);
/// How long what only the store can confirm counts without it.
pub const STALE: Duration = Duration::from_secs(60);
