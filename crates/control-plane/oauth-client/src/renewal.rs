//! Renewal of tokens: one process at a time, stored before they are used (C23).

use std::{fmt::Display, sync::Arc, time::Duration};

use narthex_oauth::{
    client::{
        Asked, ClientIdentity, Failure, Flow, Found, Freshness, Grant, Refusal, TokenEndpoint,
        TokenGrant, Tokens, shown_url,
    },
    metadata::ServerMetadata,
    scopes::Scopes,
};
use tokio::time::sleep;
use url::Url;

use crate::{
    SignInError,
    client_choice::keys_of,
    consent::{self, Consent},
    discover::Search,
    entry::{Entry, Person},
    grant_row::{Client, ClientKind, GrantValue, Held},
    guard::Guard,
    holding::{Holding, Parts},
    lease::{Right, Wish},
    loading::take_over,
    state::Unsaved,
    store::{GrantFacts, GrantKey, GrantRow},
};

/// Pauses before a store that failed is asked again.
const STORE_PAUSES: [Duration; 2] = [Duration::from_millis(100), Duration::from_millis(500)];

/// A renewal under way.
struct Renewal<'a> {
    holding: &'a Holding,
    entry: &'a Entry,
    person: &'a Person,
    guard: &'a Guard,
    held: &'a Held,
}

/// The parts of the request.
struct Plan {
    metadata: ServerMetadata,
    client: Client,
    resource: Option<String>,
}

/// Renews the tokens of a grant, or takes over the result of another process. If the grant has
/// ended, an address for a new sign-in is opened.
///
/// # Errors
/// When the tokens cannot be renewed now.
pub(crate) async fn renew(holding: &Holding) -> Result<(), SignInError> {
    let Some(held) = holding.state().held.clone() else { return Ok(()) };
    if is_fresh(holding) {
        return Ok(());
    }
    if let Some(unsaved) = holding.state().unsaved.clone() {
        return save(holding, unsaved).await;
    }
    let entry = holding.entry();
    let person = entry.person()?;
    let store = &holding.parts.options.store;
    match store.grant(holding.key.clone()).await? {
        Some(row) if held.is_of(&row) => {}
        Some(row) => return take_over(holding, &row),
        None => {
            holding.forget();
            return Ok(());
        }
    }
    let guard = holding.guard().await;
    let renewal = Renewal { holding, entry: &entry, person, guard: &guard, held: &held };
    let Some(plan) = renewal.plan().await? else { return Ok(()) };
    match has_right(holding, &entry, &held).await? {
        true => renewal.exchange(plan).await,
        false => Ok(()),
    }
}

/// True if this process has the right to renew a grant. If another process has renewed or dropped
/// the grant, the memory has its result.
///
/// # Errors
/// When the store fails, or another process renews for too long.
pub(crate) async fn has_right(
    holding: &Holding,
    entry: &Entry,
    held: &Held,
) -> Result<bool, SignInError> {
    let wish = Wish { key: &holding.key, owner: holding.owner(), server: &entry.alias };
    match wish.right(&holding.parts, |row| held.is_of(row)).await? {
        Right::Mine => Ok(true),
        Right::Written(row) => take_over(holding, &row).map(|()| false),
        Right::Gone => {
            holding.forget();
            Ok(false)
        }
    }
}

/// True if the token needs no renewal: another task has ended since the caller decided.
pub(crate) fn is_fresh(holding: &Holding) -> bool {
    let now = holding.now();
    holding.with_state(|state| {
        let held = state.usable(now);
        held.is_some_and(|held| held.value.grant.freshness(now) == Freshness::Fresh)
    })
}

