//! Changes on their way to whoever listens: list changes, resource updates, log messages.

use std::{collections::HashMap, sync::Arc};

use bytes::Bytes;
use narthex_model::Alias;
use narthex_registry::Notice;
use narthex_upstream::Link;
use narthex_wire::{Message, Payload, Raw, Rewrite, json::encode_string, meta_key, method, rpc};
use tokio::sync::{Mutex, broadcast};
use tokio_util::sync::CancellationToken;

use crate::{
    Answer, Answering, Caller, Endpoint, Session, Step,
    gateway::Shared,
    links::{LinkKind, link_kind},
    log_level::LogLevel,
    method::{Handling, ListKind},
    pipeline::{own_alias, result},
    refusal::Refusal,
    route::Routed,
};

/// How many changes wait for a slow listener before it misses some.
const CHANGES: usize = 1024;
/// How many single resources one listener may follow.
const RESOURCES_MAX: usize = 1000;

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
    followed: Mutex<HashMap<FollowKey, Followed>>,
    levels: std::sync::Mutex<HashMap<(Alias, LinkKind), LogLevel>>,
}

/// A resource that is followed over a link which several callers share.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct FollowKey {
    pub(crate) alias: Alias,
    pub(crate) uri: Arc<str>,
    pub(crate) kind: LinkKind,
}

#[derive(Debug)]
struct Followed {
    count: usize,
    link: Arc<Link>,
    /// Ends the stream that brings a modern server's updates.
    stop: CancellationToken,
}

impl Hub {
    pub(crate) fn new() -> Self {
        Self {
            changes: broadcast::Sender::new(CHANGES),
            followed: Mutex::default(),
            levels: std::sync::Mutex::default(),
        }
    }

    /// Whether a level asks a shared link for more than anybody did before.
    pub(crate) fn lowers(&self, alias: &Alias, kind: LinkKind, level: LogLevel) -> bool {
        let mut levels = self.levels.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let lowest = levels.entry((alias.clone(), kind)).or_insert(level);
        let is_lower = level <= *lowest;
        *lowest = level.min(*lowest);
        is_lower
    }

    fn announce(&self, change: Change) {
        if self.changes.send(change).is_err() {
            tracing::trace!("nobody listens to changes");
        }
    }
}

