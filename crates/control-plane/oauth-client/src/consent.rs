//! The beginning of a sign-in by a person: discovery, client, and the address for the browser.

use std::sync::Arc;

use narthex_oauth::{
    challenge::Bearer,
    client::{ATTEMPT_LIFE, Attempt, Binding, DiscoveryError, Flow, Found, Plan, shown_url},
    metadata::ServerMetadata,
    scopes::Scopes,
};
use url::Url;

use crate::{
    SignInError,
    attempt_row::OpenedAttempt,
    client_choice::{Choice, keys_of},
    discover::Search,
    entry::Person,
    first_request::{self, FirstAnswer},
    grant_row::{Client, ClientKind},
    guard::Guard,
    holding::{Holding, Parts},
    state::OpenAttempt,
    store::{AttemptRow, GrantKey},
};

/// The way in which a sign-in begins.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum BeginAs {
    /// The open attempt is given, if there is one.
    #[default]
    Reuse,
    /// The tokens, and a client that narthex has registered, are dropped first (E103).
    Anew,
}

/// The wish for a consent.
#[derive(Debug, Clone, Default)]
pub(crate) struct Consent {
    /// The challenge of the refusal that led here.
    pub(crate) challenge: Option<Bearer>,
    /// Scopes to ask for besides those that discovery finds.
    pub(crate) further: Scopes,
    /// Hash of the login session of the browser.
    pub(crate) session: Option<String>,
    pub(crate) how: BeginAs,
}

/// An attempt to be started.
pub(crate) struct Start<'a> {
    pub(crate) key: &'a GrantKey,
    pub(crate) alias: &'a str,
    pub(crate) server: &'a Url,
    pub(crate) chosen: Vec<Url>,
    pub(crate) metadata: &'a ServerMetadata,
    pub(crate) client: Client,
    pub(crate) resource: Option<&'a str>,
    pub(crate) scopes: &'a Scopes,
    pub(crate) session: Option<String>,
}

impl Start<'_> {
    /// Starts the attempt, and stores it.
    ///
    /// # Errors
    /// When the authorization server has no address for browsers, or the store fails.
    pub(crate) async fn run(self, parts: &Parts) -> Result<OpenAttempt, SignInError> {
        let Start { key, alias, server, chosen, metadata, client, resource, scopes, session } =
            self;
        let redirect_uri = client.redirect_uri.clone();
        let place = redirect_uri.ends_with("/oauth/callback").then_some(key.server.as_str());
        let binding = Binding {
            workspace: key.workspace.clone(),
            server: key.server.clone(),
            user: key.user.clone(),
            session: session.clone(),
        };
        let plan = Plan {
            metadata,
            client: &client.identity,
            redirect_uri: &redirect_uri,
            resource,
            scopes,
            place,
            binding,
        };
        let now = parts.now();
        let (url, attempt) = Attempt::begin(plan, now)?;
        let state_hash = attempt.key().to_owned();
        let expires_at = now.saturating_add(ATTEMPT_LIFE);
        let opened = OpenedAttempt {
            attempt,
            key: key.clone(),
            alias: alias.to_owned(),
            server: server.clone(),
            chosen,
            client,
        };
        let row = AttemptRow { key: key.clone(), value: opened.to_stored(), expires_at };
        parts.options.store.put_attempt(state_hash.clone(), row).await?;
        let bad = |_error| SignInError::BadUrl { server: alias.to_owned() };
        let redirect_uri = Url::parse(&redirect_uri).map_err(bad)?;
        let scopes = scopes.clone();
        Ok(OpenAttempt { url, state_hash, expires_at, redirect_uri, scopes, session })
    }
}

/// Opens an address at which a person signs in.
///
/// # Errors
/// When the authorization server cannot be found, or takes no client.
pub(crate) async fn open(holding: &Holding, consent: Consent) -> Result<(), SignInError> {
    let Consent { challenge, further, session, how } = consent;
    let entry = holding.entry();
    let person = entry.person()?;
    if holding.key.needs_own_browser() && session.is_none() {
        return Err(SignInError::NoSession { server: entry.alias.clone() });
    }
    let parts = &holding.parts;
    let is_open = |attempt: &Arc<OpenAttempt>| {
        attempt.session == session && attempt.scopes.contains_all(&further)
    };
    let is_open = holding.with_state(|state| state.open_attempt(parts.now()).is_some_and(is_open));
    if is_open && how == BeginAs::Reuse {
        return Ok(());
    }
    let guard = holding.guard().await;
    // A sign-in that no refused request has begun asks for the refusal first.
    let first = match challenge {
        Some(challenge) => FirstAnswer::Refused(Some(challenge)),
        None => first_request::ask(&parts.fetcher, &guard, &entry.url).await,
    };
    let KnownThere { found, client } = known_there(holding, person, &guard, &first, how).await?;
    leave_issuer(holding, &found, client.kind).await?;
    let further = further.union(&holding.state().wanted);
    let scopes = requested(holding, &found, &further);
    let start = Start {
        key: &holding.key,
        alias: &entry.alias,
        server: &entry.url,
        chosen: entry.chosen(),
        metadata: &found.metadata,
        client,
        resource: found.resource.as_deref(),
        scopes: &scopes,
        session,
    };
    let attempt = start.run(parts).await?;
    show(holding, &entry.alias, attempt).await;
    Ok(())
}

