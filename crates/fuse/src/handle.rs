//! One open file: what was written, what there is to read, and at which offsets.
//!
//! The kernel says an offset with each read and write, which goes on over both. A request begins
//! where the first write after a result is, and a result where the first read after a request is.

use std::{
    mem,
    sync::{Mutex, MutexGuard, PoisonError},
};

use bytes::Bytes;
use fuser::{Errno, PollNotifier, ReplyData};

use crate::{
    errno::{errno_for, is_cancelled, too_large},
    kept::Outcome,
    tree::Inode,
};

/// An open file.
#[derive(Debug)]
pub(crate) struct Handle {
    pub(crate) inode: Inode,
    pub(crate) mode: Mode,
    state: Mutex<State>,
}

/// What a file was opened for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    Read,
    Write,
    Both,
}

#[derive(Debug, Default)]
struct State {
    /// What was written since the last result.
    request: Vec<u8>,
    /// Where the request begins.
    request_at: u64,
    /// Whether the request has not been made a call of.
    is_unsent: bool,
    /// Whether more was written than a request may have: what comes behind it is dropped with it.
    is_too_large: bool,
    outcome: Option<Outcome>,
    /// Where the result begins; not known before it is read.
    read_at: Option<u64>,
    running: Option<Waiting>,
}

/// Who waits for the call that is under way.
#[derive(Debug, Default)]
struct Waiting {
    reads: Vec<PendingRead>,
    polls: Vec<PollNotifier>,
}

/// A read that is answered once there is a result.
#[derive(Debug)]
pub(crate) struct PendingRead {
    pub(crate) offset: u64,
    pub(crate) size: usize,
    pub(crate) reply: ReplyData,
}

/// What a read finds.
#[derive(Debug)]
pub(crate) enum Reading {
    /// It is answered, now or later.
    Taken,
    /// These bytes are to be made a call of, first.
    Call(PendingRead, Bytes),
    /// Nothing was written here: it is to be looked for elsewhere.
    Nothing(PendingRead),
}

impl Handle {
    pub(crate) fn new(inode: Inode, mode: Mode) -> Self {
        Self { inode, mode, state: Mutex::default() }
    }

    /// Takes what is written.
    pub(crate) fn write(&self, offset: u64, data: &[u8], most: usize) -> Result<(), Errno> {
        let mut state = self.state();
        if state.running.is_some() {
            return Err(Errno::EBUSY);
        }
        if state.is_too_large && offset > state.request_at {
            return Err(Errno::EFBIG);
        }
        if state.outcome.take().is_some() || state.request.is_empty() {
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
            return Err(Errno::EFBIG);
        }
        state.request.truncate(at);
        state.request.extend_from_slice(data);
        state.is_unsent = true;
        Ok(())
    }

    /// Forgets what was written, as opening with truncation does.
    pub(crate) fn truncate(&self) {
        let mut state = self.state();
        if state.running.is_none() {
            *state = State::default();
        }
    }

    /// Answers a read from what there is, or says what has to be done first. `may_wait` is false
    /// where the caller wants no waiting; then a call begins all the same.
    pub(crate) fn read(&self, read: PendingRead, may_wait: bool) -> Reading {
        let mut state = self.state();
        if let Some(waiting) = &mut state.running {
            match may_wait {
                true => waiting.reads.push(read),
                false => read.reply.error(Errno::EAGAIN),
            }
            return Reading::Taken;
        }
        if let Some(outcome) = state.outcome.clone() {
            answer(&mut state.read_at, &outcome, read);
            return Reading::Taken;
        }
        if !mem::take(&mut state.is_unsent) {
            return Reading::Nothing(read);
        }
        state.running = Some(Waiting::default());
        Reading::Call(read, Bytes::copy_from_slice(&state.request))
    }

    /// What is to be made a call of before anybody reads, if anything is.
    pub(crate) fn unsent(&self) -> Option<Bytes> {
        let mut state = self.state();
        if state.running.is_some() || !mem::take(&mut state.is_unsent) {
            return None;
        }
        state.running = Some(Waiting::default());
        Some(Bytes::copy_from_slice(&state.request))
    }

    /// From here on something is fetched that nothing has to be written for.
    pub(crate) fn begin(&self) {
        self.state().running = Some(Waiting::default());
    }

    /// The call has ended so.
    pub(crate) fn end(&self, outcome: &Outcome) {
        let mut state = self.state();
        let waiting = state.running.take().unwrap_or_default();
        state.outcome = Some(outcome.clone());
        state.read_at = None;
        for read in waiting.reads {
            answer(&mut state.read_at, outcome, read);
        }
        drop(state);
        for poll in waiting.polls {
            // Whoever polled has closed it: nobody is to be told.
            if let Err(error) = poll.notify() {
                tracing::debug!(%error, "nobody polls any more");
            }
        }
    }

    /// The fetch has failed, and is tried again by the next read (R-O9).
    pub(crate) fn forget_failure(&self) {
        let mut state = self.state();
        if matches!(state.outcome, Some(Err(_))) {
            state.outcome = None;
        }
    }

    /// Answers a read whose result has just come. Who was interrupted is told so, once: many
    /// programs then read again by themselves, and find that the call was cancelled.
    pub(crate) fn answer(&self, read: PendingRead, outcome: &Outcome) {
        if outcome.as_ref().is_err_and(is_cancelled) {
            return read.reply.error(Errno::EINTR);
        }
        let mut state = self.state();
        answer(&mut state.read_at, outcome, read);
    }

    /// Whether something can be read without waiting. If not, `poll` is told when it can.
    pub(crate) fn is_readable_or_tell(&self, poll: PollNotifier) -> bool {
        let mut state = self.state();
        match &mut state.running {
            Some(waiting) => {
                waiting.polls.push(poll);
                false
            }
            None => !state.is_unsent,
        }
    }

    /// Whether more was written than a request may have.
    pub(crate) fn is_too_large(&self) -> bool {
        self.state().is_too_large
    }

    /// What the last write came to, unless it has not been called.
    pub(crate) fn failure(&self) -> Option<Errno> {
        let state = self.state();
        let outcome = state.outcome.as_ref()?.as_ref();
        outcome.err().map(errno_for)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn answer(read_at: &mut Option<u64>, outcome: &Outcome, read: PendingRead) {
    let PendingRead { offset, size, reply } = read;
    let bytes = match outcome {
        Ok(bytes) => bytes,
        Err(failure) => return reply.error(errno_for(failure)),
    };
    let begin = match *read_at {
        // Who goes back reads from the beginning.
        Some(at) if offset >= at => at,
        _ => offset,
    };
    *read_at = Some(begin);
    let from = usize::try_from(offset - begin).unwrap_or(usize::MAX).min(bytes.len());
    let to = from.saturating_add(size).min(bytes.len());
    reply.data(&bytes[from..to]);
}
