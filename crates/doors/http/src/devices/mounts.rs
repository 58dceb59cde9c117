//! The processes of runs: each live run that uses its files is one process, with its servers
//! mounted.
//!
//! A run becomes a process when a caller first requests its files, and stops being one when the run
//! ends. A run that uses no files has no process and uses no memory here.

use std::{
    collections::HashMap,
    fmt,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError, atomic::AtomicU64},
    time::{Duration, SystemTime},
};

use narthex_gateway::{Gateway, RunId, RunView};
use narthex_model::{Pid, WorkspaceId};
use narthex_vfs::{Code, Done, Failure, Limits, Namespace, Place};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::devices::{
    Seen,
    telling::{OfRuns, Runs, tell},
};

/// The longest time to find the pids of a run. Meanwhile other runs wait to become processes.
const NUMBERS_WITHIN: Duration = Duration::from_secs(10);

/// The pids of a stored run and of its session's earlier runs, and the run's parent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Numbered {
    /// The pid of the run itself.
    pub pid: Pid,
    /// The pids of the earlier runs of its session. Paths with these pids lead to the run's own
    /// mounts (R-D1).
    pub earlier: Vec<Pid>,
    /// The parent run.
    pub parent: Option<RunId>,
}

/// A future that finds the pids of a run; `None` for the daemon's own run.
pub(crate) type Numbering<'a> =
    Pin<Box<dyn Future<Output = Result<Option<Numbered>, Failure>> + Send + 'a>>;

/// Finds the pids of runs.
pub(crate) trait Numbers: fmt::Debug + Send + Sync {
    /// Finds the pids of a run.
    fn of<'a>(&'a self, run: &'a Arc<RunView>) -> Numbering<'a>;
}

/// The processes of the runs that are active in this daemon. Clones share the same processes.
#[derive(Debug, Clone)]
pub(crate) struct RunMounts {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    gateway: Gateway,
    numbers: Box<dyn Numbers>,
    limits: Limits,
    /// One namespace for each workspace, since pids are unique only within a workspace. Namespaces
    /// are never removed: one without processes takes almost no memory.
    spaces: Mutex<HashMap<WorkspaceId, Space>>,
    /// The processes by run. Reads take no lock.
    processes: papaya::HashMap<RunId, Arc<Seen>>,
    /// Locked while a run becomes a process, which happens once in the life of each run.
    beginning: tokio::sync::Mutex<()>,
    /// The number of the next mounted server. It starts at the current time in microseconds, so
    /// that no number repeats one from before a restart.
    next_server: Arc<AtomicU64>,
    closing: CancellationToken,
}

/// The namespace of a workspace, and the run to which each pid belongs.
#[derive(Debug, Clone)]
pub(crate) struct Space {
    pub(crate) namespace: Namespace,
    runs: Runs,
}

impl Space {
    /// Registers the run of a pid: operations of this process are reported as the run's from now
    /// on.
    fn add(&self, pid: Pid, run: &Arc<RunView>) {
        let runs = self.runs.pin();
        runs.retain(|_, run| run.strong_count() > 0);
        runs.insert(pid, Arc::downgrade(run));
    }
}

impl RunMounts {
    /// Creates the mounts, without any process. `closing` ends the tasks that wait for runs to end.
    #[must_use]
    pub(crate) fn new(
        gateway: Gateway,
        numbers: Box<dyn Numbers>,
        closing: CancellationToken,
    ) -> Self {
        let limits = Limits { write_bytes: gateway.limits().message_bytes, ..Limits::default() };
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let now = u64::try_from(now.as_micros()).ok();
        let shared = Shared {
            gateway,
            numbers,
            limits,
            spaces: Mutex::default(),
            processes: papaya::HashMap::new(),
            beginning: tokio::sync::Mutex::default(),
            next_server: Arc::new(AtomicU64::new(now.unwrap_or_default())),
            closing,
        };
        Self { shared: Arc::new(shared) }
    }

    /// The maximum number of bytes in one write.
    #[must_use]
    pub(crate) fn write_bytes(&self) -> usize {
        self.shared.limits.write_bytes
    }

    /// Reports to a run's watchers an operation that failed elsewhere, such as in a folder, and did
    /// not reach its process.
    pub(crate) fn tell(&self, run: &RunView, done: Done<'_>) {
        tell(&self.shared.gateway, run, done);
    }

    /// Returns the process of a run, and creates it if there is none. The server that `path` names
    /// is mounted or unmounted first, as the run may use it now; the root refreshes all servers.
    ///
    /// # Errors
    /// When the pids of the run cannot be found, or the run has ended.
    pub(crate) async fn process(
        &self,
        run: &Arc<RunView>,
        path: &str,
    ) -> Result<Arc<Seen>, Failure> {
        let known = self.shared.known(run);
        let seen = match known.filter(|seen| seen.is_complete(&self.shared.gateway)) {
            Some(seen) => seen,
            None => {
                let _turn = self.shared.beginning.lock().await;
                let seen = self.shared.begun(run.clone()).await?;
                self.shared.complete(&seen).await;
                seen
            }
        };
        match Place::parse(path) {
            Ok(Place::Mounts) => seen.look_at_all(&self.shared.gateway),
            // A path of another process leads to this process's own server of that name, or
            // nowhere.
            Ok(Place::In(name, _)) => seen.look_at(&self.shared.gateway, &name.alias),
            Err(_) => {}
        }
        Ok(seen)
    }
}

