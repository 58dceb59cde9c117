//! Calls that wait for a message to their session. One call of each run may wait, and a limited
//! number in each workspace.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use narthex_model::{RunId, SessionId, WorkspaceId};
use tokio::sync::Notify;

/// Maximum number of waiting calls in one workspace.
const WAITING_MAX: usize = 500;

/// The session and the run of a call.
type Whose = (SessionId, RunId);
type Waiters = HashMap<WorkspaceId, HashMap<Whose, Arc<Notify>>>;

/// The waiting calls.
#[derive(Debug, Default)]
pub(crate) struct Waiting(Mutex<Waiters>);

/// The place of one waiting call. Dropping it ends the wait.
#[derive(Debug)]
pub(crate) struct Place<'w> {
    waiting: &'w Waiting,
    workspace: WorkspaceId,
    whose: Whose,
    newer: Arc<Notify>,
}

impl Waiting {
    /// Registers a waiting call of a run in its session, and ends the run's earlier wait. If a
    /// session has two runs, both may wait: otherwise they would end each other's waits in turn.
    /// `None` if the workspace has reached its limit.
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
    /// The session of the call.
    pub(crate) fn session(&self) -> SessionId {
        self.whose.0
    }

    /// Waits until a newer call of the same run waits.
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

    /// Two runs of a session do not end each other's waits.
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

    /// X-E93: the newest call of a run waits; workspaces have separate limits.
    #[tokio::test]
    async fn x_e93_only_the_newest_call_of_a_run_waits() {
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
