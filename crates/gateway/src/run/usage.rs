//! Whether a run is used: one that nobody uses has no task, no view and no list of its own.

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

use super::RunView;

/// Who uses a run, and whether a task watches what it sees.
#[derive(Debug, Default)]
pub(crate) struct Usage {
    is_watched: AtomicBool,
    /// Since whoever watches looked last.
    was_used: AtomicBool,
    /// Sessions and streams.
    held: AtomicUsize,
    /// Held while the watching begins or ends.
    turn: Mutex<()>,
}

impl Usage {
    /// Notes that the run is used. `false` if nobody watches it yet. Takes no lock.
    pub(crate) fn note(&self) -> bool {
        // In one order with `rest`: either this is seen there, or its end here.
        if !self.was_used.load(Ordering::SeqCst) {
            self.was_used.store(true, Ordering::SeqCst);
        }
        self.is_watched()
    }

    pub(crate) fn is_watched(&self) -> bool {
        self.is_watched.load(Ordering::SeqCst)
    }

    /// Begins to watch, unless somebody does.
    pub(crate) fn watch(&self, begin: impl FnOnce()) {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.is_watched() {
            begin();
            self.is_watched.store(true, Ordering::SeqCst);
        }
    }

    /// Ends the watching, unless the run is used or was since this was last asked.
    pub(crate) fn rest(&self, end: impl FnOnce()) -> bool {
        let is_used = |was_used| was_used || self.held.load(Ordering::SeqCst) > 0;
        if is_used(self.was_used.swap(false, Ordering::SeqCst)) {
            return false;
        }
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        self.is_watched.store(false, Ordering::SeqCst);
        // Whoever came in between may have seen that it was watched.
        if is_used(self.was_used.load(Ordering::SeqCst)) {
            self.is_watched.store(true, Ordering::SeqCst);
            return false;
        }
        end();
        true
    }
}

/// A run that is used for as long as this lives.
#[derive(Debug)]
pub(crate) struct Held(Arc<RunView>);

impl Held {
    pub(crate) fn of(run: &Arc<RunView>) -> Self {
        run.usage.held.fetch_add(1, Ordering::SeqCst);
        Self(run.clone())
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.0.usage.held.fetch_sub(1, Ordering::SeqCst);
    }
}
