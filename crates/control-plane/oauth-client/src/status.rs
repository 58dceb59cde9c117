//! The status of grants, as operators see it.

use std::sync::Arc;

use url::Url;

use crate::{
    credential::ServerCredential,
    grant_row::{ClientKind, GrantValue},
    holding::Holding,
    store::GrantFacts,
};

/// The status of a grant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrantStatus {
    /// The facts of the grant, or of the last one.
    pub facts: GrantFacts,
    /// The address at which a person can sign in.
    pub pending: Option<Url>,
    /// The origin of the client id; `None` while there are no tokens, or no person signs in.
    pub client: Option<ClientOrigin>,
}

/// The origin of narthex's client id at an authorization server, in the order of C11.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClientOrigin {
    /// The entry of the server.
    Entry,
    /// The shared client of this name in the settings; `None` if the settings have it no more.
    Settings(Option<String>),
    /// The client id metadata document.
    Document,
    /// A registration by narthex.
    Registration,
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
        let client = state.held.as_ref().and_then(|held| origin(holding, &held.value));
        is_known.then_some(GrantStatus { facts, pending, client })
    })
}

/// The origin of the client of a grant.
fn origin(holding: &Holding, value: &GrantValue) -> Option<ClientOrigin> {
    let GrantValue { grant, client, .. } = value;
    Some(match client.as_ref()?.kind {
        ClientKind::Preregistered => ClientOrigin::Entry,
        ClientKind::Shared => {
            let entry = holding.entry();
            let clients = &holding.parts.options.shared_clients;
            let mut all = clients.at(&grant.issuer, &holding.key, &entry.url);
            let own = all.find(|one| one.client_id == grant.client_id);
            ClientOrigin::Settings(own.map(|one| one.name.clone()))
        }
        ClientKind::Document => ClientOrigin::Document,
        ClientKind::Registered => ClientOrigin::Registration,
    })
}
