//! Follows the files of the global and the project layer, and tells what they declare now.
//!
//! Made for whoever applies a set to a registry: load once, apply that, start, and then apply what
//! each [`LayersEvent::Changed`] brings. A file counts with its last good content: one that cannot
//! be read, is no configuration, or is not approved is reported, and the set stays (E118, D27).
//! Nothing here starts, stops or knows a connection, and failures are told, not logged.

mod content;
mod follow;
mod sight;
mod state;
mod subscription;
mod trail;

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use tokio::sync::{Mutex, watch};
use tokio_util::{
    sync::{CancellationToken, DropGuard},
    task::TaskTracker,
};

use crate::config::{Entry, Variables};

use self::{
    content::{Origin, Source},
    follow::Follower,
    state::Shared,
};

pub use content::{FollowError, Refused};
pub use sight::Watching;
pub use state::{FileState, LayersState};
pub use subscription::{LayersEvent, Subscription};

/// How long a file must be quiet before it is read (E121).
const DEBOUNCE: Duration = Duration::from_millis(200);
/// How often files are looked at where the system cannot tell of changes.
const POLL_INTERVAL: Duration = Duration::from_secs(2);
/// How long a file may take to be read until that is told.
const READ_DEADLINE: Duration = Duration::from_secs(10);

/// Decides whether the content of a project's file may count (D27). Called with the file and the
/// text that will be parsed, on a thread that may block.
pub type Approve = Arc<dyn Fn(&Path, &[u8]) -> Result<(), Refused> + Send + Sync>;

/// Which files are followed, and how.
#[derive(Clone)]
pub struct LayerOptions {
    /// The user's settings file, whose `mcp.servers` are the global layer.
    pub settings: Option<PathBuf>,
    /// The project's file. Without it none is read (E8).
    pub project: Option<ProjectFile>,
    /// What `${workspaceRoot}` stands for.
    pub workspace_root: PathBuf,
    /// Where `${env:NAME}` is looked up.
    pub env: Variables,
    /// How long a file must be quiet before it is read; a file that never is quiet is read after
    /// ten times as long.
    pub debounce: Duration,
    /// How changes are noticed.
    pub mode: WatchMode,
    /// How often to look where the system does not tell.
    pub poll_interval: Duration,
    /// How long reading may take until it is reported; it still goes on.
    pub read_deadline: Duration,
}

/// A project's `mcp.json`.
#[derive(Clone)]
pub struct ProjectFile {
    /// Where it is.
    pub path: PathBuf,
    /// Decides whether a content may count.
    pub approve: Approve,
    /// The file in which approvals are kept, if it is one: when it changes, a content that was
    /// refused is asked about again.
    pub approvals: Option<PathBuf>,
}

/// How changes are noticed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WatchMode {
    /// The system tells, or we look where it cannot.
    #[default]
    Events,
    /// We look.
    Polling,
}

/// The layers of files, and the tasks that follow them while it is started. What is dropped is
/// stopped.
#[derive(Debug)]
pub struct LayerFiles {
    shared: Arc<Shared>,
    running: Mutex<Option<Running>>,
}

#[derive(Debug)]
struct Running {
    stop: CancellationToken,
    /// Held for what it does when it is dropped.
    _guard: DropGuard,
    followers: Vec<tokio::task::JoinHandle<()>>,
}

impl LayerOptions {
    /// No files yet, and the usual times.
    #[must_use]
    pub fn new(workspace_root: &Path, env: Variables) -> Self {
        Self {
            settings: None,
            project: None,
            workspace_root: workspace_root.to_owned(),
            env,
            debounce: DEBOUNCE,
            mode: WatchMode::default(),
            poll_interval: POLL_INTERVAL,
            read_deadline: READ_DEADLINE,
        }
    }
}

impl LayerFiles {
    /// Reads nothing yet. All work is done by tasks of `tasks`, also the reading, which blocks.
    #[must_use]
    pub fn new(options: LayerOptions, tasks: TaskTracker) -> Self {
        let settings = options.settings.clone().map(|path| Source::new(&path, Origin::Settings));
        let project = options.project.clone().map(|project| {
            let ProjectFile { path, approve, approvals } = project;
            Source::new(&path, Origin::Project { approve, approvals })
        });
        let shared = Shared::new(options, tasks, settings.into_iter().chain(project).collect());
        Self { shared: Arc::new(shared), running: Mutex::new(None) }
    }

    /// Looks at every file now and gives what they declare.
    ///
    /// The first time this is the state to begin with and no event (E122); later it is a look out
    /// of turn, whose findings are events too. What is wrong with a file stands in its
    /// [`FileState`]; one whose reading does not end within its deadline is left behind.
    pub async fn load(&self) -> Arc<LayersState> {
        // There are at most two files. Side by side, since one of them may be slow.
        tokio::join!(self.shared.examine_now(0), self.shared.examine_now(1));
        self.shared.current()
    }

    /// Begins to follow the files. What changed since they were read last is an event soon after;
    /// those that were never read are read before this returns, silently (E122). Does nothing while
    /// it is started.
    pub async fn start(&self) {
        let stop = {
            let mut running = self.running.lock().await;
            if running.is_some() {
                return;
            }
            let stop = CancellationToken::new();
            let mut followers = Vec::new();
            for index in 0..self.shared.sources.len() {
                let follower = Follower::new(self.shared.clone(), index);
                let stop = stop.clone();
                followers.push(self.shared.tasks.spawn(async move {
                    stop.run_until_cancelled(follower.run()).await;
                }));
            }
            let guard = stop.clone().drop_guard();
            *running = Some(Running { stop: stop.clone(), _guard: guard, followers });
            stop
        };
        // A stop ends this wait, too: it finds the lock free, however slow a file is (E127).
        stop.run_until_cancelled(self.shared.wait_until_loaded()).await;
    }

    /// Stops following. Afterwards no file changes the set, not even one that is being read now;
    /// its reading ends by itself, as a task of the tracker, and is forgotten. Does nothing while
    /// it is stopped (E126, E127).
    pub async fn stop(&self) {
        let mut running = self.running.lock().await;
        let Some(Running { stop, _guard, followers }) = running.take() else { return };
        stop.cancel();
        for follower in followers {
            if let Err(error) = follower.await {
                tracing::error!(%error, "following a configuration ended by a fault of narthex");
            }
        }
    }

    /// What is declared now, and how the files stand.
    #[must_use]
    pub fn current(&self) -> Arc<LayersState> {
        self.shared.current()
    }

    /// Every state, for pages that show how the files stand. Most differ only in when was read.
    #[must_use]
    pub fn states(&self) -> watch::Receiver<Arc<LayersState>> {
        self.shared.states()
    }

    /// What happens from now on.
    #[must_use]
    pub fn subscribe(&self) -> Subscription {
        Subscription::new(self.shared.states())
    }

    /// Replaces the global layer by code (E13, E131), started or not. From now on the settings file
    /// is read, but does not count. The same entries again are no event.
    pub fn replace_global(&self, entries: Vec<Entry>) {
        self.shared.replace_global(entries);
    }
}

impl fmt::Debug for LayerOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LayerOptions")
            .field("settings", &self.settings)
            .field("project", &self.project)
            .field("workspace_root", &self.workspace_root)
            .field("debounce", &self.debounce)
            .field("mode", &self.mode)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for ProjectFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProjectFile")
            .field("path", &self.path)
            .field("approvals", &self.approvals)
            .finish_non_exhaustive()
    }
}
