//! The namespace: which servers are mounted, and the processes that may open them.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{
        Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use narthex_model::Pid;

use crate::{
    Code, Device, Failure, MountName, Observer, Operation, Process, VfsError, mounted::Mount,
    process::Kin,
};

/// The bounds of a namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The most descriptors that a process has open.
    pub files: usize,
    /// The most bytes of one write.
    pub write_bytes: usize,
    /// The longest time for a list or a resource.
    pub fetch: Duration,
    /// The longest time for a call; a server's own limit may be shorter.
    pub call: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            files: 1024,
            write_bytes: 4 << 20,
            fetch: Duration::from_secs(30),
            call: Duration::from_secs(10 * 60),
        }
    }
}

/// All mounts of a workspace, and the processes that see them. Clones are handles to the same one.
#[derive(Debug, Clone)]
pub struct Namespace {
    shared: Arc<Shared>,
}

#[derive(Debug)]
pub(crate) struct Shared {
    tables: RwLock<Tables>,
    pub(crate) limits: Limits,
    pub(crate) observer: Option<Arc<dyn Observer>>,
    next_mount: AtomicU64,
}

#[derive(Debug, Default)]
pub(crate) struct Tables {
    mounts: BTreeMap<MountName, (u64, Arc<Mount>)>,
    processes: HashMap<Pid, Arc<Process>>,
}

/// A mount, as a handle for its maker: a handle of an earlier mount at the same path unmounts
/// nothing (R-E5).
#[derive(Debug)]
pub struct Mounted {
    name: MountName,
    number: u64,
}

impl Mounted {
    /// The mount's name.
    #[must_use]
    pub fn name(&self) -> &MountName {
        &self.name
    }
}

impl Namespace {
    /// An empty namespace. It reports each operation to `observer`, if there is one.
    #[must_use]
    pub fn new(limits: Limits, observer: Option<Arc<dyn Observer>>) -> Self {
        let next_mount = AtomicU64::new(0);
        Self {
            shared: Arc::new(Shared { tables: RwLock::default(), limits, observer, next_mount }),
        }
    }

    /// A process from here on, below `parent` if that is one. It may open what is mounted for it,
    /// and of what its parent may open what `inherited` names.
    ///
    /// # Errors
    /// When there is a process of this pid (`ALREADY_MOUNTED`).
    pub fn begin(
        &self,
        pid: Pid,
        parent: Option<Pid>,
        inherited: &[MountName],
    ) -> Result<Arc<Process>, VfsError> {
        let mut tables = self.shared.write();
        if tables.processes.contains_key(&pid) {
            let failure = already(format!("there is a process {pid}"));
            return Err(VfsError::new(Operation::Mount, pid.to_string(), failure));
        }
        let parent = parent.and_then(|parent| tables.processes.get(&parent).cloned());
        let kin = Kin::below(parent.as_deref(), pid, inherited);
        let process = Arc::new(Process::new(pid, kin, self.shared.clone()));
        tables.processes.insert(pid, process.clone());
        Ok(process)
    }

    /// The process of a pid.
    #[must_use]
    pub fn process(&self, pid: Pid) -> Option<Arc<Process>> {
        self.shared.read().processes.get(&pid).cloned()
    }

    /// Ends a process: its descriptors are closed and its mounts are gone, in order. `false` if
    /// there is none.
    pub fn end(&self, pid: Pid) -> bool {
        let mut tables = self.shared.write();
        let Some(process) = tables.processes.remove(&pid) else { return false };
        let own: Vec<_> = tables.mounts.keys().filter(|name| name.pid == pid).cloned().collect();
        let gone: Vec<_> = own.iter().filter_map(|name| tables.mounts.remove(name)).collect();
        drop(tables);
        process.close_all();
        gone.into_iter().for_each(|(_, mount)| mount.gone.cancel());
        true
    }

    /// Mounts a server for a process, which may open it from here on.
    ///
    /// # Errors
    /// When something is mounted there (`ALREADY_MOUNTED`, R-E1), or there is no such process
    /// (`NOT_FOUND`).
    pub fn mount(&self, name: MountName, device: Arc<dyn Device>) -> Result<Mounted, VfsError> {
        let failed = |failure| VfsError::new(Operation::Mount, name.path(), failure);
        let mut tables = self.shared.write();
        let Some(process) = tables.processes.get(&name.pid).cloned() else {
            return Err(failed(Failure::not_found(format!("there is no process {}", name.pid))));
        };
        if tables.mounts.contains_key(&name) {
            return Err(failed(already("a server is mounted there".to_owned())));
        }
        let number = self.shared.next_mount.fetch_add(1, Ordering::Relaxed);
        let mount = Arc::new(Mount::new(name.clone(), device));
        tables.mounts.insert(name.clone(), (number, mount));
        process.allow(name.clone());
        Ok(Mounted { name, number })
    }

    /// Unmounts a server: what was open of it is of no use any more. `false` if it is not mounted
    /// any more, or another one is there.
    pub fn unmount(&self, mounted: &Mounted) -> bool {
        let mut tables = self.shared.write();
        let is_this = tables.mounts.get(&mounted.name).is_some_and(|(n, _)| *n == mounted.number);
        let Some((_, mount)) = is_this.then(|| tables.mounts.remove(&mounted.name)).flatten()
        else {
            return false;
        };
        drop(tables);
        mount.gone.cancel();
        true
    }

    /// Reports that another server is behind a mount from here on, which its device has found by
    /// itself. Earlier answers are of no use any more ([`Process::check`]). Calls that are under
    /// way end as they do. `false` if it is not mounted any more.
    pub fn renew(&self, mounted: &Mounted) -> bool {
        let tables = self.shared.read();
        let mount = tables.mounts.get(&mounted.name).filter(|(n, _)| *n == mounted.number);
        mount.inspect(|(_, mount)| mount.next_turn()).is_some()
    }

    /// The names of all mounts, in order.
    #[must_use]
    pub fn mounts(&self) -> Vec<MountName> {
        self.shared.names()
    }
}

impl Shared {
    pub(crate) fn names(&self) -> Vec<MountName> {
        self.read().mounts.keys().cloned().collect()
    }

    pub(crate) fn read(&self) -> RwLockReadGuard<'_, Tables> {
        self.tables.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Tables> {
        self.tables.write().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn mount(&self, name: &MountName) -> Option<Arc<Mount>> {
        self.read().mounts.get(name).map(|(_, mount)| mount.clone())
    }
}

fn already(message: String) -> Failure {
    Failure::new(Code::AlreadyMounted, "conflict", message)
}