impl Shared {
    /// The process of exactly this activation of a run.
    fn known(&self, run: &Arc<RunView>) -> Option<Arc<Seen>> {
        let processes = self.processes.pin();
        processes.get(&run.id).filter(|seen| Arc::ptr_eq(&seen.run, run)).cloned()
    }

    /// Returns the process of a run, and creates it if there is none.
    async fn begun(self: &Arc<Self>, run: Arc<RunView>) -> Result<Arc<Seen>, Failure> {
        if let Some(seen) = self.known(&run) {
            return Ok(seen);
        }
        let found = timeout(NUMBERS_WITHIN, self.numbers.of(&run)).await;
        let numbers = found.unwrap_or_else(|_late| Err(numbers_late()))?;
        // A late request of an ended run must not end the process of a newer activation.
        if run.has_ended() {
            return Err(over());
        }
        // If an older activation of the run is still in the table, its process ends now.
        self.end(run.id, None);
        let seen = Arc::new(self.begin(&run, numbers)?);
        self.processes.pin().insert(run.id, seen.clone());
        let (shared, ended) = (self.clone(), seen.clone());
        self.gateway.tasks().spawn(async move {
            let is_over = shared.closing.run_until_cancelled(ended.run.ended()).await;
            if is_over.is_some() {
                shared.end(ended.run.id, Some(&ended));
            }
        });
        Ok(seen)
    }

    /// Adds the processes of the ancestor runs that are active here, and links each child to its
    /// parent.
    async fn complete(self: &Arc<Self>, seen: &Arc<Seen>) {
        let mut one = seen.clone();
        while let Some(id) = one.parent {
            let above = one.above().parent.clone();
            let above = match (above, self.gateway.runs().get(id)) {
                (Some(above), _) => above,
                (None, None) => break,
                (None, Some(run)) => match self.begun(run).await {
                    Ok(above) => one.above().parent.insert(above).clone(),
                    Err(failure) => {
                        // The next request for the run's files tries again.
                        tracing::debug!(run.id = %id, "no process yet: {}", failure.message);
                        break;
                    }
                },
            };
            one = above;
        }
        seen.know_above();
    }

    fn begin(&self, run: &Arc<RunView>, numbers: Option<Numbered>) -> Result<Seen, Failure> {
        // The daemon's own run is the only process of a separate namespace, with a separate pid. So
        // a path of a workspace never means two runs.
        let (space, pid) = match &numbers {
            Some(numbers) => (self.space(&run.workspace), numbers.pid),
            None => (self.new_space(), Pid::OWN),
        };
        let begun = space.namespace.begin(pid, None, &[]);
        let process = begun.map_err(|error| *error.failure)?;
        space.add(pid, run);
        let seen = Seen {
            process,
            run: run.clone(),
            space,
            mounted: Mutex::default(),
            next_server: self.next_server.clone(),
            parent: numbers.as_ref().and_then(|numbers| numbers.parent),
            earlier: numbers.map(|numbers| numbers.earlier).unwrap_or_default(),
            above: Mutex::default(),
        };
        seen.look_at_all(&self.gateway);
        Ok(seen)
    }

    /// Ends the process of a run. With `only`, ends it only if it is that process.
    fn end(&self, run: RunId, only: Option<&Arc<Seen>>) {
        let processes = self.processes.pin();
        let Some(seen) = processes.get(&run).cloned() else { return };
        if only.is_some_and(|only| !Arc::ptr_eq(only, &seen)) {
            return;
        }
        processes.remove(&run);
        seen.space.namespace.end(seen.process.pid());
    }

    fn space(&self, workspace: &WorkspaceId) -> Space {
        let mut spaces = self.spaces();
        spaces.entry(workspace.clone()).or_insert_with(|| self.new_space()).clone()
    }

    fn new_space(&self) -> Space {
        let runs = Runs::default();
        let observer = OfRuns { gateway: self.gateway.clone(), runs: runs.clone() };
        let observer = Arc::new(observer);
        Space { namespace: Namespace::new(self.limits, Some(observer)), runs }
    }

    fn spaces(&self) -> MutexGuard<'_, HashMap<WorkspaceId, Space>> {
        self.spaces.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The failure for a run that has ended, before or during the operation.
pub(crate) fn over() -> Failure {
    Failure::new(Code::DeviceDisconnected, "transport_error", "the run has ended")
}

fn numbers_late() -> Failure {
    let within = NUMBERS_WITHIN.as_secs();
    let text = format!("the pid of the run was not known within {within} s; try again");
    Failure::new(Code::Timeout, "timeout", text)
}
