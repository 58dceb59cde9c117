//! The record of all actions on its way to the store, in files of the data directory.
//!
//! A call takes an [`AuditSlot`] before it is forwarded and gives it back with its outcome. The
//! slot is room in a bounded queue, so giving it back neither fails nor waits. A slot that is
//! dropped still leaves its record. When there is no room, or the disk refuses, no slot is given:
//! calls fail closed. One thread computes the hash chains and writes; the path of a call does no
//! I/O. Every other action is noted before it starts ([`Audit::begin`]), so that even a killed
//! process leaves a trace of the action.

mod keeping;
mod noted;
mod queue;
mod record;
mod refused;
#[cfg(test)]
mod tests;
mod tools;
mod writer;

use std::{
    io,
    path::{Path, PathBuf},
    sync::{Arc, atomic::Ordering, mpsc},
    time::{Duration, SystemTime},
};

use narthex_model::{ErrorKind, RunId, WorkspaceId};
use tokio::{sync::oneshot, time::Instant};

use self::{
    queue::{Queue, State, WakeOnDrop},
    tools::ToolsEntry,
    writer::{Sink, Writer},
};

pub use self::{
    noted::Noted,
    record::{AuditRecord, Outcome, TOOL},
    refused::Refused,
};

use crate::{
    AuditEvent, Chains, SpoolReader, ToolSet,
    contents::Contents,
    spool::{Backlog, Intent, Opened, Spool, Standing},
};

/// Settings of the record.
#[derive(Debug, Clone)]
pub struct AuditSettings {
    /// Calls that may be open or waiting to be written before new ones are refused.
    pub queue: usize,
    /// The size at which a file is rotated.
    pub rotate_bytes: u64,
    /// Most bytes that may wait on the disk for the store before calls are refused.
    pub spool_bytes: u64,
}

impl Default for AuditSettings {
    fn default() -> Self {
        Self { queue: 65_536, rotate_bytes: 8 << 20, spool_bytes: 4 << 30 }
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

/// An error that keeps the record from being opened.
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
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// The writing thread cannot be started.
    #[error("the thread that writes the audit record cannot be started")]
    Thread(#[source] io::Error),
}

/// The reason for which a call may not start: its record has no place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AuditFull {
    /// Too many calls are open or not yet written.
    #[error("the audit queue is full; try again later")]
    Full,
    /// Too much waits to be moved into the store.
    #[error("the audit's disk buffer is full; calls are refused until the store is back")]
    SpoolFull,
    /// The disk refuses writes.
    #[error("the audit cannot record calls, so calls are refused")]
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
    /// The contents of the call, if its workspace has them stored.
    contents: Option<Box<Contents>>,
}

/// An entry on its way into the file.
#[derive(Debug)]
enum Written {
    Call(Box<Entry>),
    Tools(Box<ToolsEntry>),
    /// An event that has happened.
    Event(Box<AuditEvent<'static>>),
    /// A change that is about to be made.
    Intent(Box<Intent>),
    /// The end of a change.
    Done(String, Box<AuditEvent<'static>>),
}

impl Audit {
    /// Opens the record in a folder, which is created if need be, and starts its writer.
    ///
    /// # Errors
    /// When the folder or the file cannot be written, or no thread can be started.
    pub fn open(folder: &Path, settings: &AuditSettings) -> Result<Self, AuditError> {
        let backlog = Arc::new(Backlog::default());
        let opened = Spool::open(folder, settings.rotate_bytes, backlog.clone());
        let Opened { spool, writer, standing } =
            opened.map_err(|source| AuditError::Folder { folder: folder.to_owned(), source })?;
        let place = Some((folder.to_owned(), writer));
        let state = State::new(settings, backlog);
        Self::start(spool, state, place, standing).map_err(AuditError::Thread)
    }

    /// Checks that [`Self::open`] can open the record in a folder, beside a process that has it
    /// open. Changes nothing.
    ///
    /// # Errors
    /// When the folder or a file in it cannot be used.
    pub fn check(folder: &Path) -> Result<(), AuditError> {
        Spool::check(folder)
            .map_err(|source| AuditError::Folder { folder: folder.to_owned(), source })
    }

    /// Keeps no record: for embedders that keep their own, and for tests.
    #[must_use]
    pub fn disabled() -> Self {
        Self { queue: None }
    }

    fn start(
        sink: impl Sink + 'static,
        state: State,
        place: Option<(PathBuf, String)>,
        standing: Standing,
    ) -> io::Result<Self> {
        #[expect(
            clippy::disallowed_methods,
            reason = "each entry has taken its room before; a ring of all places would be \
                      allocated whole"
        )]
        let (sender, receiver) = mpsc::channel();
        let state = Arc::new(state);
        let name = place.as_ref().map_or_else(|| "none.0.0".to_owned(), |(_, name)| name.clone());
        let Standing { heads, intents } = standing;
        let chains = Chains::new(name, heads);
        let writer = Writer::new(sink, receiver, state.clone(), chains, intents);
        let thread = std::thread::Builder::new().name("audit".into()).spawn(|| writer.run())?;
        let writer = WakeOnDrop(thread.thread().clone());
        Ok(Self { queue: Some(Arc::new(Queue { place, sender, state, writer })) })
    }

