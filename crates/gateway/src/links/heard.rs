//! What servers say by themselves on links besides the shared ones, and whom it concerns.

use std::{
    sync::{Arc, PoisonError},
    time::Duration,
};

use narthex_upstream::{Inventory, Link, LinkEvent};
use narthex_wire::{Message, Payload, method, rpc};
use tokio::{sync::mpsc, time::timeout};

use super::LinkKind;
use crate::{Endpoint, Session, gateway::Shared, run::ServerKey, session::OwnLink};

/// How long a server may take to hear that its question is refused.
const REFUSE_DEADLINE: Duration = Duration::from_secs(5);

/// Brings what a server says on a pooled link to the sessions that use it.
pub(super) async fn hear(
    shared: Arc<Shared>,
    link: Arc<Link>,
    (server, kind): (ServerKey, LinkKind),
    mut events: mpsc::Receiver<LinkEvent>,
) {
    let hearing = async {
        while let Some(event) = events.recv().await {
            match event {
                LinkEvent::Notification(message) => {
                    if is_list_change(message.method()) {
                        shared.relist_pooled(&link, &server, kind).await;
                    }
                    shared.spread(&server, &message, kind);
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

fn is_list_change(name: &str) -> bool {
    matches!(
        name,
        method::TOOLS_LIST_CHANGED | method::PROMPTS_LIST_CHANGED | method::RESOURCES_LIST_CHANGED
    )
}

impl Shared {
    /// Lists anew on a pooled link, whose server said that something changed.
    async fn relist_pooled(&self, link: &Arc<Link>, server: &ServerKey, kind: LinkKind) {
        let LinkKind::Pooled(revision) = kind else { return };
        let cell = {
            let pool = self.pool.lock().unwrap_or_else(PoisonError::into_inner);
            pool.get(&(server.clone(), revision)).cloned()
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
pub(super) async fn relay(
    session: Arc<Session>,
    link: Arc<Link>,
    mut events: mpsc::Receiver<LinkEvent>,
) {
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
    let payload = match message.method() {
        method::CANCELLED => session.ask_cancelled(link, message),
        method::TASKS_STATUS => session.task_told(link.alias(), message, true),
        _ => Some(message.bytes().clone().into()),
    };
    if let Some(payload) = payload {
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
