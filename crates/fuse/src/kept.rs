//! Results that nobody has read on the descriptor that they were asked for on: `echo … > tools/x;
//! cat tools/x`.
//!
//! A result is kept for the tree of processes that it was written in, until something else is
//! written there, for ten minutes at most, and only so many bytes of all.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use narthex_mount::Failure;
use tokio::time::Instant;

use crate::callers::{ByTree, Caller};

/// How long a result is kept.
const KEPT_FOR: Duration = Duration::from_secs(10 * 60);

/// The most bytes of all results that are kept.
const BYTES_MOST: usize = 64 << 20;

/// The most results that are kept.
const MOST: usize = 4096;

/// What came of a call.
pub(crate) type Outcome = Result<Bytes, Failure>;

/// Results by file.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    files: Mutex<Files>,
}

#[derive(Debug, Default)]
struct Files {
    by_file: HashMap<Arc<str>, ByTree<One>>,
    next: u64,
}

#[derive(Debug)]
struct One {
    outcome: Outcome,
    at: u64,
    since: Instant,
}

impl Kept {
    /// Keeps a result for whoever of its tree reads the file next.
    pub(crate) fn keep(&self, file: &Arc<str>, lineage: &[Caller], outcome: Outcome) {
        if lineage.is_empty() {
            return;
        }
        let mut files = self.files();
        files.next += 1;
        let at = files.next;
        let one = One { outcome, at, since: Instant::now() };
        files.by_file.entry(file.clone()).or_default().leave(lineage, at, one);
        files.tidy();
    }

    /// What was kept for the caller's tree.
    pub(crate) fn find(&self, file: &str, lineage: &[Caller]) -> Option<Outcome> {
        let files = self.files();
        let one = files.by_file.get(file)?.nearest(lineage)?;
        (one.since.elapsed() < KEPT_FOR).then(|| one.outcome.clone())
    }

    fn files(&self) -> MutexGuard<'_, Files> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Files {
    /// Forgets what is old, and of the rest the first until it fits.
    fn tidy(&mut self) {
        loop {
            let (mut bytes, mut count, mut oldest) = (0, 0, u64::MAX);
            for results in self.by_file.values() {
                results.each(|one| {
                    bytes += one.outcome.as_ref().map_or(0, Bytes::len);
                    count += 1;
                    oldest = oldest.min(one.at);
                });
            }
            let is_full = bytes > BYTES_MOST || count > MOST;
            for results in self.by_file.values_mut() {
                results
                    .retain(|one| one.since.elapsed() < KEPT_FOR && !(is_full && one.at == oldest));
            }
            self.by_file.retain(|_, results| !results.is_empty());
            if !is_full {
                return;
            }
        }
    }
}
