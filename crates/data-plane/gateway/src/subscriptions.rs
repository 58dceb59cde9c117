//! Changes on their way to listeners: list changes, resource updates, log messages.

mod ears;
pub(crate) mod followed;
mod hub;
pub(crate) mod listening;
pub(crate) mod tasks;

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use narthex_model::{Alias, ServerState};
use narthex_registry::{ConnectionId, ServerKey, Snapshot};
use narthex_upstream::Frame;
use narthex_wire::{
    Era, LogLevel, Message, Notification, Payload, Raw, Rewrite, meta_key, notification::About, rpc,
};
use tokio::sync::broadcast;

pub(crate) use self::{
    ears::{Ear, Ears},
    followed::Following,
    hub::{Change, FollowKey, Hub, Seen, Subject},
    listening::Listening,
};
use crate::{Endpoint, RunView, Session, links::LinkKind, shared::Shared};

/// Longest time of a call (E86). A session of a server that does not exist any more stays open no
/// longer.
const QUIET_MAX: Duration = Duration::from_secs(600);

/// Announces how the aggregated lists change as servers come, go and change.
pub(crate) async fn watch_registry(shared: Arc<Shared>) {
    let mut changes = shared.registry.changes();
    let mut lost = HashSet::new();
    let mut connections = HashMap::new();
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
                if let Some(link) = &row.link {
                    shared.tell_new_link(link, &ServerKey::shared(alias), LinkKind::Shared);
                }
            }
        }
        shared.tell_transparent(&mut connections, &snapshot);
        let view = shared.live_view(&snapshot);
        if shared.tell_lists(&last, &view, &Seen::Everything, RunView::is_plain) {
            let runs = shared.runs.all();
            let plain = runs.iter().filter(|run| run.is_plain());
            shared.note_tools(plain.map(|run| &**run), &shared.tools_of(&view));
        }
        last = view;
    }
}

/// Delivers messages that servers send on their shared links to the sessions concerned.
pub(crate) async fn spread_notices(shared: Arc<Shared>) {
    let mut notices = shared.registry.notices();
    loop {
        let notice = tokio::select! {
            biased;
            () = shared.shutdown.cancelled() => return,
            notice = notices.recv() => notice,
        };
        match notice {
            Ok(notice) => {
                let server = match notice.is_shared {
                    true => ServerKey::shared(&notice.alias),
                    false => ServerKey::own(&notice.alias, notice.connection),
                };
                shared.spread(&server, &notice.message, LinkKind::Shared);
            }
            Err(broadcast::error::RecvError::Lagged(missed)) => {
                tracing::warn!(
                    missed,
                    "notifications of servers were dropped, because they came too fast"
                );
            }
            Err(broadcast::error::RecvError::Closed) => return,
        }
    }
}

impl Shared {
    /// Ends open sessions and streams at the endpoints of servers that do not exist any more or are
    /// disabled (D5). Notifies sessions at the endpoints of newly connected servers that all
    /// lists may have changed.
    fn tell_transparent(
        self: &Arc<Self>,
        connections: &mut HashMap<Alias, (ConnectionId, u64)>,
        snapshot: &Snapshot,
    ) {
        let is_there = |alias: &Alias| {
            snapshot.get(alias.as_str()).is_some_and(|row| row.state != ServerState::Disabled)
        };
        let gone: Vec<_> =
            connections.extract_if(|alias, _| !is_there(alias)).map(|(alias, _)| alias).collect();
        for alias in &gone {
            self.metrics.upstream_up(alias, false);
            let server = ServerKey::shared(alias);
            let at_it = |one: &Arc<Session>| is_at(one, alias) && one.run.key(alias) == server;
            for session in self.sessions.all().into_iter().filter(at_it) {
                self.spawn(self.clone().end_when_quiet(session));
            }
            self.forget_pooled(&server);
        }
        for row in snapshot.servers.iter().filter(|row| row.is_ready()) {
            let (Some(alias), Some(connection)) = (&row.alias, row.connection) else { continue };
            // A person may have decided on definitions of the server.
            let decided = row.pinned.as_ref().map_or(0, |said| said.decided());
            let before = connections.insert(alias.clone(), (connection, decided));
            let server = ServerKey::shared(alias);
            if before.is_some_and(|(_, before)| before != decided) {
                self.tell_decided(&server);
            } else if before.is_some_and(|(before, _)| before != connection) {
                for known in Notification::of_lists() {
                    let payload = rpc::notification(known.name, None);
                    let at_it = |one: &Session| is_at(one, alias);
                    self.tell_sessions(&server, LinkKind::Shared, &payload, at_it);
                }
            }
        }
    }

    /// Notifies sessions that all lists of a server may have changed: those at its endpoint, and
    /// those of aggregated endpoints that servers may ask questions.
    fn tell_decided(&self, server: &ServerKey) {
        let is_concerned = |session: &Session| {
            let (run, alias) = (&session.run, &server.alias);
            let is_it = run.policy.is_attached(alias) && run.key(alias) == *server;
            let is_aggregated = session.endpoint == Endpoint::Aggregated;
            is_it && (is_at(session, alias) || (is_aggregated && session.can_be_asked()))
        };
        let sessions = self.sessions.all().into_iter();
        let concerned: Vec<_> = sessions.filter(|session| is_concerned(session)).collect();
        for known in Notification::of_lists() {
            self.announce_list(Seen::Server(server.clone()), known, &concerned);
        }
    }

