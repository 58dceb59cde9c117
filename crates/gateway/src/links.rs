//! Which link a request takes, and links that serve one session alone (D12).

use std::{
    sync::{Arc, PoisonError},
    time::Duration,
};

use arc_swap::ArcSwap;
use narthex_model::{Alias, CallErrorKind, TransportKind};
use narthex_registry::{Notice, OpenError, ServerRow};
use narthex_upstream::{ClientIdentity, Dialect, Inventory, Link, LinkEvent, ServerFacts};
use narthex_wire::{Message, Payload, Raw, Revision, method, rpc};
use tokio::{sync::mpsc, task::JoinSet, time::timeout};

use crate::{Caller, Endpoint, Session, gateway::Shared, refusal::Refusal, session::OwnLink};

/// How many messages of a server wait for one session.
const EVENT_QUEUE: usize = 256;
/// How long servers may take to end: longer than the end of their input, SIGTERM and SIGKILL take.
pub(crate) const STOP_DEADLINE: Duration = Duration::from_secs(10);
/// How long a pooled link that cannot be opened is left alone.
const REOPEN_PAUSE: Duration = Duration::from_secs(4);
/// How long a server may take to hear that its question is refused.
const REFUSE_DEADLINE: Duration = Duration::from_secs(5);

/// A link and what the server lists on it.
pub(crate) struct Chosen {
    pub(crate) link: Arc<Link>,
    pub(crate) inventory: Arc<Inventory>,
    pub(crate) kind: LinkKind,
}

/// Who uses a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum LinkKind {
    /// Everybody who needs nothing special.
    Shared,
    /// Legacy sessions of one revision that servers cannot ask anything.
    Pooled(Revision),
    /// One session: the server was offered its capabilities, so that it may ask it.
    Own,
}

