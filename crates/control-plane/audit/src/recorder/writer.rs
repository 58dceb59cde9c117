//! The thread that writes: gathers the records of calls, and writes them in large pieces.
//!
//! It sleeps until a caller commits, then gathers for [`GATHER`] at a time, so that a busy gateway
//! does not wake a thread per call. Records that cannot be written stay in memory, and are tried
//! again; meanwhile no room is freed and new calls are refused.

use std::{
    collections::BTreeMap,
    io,
    sync::{
        Arc,
        atomic::{Ordering, fence},
        mpsc::{Receiver, TryRecvError},
    },
    thread,
    time::Duration,
};

use tokio::{sync::oneshot, time::Instant};

use super::{State, Written};
use crate::{
    AuditEvent, Chains, YIELD_EVERY,
    spool::{self, Intent, Spool},
};

/// The outcome of a change whose process was killed in the middle of it.
const INTERRUPTED: &str = "interrupted";
/// Time that committed records wait for others before they are written.
const GATHER: Duration = Duration::from_millis(50);
/// Time after which a failed write is tried again.
const RETRY: Duration = Duration::from_millis(500);
/// Shortest time between two records of refusals.
const REFUSALS_EVERY: Duration = Duration::from_secs(1);
/// The number of gathered bytes that are written in any case.
const BUFFER_BYTES: usize = 256 * 1024;

/// The file that lines go to.
pub(super) trait Sink: Send {
    /// Writes the beginning of `bytes` and returns its length.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize>;
    /// Reports that the text written so far ends with a whole line. `header` makes the beginning of
    /// a further file.
    fn at_line_end(&mut self, header: &mut dyn FnMut() -> Vec<u8>) -> io::Result<()>;
    /// Makes written lines survive a power failure.
    fn sync(&mut self) -> io::Result<()>;
}

impl Sink for Spool {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write(bytes)
    }

    fn at_line_end(&mut self, header: &mut dyn FnMut() -> Vec<u8>) -> io::Result<()> {
        self.at_line_end(header)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.sync()
    }
}

pub(super) struct Writer<S> {
    sink: S,
    receiver: Receiver<Written>,
    state: Arc<State>,
    chains: Chains,
    /// The running changes.
    intents: BTreeMap<String, AuditEvent<'static>>,
    refusals_written: Option<Instant>,
    buffer: Vec<u8>,
    buffered: usize,
    /// Size of calls' contents in the buffer, in bytes.
    held: usize,
    /// The callers that wait for the drained entries. Stored here, so that a dying writer reports
    /// its end before they learn that no answer will arrive.
    flushes: Vec<oneshot::Sender<()>>,
}

/// The result of draining the queue.
#[derive(PartialEq, Eq)]
enum Drained {
    Nothing,
    Something,
    AllGone,
}

impl<S: Sink> Writer<S> {
    pub(super) fn new(
        sink: S,
        receiver: Receiver<Written>,
        state: Arc<State>,
        chains: Chains,
        intents: BTreeMap<String, AuditEvent<'static>>,
    ) -> Self {
        Self {
            sink,
            receiver,
            state,
            chains,
            intents,
            refusals_written: None,
            buffer: Vec::new(),
            buffered: 0,
            held: 0,
            flushes: Vec::new(),
        }
    }

    /// Writes until the last handle is gone.
    pub(super) fn run(mut self) {
        self.end_interrupted();
        loop {
            // Taken first: records that were committed before the flush was requested are drained
            // below.
            self.flushes =
                self.state.lock_flushes().as_mut().map(std::mem::take).unwrap_or_default();
            let drained = self.drain();
            let has_refusals = self.refusals(drained == Drained::AllGone);
            self.write();
            if drained == Drained::AllGone || !self.flushes.is_empty() {
                self.sync();
            }
            for done in self.flushes.drain(..) {
                if done.send(()).is_err() {
                    tracing::trace!("the caller of a flush of the audit record has gone");
                }
            }
            match drained {
                Drained::AllGone => return self.give_up(),
                _ if self.has_failed() => thread::park_timeout(RETRY),
                Drained::Something => thread::park_timeout(GATHER),
                Drained::Nothing if has_refusals => thread::park_timeout(REFUSALS_EVERY),
                Drained::Nothing => self.sleep(),
            }
        }
    }

    /// Waits for the next commit.
    fn sleep(&mut self) {
        self.state.is_idle.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        // A record that came before its caller saw the flag woke no writer.
        let is_asked = self.state.lock_flushes().as_ref().is_some_and(|asked| !asked.is_empty());
        let is_refused = !self.state.lock_refusals().is_empty();
        if self.drain() == Drained::Nothing && !is_asked && !is_refused {
            thread::park();
        }
        self.state.is_idle.store(false, Ordering::Relaxed);
    }

