//! Sizes of files, which programs such as `tar` and `cp` take for the number of bytes to read.
//!
//! The size is known once a file is open and its content is there. The kernel asks for the size of
//! an open file (`fstat`) as it does for that of a path. So the asking thread is looked for among
//! those that have the file open to read, and waits for the content as a read would. All other
//! threads see a size that no content has. Programs that trust it read to the end, or report that
//! they found less than expected.

use std::{sync::Arc, time::Duration};

use fuser::{FileAttr, INodeNo, ReplyAttr};
use narthex_vfs::Node;

use crate::{
    callers::{lineage, process_of},
    filesystem::Files,
    handle::{Handle, Mode},
    lists::BELIEVED_FOR,
    result_cache::Outcome,
    running::{Shared, lock},
    tree::Inode,
};

/// The size of a file whose content is not known: more than any has.
pub(crate) const UNKNOWN: u64 = 1 << 30;

/// The size of an open file that has no content: programs read it, and meet the failure.
/// Programs that fill up missing bytes, such as `tar`, fill up no more than this.
const NONE: u64 = 1;

/// The unit of [`FileAttr::blocks`].
const BLOCK: u64 = 512;

/// A request for a file's size, which is answered once its content is there.
#[derive(Debug)]
pub(crate) struct PendingSize {
    /// The waiting thread.
    pub(crate) thread: u32,
    /// The attributes of the answer but for the size.
    pub(crate) attributes: FileAttr,
    pub(crate) reply: ReplyAttr,
}

impl PendingSize {
    /// Answers with the end of the content, if there is one.
    pub(crate) fn answer(self, end: Option<u64>) {
        // The next one who asks may have the file open as well.
        self.reply.attr(&Duration::ZERO, &sized(self.attributes, end.unwrap_or(NONE)));
    }
}

/// The attributes with a size.
pub(crate) fn sized(attributes: FileAttr, size: u64) -> FileAttr {
    FileAttr { size, blocks: size.div_ceil(BLOCK), ..attributes }
}

/// The end of an outcome that begins at an offset, if it is a content.
pub(crate) fn end_of(outcome: &Outcome, begin: u64) -> Option<u64> {
    outcome.as_ref().ok().map(|bytes| begin + bytes.len() as u64)
}

impl Shared {
    /// Time for which the kernel may believe the attributes of an inode. While the file is open to
    /// be read, the next caller may have it open, and get another size.
    pub(crate) fn believed_for(&self, ino: INodeNo) -> Duration {
        let is_read = lock(&self.handles)
            .values()
            .any(|handle| handle.ino == ino && handle.mode == Mode::Read);
        if is_read { Duration::ZERO } else { BELIEVED_FOR }
    }
}

impl Files {
    /// Answers a thread with the attributes of a file, with its size if the thread has it open.
    pub(crate) fn attributes_for(
        &self,
        thread: u32,
        ino: INodeNo,
        inode: &Inode,
        reply: ReplyAttr,
    ) {
        let attributes = self.tree.attributes(ino, inode);
        let Some(handle) = self.opened_by(thread, ino) else {
            return reply.attr(&self.shared.believed_for(ino), &attributes);
        };
        let size = PendingSize { thread, attributes, reply };
        let is_called = handle.inode.node().is_some_and(Node::is_writable);
        let Some(size) = handle.size(size, !is_called) else { return };
        if is_called {
            return self.size_of_result(&handle, size);
        }
        handle.wait_for_size(size);
        self.shared.call_for_read(&handle, None);
    }

    /// The size of what the thread would read: the result that its tree of processes has left. It
    /// is not taken for the file's content yet, as another one may come before it is read. One that
    /// is under way is waited for as a read would, so that a signal gives up the call.
    fn size_of_result(&self, handle: &Arc<Handle>, size: PendingSize) {
        let Some(call) = self.result_for(handle, size.thread) else {
            // A prompt has a content also where nothing was asked for: that of no arguments.
            if let Some(Node::Prompt(_)) = handle.inode.node() {
                handle.wait_for_size(size);
                return self.shared.call_for_read(handle, None);
            }
            return size.answer(None);
        };
        match call.outcome() {
            Some(outcome) => size.answer(end_of(&outcome, handle.read_to())),
            None if !handle.may_wait => size.answer(None),
            None => {
                handle.wait_for_size(size);
                self.shared.follow(handle, call);
            }
        }
    }

    /// The file that a thread, or a process above it, has open to read; the last one of several.
    fn opened_by(&self, thread: u32, ino: INodeNo) -> Option<Arc<Handle>> {
        let mut open: Vec<(u64, Arc<Handle>)> = lock(&self.shared.handles)
            .iter()
            .filter(|(_, handle)| handle.ino == ino && handle.mode == Mode::Read)
            .map(|(fh, handle)| (*fh, handle.clone()))
            .collect();
        if open.is_empty() {
            return None;
        }
        open.sort_unstable_by_key(|(fh, _)| *fh);
        let last = |is_by: &dyn Fn(u32) -> bool| {
            let found = open.iter().rev().find(|(_, handle)| is_by(handle.opened_by));
            found.map(|(_, handle)| handle.clone())
        };
        let of = |process: u32| last(&|by| process_of(by) == Some(process));
        last(&|by| by == thread)
            .or_else(|| of(process_of(thread)?))
            .or_else(|| lineage(thread).into_iter().find_map(|caller| of(caller.pid())))
    }
}