/// Which kind of link a session needs to a server (D12). Pairs of one era are never translated
/// where that costs no process: a server over HTTP that speaks both eras gets a legacy link for
/// legacy clients.
pub(crate) fn link_kind(session: &Session, row: &ServerRow, shared: &Link) -> LinkKind {
    let facts = shared.facts();
    let is_modern = facts.revision.is_modern();
    if is_modern && !speaks_legacy(facts) {
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

/// Whether a server that was found to be modern offers the handshake as well.
fn speaks_legacy(facts: &ServerFacts) -> bool {
    let versions = Raw::new(&facts.result).get("supportedVersions");
    versions.map(Raw::items).unwrap_or_default().into_iter().any(|version| {
        let revision = version.as_str().and_then(|text| Revision::parse(&text));
        revision.is_some_and(|revision| !revision.is_modern())
    })
}

impl Shared {
    /// The link for a caller's requests to a ready server.
    pub(crate) async fn choose_link(
        self: &Arc<Self>,
        caller: &Caller,
        row: &Arc<ServerRow>,
    ) -> Result<Chosen, Refusal> {
        let Some(link) = row.link.clone().filter(|link| !link.closed().is_cancelled()) else {
            return Err(crate::route::unusable(row));
        };
        let Some((session, alias)) = caller.session.as_ref().zip(row.alias.as_ref()) else {
            return Ok(Chosen { link, inventory: row.inventory.clone(), kind: LinkKind::Shared });
        };
        match link_kind(session, row, &link) {
            LinkKind::Shared => {
                Ok(Chosen { link, inventory: row.inventory.clone(), kind: LinkKind::Shared })
            }
            LinkKind::Own => Box::pin(self.own_link(session, alias)).await,
            LinkKind::Pooled(revision) => Box::pin(self.pooled_link(alias, revision)).await,
        }
    }

    /// The session's own link to a server; the first caller opens it, others wait for it.
    pub(crate) async fn own_link(
        self: &Arc<Self>,
        session: &Arc<Session>,
        alias: &Alias,
    ) -> Result<Chosen, Refusal> {
        let cell = session.own_link_cell(alias);
        let opening = async || {
            let (own, events) = tokio::select! {
                biased;
                () = session.closed.cancelled() => return Err(Refusal::Cancelled),
                opened = self.open_link(alias, session.client.clone()) => opened?,
            };
            // Stops the link when the session ends, or has ended just now.
            self.spawn(relay(session.clone(), own.link.clone(), events));
            if let Some(level) = session.log_level() {
                self.tell_level(&own.link, level);
            }
            Ok(own)
        };
        let own = cell.get_or_try_init(opening).await?;
        Ok(own.chosen(LinkKind::Own))
    }

    /// The link that all sessions of one revision share.
    async fn pooled_link(
        self: &Arc<Self>,
        alias: &Alias,
        revision: Revision,
    ) -> Result<Chosen, Refusal> {
        let kind = LinkKind::Pooled(revision);
        let cell = {
            let mut pool = self.pool.lock().unwrap_or_else(PoisonError::into_inner);
            let cell = pool.entry((alias.clone(), revision)).or_default();
            if cell.get().is_some_and(|own| own.link.closed().is_cancelled()) {
                *cell = Arc::default();
            }
            cell.clone()
        };
        let opening = async || {
            let identity = ClientIdentity { revision, ..self.own_identity() };
            let (own, events) = tokio::select! {
                biased;
                () = self.shutdown.cancelled() => return Err(Refusal::Cancelled),
                opened = self.open_link(alias, identity) => opened?,
            };
            self.spawn(hear(self.clone(), own.link.clone(), kind, events));
            if let Some(level) = self.hub.untold(&own.link, kind) {
                self.tell_level(&own.link, level);
            }
            Ok(own)
        };
        let own = cell.get_or_try_init(opening).await?;
        Ok(own.chosen(kind))
    }

    /// How long a server may take to answer what is asked on its callers' behalf.
    pub(crate) fn patience(&self, alias: &Alias) -> Duration {
        let snapshot = self.registry.snapshot();
        let row = snapshot.get(alias.as_str());
        row.map_or(self.options.call_timeout, |row| self.timeout(row))
    }

    /// Waits for a server's link of this kind, however long the server is away.
    pub(crate) async fn live_link(self: &Arc<Self>, alias: &Alias, kind: LinkKind) -> Arc<Link> {
        let mut changes = self.registry.changes();
        loop {
            changes.borrow_and_update();
            let row = self.registry.snapshot().get(alias.as_str()).cloned();
            let link = row.and_then(|row| row.link.clone());
            let mut live = link.filter(|link| !link.closed().is_cancelled());
            if let (Some(_), LinkKind::Pooled(revision)) = (&live, kind) {
                live = self.pooled_link(alias, revision).await.ok().map(|chosen| chosen.link);
            }
            if let Some(link) = live {
                return link;
            }
            // A pooled link may also open later without a change of the row.
            drop(timeout(REOPEN_PAUSE, changes.changed()).await);
        }
    }

    async fn open_link(
        self: &Arc<Self>,
        alias: &Alias,
        identity: ClientIdentity,
    ) -> Result<(OwnLink, mpsc::Receiver<LinkEvent>), Refusal> {
        let (events, received) = mpsc::channel(EVENT_QUEUE);
        let row = self.registry.snapshot().get(alias.as_str()).cloned();
        let is_modern = row.is_some_and(|row| row.dialect == Some(Dialect::Modern));
        let dialect = is_modern.then_some(Dialect::Legacy);
        let opening = self.registry.open_link(alias, identity, dialect, events);
        let link = opening.await.map_err(|error| {
            let kind = match &error {
                OpenError::Failed(error) => error.kind,
                OpenError::Unknown(_) => CallErrorKind::TransportError,
            };
            Refusal::call(kind, format!("server `{alias}` could not be opened for you: {error}"))
        })?;
        let link = Arc::new(link);
        match timeout(self.options.settle_timeout, Inventory::fetch(&link)).await {
            Ok(Ok(inventory)) => {
                Ok((OwnLink { link, inventory: ArcSwap::from_pointee(inventory) }, received))
            }
            Ok(Err(error)) => {
                link.stop().await;
                Err(Refusal::from(error))
            }
            Err(_late) => {
                link.stop().await;
                let text = format!("server `{alias}` did not list its tools in time");
                Err(Refusal::call(CallErrorKind::Timeout, text))
            }
        }
    }
}

impl OwnLink {
    fn chosen(&self, kind: LinkKind) -> Chosen {
        Chosen { link: self.link.clone(), inventory: self.inventory.load_full(), kind }
    }
}

/// Brings what a server says on a pooled link to the sessions that use it.
async fn hear(
    shared: Arc<Shared>,
    link: Arc<Link>,
    kind: LinkKind,
    mut events: mpsc::Receiver<LinkEvent>,
) {
    let hearing = async {
        while let Some(event) = events.recv().await {
            match event {
                LinkEvent::Notification(message) => {
                    if is_list_change(message.method()) {
                        shared.relist_pooled(&link, kind).await;
                    }
                    let notice = Notice { alias: link.alias().clone(), message };
                    shared.spread(&notice, kind);
                }
                LinkEvent::Request(question) => {
                    let text = "this client declared no such capability";
                    let code = rpc::code::METHOD_NOT_FOUND;
                    respond(&link, rpc::error_response(question.id(), code, text, None)).await;
                }
                LinkEvent::Closed(_) => break,
            }
        }
    };
    tokio::select! {
        biased;
        () = shared.shutdown.cancelled() => {}
        () = hearing => {}
    }
    link.stop().await;
}

/// Stops links side by side.
pub(crate) async fn stop_all(links: Vec<Arc<Link>>) {
    let mut stopping = JoinSet::new();
    for link in links {
        stopping.spawn(async move {
            if timeout(STOP_DEADLINE, link.stop()).await.is_err() {
                tracing::warn!(server.name = link.name(), "a server does not end");
            }
        });
    }
    while stopping.join_next().await.is_some() {}
}

fn is_list_change(name: &str) -> bool {
    matches!(
        name,
        method::TOOLS_LIST_CHANGED | method::PROMPTS_LIST_CHANGED | method::RESOURCES_LIST_CHANGED
    )
}

impl Shared {
    /// Lists anew on a pooled link, whose server said that something changed.
    async fn relist_pooled(&self, link: &Arc<Link>, kind: LinkKind) {
        let LinkKind::Pooled(revision) = kind else { return };
        let cell = {
            let pool = self.pool.lock().unwrap_or_else(PoisonError::into_inner);
            pool.get(&(link.alias().clone(), revision)).cloned()
        };
        let own = cell.as_ref().and_then(|cell| cell.get());
        let Some(own) = own.filter(|own| Arc::ptr_eq(&own.link, link)) else { return };
        relist(own, self.options.settle_timeout).await;
    }
}

async fn relist(own: &OwnLink, within: Duration) {
    match timeout(within, Inventory::fetch(&own.link)).await {
        Ok(Ok(inventory)) => own.inventory.store(Arc::new(inventory)),
        Ok(Err(error)) => {
            tracing::warn!(server.name = own.link.name(), %error, "listing anew failed");
        }
        Err(_late) => tracing::warn!(server.name = own.link.name(), "listing anew took too long"),
    }
}

/// How long a session's own link may take to list anew.
const RELIST: Duration = Duration::from_secs(30);

/// Brings what a server says outside calls to its session, until the link or the session ends.
async fn relay(session: Arc<Session>, link: Arc<Link>, mut events: mpsc::Receiver<LinkEvent>) {
    let relaying = async {
        while let Some(event) = events.recv().await {
            match event {
                LinkEvent::Notification(message) => tell(&session, &link, &message).await,
                LinkEvent::Request(question) => ask(&session, &link, &question).await,
                LinkEvent::Closed(why) => {
                    tracing::info!(
                        server.name = link.name(),
                        session.id = %session.id,
                        "own link lost: {why}"
                    );
                    if session.endpoint == Endpoint::Aggregated {
                        session.deliver(rpc::notification(method::TOOLS_LIST_CHANGED, None));
                    }
                    break;
                }
            }
        }
    };
    tokio::select! {
        biased;
        () = session.closed.cancelled() => {}
        () = relaying => {}
    }
    link.stop().await;
}

async fn tell(session: &Session, link: &Arc<Link>, message: &Message) {
    if is_list_change(message.method()) {
        let cell = session.own_link_cell(link.alias());
        if let Some(own) = cell.get() {
            relist(own, RELIST).await;
            session.forget_view();
        }
    }
    if message.method() != method::CANCELLED {
        session.deliver(message.bytes().clone().into());
    } else if let Some(payload) = session.ask_cancelled(link, message) {
        session.deliver(payload);
    }
}

async fn ask(session: &Session, link: &Arc<Link>, question: &Message) {
    match session.ask(link, question, None) {
        Some(payload) => session.deliver(payload),
        None => {
            let text = "too many requests to this client are open";
            let code = rpc::code::INTERNAL_ERROR;
            respond(link, rpc::error_response(question.id(), code, text, None)).await;
        }
    }
}

async fn respond(link: &Link, payload: Payload) {
    match timeout(REFUSE_DEADLINE, link.respond(payload)).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::debug!(%error, "could not answer a server's question"),
        Err(_late) => tracing::debug!("could not answer a server's question in time"),
    }
}
