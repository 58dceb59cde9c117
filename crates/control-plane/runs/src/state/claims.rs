//! The claimed and the stored runs that are active here.

use std::{
    collections::{HashMap, HashSet},
    sync::{Mutex, MutexGuard, PoisonError},
};

use narthex_model::RunId;

/// The active claimed runs of this daemon: a claim at another daemon may have replaced the token
/// that opens each of them here.
#[derive(Debug, Default)]
pub(crate) struct Claims {
    tokens: Mutex<HashMap<RunId, String>>,
}

impl Claims {
    /// Notes the token that opens a run here.
    pub(crate) fn note(&self, run: RunId, token: &str) {
        self.tokens().insert(run, token.to_owned());
    }

    /// The token of each run.
    pub(crate) fn tokens(&self) -> MutexGuard<'_, HashMap<RunId, String>> {
        self.tokens.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The active runs here that are in the store, from the time when they are in it.
#[derive(Debug, Default)]
pub(crate) struct StoredRuns(Mutex<HashSet<RunId>>);

impl StoredRuns {
    /// Notes a stored run that is active here.
    pub(crate) fn note(&self, run: RunId) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(run);
    }

    /// Notes that a run is not active here any more.
    pub(crate) fn forget(&self, run: RunId) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&run);
    }

    /// All of these runs.
    pub(crate) fn all(&self) -> Vec<RunId> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().copied().collect()
    }
}
