//! The set of servers: configured together, connected independently, published as snapshots.

mod credentials;
mod links;
mod profile_sets;
mod verbs;

use std::{
    collections::BTreeSet,
    fmt,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    time::Duration,
};

use arc_swap::ArcSwap;
use narthex_http_client::Proxies;
use narthex_model::Alias;
use narthex_supervisor::{BaseEnvironment, LogRing};
use narthex_upstream::{
    ClientIdentity, ConnectContext, CredentialSource, Deadlines, Health, LinkEvent, Supervision,
};
use narthex_wire::{Limits, Message};
use tokio::{
    runtime::Handle,
    sync::{broadcast, mpsc, watch},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

pub use self::{
    links::OpenError,
    verbs::{Applied, Enabling},
};
use crate::{
    ConnectionId, DefinitionPins, Found, Profiles, ServerEvent, ServerRow, Snapshot, Subscription,
    connection::{Connection, Settings},
    digest::DigestKey,
    handshakes::Handshakes,
    pool::Pool,
    rows::Rows,
    subscription::SNAPSHOT_QUEUE,
};

/// Number of messages of servers that wait for a slow subscriber before it misses some.
const NOTICE_QUEUE: usize = 1024;
/// Number of messages of one server that wait for its owner.
pub(crate) const EVENT_QUEUE: usize = 256;

/// Options that every connection of a registry shares.
#[derive(Debug, Clone)]
pub struct RegistryOptions {
    /// Narthex's description of itself for servers.
    pub identity: ClientIdentity,
    /// Limits on the steps of connecting.
    pub deadlines: Deadlines,
    /// Limits of single messages.
    pub limits: Limits,
    /// Environment variables of every child process.
    pub environment: BaseEnvironment,
    /// The supervision of servers' programs, and the confinement of programs whose entry sets none.
    pub supervision: Supervision,
    /// The proxies for servers over HTTP.
    pub proxies: Arc<Proxies>,
    /// The names of servers that a person has disabled (E57).
    pub disabled: BTreeSet<String>,
    /// Time without a call after which a program is stopped until the next call; `None` for never.
    pub idle_stop: Option<Duration>,
    /// Maximum number of processes of one server: the shared one and those of single sessions.
    pub children_max: usize,
    /// True if a caller will set a reviewer of definitions ([`Registry::set_pins`]). Otherwise an
    /// entry that pins its definitions is faulty.
    pub has_pins: bool,
    /// The source of credentials that can change. Without it, a server whose entry names OAuth
    /// cannot be connected.
    ///
    /// `narthex_oauth_client::SignIns` is one. The hooks of its options get the address of each
    /// sign-in (`open_authorize_url`), changed tokens (`on_tokens_changed`) and new registrations
    /// (`on_client_registered`); [`Registry::finish_auth`] takes the browser's way back.
    pub credentials: Option<Arc<dyn CredentialSource>>,
}

impl RegistryOptions {
    /// The default limits: no server is disabled or sleeps, 64 processes per server.
    #[must_use]
    pub fn new(identity: ClientIdentity, environment: BaseEnvironment) -> Self {
        Self {
            identity,
            deadlines: Deadlines::default(),
            limits: Limits::default(),
            environment,
            supervision: Supervision::default(),
            proxies: Arc::default(),
            disabled: BTreeSet::new(),
            idle_stop: None,
            children_max: 64,
            has_pins: false,
            credentials: None,
        }
    }
}

/// A message of a server outside any request, on its shared link.
#[derive(Debug, Clone)]
pub struct Notice {
    /// The server.
    pub alias: Alias,
    /// The connection that received the message.
    pub connection: ConnectionId,
    /// True if a row shows the connection, or did. A message on a connection that is only mounted
    /// is for its owners alone (E7).
    pub is_shared: bool,
    /// A notification.
    pub message: Message,
}

/// The set of connections. Clones are handles to the same set. Call [`Registry::close`] before the
/// runtime ends.
#[derive(Debug, Clone)]
pub struct Registry {
    pub(crate) shared: Arc<Shared>,
}

pub(crate) struct Shared {
    pub(crate) options: RegistryOptions,
    pub(crate) key: DigestKey,
    current: ArcSwap<Snapshot>,
    changes: watch::Sender<u64>,
    snapshots: broadcast::Sender<Arc<Snapshot>>,
    rows: Mutex<Rows>,
    pub(crate) pool: Pool,
    pub(crate) handshakes: Handshakes,
    notices: broadcast::Sender<Notice>,
    events: broadcast::Sender<ServerEvent>,
    pub(crate) profiles: watch::Sender<Arc<Profiles>>,
    /// Held while the profiles are replaced.
    pub(crate) profiles_turn: Mutex<()>,
    /// The decider of definitions that are pinned, once it is known.
    pub(crate) pins: watch::Sender<Option<Arc<dyn DefinitionPins>>>,
    pub(crate) tasks: TaskTracker,
    /// The runtime of all links: the first one on which the registry was used.
    home: OnceLock<Handle>,
    pub(crate) shutdown: CancellationToken,
}

impl Registry {
    /// An empty registry.
    ///
    /// # Errors
    /// When the operating system gives no random bytes.
    pub fn new(options: RegistryOptions) -> Result<Self, getrandom::Error> {
        let mut key = [0; 32];
        getrandom::fill(&mut key)?;
        let rows = Rows::new(options.disabled.clone());
        let shared = Shared {
            options,
            key: DigestKey::new(&key),
            current: ArcSwap::default(),
            changes: watch::Sender::new(0),
            snapshots: broadcast::Sender::new(SNAPSHOT_QUEUE),
            rows: Mutex::new(rows),
            pool: Pool::default(),
            handshakes: Handshakes::default(),
            notices: broadcast::Sender::new(NOTICE_QUEUE),
            events: broadcast::Sender::new(NOTICE_QUEUE),
            profiles: watch::Sender::default(),
            profiles_turn: Mutex::default(),
            pins: watch::Sender::new(None),
            tasks: TaskTracker::new(),
            home: OnceLock::new(),
            shutdown: CancellationToken::new(),
        };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// The present snapshot. Takes no lock.
    #[must_use]
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.shared.current.load_full()
    }

    /// Every row, in the configuration's order.
    #[must_use]
    pub fn list(&self) -> Vec<Arc<ServerRow>> {
        self.snapshot().servers.clone()
    }

    /// The row in effect under a name; `None` if there is none.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Arc<ServerRow>> {
        let snapshot = self.snapshot();
        let is_it = |row: &&Arc<ServerRow>| !row.is_overridden && row.name == name;
        snapshot.servers.iter().find(is_it).cloned()
    }

    /// Subscribes to every snapshot from now on; the present one is available at once (E65). A slow
    /// subscriber delays no other.
    #[must_use]
    pub fn subscribe(&self) -> Subscription {
        // The lock of publishing is held, so that the subscriber misses no snapshot and gets none
        // twice.
        let _rows = self.shared.rows();
        Subscription::new(self.snapshot(), self.shared.snapshots.subscribe())
    }

    /// A receiver of changes of rows; it may skip changes. Its value is the snapshot's number.
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.shared.changes.subscribe()
    }

    /// Subscribes to servers' messages outside of requests. A slow receiver misses the oldest.
    #[must_use]
    pub fn notices(&self) -> broadcast::Receiver<Notice> {
        self.shared.notices.subscribe()
    }

    /// The proxies for servers over HTTP, and for other hosts that this process contacts.
    #[must_use]
    pub fn proxies(&self) -> Arc<Proxies> {
        self.shared.options.proxies.clone()
    }

    /// Subscribes to events of servers. A slow receiver misses the oldest.
    #[must_use]
    pub fn events(&self) -> broadcast::Receiver<ServerEvent> {
        self.shared.events.subscribe()
    }

    /// Waits until `is_done` holds for a snapshot, at most for `within`; returns the last snapshot.
    pub async fn wait_until(
        &self,
        within: Duration,
        is_done: impl Fn(&Snapshot) -> bool,
    ) -> Arc<Snapshot> {
        let mut changes = self.changes();
        let waiting = async {
            loop {
                changes.borrow_and_update();
                let snapshot = self.snapshot();
                if is_done(&snapshot) || changes.changed().await.is_err() {
                    return snapshot;
                }
            }
        };
        tokio::time::timeout(within, waiting).await.unwrap_or_else(|_late| self.snapshot())
    }

    /// The owner of the registry's tasks. A caller that opens links may use it for its own tasks.
    #[must_use]
    pub fn tasks(&self) -> &TaskTracker {
        &self.shared.tasks
    }

    /// Stops all servers at the same time, and waits until all have ended; later sets are refused.
    /// Subscribers get one last snapshot without rows (E69). A second call does nothing.
    pub async fn close(&self) {
        self.shared.rows().is_closed = true;
        self.shared.shutdown.cancel();
        self.shared.tasks.close();
        self.shared.tasks.wait().await;
        let mut rows = self.shared.rows();
        let current = self.shared.current.load_full();
        if !current.is_last {
            rows.slots.clear();
            let mut last = Snapshot::new(current.seq + 1, Vec::new());
            last.is_last = true;
            self.shared.publish(last);
        }
    }
}

