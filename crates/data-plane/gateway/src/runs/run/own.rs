//! Servers that one run has for itself (E7), besides the shared ones.

use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwapOption;
use narthex_model::{Alias, Profile, ServerState};
use narthex_policy::{LiveProfile, RunPolicy};
use narthex_registry::{
    ConnectionId, FirstLists, FirstVariants, Found, KeptFurther, KeptLists, Mount, MountFault,
    MountSet, Registry, ServerKey, ServerRow, Snapshot,
};
use narthex_upstream::{Inventory, Listed};
use tokio::sync::watch;

/// A server, its present lists, and the names of items that its first lists define otherwise.
pub(crate) type Changed = (Alias, Arc<Inventory>, Vec<(Listed, Arc<str>)>);

/// The servers that a run has mounted for itself.
#[derive(Debug, Default)]
pub(super) struct OwnServers {
    /// The servers that began with the run, which never change.
    keys: Vec<(Alias, ConnectionId)>,
    /// The servers on a connection that no other run shares.
    alone: Vec<Alias>,
    /// The ids of the servers in the catalog, across all workspaces.
    catalog: Vec<(Alias, Arc<str>)>,
    /// The servers that the run should have and that did not start, each with the reason.
    failed: Vec<Arc<ServerRow>>,
    /// The first lists of the servers, if the run is frozen to these.
    first: ArcSwapOption<FirstLists>,
    /// The number of first lists that came after the start of the run.
    arrivals: watch::Sender<u64>,
    /// The first lists on links besides the shared ones.
    variants: FirstVariants,
    /// The mounted servers; `None` when the run has ended.
    mounts: ArcSwapOption<MountSet>,
    joined: ArcSwapOption<Joined>,
    /// Held while the servers are joined anew. The value is the number of the last join.
    joining: Mutex<u64>,
}

/// The shared servers and a run's own servers, joined at one moment.
#[derive(Debug)]
struct Joined {
    shared: Option<Arc<Snapshot>>,
    /// The profile by which the shared servers were chosen.
    profile: Option<Arc<Profile>>,
    /// The first lists that limit the run's own servers.
    first: Option<Arc<FirstLists>>,
    /// The servers as they were found, in the order of the mounts.
    own: Vec<Arc<Found>>,
    all: Arc<Snapshot>,
}

impl OwnServers {
    pub(super) fn new(set: MountSet) -> Self {
        let keys = set.mounts().iter().map(|mount| (mount.alias().clone(), mount.id())).collect();
        let server = |mount: &Mount| Some((mount.alias().clone(), mount.server()?.clone()));
        let catalog = set.mounts().iter().filter_map(server).collect();
        let alone = set.mounts().iter().filter(|mount| mount.is_alone());
        let alone = alone.map(|mount| mount.alias().clone()).collect();
        Self { keys, alone, catalog, mounts: ArcSwapOption::from_pointee(set), ..Self::default() }
    }

    pub(super) fn with_failed(self, faults: Vec<MountFault>) -> Self {
        let row = |fault: MountFault| Arc::new(ServerRow::failed(fault.alias, fault.error));
        Self { failed: faults.into_iter().map(row).collect(), ..self }
    }

    pub(super) fn with_first(self, first: FirstLists) -> Self {
        Self { first: ArcSwapOption::from_pointee(first), ..self }
    }

    pub(super) fn is_frozen(&self, alias: &Alias) -> bool {
        self.first.load().as_ref().is_some_and(|first| first.has(alias))
    }

    /// The servers that have listed nothing reviewed yet and list now, each with its lists.
    pub(super) fn awaited(&self) -> Vec<(Alias, Arc<Inventory>)> {
        let (Some(first), Some(mounts)) = (self.first.load_full(), self.mounts.load_full()) else {
            return Vec::new();
        };
        let awaited = mounts.mounts().iter().filter(|mount| first.awaits(mount.alias()));
        let listed = awaited.filter_map(|mount| {
            let found = mount.found();
            let is_ready = found.state == ServerState::Ready;
            is_ready.then(|| (mount.alias().clone(), found.inventory.clone()))
        });
        listed.collect()
    }

    /// Takes the reviewed part of a server's lists as its first lists, if it has none.
    pub(super) fn arrived(&self, alias: &Alias, reviewed: &Arc<Inventory>) {
        self.first.rcu(|first| {
            let first = first.as_ref()?;
            Some(Arc::new(first.arrived(alias, reviewed)))
        });
        self.arrivals.send_modify(|count| *count += 1);
    }

    /// The first lists on shared links, by digests.
    pub(super) fn first_lists(&self) -> KeptLists {
        self.first.load().as_ref().map(|first| first.kept()).unwrap_or_default()
    }