    /// Reports a change of lists to listeners, and to these sessions.
    pub(crate) fn announce_list(
        &self,
        seen: Seen,
        known: &'static Notification,
        to: &[Arc<Session>],
    ) {
        self.hub.announce(Change::List(seen, known));
        let payload = rpc::notification(known.name, None);
        to.iter().for_each(|session| session.deliver(payload.clone()));
    }

    /// Ends a session whose server does not exist any more, once its open calls have their answers
    /// (E40). Calls to a server that is disabled get their answers at once.
    async fn end_when_quiet(self: Arc<Self>, session: Arc<Session>) {
        tokio::select! {
            biased;
            () = session.closed().cancelled() => return,
            () = self.shutdown.cancelled() => return,
            quiet = tokio::time::timeout(QUIET_MAX, session.quiet()) => if quiet.is_err() {
                tracing::warn!(session.id = %session.id, "ended with calls that are still open");
            },
        }
        self.end_session(&session).await;
    }

    /// Delivers a message of a server on a link that several share to the sessions concerned.
    pub(crate) fn spread(&self, server: &ServerKey, message: &Message, kind: LinkKind) {
        let alias = &server.alias;
        let mut rewrite = Rewrite::default();
        rewrite.meta.remove(meta_key::SUBSCRIPTION_ID);
        let payload = rewrite.apply(message);
        let at_it = |session: &Session| is_at(session, alias);
        let Some(known) = Notification::named(message.method()) else {
            return self.tell_sessions(server, kind, &payload, at_it);
        };
        match known.about {
            // Servers ask nothing on links that several sessions share, and the progress tokens
            // there are the gateway's.
            About::Request | About::Progress => {}
            About::Lists(_) => {
                if kind == LinkKind::Shared {
                    self.hub.announce(Change::List(Seen::Server(server.clone()), known));
                }
                self.tell_sessions(server, kind, &payload, at_it);
            }
            About::Task => {
                self.tasks.heard(server, message.get("taskId"), message.get("status"));
                match known.era {
                    Some(Era::Modern) => self.hub.task_changed(server, message),
                    _ => self.task_told(server, kind, message),
                }
            }
            About::Resource => self.resource_changed(server, kind, message, &payload),
            About::Log => self.logged(server, kind, message, &payload),
            About::Session | About::Roots | About::Elicitation | About::Stream => {
                self.tell_sessions(server, kind, &payload, at_it);
            }
        }
    }

    /// Brings a changed resource to the listeners and sessions that follow it.
    fn resource_changed(
        &self,
        server: &ServerKey,
        kind: LinkKind,
        message: &Message,
        payload: &Payload,
    ) {
        let Some(uri) = message.get("uri").and_then(Raw::as_str) else { return };
        let uri: Arc<str> = uri.as_ref().into();
        self.hub.announce(Change::Resource(server.clone(), uri.clone()));
        let key = FollowKey { server: server.clone(), subject: Subject::Resource(uri), kind };
        self.tell_sessions(server, kind, payload, |session| session.is_subscribed(&key));
    }

    /// Brings a log message to the only open call, and to the sessions with a level.
    fn logged(&self, server: &ServerKey, kind: LinkKind, message: &Message, payload: &Payload) {
        if kind == LinkKind::Shared {
            self.tell_only_call(server, message);
        }
        let level = message.get("level").and_then(LogLevel::read);
        self.tell_sessions(server, kind, payload, |session| {
            // The message may be about any caller's call: only sessions with a level get it.
            let Some(wanted) = session.log_level() else { return false };
            let is_heard =
                is_at(session, &server.alias) || session.endpoint == Endpoint::Aggregated;
            is_heard && level.is_none_or(|level| level >= wanted)
        });
    }

    /// Brings a log message of a server's shared link to the call that is alone on it.
    fn tell_only_call(&self, server: &ServerKey, message: &Message) {
        if self.hub.ears.is_empty() {
            return;
        }
        let link = self.row_of(server).and_then(|row| row.link.clone());
        if let Some(link) = link.filter(|link| !link.is_one_channel()) {
            let is_told = self.hub.ears.tell(&link, || Frame::Notification(message.clone()));
            tracing::trace!(is_told, "a log message for the only call on its link");
        }
    }

    /// Delivers a legacy server's report on a task to the sessions of the run that owns the task.
    fn task_told(&self, server: &ServerKey, kind: LinkKind, state: &Message) {
        for session in self.sessions.all() {
            if self.uses(&session, server, kind)
                && let Some(payload) = session.task_told(&server.alias, state, false)
            {
                session.deliver(payload);
            }
        }
    }

    /// Delivers a message to those sessions of `concerned` that may see this server and use this
    /// link to it.
    fn tell_sessions(
        &self,
        server: &ServerKey,
        kind: LinkKind,
        payload: &Payload,
        concerned: impl Fn(&Session) -> bool,
    ) {
        for session in self.sessions.all() {
            if concerned(&session) && self.uses(&session, server, kind) {
                session.deliver(payload.clone());
            }
        }
    }
}

pub(crate) fn is_at(session: &Session, alias: &Alias) -> bool {
    matches!(&session.endpoint, Endpoint::Transparent(own) if own == alias)
}
