//! All live sessions by id, with a cap and an idle limit (S31).

use std::{sync::Arc, time::Duration};

use papaya::HashMap;

use crate::{Full, Place, Places, RunId, RunView, Session, SessionId, gateway::Shared};

/// Interval between searches for idle sessions, and for tasks that keep no server awake any more.
const SWEEP: Duration = Duration::from_secs(30);

/// The live sessions. Lookups take no lock.
#[derive(Debug)]
pub(crate) struct SessionTable {
    sessions: HashMap<SessionId, Arc<Session>>,
    places: Places,
    /// Places for questions of servers that wait for an answer.
    questions: Places,
}

impl SessionTable {
    pub(crate) fn new(most: usize, questions: usize) -> Self {
        let (places, questions) = (Places::new(most), Places::new(questions));
        Self { sessions: HashMap::new(), places, questions }
    }

    pub(crate) fn len(&self) -> usize {
        self.sessions.len()
    }

    /// A place for one more session of a run.
    ///
    /// # Errors
    /// When the run, its workspace or all together have as many as they may.
    pub(crate) fn reserve(&self, run: &RunView) -> Result<Place, Full> {
        self.places.take(run, 1)
    }

    /// Adds a session in its place, which is free again once the session is taken out.
    pub(crate) fn insert(&self, place: Place, session: Arc<Session>) {
        session.has_place(place, self.questions.clone());
        self.sessions.pin().insert(session.id.clone(), session);
    }

    pub(crate) fn get(&self, id: &str) -> Option<Arc<Session>> {
        self.sessions.pin().get(id).cloned()
    }

    pub(crate) fn remove(&self, id: &str) {
        if let Some(session) = self.sessions.pin().remove(id) {
            session.leave_place();
        }
    }

    /// The sessions of a run.
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
