//! Delivers messages that servers send by themselves on links besides the shared ones.

use std::{sync::Arc, time::Duration};

use narthex_registry::ServerKey;
use narthex_upstream::{Frame, Inventory, Link, LinkEvent, ListChanges};
use narthex_wire::{Era, Message, Notification, Revision, method, notification::About, rpc};
use tokio::sync::mpsc;

use super::{LinkKind, OwnLink};
use crate::{Endpoint, Session, links::bridge::Bridge, shared::Shared, subscriptions::Ears};

/// Longest time of a new listing on a link that serves one session or run.
const RELIST: Duration = Duration::from_secs(30);

/// The receivers of a server's messages on a link besides the shared one.
pub(crate) enum Hearers {
    /// The sessions that share the link: those of one revision.
    Pool(Arc<Shared>, ServerKey, Revision),
    /// The one session that the link serves, and the calls that hear a server outside their
    /// streams.
    Session(Arc<Session>, Arc<Ears>),
    /// The modern calls that the link carries.
    Bridge(Arc<Bridge>),
}

/// Delivers a server's messages on a link to their receivers, until the link or `over` ends; then
/// stops the link.
pub(crate) async fn hear(
    hearers: Hearers,
    link: &Arc<Link>,
    mut events: mpsc::Receiver<LinkEvent>,
    over: impl Future<Output = ()>,
) {
    let hearing = async {
        let mut changes = ListChanges::default();
        loop {
            let event = tokio::select! {
                biased;
                () = changes.due() => {
                    let notices = changes.begin();
                    hearers.relist(link).await;
                    changes.done();
                    notices.iter().for_each(|notice| hearers.tell(link, notice));
                    continue;
                }
                event = events.recv() => event,
            };
            match event {
                Some(LinkEvent::Notification(message)) => {
                    match Notification::is_list_change(message.method()) {
                        true => changes.heard(message),
                        false => hearers.tell(link, &message),
                    }
                }
                Some(LinkEvent::Request(question)) => hearers.ask(link, &question).await,
                Some(LinkEvent::Closed(why)) => {
                    hearers.lost(link, &why);
                    break;
                }
                None => break,
            }
        }
    };
    tokio::select! {
        biased;
        () = over => {}
        () = hearing => {}
    }
    link.stop().await;
}

impl Hearers {
    /// Lists anew on the link, after the server reported a change.
    async fn relist(&self, link: &Arc<Link>) {
        match self {
            Self::Pool(shared, server, revision) => {
                let cell = shared.pool.get(server, *revision);
                let own = cell.as_ref().and_then(|cell| cell.get());
                let Some(own) = own.filter(|own| Arc::ptr_eq(&own.link, link)) else { return };
                own.relist(shared.options.settle_timeout).await;
            }
            Self::Session(session, _) => {
                let cell = session.own_link_cell(link.alias());
                if let Some(own) = cell.get() {
                    own.relist(RELIST).await;
                    session.forget_view();
                }
            }
            Self::Bridge(bridge) => bridge.own().relist(RELIST).await,
        }
    }

    fn tell(&self, link: &Arc<Link>, message: &Message) {
        match self {
            Self::Pool(shared, server, revision) => {
                shared.spread(server, message, LinkKind::Pooled(*revision));
            }
            Self::Session(session, ears) => tell(session, ears, link, message),
            Self::Bridge(bridge) => bridge.tell(message),
        }
    }

    async fn ask(&self, link: &Arc<Link>, question: &Message) {
        match self {
            Self::Pool(..) => link.refuse_undeclared(question).await,
            Self::Session(session, ears) => ask(session, ears, link, question).await,
            Self::Bridge(bridge) => bridge.ask(question).await,
        }
    }

    fn lost(&self, link: &Arc<Link>, why: &str) {
        let Self::Session(session, _) = self else { return };
        tracing::info!(server.name = link.name(), session.id = %session.id, "own link lost: {why}");
        if session.endpoint == Endpoint::Aggregated {
            session.deliver(rpc::notification(method::TOOLS_LIST_CHANGED, None));
        }
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

fn tell(session: &Session, ears: &Ears, link: &Arc<Link>, message: &Message) {
    let known = Notification::named(message.method());
    if known.is_some_and(|known| matches!(known.about, About::Request | About::Log))
        && !session.has_stream()
        && ears.tell(link, || Frame::Notification(message.clone()))
    {
        return;
    }
    let payload = match known.map(|known| (known.about, known.era)) {
        Some((About::Request, _)) => session.ask_cancelled(link, message),
        Some((About::Task, Some(Era::Legacy))) => session.task_told(link.alias(), message, true),
        _ => Some(message.bytes().clone().into()),
    };
    if let Some(payload) = payload {
        session.deliver(payload);
    }
}

/// Brings a question to the client: on the session's own stream, or, as long as the client has
/// opened none, on that of the only call which is open at the server.
async fn ask(session: &Session, ears: &Ears, link: &Arc<Link>, question: &Message) {
    if !session.has_stream() && ears.tell(link, || Frame::Request(question.clone())) {
        return;
    }
    match session.ask(link, question, None) {
        Ok(payload) => session.deliver(payload),
        Err((code, why)) => link.refuse(question, code, why).await,
    }
}
