//! One open file: its written request, its readable result, and their offsets.
//!
//! The kernel sends an offset with each read and write, which counts over both. A request begins
//! where the first write after a result is, and a result where the first read after a request is.

use std::{
    mem,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bytes::Bytes;
use fuser::{INodeNo, PollEvents, PollNotifier};
use narthex_vfs::{Failure, Lease, Node};

use crate::{
    callers::{Caller, is_interrupted, lineage, process_of},
    errno::{errno_for, too_large, unread},
    next::{Flushing, Reading, Refused, Written},
    request_text::{ObjectReader, is_blank, is_incomplete},
    result_cache::Outcome,
    sizes::{PendingSize, end_of},
    tree::Inode,
    waiting::{PendingFlush, PendingRead, Waiting},
};

/// An open file.
#[derive(Debug)]
pub(crate) struct Handle {
    pub(crate) inode: Inode,
    pub(crate) mode: Mode,
    /// The server as it was when it was opened.
    pub(crate) lease: Lease,
    /// The canonical path of the file, the same for each path by which it can be opened.
    pub(crate) file: Arc<str>,
    /// The number by which the kernel knows the file.
    pub(crate) ino: INodeNo,
    /// The thread that opened it.
    pub(crate) opened_by: u32,
    /// True if reads wait for a result that is not there yet.
    pub(crate) may_wait: bool,
    /// The process that opened it to write, and those above it. Others may have inherited it.
    opener: Vec<Caller>,
    state: Mutex<State>,
}

/// The facts about the opening of a file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Opened {
    pub(crate) ino: INodeNo,
    pub(crate) mode: Mode,
    pub(crate) may_wait: bool,
    /// The thread that has opened it.
    pub(crate) thread: u32,
}

/// The access for which a file was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    Read,
    Write,
    Both,
}

#[derive(Debug, Default)]
struct State {
    /// The bytes written since the last result.
    request: Vec<u8>,
    /// The offset where the request begins.
    request_at: u64,
    /// The progress of the request's object.
    object: ObjectReader,
    /// True if the request has not been called.
    is_unsent: bool,
    /// True if the request has been called, and is gone with the call.
    is_called: bool,
    /// True if no read was answered with the outcome, or has waited for it.
    is_unread: bool,
    /// True if more was written than a request may have: the excess is dropped with the request.
    is_too_large: bool,
    outcome: Option<Outcome>,
    /// True if the outcome is forgotten once a read was answered with it.
    is_told_once: bool,
    /// The offset where the result begins; not known before it is read.
    read_at: Option<u64>,
    /// The end of the reads so far, where only reads move the descriptor.
    read_to: u64,
    running: Option<Waiting>,
    /// The pollers: the kernel notifies all pollers of one open file through one notifier.
    poll: Option<PollNotifier>,
    /// True if no process has the file open any more.
    is_released: bool,
    /// The process that closed it last before the request was whole without getting an error, and
    /// the processes above it.
    left_by: Option<Vec<Caller>>,
}

impl Handle {
    /// A file that has been opened.
    pub(crate) fn new(inode: Inode, lease: Lease, opened: &Opened) -> Self {
        let Opened { ino, mode, may_wait, thread } = *opened;
        let opener = if mode == Mode::Write { lineage(thread) } else { Vec::new() };
        let file = lease.path(inode.node().unwrap_or(&Node::Root)).into();
        let state = Mutex::default();
        Self { inode, mode, lease, file, ino, opened_by: thread, may_wait, opener, state }
    }

