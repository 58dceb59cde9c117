//! The set of servers: started together, each on its own, seen through snapshots.

use std::{
    sync::{Arc, Mutex, OnceLock, PoisonError},
    time::Duration,
};

use arc_swap::ArcSwap;
use narthex_model::{Alias, CallError, CallErrorKind, ServerState};
use narthex_supervisor::BaseEnvironment;
use narthex_upstream::{
    ClientIdentity, ConnectContext, Deadlines, Dialect, Inventory, Link, LinkEvent,
};
use narthex_wire::{Limits, Message};
use tokio::{
    runtime::Handle,
    sync::{broadcast, mpsc, watch},
};
use tokio_util::{
    sync::CancellationToken,
    task::{AbortOnDropHandle, TaskTracker},
};
use tracing::Instrument as _;

use crate::{
    ServerRow, Snapshot,
    config::{Entry, LoadedConfig},
    connection,
};

/// How many messages of servers wait for a slow subscriber before it misses some.
const NOTICE_QUEUE: usize = 1024;
/// How many messages of one server wait for its owner.
pub(crate) const EVENT_QUEUE: usize = 256;

/// What every connection of a registry shares.
#[derive(Debug, Clone)]
pub struct RegistryOptions {
    /// What servers are told of us.
    pub identity: ClientIdentity,
    /// Limits of the steps of connecting.
    pub deadlines: Deadlines,
    /// Limits of single messages.
    pub limits: Limits,
    /// What every child process sees.
    pub environment: BaseEnvironment,
}

/// Something that a server said outside any request, on its shared link.
#[derive(Debug, Clone)]
pub struct Notice {
    /// The server.
    pub alias: Alias,
    /// A notification.
    pub message: Message,
}

/// The set of connections. Clones are handles to the same set.
#[derive(Debug, Clone)]
pub struct Registry {
    pub(crate) shared: Arc<Shared>,
}

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) options: RegistryOptions,
    current: ArcSwap<Snapshot>,
    changes: watch::Sender<u64>,
    rows: Mutex<Vec<Arc<ServerRow>>>,
    pub(crate) notices: broadcast::Sender<Notice>,
    pub(crate) tasks: TaskTracker,
    /// Where all links live: the runtime on which the registry was started.
    home: OnceLock<Handle>,
    pub(crate) shutdown: CancellationToken,
}

/// Why a link of one's own could not be opened.
#[derive(Debug, Clone, thiserror::Error)]
pub enum OpenError {
    /// There is no such server.
    #[error("there is no server `{0}`")]
    Unknown(Alias),
    /// The server cannot be connected; the error is the one of its row.
    #[error("{0}")]
    Failed(CallError),
}

impl Registry {
    /// An empty registry.
    #[must_use]
    pub fn new(options: RegistryOptions) -> Self {
        let shared = Shared {
            options,
            current: ArcSwap::default(),
            changes: watch::Sender::new(0),
            rows: Mutex::default(),
            notices: broadcast::Sender::new(NOTICE_QUEUE),
            tasks: TaskTracker::new(),
            home: OnceLock::new(),
            shutdown: CancellationToken::new(),
        };
        Self { shared: Arc::new(shared) }
    }

    /// Adds every entry of a configuration and starts to connect them all at once. Returns before
    /// any of them is connected; a server that fails or hangs holds up no other. All links live on
    /// the runtime from which this is called, whoever opens them.
    pub fn start(&self, config: LoadedConfig) {
        if let Ok(runtime) = Handle::try_current() {
            self.shared.home.get_or_init(|| runtime);
        }
        let mut started = Vec::new();
        {
            let mut rows = self.shared.rows();
            for entry in config.entries {
                let row = first_row(entry);
                if row.state == ServerState::Connecting
                    && let Some(definition) = row.definition.clone()
                {
                    started.push(definition);
                }
                rows.push(Arc::new(row));
            }
            self.shared.publish(&rows);
        }
        for definition in started {
            self.shared.tasks.spawn(connection::run(self.shared.clone(), definition));
        }
    }

