//! Followers that wait for events, by session or workspace.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use narthex_model::WorkspaceId;
use narthex_store::EventsOf;
use tokio::sync::watch;

/// The stream that a follower waits for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Key {
    Session(EventsOf),
    Workspace(WorkspaceId),
}

/// The waiting followers. There is an entry only while a follower waits.
#[derive(Debug, Default)]
pub(crate) struct Wakers(Mutex<HashMap<Key, watch::Sender<()>>>);

impl Wakers {
    /// Wakes the followers of this session and of its workspace.
    pub(crate) fn wake(&self, of: &EventsOf) {
        let waiting = self.all();
        for key in [Key::Session(of.clone()), Key::Workspace(of.workspace.clone())] {
            if let Some(sender) = waiting.get(&key) {
                sender.send_replace(());
            }
        }
    }

    pub(crate) fn wait(&self, key: Key) -> watch::Receiver<()> {
        self.all().entry(key).or_default().subscribe()
    }

    /// Ends a waiting, and with the last one the entry.
    pub(crate) fn leave(&self, key: &Key, woken: watch::Receiver<()>) {
        let mut waiting = self.all();
        drop(woken);
        if waiting.get(key).is_some_and(|sender| sender.receiver_count() == 0) {
            waiting.remove(key);
        }
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.all().len()
    }

    fn all(&self) -> MutexGuard<'_, HashMap<Key, watch::Sender<()>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