    /// Takes what is written: at an offset, or at the end (`None`). Gives what is to be made a call
    /// of at once: a whole object, on a descriptor that can be read.
    pub(crate) fn write(
        &self,
        offset: Option<u64>,
        data: &[u8],
        most: usize,
    ) -> Result<Written, Refused> {
        let mut state = self.state();
        // The end of a line behind a request is no request, and leaves its result.
        let is_called = state.running.is_some() || state.outcome.is_some();
        if is_called && !state.is_too_large && is_blank(data) {
            // A reader on the same descriptor is moved by it, and misses no part of the result.
            let moved = state.read_at.zip(offset).filter(|(at, offset)| offset >= at);
            if let Some((at, _)) = moved {
                state.read_at = Some(at + data.len() as u64);
            }
            return Ok(Written::default());
        }
        if state.running.is_some() {
            return Err(Refused::Busy);
        }
        if state.is_too_large && offset.is_none_or(|offset| offset > state.request_at) {
            return Err(Refused::TooLarge);
        }
        let offset = offset.unwrap_or(state.request_at + state.request.len() as u64);
        state.is_told_once = false;
        let is_lost = state.outcome.take().is_some() && state.is_called && state.is_unread;
        if state.is_called || state.request.is_empty() {
            state.is_called = false;
            state.request.clear();
            state.request_at = offset;
            state.read_at = None;
            state.is_too_large = false;
        }
        let at = usize::try_from(offset.saturating_sub(state.request_at)).unwrap_or(usize::MAX);
        // Before the request's begin, or after a gap: a request of its own.
        let at = match at <= state.request.len() && offset >= state.request_at {
            true => at,
            false => {
                state.request.clear();
                state.request_at = offset;
                0
            }
        };
        if at.saturating_add(data.len()) > most {
            state.request = Vec::new();
            state.is_unsent = false;
            state.is_too_large = true;
            state.outcome = Some(Err(too_large(most)));
            return Err(Refused::TooLarge);
        }
        if at == 0 || at < state.request.len() {
            state.object = ObjectReader::default();
        }
        state.request.truncate(at);
        state.request.extend_from_slice(data);
        state.is_unsent = true;
        state.is_unread = true;
        let request = if self.mode == Mode::Both { state.whole() } else { None };
        Ok(Written { request, is_lost: self.mode == Mode::Both && is_lost })
    }

    /// Forgets what was written, as opening with truncation does. Who polls looks again: what could
    /// be read before cannot any more, and more can be written.
    pub(crate) fn truncate(&self) {
        let mut state = self.state();
        if state.running.is_some() {
            return;
        }
        *state = State { poll: state.poll.take(), ..State::default() };
        drop(state);
        self.tell_pollers();
    }

    /// Answers a read from the present content, or returns the work to do first. `may_wait` is
    /// false where the caller wants no waiting; then a call starts all the same.
    pub(crate) fn read(&self, read: PendingRead, may_wait: bool) -> Reading {
        let mut state = self.state();
        state.is_unread = false;
        if let Some(waiting) = &mut state.running {
            waiting.read(read, may_wait);
            return Reading::Taken;
        }
        if let Some(outcome) = state.outcome.clone() {
            state.answer(self.mode, &outcome, read);
            if mem::take(&mut state.is_told_once) {
                state.outcome = None;
            }
            return Reading::Taken;
        }
        // A reader that is sent a signal just now must be found as a waiting one: a call without
        // waiting readers is given up.
        if !state.take_unsent() {
            state.running = Some(Waiting::default());
            return Reading::Nothing(read);
        }
        state.running.insert(Waiting::default()).read(read, may_wait);
        Reading::Call(state.called())
    }

    /// Answers a read of a file that is of no use any more: no process reads the earlier outcome.
    pub(crate) fn refuse(&self, read: PendingRead, failure: &Failure) {
        self.state().is_unread = false;
        read.reply.error(errno_for(failure));
    }

    /// Answers a request for the size, or keeps it until the running call ends. Gives the request
    /// back if no call runs.
    pub(crate) fn size(&self, size: PendingSize, may_wait: bool) -> Option<PendingSize> {
        let mut state = self.state();
        if let Some(outcome) = &state.outcome {
            size.answer(end_of(outcome, state.read_at.unwrap_or(state.read_to)));
            return None;
        }
        match &mut state.running {
            Some(waiting) if may_wait || self.may_wait => waiting.sizes.push(size),
            Some(_) => size.answer(None),
            None => return Some(size),
        }
        None
    }

