//! The open connections, each once: all callers that want the same server share one (D12).
//!
//! A [`Mount`] is one reference. The count is that of an [`Arc`], so it cannot fall below zero. A
//! handle to a replaced connection ends that connection, and no newer one.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicU64, Ordering},
    },
};

use narthex_model::{Alias, Provenance, ServerDefinition};
use narthex_upstream::{Ended, Holder};
use tokio::sync::watch;

use crate::{
    ConnectionId, Found, MountIdentity, ServerRow, Sharing,
    connection::{self, Before, Connection, Settings, SignIn},
    digest::Digest,
    registry::Shared,
};

/// The facts that two callers must have in common to share a connection.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct PoolKey {
    pub(crate) alias: Alias,
    pub(crate) digest: Digest,
    pub(crate) identity: Arc<MountIdentity>,
    pub(crate) sharing: Sharing,
    /// The human whose grant the connection uses. No other human gets the connection.
    pub(crate) holder: Option<Holder>,
    /// A unique number if the connection is never shared, even if all else is equal.
    apart: Option<u64>,
}

static APART: AtomicU64 = AtomicU64::new(1);

impl PoolKey {
    /// The key of a server. For a server with sign-in, two mounts share only if the identity names
    /// the owner of the credential (D12, X-M14).
    pub(crate) fn new(
        definition: &ServerDefinition,
        digest: Digest,
        identity: Arc<MountIdentity>,
        sharing: Sharing,
    ) -> Self {
        let is_somebodys = definition.is_per_user() && identity.credential.is_none();
        let apart = is_somebodys.then(|| APART.fetch_add(1, Ordering::Relaxed));
        let alias = definition.alias.clone();
        Self { alias, digest, identity, sharing, holder: None, apart }
    }

    /// The key of a connection that uses the grant of this human, and may be shared by all mounts
    /// that use the same grant.
    pub(crate) fn held_by(self, holder: Option<&Holder>) -> Self {
        match holder {
            Some(holder) => Self { holder: Some(holder.clone()), apart: None, ..self },
            None => self,
        }
    }
}

/// The open connections.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    mounted: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
    /// Connections that the next caller with the same key may share.
    by_key: HashMap<PoolKey, Weak<Mounted>>,
    /// All connections.
    by_id: HashMap<ConnectionId, Weak<Mounted>>,
}

/// A reference to one connection. Dropping the last reference ends the connection, after its open
/// calls.
#[derive(Debug, Clone)]
pub struct Mount {
    held: Arc<Mounted>,
    /// The definition of this mount. Mounts of one connection may differ in limits and exposure.
    definition: Arc<ServerDefinition>,
}

#[derive(Debug)]
struct Mounted {
    key: PoolKey,
    connection: Arc<Connection>,
    shared: Weak<Shared>,
    /// Locked while the lists are read because of a call.
    listing: Arc<tokio::sync::Mutex<()>>,
    /// Other definitions of the same connection, each once.
    variants: Mutex<Vec<Weak<ServerDefinition>>>,
}

/// Follows the state of a mounted server, for callers that report it. A watched mount is no
/// reference, and keeps nothing open.
#[derive(Debug, Clone)]
pub struct WatchedMount {
    alias: Alias,
    connection: Arc<Connection>,
    changes: watch::Receiver<u64>,
}

impl WatchedMount {
    /// The server's alias.
    #[must_use]
    pub fn alias(&self) -> &Alias {
        &self.alias
    }

    /// The server's present state.
    #[must_use]
    pub fn found(&self) -> Arc<Found> {
        self.connection.found()
    }

    /// Waits until the server's state has changed; never returns once the state is final.
    pub async fn changed(&mut self) {
        if self.changes.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// True if a caller still has the server mounted.
    #[must_use]
    pub fn is_held(&self) -> bool {
        !self.connection.is_ending()
    }

    /// Waits until the server has ended, and returns the way it ended.
    pub async fn ended(&self) -> Ended {
        self.connection.ended().await
    }
}

impl Mount {
    /// Follows the server's state from now on, without keeping the connection open.
    #[must_use]
    pub fn watched(&self) -> WatchedMount {
        let connection = self.held.connection.clone();
        WatchedMount { alias: self.alias().clone(), changes: connection.changes(), connection }
    }

