//! The handle to one child, and its operations.

mod actor;

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::net::unix::pipe;
use tokio::process::ChildStdout;
use tokio::sync::{broadcast, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::hold::Hold;
use crate::log::{LogRing, Reader};
use crate::spawner::{self, Started};
use crate::{ProcessSpec, SpawnError};

/// One child and its tree: all processes that the child started. Clones are handles to the same
/// child. When the last handle is dropped without a call of [`Process::stop`], the tree is killed.
#[derive(Debug, Clone)]
pub struct Process {
    handle: Arc<Handle>,
}

/// The pipes of a child, which belong to the caller alone.
#[derive(Debug)]
pub struct ChildIo {
    /// The child's stdin. Several writers may share it; each writes at once if the pipe has room.
    pub stdin: pipe::Sender,
    pub stdout: ChildStdout,
}

/// The state of a child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProcessState {
    /// The leader lives and no caller asked it to stop.
    Running,
    /// The tree was asked to end, or the leader ended and other processes of the tree run.
    Stopping,
    /// The whole tree is gone.
    Exited(ExitInfo),
}

/// The end of a child.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ExitInfo {
    /// The leader's exit code. If both code and signal are `None`, the status was lost, as when the
    /// runtime shut down first.
    pub code: Option<i32>,
    /// The signal that ended the leader.
    pub signal: Option<i32>,
    /// True if the tree, or a part of it, had to be killed.
    pub forced: bool,
}

impl Process {
    /// Starts a child. Its tasks run on `tracker`, and end with the child.
    ///
    /// Needs a tokio runtime. A future that is dropped leaves no child behind.
    pub async fn spawn(
        spec: ProcessSpec,
        tracker: &TaskTracker,
    ) -> Result<(Self, ChildIo), SpawnError> {
        let Started { owner, watch, io, stderr } = spawner::start(&spec).await?;
        let shared = Arc::new(Shared {
            hold: Arc::clone(&owner.0),
            state: watch::Sender::new(ProcessState::Running),
            stop_requested: CancellationToken::new(),
            was_killed: AtomicBool::new(false),
        });
        let process_id = shared.hold.id();
        let log = spec.log;
        let log_begin = log.begin(process_id);
        let reader = Reader {
            log: log.clone(),
            process_id,
            server_name: spec.server_name,
            redact: spec.redact,
        };
        let reading = tracker.spawn(reader.run(stderr));
        let actor = actor::Actor {
            shared: Arc::clone(&shared),
            grace: spec.stop_grace,
            reading,
            exit: None,
        };
        tracker.spawn(actor.run(owner, watch));
        Ok((Self { handle: Arc::new(Handle { shared, log, log_begin }) }, io))
    }

    /// The leader's process id, which is also the number of its group.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.shared().hold.id()
    }

    /// The current state of the child.
    #[must_use]
    pub fn state(&self) -> ProcessState {
        *self.shared().state.borrow()
    }

    /// Waits until the whole tree is gone and the last lines of its stderr are stored. The future
    /// does not keep the child alive: without a handle the child is killed, and the future
    /// completes soon.
    pub fn exited(&self) -> impl Future<Output = ExitInfo> + Send + Unpin + use<> {
        let mut state = self.shared().state.subscribe();
        Box::pin(async move {
            loop {
                if let ProcessState::Exited(exit) = *state.borrow_and_update() {
                    return exit;
                }
                if state.changed().await.is_err() {
                    return ExitInfo { forced: true, ..ExitInfo::default() };
                }
            }
        })
    }

    /// Stops the tree: SIGTERM, the grace, SIGKILL. All callers share one ladder, which runs to its
    /// end even if a caller stops waiting. A caller closes the child's stdin before, if it wants
    /// to.
    pub async fn stop(&self) -> ExitInfo {
        self.shared().stop_requested.cancel();
        self.exited().await
    }

    /// Kills the tree at once, without waiting. For `Drop` and for code that cannot await.
    pub fn kill_now(&self) {
        self.shared().kill_now();
    }

    /// The last lines of stderr of this child, without those of earlier children; the oldest first.
    #[must_use]
    pub fn log_tail(&self) -> Vec<String> {
        self.handle.log.tail_since(self.handle.log_begin)
    }

    /// Subscribes to future lines of stderr. A slow subscriber loses the oldest lines.
    #[must_use]
    pub fn log_subscribe(&self) -> broadcast::Receiver<Arc<str>> {
        self.handle.log.subscribe()
    }

    /// The ring that stores the lines.
    #[must_use]
    pub fn log(&self) -> &LogRing {
        &self.handle.log
    }

    fn shared(&self) -> &Shared {
        &self.handle.shared
    }
}

/// The shared part of all clones of a [`Process`], and of nothing else: its drop is the last
/// handle's.
struct Handle {
    shared: Arc<Shared>,
    log: LogRing,
    log_begin: u64,
}

impl Drop for Handle {
    fn drop(&mut self) {
        // A stop ladder under way keeps its grace.
        if !self.shared.stop_requested.is_cancelled() {
            self.shared.kill_now();
        }
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle")
            .field("id", &self.shared.hold.id())
            .field("state", &*self.shared.state.borrow())
            .finish_non_exhaustive()
    }
}

/// The messages between the handles and the actor.
struct Shared {
    hold: Arc<Hold>,
    state: watch::Sender<ProcessState>,
    stop_requested: CancellationToken,
    was_killed: AtomicBool,
}

impl Shared {
    fn kill_now(&self) {
        // Before the signal, so that the actor cannot see its effect first.
        self.was_killed.store(true, Ordering::Release);
        self.hold.kill();
    }
}