impl Shared {
    pub(crate) fn rows(&self) -> MutexGuard<'_, Rows> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The runtime of all links.
    pub(crate) fn home(&self) -> Handle {
        self.home.get_or_init(Handle::current).clone()
    }

    pub(crate) fn settings(&self) -> Settings {
        let RegistryOptions { deadlines, idle_stop, .. } = self.options;
        Settings { deadlines, idle_stop, awaits_consent: false, signs_in: true }
    }

    /// Publishes a snapshot of the rows as they are, which may differ from the last ones.
    pub(crate) fn publish_rows(&self, rows: &mut Rows) {
        let seq = self.current.load().seq + 1;
        self.publish(Snapshot::new(seq, all(rows)));
        rows.end_leaving();
    }

    fn publish(&self, snapshot: Snapshot) {
        let snapshot = Arc::new(snapshot);
        self.current.store(snapshot.clone());
        self.changes.send_replace(snapshot.seq);
        if self.snapshots.send(snapshot).is_err() {
            tracing::trace!("no receiver of snapshots exists");
        }
    }

    /// Publishes the found state of a connection in its row, if the row still has the connection.
    pub(crate) fn show(&self, id: ConnectionId, found: Arc<Found>) {
        let mut rows = self.rows();
        if rows.is_closed {
            return;
        }
        let slot = rows.slots.iter_mut().find(|slot| slot.row.connection == Some(id));
        if let Some(slot) = slot {
            Arc::make_mut(&mut slot.row).found = found;
            self.publish(self.current.load().with_rows(all(&rows)));
        }
    }