    /// The registry as it is now. Costs no lock.
    #[must_use]
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.shared.current.load_full()
    }

    /// A receiver that sees a change of any row; its value is the snapshot's number.
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.shared.changes.subscribe()
    }

    /// What servers say outside requests. A receiver that falls behind misses the oldest.
    #[must_use]
    pub fn notices(&self) -> broadcast::Receiver<Notice> {
        self.shared.notices.subscribe()
    }

    /// Waits until `is_done` holds for a snapshot, or the deadline; gives the last one seen.
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

    /// Opens a further link to a server for one owner, who must stop it. Messages of the server
    /// outside requests go to `events`. With `dialect`, the server is spoken to in that one, which
    /// need not be the one of its shared link. The link lives on the registry's runtime, not on the
    /// caller's; a caller who gives up ends the attempt.
    ///
    /// # Errors
    /// When there is no such server, or it cannot be connected.
    pub async fn open_link(
        &self,
        alias: &Alias,
        identity: ClientIdentity,
        dialect: Option<Dialect>,
        events: mpsc::Sender<LinkEvent>,
    ) -> Result<Link, OpenError> {
        let snapshot = self.snapshot();
        let row = snapshot.get(alias.as_str()).filter(|row| row.definition.is_some());
        let Some((row, definition)) = row.and_then(|row| Some((row, row.definition.clone()?)))
        else {
            return Err(OpenError::Unknown(alias.clone()));
        };
        let mut context = self.shared.context(events);
        context.identity = identity;
        context.dialect = dialect.or(row.dialect);
        let shutdown = self.shared.shutdown.clone();
        let connecting = async move {
            tokio::select! {
                biased;
                () = shutdown.cancelled() => Err(stopping()),
                connected = narthex_upstream::connect(&definition, &context) => match connected {
                    Ok((link, _dialect)) => Ok(link),
                    Err(error) => Err(CallError::new(error.call_kind(), error.to_string())),
                },
            }
        };
        let home = self.shared.home.get().cloned().unwrap_or_else(Handle::current);
        let opening = self.shared.tasks.spawn_on(connecting.in_current_span(), &home);
        let opened = AbortOnDropHandle::new(opening).await;
        // A task that is lost is one whose runtime ends.
        opened.unwrap_or_else(|_lost| Err(stopping())).map_err(OpenError::Failed)
    }

    /// Lists a server's things anew on its shared link, unless that has happened since this row was
    /// seen. For when a call shows that the lists have changed without a word. Callers at the same
    /// time share one listing.
    pub async fn list_anew(&self, seen: &ServerRow) {
        let _one_at_a_time = seen.listing.lock().await;
        let Some((alias, link)) = seen.alias.as_ref().zip(seen.link.as_ref()) else { return };
        let snapshot = self.snapshot();
        let now = snapshot.get(alias.as_str()).map(|row| row.inventory_version);
        if now == Some(seen.inventory_version) {
            connection::relist(&self.shared, alias, link).await;
        }
    }

    /// The owner of the registry's tasks; whoever opens links through it may use it for theirs.
    #[must_use]
    pub fn tasks(&self) -> &TaskTracker {
        &self.shared.tasks
    }

    /// Stops every server and waits until all are gone. A second call is a no-op.
    pub async fn close(&self) {
        self.shared.shutdown.cancel();
        self.shared.tasks.close();
        self.shared.tasks.wait().await;
        let mut rows = self.shared.rows();
        if !rows.is_empty() {
            rows.clear();
            self.shared.publish(&rows);
        }
    }
}

fn stopping() -> CallError {
    CallError::new(CallErrorKind::TransportError, "narthex is stopping")
}

fn first_row(entry: Entry) -> ServerRow {
    let (name, alias, state, error, definition) = match entry {
        Entry::Server(definition) => {
            let state = match definition.is_disabled {
                true => ServerState::Disabled,
                false => ServerState::Connecting,
            };
            let alias = definition.alias.clone();
            (alias.to_string(), Some(alias), state, None, Some(Arc::new(definition)))
        }
        Entry::Fault(fault) => {
            let alias = Alias::new(&fault.name).ok();
            (fault.name, alias, ServerState::Error, Some(fault.error), None)
        }
    };
    ServerRow {
        name,
        alias,
        state,
        activity: None,
        error,
        definition,
        link: None,
        inventory: Arc::default(),
        inventory_version: 0,
        dialect: None,
        listing: Arc::default(),
    }
}

impl Shared {
    fn rows(&self) -> std::sync::MutexGuard<'_, Vec<Arc<ServerRow>>> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn publish(&self, rows: &[Arc<ServerRow>]) {
        let seq = self.current.load().seq + 1;
        self.current.store(Arc::new(Snapshot::new(seq, rows.to_vec())));
        self.changes.send_replace(seq);
    }

    /// Changes one row and publishes the outcome.
    pub(crate) fn update(&self, alias: &Alias, change: impl FnOnce(&mut ServerRow)) {
        let mut rows = self.rows();
        let found = rows.iter_mut().find(|row| row.alias.as_ref() == Some(alias));
        if let Some(row) = found {
            change(Arc::make_mut(row));
            self.publish(&rows);
        }
    }

    pub(crate) fn context(&self, events: mpsc::Sender<LinkEvent>) -> ConnectContext {
        ConnectContext {
            identity: self.options.identity.clone(),
            dialect: None,
            deadlines: self.options.deadlines,
            events,
            tasks: self.tasks.clone(),
            limits: self.options.limits,
            environment: self.options.environment.clone(),
            on_phase: None,
        }
    }

    /// Passes on what a server says outside requests.
    pub(crate) fn notice(&self, alias: &Alias, message: Message) {
        if self.notices.send(Notice { alias: alias.clone(), message }).is_err() {
            tracing::trace!("nobody listens to notices");
        }
    }

    /// Marks a server as usable.
    pub(crate) fn ready(&self, alias: &Alias, link: Arc<Link>, inventory: Inventory) {
        self.update(alias, |row| {
            row.state = ServerState::Ready;
            row.activity = None;
            row.error = None;
            row.link = Some(link);
            row.inventory = Arc::new(inventory);
            row.inventory_version += 1;
        });
    }

    /// Marks a server as failed.
    pub(crate) fn failed(&self, alias: &Alias, kind: CallErrorKind, message: String) {
        tracing::warn!(server.name = %alias, error.kind = %kind, "server failed: {message}");
        self.update(alias, |row| {
            row.state = ServerState::Error;
            row.activity = None;
            row.link = None;
            row.error = Some(CallError::new(kind, message));
            if !row.inventory.is_empty() {
                row.inventory = Arc::default();
                row.inventory_version += 1;
            }
        });
    }
}
