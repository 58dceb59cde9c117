//! The callers that wait at a file for the call that is under way.

use fuser::{Errno, ReplyData, ReplyEmpty};

use crate::{
    callers::{is_exiting, is_interrupted},
    sizes::PendingSize,
};

/// The callers that wait for the call that is under way.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    /// True if any caller has waited so far: then the call is given up once none does.
    is_asked: bool,
    pub(crate) reads: Vec<PendingRead>,
    pub(crate) flushes: Vec<PendingFlush>,
    /// The callers that wait for the size of the content.
    pub(crate) sizes: Vec<PendingSize>,
}

/// A read that is answered once there is a result.
#[derive(Debug)]
pub(crate) struct PendingRead {
    /// The waiting thread.
    pub(crate) thread: u32,
    pub(crate) offset: u64,
    pub(crate) size: usize,
    pub(crate) reply: ReplyData,
}

/// A closing that is answered once there is a result.
#[derive(Debug)]
pub(crate) struct PendingFlush {
    /// The waiting thread.
    pub(crate) thread: u32,
    pub(crate) reply: ReplyEmpty,
}

impl Waiting {
    /// Queues a read, unless its caller wants no waiting.
    pub(crate) fn read(&mut self, read: PendingRead, may_wait: bool) {
        if !may_wait {
            return read.reply.error(Errno::EAGAIN);
        }
        self.is_asked = true;
        self.reads.push(read);
    }

    /// Queues who asks for a size.
    pub(crate) fn size(&mut self, size: PendingSize) {
        self.is_asked = true;
        self.sizes.push(size);
    }

    /// Queues a closing. One by a process that exits is answered at once: it can receive no error,
    /// and no signal reaches it any more, so that it would stay until the server has answered.
    pub(crate) fn flush(&mut self, flush: PendingFlush) {
        if is_exiting(flush.thread) {
            return flush.reply.ok();
        }
        self.is_asked = true;
        self.flushes.push(flush);
    }

    /// Answers the waiting callers that were interrupted. True if any caller is left; `None` if
    /// none has waited so far.
    pub(crate) fn is_waited_for(&mut self) -> Option<bool> {
        for read in self.reads.extract_if(.., |read| is_interrupted(read.thread)) {
            read.reply.error(Errno::EINTR);
        }
        for flush in self.flushes.extract_if(.., |flush| is_interrupted(flush.thread)) {
            flush.reply.error(Errno::EINTR);
        }
        for size in self.sizes.extract_if(.., |size| is_interrupted(size.thread)) {
            size.answer(None);
        }
        let is_left = self.reads.is_empty() && self.flushes.is_empty() && self.sizes.is_empty();
        self.is_asked.then_some(!is_left)
    }
}
