//! Tokens of a server for the identity of a person, without a browser (C31, C32).
//!
//! The company's provider exchanges the identity for an assertion (ID-JAG), and the authorization
//! server of the server gives a token for that; or the provider gives the token itself. A renewal
//! is the same again.

use std::sync::Arc;

use narthex_model::{ExchangeKind, Secret};
use narthex_oauth::{
    challenge::Bearer,
    client::{
        Asked, ClientIdentity, Exchange, Failure, Flow, Grant, IdentitySource, Refusal,
        TokenEndpoint, TokenExchange, TokenGrant, Tokens, read_exchanged, read_id_jag, shown_url,
    },
    metadata::ServerMetadata,
    scopes::{OFFLINE_ACCESS, Scopes},
    urns::ACCESS_TOKEN,
};
use url::Url;

use crate::{
    SignInError,
    discover::Search,
    entry::{Entry, Mode},
    first_request::{self, FirstAnswer},
    grant_row::{GrantValue, Held},
    guard::Guard,
    holding::Holding,
    identity::{IdentityHolder, Proof, no_provider},
    loading::take_over,
    machine::is_other,
    renewal::{has_right, is_fresh, note, save},
    state::Unsaved,
};

/// Refusals by a rule of a provider: the person, the client or the server is not allowed.
const DENIALS: [&str; 3] = ["access_denied", "unauthorized_client", "invalid_target"];

/// An exchange under way.
struct Exchanging<'a> {
    holding: &'a Holding,
    entry: &'a Entry,
    exchange: &'a Exchange,
    guard: &'a Guard,
}

/// The token's receiver, as discovered.
struct Plan {
    /// The authorization server of the server.
    metadata: ServerMetadata,
    resource: Option<String>,
    scopes: Scopes,
}

/// The tokens of an exchange, with the server and the client that they are of.
struct Given {
    tokens: Tokens,
    metadata: ServerMetadata,
    client_id: String,
}

/// Exchanges the identity for a token, or takes over a token that another process has stored.
///
/// # Errors
/// When no token can be had.
pub(crate) async fn request(
    holding: &Holding,
    challenge: Option<Bearer>,
) -> Result<(), SignInError> {
    let entry = holding.entry();
    let Mode::Exchange(exchanged) = &entry.mode else { return Ok(()) };
    let exchange = &exchanged.exchange;
    let state = holding.state();
    let has_scopes = |held: &Arc<Held>| held.value.grant.requested.contains_all(&state.wanted);
    if is_fresh(holding) && state.held.as_ref().is_some_and(has_scopes) {
        return Ok(());
    }
    if let Some(unsaved) = state.unsaved.clone() {
        return save(holding, unsaved).await;
    }
    let stored = holding.parts.options.store.grant(holding.key.clone()).await?;
    if let Some(row) = stored.as_ref().filter(|row| is_other(holding, row, &entry)) {
        return take_over(holding, row);
    }
    listed(holding, &entry, exchange)?;
    let guard = holding.guard().await;
    let exchanging = Exchanging { holding, entry: &entry, exchange, guard: &guard };
    // A grant whose row was dropped or replaced is not renewed.
    let held = state.held.clone();
    let held = held.filter(|held| stored.as_ref().is_some_and(|row| held.is_of(row)));
    // A token of a sign-in names no receiver of an exchange, and gives way to the next token.
    let held = held.filter(|held| held.value.grant.origin.is_repeatable());
    let plan = exchanging.plan(held.as_deref(), challenge.as_ref()).await?;
    if let Some(held) = &held
        && !has_right(holding, &entry, held).await?
    {
        return Ok(());
    }
    let Err(error) = exchanging.run(plan, held.as_deref()).await else { return Ok(()) };
    exchanging.failed(held.as_deref(), &error).await;
    match entry.falls_back() && is_for_good(&error) {
        true => {
            holding.forget();
            holding.fall_back();
            Ok(())
        }
        false => Err(error),
    }
}

/// Finds the authorization server, and checks that the login provider is known: what later
/// exchanges need (X-M13). True if the server has answered a request without a token.
///
/// # Errors
/// When one of both cannot be used.
pub(crate) async fn prepare(holding: &Holding) -> Result<bool, SignInError> {
    let entry = holding.entry();
    let Mode::Exchange(exchanged) = &entry.mode else { return Ok(false) };
    let exchange = &exchanged.exchange;
    if let IdentitySource::Login(provider) = &exchange.identity
        && holding.parts.options.hooks.login_client(provider).is_none()
    {
        return Err(no_provider(&entry.alias, provider));
    }
    listed(holding, &entry, exchange)?;
    let guard = holding.guard().await;
    let first = first_request::ask(&holding.parts.fetcher, &guard, &entry.url).await;
    let exchanging = Exchanging { holding, entry: &entry, exchange, guard: &guard };
    exchanging.plan(None, first.challenge()).await?;
    Ok(matches!(first, FirstAnswer::Open))
}

