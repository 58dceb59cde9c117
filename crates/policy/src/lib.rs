//! The only maker of a [`Permitted`] request: decides whether one request may be forwarded (D13).
//!
//! Forwarding takes `Permitted<Request>`, which only [`RunPolicy::authorize`] leads to. It owns the
//! bytes and the effective name that were checked, and hands them out only whole: what was checked
//! is what is sent. Pure: no I/O, no clock; what is granted and when it is, it is told.

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
pub use rules::{Denial, Permitted, RunPolicy};
pub use single::{Paid, Payment, SpentStates, StateId, Unused, bound_arguments};
pub use workspace_rules::{
    Arguments, CallOrigin, Forbidding, Question, Rules, Ruling, Site, WorkspaceRules, is_ruled,
};
