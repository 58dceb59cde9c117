//! Carries runs out: for each run of an agent that names an executor, the program of that executor
//! is started, told how it reaches its servers, and followed to its end.
//!
//! A run is carried out by a claim that is held for as long as its program lives, as by any other
//! platform: daemons on one store agree, and what a daemon leaves behind is seen by the next.

mod carrying;
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
use narthex_model::{ErrorKind, RunId};
use narthex_runs::{RunError, Runs};
use narthex_supervisor::BaseEnvironment;
use tokio_util::task::TaskTracker;

pub use self::settings::{CommandExecutor, Executors};

/// For how long a claim is held, unless it is renewed.
const LEASE: Duration = Duration::from_secs(60);
/// How often it is.
const RENEWED: Duration = Duration::from_secs(20);
/// How long until a run is begun again whose program did not come to a good end; each time twice
/// as long.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// What runs are carried out with.
#[derive(Debug, Clone)]
pub struct ExecutorOptions {
    /// The programs.
    pub executors: Executors,
    /// What each of them sees of the daemon's environment.
    pub environment: BaseEnvironment,
    /// Where they reach the aggregated endpoint.
    pub url: String,
    /// Where files about runs are, which is no other process's.
    pub place: PathBuf,
}

/// Why runs are not carried out.
#[derive(Debug, thiserror::Error)]
pub enum ExecutorError {
    /// The folder for files about runs cannot be used.
    #[error("the folder `{}` for runs cannot be used: {source}", .path.display())]
    Place {
        /// Which one.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The store fails.
    #[error(transparent)]
    Runs(#[from] RunError),
    /// The system has no randomness to give.
    #[error("the system has no randomness for a name")]
    Randomness(#[source] getrandom::Error),
}

impl ExecutorError {
    /// What kind of failure it is (D24).
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Place { .. } | Self::Randomness(_) => ErrorKind::Unavailable,
            Self::Runs(error) => error.kind(),
        }
    }
}

/// Carries out the runs that wait for these executors, until the control plane closes.
///
/// # Errors
/// When the folder cannot be used, or the store fails.
pub async fn start(
    runs: Runs,
    control: Control,
    options: ExecutorOptions,
) -> Result<(), ExecutorError> {
    if options.executors.all.is_empty() {
        return Ok(());
    }
    let holder = instance::prepare(&options.place).await?;
    // Whoever had them was this daemon before its end, and their programs have ended with it.
    runs.release_of(&holder).await?;
    let work = Arc::new(Work {
        runs,
        control: control.clone(),
        options,
        holder,
        taken: Mutex::default(),
        programs: TaskTracker::new(),
    });
    for (name, executor) in work.options.executors.all.clone() {
        control.spawn(work.clone().look(name, Arc::new(executor)));
    }
    Ok(())
}

/// What all executors have.
struct Work {
    runs: Runs,
    control: Control,
    options: ExecutorOptions,
    /// As whom runs are claimed.
    holder: String,
    /// Runs that somebody here takes or carries out.
    taken: Mutex<HashSet<RunId>>,
    /// What follows programs.
    programs: TaskTracker,
}

impl Work {
    fn taken(&self) -> MutexGuard<'_, HashSet<RunId>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
