//! The record of every call, appended to a file in the data directory.
//!
//! A call takes an [`AuditSlot`] before it is forwarded and gives it back with its outcome. The
//! slot is room in a bounded queue, so giving it back neither fails nor waits; a slot that is
//! dropped still leaves its record. When there is no room, or the disk refuses, no slot is given:
//! calls fail closed. One thread of its own writes; the path of a call does no I/O.

mod journal;
mod record;
#[cfg(test)]
mod tests;
mod tools;
mod writer;

use std::{
    fmt, io,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering, fence},
        mpsc::{SyncSender, TrySendError, sync_channel},
    },
    thread::Thread,
    time::{Duration, SystemTime},
};

use narthex_model::ErrorKind;
use tokio::{sync::oneshot, time::Instant};

use self::{
    journal::Journal,
    tools::ToolsEntry,
    writer::{Sink, Writer},
};

pub use record::{AuditRecord, Outcome};

use crate::{RunId, ToolSet};

/// How the record is kept.
#[derive(Debug, Clone)]
pub struct AuditSettings {
    /// Calls that may be open or waiting to be written before new ones are refused.
    pub queue: usize,
    /// A file of this size is set aside and a new one begun.
    pub rotate_bytes: u64,
    /// How many files that were set aside are kept; the oldest go first.
    pub keep_files: usize,
}

impl Default for AuditSettings {
    fn default() -> Self {
        Self { queue: 65_536, rotate_bytes: 64 * 1024 * 1024, keep_files: 64 }
    }
}

/// The record of calls. Clones are handles to the same one; the writer ends with the last.
#[derive(Debug, Clone)]
pub struct Audit {
    queue: Option<Arc<Queue>>,
}

/// Room for the record of one call that is open.
///
/// Dropped without [`AuditSlot::commit`], it writes [`Outcome::Abandoned`].
#[derive(Debug)]
pub struct AuditSlot {
    entry: Option<Box<Entry>>,
    queue: Option<Arc<Queue>>,
}

/// Why the record could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum AuditError {
    /// The folder or a file in it cannot be used.
    #[error(
        "the audit record in `{}` cannot be opened; check that the folder is writable",
        folder.display()
    )]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// What the system says.
        #[source]
        source: io::Error,
    },
    /// The writing thread cannot be started.
    #[error("the thread that writes the audit record cannot be started")]
    Thread(#[source] io::Error),
}

/// Why a call may not start: its record has no place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AuditFull {
    /// Too many calls are open or not yet written.
    #[error("too many calls are waiting to be recorded; try again later")]
    Full,
    /// The disk refuses writes.
    #[error("calls cannot be recorded at the moment, so none is made")]
    Failed,
    /// The gateway is stopping.
    #[error("the gateway is stopping")]
    Closed,
}

/// A call on its way into the file.
#[derive(Debug)]
pub(super) struct Entry {
    record: AuditRecord,
    outcome: Outcome,
    time: SystemTime,
    started: Instant,
    took: Duration,
}

/// What is on its way into the file.
#[derive(Debug)]
enum Written {
    Call(Box<Entry>),
    Tools(Box<ToolsEntry>),
}

impl Written {
    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Call(entry) => entry.write(out),
            Self::Tools(entry) => entry.write(out),
        }
    }
}

/// The callers' end. Field order matters: the sender goes before the writer is woken for good.
#[derive(Debug)]
struct Queue {
    sender: SyncSender<Written>,
    state: Arc<State>,
    writer: WakeOnDrop,
}

/// What callers and writer share.
#[derive(Debug)]
pub(super) struct State {
    capacity: usize,
    free: AtomicUsize,
    has_failed: AtomicBool,
    is_closed: AtomicBool,
    is_idle: AtomicBool,
    /// Who waits for the disk; `None` once there is no writer.
    flushes: Mutex<Option<Vec<oneshot::Sender<()>>>>,
}

struct WakeOnDrop(Thread);

impl Audit {
    /// Opens the record in a folder, which is created if need be, and starts its writer.
    ///
    /// # Errors
    /// When the folder or the file cannot be written, or no thread can be started.
    pub fn open(folder: &Path, settings: &AuditSettings) -> Result<Self, AuditError> {
        let journal = Journal::open(folder, settings)
            .map_err(|source| AuditError::Folder { folder: folder.to_owned(), source })?;
        Self::start(journal, settings.queue).map_err(AuditError::Thread)
    }

    /// Keeps no record: for embedders that keep their own, and for tests.
    #[must_use]
    pub fn disabled() -> Self {
        Self { queue: None }
    }

    fn start(sink: impl Sink + 'static, capacity: usize) -> io::Result<Self> {
        let (sender, receiver) = sync_channel(capacity);
        let state = Arc::new(State {
            capacity,
            free: AtomicUsize::new(capacity),
            has_failed: AtomicBool::new(false),
            is_closed: AtomicBool::new(false),
            is_idle: AtomicBool::new(false),
            flushes: Mutex::new(Some(Vec::new())),
        });
        let writer = Writer::new(sink, receiver, state.clone());
        let thread = std::thread::Builder::new().name("audit".into()).spawn(|| writer.run())?;
        let writer = WakeOnDrop(thread.thread().clone());
        Ok(Self { queue: Some(Arc::new(Queue { sender, state, writer })) })
    }