    /// True if only mounts of the same owner can share the connection.
    #[must_use]
    pub fn is_alone(&self) -> bool {
        let key = &self.held.key;
        matches!(key.sharing, Sharing::Only(_)) || key.apart.is_some()
    }

    /// A reference with the definition of the mount that connected first.
    fn first(held: Arc<Mounted>) -> Self {
        let definition = held.connection.definition.clone();
        Self { held, definition }
    }

    /// A reference with this definition. Equal definitions are stored once.
    fn defined(held: Arc<Mounted>, definition: &Arc<ServerDefinition>) -> Self {
        if held.connection.definition == *definition {
            return Self::first(held);
        }
        let mut variants = held.variants.lock().unwrap_or_else(PoisonError::into_inner);
        variants.retain(|known| known.strong_count() > 0);
        let known = variants.iter().filter_map(Weak::upgrade).find(|known| known == definition);
        let definition = known.unwrap_or_else(|| {
            variants.push(Arc::downgrade(definition));
            definition.clone()
        });
        drop(variants);
        Self { held, definition }
    }

    /// The server's alias.
    #[must_use]
    pub fn alias(&self) -> &Alias {
        &self.held.key.alias
    }

    /// The id of the catalog's server, across all workspaces; `None` for a server of no catalog.
    #[must_use]
    pub fn server(&self) -> Option<&Arc<str>> {
        self.held.key.identity.server.as_ref()
    }

    /// The id of the connection.
    #[must_use]
    pub fn id(&self) -> ConnectionId {
        self.held.connection.id
    }

    /// The server's present state. Costs no lock.
    #[must_use]
    pub fn found(&self) -> Arc<Found> {
        self.held.connection.found()
    }

    /// The server's present state as a row, for an owner that shows it together with the registry's
    /// rows. The row is no reference.
    #[must_use]
    pub fn row(&self) -> Arc<ServerRow> {
        let Mounted { connection, listing, .. } = &*self.held;
        Arc::new(ServerRow {
            name: self.alias().as_str().to_owned(),
            alias: Some(self.alias().clone()),
            provenance: Provenance::Programmatic,
            file: None,
            is_overridden: false,
            definition: Some(self.definition.clone()),
            found: connection.found(),
            connection: Some(connection.id),
            listing: listing.clone(),
            mounted: Some(Arc::downgrade(connection)),
        })
    }

    /// A receiver of changes in the server's state; it may skip changes.
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.held.connection.changes()
    }

    /// Number of references.
    #[must_use]
    pub fn count(&self) -> usize {
        Arc::strong_count(&self.held)
    }

    /// Waits until the server is ready or has failed.
    pub async fn settled(&self) -> Arc<Found> {
        self.held.connection.decided().await
    }

    /// Releases the reference. The last reference waits until the server has ended after its open
    /// calls, and returns the way it ended; otherwise `None`.
    pub async fn unmount(self) -> Option<Ended> {
        let connection = self.held.connection.clone();
        drop(Arc::into_inner(self.held)?);
        Some(connection.ended().await)
    }

    pub(crate) fn connection(&self) -> &Arc<Connection> {
        &self.held.connection
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        if let Some(shared) = self.shared.upgrade() {
            let mut mounted = shared.pool.mounted();
            // A later caller may have replaced this connection under the same key.
            if mounted.by_key.get(&self.key).is_some_and(|now| now.strong_count() == 0) {
                mounted.by_key.remove(&self.key);
            }
            mounted.by_id.remove(&self.connection.id);
        }
        self.connection.retire();
    }
}

impl Pool {
    fn mounted(&self) -> MutexGuard<'_, Held> {
        self.mounted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A reference to the connection of this number, if any caller holds it.
    pub(crate) fn of_id(&self, id: ConnectionId) -> Option<Mount> {
        self.mounted().by_id.get(&id).and_then(Weak::upgrade).map(Mount::first)
    }