    /// Takes room for the record of a call that is about to be forwarded.
    ///
    /// # Errors
    /// When the record could not be kept; the call must not be made.
    pub fn reserve(&self, mut record: AuditRecord) -> Result<AuditSlot, AuditFull> {
        if let Some(queue) = &self.queue {
            queue.take_room(1)?;
        }
        record.shorten();
        let entry = Entry {
            record,
            outcome: Outcome::Abandoned,
            time: SystemTime::now(),
            started: Instant::now(),
            took: Duration::ZERO,
            contents: None,
        };
        Ok(AuditSlot { entry: Some(Box::new(entry)), queue: self.queue.clone() })
    }

    /// Records which tools a run sees from now on (E20).
    ///
    /// # Errors
    /// When the record could not be kept.
    pub fn note_tools(
        &self,
        workspace: &WorkspaceId,
        run: RunId,
        tools: &Arc<ToolSet>,
    ) -> Result<(), AuditFull> {
        if let Some(queue) = &self.queue {
            queue.take_room(1)?;
            let (workspace, tools) = (workspace.clone(), tools.clone());
            let entry = ToolsEntry { workspace, run, tools, time: SystemTime::now() };
            queue.push(Written::Tools(Box::new(entry)));
        }
        Ok(())
    }

    /// Records an event that has happened and that no check could have prevented.
    ///
    /// # Errors
    /// When the record could not be kept.
    pub fn note(&self, event: AuditEvent<'static>) -> Result<(), AuditFull> {
        if let Some(queue) = &self.queue {
            queue.take_room(1)?;
            queue.push(Written::Event(Box::new(event)));
        }
        Ok(())
    }

    /// Counts a caller that was refused before its identity was known. Takes no room: many of these
    /// within a second are one record.
    pub fn refused(&self, refused: Refused) {
        if let Some(queue) = &self.queue {
            let mut refusals = queue.state.lock_refusals();
            *refusals.entry(refused).or_default() += 1;
            drop(refusals);
            queue.wake_if_idle();
        }
    }

    /// Reads the written records, to move them into the store. One reader a folder is enough.
    #[must_use]
    pub fn reader(&self) -> Option<SpoolReader> {
        let queue = self.queue.as_ref()?;
        let (folder, _) = queue.place.as_ref()?;
        Some(SpoolReader::new(folder.clone(), queue.state.backlog.clone()))
    }

    /// Returns how many bytes wait on the disk to be moved into the store, and the age of the
    /// oldest; `None` if no record is kept.
    #[must_use]
    pub fn waiting(&self) -> Option<(u64, Duration)> {
        let backlog = &self.queue.as_ref()?.state.backlog;
        Some((backlog.waiting(), backlog.lag()))
    }

    /// True if the last attempt to move waiting records into the store failed.
    #[must_use]
    pub fn is_stuck(&self) -> bool {
        self.queue.as_ref().is_some_and(|queue| queue.state.backlog.is_stuck())
    }

    /// Number of further calls that may be open or unwritten; `None` if no record is kept.
    #[must_use]
    pub fn free(&self) -> Option<usize> {
        self.queue.as_ref().map(|queue| queue.state.free.load(Ordering::Relaxed))
    }

    /// Waits until all records that were committed before are on disk. Also returns when the writer
    /// is gone.
    pub async fn flush(&self) {
        let Some(queue) = &self.queue else { return };
        let (done, is_done) = oneshot::channel();
        match &mut *queue.state.lock_flushes() {
            Some(flushes) => flushes.push(done),
            None => return,
        }
        queue.writer.0.unpark();
        // An error means that the writer is gone, and the records with it.
        drop(is_done.await);
    }

    /// Refuses further calls and waits until committed records are on disk, or the disk has refused
    /// them. Records of calls that are still open are written when they end.
    pub async fn close(&self) {
        let Some(queue) = &self.queue else { return };
        queue.state.is_closed.store(true, Ordering::SeqCst);
        self.flush().await;
    }
}

impl AuditSlot {
    /// Changes the record before it is written, to add facts that only become known after the slot
    /// was taken.
    pub fn update(&mut self, change: impl FnOnce(&mut AuditRecord)) {
        if let Some(entry) = &mut self.entry {
            change(&mut entry.record);
            entry.record.shorten();
        }
    }

    /// Returns how long the call has been open.
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

impl AuditFull {
    /// The kind that doors turn into their numbers.
    #[must_use]
    pub fn kind(self) -> ErrorKind {
        match self {
            Self::Full | Self::SpoolFull => ErrorKind::Exhausted,
            Self::Failed | Self::Closed => ErrorKind::Unavailable,
        }
    }
}
