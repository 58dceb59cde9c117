//! The choice of a request's link, and links that serve one session alone (D12).

pub(crate) mod bridge;

mod bridging;
mod heard;
mod open;
mod own_link;
mod pool;
mod room;
mod sent_level;

use std::{sync::Arc, time::Duration};

use narthex_model::{Alias, CallError, CallErrorKind, TransportKind};
use narthex_registry::{ServerKey, ServerRow};
use narthex_upstream::{ClientIdentity, InUse, Inventory, Link, ServerFacts};
use narthex_wire::Revision;
use tokio::{
    sync::oneshot,
    time::{Instant, timeout, timeout_at},
};

use crate::{
    Caller, Endpoint, RunView, Session,
    clock::CallClock,
    refusal::{Refusal, unknown_server},
    runs::run::{Changes, RunRow, RunRows},
    shared::Shared,
};

use self::room::Room;
pub(crate) use self::{
    bridging::answerable,
    heard::{Hearers, hear},
    own_link::{Lent, LinkKind, OwnLink, STOP_DEADLINE, stop_all},
    pool::LinkPool,
    sent_level::SentLevel,
};

/// Pause before a pooled link that could not be opened is tried again.
const REOPEN_PAUSE: Duration = Duration::from_secs(4);

/// A link and the lists of its server on it.
pub(crate) struct Chosen {
    /// The server as it was when the link was chosen.
    pub(crate) row: RunRow,
    /// The link, which the call uses: the gateway does not end it during the call for a newer link.
    pub(crate) link: InUse,
    pub(crate) inventory: Arc<Inventory>,
    pub(crate) kind: LinkKind,
}

/// The kind of link that a session needs to a server (D12). A client and a server of one era get no
/// translation if that costs no process: a server over HTTP with both eras gets a legacy link for
/// legacy clients. Only a try shows if a server has both eras: its list of versions proves nothing.
/// `facts` are the server's description on its shared link.
pub(crate) fn link_kind(session: &Session, row: &ServerRow, facts: &ServerFacts) -> LinkKind {
    let is_modern = facts.revision.is_modern();
    if is_modern && row.is_modern_only() {
        return LinkKind::Shared;
    }
    if session.can_be_asked() {
        return LinkKind::Own;
    }
    let is_http =
        row.definition.as_ref().is_some_and(|server| server.transport() == TransportKind::Http);
    let is_transparent = matches!(session.endpoint, Endpoint::Transparent(_));
    let is_other = is_modern || (is_transparent && facts.revision != session.revision);
    if is_http && is_other { LinkKind::Pooled(session.revision) } else { LinkKind::Shared }
}

impl Shared {
    /// The link for a caller's requests to a ready server of its run. The row may have changed
    /// since it was looked up: then the call goes to the server as it is now.
    pub(crate) async fn choose_link(
        self: &Arc<Self>,
        caller: &Caller,
        row: &RunRow,
    ) -> Result<Chosen, Refusal> {
        self.choose_link_by(caller, row, CallClock::start()).await
    }

    /// As [`Self::choose_link`], for a call with a running `clock`: connecting, listing and waiting
    /// use up the call's time.
    pub(crate) async fn choose_link_by(
        self: &Arc<Self>,
        caller: &Caller,
        row: &RunRow,
        clock: CallClock,
    ) -> Result<Chosen, Refusal> {
        // A row of another run would be a bug: the caller gets no link to that server.
        if !caller.run.policy.is_attached(row.alias()) {
            return Err(unknown_server(row.alias()));
        }
        let mut row = row.clone();
        loop {
            let deadline = clock.deadline(self.options.timeout(&row));
            if let Some(chosen) = self.try_link(caller, &row, deadline).await? {
                return Ok(chosen);
            }
            // Tries are not counted: an operator may change a server as often as wanted.
            if !self.has_moved_on(&caller.run, &row, deadline).await {
                break;
            }
            row = self.settled_by(&caller.run, row.alias(), clock).await?;
        }
        Err(crate::refusal::unusable(&row))
    }