/// Finds the authorization server, and a client there. Begins no sign-in. True if the server has
/// answered a request without a token.
///
/// # Errors
/// When the authorization server cannot be found, or takes no client.
pub(crate) async fn prepare(holding: &Holding) -> Result<bool, SignInError> {
    let entry = holding.entry();
    let person = entry.person()?;
    let guard = holding.guard().await;
    let first = first_request::ask(&holding.parts.fetcher, &guard, &entry.url).await;
    let is_open = matches!(first, FirstAnswer::Open);
    match known_there(holding, person, &guard, &first, BeginAs::Reuse).await {
        Err(SignInError::Discovery(DiscoveryError::NoResourceMetadata { .. })) if is_open => {
            Err(SignInError::NotAsked { server: entry.alias.clone() })
        }
        known => known.map(|_known| is_open),
    }
}

/// An authorization server, and narthex as a client there.
struct KnownThere {
    found: Found,
    client: Client,
}

/// Finds the authorization server of an entry, and a client there. Anew, tokens and a registered
/// client are dropped before.
async fn known_there(
    holding: &Holding,
    person: &Person,
    guard: &Guard,
    first: &FirstAnswer,
    how: BeginAs,
) -> Result<KnownThere, SignInError> {
    let entry = holding.entry();
    let search = Search {
        server: &entry.url,
        challenge: first.challenge(),
        flow: Flow::Browser,
        settings: &person.settings,
    };
    let found = search.run(&holding.parts.fetcher, guard).await?;
    let is_anew = how == BeginAs::Anew;
    if is_anew {
        drop_all(holding, person, &found.issuer).await?;
    }
    let choice = Choice { person, found: &found, is_anew, is_for_devices: false };
    let client = choice.make(holding, guard).await?;
    Ok(KnownThere { found, client })
}

/// Makes an attempt the open one of a server; the attempt before it ends (E107).
pub(crate) async fn show(holding: &Holding, alias: &str, attempt: OpenAttempt) {
    let before = holding.state().attempt.clone();
    let attempt = Arc::new(attempt);
    holding.update(|state| {
        state.attempt = Some(Arc::clone(&attempt));
        state.reopens_at = None;
        state.trouble = None;
    });
    let options = &holding.parts.options;
    if let Some(before) = before {
        // If this fails, the attempt ends by itself.
        drop(options.store.take_attempt(before.state_hash.clone()).await);
    }
    options.hooks.open_authorize_url(alias, &attempt.url);
}

/// The scopes to ask for: those that discovery finds, those of the grant, and further ones.
fn requested(holding: &Holding, found: &Found, further: &Scopes) -> Scopes {
    let held = holding.state().held.clone();
    let held = held.filter(|held| held.value.grant.issuer == found.issuer);
    let before = held.map(|held| held.value.grant.requested.clone()).unwrap_or_default();
    found.scopes.union(&before).union(further)
}

/// Drops the tokens, and the clients that narthex has registered (E103).
async fn drop_all(holding: &Holding, person: &Person, issuer: &str) -> Result<(), SignInError> {
    let store = &holding.parts.options.store;
    store.drop_grant(holding.key.clone(), None).await?;
    for key in keys_of(holding, person, issuer) {
        store.drop_client(key).await?;
    }
    holding.forget();
    Ok(())
}

/// Drops tokens of another authorization server than the one that the server names now (C21).
///
/// # Errors
/// When the client is one of the settings: the client may be unknown at the other server.
pub(crate) async fn leave_issuer(
    holding: &Holding,
    found: &Found,
    kind: ClientKind,
) -> Result<(), SignInError> {
    let held = holding.state().held.clone();
    // A token of an exchange is no sign-in, and the next row takes its place.
    let held = held.filter(|held| !held.value.grant.origin.is_repeatable());
    let Some(held) = held else { return Ok(()) };
    let before = &held.value.grant.issuer;
    // Tokens of a configuration name no issuer.
    if before.is_empty() || *before == found.issuer {
        return Ok(());
    }
    if kind == ClientKind::Preregistered {
        let shown = |text: &str| Url::parse(text).map(|url| shown_url(&url)).unwrap_or_default();
        return Err(SignInError::IssuerMoved {
            server: holding.entry().alias.clone(),
            before: shown(before),
            now: shown(&found.issuer),
        });
    }
    let store = &holding.parts.options.store;
    store.drop_grant(holding.key.clone(), Some(held.generation)).await?;
    holding.forget();
    holding.update(|state| state.attempt = None);
    Ok(())
}
