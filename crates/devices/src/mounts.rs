//! The processes of runs: each live run that uses its files is one, with its servers mounted.
//!
//! A run becomes a process when its files are first asked for, and ceases to be one when it ends.
//! Until then nothing is paid for it.

use std::{
    collections::{BTreeSet, HashMap},
    fmt,
    pin::Pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, SystemTime},
};

use narthex_gateway::{ConnectionId, Gateway, RunId, RunView};
use narthex_model::{Alias, Pid, WorkspaceId};
use narthex_mount::{
    Code, Done, Failure, Limits, MountName, Mounted, Namespace, Observer, Place, Process,
};
use narthex_trace::{FileOperation, TOOL_ERROR, Tap};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::ServerDevice;

/// How long finding the numbers of a run may take: other runs wait for it to become processes.
const NUMBERS_WITHIN: Duration = Duration::from_secs(10);

/// The numbers of a run that is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Numbered {
    /// Its own.
    pub pid: Pid,
    /// Those of the earlier runs of its session: their paths mean its own mounts (R-D1).
    pub earlier: Vec<Pid>,
    /// The run that it is a child of.
    pub parent: Option<RunId>,
}

/// The numbers of a run, once they are found; `None` if it is the daemon's own.
pub type Numbering<'a> =
    Pin<Box<dyn Future<Output = Result<Option<Numbered>, Failure>> + Send + 'a>>;

/// Who knows the numbers of runs.
pub trait Numbers: fmt::Debug + Send + Sync {
    /// Finds the numbers of a run.
    fn of<'a>(&'a self, run: &'a Arc<RunView>) -> Numbering<'a>;
}

/// The processes of the runs that live here. Clones are handles to the same ones.
#[derive(Debug, Clone)]
pub struct RunMounts {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    gateway: Gateway,
    numbers: Box<dyn Numbers>,
    limits: Limits,
    /// One for each workspace, as numbers of runs are those of a workspace. They stay: a namespace
    /// without processes is as good as nothing.
    spaces: Mutex<HashMap<WorkspaceId, Space>>,
    /// Reading takes no lock.
    processes: papaya::HashMap<RunId, Arc<Seen>>,
    /// Held while a run becomes a process, which is once in its life.
    beginning: tokio::sync::Mutex<()>,
    /// The number of the next server of a process. It begins at the time in microseconds, so that
    /// no number is that of a server before a restart.
    next_server: Arc<AtomicU64>,
    closing: CancellationToken,
}

/// The namespace of a workspace, and whose process each number is.
#[derive(Debug, Clone)]
struct Space {
    namespace: Namespace,
    runs: Arc<papaya::HashMap<Pid, RunId>>,
}

/// A run that is a process.
#[derive(Debug)]
pub struct Seen {
    /// The process.
    pub process: Arc<Process>,
    run: Arc<RunView>,
    space: Space,
    mounted: Mutex<HashMap<Alias, OneMounted>>,
    next_server: Arc<AtomicU64>,
    /// The earlier runs of its session.
    earlier: Vec<Pid>,
    /// The processes above it, the nearest first.
    above: Vec<(Pid, Arc<RunView>)>,
}

/// A server of a process.
#[derive(Debug)]
struct OneMounted {
    mounted: Mounted,
    /// What it is connected by: another after each change of its configuration.
    connection: Option<ConnectionId>,
    number: u64,
}

/// Tells whoever watches a run of its operations.
#[derive(Debug)]
struct OfRuns {
    tap: Tap,
    runs: Arc<papaya::HashMap<Pid, RunId>>,
}

impl Observer for OfRuns {
    fn ended(&self, done: Done<'_>) {
        if !self.tap.is_watched() {
            return;
        }
        // Of a run that has ended meanwhile whoever asked knows which it was.
        let run = self.runs.pin().get(&done.pid).copied().or_else(Tap::held);
        let Some(run) = run else { return };
        tell(&self.tap, run, done);
    }

    fn is_watched(&self) -> bool {
        self.tap.is_watched()
    }
}

/// Tells whoever watches a run of an operation of it that has ended.
fn tell(tap: &Tap, run: RunId, done: Done<'_>) {
    let alias = match Place::parse(done.path) {
        Ok(Place::In(name, _)) => Some(name.alias),
        Ok(Place::Mounts) | Err(_) => None,
    };
    let Done { operation, path, fd, size, result, is_tool_error, is_told: _, duration, pid: _ } =
        done;
    let error = result.err().map(Code::as_str).or(is_tool_error.then_some(TOOL_ERROR));
    let (name, result, took) = (operation.as_str(), result.ok(), duration);
    tap.file(run, alias.as_ref(), FileOperation { name, path, fd, size, result, error, took });
}

