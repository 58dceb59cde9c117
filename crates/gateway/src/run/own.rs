//! Servers that one run has for itself (E7), beside those that all share.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use arc_swap::ArcSwapOption;
use bytes::Bytes;
use narthex_model::Alias;
use narthex_policy::RunPolicy;
use narthex_registry::{
    ConnectionId, FirstLists, Found, MountFault, MountSet, Registry, ServerRow, Snapshot,
};
use narthex_upstream::{ClientIdentity, Inventory};
use narthex_wire::Revision;
use tokio::sync::watch;

/// Which server of all an alias stands for: several runs may each have one of the same alias.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct ServerKey {
    pub(crate) alias: Alias,
    /// Set for a run's own. A mount has the same connection for as long as it lives, and no other
    /// ever has its number.
    own: Option<ConnectionId>,
}

impl ServerKey {
    /// The server that all share under this alias, whatever it is connected by.
    pub(crate) fn shared(alias: &Alias) -> Self {
        Self { alias: alias.clone(), own: None }
    }

    pub(crate) fn own(alias: &Alias, connection: ConnectionId) -> Self {
        Self { alias: alias.clone(), own: Some(connection) }
    }

    pub(crate) fn is_own(&self) -> bool {
        self.own.is_some()
    }
}

/// What a run has mounted for itself.
#[derive(Debug, Default)]
pub(super) struct OwnServers {
    /// What there was at the beginning, which never changes.
    keys: Vec<(Alias, ConnectionId)>,
    /// Those that it should have and that did not start, each with the reason.
    failed: Vec<Arc<ServerRow>>,
    /// What they had at first, if the run is frozen to that.
    first: Option<FirstLists>,
    /// The same for links besides the shared ones, by what their clients said of themselves.
    variants: Mutex<HashMap<Variant, Arc<Inventory>>>,
    /// Gone when the run has ended.
    mounts: ArcSwapOption<MountSet>,
    joined: ArcSwapOption<Joined>,
    /// Held while the servers are joined anew; the number of the last time.
    joining: Mutex<u64>,
}

/// Shared and own servers as they were together.
#[derive(Debug)]
struct Joined {
    shared: Arc<Snapshot>,
    /// As they were found, in the order of the mounts.
    own: Vec<Arc<Found>>,
    all: Arc<Snapshot>,
}

/// A server as it lists for clients of some capabilities, in some revision.
type Variant = (Alias, Bytes, Revision);

/// The most variants whose first lists are kept; clients choose what they say of themselves.
const VARIANTS_MAX: usize = 64;

impl OwnServers {
    pub(super) fn new(set: MountSet) -> Self {
        let keys = set.mounts().iter().map(|mount| (mount.alias().clone(), mount.id())).collect();
        Self { keys, mounts: ArcSwapOption::from_pointee(set), ..Self::default() }
    }

    pub(super) fn with_failed(self, faults: Vec<MountFault>) -> Self {
        let row = |fault: MountFault| Arc::new(ServerRow::failed(fault.alias, fault.error));
        Self { failed: faults.into_iter().map(row).collect(), ..self }
    }

    pub(super) fn with_first(self, first: FirstLists) -> Self {
        Self { first: Some(first), ..self }
    }

    pub(super) fn is_frozen(&self, alias: &Alias) -> bool {
        self.first.as_ref().is_some_and(|first| first.has(alias))
    }

    /// What a client is to see of what a server lists on a link besides the shared one: what it
    /// listed at first on such a link.
    pub(super) fn first_of(
        &self,
        alias: &Alias,
        client: &ClientIdentity,
        listed: &Arc<Inventory>,
    ) -> Option<Arc<Inventory>> {
        if !self.is_frozen(alias) {
            return None;
        }
        let variant = (alias.clone(), client.capabilities.clone(), client.revision);
        let mut variants = self.variants.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(first) = variants.get(&variant) {
            return Some(first.clone());
        }
        if variants.len() >= VARIANTS_MAX {
            return Some(Arc::default());
        }
        variants.insert(variant, listed.clone());
        Some(listed.clone())
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

    pub(super) fn key(&self, alias: &Alias) -> ServerKey {
        let own = self.keys.iter().find(|(own, _)| own == alias);
        ServerKey { alias: alias.clone(), own: own.map(|(_, connection)| *connection) }
    }

    /// Gives everything back: each server ends after its open calls, if nobody else has it.
    pub(super) fn release(&self) {
        self.mounts.store(None);
        self.joined.store(None);
    }

    /// The shared servers that `policy` attaches, and the own ones. Costs no lock unless something
    /// has changed, and then one of the run alone. A run that has ended sees nothing.
    pub(super) fn snapshot(&self, registry: &Registry, policy: &RunPolicy) -> Arc<Snapshot> {
        let Some(mounts) = self.mounts.load_full() else { return Arc::default() };
        let is_fresh = |joined: &Joined| joined.is_of(&registry.snapshot(), &mounts);
        if let Some(joined) = self.joined.load().as_ref().filter(|joined| is_fresh(joined)) {
            return joined.all.clone();
        }
        let mut number = self.joining.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(joined) = self.joined.load().as_ref().filter(|joined| is_fresh(joined)) {
            return joined.all.clone();
        }
        *number += 1;
        let shared = registry.snapshot();
        let is_seen =
            |alias: &Option<Alias>| alias.as_ref().is_some_and(|alias| policy.is_attached(alias));
        let seen = shared.servers.iter().filter(|row| is_seen(&row.alias)).cloned().collect();
        let rows: Vec<_> = mounts.mounts().iter().map(|mount| mount.row()).collect();
        let found = rows.iter().map(|row| row.found.clone()).collect();
        let row = |row| match &self.first {
            Some(first) => first.row(row),
            None => row,
        };
        let mut own: Vec<_> = rows.into_iter().map(row).collect();
        own.extend_from_slice(&self.failed);
        let all = Arc::new(shared.joined(*number, seen, &own));
        self.joined.store(Some(Arc::new(Joined { shared, own: found, all: all.clone() })));
        // It may have ended meanwhile.
        if self.mounts.load().is_none() {
            self.joined.store(None);
        }
        all
    }

    fn receivers(&self) -> Vec<watch::Receiver<u64>> {
        let mounts = self.mounts.load();
        let mounts = mounts.as_ref().map(|set| set.mounts()).unwrap_or_default();
        mounts.iter().map(|mount| mount.changes()).collect()
    }

    pub(super) fn changes(&self, registry: &Registry) -> Changes {
        let mut receivers = self.receivers();
        receivers.push(registry.changes());
        Changes(receivers)
    }
}

impl Joined {
    /// Whether nothing has changed since.
    fn is_of(&self, shared: &Arc<Snapshot>, mounts: &MountSet) -> bool {
        let own = mounts.mounts().iter().zip(&self.own);
        Arc::ptr_eq(&self.shared, shared)
            && own.into_iter().all(|(mount, found)| Arc::ptr_eq(found, &mount.found()))
    }
}

/// Sees that something has changed that a run may see, not each change.
#[derive(Debug)]
pub struct Changes(Vec<watch::Receiver<u64>>);

impl Changes {
    /// Those of the servers that all share.
    pub(crate) fn of(registry: &Registry) -> Self {
        Self(vec![registry.changes()])
    }

    /// Takes everything until now as seen.
    pub fn mark_seen(&mut self) {
        self.0.iter_mut().for_each(|changes| drop(changes.borrow_and_update()));
    }

    /// Waits for the next change; `false` if there will be none, since what changes is gone.
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
