//! All live sessions by id, with a cap and an idle limit (S31).

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use papaya::HashMap;

use crate::{RunId, Session, SessionId, gateway::Shared};

/// How often idle sessions, and tasks that keep nobody awake any more, are looked for.
const SWEEP: Duration = Duration::from_secs(30);

/// The live sessions. Lookups take no lock.
#[derive(Debug)]
pub(crate) struct SessionTable {
    sessions: HashMap<SessionId, Arc<Session>>,
    /// How many more there may be.
    free: Arc<AtomicUsize>,
}

/// A place for a session that is about to be opened; dropped, it is free again.
#[derive(Debug)]
pub(crate) struct Place {
    free: Arc<AtomicUsize>,
    is_taken: bool,
}

impl Drop for Place {
    fn drop(&mut self) {
        if !self.is_taken {
            self.free.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl SessionTable {
    pub(crate) fn new(most: usize) -> Self {
        Self { sessions: HashMap::new(), free: Arc::new(AtomicUsize::new(most)) }
    }

    pub(crate) fn len(&self) -> usize {
        self.sessions.len()
    }

    /// A place for one more session; `None` if there are too many.
    pub(crate) fn reserve(&self) -> Option<Place> {
        let one_less = |free: usize| free.checked_sub(1);
        self.free.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less).ok()?;
        Some(Place { free: self.free.clone(), is_taken: false })
    }

    /// Adds a session in its place.
    pub(crate) fn insert(&self, mut place: Place, session: Arc<Session>) {
        place.is_taken = true;
        self.sessions.pin().insert(session.id.clone(), session);
    }

    pub(crate) fn get(&self, id: &str) -> Option<Arc<Session>> {
        self.sessions.pin().get(id).cloned()
    }

    pub(crate) fn remove(&self, id: &str) {
        if self.sessions.pin().remove(id).is_some() {
            self.free.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Those of a run.
    pub(crate) fn of(&self, run: RunId) -> Vec<Arc<Session>> {
        let sessions = self.sessions.pin();
        sessions.values().filter(|session| session.run.id == run).cloned().collect()
    }

    pub(crate) fn all(&self) -> Vec<Arc<Session>> {
        self.sessions.pin().values().cloned().collect()
    }
}

/// Ends sessions whose clients have not been heard of for long, and lets servers sleep whose tasks
/// have expired without a word.
pub(crate) async fn expire(shared: Arc<Shared>) {
    let mut ticks = tokio::time::interval(SWEEP);
    loop {
        tokio::select! {
            biased;
            () = shared.shutdown.cancelled() => return,
            _ = ticks.tick() => {}
        }
        shared.forget_all_gone();
        shared.tasks.expire();
        for session in shared.sessions.all() {
            if session.last_used().elapsed() >= shared.options.session_idle {
                tracing::debug!(session.id = %session.id, "ended an idle session");
                // On its own: servers that are slow to end hold up no other session.
                let ending = shared.clone();
                shared.spawn(async move { ending.end_session(&session).await });
            }
        }
    }
}
