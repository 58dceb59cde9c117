//! A limited number of places.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// A limited number of places for connections.
#[derive(Debug)]
pub(super) struct Room {
    places: Arc<Semaphore>,
    limit: usize,
    /// The users of the places, for the log.
    users: &'static str,
    is_full: AtomicBool,
}

impl Room {
    pub(super) fn new(limit: usize, users: &'static str) -> Self {
        let places = Arc::new(Semaphore::new(limit));
        Self { places, limit, users, is_full: AtomicBool::new(false) }
    }

    /// Takes a place; `None` if there is none.
    pub(super) fn take(&self) -> Option<OwnedSemaphorePermit> {
        let place = self.places.clone().try_acquire_owned().ok();
        // Logged once each time the limit is reached: a flood of connections must not flood the
        // log.
        if !self.is_full.swap(place.is_none(), Ordering::Relaxed) && place.is_none() {
            let limit = self.limit;
            tracing::warn!(limit, "refusing connections: the limit of {} is reached", self.users);
        }
        place
    }
}
