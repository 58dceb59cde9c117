//! Changes on their way to whoever listens: list changes, resource updates, log messages.

mod follow;
mod listening;

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use narthex_model::Alias;
use narthex_registry::Notice;
use narthex_upstream::Link;
use narthex_wire::{Payload, Raw, Rewrite, meta_key, method, rpc};
use tokio::sync::broadcast;

use self::follow::Followed;
pub(crate) use self::{follow::Following, listening::Listening};
use crate::{
    Endpoint, Session,
    gateway::Shared,
    links::{LinkKind, link_kind},
    log_level::LogLevel,
    method::ListKind,
};

/// How many changes wait for a slow listener before it misses some.
const CHANGES: usize = 1024;

/// Something that listeners may want to know.
#[derive(Debug, Clone)]
pub(crate) enum Change {
    /// A list of an endpoint differs; `None` is the aggregated one.
    List(Option<Alias>, ListKind),
    /// A server says that a resource differs.
    Resource(Alias, Arc<str>),
}

/// Who follows which resource of which server.
#[derive(Debug)]
pub(crate) struct Hub {
    changes: broadcast::Sender<Change>,
    followed: Mutex<HashMap<FollowKey, Arc<Followed>>>,
    levels: Mutex<HashMap<(Alias, LinkKind), Told>>,
}

/// A resource that is followed over a link which several callers share.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct FollowKey {
    pub(crate) alias: Alias,
    pub(crate) uri: Arc<str>,
    pub(crate) kind: LinkKind,
}

/// The lowest level that anybody asked a server for, and the link on which it was told so.
#[derive(Debug)]
struct Told {
    level: LogLevel,
    link: Weak<Link>,
}

impl Hub {
    pub(crate) fn new() -> Self {
        Self {
            changes: broadcast::Sender::new(CHANGES),
            followed: Mutex::default(),
            levels: Mutex::default(),
        }
    }

    fn followed(&self) -> MutexGuard<'_, HashMap<FollowKey, Arc<Followed>>> {
        self.followed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What a link that several share must be told when somebody asks for a level; `None` if it
    /// was asked for as much before.
    pub(crate) fn lowers(
        &self,
        link: &Arc<Link>,
        kind: LinkKind,
        level: LogLevel,
    ) -> Option<LogLevel> {
        let mut levels = self.levels.lock().unwrap_or_else(PoisonError::into_inner);
        let told = levels.entry((link.alias().clone(), kind));
        let told = told.or_insert_with(|| Told { level, link: Weak::new() });
        let is_needed = level <= told.level || !told.is_on(link);
        *told = Told { level: level.min(told.level), link: Arc::downgrade(link) };
        is_needed.then_some(told.level)
    }

    /// The level that a new link has to be told, since the one before it was.
    pub(crate) fn untold(&self, link: &Arc<Link>, kind: LinkKind) -> Option<LogLevel> {
        let mut levels = self.levels.lock().unwrap_or_else(PoisonError::into_inner);
        let told = levels.get_mut(&(link.alias().clone(), kind))?;
        if told.is_on(link) {
            return None;
        }
        told.link = Arc::downgrade(link);
        Some(told.level)
    }

    fn announce(&self, change: Change) {
        if self.changes.send(change).is_err() {
            tracing::trace!("nobody listens to changes");
        }
    }
}

impl Told {
    fn is_on(&self, link: &Arc<Link>) -> bool {
        std::ptr::eq(self.link.as_ptr(), Arc::as_ptr(link))
    }
}

/// Announces how the aggregated lists change as servers come, go and change.
pub(crate) async fn watch_registry(shared: Arc<Shared>) {
    let mut changes = shared.registry.changes();
    let mut lost = HashSet::new();
    let mut last = shared.live_view(&shared.registry.snapshot());
    loop {
        let changed = tokio::select! {
            biased;
            () = shared.shutdown.cancelled() => return,
            changed = changes.changed() => changed,
        };
        if changed.is_err() {
            return;
        }
        let snapshot = shared.registry.snapshot();
        for row in &snapshot.servers {
            if let Some(alias) = &row.alias {
                shared.metrics.upstream_up(alias, row.is_ready());
                if row.activity == Some("reconnecting") {
                    lost.insert(alias.clone());
                } else if row.is_ready() && lost.remove(alias) {
                    shared.metrics.upstream_restarted(alias);
                }
                if let Some(link) = &row.link
                    && let Some(level) = shared.hub.untold(link, LinkKind::Shared)
                {
                    shared.tell_level(link, level);
                }
            }
        }
        let view = shared.live_view(&snapshot);
        for (kind, notification) in LISTS {
            if view.differs(&last, kind) {
                shared.hub.announce(Change::List(None, kind));
                let payload = rpc::notification(notification, None);
                shared.tell_aggregated(&payload);
            }
        }
        last = view;
    }
}