    /// The items that the servers define otherwise now than in their first lists, each with all
    /// that its server lists.
    pub(super) fn changed(&self) -> Vec<Changed> {
        let (Some(first), Some(mounts)) = (self.first.load_full(), self.mounts.load_full()) else {
            return Vec::new();
        };
        let changed = mounts.mounts().iter().map(|mount| {
            let now = mount.found().inventory.clone();
            let names = first.changed(mount.alias(), &now);
            (mount.alias().clone(), now, names)
        });
        changed.filter(|(_, _, names)| !names.is_empty()).collect()
    }

    /// True if models may get this text of a server about itself.
    pub(super) fn may_be_told(&self, alias: &Alias, text: &str) -> bool {
        self.first.load().as_ref().is_none_or(|first| first.lets_tell(alias, text))
    }

    /// The first lists of a frozen server on links besides the shared ones.
    pub(super) fn variants(&self, alias: &Alias) -> Option<&FirstVariants> {
        self.is_frozen(alias).then_some(&self.variants)
    }

    /// All first lists on links besides the shared ones, by digests.
    pub(super) fn further_lists(&self) -> KeptFurther {
        self.variants.kept()
    }

    pub(super) fn with_further(self, kept: KeptFurther) -> Self {
        Self { variants: FirstVariants::again(kept), ..self }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.keys.is_empty() && self.failed.is_empty()
    }

    pub(super) fn aliases(&self) -> impl Iterator<Item = &Alias> {
        let failed = self.failed.iter().filter_map(|row| row.alias.as_ref());
        self.keys.iter().map(|(alias, _)| alias).chain(failed)
    }

    pub(super) fn keys(&self) -> impl Iterator<Item = ServerKey> {
        self.keys.iter().map(|(alias, connection)| ServerKey::own(alias, *connection))
    }

    /// True if an alias means a server that no other run can reach over the same connection.
    pub(super) fn is_alone(&self, alias: &Alias) -> bool {
        self.alone.contains(alias)
    }

    /// The catalog server that an alias means, across all workspaces.
    pub(super) fn catalog(&self, alias: &Alias) -> Option<&str> {
        self.catalog.iter().find(|(own, _)| own == alias).map(|(_, server)| &**server)
    }

    pub(super) fn key(&self, alias: &Alias) -> ServerKey {
        let own = self.keys.iter().find(|(own, _)| own == alias);
        match own {
            Some((_, connection)) => ServerKey::own(alias, *connection),
            None => ServerKey::shared(alias),
        }
    }

    /// Forgets the parts that are made anew when a caller reads them.
    pub(super) fn forget_joined(&self) {
        self.joined.store(None);
        self.variants.forget_compared();
    }

    /// Releases all servers: each ends after its open calls, if no other run has it.
    pub(super) fn release(&self) {
        self.mounts.store(None);
        self.joined.store(None);
    }

    /// The servers of a run that is not plain: the shared servers that `policy` attaches, and the
    /// run's own servers. Takes no lock unless a server has changed, and then only a lock of this
    /// run. A run that has ended sees no servers.
    pub(super) fn snapshot(&self, registry: &Registry, policy: &RunPolicy) -> Arc<Snapshot> {
        let Some(mounts) = self.mounts.load_full() else { return Arc::default() };
        let shared = || self.shared(registry, policy);
        let profile = || policy.profile().map(LiveProfile::current);
        let is_fresh = |joined: &Joined| {
            let first = self.first.load();
            joined.first.as_ref().map(Arc::as_ptr) == first.as_ref().map(Arc::as_ptr)
                && joined.is_of(&shared(), &profile(), &mounts)
        };
        if let Some(joined) = self.joined.load().as_ref().filter(|joined| is_fresh(joined)) {
            return joined.all.clone();
        }
        let mut number = self.joining.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(joined) = self.joined.load().as_ref().filter(|joined| is_fresh(joined)) {
            return joined.all.clone();
        }
        *number += 1;
        // Read before the servers are chosen: a profile that is replaced meanwhile makes the join
        // outdated.
        let (shared, profile, first) = (shared(), profile(), self.first.load_full());
        let rows: Vec<_> = mounts.mounts().iter().map(|mount| mount.row()).collect();
        let own = rows.iter().map(|row| row.found.clone()).collect();
        let all = Arc::new(self.join(*number, &shared, policy, rows));
        self.joined.store(Some(Arc::new(Joined { shared, profile, first, own, all: all.clone() })));
        // The run may have ended meanwhile.
        if self.mounts.load().is_none() {
            self.joined.store(None);
        }
        all
    }

