//! What takes time: calls and fetches, each a task of its own that always ends and always answers.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use fuser::{Errno, OpenFlags, ReplyEmpty};
use narthex_mount::{Failure, Node, Process, VfsError};
use tokio::{runtime::Handle as Runtime, time::sleep};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    callers::{is_interrupted, lineage},
    errno::{cancelled, errno_for, unmounted},
    handle::{Handle, Mode, PendingRead},
    kept::{Kept, Outcome},
    lists::Lists,
};

/// How often a caller that waits is looked at: it cannot say by itself that it was interrupted,
/// since the kernel's request for that has no place in the library.
const LOOKED_AT: Duration = Duration::from_millis(100);

/// What all files share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) process: Arc<Process>,
    pub(crate) lists: Lists,
    pub(crate) kept: Kept,
    pub(crate) runtime: Runtime,
    pub(crate) tasks: TaskTracker,
    /// Ends everything that is under way.
    pub(crate) stopping: CancellationToken,
    /// The most bytes of one request.
    pub(crate) write_bytes: usize,
}

impl Shared {
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn_on(task, &self.runtime);
    }

    /// Calls what was written, or fetches what nothing has to be written for, and answers the read
    /// that asks for it.
    pub(crate) fn call_for_read(
        self: &Arc<Self>,
        handle: &Arc<Handle>,
        (read, request): (PendingRead, Option<Bytes>),
        (thread, flags): (u32, OpenFlags),
    ) {
        let is_fetch = request.is_none();
        if is_fetch {
            handle.begin();
        }
        let (shared, handle) = (self.clone(), handle.clone());
        let read = unless_impatient(read, flags);
        let watched = read.as_ref().map(|_| thread);
        self.spawn(async move {
            let outcome = shared.call(&handle, request, watched).await;
            handle.end(&outcome);
            if let Some(read) = read {
                handle.answer(read, &outcome);
            }
            if is_fetch {
                handle.forget_failure();
            }
        });
    }

    /// Calls what was written, since it is about to be closed: whoever reads the file next finds
    /// what came of it.
    pub(crate) fn call_for_close(
        self: &Arc<Self>,
        handle: &Arc<Handle>,
        request: Bytes,
        thread: u32,
        reply: ReplyEmpty,
    ) {
        let (shared, handle) = (self.clone(), handle.clone());
        let lineage = lineage(thread);
        self.spawn(async move {
            let outcome = shared.call(&handle, Some(request), Some(thread)).await;
            handle.end(&outcome);
            let failed = outcome.as_ref().err().map(errno_for);
            shared.kept.keep(&handle.inode.path, &lineage, outcome);
            match failed {
                None => reply.ok(),
                Some(errno) => reply.error(errno),
            }
        });
    }

    /// Calls what was written, without anybody who waits.
    pub(crate) fn call_for_poll(self: &Arc<Self>, handle: &Arc<Handle>, request: Bytes) {
        let (shared, handle) = (self.clone(), handle.clone());
        self.spawn(async move {
            let outcome = shared.call(&handle, Some(request), None).await;
            handle.end(&outcome);
        });
    }

    /// One call or fetch as the namespace does it: open, write, read, close.
    async fn call(&self, handle: &Handle, request: Option<Bytes>, watched: Option<u32>) -> Outcome {
        let path = &handle.inode.path;
        let fd = self.process.open(path).map_err(failure)?;
        let doing = async {
            if let Some(request) = request {
                self.process.write(fd, request).await?;
            }
            self.process.read(fd, 0).await
        };
        let done = tokio::select! {
            biased;
            () = self.stopping.cancelled() => Err(unmounted()),
            done = doing => done.map_err(failure),
            () = interrupt(watched) => Err(cancelled()),
        };
        // What was unmounted meanwhile has closed it by itself.
        if let Err(error) = self.process.close(fd) {
            tracing::debug!(%error, "the descriptor was closed already");
        }
        done
    }
}

/// The read, if its caller waits for the result; one who does not is answered at once.
fn unless_impatient(read: PendingRead, flags: OpenFlags) -> Option<PendingRead> {
    if may_wait(flags) {
        return Some(read);
    }
    read.reply.error(Errno::EAGAIN);
    None
}

/// Whether a caller wants to wait.
pub(crate) fn may_wait(OpenFlags(flags): OpenFlags) -> bool {
    let nonblocking = rustix::fs::OFlags::NONBLOCK.bits();
    flags.cast_unsigned() & nonblocking == 0
}

/// Resolves once the thread that waits was sent a signal that should end it, or is gone.
async fn interrupt(watched: Option<u32>) {
    let Some(thread) = watched else { return std::future::pending().await };
    loop {
        sleep(LOOKED_AT).await;
        if is_interrupted(thread) {
            return;
        }
    }
}

fn failure(error: VfsError) -> Failure {
    *error.failure
}

/// What a file is opened for, if it can be.
pub(crate) fn mode(flags: OpenFlags, node: &Node) -> Result<Mode, Errno> {
    let mode = match flags.acc_mode() {
        fuser::OpenAccMode::O_RDONLY => Mode::Read,
        fuser::OpenAccMode::O_WRONLY => Mode::Write,
        fuser::OpenAccMode::O_RDWR => Mode::Both,
    };
    match node {
        _ if node.is_directory() => Err(Errno::EISDIR),
        _ if mode != Mode::Read && !node.is_writable() => Err(Errno::EACCES),
        _ => Ok(mode),
    }
}
