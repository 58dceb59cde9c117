//! Sessions that are to resume by themselves, as far as this process knows of them.

use std::{
    collections::{BTreeSet, HashMap},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use narthex_model::{RunId, SessionId};
use narthex_store::SessionRow;
use tokio::sync::{Semaphore, watch};

/// Number of runs that begin at a time: each starts servers.
const AT_ONCE: usize = 8;

/// Sessions that are to resume.
#[derive(Debug)]
pub(crate) struct Resting {
    /// Changes whenever there may be a session to resume.
    pub(crate) called: watch::Sender<()>,
    pub(crate) places: Arc<Semaphore>,
    pub(crate) ends: GivenEnds,
}

/// The ended children that each run knows of, in this process alone. If a run learned of an end at
/// another daemon, its session resumes once more than necessary.
#[derive(Debug, Default)]
pub(crate) struct GivenEnds(Mutex<HashMap<RunId, BTreeSet<SessionId>>>);

impl GivenEnds {
    /// Notes that a run got the status of a session.
    pub(crate) fn tell(&self, run: RunId, child: &SessionRow) {
        if child.ended_at.is_some() {
            self.note(run, child.id);
        }
    }

    /// Notes that a run knows of the end of a session.
    pub(crate) fn note(&self, run: RunId, child: SessionId) {
        self.runs().entry(run).or_default().insert(child);
    }

    /// The children that a run knows to have ended.
    pub(crate) fn given(&self, run: RunId) -> Vec<SessionId> {
        self.runs().get(&run).into_iter().flatten().copied().collect()
    }

    /// Forgets a run that has ended.
    pub(crate) fn forget(&self, run: RunId) {
        self.runs().remove(&run);
    }

    fn runs(&self) -> MutexGuard<'_, HashMap<RunId, BTreeSet<SessionId>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for Resting {
    fn default() -> Self {
        let (called, places) = (watch::Sender::new(()), Arc::new(Semaphore::new(AT_ONCE)));
        Self { called, places, ends: GivenEnds::default() }
    }
}

impl Resting {
    /// Wakes the task that searches for sessions to resume.
    pub(crate) fn call(&self) {
        self.called.send_replace(());
    }
}
