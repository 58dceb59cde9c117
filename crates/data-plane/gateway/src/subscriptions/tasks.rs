//! Owners of tasks, and statuses that servers report by themselves or when they are asked.

use narthex_model::Alias;
use narthex_wire::{
    Limits, Message, MessageKind, Payload, Revision, json::encode_string, method, rpc,
};

use crate::{Endpoint, Session, tasks::TaskOwner};

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
pub(crate) fn state_of(answer: &Message) -> Option<Message> {
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
