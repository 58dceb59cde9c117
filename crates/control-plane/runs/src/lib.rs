//! Runs of workspaces: of agents of the catalog (O24, X-M50), or with servers of their own (E7). A
//! run begins as a whole or not at all (D17); its frozen configuration outlives the daemon (D10).

mod children;
mod claims;
mod clients;
mod create;
mod end;
mod error;
mod frozen;
mod process_session;
mod resume;
mod searching;
mod secret_users;
mod server_events;
mod shares;
mod sockets;
mod state;
mod view;

use std::{
    fmt,
    path::PathBuf,
    sync::{Arc, Weak, atomic::AtomicU64},
    time::{Duration, SystemTime},
};

use narthex_control::{Control, ControlError, KeyedLock};
use narthex_definitions::reviews::Reviews;
use narthex_gateway::{Gateway, RunView};
use narthex_model::{McpClientId, RunId, SessionId, WorkspaceId};
use narthex_registry::config::Variables;
use narthex_store::Store;
use narthex_vault::Vault;
use tokio::{
    sync::{OnceCell, watch},
    time::Instant,
};

pub use narthex_catalog::Rejection;
pub use narthex_shares::{ShareKind, path_spelling};
pub use narthex_store::{
    CommentRow, Cost, CostSum, LivingRuns, RunFilter, RunRow, RunSearch, SessionRow, ShareRow,
    SharedFileRow, SuspendedSession, ThreadRow, Waiting,
};

pub use self::{
    children::{Caller, Child, StartedChild, watchdog::QUIET_MAX},
    claims::{
        Brief, Claimed, Claiming, Compared,
        costs::CostOf,
        executions::{Execution, Outcome, client_entry, events_url},
    },
    clients::tokens::{ClientClosed, SeenClient},
    create::{
        created::Created,
        creator::{Awaited, Creator},
        direct_servers::DirectServers,
        servers::OmittedKey,
        warnings::{RunWarning, UnmatchedOf},
    },
    end::completed::COMPLETED,
    error::{ModelWords, Over, RunError, RunFault},
    secret_users::SecretRun,
    shares::{
        CommentOn, Commenter, Handed, NewShare, SeenShare, SeenThread, ShareOptions, SharePage,
        SharingError, ThreadPage,
    },
    sockets::{OpenSockets, RunSockets, SocketsError},
    view::{RunPage, RunStatus, SeenRun, SessionPage},
};
use self::{
    shares::Copying,
    state::{
        claims::{Claims, StoredRuns},
        expiries::Expiries,
        failed_starts::FailedStarts,
        restarts::Restarts,
        resting::Resting,
        watched::WatchedRuns,
    },
};

/// The most runs at one time.
const RUNS_MAX: usize = 20_000;
/// Number of attempts at an operation whose objects other callers change meanwhile.
const ATTEMPTS: usize = 3;
/// Number of runs read at a time.
const BATCH: u32 = 1000;

/// The settings of runs.
#[derive(Clone)]
pub struct RunsOptions {
    /// The value of `${workspaceRoot}` in entries.
    pub workspace_root: PathBuf,
    /// Looks up the daemon's variables, for `${env:NAME}` in entries.
    pub env: Variables,
    /// Longest time for a server to connect, and again to list, if its entry gives none.
    pub start_timeout: Duration,
    /// The run of the process itself, which lasts as long as the process.
    pub local: RunId,
    /// The address of the built-in server for callers; `None` if no client connects from outside.
    pub built_in_url: Option<String>,
    /// The folder that contains the sessions' own folders.
    pub folders: PathBuf,
    /// Opens Unix sockets for runs; `None` if runs have no sockets.
    pub sockets: Option<Arc<dyn RunSockets>>,
    /// The store of shared files; `None` if this process has no shares.
    pub shares: Option<ShareOptions>,
}

/// The runs of all workspaces. Clones are handles to the same runs.
#[derive(Debug, Clone)]
pub struct Runs {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    /// A weak reference to this value, for tasks that outlive their callers.
    this: Weak<Self>,
    gateway: Gateway,
    control: Control,
    options: RunsOptions,
    /// Counter that gives each run a number. By this number, no other run shares the run's own
    /// connections.
    numbers: AtomicU64,
    expiries: Expiries,
    restarts: Restarts,
    /// Changes whenever a run may wait for an executor.
    awaited: watch::Sender<()>,
    /// Reviews of definitions of servers.
    reviews: Reviews,
    /// Sessions that are to resume by themselves.
    resting: Resting,
    /// Locks per session for creating a child of it.
    spawning: KeyedLock<SessionId>,
    /// The active runs of this daemon that a client has claimed, with the hashes of their tokens.
    claimed: Claims,
    /// The active runs of this daemon that are in the store.
    stored: StoredRuns,
    /// Locks per client for beginning its run.
    clients: KeyedLock<McpClientId>,
    /// Lines on stderr of servers that did not start.
    failed_starts: FailedStarts,
    /// The limit on copying of shared files.
    copying: Copying,
    /// Set once the session of the process's own run exists.
    process_session: OnceCell<()>,
    /// Runs whose servers are watched.
    watched: WatchedRuns,
    /// The time when this value was made: sessions suspended before it outlived a process.
    began: SystemTime,
}

