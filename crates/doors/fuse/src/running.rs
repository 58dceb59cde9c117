//! The slow work: calls and fetches, each a task of its own that always ends and always answers.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
};

use bytes::Bytes;
use fuser::{Errno, INodeNo, Notifier, OpenFlags, ReplyEmpty};
use narthex_vfs::{Failure, Node, Operation, Process, VfsError};
use tokio::{
    runtime::Handle as Runtime,
    sync::oneshot,
    time::{Duration, Instant, timeout},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    callers::{Caller, is_interrupted, lineage},
    errno::{cancelled, errno_for, unmounted},
    handle::{Handle, Mode},
    inline_task::begin,
    interrupt_timer::InterruptTimer,
    lists::{Listed, Lists},
    result_cache::{Call, Outcome, ResultCache},
    waiting::PendingFlush,
};

/// Up to how many bytes of a request a call begins on the thread that takes the kernel's requests:
/// others wait for that meanwhile.
const AT_ONCE_MOST: usize = 64 << 10;

/// Longest time for which the look-up of a name waits for the list of its directory.
const LOOKED_UP_WITHIN: Duration = Duration::from_millis(250);

/// The state that all files share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) process: Arc<Process>,
    pub(crate) lists: Lists,
    pub(crate) results: ResultCache,
    /// The open files, by number.
    pub(crate) handles: Mutex<HashMap<u64, Arc<Handle>>>,
    pub(crate) runtime: Runtime,
    pub(crate) tasks: TaskTracker,
    pub(crate) interrupts: Arc<InterruptTimer>,
    /// Ends everything that is under way.
    pub(crate) stopping: CancellationToken,
    /// The most bytes of one request.
    pub(crate) write_bytes: usize,
    /// The channel for notifications to the kernel, once there is one.
    pub(crate) notifier: OnceLock<Notifier>,
}

