//! The streams of legacy sessions: one for each streamed call, and one for messages that belong to
//! no call.
//!
//! A stream is found through its session only, so an event id of another session leads to no stream
//! (S19). A stream outlives the connections that read it; its events have ids of the form
//! `<node>-<stream>-<number>`. All streams of a session are dropped when the session ends.

mod channel;
mod room;
mod streams;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use narthex_gateway::{Session, SessionId};
use tokio_util::task::TaskTracker;

pub(crate) use channel::{Channel, Reader};
pub(crate) use room::{Room, RunRoom};
pub(crate) use streams::{CallChannel, Streams};

use crate::ReplayLimits;

/// The streams of all sessions that have any.
#[derive(Debug)]
pub(crate) struct Hub {
    limits: ReplayLimits,
    room: Arc<Room>,
    node: Arc<str>,
    // Locked when a stream is opened or resumed. Calls that are answered at once never lock it.
    sessions: Mutex<HashMap<SessionId, Arc<Streams>>>,
}

impl Hub {
    pub(crate) fn new(limits: ReplayLimits, node: Arc<str>) -> Self {
        Self { limits, room: Room::new(limits.total_bytes), node, sessions: Mutex::default() }
    }

    /// The streams of a session. The first call spawns the task that drops finished streams.
    pub(crate) fn streams(
        self: &Arc<Self>,
        session: &Arc<Session>,
        tasks: &TaskTracker,
    ) -> Arc<Streams> {
        let mut sessions = lock(&self.sessions);
        if let Some(streams) = sessions.get(&session.id) {
            return streams.clone();
        }
        let room = self.room.of(session.run.id, &session.run.workspace);
        let kept = (self.limits, room);
        let streams = Arc::new(Streams::new(kept, self.node.clone(), session.clone()));
        sessions.insert(session.id.clone(), streams.clone());
        drop(sessions);
        let (hub, kept) = (self.clone(), streams.clone());
        tasks.spawn(async move {
            kept.keep().await;
            lock(&hub.sessions).remove(&kept.session().id);
        });
        streams
    }

    /// The streams of a session, if it has any.
    pub(crate) fn existing(&self, session: &Session) -> Option<Arc<Streams>> {
        lock(&self.sessions).get(&session.id).cloned()
    }
}

/// Locks a mutex, also if a thread panicked while it held the lock: no change can be left half
/// done.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
