//! What servers say by themselves on links besides the shared ones, and whom it concerns.

use std::{
    sync::{Arc, PoisonError},
    time::Duration,
};

use narthex_registry::ServerKey;
use narthex_upstream::{Inventory, Link, LinkEvent, ListChanges};
use narthex_wire::{Message, method, rpc};
use tokio::sync::mpsc;

use super::{LinkKind, OwnLink};
use crate::{Endpoint, Session, gateway::Shared};

/// Brings what a server says on a pooled link to the sessions that use it.
pub(super) async fn hear(
    shared: Arc<Shared>,
    link: Arc<Link>,
    (server, kind): (ServerKey, LinkKind),
    mut events: mpsc::Receiver<LinkEvent>,
) {
    let hearing = async {
        let mut changes = ListChanges::default();
        loop {
            let event = tokio::select! {
                biased;
                () = changes.due() => {
                    let notices = changes.begin();
                    shared.relist_pooled(&link, &server, kind).await;
                    changes.done();
                    notices.iter().for_each(|notice| shared.spread(&server, notice, kind));
                    continue;
                }
                event = events.recv() => event,
            };
            match event {
                Some(LinkEvent::Notification(message)) => {
                    match method::is_list_change(message.method()) {
                        true => changes.heard(message),
                        false => shared.spread(&server, &message, kind),
                    }
                }
                Some(LinkEvent::Request(question)) => {
                    link.refuse_undeclared(&question).await;
                }
                Some(LinkEvent::Closed(_)) | None => break,
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
        own.relist(self.options.settle_timeout).await;
    }
}

impl OwnLink {
    async fn fetch_anew(&self, within: Duration) -> Option<Inventory> {
        let known = self.inventory.load_full();
        Inventory::fetch_anew(&self.link, within, &known).await
    }

    async fn relist(&self, within: Duration) {
        if let Some(inventory) = self.fetch_anew(within).await {
            self.lists(inventory).await;
        }
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
        let mut changes = ListChanges::default();
        loop {
            let event = tokio::select! {
                biased;
                () = changes.due() => {
                    let notices = changes.begin();
                    relist(&session, &link).await;
                    changes.done();
                    notices.iter().for_each(|notice| tell(&session, &link, notice));
                    continue;
                }
                event = events.recv() => event,
            };
            match event {
                None => break,
                Some(LinkEvent::Notification(message)) => {
                    match method::is_list_change(message.method()) {
                        true => changes.heard(message),
                        false => tell(&session, &link, &message),
                    }
                }
                Some(LinkEvent::Request(question)) => ask(&session, &link, &question).await,
                Some(LinkEvent::Closed(why)) => {
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

async fn relist(session: &Session, link: &Arc<Link>) {
    let cell = session.own_link_cell(link.alias());
    if let Some(own) = cell.get() {
        own.relist(RELIST).await;
        session.forget_view();
    }
}

fn tell(session: &Session, link: &Arc<Link>, message: &Message) {
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
            let why = "too many requests to this client are open";
            link.refuse(question, rpc::code::INTERNAL_ERROR, why).await;
        }
    }
}