/// Checks that the operator of the daemon lets a server have tokens for the identities of humans.
///
/// The author of an entry is no operator, and no human consents. Without a list, a server gets
/// tokens alone that an authorization server gives for this very server.
///
/// # Errors
/// When the operator does not.
fn listed(holding: &Holding, entry: &Entry, exchange: &Exchange) -> Result<(), SignInError> {
    let IdentitySource::Login(provider) = &exchange.identity else { return Ok(()) };
    let origin = entry.url.origin();
    let is_listed = holding.parts.options.hooks.exchanges_for(provider, &entry.url);
    let is_fine = is_listed.unwrap_or_else(|| {
        let resource = exchange.settings.resource(entry.url.as_str());
        let resource = resource.and_then(|text| Url::parse(&text).ok());
        let is_own = resource.is_some_and(|resource| resource.origin() == origin);
        exchange.kind == ExchangeKind::IdJag && is_own
    });
    match is_fine {
        true => Ok(()),
        false => Err(SignInError::NotListed {
            server: entry.alias.clone(),
            provider: provider.clone(),
            origin: origin.ascii_serialization(),
        }),
    }
}

impl Exchanging<'_> {
    /// The receiver of the last token, or the discovered one.
    async fn plan(
        &self,
        held: Option<&Held>,
        challenge: Option<&Bearer>,
    ) -> Result<Plan, SignInError> {
        let Self { holding, entry, exchange, guard } = self;
        let state = holding.state();
        let is_trusted =
            |held: &&Held| state.refused != Some(held.generation) && state.failures() == 0;
        if let Some(held) = held.filter(is_trusted)
            && let GrantValue { grant, metadata: Some(metadata), .. } = &held.value
        {
            let (resource, scopes) = (grant.resource.clone(), grant.requested.union(&state.wanted));
            return Ok(Plan { metadata: metadata.clone(), resource, scopes });
        }
        let (server, settings) = (&entry.url, &exchange.settings);
        let search = Search { server, challenge, flow: Flow::Machine, settings };
        let found = search.run(&holding.parts.fetcher, guard).await?;
        if exchange.kind == ExchangeKind::IdJag
            && let Some(before) = held.map(|held| &held.value.grant.issuer)
            && *before != found.issuer
        {
            // The client of the settings is not sent to another authorization server (C21).
            return Err(SignInError::IssuerMoved {
                server: entry.alias.clone(),
                before: shown(before),
                now: shown(&found.issuer),
            });
        }
        let configured = settings.scopes.as_ref();
        let scopes = match configured.is_some_and(|scopes| scopes.contains(OFFLINE_ACCESS)) {
            true => found.scopes,
            // An exchange uses no refresh token.
            false => found.scopes.without(OFFLINE_ACCESS),
        };
        let before = held.map(|held| held.value.grant.requested.clone()).unwrap_or_default();
        let scopes = scopes.union(&state.wanted).union(&before);
        Ok(Plan { metadata: found.metadata, resource: found.resource, scopes })
    }

    /// Gets a token, and stores it before it is used.
    async fn run(&self, plan: Plan, held: Option<&Held>) -> Result<(), SignInError> {
        let holding = self.holding;
        let person = IdentityHolder::of(holding, self.exchange, &self.entry.alias)?;
        let proof = person.proof().await?;
        let given = match self.given(&plan, &proof).await {
            Err(error) if is_ended(&error) => match person.other_proof(&proof.subject).await? {
                Some(proof) => self.given(&plan, &proof).await,
                None => {
                    person.end().await;
                    return Err(person.ended());
                }
            },
            given => given,
        };
        let given = match given? {
            Answer::Token(given) => given,
            Answer::Assertion(assertion) => self.redeem(&plan, &assertion).await?,
        };
        let now = holding.now();
        let value = self.value(plan, *given);
        let facts = value.facts(Some(now));
        match held {
            Some(held) => {
                let generation = held.generation;
                save(holding, Arc::new(Unsaved { generation, value, facts })).await
            }
            None => {
                let options = &holding.parts.options;
                let key = holding.key.clone();
                let row = options.store.put_grant(key, value.to_stored(), facts).await?;
                holding.adopt(&row)?;
                options.hooks.on_tokens_changed(&holding.key, Some(&row.facts));
                Ok(())
            }
        }
    }

    fn value(&self, plan: Plan, given: Given) -> GrantValue {
        let Given { tokens, metadata, client_id } = given;
        let grant = Grant {
            issuer: metadata.issuer.clone(),
            client_id,
            resource: plan.resource,
            requested: plan.scopes,
            origin: TokenGrant::Assertion,
            // Neither is used: the exchange can be repeated.
            tokens: Tokens { refresh_token: None, id_token: None, ..tokens },
            generation: 0,
            key: None,
        };
        GrantValue { grant, server: self.entry.place(), metadata: Some(metadata), client: None }
    }

    /// Exchanges the identity at the provider.
    async fn given(&self, plan: &Plan, proof: &Proof) -> Result<Answer, SignInError> {
        let parts = &self.holding.parts;
        let now = parts.now();
        let Proof { subject, client, metadata, guard } = proof;
        let Plan { metadata: server, resource, scopes } = plan;
        let resource = resource.as_deref();
        let endpoint = TokenEndpoint { metadata, client, resource, now };
        let wanted = match self.exchange.kind {
            ExchangeKind::IdJag => TokenExchange::id_jag(subject, &server.issuer, scopes),
            ExchangeKind::Token => TokenExchange {
                subject,
                actor: None,
                requested_type: Some(ACCESS_TOKEN),
                audience: self.exchange.audience.as_deref(),
                scopes,
            },
        };
        let fault = |fault| SignInError::Request { server: self.entry.alias.clone(), fault };
        let request = endpoint.exchange(&wanted).map_err(fault)?;
        let fetched = parts.fetcher.post_form(guard, &request).await;
        let refused = |refusal| self.refused(metadata, refusal);
        match self.exchange.kind {
            ExchangeKind::IdJag => {
                read_id_jag(&fetched.reply()).map(Answer::Assertion).map_err(refused)
            }
            ExchangeKind::Token => {
                let asked = Asked { grant: TokenGrant::Assertion, scopes, now };
                let tokens = read_exchanged(&fetched.reply(), asked).map_err(refused)?;
                let (metadata, client_id) = (metadata.clone(), client.id.clone());
                Ok(Answer::Token(Box::new(Given { tokens, metadata, client_id })))
            }
        }
    }

    /// Redeems an assertion at the authorization server of the server.
    async fn redeem(&self, plan: &Plan, assertion: &Secret) -> Result<Box<Given>, SignInError> {
        let parts = &self.holding.parts;
        let now = parts.now();
        let Plan { metadata, resource, scopes } = plan;
        let client = self.client(metadata)?;
        let resource = resource.as_deref();
        let endpoint = TokenEndpoint { metadata, client: &client, resource, now };
        let fault = |fault| SignInError::Request { server: self.entry.alias.clone(), fault };
        let request = endpoint.assertion(assertion, scopes).map_err(fault)?;
        let fetched = parts.fetcher.post_form(self.guard, &request).await;
        let asked = Asked { grant: TokenGrant::Assertion, scopes, now };
        let tokens = Tokens::read(&fetched.reply(), asked);
        let tokens = tokens.map_err(|refusal| self.refused(metadata, refusal))?;
        Ok(Box::new(Given { tokens, metadata: metadata.clone(), client_id: client.id }))
    }

    /// The client at the authorization server, which an operator has registered.
    fn client(&self, metadata: &ServerMetadata) -> Result<ClientIdentity, SignInError> {
        let client = self.exchange.settings.client.clone();
        let client = client.ok_or_else(|| SignInError::NoClient {
            server: self.entry.alias.clone(),
            issuer: metadata.issuer.clone(),
        })?;
        Ok(client.listed(metadata.token_endpoint_auth_methods_supported.as_deref()))
    }

    fn refused(&self, metadata: &ServerMetadata, refusal: Refusal) -> SignInError {
        let endpoint = metadata.token_endpoint.as_ref().map(shown_url).unwrap_or_default();
        SignInError::Token { server: self.entry.alias.clone(), endpoint, refusal }
    }

    /// Carries out the consequences of a failure (C25): the token of a person whom a server takes
    /// no more is dropped. Others serve until their end.
    async fn failed(&self, held: Option<&Held>, error: &SignInError) {
        let holding = self.holding;
        tracing::warn!(
            server.name = %self.entry.alias,
            %error,
            "the tokens of a server cannot be had by an exchange"
        );
        let drops = match error {
            SignInError::NoIdentity { .. } | SignInError::IdentityEnded { .. } => true,
            error => is_ended(error) || (self.entry.falls_back() && is_for_good(error)),
        };
        let facts = held.map(|held| held.facts.clone()).unwrap_or_default();
        note(holding, held, &facts, error).await;
        let Some(held) = held.filter(|_| drops) else { return };
        let (store, key) = (&holding.parts.options.store, holding.key.clone());
        match store.drop_grant(key, Some(held.generation)).await {
            Ok(_) => holding.forget_generation(held.generation),
            Err(fault) => {
                tracing::warn!(server.name = %self.entry.alias, %fault, "an ended token stays");
            }
        }
    }
}

/// The result of an exchange at the provider.
enum Answer {
    /// An assertion for the authorization server of the server.
    Assertion(Secret),
    /// The token of the server.
    Token(Box<Given>),
}

/// An issuer as it may be shown.
fn shown(issuer: &str) -> String {
    Url::parse(issuer).ok().as_ref().map(shown_url).unwrap_or_default()
}

/// True if no later exchange is going to succeed before a person or an operator acts.
fn is_for_good(error: &SignInError) -> bool {
    match error {
        SignInError::NoIdentity { .. } | SignInError::IdentityEnded { .. } => true,
        SignInError::Token { refusal, .. } => {
            refusal.failure == Failure::GrantEnded || DENIALS.contains(&refusal.code.as_str())
        }
        _ => false,
    }
}

/// True if a server says that the identity, or the assertion, has ended.
fn is_ended(error: &SignInError) -> bool {
    matches!(error, SignInError::Token { refusal, .. } if refusal.failure == Failure::GrantEnded)
}
