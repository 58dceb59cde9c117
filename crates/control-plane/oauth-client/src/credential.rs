//! The credential that the links to one server ask.

use std::{sync::Arc, time::Duration};

use http::HeaderValue;
use narthex_oauth::{challenge::Bearer, client::Reaction, scopes::Scopes};
use narthex_upstream::{AtHand, CredentialFault, Credentials, Obtaining, RefusedRequest};

use crate::{
    consent::Consent,
    entry::Mode,
    grant_row::Held,
    holding::{Holding, fault_of},
    job::{self, Job},
    state::{Kind, Need, consent_at},
};

/// Number of tasks that one request waits for.
const ROUNDS: usize = 8;

/// The result for one request.
type Value = Result<Option<HeaderValue>, CredentialFault>;

/// The credential of all links to one server for one holder.
#[derive(Debug)]
pub(crate) struct ServerCredential {
    pub(crate) holding: Arc<Holding>,
}

impl Credentials for ServerCredential {
    fn at_hand(&self) -> AtHand {
        match need(&self.holding) {
            Need::Send { header, is_due } => {
                renew_if(&self.holding, is_due);
                AtHand::Ready(header)
            }
            Need::Fault(_) | Need::Settings | Need::Load | Need::Renew | Need::Request => {
                AtHand::Ask
            }
        }
    }

    fn obtain(&self) -> Obtaining<'_> {
        Box::pin(settled(&self.holding))
    }

    fn refused(&self, refusal: RefusedRequest) -> Obtaining<'_> {
        Box::pin(after(&self.holding, refusal))
    }
}

fn need(holding: &Holding) -> Need {
    let (kind, now) = (holding.kind(), holding.now());
    let need = holding.with_state(|state| state.need(kind, now));
    if !holding.key.needs_own_browser() || kind != Kind::Person {
        return need;
    }
    match need {
        // The entry says that each human signs in: a request without a token is no human's.
        Need::Send { header: None, .. } => Need::Fault(own_consent(holding, &Scopes::default())),
        // An open attempt can be finished in one browser only.
        Need::Fault(CredentialFault::NeedsConsent { .. }) => {
            Need::Fault(own_consent(holding, &Scopes::default()))
        }
        other => other,
    }
}

/// The fault of a server to which the human of the grant must sign in, in their own browser.
fn own_consent(holding: &Holding, scopes: &Scopes) -> CredentialFault {
    let alias = &holding.entry().alias;
    let what = match scopes.is_empty() {
        true => "must connect their account to it".to_owned(),
        false => format!("must allow further scopes ({scopes}) at it"),
    };
    let page = holding.parts.options.hooks.page_of(&holding.key);
    let place = match &page {
        Some(page) => format!("open {page} in their browser"),
        None => "open the page of their connections in their browser".to_owned(),
    };
    CredentialFault::NeedsConsent {
        why: format!("`{alias}`: the human who drives the run {what}: {place}"),
        address: page.map(String::from),
        scopes: scopes.iter().map(str::to_owned).collect(),
    }
}

/// Renews in the background.
fn renew_if(holding: &Arc<Holding>, is_due: bool) {
    if is_due {
        drop(job::start(holding, Job::Renew));
    }
}

/// The value for the next request, after the tasks that it needs.
async fn settled(holding: &Arc<Holding>) -> Value {
    for _ in 0..ROUNDS {
        let job = match need(holding) {
            Need::Send { header, is_due } => {
                renew_if(holding, is_due);
                return Ok(header);
            }
            Need::Fault(fault) => return Err(fault),
            Need::Settings => return Err(settings_fault(holding)),
            Need::Load => Job::Load,
            Need::Renew => Job::Renew,
            Need::Request => Job::Request(None),
        };
        let before = generation(holding);
        let gives_token = !matches!(job, Job::Load);
        if let Err(fault) = job::run(holding, job).await {
            let is_own = holding.kind() == Kind::Person
                && holding.key.needs_own_browser()
                && fault.needs_consent();
            return Err(if is_own { own_consent(holding, &Scopes::default()) } else { fault });
        }
        if gives_token && let Some(header) = given_since(holding, before) {
            return Ok(Some(header));
        }
    }
    Err(busy())
}

/// The number of the grant.
fn generation(holding: &Holding) -> Option<u64> {
    holding.with_state(|state| state.held.as_ref().map(|held| held.generation))
}