    /// Makes a caller that asks for the size wait for the result.
    pub(crate) fn wait_for_size(&self, size: PendingSize) {
        self.state().running.get_or_insert_default().size(size);
    }

    /// The end of the reads so far.
    pub(crate) fn read_to(&self) -> u64 {
        self.state().read_to
    }

    /// Has a read wait for what is under way.
    pub(crate) fn wait(&self, read: PendingRead, may_wait: bool) {
        self.state().running.get_or_insert_default().read(read, may_wait);
    }

    /// Has a closing wait for what is under way.
    pub(crate) fn wait_to_close(&self, flush: PendingFlush) {
        self.state().running.get_or_insert_default().flush(flush);
    }

    /// Answers a closing, or returns the work to do first. A descriptor that another process has
    /// inherited is closed in the same way: only a whole request is called. A process that closes
    /// by exiting is answered at once: it cannot receive an error, nor be killed before.
    pub(crate) fn flush(&self, flush: PendingFlush) -> Flushing {
        let mut state = self.state();
        if let Some(waiting) = &mut state.running {
            waiting.flush(flush);
            return Flushing::Taken;
        }
        if !state.is_unsent || is_blank(&state.request) {
            state.is_unsent = false;
            if state.is_too_large {
                return Flushing::TooLarge(flush);
            }
            flush.reply.ok();
            return Flushing::Taken;
        }
        let is_interrupted = is_interrupted(flush.thread);
        if !is_interrupted && !is_incomplete(&state.request) {
            state.is_unsent = false;
            state.running = Some(Waiting::default());
            return Flushing::Call(flush, state.called());
        }
        if !self.is_opener(flush.thread) {
            // Another process that has the file open may write the rest.
            state.left_by = (!is_interrupted).then(|| lineage(flush.thread));
            flush.reply.ok();
            return Flushing::Taken;
        }
        state.left_by = None;
        if is_interrupted {
            state.is_unsent = false;
            state.request = Vec::new();
            return Flushing::Dropped(flush);
        }
        Flushing::Incomplete(flush, Bytes::copy_from_slice(&state.request))
    }

    /// The process that opened the file to write, and the processes above it, if another process
    /// closes it.
    pub(crate) fn other_opener(&self, closer: u32) -> Option<&[Caller]> {
        (!self.is_opener(closer)).then_some(&self.opener)
    }

    fn is_opener(&self, thread: u32) -> bool {
        process_of(thread) == self.opener.first().map(Caller::pid).filter(|pid| *pid != 0)
    }

    /// The unfinished request and the process that left it, now that no process has the file open.
    /// `None` if that process got an error.
    pub(crate) fn unfinished(&self) -> Option<(Bytes, Vec<Caller>)> {
        let mut state = self.state();
        let by = state.left_by.take().filter(|_| state.is_unsent)?;
        Some((Bytes::from(mem::take(&mut state.request)), by))
    }

    /// Answers the waiting readers that were interrupted. True if any reader is left; `None` if no
    /// reader has waited so far, and one may.
    pub(crate) fn is_waited_for(&self) -> Option<bool> {
        let mut state = self.state();
        let is_released = state.is_released;
        let is_waited_for = state.running.as_mut()?.is_waited_for();
        is_waited_for.or(is_released.then_some(false))
    }

    /// Notes that no process has the file open any more: a call whose result could be read here
    /// alone is given up. Returns the failure to report if a request was written to be read and its
    /// result was never read.
    pub(crate) fn release(&self) -> Option<Failure> {
        let mut state = self.state();
        // A request of another process belongs to that process.
        let is_own = self.mode == Mode::Both && (state.is_called || !is_blank(&state.request));
        state.is_released = is_own;
        (is_own && state.is_unread).then(|| unread(state.is_called))
    }

    /// Takes the bytes to call before any read, if there are any. A request that lacks its end may
    /// still get it; a request that no end can make whole fails at once.
    pub(crate) fn hopeless(&self) -> Option<Bytes> {
        let mut state = self.state();
        if state.running.is_some() || !state.object.is_none() || !state.take_unsent() {
            return None;
        }
        state.running = Some(Waiting::default());
        Some(state.called())
    }

