//! Calls that wait for something to be said in their session: one of each session, and so many of a
//! workspace.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use narthex_model::{SessionId, WorkspaceId};
use tokio::sync::Notify;

/// How many calls of one workspace wait at a time.
const WAITING_MAX: usize = 500;

type Waiters = HashMap<WorkspaceId, HashMap<SessionId, Arc<Notify>>>;

/// The calls that wait.
#[derive(Debug, Default)]
pub(crate) struct Waiting(Mutex<Waiters>);

/// The place of one of them, until it is dropped.
#[derive(Debug)]
pub(crate) struct Place<'w> {
    waiting: &'w Waiting,
    workspace: WorkspaceId,
    session: SessionId,
    newer: Arc<Notify>,
}

impl Waiting {
    /// Has a call wait in a session, and the one that waited there before no longer. `None` where
    /// as many of the workspace wait as may.
    pub(crate) fn begin(&self, workspace: &WorkspaceId, session: SessionId) -> Option<Place<'_>> {
        let mut waiters = self.lock();
        let of = waiters.entry(workspace.clone()).or_default();
        if of.len() >= WAITING_MAX && !of.contains_key(&session) {
            return None;
        }
        let newer = Arc::new(Notify::new());
        if let Some(older) = of.insert(session, newer.clone()) {
            older.notify_one();
        }
        Some(Place { waiting: self, workspace: workspace.clone(), session, newer })
    }

    fn lock(&self) -> MutexGuard<'_, Waiters> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place<'_> {
    /// In which session it is.
    pub(crate) fn session(&self) -> SessionId {
        self.session
    }

    /// Waits until another call waits in the session.
    pub(crate) async fn taken(&self) {
        self.newer.notified().await;
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut waiters = self.waiting.lock();
        let Some(of) = waiters.get_mut(&self.workspace) else { return };
        if of.get(&self.session).is_some_and(|one| Arc::ptr_eq(one, &self.newer)) {
            of.remove(&self.session);
        }
        if of.is_empty() {
            waiters.remove(&self.workspace);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(number: usize) -> SessionId {
        let bytes = number.to_be_bytes();
        SessionId::new([0, 0, 0, 0, bytes[6], bytes[7]])
    }

    /// X-E93: of a session the newest call waits; one workspace takes no room of another.
    #[tokio::test]
    async fn x_e93_one_call_of_a_session_waits() {
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
