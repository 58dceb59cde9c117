//! The end of a sign-in by a person: from the browser's answer to stored tokens.

use narthex_model::Secret;
use narthex_oauth::{
    client::{
        Asked, AuthorizationError, Binding, Callback, Failure, Grant, Refusal, TokenEndpoint,
        TokenGrant, Tokens, redirect_uri, shown_url,
    },
    scopes::Scopes,
};

use url::Url;

use crate::{
    SignInError,
    attempt_row::OpenedAttempt,
    consent::Start,
    entry::place,
    grant_row::GrantValue,
    guard::Guard,
    holding::Parts,
    options::RedirectBases,
    state::OpenAttempt,
    store::{ClientKey, GrantFacts, GrantKey, GrantRow},
};

/// The answer that a browser brings from an authorization server.
#[derive(Clone, Copy)]
pub struct BrowserAnswer<'a> {
    /// The query of the redirect.
    pub query: &'a str,
    /// The name of the server in the path of the redirect, decoded; `None` at the common address.
    pub server: Option<&'a str>,
    /// The hash of the login session of the browser; `None` if there is none.
    pub session: Option<&'a str>,
}

/// A finished sign-in.
#[derive(Debug, Clone)]
pub struct Finished {
    /// The key of the grant.
    pub key: GrantKey,
    /// The name of the server's row.
    pub alias: String,
    /// The facts of the grant.
    pub facts: GrantFacts,
}

/// A sign-in that a browser's answer did not finish.
#[derive(Debug)]
pub struct Unfinished {
    /// The reason.
    pub error: SignInError,
    /// The key of the grant that the attempt was for; `None` if the answer belongs to no open
    /// attempt.
    pub key: Option<Box<GrantKey>>,
    /// True if the attempt is one of this browser, which may learn of it.
    pub is_proved: bool,
}

impl From<SignInError> for Unfinished {
    fn from(error: SignInError) -> Self {
        Self { error, key: None, is_proved: false }
    }
}

/// The result of a browser's answer.
#[derive(Debug)]
pub(crate) struct End {
    /// The hash of the answer's state.
    pub(crate) state_hash: String,
    /// True if the answer came to the address of its attempt, in the browser of its login session.
    pub(crate) is_proved: bool,
    pub(crate) key: GrantKey,
    pub(crate) alias: String,
    /// The address of the MCP server.
    pub(crate) server: Url,
    pub(crate) outcome: Result<GrantRow, Failed>,
}

/// A failed sign-in.
#[derive(Debug)]
pub(crate) struct Failed {
    pub(crate) error: SignInError,
    /// The attempt that follows, if the same person should be sent on at once.
    pub(crate) next: Option<Box<OpenAttempt>>,
}

impl Failed {
    fn of(error: impl Into<SignInError>) -> Self {
        Self { error: error.into(), next: None }
    }
}

/// Finishes the attempt that an answer belongs to. `is_current` tells if the grant is still one for
/// this address.
///
/// # Errors
/// When the answer belongs to no open attempt.
pub(crate) async fn finish(
    parts: &Parts,
    answer: BrowserAnswer<'_>,
    is_current: impl Fn(&GrantKey, &Url) -> bool,
) -> Result<End, SignInError> {
    let BrowserAnswer { query, server: name, session: browser } = answer;
    let callback = Callback::read(query)?;
    let none = || SignInError::NoAttempt {
        server: name
            .map(str::to_owned)
            .or_else(|| callback.place())
            .filter(|name| is_shown(name))
            .unwrap_or_else(|| "NAME".into()),
    };
    let state_hash = callback.state_hash().ok_or_else(none)?;
    let row = parts.options.store.take_attempt(state_hash.clone()).await?;
    let opened = row.and_then(|row| OpenedAttempt::from_stored(&row.value)).ok_or_else(none)?;
    let is_here = is_at(&parts.options.redirect_base, &opened.client.redirect_uri, name)
        && is_current(&opened.key, &opened.server);
    let session = opened.attempt.binding().session.as_deref();
    let is_proved = is_here && (session.is_none() || session == browser);
    let outcome = match redeem(parts, &opened, &callback, browser) {
        _ if !is_here => Err(Failed::of(none())),
        Ok(code) => exchange(parts, &opened, &code).await,
        Err(error) if error.asks_for_other_scopes() => {
            Err(ask_again(parts, &opened, error.into()).await)
        }
        Err(error) => Err(Failed::of(error)),
    };
    let OpenedAttempt { key, alias, server, .. } = opened;
    Ok(End { state_hash, is_proved, key, alias, server, outcome })
}