    /// The call has ended so.
    pub(crate) fn end(&self, outcome: &Outcome) {
        self.end_with(outcome, false);
    }

    /// Ends the fetch with an outcome. A failed fetch is repeated by the next read after the read
    /// that got the failure (R-O9).
    pub(crate) fn end_fetch(&self, outcome: &Outcome) {
        self.end_with(outcome, outcome.is_err());
    }

    fn end_with(&self, outcome: &Outcome, is_told_once: bool) {
        let mut state = self.state();
        let waiting = state.running.take().unwrap_or_default();
        // A caller that asks for a size gets no failure.
        let is_told = is_told_once && !(waiting.reads.is_empty() && waiting.sizes.is_empty());
        state.outcome = (!is_told).then(|| outcome.clone());
        state.is_told_once = is_told_once && !is_told;
        state.read_at = None;
        for size in waiting.sizes {
            size.answer(end_of(outcome, state.read_to));
        }
        for read in waiting.reads {
            state.answer(self.mode, outcome, read);
        }
        drop(state);
        for flush in waiting.flushes {
            match outcome {
                Ok(_) => flush.reply.ok(),
                Err(failure) => flush.reply.error(errno_for(failure)),
            }
        }
        self.tell_pollers();
    }

    /// Wakes the program that polls the file.
    pub(crate) fn tell_pollers(&self) {
        let poll = self.state().poll.take();
        // The poller may have closed the file: then no notification is needed.
        if let Some(Err(error)) = poll.map(PollNotifier::notify) {
            tracing::debug!(%error, "no program polls the file any more");
        }
    }

    /// Answers a read whose result was found elsewhere.
    pub(crate) fn answer(&self, read: PendingRead, outcome: &Outcome) {
        self.state().answer(self.mode, outcome, read);
    }

    /// The operations that need no waiting. `poll` is notified of new content to read, also if
    /// there already is some: a poller that gets only changes does not ask again before.
    pub(crate) fn ready_or_tell(&self, poll: PollNotifier) -> PollEvents {
        let mut state = self.state();
        state.poll = Some(poll);
        let writable = PollEvents::POLLOUT | PollEvents::POLLWRNORM;
        let readable = PollEvents::POLLIN | PollEvents::POLLRDNORM;
        match (&state.running, &state.outcome) {
            (Some(_), _) => PollEvents::empty(),
            // The rest of a request is to come.
            (None, _) if state.is_unsent => writable,
            (None, Some(Err(_))) => readable | PollEvents::POLLERR,
            (None, _) => readable | writable,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// True if there was an uncalled request. From here on it counts as called.
    fn take_unsent(&mut self) -> bool {
        mem::take(&mut self.is_unsent) && !is_blank(&self.request)
    }

    /// The request, if it is whole: from here on it is under way.
    fn whole(&mut self) -> Option<Bytes> {
        if !self.object.is_whole(&self.request) {
            return None;
        }
        self.is_unsent = false;
        self.running = Some(Waiting::default());
        Some(self.called())
    }

    fn answer(&mut self, mode: Mode, outcome: &Outcome, read: PendingRead) {
        let PendingRead { offset, size, reply, thread: _ } = read;
        let bytes = match outcome {
            Ok(bytes) => bytes,
            Err(failure) => return reply.error(errno_for(failure)),
        };
        let begin = match self.read_at {
            // A reader that goes back reads from the beginning.
            Some(at) if offset >= at => at,
            _ if mode == Mode::Read => offset.min(self.read_to),
            _ => offset,
        };
        self.read_at = Some(begin);
        let from = usize::try_from(offset - begin).unwrap_or(usize::MAX).min(bytes.len());
        let to = from.saturating_add(size).min(bytes.len());
        self.read_to = self.read_to.max(offset + (to - from) as u64);
        reply.data(&bytes[from..to]);
    }

    /// The request, for its call.
    fn called(&mut self) -> Bytes {
        self.is_called = true;
        mem::take(&mut self.request).into()
    }
}