/// The value of a token that was given since, which serves once even if its life is said to be
/// over (Q15).
fn given_since(holding: &Holding, before: Option<u64>) -> Option<HeaderValue> {
    holding.with_state(|state| {
        let is_new = |held: &&Arc<Held>| {
            before != Some(held.generation) && state.refused != Some(held.generation)
        };
        state.held.as_ref().filter(is_new).map(|held| held.header.clone())
    })
}

fn settings_fault(holding: &Holding) -> CredentialFault {
    match &holding.entry().mode {
        Mode::Faulty(error) => fault_of(error),
        // The settings have changed since.
        Mode::Person(_) | Mode::Machine(_) | Mode::Exchange(_) => busy(),
    }
}

fn busy() -> CredentialFault {
    let why = "the tokens of the server change too often; try again".to_owned();
    CredentialFault::Unavailable { why, retry_after: Some(Duration::from_secs(1)) }
}

/// The value with which a refused request is sent once more.
async fn after(holding: &Arc<Holding>, refusal: RefusedRequest) -> Value {
    let kind = holding.kind();
    if kind == Kind::Faulty {
        return Err(settings_fault(holding));
    }
    // Another process may have stored a grant since.
    if holding.with_state(|state| state.read_at < Some(holding.now())) {
        job::run(holding, Job::Load).await?;
    }
    if let Some(newer) = newer(holding, &refusal) {
        return Ok(Some(newer));
    }
    let bearer = Bearer::find(refusal.challenges.iter().map(String::as_str));
    match &bearer {
        Some(bearer) if bearer.is_insufficient_scope() => {
            more_scopes(holding, &refusal, bearer).await
        }
        // Some servers refuse requests without a token in this way.
        Some(_) if refusal.status == 403 && refusal.sent.is_none() => {
            unauthorized(holding, &refusal, bearer).await
        }
        _ if refusal.status == 403 => Err(rejected(&refusal)),
        _ => unauthorized(holding, &refusal, bearer).await,
    }
}

/// The value of a token that was given since the request was sent.
fn newer(holding: &Holding, refusal: &RefusedRequest) -> Option<HeaderValue> {
    let now = holding.now();
    let current = holding.with_state(|state| state.usable(now).map(|held| held.header.clone()));
    current.filter(|current| refusal.sent.as_ref() != Some(current))
}

fn rejected(refusal: &RefusedRequest) -> CredentialFault {
    CredentialFault::Rejected { status: refusal.status }
}

/// A refusal of the token, or of a request without one.
async fn unauthorized(
    holding: &Arc<Holding>,
    refusal: &RefusedRequest,
    bearer: Option<Bearer>,
) -> Value {
    let (kind, held) = (holding.kind(), holding.state().held.clone());
    // A token that came since is another one.
    if let Some(held) = held.as_ref().filter(|held| refusal.sent.as_ref() == Some(&held.header)) {
        let generation = held.generation;
        holding.update(|state| state.refused = Some(generation));
    }
    match kind {
        Kind::EagerMachine | Kind::LazyMachine if refusal.is_repeated => Err(rejected(refusal)),
        Kind::EagerMachine | Kind::LazyMachine => {
            if let Some(fault) = troubled(holding) {
                return Err(fault);
            }
            job::run(holding, Job::Request(bearer.clone())).await?;
            match holding.kind() {
                // The exchange was refused for good, and the entry has a sign-in in its place.
                Kind::Person => {
                    sign_in(holding, refusal, Ask { bearer, scopes: Scopes::default() }).await
                }
                Kind::EagerMachine | Kind::LazyMachine | Kind::Faulty => settled(holding).await,
            }
        }
        Kind::Person | Kind::Faulty => {
            let react =
                |held: &Held| held.value.grant.after_refusal(bearer.as_ref(), refusal.is_repeated);
            match held.as_deref().map_or(Reaction::SignIn, react) {
                Reaction::Renew => renewed(holding, refusal, bearer).await,
                Reaction::SignIn | Reaction::AskForScopes(_) => {
                    sign_in(holding, refusal, Ask { bearer, scopes: Scopes::default() }).await
                }
            }
        }
    }
}