/// True if an answer came to the redirect URI of its attempt. Elsewhere it is the answer of another
/// authorization server (RFC 9700, 4.4.2.2). Answers at an address of the settings are passed on by
/// the operator's own means.
fn is_at(bases: &RedirectBases, of_attempt: &str, server: Option<&str>) -> bool {
    let is_below = |base: &Url| {
        let common = redirect_uri(base, None);
        let rest = of_attempt.strip_prefix(common.as_str());
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let is_it = |base: &Url| redirect_uri(base, server).as_str() == of_attempt;
    !bases.all().any(is_below) || bases.all().any(is_it)
}

/// True for a name that can be part of a command.
fn is_shown(name: &str) -> bool {
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || b"-_".contains(&b);
    !name.is_empty() && name.len() <= 64 && name.bytes().all(is_plain)
}

fn redeem(
    parts: &Parts,
    opened: &OpenedAttempt,
    callback: &Callback,
    browser: Option<&str>,
) -> Result<Secret, AuthorizationError> {
    let binding = opened.attempt.binding();
    // An attempt that was started without a login may be finished in any browser.
    let session = binding.session.as_ref().and(browser);
    let binding = Binding { session: session.map(str::to_owned), ..binding.clone() };
    opened.attempt.redeem(callback, &binding, parts.now()).cloned()
}

/// Exchanges the code for tokens, and stores them.
async fn exchange(
    parts: &Parts,
    opened: &OpenedAttempt,
    code: &Secret,
) -> Result<GrantRow, Failed> {
    let OpenedAttempt { attempt, key, alias, server, chosen, client } = opened;
    let now = parts.now();
    let endpoint = TokenEndpoint {
        metadata: attempt.metadata(),
        client: &client.identity,
        resource: attempt.resource(),
        now,
    };
    let request = endpoint.code(attempt, code);
    let bad = |fault| Failed::of(SignInError::Request { server: alias.clone(), fault });
    let request = request.map_err(bad)?;
    let guard = Guard::of(server, chosen).await;
    let fetched = parts.fetcher.post_form(&guard, &request).await;
    let asked = Asked { grant: TokenGrant::Code, scopes: attempt.scopes(), now };
    let tokens = match Tokens::read(&fetched.reply(), asked) {
        Ok(tokens) => tokens,
        Err(refusal) => return Err(refused(parts, opened, refusal).await),
    };
    let value = GrantValue {
        grant: Grant {
            issuer: attempt.metadata().issuer.clone(),
            client_id: client.identity.id.clone(),
            resource: attempt.resource().map(str::to_owned),
            requested: attempt.scopes().clone(),
            origin: TokenGrant::Code,
            tokens,
            generation: 0,
            key: None,
        },
        server: place(server),
        metadata: Some(attempt.metadata().clone()),
        client: Some(client.clone()),
    };
    let facts = value.facts(Some(now));
    let stored = parts.options.store.put_grant(key.clone(), value.to_stored(), facts).await;
    stored.map_err(Failed::of)
}

/// The failure of a token request, with its consequences for the client.
async fn refused(parts: &Parts, opened: &OpenedAttempt, refusal: Refusal) -> Failed {
    let OpenedAttempt { attempt, key, alias, client, .. } = opened;
    let is_scope = refusal.failure == Failure::ScopeRefused;
    if refusal.failure.consequence(client.is_registered()).drops_client {
        let key = ClientKey {
            workspace: key.workspace.clone(),
            issuer: attempt.metadata().issuer.clone(),
            redirect_base: client.redirect_uri.clone(),
        };
        if let Err(fault) = parts.options.store.drop_client(key).await {
            return Failed::of(fault);
        }
    }
    let endpoint = attempt.metadata().token_endpoint.as_ref().map(shown_url).unwrap_or_default();
    let error = SignInError::Token { server: alias.clone(), endpoint, refusal };
    match is_scope && !attempt.scopes().is_empty() {
        true => ask_again(parts, opened, error).await,
        false => Failed::of(error),
    }
}

/// Starts the same authorization with an empty set of scopes (Q19).
async fn ask_again(parts: &Parts, opened: &OpenedAttempt, error: SignInError) -> Failed {
    let OpenedAttempt { attempt, key, alias, server, chosen, client } = opened;
    let start = Start {
        key,
        alias,
        server,
        chosen: chosen.clone(),
        metadata: attempt.metadata(),
        client: client.clone(),
        resource: attempt.resource(),
        scopes: &Scopes::default(),
        session: attempt.binding().session.clone(),
    };
    match start.run(parts).await {
        Ok(next) => {
            tracing::warn!(server.name = %alias, %error, "the next sign-in asks for no scope");
            let (requested, url) = (attempt.scopes().to_string(), Box::new(next.url.clone()));
            let error = SignInError::OtherScopes { requested, url };
            Failed { error, next: Some(Box::new(next)) }
        }
        Err(error) => Failed::of(error),
    }
}
