//! Tokens of a client itself, without a person (RFC 6749, 4.4; E97 to E100).

use narthex_oauth::{
    challenge::Bearer,
    client::{
        Asked, ClientCredentials, ClientIdentity, Flow, Freshness, Grant, Refusal, TokenEndpoint,
        TokenGrant, Tokens, shown_url,
    },
    metadata::ServerMetadata,
    scopes::Scopes,
};

use crate::{
    SignInError,
    belonging::is_of,
    discover::Search,
    entry::{Entry, Mode},
    grant_row::{GrantValue, Held},
    guard::Guard,
    holding::Holding,
    loading::take_over,
    renewal::{is_fresh, note},
    store::GrantRow,
};

/// The parts of the request.
struct Plan {
    metadata: ServerMetadata,
    client: ClientIdentity,
    resource: Option<String>,
    scopes: Scopes,
}

/// Requests a token, or takes over one that another process has stored.
///
/// # Errors
/// When no token can be had.
pub(crate) async fn request(
    holding: &Holding,
    challenge: Option<Bearer>,
) -> Result<(), SignInError> {
    let entry = holding.entry();
    let Mode::Machine(machine) = &entry.mode else { return Ok(()) };
    if is_fresh(holding) {
        return Ok(());
    }
    let stored = holding.parts.options.store.grant(holding.key.clone()).await?;
    if let Some(row) = stored.filter(|row| is_other(holding, row, &entry)) {
        return take_over(holding, &row);
    }
    let guard = holding.guard().await;
    let search = Search {
        server: &entry.url,
        challenge: challenge.as_ref(),
        flow: Flow::Machine,
        settings: &machine.settings,
    };
    let plan = plan(holding, machine, search, &guard).await?;
    exchange(holding, &entry, machine, plan, &guard).await
}

/// True if a stored token is another one than that in memory, and can be sent.
pub(crate) fn is_other(holding: &Holding, row: &GrantRow, entry: &Entry) -> bool {
    let is_known =
        holding.with_state(|state| state.held.as_ref().is_some_and(|held| held.is_of(row)));
    let is_fresh = |held: Held| held.value.grant.freshness(holding.now()) == Freshness::Fresh;
    !is_known && is_of(row, entry) && Held::of(row, &entry.alias).is_ok_and(is_fresh)
}

/// The token endpoint of the settings, the one of the last request, or the discovered one.
async fn plan(
    holding: &Holding,
    machine: &ClientCredentials,
    search: Search<'_>,
    guard: &Guard,
) -> Result<Plan, SignInError> {
    let configured = machine.settings.scopes.clone().unwrap_or_default();
    if let Some(token_url) = &machine.token_url {
        let issuer = machine.settings.authorization_server.clone();
        let metadata = ServerMetadata {
            // The audience of a signed assertion, if the settings name no issuer.
            issuer: issuer.unwrap_or_else(|| token_url.to_string()),
            token_endpoint: Some(token_url.clone()),
            ..ServerMetadata::default()
        };
        let resource = machine.settings.resource.as_ref().and(machine.settings.resource(""));
        let client = machine.client_at(None);
        return Ok(Plan { metadata, client, resource, scopes: configured });
    }
    let state = holding.state();
    let known = state
        .held
        .as_ref()
        .filter(|held| state.refused != Some(held.generation) && state.failures() == 0);
    if let Some(held) = known
        && let GrantValue { grant, metadata: Some(metadata), .. } = &held.value
    {
        let client = machine.client_at(Some(metadata));
        let (resource, scopes) = (grant.resource.clone(), grant.requested.clone());
        return Ok(Plan { metadata: metadata.clone(), client, resource, scopes });
    }
    let found = search.run(&holding.parts.fetcher, guard).await?;
    let client = machine.client_at(Some(&found.metadata));
    Ok(Plan { client, resource: found.resource, scopes: found.scopes, metadata: found.metadata })
}

async fn exchange(
    holding: &Holding,
    entry: &Entry,
    machine: &ClientCredentials,
    plan: Plan,
    guard: &Guard,
) -> Result<(), SignInError> {
    let parts = &holding.parts;
    let now = parts.now();
    let Plan { metadata, client, resource, scopes } = plan;
    let endpoint =
        TokenEndpoint { metadata: &metadata, client: &client, resource: resource.as_deref(), now };
    let fault = |fault| SignInError::Request { server: entry.alias.clone(), fault };
    let request = endpoint.client_credentials(&scopes, machine.audience.as_deref());
    let fetched = parts.fetcher.post_form(guard, &request.map_err(fault)?).await;
    let asked = Asked { grant: TokenGrant::ClientCredentials, scopes: &scopes, now };
    match Tokens::read(&fetched.reply(), asked) {
        Ok(tokens) => {
            let grant = Grant {
                issuer: metadata.issuer.clone(),
                client_id: client.id.clone(),
                resource,
                requested: scopes,
                origin: TokenGrant::ClientCredentials,
                // A refresh token is not used: the request can be repeated.
                tokens: Tokens { refresh_token: None, ..tokens },
                generation: 0,
                key: None,
            };
            let server = entry.place();
            let value = GrantValue { grant, server, metadata: Some(metadata), client: None };
            save(holding, &value, now).await
        }
        Err(refusal) => {
            let endpoint = metadata.token_endpoint.as_ref().map(shown_url).unwrap_or_default();
            Err(refused(holding, entry, endpoint, refusal).await)
        }
    }
}

/// Stores a token, and uses it only then.
async fn save(holding: &Holding, value: &GrantValue, now: u64) -> Result<(), SignInError> {
    let options = &holding.parts.options;
    let facts = value.facts(Some(now));
    // The last of several processes wins: each of their tokens is as good.
    let row = options.store.put_grant(holding.key.clone(), value.to_stored(), facts).await?;
    holding.adopt(&row)?;
    options.hooks.on_tokens_changed(&holding.key, Some(&row.facts));
    Ok(())
}

async fn refused(
    holding: &Holding,
    entry: &Entry,
    endpoint: String,
    refusal: Refusal,
) -> SignInError {
    let state = holding.state();
    note(holding, state.held.as_deref(), &state.facts, &refusal).await;
    SignInError::Token { server: entry.alias.clone(), endpoint, refusal }
}
