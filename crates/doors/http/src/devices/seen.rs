//! A run that is a process, with its mounted servers and its ancestor processes.

use std::{
    collections::{BTreeSet, HashMap},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use narthex_gateway::{ConnectionId, Gateway, RunId, RunView};
use narthex_model::{Alias, Pid};
use narthex_vfs::{MountName, Mounted, Process};

use crate::devices::{ServerDevice, mounts::Space};

/// A run that is a process.
#[derive(Debug)]
pub(crate) struct Seen {
    /// The process.
    pub process: Arc<Process>,
    pub(crate) run: Arc<RunView>,
    pub(crate) space: Space,
    pub(crate) mounted: Mutex<HashMap<Alias, OneMounted>>,
    pub(crate) next_server: Arc<AtomicU64>,
    /// The pids of the earlier runs of its session.
    pub(crate) earlier: Vec<Pid>,
    /// The parent run.
    pub(crate) parent: Option<RunId>,
    pub(crate) above: Mutex<Above>,
}

/// The ancestors of a process. A run may become a process before its parent does, for example after
/// a restart.
#[derive(Debug, Default)]
pub(crate) struct Above {
    /// The parent's process, as soon as the parent has one. It stays here after the parent ends.
    pub(crate) parent: Option<Arc<Seen>>,
    /// Number of ancestors whose paths are registered.
    known: usize,
}

/// A mounted server of a process.
#[derive(Debug)]
pub(crate) struct OneMounted {
    mounted: Mounted,
    /// The server's connection. Each change of the server's configuration makes a new one.
    connection: Option<ConnectionId>,
    number: u64,
}

impl Seen {
    /// The number of the server behind one of this process's own mounts. No other server has or had
    /// this number. `None` if the mount does not exist, or belongs to another process.
    #[must_use]
    pub(crate) fn server(&self, name: &MountName) -> Option<u64> {
        let is_own = name.pid == self.process.pid();
        self.mounted().get(&name.alias).filter(|_| is_own).map(|one| one.number)
    }

    /// Mounts the run's current servers, and unmounts servers that the run no longer has.
    pub(crate) fn look_at_all(&self, gateway: &Gateway) {
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

    /// Mounts one server, or unmounts it if the run no longer has it.
    pub(crate) fn look_at(&self, gateway: &Gateway, alias: &Alias) {
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
            // The process has ended in the meantime.
            Err(error) => tracing::debug!(%error, "a server is not mounted"),
        }
    }

    fn unmount(&self, mounted: &mut HashMap<Alias, OneMounted>, alias: &Alias) {
        if let Some(one) = mounted.remove(alias) {
            self.space.namespace.unmount(&one.mounted);
        }
    }

    /// Registers further paths of a mount. Paths with the pids of the session's earlier runs lead
    /// to it. So do paths with the pids of ancestor processes that have the same server (R-D9). The
    /// run itself makes the calls there, with its own permissions and in its own name.
    fn go_by(&self, alias: &Alias) {
        let own = self.process.pid();
        let name = |pid| MountName { pid, alias: alias.clone() };
        let above = self.ancestors().into_iter();
        let above = above.filter(|above| self.run.shares_server(alias, &above.run));
        let above = above.map(|above| above.process.pid());
        for pid in self.earlier.iter().copied().chain(above) {
            self.process.also(name(pid), name(own));
        }
    }

    /// The known ancestor processes, the nearest first.
    fn ancestors(&self) -> Vec<Arc<Self>> {
        let first = self.above().parent.clone();
        std::iter::successors(first, |above| above.above().parent.clone()).collect()
    }

    /// True if this process knows all ancestors that are active.
    pub(crate) fn is_complete(&self, gateway: &Gateway) -> bool {
        let known = self.ancestors();
        let top = known.last().map_or(self.parent, |top| top.parent);
        let is_more = top.is_some_and(|id| gateway.runs().get(id).is_some());
        !is_more && self.above().known == known.len()
    }

    /// Registers the pids of the ancestors. If an ancestor and this process have the same server,
    /// the ancestor's path leads to this process's own mount.
    pub(crate) fn know_above(&self) {
        let ancestors = self.ancestors();
        for above in &ancestors {
            self.process.know(above.process.pid());
        }
        self.above().known = ancestors.len();
        let mounted = self.mounted();
        mounted.keys().for_each(|alias| self.go_by(alias));
    }

    pub(crate) fn above(&self) -> MutexGuard<'_, Above> {
        self.above.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn mounted(&self) -> MutexGuard<'_, HashMap<Alias, OneMounted>> {
        self.mounted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