impl RunMounts {
    /// Without any process. `closing` ends what waits for runs to end.
    #[must_use]
    pub fn new(gateway: Gateway, numbers: Box<dyn Numbers>, closing: CancellationToken) -> Self {
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

    /// The most bytes of one write.
    #[must_use]
    pub fn write_bytes(&self) -> usize {
        self.shared.limits.write_bytes
    }

    /// Tells whoever watches a run of an operation of it that was done elsewhere, and came no
    /// further.
    pub fn tell(&self, run: &RunView, done: Done<'_>) {
        tell(self.shared.gateway.tap(), run.id, done);
    }

    /// The process of a run, which sees of its servers what the run may see now: `path` says of
    /// which that has to be looked at.
    ///
    /// # Errors
    /// When the numbers of the run cannot be found, or it has ended.
    pub async fn process(&self, run: &Arc<RunView>, path: &str) -> Result<Arc<Seen>, Failure> {
        let known = self.shared.known(run);
        let seen = match known {
            Some(seen) => seen,
            None => {
                let _turn = self.shared.beginning.lock().await;
                self.shared.clone().begun(run.clone()).await?
            }
        };
        match Place::parse(path) {
            Ok(Place::Mounts) => seen.look_at_all(&self.shared.gateway),
            // What is not its own leads to its own of that name, or nowhere.
            Ok(Place::In(name, _)) => seen.look_at(&self.shared.gateway, &name.alias),
            Err(_) => {}
        }
        Ok(seen)
    }
}

type Beginning = Pin<Box<dyn Future<Output = Result<Arc<Seen>, Failure>> + Send>>;

impl Shared {
    /// A process of this very activation of a run.
    fn known(&self, run: &Arc<RunView>) -> Option<Arc<Seen>> {
        let processes = self.processes.pin();
        processes.get(&run.id).filter(|seen| Arc::ptr_eq(&seen.run, run)).cloned()
    }

    /// Has a run be a process, and before it those above it.
    fn begun(self: Arc<Self>, run: Arc<RunView>) -> Beginning {
        Box::pin(async move {
            if let Some(seen) = self.known(&run) {
                return Ok(seen);
            }
            let found = timeout(NUMBERS_WITHIN, self.numbers.of(&run)).await;
            let numbers = found.unwrap_or_else(|_late| Err(numbers_late()))?;
            let parent = numbers.as_ref().and_then(|numbers| numbers.parent);
            let parent = parent.and_then(|id| self.gateway.runs().get(id));
            let parent = match parent {
                Some(parent) => Some(self.clone().begun(parent).await?),
                None => None,
            };
            // A late request of what has ended must not end what has begun in its place.
            if run.has_ended() {
                return Err(over());
            }
            // It was taken out of the table and has begun again.
            self.end(run.id, None);
            let seen = Arc::new(self.begin(&run, numbers, parent.as_deref())?);
            self.processes.pin().insert(run.id, seen.clone());
            let (shared, ended) = (self.clone(), seen.clone());
            self.gateway.tasks().spawn(async move {
                let is_over = shared.closing.run_until_cancelled(ended.run.ended()).await;
                if is_over.is_some() {
                    shared.end(ended.run.id, Some(&ended));
                }
            });
            Ok(seen)
        })
    }

    fn begin(
        &self,
        run: &Arc<RunView>,
        numbers: Option<Numbered>,
        parent: Option<&Seen>,
    ) -> Result<Seen, Failure> {
        // The daemon's own run is the only process of a namespace of its own, and has a number of
        // its own as well: no path is that of two runs of a workspace.
        let (space, pid) = match &numbers {
            Some(numbers) => (self.space(&run.workspace), numbers.pid),
            None => (self.new_space(), Pid::OWN),
        };
        let above = parent.map(|parent| {
            let own = (parent.process.pid(), parent.run.clone());
            [own].into_iter().chain(parent.above.iter().cloned()).collect()
        });
        let above_pid = parent.map(|parent| parent.process.pid());
        let begun = space.namespace.begin(pid, above_pid, &[]);
        let process = begun.map_err(|error| *error.failure)?;
        space.runs.pin().insert(pid, run.id);
        let seen = Seen {
            process,
            run: run.clone(),
            space,
            mounted: Mutex::default(),
            next_server: self.next_server.clone(),
            earlier: numbers.map(|numbers| numbers.earlier).unwrap_or_default(),
            above: above.unwrap_or_default(),
        };
        seen.look_at_all(&self.gateway);
        Ok(seen)
    }

