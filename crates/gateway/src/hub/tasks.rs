//! How tasks stand, as servers tell by themselves.

use std::sync::Arc;

use narthex_model::Alias;
use narthex_upstream::Link;
use narthex_wire::{
    Limits, Message, MessageKind, Payload, Raw, Revision, json::encode_string, method, rpc,
};

use super::{Change, FollowKey, Hub, Subject, follow::Followed};
use crate::{
    Endpoint, Session,
    gateway::Shared,
    links::{LinkKind, link_kind},
    tasks::TaskOwner,
};

impl Hub {
    /// Takes a modern server's word on a task to those who listen.
    pub(super) fn task_changed(&self, alias: &Alias, state: &Message) {
        let Some(id) = state.get("taskId").and_then(Raw::as_str) else { return };
        let id: Arc<str> = id.as_ref().into();
        let (alias, subject) = (alias.clone(), Subject::Task(id.clone()));
        let key = FollowKey { alias: alias.clone(), subject, kind: LinkKind::Shared };
        if self.keep_state(&key, state, has_ended(state)) {
            self.announce(Change::Task(alias, id));
        }
    }
}

impl Shared {
    /// Takes a legacy server's word on a task to the sessions of the run that owns it.
    pub(super) fn task_told(&self, alias: &Alias, kind: LinkKind, state: &Message) {
        let snapshot = self.registry.snapshot();
        let Some(row) = snapshot.get(alias.as_str()) else { return };
        let Some(shared) = &row.link else { return };
        for session in self.sessions.all() {
            if link_kind(&session, row, shared.facts()) == kind
                && let Some(payload) = session.task_told(alias, state, false)
            {
                session.deliver(payload);
            }
        }
    }

    /// What happened to a task while nobody listened at its server is asked for, and told as if the
    /// server had.
    pub(super) async fn catch_up(&self, link: &Link, key: &FollowKey, followed: &Followed) {
        let Subject::Task(id) = &key.subject else { return };
        let members = [br#""taskId":"#, &encode_string(id)[..]].concat();
        let state = match self.asked(link, method::TASKS_GET, &members).await {
            Ok(answer) => state_of(&answer),
            Err(refusal) => {
                tracing::debug!(server.name = link.name(), ?refusal, "did not say of a task");
                None
            }
        };
        // A later state may have come on the stream.
        if let Some(state) = state
            && !followed.has_ended()
        {
            self.hub.task_changed(link.alias(), &state);
        }
    }
}

impl Session {
    /// Who owns the tasks that a server makes for this session.
    pub(crate) fn task_owner(&self, alias: &Alias) -> TaskOwner {
        TaskOwner {
            routes: self.tasks.clone(),
            alias: alias.clone(),
            run: self.run.id,
            is_aggregated: self.endpoint == Endpoint::Aggregated,
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

/// Whether a task will not change any more.
fn has_ended(state: &Message) -> bool {
    let status = state.get("status").and_then(Raw::as_str);
    matches!(status.as_deref(), Some("completed" | "failed" | "cancelled"))
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
