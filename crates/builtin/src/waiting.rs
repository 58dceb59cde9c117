//! Calls that wait for something to be said in their session: one of each run, and so many of a
//! workspace.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use narthex_model::{RunId, SessionId, WorkspaceId};
use tokio::sync::Notify;

/// How many calls of one workspace wait at a time.
const WAITING_MAX: usize = 500;

/// Of which session, and which run of it.
type Whose = (SessionId, RunId);
type Waiters = HashMap<WorkspaceId, HashMap<Whose, Arc<Notify>>>;

/// The calls that wait.
#[derive(Debug, Default)]
pub(crate) struct Waiting(Mutex<Waiters>);

/// The place of one of them, until it is dropped.
#[derive(Debug)]
pub(crate) struct Place<'w> {
    waiting: &'w Waiting,
    workspace: WorkspaceId,
    whose: Whose,
    newer: Arc<Notify>,
}

impl Waiting {
    /// Has a call of a run wait in its session, and the one of it that waited before no longer: two
    /// runs of a session would chase each other. `None` where as many of the workspace wait as may.
    pub(crate) fn begin(&self, workspace: &WorkspaceId, whose: Whose) -> Option<Place<'_>> {
        let mut waiters = self.lock();
        let of = waiters.entry(workspace.clone()).or_default();
        if of.len() >= WAITING_MAX && !of.contains_key(&whose) {
            return None;
        }
        let newer = Arc::new(Notify::new());
        if let Some(older) = of.insert(whose, newer.clone()) {
            older.notify_one();
        }
        Some(Place { waiting: self, workspace: workspace.clone(), whose, newer })
    }

    fn lock(&self) -> MutexGuard<'_, Waiters> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place<'_> {
    /// In which session it is.
    pub(crate) fn session(&self) -> SessionId {
        self.whose.0
    }

    /// Waits until another call of the run waits.
    pub(crate) async fn taken(&self) {
        self.newer.notified().await;
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut waiters = self.waiting.lock();
        let Some(of) = waiters.get_mut(&self.workspace) else { return };
        if of.get(&self.whose).is_some_and(|one| Arc::ptr_eq(one, &self.newer)) {
            of.remove(&self.whose);
        }
        if of.is_empty() {
            waiters.remove(&self.workspace);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(number: usize) -> Whose {
        let bytes = number.to_be_bytes();
        (SessionId::new([0, 0, 0, 0, bytes[6], bytes[7]]), RunId::new([1; 6]))
    }

    /// Two runs of a session do not have each other wait no longer.
    #[test]
    fn x_e93_calls_of_several_runs_wait() {
        let (waiting, here) = (Waiting::default(), WorkspaceId::default());
        let one = waiting.begin(&here, session(0)).unwrap();
        let other = waiting.begin(&here, (session(0).0, RunId::new([2; 6]))).unwrap();
        assert_eq!(one.session(), other.session());
        assert_eq!(waiting.lock()[&here].len(), 2, "both wait");
        drop((one, other));
        assert!(waiting.lock().is_empty());
    }

    /// X-E93: of a run the newest call waits; one workspace takes no room of another.
    #[tokio::test]
    async fn x_e93_one_call_of_a_run_waits() {
        let (waiting, here) = (Waiting::default(), WorkspaceId::default());
        let older = waiting.begin(&here, session(0)).unwrap();
        let newer = waiting.begin(&here, session(0)).unwrap();
        older.taken().await;
        drop(older);
        assert_eq!(waiting.lock()[&here].len(), 1, "the newer one waits still");
        let others: Vec<_> =
            (1..WAITING_MAX).map(|number| waiting.begin(&here, session(number)).unwrap()).collect();
        assert!(waiting.begin(&here, session(WAITING_MAX)).is_none());
        let again = waiting.begin(&here, session(0)).expect("it takes the place of its own");
        newer.taken().await;
        let team = WorkspaceId::new("team").unwrap();
        let elsewhere = waiting.begin(&team, session(0)).unwrap();
        drop((others, again, newer, elsewhere));
        assert!(waiting.lock().is_empty(), "who does not wait is not remembered");
    }
}