    fn drain(&mut self) -> Drained {
        let mut drained = Drained::Nothing;
        // A caller that waits for a flush must not wait for an end of the stream of calls.
        for _ in 0..self.state.capacity {
            match self.receiver.try_recv() {
                Ok(entry) => {
                    drained = Drained::Something;
                    self.take(entry);
                    self.buffered += 1;
                    if self.buffered.is_multiple_of(YIELD_EVERY) {
                        thread::yield_now();
                    }
                    if self.buffer.len() >= BUFFER_BYTES && !self.has_failed() {
                        self.write();
                    }
                }
                Err(TryRecvError::Empty) => return drained,
                Err(TryRecvError::Disconnected) => return Drained::AllGone,
            }
        }
        drained
    }

    fn take(&mut self, written: Written) {
        match written {
            Written::Call(entry) => {
                self.held += entry.contents.as_ref().map_or(0, |contents| contents.held());
                self.event(&entry.event());
            }
            Written::Tools(entry) => self.event(&entry.event()),
            Written::Event(event) => self.event(&event),
            Written::Intent(intent) => {
                let Intent { id, event } = intent.write(&mut self.buffer);
                self.intents.insert(id, event);
            }
            Written::Done(id, event) => {
                self.event(&event);
                self.intents.remove(&id);
            }
        }
    }

    fn event(&mut self, event: &AuditEvent<'_>) {
        self.chains.append(event, &mut self.buffer);
    }

    /// Ends the changes that were under way when a process was killed: their outcome is unknown.
    fn end_interrupted(&mut self) {
        for (id, mut event) in std::mem::take(&mut self.intents) {
            event.outcome = INTERRUPTED.into();
            self.event(&event.with(spool::CHANGE, id));
        }
        self.write();
    }

    /// Writes how many were refused since the last time, if that is a while ago. Returns true if
    /// refusals still wait.
    fn refusals(&mut self, is_end: bool) -> bool {
        let is_soon = self.refusals_written.is_some_and(|at| at.elapsed() < REFUSALS_EVERY);
        let mut refusals = self.state.lock_refusals();
        if refusals.is_empty() {
            return false;
        }
        if is_soon && !is_end && self.flushes.is_empty() {
            return true;
        }
        let refused = std::mem::take(&mut *refusals);
        drop(refusals);
        for (refusal, count) in refused {
            self.event(&refusal.event(count));
        }
        self.refusals_written = Some(Instant::now());
        false
    }

    fn has_failed(&self) -> bool {
        self.state.has_failed.load(Ordering::Relaxed)
    }

    /// Writes the gathered lines. Room is given back once all of them are written.
    fn write(&mut self) {
        match self.write_all() {
            Ok(()) => {
                self.state.free.fetch_add(self.buffered, Ordering::Relaxed);
                self.buffered = 0;
                self.state.keeping.release(std::mem::take(&mut self.held));
                if self.state.has_failed.swap(false, Ordering::SeqCst) {
                    tracing::warn!("the audit record can be written again; calls are accepted");
                }
            }
            Err(error) => self.fail(&error),
        }
    }

    fn write_all(&mut self) -> io::Result<()> {
        if self.buffer.is_empty() && !self.has_failed() {
            return Ok(());
        }
        let mut at = 0;
        let mut result = Ok(());
        while at < self.buffer.len() && result.is_ok() {
            match self.sink.write(&self.buffer[at..]) {
                Ok(0) => result = Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => at += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => result = Err(error),
            }
        }
        // Written bytes stay out of the next attempt, so that a line is torn only for a while.
        self.buffer.drain(..at);
        result?;
        self.buffer.shrink_to(BUFFER_BYTES);
        let (chains, intents) = (&self.chains, &self.intents);
        self.sink.at_line_end(&mut || spool::header(chains.heads(), intents))?;
        if self.has_failed() { self.sink.sync() } else { Ok(()) }
    }

    fn sync(&mut self) {
        if let Err(error) = self.sink.sync() {
            self.fail(&error);
        }
    }

    /// The last handle is gone: lines that the disk still refuses are lost.
    fn give_up(&self) {
        if self.buffered > 0 {
            tracing::error!(
                records = self.buffered,
                "the last audit records are lost: they could not be written to the disk"
            );
        }
    }

    fn fail(&self, error: &io::Error) {
        if !self.state.has_failed.swap(true, Ordering::SeqCst) {
            tracing::error!(%error, "the audit record cannot be written; calls are refused");
        }
    }
}

impl<S> Drop for Writer<S> {
    /// Also runs when the thread panics: without a writer there are no calls.
    fn drop(&mut self) {
        self.state.has_failed.store(true, Ordering::SeqCst);
        *self.state.lock_flushes() = None;
    }
}
