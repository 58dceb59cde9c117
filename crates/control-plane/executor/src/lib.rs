//! Carries runs out: for each run of an agent with an executor, starts the executor's program with
//! the addresses of the run's servers, and follows it to its end.
//!
//! As any other platform, an executor carries a run out by a claim, which it holds for as long as
//! its program lives. So daemons on one store agree, and the next daemon sees the runs that a dead
//! one has left.

mod dispatch;
mod failures;
mod instance;
mod program;
mod settings;

use std::{
    collections::HashSet,
    io,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use narthex_control::Control;
use narthex_model::{ErrorKind, ExecutorName, RunId, WorkspaceId};
use narthex_runs::{RunError, Runs};
use narthex_supervisor::BaseEnvironment;
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::task::TaskTracker;

use self::failures::Failures;
pub use self::settings::{CommandExecutor, Executors};

/// For how long a claim is held, unless it is renewed.
const LEASE: Duration = Duration::from_secs(60);
/// Time between two renewals of the claim.
const RENEWED: Duration = Duration::from_secs(20);
/// Time between two reports of the daemon's executors, and between searches for runs that wait for
/// an executor that no daemon has.
const TENDED: Duration = Duration::from_secs(60);
/// Time for which such a report holds: a daemon may be away this long and come back.
const SERVED: Duration = Duration::from_secs(60 * 60);
/// Time until a run is started again whose program failed; each time twice as long.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// The options of a daemon that carries runs out.
#[derive(Debug, Clone)]
pub struct ExecutorOptions {
    /// The executors' programs.
    pub executors: Executors,
    /// The parts of the daemon's environment that each program gets.
    pub environment: BaseEnvironment,
    /// The address of the aggregated endpoint.
    pub url: String,
    /// The folder of files about runs. No other process uses it.
    pub place: PathBuf,
}

/// The reason why runs are not carried out.
#[derive(Debug, thiserror::Error)]
pub enum ExecutorError {
    /// The folder for files about runs cannot be used.
    #[error("the folder `{}` for runs cannot be used: {source}", .path.display())]
    Place {
        /// The folder.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The store failed.
    #[error(transparent)]
    Runs(#[from] RunError),
    /// The operating system gives no random bytes.
    #[error("the operating system gives no random bytes for a name")]
    Randomness(#[source] getrandom::Error),
}

impl ExecutorError {
    /// Returns the error's kind (D24).
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Place { .. } | Self::Randomness(_) => ErrorKind::Unavailable,
            Self::Runs(error) => error.kind(),
        }
    }
}

/// Carries out the runs for these executors, until the control plane closes.
///
/// # Errors
/// When the folder cannot be used, or the store fails.
pub async fn start(
    runs: Runs,
    control: Control,
    options: ExecutorOptions,
) -> Result<(), ExecutorError> {
    if control.store().is_none() {
        return Ok(());
    }
    let holder = match options.executors.all.is_empty() {
        // The daemon may have had executors before.
        true => instance::known(&options.place).await?.unwrap_or_default(),
        false => instance::prepare(&options.place).await?,
    };
    // Their claims are from this daemon before its end, and their programs have ended with it.
    runs.release_of(&holder).await?;
    let work = Arc::new(Work {
        runs,
        control: control.clone(),
        options,
        holder,
        taken: Mutex::default(),
        failures: Mutex::default(),
        programs: TaskTracker::new(),
    });
    work.serve().await?;
    control.spawn(work.clone().tend());
    for (name, executor) in work.options.executors.all.clone() {
        control.spawn(work.clone().look(name, Arc::new(executor)));
    }
    Ok(())
}

/// State that all executors share.
struct Work {
    runs: Runs,
    control: Control,
    options: ExecutorOptions,
    /// The holder's name in claims of runs.
    holder: String,
    /// Runs that this daemon is claiming or carrying out.
    taken: Mutex<HashSet<RunId>>,
    /// Runs that could not be started.
    failures: Mutex<Failures>,
    /// The tasks that follow programs.
    programs: TaskTracker,
}

impl Work {
    fn taken(&self) -> MutexGuard<'_, HashSet<RunId>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn failures(&self) -> MutexGuard<'_, Failures> {
        self.failures.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says which executors this daemon has, and for which workspaces.
    async fn serve(&self) -> Result<(), RunError> {
        let all = self.options.executors.all.iter();
        let of = |(name, one): (&ExecutorName, &CommandExecutor)| {
            let pair = |workspace: &WorkspaceId| (name.clone(), workspace.clone());
            one.workspaces.iter().map(pair).collect::<Vec<_>>()
        };
        let all: Vec<_> = all.flat_map(of).collect();
        self.runs.serve(&self.holder, &all, SERVED).await
    }

    /// Says so again and again, and fails runs that no daemon carries out, until the control plane
    /// closes.
    async fn tend(self: Arc<Self>) {
        let closing = self.control.closing();
        let mut ticks = interval(TENDED);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // Other daemons that start just now report their executors first.
        ticks.tick().await;
        while closing.run_until_cancelled(ticks.tick()).await.is_some() {
            let tending = async {
                self.serve().await?;
                self.runs.fail_unserved().await
            };
            if let Err(error) = tending.await {
                tracing::warn!("runs without an executor cannot be read: {error}");
            }
        }
    }
}
