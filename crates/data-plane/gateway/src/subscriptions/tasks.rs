//! Statuses of tasks, as servers report them by themselves.

use std::sync::Arc;

use narthex_model::Alias;
use narthex_registry::ServerKey;
use narthex_upstream::{Asking, Link};
use narthex_wire::{
    Limits, Message, MessageKind, Payload, Raw, Revision, json::encode_string, method, rpc,
};

use super::{Change, FollowKey, Hub, Subject, follow::Followed};
use crate::tasks::{TaskOwner, has_ended};
use crate::{Endpoint, Session, gateway::Shared, links::LinkKind};

impl Hub {
    /// Takes a modern server's report on a task to its listeners.
    pub(super) fn task_changed(&self, server: &ServerKey, state: &Message) {
        let Some(id) = state.get("taskId").and_then(Raw::as_str) else { return };
        let id: Arc<str> = id.as_ref().into();
        let subject = Subject::Task(id.clone());
        let key = FollowKey { server: server.clone(), subject, kind: LinkKind::Shared };
        if self.keep_state(&key, state, has_ended(state.get("status"))) {
            self.announce(Change::Task(server.clone(), id));
        }
    }
}

impl Shared {
    /// Takes a legacy server's word on a task to the sessions of the run that owns it.
    pub(super) fn task_told(&self, server: &ServerKey, kind: LinkKind, state: &Message) {
        for session in self.sessions.all() {
            if self.uses(&session, server, kind)
                && let Some(payload) = session.task_told(&server.alias, state, false)
            {
                session.deliver(payload);
            }
        }
    }

    /// Asks for the status of a task that changed while there was no stream to its server, and
    /// reports it as if the server had.
    pub(super) async fn catch_up(&self, link: &Link, key: &FollowKey, followed: &Followed) {
        let Subject::Task(id) = &key.subject else { return };
        let members = [br#""taskId":"#, &encode_string(id)[..]].concat();
        let state = match self.asked(&key.server, link, Asking::TaskState, &members).await {
            Ok(answer) => state_of(&answer),
            Err(refusal) => {
                tracing::debug!(
                    server.name = link.name(),
                    ?refusal,
                    "did not report the state of a task"
                );
                None
            }
        };
        let Some(state) = state else { return };
        self.tasks.heard(&key.server, state.get("taskId"), state.get("status"));
        // A later state may have come on the stream.
        if !followed.has_ended() {
            self.hub.task_changed(&key.server, &state);
        }
    }
}

impl Session {
    /// The owner of the tasks that a server makes for this session.
    pub(crate) fn task_owner(&self, alias: &Alias) -> TaskOwner {
        TaskOwner {
            routes: self.tasks.clone(),
            server: self.run.key(alias),
            run: self.run.id,
            is_aggregated: self.endpoint == Endpoint::Aggregated,
            tool: None,
            origin: None,
        }
    }

    /// A state of a task as this session's client may see it; `None` if it may not.
    pub(crate) fn task_told(
        &self,
        alias: &Alias,
        state: &Message,
        is_own_link: bool,
    ) -> Option<Payload> {
        let is_here = match &self.endpoint {
            Endpoint::Aggregated => self.revision == Revision::LEGACY_LATEST,
            Endpoint::Transparent(own) => own == alias,
        };
        is_here.then(|| self.task_owner(alias).told(state, is_own_link)).flatten()
    }
}

/// The answer to `tasks/get` as a notification: both have the same members.
fn state_of(answer: &Message) -> Option<Message> {
    let body = answer.body_raw().filter(|_| answer.kind() == MessageKind::Result)?;
    let is_state = |name: &str| name != "resultType" && name != "_meta";
    let members = body.entries().into_iter().filter(|(name, _)| is_state(name));
    let members: Vec<_> = members
        .map(|(name, value)| [&encode_string(&name)[..], b":", value.as_bytes()].concat())
        .collect();
    let params = [b"{", &members.join(&b","[..])[..], b"}"].concat();
    let payload = rpc::notification(method::TASKS, Some(&params));
    Message::parse(payload.into_bytes(), &Limits::default()).ok()
}