    /// The connection of a row that was seen, if the row still has it.
    pub(crate) fn connection(&self, row: &ServerRow) -> Option<Arc<Connection>> {
        if let Some(mounted) = &row.mounted {
            return mounted.upgrade();
        }
        let rows = self.rows();
        let mounts = rows.slots.iter().filter_map(|slot| slot.mount.as_ref());
        let mut found = mounts.filter(|mount| Some(mount.id()) == row.connection);
        found.next().map(|mount| mount.connection().clone())
    }

    pub(crate) fn context(
        &self,
        events: mpsc::Sender<LinkEvent>,
        deadlines: Deadlines,
        (log, health): (&LogRing, &Arc<Health>),
    ) -> ConnectContext {
        ConnectContext {
            identity: self.options.identity.clone(),
            dialect: None,
            deadlines,
            events,
            tasks: self.tasks.clone(),
            limits: self.options.limits,
            environment: self.options.environment.clone(),
            log: Some(log.clone()),
            supervision: self.options.supervision.clone(),
            proxies: self.options.proxies.clone(),
            on_phase: None,
            health: health.clone(),
            credentials: None,
            has_holder: false,
        }
    }

    /// Passes on a server's message outside requests.
    pub(crate) fn notice(&self, connection: &Connection, message: Message) {
        let (alias, is_shared) = (connection.alias().clone(), connection.is_shown());
        let notice = Notice { alias, connection: connection.id, is_shared, message };
        if self.notices.send(notice).is_err() {
            tracing::trace!("no receiver of notices exists");
        }
    }

    /// Publishes an event of a server.
    pub(crate) fn event(&self, event: ServerEvent) {
        tracing::info!(event = event.name(), "{event}");
        if self.events.send(event).is_err() {
            tracing::trace!("no receiver of events exists");
        }
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared")
            .field("options", &self.options)
            .field("snapshot", &self.current.load().seq)
            .finish_non_exhaustive()
    }
}

fn all(rows: &Rows) -> Vec<Arc<ServerRow>> {
    rows.slots.iter().map(|slot| slot.row.clone()).collect()
}