impl Renewal<'_> {
    fn grant(&self) -> &Grant {
        &self.held.value.grant
    }

    /// The parts of the request. `None`: the server has moved to another authorization server, and
    /// a sign-in there was opened (C21).
    async fn plan(&self) -> Result<Option<Plan>, SignInError> {
        let Self { holding, person, held, .. } = self;
        let GrantValue { grant, metadata, client, server: _ } = &held.value;
        let found = self.found().await?;
        let Some(metadata) = found.as_ref().map(|found| &found.metadata).or(metadata.as_ref())
        else {
            return Err(self.refusal(Refusal::of_code("temporarily_unavailable", None)));
        };
        let kind = client.as_ref().map_or(ClientKind::Preregistered, |client| client.kind);
        if let Some(found) = &found
            && !grant.issuer.is_empty()
            && found.issuer != grant.issuer
        {
            consent::leave_issuer(holding, found, kind).await?;
            self.ask().await?;
            return Ok(None);
        }
        let listed = metadata.token_endpoint_auth_methods_supported.as_deref();
        let own = || {
            let ClientIdentity { id, secret, .. } = person.settings.client.clone()?;
            let identity = ClientIdentity::new(id, secret, listed);
            Some(Client { identity, kind, redirect_uri: String::new() })
        };
        let shared = || {
            // A client that the settings have no more is not used any more.
            let clients = &holding.parts.options.shared_clients;
            let mut all = clients.at(&grant.issuer, &holding.key, &self.entry.url);
            let identity = all.find(|one| one.client_id == grant.client_id)?.identity(listed);
            Some(Client { identity, kind, redirect_uri: String::new() })
        };
        let client = match kind {
            ClientKind::Preregistered => own(),
            ClientKind::Shared => shared(),
            ClientKind::Document | ClientKind::Registered => client.clone(),
        };
        let Some(client) = client else {
            self.ask().await?;
            return Ok(None);
        };
        let resource = match (&found, grant.issuer.is_empty()) {
            (Some(found), true) => found.resource.clone(),
            (Some(_) | None, _) => grant.resource.clone(),
        };
        Ok(Some(Plan { metadata: metadata.clone(), client, resource }))
    }

    /// The authorization server that the server names now. It is asked after a failure or a
    /// refusal, and if it is not known yet (C10).
    async fn found(&self) -> Result<Option<Found>, SignInError> {
        let Self { holding, entry, person, guard, held } = self;
        let state = holding.state();
        let is_known = held.value.metadata.is_some();
        let is_doubtful = state.refused == Some(held.generation) || state.failures() > 0;
        if is_known && !is_doubtful {
            return Ok(None);
        }
        let (server, settings) = (&entry.url, &person.settings);
        let search = Search { server, challenge: None, flow: Flow::Browser, settings };
        match search.run(&holding.parts.fetcher, guard).await {
            Ok(found) => Ok(Some(found)),
            // The places of the last sign-in serve on.
            Err(_error) if is_known => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Sends the refresh token, and stores the answer.
    async fn exchange(&self, plan: Plan) -> Result<(), SignInError> {
        let (parts, grant) = (&self.holding.parts, self.grant());
        let Some(token) = &grant.tokens.refresh_token else { return self.ask().await };
        let now = parts.now();
        let endpoint = TokenEndpoint {
            metadata: &plan.metadata,
            client: &plan.client.identity,
            resource: plan.resource.as_deref(),
            now,
        };
        let scopes = self.sends_scopes(&plan.metadata.issuer).then_some(&grant.tokens.scopes);
        let fault = |fault| SignInError::Request { server: self.entry.alias.clone(), fault };
        let request = endpoint.refresh(token, scopes).map_err(fault)?;
        let fetched = parts.fetcher.post_form(self.guard, &request).await;
        let asked = Asked { grant: TokenGrant::Refresh, scopes: &grant.tokens.scopes, now };
        match Tokens::read(&fetched.reply(), asked) {
            Ok(tokens) => {
                let Plan { metadata, client, resource } = plan;
                let issuer = metadata.issuer.clone();
                let renewed = Grant { issuer, resource, ..grant.renewed(tokens) };
                let value = GrantValue {
                    grant: renewed,
                    server: self.held.value.server.clone(),
                    metadata: Some(metadata),
                    client: Some(client),
                };
                let facts = value.facts(Some(now));
                let generation = self.held.generation;
                save(self.holding, Arc::new(Unsaved { generation, value, facts })).await
            }
            Err(refusal) => self.fail(plan, refusal).await,
        }
    }

    /// True if the authorization server needs `scope` in refresh requests (Q13).
    fn sends_scopes(&self, issuer: &str) -> bool {
        let issuer = Url::parse(issuer).ok();
        let settings = self.person.settings.with_preset(issuer.iter().chain([&self.entry.url]));
        settings.refresh_scope == Some(true)
    }

    /// Carries out the consequences of a refused renewal (C25).
    async fn fail(&self, plan: Plan, refusal: Refusal) -> Result<(), SignInError> {
        let (holding, held) = (self.holding, self.held);
        let store = &holding.parts.options.store;
        tracing::warn!(
            server.name = %self.entry.alias,
            %refusal,
            "the tokens of a server cannot be renewed"
        );
        let consequence = refusal.failure.consequence(plan.client.is_registered());
        if !consequence.drops_tokens {
            note(holding, Some(held), &held.facts, &refusal).await;
            let now = holding.now();
            let is_usable = holding.with_state(|state| state.usable(now).is_some());
            return match refusal.failure {
                Failure::ScopeRefused if !is_usable => self.ask().await,
                _ => Err(self.refusal(refusal)),
            };
        }
        // A process that lost its lease may have used the same token.
        let row = store.grant(holding.key.clone()).await?;
        if let Some(row) = row.filter(|row| !held.is_of(row)) {
            return take_over(holding, &row);
        }
        if consequence.drops_client {
            for key in keys_of(holding, self.person, &plan.metadata.issuer) {
                store.drop_client(key).await?;
            }
        }
        store.drop_grant(holding.key.clone(), Some(held.generation)).await?;
        holding.forget();
        let (failed_at, failure) = (Some(holding.now()), Some(refusal.to_string()));
        holding.update(|state| {
            // It may be one of a client that is unknown now.
            state.attempt = None;
            state.facts.failed_at = failed_at;
            state.facts.failure.clone_from(&failure);
        });
        holding
            .parts
            .failed(&holding.key, &GrantFacts { failed_at, failure, ..held.facts.clone() });
        self.ask().await
    }

    /// Opens an address at which a person signs in, for the scopes of the grant. An ended token is
    /// not renewed meanwhile.
    async fn ask(&self) -> Result<(), SignInError> {
        let (now, generation) = (self.holding.now(), self.held.generation);
        self.holding.update(|state| {
            if state.usable(now).is_none() {
                state.refused = Some(generation);
            }
        });
        let state = self.holding.state();
        if self.entry.falls_back() && state.usable(now).is_none() && !state.has_fallen_back(now) {
            // The exchange comes first.
            return Ok(());
        }
        let further: Scopes = self.grant().requested.clone();
        consent::open(self.holding, Consent { further, ..Consent::default() }).await
    }

    fn refusal(&self, refusal: Refusal) -> SignInError {
        let metadata = self.held.value.metadata.as_ref();
        let endpoint = metadata.and_then(|metadata| metadata.token_endpoint.as_ref());
        let endpoint = endpoint.map(shown_url).unwrap_or_default();
        SignInError::Token { server: self.entry.alias.clone(), endpoint, refusal }
    }
}

/// Notes a failure beside the facts of a grant. Ends the lease of the grant, if there is one.
pub(crate) async fn note(
    holding: &Holding,
    held: Option<&Held>,
    facts: &GrantFacts,
    failure: &(dyn Display + Sync),
) {
    let (failed_at, failure) = (Some(holding.now()), Some(failure.to_string()));
    let facts = GrantFacts { failed_at, failure, ..facts.clone() };
    holding.update(|state| state.facts = facts.clone());
    holding.parts.failed(&holding.key, &facts);
    let Some(held) = held else { return };
    let (key, generation) = (holding.key.clone(), held.generation);
    if let Err(error) = holding.parts.options.store.note_failure(key, generation, facts).await {
        tracing::warn!(server.name = %holding.entry().alias, %error, "a failure is not stored");
    }
}

/// Stores renewed tokens, and uses them only then. A result that the store does not take stays in
/// memory until the next try, as its refresh token is the only one that still counts.
pub(crate) async fn save(holding: &Holding, unsaved: Arc<Unsaved>) -> Result<(), SignInError> {
    let written = written(&holding.parts, &holding.key, &unsaved).await;
    let row = match written {
        Ok(row) => row,
        Err(error) => {
            holding.update(|state| state.unsaved = Some(Arc::clone(&unsaved)));
            return Err(error);
        }
    };
    holding.update(|state| state.unsaved = None);
    let options = &holding.parts.options;
    match row {
        Some(row) => {
            holding.adopt(&row)?;
            options.hooks.on_tokens_changed(&holding.key, Some(&row.facts));
            Ok(())
        }
        // Another has written since, such as a sign-in.
        None => match options.store.grant(holding.key.clone()).await? {
            Some(row) => take_over(holding, &row),
            None => {
                holding.forget();
                Ok(())
            }
        },
    }
}

/// The stored row; `None` if another has written since.
///
/// # Errors
/// When the store takes the row at none of several tries.
pub(crate) async fn written(
    parts: &Parts,
    key: &GrantKey,
    unsaved: &Unsaved,
) -> Result<Option<GrantRow>, SignInError> {
    let store = &parts.options.store;
    let Unsaved { generation, value, facts } = unsaved;
    let write = || store.renew_grant(key.clone(), *generation, value.to_stored(), facts.clone());
    for pause in STORE_PAUSES {
        match write().await {
            Ok(row) => return Ok(row),
            Err(error) => tracing::warn!(%error, "renewed tokens are not stored yet"),
        }
        sleep(pause).await;
    }
    Ok(write().await?)
}