    /// The same snapshot for a caller that reads it once; the snapshot is not stored.
    pub(super) fn snapshot_once(&self, registry: &Registry, policy: &RunPolicy) -> Arc<Snapshot> {
        let Some(mounts) = self.mounts.load_full() else { return Arc::default() };
        let rows = mounts.mounts().iter().map(|mount| mount.row()).collect();
        Arc::new(self.join(0, &self.shared(registry, policy), policy, rows))
    }

    /// The shared servers that the run sees and its own servers, as they are now.
    fn join(
        &self,
        number: u64,
        shared: &Option<Arc<Snapshot>>,
        policy: &RunPolicy,
        own: Vec<Arc<ServerRow>>,
    ) -> Snapshot {
        let is_seen =
            |alias: &Option<Alias>| alias.as_ref().is_some_and(|alias| policy.is_attached(alias));
        let rows = shared.as_ref().map(|shared| shared.servers.iter()).into_iter().flatten();
        let seen = rows.filter(|row| is_seen(&row.alias)).cloned().collect();
        let first = self.first.load_full();
        let first = |row| match &first {
            Some(first) => first.row(row),
            None => row,
        };
        let mut own: Vec<_> = own.into_iter().map(first).collect();
        own.extend_from_slice(&self.failed);
        Snapshot::joined(number, seen, &own)
    }

    /// The shared servers, if the run may see any. Changes of hidden servers change nothing for the
    /// run.
    fn shared(&self, registry: &Registry, policy: &RunPolicy) -> Option<Arc<Snapshot>> {
        self.sees_shared(policy).then(|| registry.snapshot())
    }

    /// True if the run sees shared servers: its policy attaches more servers than the run's own.
    fn sees_shared(&self, policy: &RunPolicy) -> bool {
        match policy {
            RunPolicy::AllAttached | RunPolicy::Profile(_) => true,
            RunPolicy::Attached(named) => named.len() > self.keys.len() + self.failed.len(),
        }
    }

    fn receivers(&self) -> Vec<watch::Receiver<u64>> {
        let mounts = self.mounts.load();
        let mounts = mounts.as_ref().map(|set| set.mounts()).unwrap_or_default();
        mounts.iter().map(|mount| mount.changes()).collect()
    }

    pub(super) fn changes(&self, registry: &Registry, policy: &RunPolicy) -> Changes {
        let mut receivers = self.receivers();
        receivers.push(self.arrivals.subscribe());
        if self.sees_shared(policy) {
            receivers.push(registry.changes());
        }
        receivers.extend(policy.profile().map(LiveProfile::changes));
        Changes(receivers)
    }
}

impl Joined {
    /// True if no server and no profile has changed since the join.
    fn is_of(
        &self,
        shared: &Option<Arc<Snapshot>>,
        profile: &Option<Arc<Profile>>,
        mounts: &MountSet,
    ) -> bool {
        let own = mounts.mounts().iter().zip(&self.own);
        self.shared.as_ref().map(Arc::as_ptr) == shared.as_ref().map(Arc::as_ptr)
            && self.profile.as_ref().map(Arc::as_ptr) == profile.as_ref().map(Arc::as_ptr)
            && own.into_iter().all(|(mount, found)| Arc::ptr_eq(found, &mount.found()))
    }
}

/// Watches for changes of the servers that a run may see. Several changes may be reported as one.
#[derive(Debug)]
pub struct Changes(Vec<watch::Receiver<u64>>);

impl Changes {
    /// The changes of one server that a run has for itself, or of all shared servers. `None` if the
    /// run's server does not exist any more.
    pub(crate) fn of(registry: &Registry, server: &ServerKey) -> Option<Self> {
        let changes = match server.connection() {
            Some(connection) => registry.mounted(connection)?.changes(),
            None => registry.changes(),
        };
        Some(Self(vec![changes]))
    }

    /// Marks all changes until now as seen.
    pub fn mark_seen(&mut self) {
        self.0.iter_mut().for_each(|changes| drop(changes.borrow_and_update()));
    }

    /// Waits for the next change; `false` if there will be none, since a server is gone.
    pub async fn next(&mut self) -> bool {
        let mut waiting: Vec<_> =
            self.0.iter_mut().map(|changes| Box::pin(changes.changed())).collect();
        std::future::poll_fn(|context| {
            for changed in &mut waiting {
                if let std::task::Poll::Ready(changed) = changed.as_mut().poll(context) {
                    return std::task::Poll::Ready(changed.is_ok());
                }
            }
            std::task::Poll::Pending
        })
        .await
    }
}