/// The value of a renewed token, or the reason why there is none.
async fn renewed(
    holding: &Arc<Holding>,
    refusal: &RefusedRequest,
    bearer: Option<Bearer>,
) -> Value {
    if let Some(fault) = troubled(holding) {
        return Err(fault);
    }
    let before = generation(holding);
    job::run(holding, Job::Renew).await?;
    if let Some(header) = given_since(holding, before) {
        return Ok(Some(header));
    }
    match settled(holding).await? {
        Some(header) => Ok(Some(header)),
        // The grant was dropped elsewhere.
        None => sign_in(holding, refusal, Ask { bearer, scopes: Scopes::default() }).await,
    }
}

/// A refusal for want of scopes (C22).
async fn more_scopes(holding: &Arc<Holding>, refusal: &RefusedRequest, bearer: &Bearer) -> Value {
    let state = holding.state();
    let challenged = bearer.scope.clone().unwrap_or_default();
    let ask = |scopes| Ask { bearer: Some(bearer.clone()), scopes };
    let held = match (&state.held, holding.kind()) {
        (Some(held), Kind::Person) => held,
        (None, Kind::Person) => return sign_in(holding, refusal, ask(challenged)).await,
        (Some(held), Kind::EagerMachine | Kind::LazyMachine) if holding.is_exchanged() => {
            return exchanged_again(holding, refusal, held, &challenged).await;
        }
        (_, Kind::EagerMachine | Kind::LazyMachine | Kind::Faulty) => {
            return Err(rejected(refusal));
        }
    };
    let requested = &held.value.grant.requested;
    if let Some(attempt) = state.open_attempt(holding.now())
        && attempt.scopes.contains_all(&requested.union(&challenged))
    {
        return Err(consent_at(attempt, &challenged));
    }
    match holding.step_up(&refusal.operation, requested, &challenged) {
        Some(scopes) => sign_in(holding, refusal, ask(scopes)).await,
        None => Err(rejected(refusal)),
    }
}

/// The value of a token with more scopes, by another exchange: no person is asked. A refused
/// exchange leaves the token as it is.
async fn exchanged_again(
    holding: &Arc<Holding>,
    refusal: &RefusedRequest,
    held: &Held,
    challenged: &Scopes,
) -> Value {
    if let Some(newer) = newer(holding, refusal) {
        return Ok(Some(newer));
    }
    let requested = &held.value.grant.requested;
    let Some(scopes) = holding.step_up(&refusal.operation, requested, challenged) else {
        return Err(rejected(refusal));
    };
    let before = generation(holding);
    holding.update(|state| state.wanted = state.wanted.union(&scopes));
    let done = job::run(holding, Job::Request(None)).await;
    holding.update(|state| state.wanted = Scopes::default());
    let given = given_since(holding, before).filter(|_| done.is_ok());
    given.map(Some).ok_or_else(|| rejected(refusal))
}

/// The wish for a person's consent.
struct Ask {
    bearer: Option<Bearer>,
    scopes: Scopes,
}

/// Opens an address at which a person signs in, unless one is open that asks for these scopes.
async fn sign_in(holding: &Arc<Holding>, refusal: &RefusedRequest, ask: Ask) -> Value {
    let none = Scopes::default();
    let shown = if refusal.status == 403 { &ask.scopes } else { &none };
    if matches!(holding.kind(), Kind::EagerMachine | Kind::LazyMachine) {
        // The tokens of a sign-in are gone, and the exchange comes first.
        job::run(holding, Job::Request(ask.bearer.clone())).await?;
    }
    if holding.key.needs_own_browser() {
        if let Some(newer) = newer(holding, refusal) {
            return Ok(Some(newer));
        }
        holding.update(|state| state.wanted = state.wanted.union(&ask.scopes));
        return Err(own_consent(holding, shown));
    }
    for _ in 0..ROUNDS {
        if let Some(newer) = newer(holding, refusal) {
            return Ok(Some(newer));
        }
        let state = holding.state();
        if let Some(attempt) = state.open_attempt(holding.now())
            && attempt.scopes.contains_all(&ask.scopes)
        {
            return Err(consent_at(attempt, shown));
        }
        if let Some(fault) = troubled(holding) {
            return Err(fault);
        }
        let wish = Consent {
            challenge: ask.bearer.clone(),
            further: ask.scopes.clone(),
            ..Consent::default()
        };
        job::run(holding, Job::Consent(wish)).await?;
    }
    Err(busy())
}

/// The latest failure, if it is too early for another try.
fn troubled(holding: &Holding) -> Option<CredentialFault> {
    let now = holding.now();
    holding.with_state(|state| state.active_trouble(now).map(|trouble| trouble.fault_at(now)))
}
