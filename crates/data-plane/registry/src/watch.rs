//! Follows the files of the global and the project layer, and reports their present declarations.
//!
//! This module is made for a caller that applies a set to a registry: load once, apply that set,
//! start, and then apply the set of each [`LayersEvent::Changed`]. A file counts with its last good
//! content. A file that cannot be read, is no configuration, or is not approved is reported, and
//! the set stays (E118, D27). This module starts and stops no connection, and reports failures as
//! events instead of logging them.

mod content;
mod follow;
mod state;
mod subscription;
mod system_events;
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
pub use state::{FileState, LayersState};
pub use subscription::{LayersEvent, Subscription};
pub use system_events::Watching;

/// Time that a file must be quiet before it is read (E121).
const DEBOUNCE: Duration = Duration::from_millis(200);
/// Interval for reading files where the system cannot report changes.
const POLL_INTERVAL: Duration = Duration::from_secs(2);
/// Time that a file may take to be read before the delay is reported.
const READ_DEADLINE: Duration = Duration::from_secs(10);

/// Decides whether the content of a project's file may count (D27). Called with the file and the
/// text to be parsed, on a thread that may block.
pub type Approve = Arc<dyn Fn(&Path, &[u8]) -> Result<(), Refused> + Send + Sync>;

/// The files to follow, and the way to follow them.
#[derive(Clone)]
pub struct LayerOptions {
    /// The user's settings file, whose `mcp.servers` are the global layer.
    pub settings: Option<PathBuf>,
    /// The project's file. Without a path, no project file is read (E8).
    pub project: Option<ProjectFile>,
    /// Value of `${workspaceRoot}`.
    pub workspace_root: PathBuf,
    /// Lookup of `${env:NAME}`.
    pub env: Variables,
    /// Time for which a file must be unchanged before it is read. A file that always changes is
    /// read after ten times as long.
    pub debounce: Duration,
    /// The way in which changes are noticed.
    pub mode: WatchMode,
    /// Interval for polling where the system does not report changes.
    pub poll_interval: Duration,
    /// Time of a reading after which a report is made; the reading continues.
    pub read_deadline: Duration,
}

/// A project's `mcp.json`.
#[derive(Clone)]
pub struct ProjectFile {
    /// The path of the file.
    pub path: PathBuf,
    /// Decides whether a content may count.
    pub approve: Approve,
    /// The file of approvals, if there is one: when it changes, a refused content is checked again.
    pub approvals: Option<PathBuf>,
}

/// The way in which changes are noticed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WatchMode {
    /// By events of the system, or by polling where the system has none.
    #[default]
    Events,
    /// By polling.
    Polling,
}

/// The layers of files, and the tasks that follow them once started. Dropping this value stops the
/// tasks.
#[derive(Debug)]
pub struct LayerFiles {
    shared: Arc<Shared>,
    running: Mutex<Option<Running>>,
}

#[derive(Debug)]
struct Running {
    stop: CancellationToken,
    /// Held for its effect on drop.
    _guard: DropGuard,
    followers: Vec<tokio::task::JoinHandle<()>>,
}

impl LayerOptions {
    /// Options without files, and with the default times.
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
    /// The files of these options, without a reading so far. Tasks of `tasks` do all work, also the
    /// reading, which blocks.
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

    /// Reads every file now and returns the declarations.
    ///
    /// The first call gives the initial state and causes no event (E122); a later call is an extra
    /// reading, which may cause events. A problem of a file is in its [`FileState`]. The call does
    /// not wait for a file whose reading exceeds its deadline.
    pub async fn load(&self) -> Arc<LayersState> {
        // There are at most two files. Both are read at the same time, since one of them may be
        // slow.
        tokio::join!(self.shared.examine_now(0), self.shared.examine_now(1));
        self.shared.current()
    }

    /// Starts to follow the files. Changes since the last reading cause events soon after. Files
    /// that were never read are read before this returns, without events (E122). A second call does
    /// nothing.
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

    /// Stops following. Afterwards no file changes the set, not even one that is being read now:
    /// its reading ends as a task of the tracker, and its result is dropped. Does nothing while
    /// stopped (E126, E127).
    pub async fn stop(&self) {
        let mut running = self.running.lock().await;
        let Some(Running { stop, _guard, followers }) = running.take() else { return };
        stop.cancel();
        for follower in followers {
            if let Err(error) = follower.await {
                tracing::error!(%error, "watching a configuration failed inside narthex");
            }
        }
    }

    /// The present declarations, and the status of the files.
    #[must_use]
    pub fn current(&self) -> Arc<LayersState> {
        self.shared.current()
    }

    /// A receiver of every state, for pages about the status of the files. Most states differ only
    /// in the time of reading.
    #[must_use]
    pub fn states(&self) -> watch::Receiver<Arc<LayersState>> {
        self.shared.states()
    }

    /// Subscribes to events from now on.
    #[must_use]
    pub fn subscribe(&self) -> Subscription {
        Subscription::new(self.shared.states())
    }

    /// Replaces the global layer by code (E13, E131), whether or not files are followed. From now
    /// on the settings file is read, but does not count. The same entries again cause no event.
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
