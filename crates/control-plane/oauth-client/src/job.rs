//! The tasks of a credential: one runs at a time, and all who need its result wait for it.

use std::sync::Arc;

use narthex_oauth::{challenge::Bearer, client::DiscoveryError};
use narthex_upstream::CredentialFault;

use crate::{
    SignInError,
    consent::{self, Consent},
    entry::Mode,
    exchange,
    holding::{Holding, fault_of},
    loading, machine, renewal,
    work::{Outcome, Started, WorkKind},
};

/// A task of a credential.
#[derive(Debug)]
pub(crate) enum Job {
    /// Reads the store.
    Load,
    /// Renews the tokens.
    Renew,
    /// Requests a token of the client itself, with the challenge of a refusal.
    Request(Option<Bearer>),
    /// Opens an address at which a person signs in.
    Consent(Consent),
}

/// Starts a task on the shared runtime, or gives the one that runs.
pub(crate) fn start(holding: &Arc<Holding>, job: Job) -> Started {
    let me = Arc::clone(holding);
    match job {
        Job::Load => {
            holding.start(WorkKind::Load, Box::pin(async move { loading::load(&me).await }))
        }
        Job::Renew => {
            let task = async move {
                let done = renew(&me).await;
                noted(&me, done)
            };
            holding.start(WorkKind::Renew, Box::pin(task))
        }
        Job::Request(challenge) => {
            let task = async move { noted(&me, request(&me, challenge).await) };
            holding.start(WorkKind::Request, Box::pin(task))
        }
        Job::Consent(wish) => {
            let task = async move { noted(&me, consent::open(&me, wish).await) };
            holding.start(WorkKind::Consent, Box::pin(task))
        }
    }
}

/// Renews the tokens in the way in which they were got. Where a sign-in follows an exchange, the
/// exchange comes first again once the sign-in has ended.
async fn renew(holding: &Holding) -> Outcome {
    if is_repeatable(holding) {
        return request(holding, None).await;
    }
    renewal::renew(holding).await?;
    let now = holding.now();
    let is_gone =
        holding.with_state(|state| state.usable(now).is_none() && !state.has_fallen_back(now));
    match is_gone && holding.entry().falls_back() {
        true => request(holding, None).await,
        false => Ok(()),
    }
}

/// Requests a token for which no person is asked.
async fn request(holding: &Holding, challenge: Option<Bearer>) -> Outcome {
    match &holding.entry().mode {
        Mode::Machine(_) => machine::request(holding, challenge).await,
        Mode::Exchange(_) => exchange::request(holding, challenge).await,
        Mode::Person(_) | Mode::Faulty(_) => Ok(()),
    }
}

/// Carries out a task, and waits for its end. The failure of another task that ran is not the
/// caller's: the caller looks at the state again.
///
/// # Errors
/// When the task has failed.
pub(crate) async fn run(holding: &Arc<Holding>, job: Job) -> Result<(), CredentialFault> {
    let started = start(holding, job);
    let is_same = started.is_same;
    match started.wait().await {
        Err(error) if is_same => Err(fault(holding, &error)),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Reads the store again, as a row may have changed.
///
/// A grant whose row is gone is forgotten at once, whatever task runs (C29). Other changes are read
/// after that task: it may have read an older row.
pub(crate) async fn read_again(holding: Arc<Holding>) {
    let store = &holding.parts.options.store;
    let held = holding.with_state(|state| state.held.as_ref().map(|held| held.generation));
    if let Some(generation) = held
        && let Ok(None) = store.grant(holding.key.clone()).await
    {
        holding.forget_generation(generation);
    }
    loop {
        let started = start(&holding, Job::Load);
        let is_own = started.is_own;
        let ended = started.wait().await;
        if is_own || holding.parts.stop.is_cancelled() {
            if let Err(error) = ended {
                tracing::debug!(%error, "a changed sign-in could not be read");
            }
            return;
        }
    }
}

/// The reason for which requests cannot be sent. A refusal by a server whose entry names no
/// sign-in, and which leads to none, stays that refusal.
pub(crate) fn fault(holding: &Holding, error: &SignInError) -> CredentialFault {
    let is_unstated = match &holding.entry().mode {
        Mode::Person(person) => person.is_unstated,
        Mode::Machine(_) | Mode::Exchange(_) | Mode::Faulty(_) => false,
    };
    let leads_nowhere =
        matches!(error, SignInError::Discovery(DiscoveryError::NoResourceMetadata { .. }));
    match is_unstated && leads_nowhere {
        true => CredentialFault::Rejected { status: 401 },
        false => fault_of(error),
    }
}

fn noted(holding: &Holding, outcome: Outcome) -> Outcome {
    if let Err(error) = &outcome {
        holding.note_trouble(error, &fault(holding, error));
    }
    outcome
}

/// True if tokens are renewed by the request that gave them.
fn is_repeatable(holding: &Holding) -> bool {
    holding.with_state(|state| {
        let held = state.held.as_ref();
        held.is_some_and(|held| held.value.grant.origin.is_repeatable())
    })
}
