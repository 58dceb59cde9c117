//! All live sessions by id, with a cap and an idle limit (S31).

use std::sync::Arc;

use papaya::HashMap;

use crate::{Full, Place, Places, RunId, RunView, Session, SessionId};

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
    /// When the run, its workspace or all together have as many sessions as they may.
    pub(crate) fn reserve(&self, run: &RunView) -> Result<Place, Full> {
        self.places.take(run, 1)
    }

    /// Adds a session in its place, which is free again once the session is removed.
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
