//! The only maker of a [`Permitted`] request: decides whether one request may be forwarded (D13).
//!
//! Forwarding takes `Permitted<Request>`, which only [`RunPolicy::authorize`] leads to. A permitted
//! request owns the checked bytes and the checked effective name, and is only handed over whole:
//! exactly the checked bytes are sent. Pure: no I/O, no clock; the caller passes in the grants and
//! the time.

mod decision;
mod digest;
mod grants;
mod request;
mod rules;
mod single;
mod workspace_rules;

pub use decision::{Attempt, Authority, Basis, CHECKS, ServerRules, Unpaid, Verdict};
pub use digest::{canonical, digest_of};
pub use grants::{Acting, Actors, Grants, LiveGrant, SpawnPermit, SpawnRefusal, Spawning};
pub use request::{Item, Origin, Request};
pub use rules::{Denial, LiveProfile, Permitted, RunPolicy};
pub use single::{Paid, Payment, SpentStates, StateId, Unused, bound_arguments};
pub use workspace_rules::{
    Arguments, CallOrigin, Forbidding, Question, Rules, Ruling, Site, WorkspaceRules, is_ruled,
};