    /// Takes room for the record of a call that is about to be forwarded.
    ///
    /// # Errors
    /// When the record could not be kept; the call must not be made.
    pub fn reserve(&self, mut record: AuditRecord) -> Result<AuditSlot, AuditFull> {
        if let Some(queue) = &self.queue {
            queue.take_room()?;
        }
        record.shorten();
        let entry = Entry {
            record,
            outcome: Outcome::Abandoned,
            time: SystemTime::now(),
            started: Instant::now(),
            took: Duration::ZERO,
        };
        Ok(AuditSlot { entry: Some(Box::new(entry)), queue: self.queue.clone() })
    }

    /// Records which tools a run sees from now on (E20).
    ///
    /// # Errors
    /// When the record could not be kept.
    pub(crate) fn note_tools(&self, run: RunId, tools: &Arc<ToolSet>) -> Result<(), AuditFull> {
        if let Some(queue) = &self.queue {
            queue.take_room()?;
            let entry = ToolsEntry { run, tools: tools.clone(), time: SystemTime::now() };
            queue.push(Written::Tools(Box::new(entry)));
        }
        Ok(())
    }

    /// How many more calls may be open or unwritten; `None` if no record is kept.
    #[must_use]
    pub fn free(&self) -> Option<usize> {
        self.queue.as_ref().map(|queue| queue.state.free.load(Ordering::Relaxed))
    }

    /// Waits until everything that was committed before is on disk. Also returns when the writer
    /// is gone.
    pub async fn flush(&self) {
        let Some(queue) = &self.queue else { return };
        let (done, is_done) = oneshot::channel();
        match &mut *queue.state.lock_flushes() {
            Some(flushes) => flushes.push(done),
            None => return,
        }
        queue.writer.0.unpark();
        // An error means that the writer is gone, and with it what could be waited for.
        drop(is_done.await);
    }

    /// Refuses further calls and waits until what was committed is on disk, or the disk has
    /// refused it. Records of calls that are still open are written when they end.
    pub async fn close(&self) {
        let Some(queue) = &self.queue else { return };
        queue.state.is_closed.store(true, Ordering::SeqCst);
        self.flush().await;
    }
}

impl AuditSlot {
    /// What will be written, to add what only becomes known after the slot was taken.
    pub fn update(&mut self, change: impl FnOnce(&mut AuditRecord)) {
        if let Some(entry) = &mut self.entry {
            change(&mut entry.record);
            entry.record.shorten();
        }
    }

    /// How long the call has been open.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.entry.as_ref().map_or(Duration::ZERO, |entry| entry.started.elapsed())
    }

    /// Hands the record over to be written.
    pub fn commit(mut self, outcome: Outcome) {
        self.hand_over(outcome);
    }

    fn hand_over(&mut self, outcome: Outcome) {
        let (Some(mut entry), Some(queue)) = (self.entry.take(), &self.queue) else { return };
        entry.outcome = outcome;
        entry.took = entry.started.elapsed();
        queue.push(Written::Call(entry));
    }
}

impl Drop for AuditSlot {
    fn drop(&mut self) {
        self.hand_over(Outcome::Abandoned);
    }
}

impl Queue {
    fn take_room(&self) -> Result<(), AuditFull> {
        if self.state.is_closed.load(Ordering::Relaxed) {
            return Err(AuditFull::Closed);
        }
        if self.state.has_failed.load(Ordering::Relaxed) {
            return Err(AuditFull::Failed);
        }
        let one_less = |free: usize| free.checked_sub(1);
        match self.state.free.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less) {
            Ok(free) => {
                // The writer gathers records for a while; here they come too fast for that.
                if free == self.state.capacity / 4 {
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

    fn push(&self, entry: Written) {
        match self.sender.try_send(entry) {
            Ok(()) => {}
            // The room was taken beforehand, so only a writer that has died refuses.
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => {
                self.state.has_failed.store(true, Ordering::SeqCst);
                tracing::error!("the writer of the audit record is gone");
            }
        }
        // Pairs with the writer's fence between saying that it is idle and looking once more.
        fence(Ordering::SeqCst);
        let is_idle = &self.state.is_idle;
        if is_idle.load(Ordering::Relaxed) && is_idle.swap(false, Ordering::Relaxed) {
            self.writer.0.unpark();
        }
    }
}

impl State {
    fn lock_flushes(&self) -> std::sync::MutexGuard<'_, Option<Vec<oneshot::Sender<()>>>> {
        self.flushes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AuditFull {
    /// The kind that doors turn into their numbers.
    #[must_use]
    pub fn kind(self) -> ErrorKind {
        match self {
            Self::Full => ErrorKind::Exhausted,
            Self::Failed | Self::Closed => ErrorKind::Unavailable,
        }
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
