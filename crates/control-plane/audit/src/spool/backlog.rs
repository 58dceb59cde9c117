//! The part of the record that waits on the disk for the store.

use std::{
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, SystemTime},
};

use tokio::sync::Notify;

/// Counts of the bytes that the writer has written, and that the reader has moved.
#[derive(Debug, Default)]
pub(crate) struct Backlog {
    /// Size of all files in bytes.
    kept: AtomicU64,
    /// Size of their moved part in bytes.
    moved: AtomicU64,
    /// The time since which a record waits; `None` if none waits.
    since: Mutex<Option<SystemTime>>,
    /// True if the last attempt to move records failed.
    is_stuck: AtomicBool,
    grown: Notify,
}

impl Backlog {
    /// Sets the number of bytes in the files at the start.
    pub(super) fn begin(&self, bytes: u64) {
        self.kept.store(bytes, Ordering::Relaxed);
    }

    pub(super) fn grew(&self, bytes: u64) {
        self.kept.fetch_add(bytes, Ordering::Relaxed);
        self.lock().get_or_insert_with(SystemTime::now);
        self.grown.notify_one();
    }

    pub(super) fn moved(&self, bytes: u64) {
        self.moved.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Counts a file as removed, all of whose bytes were moved.
    pub(super) fn removed(&self, bytes: u64) {
        let less = |kept: u64| Some(kept.saturating_sub(bytes));
        // Both are bounds and counters, which nothing is ordered by.
        for counter in [&self.kept, &self.moved] {
            let _before = counter.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
        }
    }

    /// The oldest that waits has waited since then.
    pub(super) fn waits_since(&self, since: SystemTime) {
        *self.lock() = Some(since);
    }

    /// Notes that no record waits any more.
    pub(super) fn is_moved(&self) {
        *self.lock() = None;
    }

    pub(super) fn tell_stuck(&self, is_stuck: bool) {
        self.is_stuck.store(is_stuck, Ordering::Relaxed);
    }

    #[must_use]
    pub(crate) fn is_stuck(&self) -> bool {
        self.is_stuck.load(Ordering::Relaxed)
    }

    /// The bytes of all files.
    #[must_use]
    pub(crate) fn kept(&self) -> u64 {
        self.kept.load(Ordering::Relaxed)
    }

    /// The bytes that wait.
    #[must_use]
    pub(crate) fn waiting(&self) -> u64 {
        self.kept().saturating_sub(self.moved.load(Ordering::Relaxed))
    }

    /// The age of the oldest waiting record.
    #[must_use]
    pub(crate) fn lag(&self) -> Duration {
        // A clock that was set back makes this zero; the times are the events' own.
        self.lock().and_then(|since| since.elapsed().ok()).unwrap_or_default()
    }

    /// Waits until a record was written since the last wait.
    pub(super) async fn grown(&self) {
        self.grown.notified().await;
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<SystemTime>> {
        self.since.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