/// Announces how the aggregated lists change as servers come, go and change.
pub(crate) async fn watch_registry(shared: Arc<Shared>) {
    let mut changes = shared.registry.changes();
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

    /// `resources/subscribe` and `resources/unsubscribe` of a legacy client.
    pub(crate) async fn subscribe(
        self: &Arc<Self>,
        caller: &Caller,
        is_start: bool,
        request: Message,
    ) -> Result<Answering, Refusal> {
        let handling = Handling::Subscribe { is_start };
        let Routed { row, request: routed } = self.route(caller, handling, request.clone()).await?;
        let chosen = self.choose_link(caller, &row).await?;
        if chosen.kind == LinkKind::Own {
            return self.forward(caller, handling, request).await;
        }
        let Some(session) = &caller.session else {
            return Err(Refusal::unknown_method(request.method()));
        };
        if !chosen.link.facts().capabilities.subscribe {
            return Err(Refusal::unknown_method(request.method()));
        }
        let uri = Arc::from(routed.item.name());
        let key = FollowKey { alias: routed.alias, uri, kind: chosen.kind };
        if is_start {
            if session.subscribe(key.clone())
                && let Err(refusal) = self.follow(&key, chosen.link).await
            {
                session.unsubscribe(&key);
                return Err(refusal);
            }
        } else if session.unsubscribe(&key) {
            self.release(&key).await;
        }
        Ok(result(&request, &Bytes::from_static(b"{}")))
    }

    /// Has a server report changes of one resource, for the first follower.
    async fn follow(self: &Arc<Self>, key: &FollowKey, link: Arc<Link>) -> Result<(), Refusal> {
        let mut followed = self.hub.followed.lock().await;
        let live = followed.get_mut(key).filter(|entry| !entry.link.closed().is_cancelled());
        if let Some(entry) = live {
            entry.count += 1;
            return Ok(());
        }
        let stop = CancellationToken::new();
        if link.facts().revision.is_modern() {
            let listening = self.clone().follow_modern(link.clone(), key.uri.clone(), stop.clone());
            self.spawn(listening);
        } else {
            let members = [br#""uri":"#, &encode_string(&key.uri)[..]].concat();
            let answer = link.ask(method::RESOURCES_SUBSCRIBE, &members).await?;
            if let Some(code) = answer.error_code() {
                let text = answer.get("message").and_then(Raw::as_str).unwrap_or_default();
                return Err(Refusal::rpc(code, text));
            }
        }
        let earlier = followed.get(key).map_or(0, |entry| entry.count);
        followed.insert(key.clone(), Followed { count: earlier + 1, link, stop });
        Ok(())
    }

    /// Keeps a modern server's stream of one resource's changes open.
    async fn follow_modern(
        self: Arc<Self>,
        link: Arc<Link>,
        uri: Arc<str>,
        stop: CancellationToken,
    ) {
        let filter =
            [br#""notifications":{"resourceSubscriptions":["#, &encode_string(&uri)[..], b"]}"];
        let filter = filter.concat();
        let listening = link.listen(&filter, || {});
        tokio::select! {
            biased;
            () = stop.cancelled() => {}
            () = self.shutdown.cancelled() => {}
            ended = listening => {
                if let Err(error) = ended {
                    tracing::warn!(server.name = link.name(), %error, "a resource is no longer followed");
                }
            }
        }
    }

    /// Ends what [`Shared::follow`] began, for the last follower.
    pub(crate) async fn release(&self, key: &FollowKey) {
        let mut followed = self.hub.followed.lock().await;
        let Some(entry) = followed.get_mut(key) else { return };
        entry.count = entry.count.saturating_sub(1);
        if entry.count > 0 {
            return;
        }
        let Some(Followed { link, stop, .. }) = followed.remove(key) else { return };
        drop(followed);
        stop.cancel();
        if !link.facts().revision.is_modern() && !link.closed().is_cancelled() {
            let members = [br#""uri":"#, &encode_string(&key.uri)[..]].concat();
            if let Err(error) = link.ask(method::RESOURCES_UNSUBSCRIBE, &members).await {
                tracing::debug!(%error, "a server was not told of the end of a subscription");
            }
        }
    }

    /// `subscriptions/listen` of a modern client.
    pub(crate) async fn listen(
        self: &Arc<Self>,
        caller: &Caller,
        request: Message,
    ) -> Result<Answering, Refusal> {
        if let Some(alias) = own_alias(caller) {
            let row = self.settled(alias).await?;
            if row.link.as_ref().is_some_and(|link| link.facts().revision.is_modern()) {
                return self.forward(caller, Handling::Listen, request).await;
            }
        }
        let filter = Filter::read(&request)?;
        let mut resources = Vec::new();
        let view = self.view(caller).await;
        for uri in filter.resources.iter().take(RESOURCES_MAX) {
            let route = match own_alias(caller) {
                Some(alias) => Some((alias.clone(), uri.clone())),
                None => view.resource(uri),
            };
            let Some((alias, original)) = route else { continue };
            let Ok(row) = self.settled(&alias).await else { continue };
            let Some(link) = row.link.clone() else { continue };
            let key = FollowKey { alias, uri: original, kind: LinkKind::Shared };
            let can_follow =
                link.facts().capabilities.subscribe || link.facts().revision.is_modern();
            if can_follow && self.follow(&key, link).await.is_ok() {
                resources.push((uri.clone(), key));
            }
        }
        Ok(Answering::listening(Listening {
            shared: self.clone(),
            id: Bytes::copy_from_slice(request.id().map_or(b"null", Raw::as_bytes)),
            alias: own_alias(caller).cloned(),
            changes: self.hub.changes.subscribe(),
            filter,
            resources,
            is_acknowledged: false,
        }))
    }
}

fn is_at(session: &Session, alias: &Alias) -> bool {
    matches!(&session.endpoint, Endpoint::Transparent(own) if own == alias)
}

/// What a listener wants to know.
#[derive(Debug)]
struct Filter {
    lists: Vec<ListKind>,
    resources: Vec<Arc<str>>,
}

impl Filter {
    fn read(request: &Message) -> Result<Self, Refusal> {
        let Some(wanted) = request.get("notifications").filter(|raw| raw.is_object()) else {
            return Err(Refusal::invalid("`params.notifications` must be an object"));
        };
        let wants = |name| wanted.get(name).and_then(Raw::as_bool).unwrap_or_default();
        let mut lists = Vec::new();
        if wants("toolsListChanged") {
            lists.push(ListKind::Tools);
        }
        if wants("promptsListChanged") {
            lists.push(ListKind::Prompts);
        }
        if wants("resourcesListChanged") {
            lists.extend([ListKind::Resources, ListKind::Templates]);
        }
        let resources = wanted.get("resourceSubscriptions").map(Raw::items).unwrap_or_default();
        let resources = resources.into_iter().filter_map(|uri| Some(uri.as_str()?.as_ref().into()));
        Ok(Self { lists, resources: resources.collect() })
    }
}

/// An open `subscriptions/listen` that the gateway answers itself.
#[derive(Debug)]
pub(crate) struct Listening {
    shared: Arc<Shared>,
    id: Bytes,
    alias: Option<Alias>,
    changes: broadcast::Receiver<Change>,
    filter: Filter,
    /// The caller's URI, and what is followed for it.
    resources: Vec<(Arc<str>, FollowKey)>,
    is_acknowledged: bool,
}

impl Listening {
    pub(crate) async fn next(&mut self) -> Option<Step> {
        if !self.is_acknowledged {
            self.is_acknowledged = true;
            return Some(Step::Message(self.acknowledgement()));
        }
        loop {
            let change = tokio::select! {
                biased;
                () = self.shared.shutdown.cancelled() => return Some(Step::Answer(self.end())),
                change = self.changes.recv() => change,
            };
            match change {
                Ok(change) => {
                    if let Some(payload) = self.notification(&change) {
                        return Some(Step::Message(payload));
                    }
                }
                // Missed changes: any list may differ.
                Err(broadcast::error::RecvError::Lagged(_)) => {
                    if let Some(kind) = self.filter.lists.first() {
                        return Some(Step::Message(self.list_changed(*kind)));
                    }
                }
                Err(broadcast::error::RecvError::Closed) => return Some(Step::Answer(self.end())),
            }
        }
    }

    fn notification(&self, change: &Change) -> Option<Payload> {
        match change {
            Change::List(alias, kind) => (*alias == self.alias && self.filter.lists.contains(kind))
                .then(|| self.list_changed(*kind)),
            Change::Resource(alias, uri) => {
                let is_it = |key: &FollowKey| key.alias == *alias && key.uri == *uri;
                let (shown, _) = self.resources.iter().find(|(_, key)| is_it(key))?;
                let members = [br#""uri":"#, &encode_string(shown)[..]].concat();
                Some(self.tagged(method::RESOURCES_UPDATED, &members))
            }
        }
    }

    fn list_changed(&self, kind: ListKind) -> Payload {
        let found = LISTS.iter().find(|(other, _)| *other == kind);
        self.tagged(found.map_or(method::TOOLS_LIST_CHANGED, |(_, name)| name), b"")
    }

    fn acknowledgement(&self) -> Payload {
        let has = |kind| self.filter.lists.contains(&kind);
        let mut honoured = Vec::new();
        for (kind, name) in [
            (ListKind::Tools, "toolsListChanged"),
            (ListKind::Prompts, "promptsListChanged"),
            (ListKind::Resources, "resourcesListChanged"),
        ] {
            if has(kind) {
                honoured.push(format!(r#""{name}":true"#));
            }
        }
        if !self.resources.is_empty() {
            let uris = self.resources.iter().map(|(uri, _)| encode_string(uri));
            let uris = uris.collect::<Vec<_>>().join(&b","[..]);
            let uris = String::from_utf8_lossy(&uris).into_owned();
            honoured.push(format!(r#""resourceSubscriptions":[{uris}]"#));
        }
        let members = format!(r#""notifications":{{{}}}"#, honoured.join(","));
        self.tagged(method::SUBSCRIPTIONS_ACKNOWLEDGED, members.as_bytes())
    }

    /// A notification with the id of this subscription.
    fn tagged(&self, name: &str, members: &[u8]) -> Payload {
        let mut params = b"{".to_vec();
        params.extend_from_slice(members);
        if !members.is_empty() {
            params.push(b',');
        }
        params
            .extend_from_slice(format!(r#""_meta":{{"{}":"#, meta_key::SUBSCRIPTION_ID).as_bytes());
        params.extend_from_slice(&self.id);
        params.extend_from_slice(b"}}");
        rpc::notification(name, Some(&params))
    }

    /// The graceful end: a normal result.
    fn end(&self) -> Answer {
        let body =
            format!(r#"{{"resultType":"complete","_meta":{{"{}":"#, meta_key::SUBSCRIPTION_ID);
        let body = [body.as_bytes(), &self.id, b"}}"].concat();
        Answer { payload: rpc::result_response(Raw::new(&self.id), &body.into()), status: 200 }
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        let resources = std::mem::take(&mut self.resources);
        if !resources.is_empty() {
            let shared = self.shared.clone();
            self.shared.spawn(async move {
                for (_, key) in resources {
                    shared.release(&key).await;
                }
            });
        }
    }
}
