//! Further links to a server, in addition to the shared one.

use std::sync::Arc;

use narthex_model::{Alias, CallErrorKind, ServerDefinition, ServerFailure};
use narthex_supervisor::LogRing;
use narthex_upstream::{ClientIdentity, ConnectError, Deadlines, Dialect, InUse, Link, LinkEvent};
use tokio::{
    sync::mpsc,
    time::{Duration, timeout},
};
use tokio_util::task::AbortOnDropHandle;
use tracing::Instrument as _;

use super::{Registry, Shared};
use crate::{
    ServerRow,
    connection::{self, Connection},
    handshakes::{TRY_AGAIN, TRY_DEADLINE},
};

/// The reason why a further link could not be opened.
#[derive(Debug, Clone)]
pub enum OpenError {
    /// No server has this alias.
    Unknown(String),
    /// The server cannot be connected; the failure is that of its row.
    Failed(ServerFailure),
    /// The server has its maximum number of processes: this number.
    Full(usize),
    /// The server forgot the session that it had just opened: one immediate retry may help.
    Forgotten(ServerFailure),
}

impl From<ConnectError> for OpenError {
    fn from(error: ConnectError) -> Self {
        let failure = ServerFailure::new(error.call_kind(), error.to_string());
        let failure = failure.with_sign_in(error.wanted_sign_in());
        if error.is_forgotten() { Self::Forgotten(failure) } else { Self::Failed(failure) }
    }
}

impl Registry {
    /// Opens a further link to a server for one owner, who must stop it. The link also ends when
    /// the server is changed, removed or disabled, after the owner's open calls. The server's
    /// messages outside of requests go to `events`. `dialect` is the dialect of the link, which may
    /// differ from the shared link's. The link runs on the registry's runtime, not on the caller's;
    /// dropping the future ends the attempt.
    ///
    /// # Errors
    /// When there is no such server, the server cannot be connected, or it has its maximum number
    /// of processes.
    pub async fn open_link(
        &self,
        alias: &Alias,
        identity: ClientIdentity,
        dialect: Option<Dialect>,
        events: mpsc::Sender<LinkEvent>,
    ) -> Result<Arc<Link>, OpenError> {
        let row = self.snapshot().get(alias.as_str()).cloned();
        let row = row.ok_or_else(|| OpenError::Unknown(alias.as_str().to_owned()))?;
        self.open_link_to(&row, identity, dialect, events).await
    }

    /// Opens a link as [`Registry::open_link`] does, to the server of this row, which may be a
    /// mount's.
    ///
    /// # Errors
    /// The errors of [`Registry::open_link`].
    pub async fn open_link_to(
        &self,
        row: &ServerRow,
        identity: ClientIdentity,
        dialect: Option<Dialect>,
        events: mpsc::Sender<LinkEvent>,
    ) -> Result<Arc<Link>, OpenError> {
        let unknown = || OpenError::Unknown(row.name.clone());
        let connection = self.shared.connection(row).ok_or_else(unknown)?;
        let dialect = dialect.or(row.dialect);
        let opening = open(self.shared.clone(), connection, identity, dialect, events);
        let opening = self.shared.tasks.spawn_on(opening.in_current_span(), &self.shared.home());
        let opened = AbortOnDropHandle::new(opening).await;
        // A task is lost only if its runtime ends.
        opened.unwrap_or_else(|_lost| Err(OpenError::Failed(stopping())))
    }

    /// Opens a link apart from all shared state, for one owner, who must stop it: a test of the
    /// server. The link runs on the caller's runtime.
    ///
    /// # Errors
    /// When the server cannot be connected.
    pub async fn open_apart(
        &self,
        definition: &ServerDefinition,
        events: mpsc::Sender<LinkEvent>,
    ) -> Result<Arc<Link>, ServerFailure> {
        let (log, health) = (LogRing::default(), Arc::default());
        let mut context = self.shared.context(events, self.deadlines(definition), (&log, &health));
        // A server of a run has no part in the shared grant, even under the same name.
        let row = self.get(definition.alias.as_str());
        if row.is_some_and(|row| row.definition.as_deref() == Some(definition)) {
            context.credentials = self.shared.credentials_of(definition, None);
        }
        let connected = tokio::select! {
            biased;
            () = self.shared.shutdown.cancelled() => return Err(stopping()),
            connected = narthex_upstream::connect(definition, &context) => connected,
        };
        let (link, _dialect) =
            connected.map_err(|error| ServerFailure::new(error.call_kind(), error.to_string()))?;
        Ok(Arc::new(link))
    }

