//! Which link a request takes, and links that serve one session alone (D12).

use std::sync::Arc;

use narthex_model::{Alias, CallErrorKind, TransportKind};
use narthex_registry::ServerRow;
use narthex_upstream::{Inventory, Link, LinkEvent};
use narthex_wire::{Payload, Rewrite, method, rpc};
use tokio::{sync::mpsc, time::timeout};

use crate::{Caller, Endpoint, Session, gateway::Shared, refusal::Refusal, session::OwnLink};

/// How many messages of a server wait for one session.
const EVENT_QUEUE: usize = 256;

/// A link and what the server lists on it.
pub(crate) struct Chosen {
    pub(crate) link: Arc<Link>,
    pub(crate) inventory: Arc<Inventory>,
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
        let shared = Chosen { link, inventory: row.inventory.clone() };
        let Some(session) =
            caller.session.as_ref().filter(|session| needs_own_link(session, row, &shared.link))
        else {
            return Ok(shared);
        };
        let Some(alias) = &row.alias else { return Ok(shared) };
        self.own_link(session, alias).await
    }

    /// The session's own link to a server; the first caller opens it, others wait for it.
    pub(crate) async fn own_link(
        self: &Arc<Self>,
        session: &Arc<Session>,
        alias: &Alias,
    ) -> Result<Chosen, Refusal> {
        let cell = session.own_link_cell(alias);
        let own = cell.get_or_try_init(|| self.open_own_link(session, alias)).await?;
        Ok(Chosen { link: own.link.clone(), inventory: own.inventory.clone() })
    }

    async fn open_own_link(
        self: &Arc<Self>,
        session: &Arc<Session>,
        alias: &Alias,
    ) -> Result<OwnLink, Refusal> {
        let (events, received) = mpsc::channel(EVENT_QUEUE);
        let opening = self.registry.open_link(alias, session.client.clone(), events);
        let link = opening.await.map_err(|error| {
            let kind = match &error {
                narthex_registry::OpenError::Failed(error) => error.kind,
                narthex_registry::OpenError::Unknown(_) => CallErrorKind::TransportError,
            };
            Refusal::call(kind, format!("server `{alias}` could not be opened for you: {error}"))
        })?;
        let link = Arc::new(link);
        let listed = timeout(self.options.settle_timeout, Inventory::fetch(&link)).await;
        let inventory = match listed {
            Ok(Ok(inventory)) => Arc::new(inventory),
            Ok(Err(error)) => {
                link.stop().await;
                return Err(Refusal::from(error));
            }
            Err(_late) => {
                link.stop().await;
                let text = format!("server `{alias}` did not list its tools in time");
                return Err(Refusal::call(CallErrorKind::Timeout, text));
            }
        };
        self.spawn(relay(session.clone(), link.clone(), received));
        if session.closed.is_cancelled() {
            link.stop().await;
            return Err(Refusal::Cancelled);
        }
        Ok(OwnLink { link, inventory })
    }
}

/// A server that was offered a client's capabilities may ask it, so nobody else may share the
/// link; the same for HTTP where a transparent client negotiated another revision.
fn needs_own_link(session: &Session, row: &ServerRow, shared: &Link) -> bool {
    if shared.facts().revision.is_modern() {
        return false;
    }
    if session.can_be_asked() {
        return true;
    }
    let is_http = row
        .definition
        .as_ref()
        .is_some_and(|definition| definition.transport() == TransportKind::Http);
    let is_transparent = matches!(session.endpoint, Endpoint::Transparent(_));
    is_http && is_transparent && shared.facts().revision != session.revision
}

/// Brings what a server says outside calls to its session, until the link or the session ends.
async fn relay(session: Arc<Session>, link: Arc<Link>, mut events: mpsc::Receiver<LinkEvent>) {
    loop {
        let event = tokio::select! {
            biased;
            () = session.closed.cancelled() => break,
            event = events.recv() => event,
        };
        match event {
            Some(LinkEvent::Notification(message)) => {
                session.deliver(Rewrite::default().apply(&message));
            }
            Some(LinkEvent::Request(question)) => {
                let Some(payload) = session.ask(&link, &question) else {
                    let text = "too many requests to this client are open";
                    let code = rpc::code::INTERNAL_ERROR;
                    respond(&link, rpc::error_response(question.id(), code, text, None)).await;
                    continue;
                };
                session.deliver(payload);
            }
            Some(LinkEvent::Closed(why)) => {
                tracing::info!(server.name = link.name(), session.id = %session.id, "own link lost: {why}");
                if session.endpoint == Endpoint::Aggregated {
                    session.deliver(rpc::notification(method::TOOLS_LIST_CHANGED, None));
                }
                break;
            }
            None => break,
        }
    }
    link.stop().await;
}

async fn respond(link: &Link, payload: Payload) {
    if let Err(error) = link.respond(payload).await {
        tracing::debug!(%error, "could not answer a server's question");
    }
}
