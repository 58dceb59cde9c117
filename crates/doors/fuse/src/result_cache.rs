//! Results, also those of running calls, that no reader has read on the descriptor of their
//! request: `echo … > tools/x; cat tools/x`.
//!
//! A result is kept for the tree of processes that wrote its request, until another request is
//! written there. It is kept for ten minutes at most, and the results together have a limit in
//! bytes.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use narthex_vfs::{Failure, Lease};
use tokio::{sync::watch, time::Instant};

use crate::{
    callers::{ByTree, Caller},
    errno::cancelled,
    handle::Handle,
};

/// Time for which a result is kept.
const KEPT_FOR: Duration = Duration::from_secs(10 * 60);

/// The most bytes of all results that are kept.
const BYTES_MOST: usize = 64 << 20;

/// The most results that are kept.
const MOST: usize = 4096;

/// The outcome of a call.
pub(crate) type Outcome = Result<Bytes, Failure>;

/// A call, and the files that wait for it.
#[derive(Debug)]
pub(crate) struct Call {
    /// The outcome, and the time of its end.
    ended: watch::Sender<Option<(Outcome, Instant)>>,
    /// The files at which it is waited for.
    at: Mutex<Vec<Arc<Handle>>>,
}

impl Call {
    /// A call that starts now, for the readers at a file.
    pub(crate) fn begun(handle: &Arc<Handle>) -> Arc<Self> {
        let at = Mutex::new(vec![handle.clone()]);
        Arc::new(Self { ended: watch::Sender::new(None), at })
    }

    /// A call that is over.
    pub(crate) fn over(outcome: Outcome) -> Arc<Self> {
        let ended = watch::Sender::new(Some((outcome, Instant::now())));
        Arc::new(Self { ended, at: Mutex::default() })
    }

    /// From here on it is waited for at this file, too.
    pub(crate) fn join(&self, handle: &Arc<Handle>) {
        self.at().push(handle.clone());
    }

    /// Answers the waiting readers that were interrupted. True if there were readers, and none is
    /// left at any of the files.
    pub(crate) fn is_given_up(&self) -> bool {
        let at = self.at().clone();
        let waited_for: Vec<bool> = at.iter().filter_map(|handle| handle.is_waited_for()).collect();
        !waited_for.is_empty() && !waited_for.contains(&true)
    }

    /// Ends the call with an outcome.
    pub(crate) fn end(&self, outcome: &Outcome) {
        self.ended.send_replace(Some((outcome.clone(), Instant::now())));
        self.at().clear();
    }

    /// The outcome, if the call has ended.
    pub(crate) fn outcome(&self) -> Option<Outcome> {
        self.ended.borrow().as_ref().map(|(outcome, _)| outcome.clone())
    }

    /// Resolves with what came of it.
    pub(crate) async fn wait(&self) -> Outcome {
        let mut ended = self.ended.subscribe();
        loop {
            if let Some((outcome, _)) = ended.borrow_and_update().as_ref() {
                return outcome.clone();
            }
            if ended.changed().await.is_err() {
                return Err(cancelled());
            }
        }
    }

    /// Number of bytes of the result; `None` while the call is under way.
    fn bytes(&self) -> Option<usize> {
        let ended = self.ended.borrow();
        ended.as_ref().map(|(outcome, _)| outcome.as_ref().map_or(0, Bytes::len))
    }

    /// True while the result is to be kept: for [`KEPT_FOR`] from its end on.
    fn is_fresh(&self) -> bool {
        self.ended.borrow().as_ref().is_none_or(|(_, since)| since.elapsed() < KEPT_FOR)
    }

    fn at(&self) -> MutexGuard<'_, Vec<Arc<Handle>>> {
        self.at.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Results by file.
#[derive(Debug, Default)]
pub(crate) struct ResultCache {
    files: Mutex<Files>,
}

#[derive(Debug, Default)]
struct Files {
    by_file: HashMap<Arc<str>, ByTree<One>>,
    next: u64,
}

#[derive(Debug)]
struct One {
    call: Arc<Call>,
    /// The server that was asked.
    lease: Lease,
    at: u64,
}

impl ResultCache {
    /// Keeps a result for the next reader of the file in its tree.
    pub(crate) fn keep(&self, handle: &Handle, lineage: &[Caller], outcome: Outcome) {
        self.keep_call(handle, lineage, Call::over(outcome));
    }

    /// Keeps a call that is under way: the next reader of the file in its tree waits for it.
    pub(crate) fn keep_call(&self, handle: &Handle, lineage: &[Caller], call: Arc<Call>) {
        if lineage.is_empty() {
            return;
        }
        let mut files = self.files();
        files.next += 1;
        let at = files.next;
        let one = One { call, lease: handle.lease.clone(), at };
        files.by_file.entry(handle.file.clone()).or_default().leave(lineage, at, one);
        files.tidy();
    }

    /// Ends a call that may be kept.
    pub(crate) fn end(&self, call: &Call, outcome: &Outcome) {
        call.end(outcome);
        self.files().tidy();
    }

    /// The call that was kept for the caller's tree. What another server has answered that was
    /// there before is none.
    pub(crate) fn find(&self, handle: &Handle, lineage: &[Caller]) -> Option<Arc<Call>> {
        let mut files = self.files();
        let results = files.by_file.get_mut(&handle.file)?;
        results.retain(One::is_kept);
        results.nearest(lineage).map(|one| one.call.clone())
    }

    fn files(&self) -> MutexGuard<'_, Files> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl One {
    fn is_kept(&self) -> bool {
        self.call.is_fresh() && !self.lease.is_over()
    }
}

impl Files {
    /// Forgets what is old, and of the rest the first until it fits. What is under way stays.
    fn tidy(&mut self) {
        loop {
            // The number and the size in bytes of each ended call.
            let mut ended: Vec<(u64, usize)> = Vec::new();
            for results in self.by_file.values() {
                results.each(|one| ended.extend(one.call.bytes().map(|bytes| (one.at, bytes))));
            }
            let bytes: usize = ended.iter().map(|(_, bytes)| bytes).sum();
            let oldest = ended.iter().map(|(at, _)| *at).min();
            let is_full = bytes > BYTES_MOST || ended.len() > MOST;
            for results in self.by_file.values_mut() {
                results.retain(|one| one.is_kept() && !(is_full && Some(one.at) == oldest));
            }
            self.by_file.retain(|_, results| !results.is_empty());
            if !is_full {
                return;
            }
        }
    }
}