    /// Maximum number of processes of one server for the sessions of one run, not counting the
    /// shared one: half of all, and at least one.
    #[must_use]
    pub fn processes_of_run(&self) -> usize {
        match self.shared.options.children_max {
            few @ 0..8 => few.max(1),
            most => most / 2,
        }
    }

    /// Time limits for connecting to a server: those of its entry, or the usual ones.
    #[must_use]
    pub fn deadlines(&self, definition: &ServerDefinition) -> Deadlines {
        self.shared.settings().of(definition).deadlines
    }

    /// Lists a server anew on its shared link, unless the lists have been read since this row was
    /// read. For a call that shows that the lists changed without a notification. Concurrent
    /// callers share one listing.
    pub async fn list_anew(&self, seen: &ServerRow) {
        let _one_at_a_time = seen.listing.lock().await;
        let Some(connection) = self.shared.connection(seen) else { return };
        let now = connection.found();
        if now.inventory_version == seen.inventory_version
            && let Some(link) = &now.link
        {
            connection::relist(&self.shared, &connection, link).await;
        }
    }

    /// Starts a server that was stopped because no caller used it. Has a server that waits for a
    /// sign-in get another address if the known one is old. Does not wait.
    pub fn wake(&self, row: &ServerRow) {
        if let Some(connection) = self.shared.connection(row) {
            connection.wake();
        }
    }

    /// Tries a probed server in `error` soon, and waits for the outcome, at most for `within`.
    /// Concurrent callers share one attempt; two attempts are at least a second apart.
    pub async fn probe(&self, row: &ServerRow, within: Duration) {
        if let Some(connection) = self.shared.connection(row).filter(|_| row.is_probed) {
            drop(timeout(within, connection.probed()).await);
        }
    }

    /// The shared link of a ready server, in use by the caller; a sleeping server is started first.
    /// `None` when the row has changed meanwhile, or after `within`: read the row again.
    pub async fn enter(&self, row: &ServerRow, within: Duration) -> Option<InUse> {
        if let Some(link) = &row.link {
            return link.enter();
        }
        let connection = self.shared.connection(row)?;
        let entering = async {
            loop {
                let found = connection.awake().await;
                // A server with a short limit may sleep again before the call enters its link.
                match found.link.as_ref().and_then(Link::enter) {
                    None if !found.is_asleep && connection.found().is_asleep => {}
                    entered => return entered,
                }
            }
        };
        timeout(within, entering).await.ok().flatten()
    }
}

async fn open(
    shared: Arc<Shared>,
    connection: Arc<Connection>,
    identity: ClientIdentity,
    dialect: Option<Dialect>,
    events: mpsc::Sender<LinkEvent>,
) -> Result<Arc<Link>, OpenError> {
    let tried = (dialect == Some(Dialect::Legacy)).then(|| connection.found());
    let tried = tried.filter(|found| found.dialect == Some(Dialect::Modern));
    let Some(_place) = connection.reserve(shared.options.children_max) else {
        if let Some(found) = &tried {
            found.legacy.doubt(TRY_AGAIN);
        }
        return Err(OpenError::Full(shared.options.children_max));
    };
    let found = connection.found();
    let of = (&found.log, &found.health);
    let mut context = shared.context(events, connection.settings.deadlines, of);
    context.identity = identity;
    context.dialect = dialect;
    connection.equip(&mut context);
    if tried.as_ref().is_some_and(|found| !found.legacy.has_answered()) {
        // The server works, so silence means that it does not answer this handshake. A call waits.
        context.deadlines.connect = context.deadlines.connect.min(TRY_DEADLINE);
    }
    let connected = tokio::select! {
        biased;
        () = connection.ending() => return Err(OpenError::Failed(stopping())),
        connected = narthex_upstream::connect(&connection.definition, &context) => connected,
    };
    if let Some(found) = &tried {
        found.legacy.learn(connected.as_ref().err());
    }
    if let Err(error) = &connected {
        // The shared link may not know yet that its credential has ended.
        found.health.unconnected(error);
    }
    let (link, _dialect) = connected?;
    let link = Arc::new(link);
    if connection.keep(&link) {
        return Ok(link);
    }
    link.stop().await;
    Err(OpenError::Failed(stopping()))
}

fn stopping() -> ServerFailure {
    ServerFailure::new(CallErrorKind::TransportError, "the server is about to stop")
}