    /// Ends the process of a run, if it is this one.
    fn end(&self, run: RunId, only: Option<&Arc<Seen>>) {
        let processes = self.processes.pin();
        let Some(seen) = processes.get(&run).cloned() else { return };
        if only.is_some_and(|only| !Arc::ptr_eq(only, &seen)) {
            return;
        }
        processes.remove(&run);
        let pid = seen.process.pid();
        seen.space.namespace.end(pid);
        seen.space.runs.pin().remove(&pid);
    }

    fn space(&self, workspace: &WorkspaceId) -> Space {
        let mut spaces = self.spaces();
        spaces.entry(workspace.clone()).or_insert_with(|| self.new_space()).clone()
    }

    fn new_space(&self) -> Space {
        let runs = Arc::new(papaya::HashMap::new());
        let tap = self.gateway.tap().clone();
        let observer = Arc::new(OfRuns { tap, runs: runs.clone() });
        Space { namespace: Namespace::new(self.limits, Some(observer)), runs }
    }

    fn spaces(&self) -> MutexGuard<'_, HashMap<WorkspaceId, Space>> {
        self.spaces.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What is answered to a run that has ended, or has ended meanwhile.
pub(crate) fn over() -> Failure {
    Failure::new(Code::DeviceDisconnected, "transport_error", "the run has ended")
}

fn numbers_late() -> Failure {
    let within = NUMBERS_WITHIN.as_secs();
    let text = format!("the number of the run was not found within {within} s; try it again");
    Failure::new(Code::Timeout, "timeout", text)
}

impl Seen {
    /// Tells the server that is behind a mount of its own from all others that were or will be
    /// there; `None` if there is none, or the mount is another's.
    #[must_use]
    pub fn server(&self, name: &MountName) -> Option<u64> {
        let is_own = name.pid == self.process.pid();
        self.mounted().get(&name.alias).filter(|_| is_own).map(|one| one.number)
    }

    /// Mounts what the run has now, and unmounts what it has no more.
    fn look_at_all(&self, gateway: &Gateway) {
        let now: BTreeSet<_> = gateway.aliases(&self.run).into_iter().collect();
        let mut mounted = self.mounted();
        let gone: Vec<_> = mounted.keys().filter(|alias| !now.contains(*alias)).cloned().collect();
        for alias in gone {
            self.unmount(&mut mounted, &alias);
        }
        for alias in now {
            self.mount(&mut mounted, gateway, alias);
        }
    }

    /// The same for one server.
    fn look_at(&self, gateway: &Gateway, alias: &Alias) {
        let is_there = gateway.endpoint(&self.run, alias.as_str()).is_some();
        let mut mounted = self.mounted();
        match is_there {
            true => self.mount(&mut mounted, gateway, alias.clone()),
            false => self.unmount(&mut mounted, alias),
        }
    }

    fn mount(&self, mounted: &mut HashMap<Alias, OneMounted>, gateway: &Gateway, alias: Alias) {
        let snapshot = gateway.snapshot(&self.run);
        let connection = snapshot.get(alias.as_str()).and_then(|row| row.connection);
        if let Some(known) = mounted.get_mut(&alias) {
            if known.connection != connection {
                let number = self.next_server.fetch_add(1, Ordering::Relaxed);
                (known.connection, known.number) = (connection, number);
                self.space.namespace.renew(&known.mounted);
            }
            return;
        }
        let device = ServerDevice::new(gateway.clone(), self.run.clone(), alias.clone());
        let name = MountName { pid: self.process.pid(), alias: alias.clone() };
        match self.space.namespace.mount(name, Arc::new(device)) {
            Ok(mount) => {
                self.go_by(&alias);
                let number = self.next_server.fetch_add(1, Ordering::Relaxed);
                mounted.insert(alias, OneMounted { mounted: mount, connection, number });
            }
            // It has ended meanwhile.
            Err(error) => tracing::debug!(%error, "a server is not mounted"),
        }
    }

    fn unmount(&self, mounted: &mut HashMap<Alias, OneMounted>, alias: &Alias) {
        if let Some(one) = mounted.remove(alias) {
            self.space.namespace.unmount(&one.mounted);
        }
    }

    /// Paths of earlier runs of the session mean its own mount of a server, and so do those of the
    /// processes above it that have the same one (R-D9): what is opened so is called by the run
    /// itself, with what it may and in its name.
    fn go_by(&self, alias: &Alias) {
        let own = self.process.pid();
        let name = |pid| MountName { pid, alias: alias.clone() };
        let above = self.above.iter();
        let above = above.filter(|(_, run)| self.run.shares_server(alias, run));
        let above = above.map(|(pid, _)| *pid);
        for pid in self.earlier.iter().copied().chain(above) {
            self.process.also(name(pid), name(own));
        }
    }

    fn mounted(&self) -> MutexGuard<'_, HashMap<Alias, OneMounted>> {
        self.mounted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
