//! Who waits at a file for the call that is under way.

use fuser::{Errno, ReplyData, ReplyEmpty};

use crate::{
    callers::{is_exiting, is_interrupted},
    sizes::PendingSize,
};

/// Who waits for the call that is under way.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    /// Whether anybody has waited so far: then it is given up once nobody does.
    is_asked: bool,
    pub(crate) reads: Vec<PendingRead>,
    pub(crate) flushes: Vec<PendingFlush>,
    /// Those who wait to know how much there is.
    pub(crate) sizes: Vec<PendingSize>,
}

/// A read that is answered once there is a result.
#[derive(Debug)]
pub(crate) struct PendingRead {
    /// Who waits for it.
    pub(crate) thread: u32,
    pub(crate) offset: u64,
    pub(crate) size: usize,
    pub(crate) reply: ReplyData,
}

/// A closing that is answered once there is a result.
#[derive(Debug)]
pub(crate) struct PendingFlush {
    /// Who waits for it.
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

    /// Queues a closing. One by a process that ends is answered at once: it can be told nothing,
    /// and no signal reaches it any more, so that it would stay until the server has answered.
    pub(crate) fn flush(&mut self, flush: PendingFlush) {
        if is_exiting(flush.thread) {
            return flush.reply.ok();
        }
        self.is_asked = true;
        self.flushes.push(flush);
    }

    /// Answers whoever waits and was interrupted. Says whether anybody is left; `None` if nobody
    /// has waited so far.
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