impl Runs {
    /// Creates the runs of a gateway. None of them is active before [`start`](Self::start).
    #[must_use]
    pub fn new(gateway: Gateway, control: Control, options: RunsOptions) -> Self {
        let reviews = Reviews::new(gateway.clone(), control.clone(), options.local);
        let shared = Arc::new_cyclic(|this| Shared {
            this: this.clone(),
            gateway,
            control,
            options,
            numbers: AtomicU64::new(1),
            expiries: Expiries::default(),
            restarts: Restarts::default(),
            awaited: watch::Sender::new(()),
            reviews,
            resting: Resting::default(),
            spawning: KeyedLock::default(),
            claimed: Claims::default(),
            stored: StoredRuns::default(),
            clients: KeyedLock::default(),
            failed_starts: FailedStarts::default(),
            copying: Copying::default(),
            process_session: OnceCell::new(),
            watched: WatchedRuns::default(),
            began: SystemTime::now(),
        });
        Self { shared }
    }

    /// The data plane of the runs.
    #[must_use]
    pub fn gateway(&self) -> &Gateway {
        &self.shared.gateway
    }

    /// The reviews of definitions of servers.
    #[must_use]
    pub fn reviews(&self) -> &Reviews {
        &self.shared.reviews
    }

    /// Loads the active runs of earlier processes, each of which continues when a client shows its
    /// token. From here on, runs end when their time is over. To be called once.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn start(&self) -> Result<(), ControlError> {
        let runs = self;
        if let Some(events) = runs.control().events().cloned() {
            let help = "Events of sessions that could not be stored";
            let unwritten = move || events.unwritten();
            runs.shared.gateway.metrics().count("session_events_unwritten", help, unwritten);
        }
        if let Some(store) = runs.control().store() {
            // The future is boxed, since it is large and rare.
            Box::pin(runs.end_earlier_session()).await?;
            Box::pin(runs.end_done_before(SystemTime::now())).await?;
            let with_sockets = runs.load(store).await?;
            runs.open_again(with_sockets);
            runs.until_closed(|runs| async move { runs.end_in_time().await });
            runs.until_closed(|runs| async move { runs.watch_children().await });
            runs.until_closed(|runs| async move { runs.watch_claims().await });
            runs.until_closed(|runs| async move { runs.watch_resting().await });
            runs.until_closed(|runs| async move { runs.sweep_folders().await });
            if let Some(events) = runs.control().events().cloned() {
                runs.until_closed(|_| async move { events.deliver().await });
            }
            runs.shared.gateway.set_run_source(runs.shared.clone());
            runs.shared.reviews.pin();
            runs.until_closed(|runs| async move { runs.shared.reviews.follow_live().await });
            if runs.shared.options.shares.is_some() {
                runs.until_closed(|runs| async move { runs.sweep_daily().await });
            }
        }
        Ok(())
    }

    /// Starts work that ends when the daemon stops.
    fn until_closed<W>(&self, work: impl FnOnce(Self) -> W)
    where
        W: Future<Output = ()> + Send + 'static,
    {
        let (working, closing) = (Box::pin(work(self.clone())), self.control().closing());
        self.control().spawn(async move {
            closing.run_until_cancelled(working).await;
        });
    }

    /// Notes the times at which the active runs end. Returns the runs that have sockets.
    async fn load(&self, store: &Store) -> Result<Vec<RunId>, ControlError> {
        let mut with_sockets = Vec::new();
        let mut after = None;
        loop {
            let batch = store.runs().live(after, BATCH).await.map_err(ControlError::Store)?;
            let Some(last) = batch.last() else { return Ok(with_sockets) };
            after = Some(last.id);
            for run in &batch {
                self.shared.expiries.add(instant(run.expires_at), run.id);
            }
            with_sockets.extend(batch.iter().filter(|run| run.has_sockets).map(|run| run.id));
        }
    }

    /// True for the run of the process itself, and for those by which clients see the live
    /// configuration beside it: all of these belong to its session.
    #[must_use]
    pub fn is_local(&self, run: &RunView) -> bool {
        run.id == self.shared.options.local || run.is_beside()
    }

    fn control(&self) -> &Control {
        &self.shared.control
    }

    fn store(&self) -> Result<&Store, RunError> {
        Ok(self.control().needed_store()?)
    }

    fn vault(&self) -> Result<&Vault, RunError> {
        Ok(self.control().vault()?)
    }

    /// True for the workspace whose servers the live configuration has.
    fn is_home(&self, workspace: &WorkspaceId) -> bool {
        workspace == self.control().home()
    }
}

/// Converts a time to the clock of timers.
fn instant(at: SystemTime) -> Instant {
    Instant::now() + at.duration_since(SystemTime::now()).unwrap_or_default()
}

impl fmt::Debug for RunsOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunsOptions")
            .field("workspace_root", &self.workspace_root)
            .field("start_timeout", &self.start_timeout)
            .field("local", &self.local)
            .field("built_in_url", &self.built_in_url)
            .finish_non_exhaustive()
    }
}