    fn room(&self) -> Room<'_> {
        Room { registry: &self.registry, sessions: &self.sessions, runs: &self.runs }
    }

    /// Waits until a server has changed since it was seen; `false` if it has not at the deadline.
    async fn has_moved_on(&self, run: &RunView, row: &RunRow, deadline: Instant) -> bool {
        let is_other =
            |rows: &RunRows| rows.get(&row.name).is_none_or(|now| !Arc::ptr_eq(&now, row));
        let left = deadline.saturating_duration_since(Instant::now());
        let now = self.wait_until(run, left, is_other).await;
        !left.is_zero() && is_other(&now)
    }

    /// Tries once to choose a link. `None` if the link has just ended or makes way for another.
    async fn try_link(
        self: &Arc<Self>,
        caller: &Caller,
        row: &RunRow,
        deadline: Instant,
    ) -> Result<Option<Chosen>, Refusal> {
        let Some(link) = self.enter_by(row, deadline).await else { return Ok(None) };
        let kind = match &caller.session {
            Some(session) => link_kind(session, row, link.facts()),
            None => LinkKind::Shared,
        };
        let alias = row.alias();
        let opened = match (kind, &caller.session) {
            (LinkKind::Own, Some(session)) => {
                // This call does not use the shared link.
                drop(link);
                let opening = Box::pin(checked(|| self.own_link_anyhow(session, alias)));
                timeout_at(deadline, opening).await.unwrap_or_else(|_late| Err(slow(row)))
            }
            (LinkKind::Pooled(revision), _) => {
                drop(link);
                let server = caller.run.key(alias);
                let opening = Box::pin(checked(|| self.pooled_link_anyhow(&server, revision)));
                let opened =
                    timeout_at(deadline, opening).await.unwrap_or_else(|_late| Err(slow(row)));
                // Several runs may use the pooled link, each frozen to its own first lists.
                match opened {
                    Ok(Lent { link, inventory }) => {
                        let client = ClientIdentity { revision, ..self.own_identity() };
                        let seen =
                            self.run_source.unchanged(&caller.run, alias, &client, inventory);
                        Box::pin(seen).await.map(|inventory| Lent { link, inventory })
                    }
                    Err(refusal) => Err(refusal),
                }
            }
            _ => {
                let inventory = row.inventory.clone();
                return Ok(Some(Chosen { row: row.clone(), link, inventory, kind }));
            }
        };
        match opened {
            Ok(Lent { link, inventory }) => {
                Ok(Some(Chosen { row: row.clone(), link, inventory, kind }))
            }
            // The link was opened on a connection that another has replaced meanwhile (E41).
            Err(refusal)
                if self.is_changed(&caller.run, row) && !matches!(refusal, Refusal::Cancelled) =>
            {
                Ok(None)
            }
            // The server refused the client's era, so the call is translated to the server's own
            // era.
            Err(refusal) if row.is_modern_only() && !matches!(refusal, Refusal::Cancelled) => {
                let Some(link) = self.enter_by(row, deadline).await else { return Ok(None) };
                let (inventory, kind) = (row.inventory.clone(), LinkKind::Shared);
                Ok(Some(Chosen { row: row.clone(), link, inventory, kind }))
            }
            Err(refusal) => Err(refusal),
        }
    }

    /// True if a server has another connection than when this row was seen.
    pub(crate) fn is_changed(&self, run: &RunView, row: &ServerRow) -> bool {
        let snapshot = self.snapshot(run);
        snapshot.get(&row.name).is_none_or(|now| now.connection != row.connection)
    }

    /// The shared link of a ready server, which may have to be woken or checked.
    pub(crate) async fn enter(&self, row: &RunRow) -> Option<InUse> {
        self.enter_by(row, Instant::now() + self.options.timeout(row)).await
    }

    async fn enter_by(&self, row: &RunRow, deadline: Instant) -> Option<InUse> {
        let link = match row.link.as_ref().and_then(Link::enter) {
            Some(link) => link,
            None => {
                let left = deadline.saturating_duration_since(Instant::now());
                Box::pin(self.registry.enter(row, left)).await?
            }
        };
        if link.closed().is_cancelled() {
            return None;
        }
        if link.needs_check() {
            let checked = timeout_at(deadline, Box::pin(link.check())).await;
            if !matches!(checked, Ok(Ok(()))) {
                return None;
            }
        }
        Some(link)
    }

    /// As [`Shared::own_link`], but opens the link in a task of its own: if the caller's time ends,
    /// the link still opens for the next caller.
    async fn own_link_anyhow(
        self: &Arc<Self>,
        session: &Arc<Session>,
        alias: &Alias,
    ) -> Result<Lent, Refusal> {
        let cell = session.own_link_cell(alias);
        if let Some(lent) = cell.get().and_then(OwnLink::lend) {
            return Ok(lent);
        }
        let (shared, session, alias) = (self.clone(), session.clone(), alias.clone());
        self.lent(async move { shared.own_link(&session, &alias).await }).await
    }

    /// As [`Self::own_link_anyhow`], for a pooled link.
    async fn pooled_link_anyhow(
        self: &Arc<Self>,
        server: &ServerKey,
        revision: Revision,
    ) -> Result<Lent, Refusal> {
        let (shared, server) = (self.clone(), server.clone());
        let cell = self.pool.place(&server, revision);
        if let Some(lent) = cell.get().and_then(OwnLink::lend) {
            return Ok(lent);
        }
        self.lent(async move { shared.pooled_link(&server, revision).await }).await
    }

    async fn lent(
        &self,
        opening: impl Future<Output = Result<Lent, Refusal>> + Send + 'static,
    ) -> Result<Lent, Refusal> {
        let (done, opened) = oneshot::channel();
        self.spawn(async move { drop(done.send(opening.await)) });
        // A task is lost only if its runtime ends.
        opened.await.unwrap_or(Err(Refusal::Cancelled))
    }

    /// The session's own link to a server; the first caller opens it, others wait for it. A link
    /// that was opened while its connection made way for another one is opened anew.
    pub(crate) async fn own_link(
        self: &Arc<Self>,
        session: &Arc<Session>,
        alias: &Alias,
    ) -> Result<Lent, Refusal> {
        loop {
            let cell = session.own_link_cell(alias);
            let own = cell.get_or_try_init(|| self.open_own(session, alias)).await?;
            if let Some(lent) = own.lend() {
                return Ok(lent);
            }
        }
    }

    async fn open_own(
        self: &Arc<Self>,
        session: &Arc<Session>,
        alias: &Alias,
    ) -> Result<OwnLink, Refusal> {
        let rows = self.snapshot(&session.run);
        let row = rows.get(alias.as_str()).ok_or_else(|| unknown_server(alias))?;
        let opening = async {
            if row.definition.as_ref().is_some_and(|one| one.transport() == TransportKind::Stdio) {
                self.room().of_run(session, &row).await?;
            }
            self.open_link(&row, session.client.clone(), Some(&session.run)).await
        };
        let (own, events) = tokio::select! {
            biased;
            () = session.closed.cancelled() => return Err(Refusal::Cancelled),
            opened = opening => opened?,
        };
        // Stops the link when the session ends, or has ended just now.
        let (hearers, link) =
            (Hearers::Session(session.clone(), self.hub.ears.clone()), own.link.clone());
        let over = session.closed.clone().cancelled_owned();
        self.spawn(async move { hear(hearers, &link, events, over).await });
        if let Some(level) = session.log_level() {
            self.tell_level(session, &own.link, level);
        }
        self.subscribe_again(session, &own.link);
        Ok(own)
    }

    /// The link that all sessions of one revision share.
    async fn pooled_link(
        self: &Arc<Self>,
        server: &ServerKey,
        revision: Revision,
    ) -> Result<Lent, Refusal> {
        loop {
            let cell = self.pool.place(server, revision);
            let own = cell.get_or_try_init(|| self.open_pooled(server, revision)).await?;
            if let Some(lent) = own.lend() {
                return Ok(lent);
            }
        }
    }

    async fn open_pooled(
        self: &Arc<Self>,
        server: &ServerKey,
        revision: Revision,
    ) -> Result<OwnLink, Refusal> {
        let row = self.row_of(server).ok_or_else(|| unknown_server(&server.alias))?;
        let kind = LinkKind::Pooled(revision);
        let identity = ClientIdentity { revision, ..self.own_identity() };
        let (own, events) = tokio::select! {
            biased;
            () = self.shutdown.cancelled() => return Err(Refusal::Cancelled),
            opened = self.open_link(&row, identity, None) => opened?,
        };
        let hearers = Hearers::Pool(self.clone(), server.clone(), revision);
        let (link, over) = (own.link.clone(), self.shutdown.clone().cancelled_owned());
        self.spawn(async move { hear(hearers, &link, events, over).await });
        self.tell_new_link(&own.link, server, kind);
        Ok(own)
    }

    /// Forgets the state of links to those of `servers` that do not exist any more. Other runs may
    /// still have some of a run's own servers.
    pub(crate) fn forget_gone(&self, servers: impl Iterator<Item = ServerKey>) {
        let is_gone = |server: &ServerKey| {
            server.connection().is_some_and(|own| self.registry.mounted(own).is_none())
        };
        servers.filter(is_gone).for_each(|server| self.forget_pooled(&server));
    }

    /// As [`Self::forget_gone`], for all servers: a server may have existed a moment longer than
    /// its last run.
    pub(crate) fn forget_all_gone(&self) {
        self.forget_gone(self.pool.servers().into_iter().chain(self.hub.told()));
    }

    /// Forgets the state of links to a server that does not exist any more.
    pub(crate) fn forget_pooled(&self, server: &ServerKey) {
        self.pool.forget(server);
        self.hub.forget_levels(server);
    }

    /// The row of a server, of a run or of the shared configuration.
    pub(crate) fn row_of(&self, server: &ServerKey) -> Option<Arc<ServerRow>> {
        match server.connection() {
            Some(connection) => Some(self.registry.mounted(connection)?.row()),
            None => self.registry.snapshot().get(server.alias.as_str()).cloned(),
        }
    }

    /// Longest time of a server to answer requests that the gateway sends for its callers.
    pub(crate) fn patience(&self, server: &ServerKey) -> Duration {
        self.row_of(server).map_or(self.options.call_timeout, |row| self.options.timeout(&row))
    }

    /// Waits for a server's link of this kind, however long the server is unavailable. Wakes a
    /// server that sleeps. Waits for ever for a server whose run has ended.
    pub(crate) async fn live_link(
        self: &Arc<Self>,
        server: &ServerKey,
        kind: LinkKind,
    ) -> Arc<Link> {
        let Some(mut changes) = Changes::of(&self.registry, server) else {
            return std::future::pending().await;
        };
        loop {
            changes.mark_seen();
            let row = self.row_of(server);
            if let Some(row) = row.as_ref().filter(|row| row.is_asleep) {
                self.registry.wake(row);
            }
            let link = row.and_then(|row| row.link.clone());
            let mut live = link.filter(|link| !link.closed().is_cancelled());
            if let (Some(_), LinkKind::Pooled(revision)) = (&live, kind) {
                let pooled = self.pooled_link(server, revision).await.ok();
                live = pooled.map(|chosen| Arc::clone(&chosen.link));
            }
            if let Some(link) = live {
                return link;
            }
            // A pooled link may also open later without a change of the row.
            drop(timeout(REOPEN_PAUSE, changes.next()).await);
        }
    }
}

/// The error of a call that ran out of time before its server was connected for it.
pub(crate) fn slow(row: &ServerRow) -> Refusal {
    let text = format!("server `{}` was not connected for this call in time; try again", row.name);
    Refusal::Unsent(CallError::new(CallErrorKind::Timeout, text))
}

/// Lends an open link. A link that does not answer any more is lost, and another is opened (R-E13).
async fn checked<F>(open: impl Fn() -> F) -> Result<Lent, Refusal>
where
    F: Future<Output = Result<Lent, Refusal>>,
{
    let lent = open().await?;
    if !lent.link.needs_check() || lent.link.check().await.is_ok() {
        return Ok(lent);
    }
    drop(lent);
    open().await
}

/// True if a server takes levels: modern ones have one in each request.
pub(crate) fn has_levels(link: &Link) -> bool {
    let facts = link.facts();
    facts.capabilities.logging && !facts.revision.is_modern()
}