const LISTS: [(ListKind, &str); 4] = [
    (ListKind::Tools, method::TOOLS_LIST_CHANGED),
    (ListKind::Prompts, method::PROMPTS_LIST_CHANGED),
    (ListKind::Resources, method::RESOURCES_LIST_CHANGED),
    (ListKind::Templates, method::RESOURCES_LIST_CHANGED),
];

/// Brings what servers say on their shared links to the sessions that it concerns.
pub(crate) async fn spread_notices(shared: Arc<Shared>) {
    let mut notices = shared.registry.notices();
    loop {
        let notice = tokio::select! {
            biased;
            () = shared.shutdown.cancelled() => return,
            notice = notices.recv() => notice,
        };
        match notice {
            Ok(notice) => shared.spread(&notice, LinkKind::Shared),
            Err(broadcast::error::RecvError::Lagged(missed)) => {
                tracing::warn!(missed, "servers said more than could be passed on");
            }
            Err(broadcast::error::RecvError::Closed) => return,
        }
    }
}

impl Shared {
    /// Brings what a server said on a link that several share to those whom it concerns.
    pub(crate) fn spread(&self, notice: &Notice, kind: LinkKind) {
        let Notice { alias, message } = notice;
        let mut rewrite = Rewrite::default();
        rewrite.meta.remove(meta_key::SUBSCRIPTION_ID);
        let payload = rewrite.apply(message);
        let list = LISTS.iter().find(|(_, name)| *name == message.method());
        if let Some((list, _)) = list {
            if kind == LinkKind::Shared {
                self.hub.announce(Change::List(Some(alias.clone()), *list));
            }
            self.tell_sessions(alias, kind, &payload, |session| is_at(session, alias));
            return;
        }
        match message.method() {
            // Nothing is asked on links that several share.
            method::CANCELLED => {}
            method::RESOURCES_UPDATED => {
                let Some(uri) = message.get("uri").and_then(Raw::as_str) else { return };
                self.hub.announce(Change::Resource(alias.clone(), uri.as_ref().into()));
                self.tell_sessions(alias, kind, &payload, |session| {
                    session.is_subscribed(&FollowKey {
                        alias: alias.clone(),
                        uri: uri.as_ref().into(),
                        kind,
                    })
                });
            }
            method::MESSAGE => {
                let level = message.get("level").and_then(LogLevel::read);
                self.tell_sessions(alias, kind, &payload, |session| {
                    let wanted = session.log_level();
                    let is_heard =
                        is_at(session, alias) || session.endpoint == Endpoint::Aggregated;
                    is_heard
                        && wanted.is_none_or(|wanted| level.is_none_or(|level| level >= wanted))
                });
            }
            _ => {
                self.tell_sessions(alias, kind, &payload, |session| is_at(session, alias));
            }
        }
    }

    fn tell_aggregated(&self, payload: &Payload) {
        for session in self.sessions.all() {
            if session.endpoint == Endpoint::Aggregated {
                session.deliver(payload.clone());
            }
        }
    }

    /// Delivers to those sessions of `concerned` that use this link of the server.
    fn tell_sessions(
        &self,
        alias: &Alias,
        kind: LinkKind,
        payload: &Payload,
        concerned: impl Fn(&Session) -> bool,
    ) {
        let snapshot = self.registry.snapshot();
        let Some(row) = snapshot.get(alias.as_str()) else { return };
        let Some(shared) = &row.link else { return };
        for session in self.sessions.all() {
            if link_kind(&session, row, shared) == kind && concerned(&session) {
                session.deliver(payload.clone());
            }
        }
    }
}

fn is_at(session: &Session, alias: &Alias) -> bool {
    matches!(&session.endpoint, Endpoint::Transparent(own) if own == alias)
}