impl Shared {
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn_on(task, &self.runtime);
    }

    /// A task that begins here, unless its request is large: what it can do without waiting is done
    /// when this returns, such as to send the request. To wake another thread costs more than that.
    fn begin(&self, request_bytes: usize, task: impl Future<Output = ()> + Send + 'static) {
        if request_bytes > AT_ONCE_MOST {
            return self.spawn(task);
        }
        begin(&self.runtime, Box::pin(self.tasks.track_future(task)));
    }

    /// Fetches the list of a directory anew, unless its caller gives up or the folder is unmounted
    /// before.
    pub(crate) async fn list(&self, path: &str, thread: u32) -> Result<Arc<Listed>, Errno> {
        tokio::select! {
            biased;
            listed = self.fetch(path, true) => listed,
            () = self.interrupt(thread) => Err(Errno::EINTR),
        }
    }

    /// Fetches a list without a caller that may give up.
    async fn fetch(&self, path: &str, is_anew: bool) -> Result<Arc<Listed>, Errno> {
        tokio::select! {
            biased;
            () = self.stopping.cancelled() => Err(errno_for(&unmounted())),
            fetched = self.lists.fetch(path, is_anew) => fetched,
        }
    }

    /// True if a directory has a name; `None` where its server is slow to list.
    ///
    /// A program that wants to make a file there, as each `>` may, waits in the kernel meanwhile,
    /// and no signal reaches the program. So this waits for a moment alone, and the list comes for
    /// the next look-up.
    pub(crate) async fn has(
        self: &Arc<Self>,
        path: &str,
        name: &str,
    ) -> Result<Option<bool>, Errno> {
        if self.lists.is_late(path, LOOKED_UP_WITHIN) {
            return Ok(None);
        }
        let (shared, of) = (self.clone(), path.to_owned());
        let (listed, told) = oneshot::channel();
        self.spawn(async move {
            // The caller may not wait for it any more.
            drop(listed.send(shared.fetch(&of, false).await));
        });
        match timeout(LOOKED_UP_WITHIN, told).await {
            Ok(Ok(listed)) => Ok(Some(listed?.get(name).is_some())),
            Ok(Err(_)) | Err(_) => Ok(None),
        }
    }

    /// Notes that a program has looked for a name that is absent or not allowed. Programs look for
    /// names with a leading dot on their own everywhere, and such a note would hide an earlier
    /// failure.
    pub(crate) fn note_looked_for(&self, path: &str, name: &str, failure: Failure) {
        if !name.starts_with('.') {
            self.process.note(Operation::Stat, path, failure);
        }
    }

    /// Checks that an open file is still of use (S29). The failure is noted.
    pub(crate) fn check(&self, handle: &Handle, operation: Operation) -> Result<(), Failure> {
        let checked = self.process.check(&handle.lease);
        checked.inspect_err(|failure| {
            self.process.note(operation, &handle.inode.path, failure.clone());
        })
    }

    /// Notifies the pollers of files that are of no use any more: their event loops would never ask
    /// again.
    pub(crate) fn tell_of_what_is_over(&self) {
        let open: Vec<_> = lock(&self.handles).values().cloned().collect();
        for handle in open {
            if self.process.check(&handle.lease).is_err() {
                handle.tell_pollers();
            }
        }
    }

    /// Calls the written request, or fetches a file that needs no request, and answers the waiting
    /// readers of the handle.
    pub(crate) fn call_for_read(self: &Arc<Self>, handle: &Arc<Handle>, request: Option<Bytes>) {
        let (shared, handle) = (self.clone(), handle.clone());
        self.begin(request.as_ref().map_or(0, Bytes::len), async move {
            let is_fetch = request.is_none();
            let outcome = shared.call(&handle, request, &Call::begun(&handle)).await;
            match is_fetch {
                true => handle.end_fetch(&outcome),
                false => handle.end(&outcome),
            }
        });
    }

    /// Gives the callers that wait at `handle` the result of another caller's `call`.
    pub(crate) fn follow(self: &Arc<Self>, handle: &Arc<Handle>, call: Arc<Call>) {
        call.join(handle);
        let (shared, handle) = (self.clone(), handle.clone());
        self.spawn(async move {
            let outcome = tokio::select! {
                biased;
                () = shared.stopping.cancelled() => Err(unmounted()),
                outcome = call.wait() => outcome,
            };
            handle.end(&outcome);
        });
    }

    /// Calls the written request of a file that is about to be closed: the next reader of the file
    /// waits for the call, and gets its outcome.
    pub(crate) fn call_for_close(
        self: &Arc<Self>,
        handle: &Arc<Handle>,
        request: Bytes,
        flush: PendingFlush,
    ) {
        let (shared, handle) = (self.clone(), handle.clone());
        // A process that closes by exiting is answered at once: the process must be found before
        // that, and the process that reads the result next.
        let call = Call::begun(&handle);
        self.keep(&handle, flush.thread, call.clone());
        handle.wait_to_close(flush);
        self.begin(request.len(), async move {
            let outcome = shared.call(&handle, Some(request), &call).await;
            shared.results.end(&call, &outcome);
            handle.end(&outcome);
        });
    }

    /// Keeps a call for who closes a file, and for who has opened it: a shell opens what its
    /// programs write to.
    pub(crate) fn keep(&self, handle: &Handle, closer: u32, call: Arc<Call>) {
        if let Some(opener) = handle.other_opener(closer) {
            self.results.keep_call(handle, opener, call.clone());
        }
        self.results.keep_call(handle, &lineage(closer), call);
    }

    /// Fails an incomplete request as a call of it fails, and answers the program that closed the
    /// file.
    pub(crate) fn refuse(
        self: &Arc<Self>,
        handle: &Arc<Handle>,
        request: Bytes,
        lineage: Vec<Caller>,
        reply: Option<ReplyEmpty>,
    ) {
        let (shared, handle) = (self.clone(), handle.clone());
        self.spawn(async move {
            let outcome = shared.call(&handle, Some(request), &Call::begun(&handle)).await;
            let failed = outcome.as_ref().err().map(errno_for);
            shared.results.keep(&handle, &lineage, outcome);
            match (reply, failed) {
                (Some(reply), Some(errno)) => reply.error(errno),
                (Some(reply), None) => reply.ok(),
                (None, _) => {}
            }
        });
    }

    /// One call or fetch as the namespace does it: open, write, read, close.
    async fn call(&self, handle: &Handle, request: Option<Bytes>, call: &Call) -> Outcome {
        let path = &handle.inode.path;
        let operation = if request.is_some() { Operation::Write } else { Operation::Read };
        let (began, bytes) = (Instant::now(), request.as_ref().map(Bytes::len));
        self.check(handle, operation)?;
        let held = self.process.hold(path).map_err(failure)?;
        let doing = async {
            if let Some(request) = request {
                held.write(request).await?;
            }
            held.read().await
        };
        tokio::select! {
            biased;
            () = self.stopping.cancelled() => Err(unmounted()),
            done = doing => done.map_err(failure),
            () = self.given_up(call) => {
                self.process.note_since(began, (operation, path), bytes, cancelled());
                Err(cancelled())
            }
        }
    }

    /// Has the kernel ask anew for the attributes of a file.
    pub(crate) fn forget_attributes(&self, ino: INodeNo) {
        // A negative offset: what was read of it is no matter.
        let told = self.notifier.get().map(|notifier| notifier.inval_inode(ino, -1, 0));
        if let Some(Err(error)) = told {
            tracing::debug!(%error, "the kernel keeps what it knows of a file");
        }
    }

    /// Resolves once a thread that waits was sent a signal that should end it, or is gone.
    async fn interrupt(&self, thread: u32) {
        let watched = self.interrupts.watch();
        loop {
            watched.look().await;
            if is_interrupted(thread) {
                return;
            }
        }
    }

    /// Answers each waiting reader of a call that is interrupted; resolves once no reader is left.
    async fn given_up(&self, call: &Call) {
        let watched = self.interrupts.watch();
        loop {
            watched.look().await;
            if call.is_given_up() {
                return;
            }
        }
    }
}

pub(crate) fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// True if a caller wants to wait.
pub(crate) fn may_wait(OpenFlags(flags): OpenFlags) -> bool {
    let nonblocking = rustix::fs::OFlags::NONBLOCK.bits();
    flags.cast_unsigned() & nonblocking == 0
}

fn failure(error: VfsError) -> Failure {
    *error.failure
}

/// True if writes go to the end, at any offset of the kernel.
pub(crate) fn appends(OpenFlags(flags): OpenFlags) -> bool {
    flags.cast_unsigned() & rustix::fs::OFlags::APPEND.bits() != 0
}

/// The mode for which a file is opened, if it can be.
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
