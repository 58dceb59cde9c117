//! The queue between callers and the thread that writes their records.

use std::{
    collections::BTreeMap,
    fmt,
    path::PathBuf,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering, fence},
        mpsc::Sender,
    },
    thread::Thread,
};

use tokio::sync::oneshot;

use super::{AuditFull, AuditSettings, Refused, Written, keeping::Keeping};
use crate::spool::Backlog;

/// The callers' end. Field order matters: the sender goes before the writer is woken for good.
#[derive(Debug)]
pub(super) struct Queue {
    /// The folder of the files, and the writer's name.
    pub(super) place: Option<(PathBuf, String)>,
    pub(super) sender: Sender<Written>,
    pub(super) state: Arc<State>,
    pub(super) writer: WakeOnDrop,
}

/// State that callers and writer share.
#[derive(Debug)]
pub(super) struct State {
    pub(super) capacity: usize,
    pub(super) free: AtomicUsize,
    pub(super) has_failed: AtomicBool,
    pub(super) is_closed: AtomicBool,
    pub(super) is_idle: AtomicBool,
    pub(super) backlog: Arc<Backlog>,
    pub(super) backlog_max: u64,
    /// Numbers the changes of this process.
    pub(super) changes: AtomicU64,
    pub(super) keeping: Keeping,
    pub(super) refusals: Mutex<BTreeMap<Refused, u64>>,
    /// The callers that wait for the disk; `None` once there is no writer.
    pub(super) flushes: Mutex<Option<Vec<oneshot::Sender<()>>>>,
}

pub(super) struct WakeOnDrop(pub(super) Thread);

impl Queue {
    /// Takes room for `count` records.
    pub(super) fn take_room(&self, count: usize) -> Result<(), AuditFull> {
        if self.state.is_closed.load(Ordering::Relaxed) {
            return Err(AuditFull::Closed);
        }
        if self.state.has_failed.load(Ordering::Relaxed) {
            return Err(AuditFull::Failed);
        }
        if self.state.backlog.kept() >= self.state.backlog_max {
            return Err(AuditFull::SpoolFull);
        }
        let less = |free: usize| free.checked_sub(count);
        match self.state.free.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less) {
            Ok(free) => {
                // The writer gathers records for a while; here they come too fast for that.
                let few = self.state.capacity / 4;
                if free >= few && free - count < few {
                    self.writer.0.unpark();
                }
                Ok(())
            }
            Err(_) => {
                self.writer.0.unpark();
                Err(AuditFull::Full)
            }
        }
    }

    pub(super) fn push(&self, entry: Written) {
        // The room was taken beforehand, so only a writer that has died refuses.
        if self.sender.send(entry).is_err() {
            self.state.has_failed.store(true, Ordering::SeqCst);
            tracing::error!("the writer of the audit record has ended");
        }
        self.wake_if_idle();
    }

    pub(super) fn wake_if_idle(&self) {
        // Pairs with the writer's fence between saying that it is idle and looking once more.
        fence(Ordering::SeqCst);
        let is_idle = &self.state.is_idle;
        if is_idle.load(Ordering::Relaxed) && is_idle.swap(false, Ordering::Relaxed) {
            self.writer.0.unpark();
        }
    }
}

impl State {
    pub(super) fn new(settings: &AuditSettings, backlog: Arc<Backlog>) -> Self {
        Self {
            capacity: settings.queue,
            free: AtomicUsize::new(settings.queue),
            has_failed: AtomicBool::new(false),
            is_closed: AtomicBool::new(false),
            is_idle: AtomicBool::new(false),
            backlog,
            backlog_max: settings.spool_bytes,
            changes: AtomicU64::new(0),
            keeping: Keeping::default(),
            refusals: Mutex::default(),
            flushes: Mutex::new(Some(Vec::new())),
        }
    }

    pub(super) fn lock_refusals(&self) -> std::sync::MutexGuard<'_, BTreeMap<Refused, u64>> {
        self.refusals.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn lock_flushes(
        &self,
    ) -> std::sync::MutexGuard<'_, Option<Vec<oneshot::Sender<()>>>> {
        self.flushes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for WakeOnDrop {
    fn drop(&mut self) {
        self.0.unpark();
    }
}

impl fmt::Debug for WakeOnDrop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WakeOnDrop")
    }
}