    /// References to all connections to a server of the live configuration.
    pub(crate) fn of(&self, alias: &Alias) -> Vec<Mount> {
        self.those(|key| key.alias == *alias && key.identity.server.is_none())
    }

    /// References to all connections whose identity `is_meant` selects.
    pub(crate) fn of_identity(&self, is_meant: impl Fn(&MountIdentity) -> bool) -> Vec<Mount> {
        self.those(|key| is_meant(&key.identity))
    }

    fn those(&self, is_meant: impl Fn(&PoolKey) -> bool) -> Vec<Mount> {
        let mounted = self.mounted();
        let of = mounted.by_key.iter().filter(|(key, _)| is_meant(key));
        of.filter_map(|(_, held)| held.upgrade()).map(Mount::first).collect()
    }

    /// References to all connections of an alias that use the grant of this holder, or the shared
    /// one.
    pub(crate) fn of_grant(&self, alias: &Alias, holder: Option<&Holder>) -> Vec<Mount> {
        self.signing_in(|key| key.alias == *alias && key.holder.as_ref() == holder)
    }

    /// As [`Self::of_grant`], for a server of a catalog by its [`MountIdentity::server`].
    pub(crate) fn of_catalog_grant(&self, server: &str, holder: Option<&Holder>) -> Vec<Mount> {
        self.signing_in(|key| {
            key.identity.server.as_deref() == Some(server) && key.holder.as_ref() == holder
        })
    }

    fn signing_in(&self, is_meant: impl Fn(&PoolKey) -> bool) -> Vec<Mount> {
        // A reference that is dropped takes the lock.
        let held: Vec<_> = self.mounted().by_id.values().filter_map(Weak::upgrade).collect();
        let of = held.into_iter().filter(|held| is_meant(&held.key) && held.connection.signs_in());
        of.map(Mount::first).collect()
    }

    /// Hands this connection to no further caller; present holders keep it.
    pub(crate) fn forget(&self, mount: &Mount) {
        let mut mounted = self.mounted();
        let now = mounted.by_key.get(&mount.held.key);
        if now.is_some_and(|now| now.as_ptr() == Arc::as_ptr(&mount.held)) {
            mounted.by_key.remove(&mount.held.key);
        }
    }
}

impl Shared {
    /// Returns a reference to the connection of a key. Creates the connection if there is none, or
    /// if the present one has failed (E35, E51). Until the server has listed, the inventory in
    /// `before` names its items, so that calls wait for the server instead of finding no item
    /// (E41).
    pub(crate) fn mount(
        self: &Arc<Self>,
        key: PoolKey,
        definition: &Arc<ServerDefinition>,
        settings: Settings,
        before: Before<'_>,
    ) -> Mount {
        let credentials = match settings.signs_in {
            true => self.credentials_of(definition, key.holder.as_ref()),
            false => None,
        };
        let mut mounted = self.pool.mounted();
        let held = mounted.by_key.get(&key).and_then(Weak::upgrade);
        if let Some(held) = held.as_ref().filter(|held| held.connection.is_usable()) {
            return Mount::defined(held.clone(), definition);
        }
        let sign_in = SignIn::new(credentials, key.holder.is_some());
        let before = Before { legacy: self.handshakes.of(key.digest), sign_in, ..before };
        let connection = Arc::new(Connection::new(self, definition.clone(), settings, before));
        let new = Arc::new(Mounted {
            key: key.clone(),
            connection: connection.clone(),
            shared: Arc::downgrade(self),
            listing: Arc::default(),
            variants: Mutex::default(),
        });
        mounted.by_id.insert(connection.id, Arc::downgrade(&new));
        mounted.by_key.insert(key, Arc::downgrade(&new));
        drop(mounted);
        // The old reference is dropped only now, since its drop takes the lock.
        drop(held);
        self.tasks.spawn_on(connection::run(self.clone(), connection), &self.home());
        Mount::first(new)
    }
}
