//! Runs that operators begin, with servers of their own (E7): all of a run or nothing (D17).

mod asked;
mod error;

use std::{
    fmt,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use narthex_gateway::{Gateway, RunId, RunToken, RunView};
use narthex_model::Alias;
use narthex_policy::RunPolicy;
use narthex_registry::{MountFault, MountOptions, Sharing, Snapshot, config::Variables};

use self::asked::Asked;
pub use self::error::{RunError, RunFault};

/// The most runs at one time.
const RUNS_MAX: usize = 10_000;

/// What runs are begun with.
#[derive(Clone)]
pub struct RunsOptions {
    /// What `${workspaceRoot}` stands for in entries.
    pub workspace_root: PathBuf,
    /// Looks up the daemon's variables, for `${env:NAME}` in entries.
    pub env: Variables,
    /// How long a server may take to connect, and again to list, whose entry does not say.
    pub start_timeout: Duration,
    /// The run of the process itself, which lives as long.
    pub local: RunId,
}

/// The runs of a gateway. Clones are handles to the same ones. They end with the daemon.
#[derive(Debug, Clone)]
pub struct Runs {
    gateway: Gateway,
    options: RunsOptions,
    begun: Arc<AtomicU64>,
}

/// A run that has begun.
#[derive(Debug)]
pub struct Begun {
    /// The run.
    pub run: Arc<RunView>,
    /// What opens it; kept nowhere else.
    pub token: RunToken,
    /// The optional servers that did not start.
    pub faults: Vec<MountFault>,
    /// What a person should know of the entries.
    pub warnings: Vec<String>,
    /// The shared servers that the run asks for and that there are none of.
    pub missing: Vec<Alias>,
}

impl Runs {
    /// The runs of this gateway.
    #[must_use]
    pub fn new(gateway: Gateway, options: RunsOptions) -> Self {
        Self { gateway, options, begun: Arc::default() }
    }

    /// Begins a run as a JSON document asks for it: `servers` are entries as in an `mcp.json`, each
    /// of which may be `optional`; `tools` names the shared servers that it has as well, none if it
    /// is absent. Waits until every server is ready or has failed.
    ///
    /// # Errors
    /// When the document or an entry is faulty, an alias is that of a shared server, or a server
    /// that is not optional does not start: then nothing is left, and every fault is named (D9).
    pub async fn begin(&self, text: &str) -> Result<Begun, RunError> {
        if self.gateway.runs().len() >= RUNS_MAX {
            return Err(RunError::TooMany(RUNS_MAX));
        }
        let snapshot = self.gateway.registry().snapshot();
        let Asked { servers, policy, warnings } = asked::read(text, &self.options, &snapshot)?;
        let token = RunToken::generate().map_err(RunError::Randomness)?;
        let options = MountOptions {
            timeout: self.options.start_timeout,
            is_strict: true,
            // What a run has for itself is connected for it alone (D12).
            sharing: Sharing::Only(self.begun.fetch_add(1, Ordering::Relaxed)),
            credential: None,
        };
        let mounted = self.gateway.registry().mount(servers, &options).await;
        let set = mounted.map_err(|error| RunError::Mount(error.faults))?;
        let faults = set.faults().to_vec();
        let missing = missing(&policy, &snapshot);
        let run = Arc::new(RunView::with_servers(&token, policy, set));
        self.gateway.begin_run(&run).map_err(RunError::Record)?;
        Ok(Begun { run, token, faults, warnings, missing })
    }

    /// Every run, the oldest first.
    #[must_use]
    pub fn all(&self) -> Vec<Arc<RunView>> {
        self.gateway.runs().all()
    }

    /// Whether a run is the one of the process itself.
    #[must_use]
    pub fn is_local(&self, run: &RunView) -> bool {
        run.id == self.options.local
    }

    /// One run.
    ///
    /// # Errors
    /// When there is none of this id.
    pub fn get(&self, id: &str) -> Result<Arc<RunView>, RunError> {
        let run = RunId::parse(id).and_then(|id| self.gateway.runs().get(id));
        run.ok_or_else(|| RunError::Unknown(id.chars().take(100).collect()))
    }

    /// Ends a run: its token opens nothing any more, its sessions and streams end, and its own
    /// servers do after the calls that are open.
    ///
    /// # Errors
    /// When there is none of this id, or it is the one of the process itself.
    pub async fn end(&self, id: &str) -> Result<(), RunError> {
        let run = self.get(id)?;
        if self.is_local(&run) {
            return Err(RunError::Local);
        }
        let ended = self.gateway.end_run(run.id).await;
        ended.map(|_| ()).ok_or_else(|| RunError::Unknown(id.to_owned()))
    }
}

fn missing(policy: &RunPolicy, snapshot: &Snapshot) -> Vec<Alias> {
    match policy {
        RunPolicy::AllAttached => Vec::new(),
        RunPolicy::Attached(named) => {
            named.iter().filter(|alias| snapshot.get(alias.as_str()).is_none()).cloned().collect()
        }
    }
}

impl fmt::Debug for RunsOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunsOptions")
            .field("workspace_root", &self.workspace_root)
            .field("start_timeout", &self.start_timeout)
            .field("local", &self.local)
            .finish_non_exhaustive()
    }
}
