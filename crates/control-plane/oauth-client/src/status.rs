//! The status of a grant, as people see it.

use std::sync::Arc;

use url::Url;

use crate::{credential::ServerCredential, holding::Holding, store::GrantFacts};

/// The status of a grant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrantStatus {
    /// The facts of the grant, or of the last one.
    pub facts: GrantFacts,
    /// The address at which a person can sign in.
    pub pending: Option<Url>,
}

/// The status of the server that was asked for last, and of no other address of its grant.
pub(crate) fn newest(known: &[Arc<ServerCredential>]) -> Option<GrantStatus> {
    let place = known.last()?.holding.entry().place();
    let is_here = |one: &&Arc<ServerCredential>| one.holding.entry().place() == place;
    known.iter().rev().filter(is_here).find_map(|one| status(&one.holding))
}

fn status(holding: &Holding) -> Option<GrantStatus> {
    let now = holding.now();
    holding.with_state(|state| {
        let pending = state.open_attempt(now).map(|open| open.url.clone());
        let facts = state.facts.clone();
        let is_known = state.held.is_some() || pending.is_some() || facts.failed_at.is_some();
        is_known.then_some(GrantStatus { facts, pending })
    })
}
