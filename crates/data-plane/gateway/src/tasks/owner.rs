//! Renames and filters the tasks in answers and notifications between a server and a client.

use std::{borrow::Cow, sync::Arc};

use bytes::Bytes;
use narthex_model::RunId;
use narthex_policy::Origin;
use narthex_registry::ServerKey;
use narthex_upstream::Link;
use narthex_wire::{
    Message, Payload, Raw, Rewrite, json::encode_string, meta_key, method, with_member,
};

use crate::tasks::TaskRoutes;

/// The owner of the tasks that a server makes for one caller.
#[derive(Debug)]
pub(crate) struct TaskOwner {
    /// The tasks of all callers.
    pub routes: Arc<TaskRoutes>,
    /// The server.
    pub server: ServerKey,
    /// The run of the caller.
    pub run: RunId,
    /// True if the caller knows ids that the gateway may have changed.
    pub is_aggregated: bool,
    /// The tool of the current call, if there is one.
    pub tool: Option<Arc<str>>,
    /// The call of that tool, if the call required a grant.
    pub origin: Option<Arc<Origin>>,
}

impl TaskOwner {
    /// Reads a result: registers a task that it starts, and rewrites lists of tasks for the caller.
    pub(crate) fn answered(
        &self,
        asked: &str,
        result: &Message,
        link: &Arc<Link>,
        rewrite: &mut Rewrite<'static>,
    ) {
        match asked {
            method::TOOLS_CALL => self.learn(result, link),
            method::TASKS_LIST => self.keep_own(result, rewrite),
            method::TASKS_RESULT => {
                let related = result.meta_value(meta_key::RELATED_TASK);
                let id = related.and_then(|related| related.get("taskId"));
                self.routes.has_result(&self.server, id);
            }
            _ => self.routes.heard(&self.server, result.get("taskId"), result.get("status")),
        }
        self.rename(result, rewrite);
    }

    fn learn(&self, result: &Message, link: &Arc<Link>) {
        let is_modern =
            result.get("resultType").is_some_and(|kind| kind.as_bytes() == br#""task""#);
        let task = result.get("task").or_else(|| result.body_raw().filter(|_| is_modern));
        let Some(task) = task else { return };
        if let Some(id) = task.get("taskId").and_then(Raw::as_str) {
            let made_by = |tool: &Arc<str>| Origin { tool: tool.clone(), ..Origin::default() };
            let free = || self.tool.as_ref().map(|tool| Arc::new(made_by(tool)));
            let origin = self.origin.clone().or_else(free);
            self.routes.learn(self.run, &id, &self.server, origin.as_ref());
            self.routes.keep_awake(self.run, task, &self.server, link);
        }
    }

    /// Removes other runs' tasks from a server's list. The server knows no runs, and lists for all
    /// callers that come with its credential (S18).
    fn keep_own(&self, result: &Message, rewrite: &mut Rewrite<'static>) {
        let Some(tasks) = result.get("tasks") else { return };
        let all = tasks.items();
        let own = self.own(&all);
        if own.len() < all.len() {
            let kept: Vec<_> = own.iter().map(|(task, _)| task.as_bytes()).collect();
            rewrite.body.set("tasks", [b"[", &kept.join(&b","[..])[..], b"]"].concat());
        }
    }

    /// The tasks of the caller among those that a server lists, with the caller's id of each.
    #[must_use]
    pub(crate) fn own<'a>(&self, tasks: &[Raw<'a>]) -> Vec<(Raw<'a>, Arc<str>)> {
        let own = |task: &Raw<'a>| {
            let id = task.get("taskId").and_then(Raw::as_str)?;
            self.routes.heard(&self.server, task.get("taskId"), task.get("status"));
            Some((*task, self.routes.shown(self.run, &self.server, &id)?))
        };
        tasks.iter().filter_map(own).collect()
    }

    /// Puts the ids that the caller knows in place of the server's own.
    fn rename(&self, message: &Message, rewrite: &mut Rewrite<'static>) {
        self.rename_related(message, rewrite);
        if !self.is_aggregated {
            return;
        }
        if let Some(shown) = self.changed(message.get("taskId")) {
            rewrite.body.set("taskId", encode_string(&shown));
        }
        if let Some(task) = message.get("task")
            && let Some(shown) = self.changed(task.get("taskId"))
        {
            rewrite.body.set("task", with_id(task, &shown));
        }
    }

    /// Renames the task that a message only relates to; any other id in the message may be the
    /// client's.
    pub(crate) fn rename_related(&self, message: &Message, rewrite: &mut Rewrite<'static>) {
        let related = message.meta_value(meta_key::RELATED_TASK).filter(|_| self.is_aggregated);
        if let Some(related) = related
            && let Some(shown) = self.changed(related.get("taskId"))
        {
            rewrite.meta.set(meta_key::RELATED_TASK, with_id(related, &shown));
        }
    }

    /// The caller's id of a task, if it is not the server's own.
    fn changed(&self, id: Option<Raw<'_>>) -> Option<Arc<str>> {
        let id = id?.as_str()?;
        self.routes.shown(self.run, &self.server, &id).filter(|shown| **shown != *id)
    }

    /// A status that the server sends on its own (2025-11-25), as the caller may see it. On a link
    /// of the caller's own it may come before the answer that creates the task.
    #[must_use]
    pub(crate) fn told(&self, state: &Message, is_own_link: bool) -> Option<Payload> {
        let id = state.get("taskId").and_then(Raw::as_str)?;
        self.routes.heard(&self.server, state.get("taskId"), state.get("status"));
        if !self.routes.owns(self.run, &self.server, &id) {
            let is_anothers = self.routes.is_anothers(self.run, &self.server, &id);
            let is_taken = self.is_aggregated && self.routes.route(self.run, &id).is_some();
            if !is_own_link || is_anothers || is_taken {
                return None;
            }
        }
        let mut rewrite = Rewrite::default();
        self.rename(state, &mut rewrite);
        Some(rewrite.apply(state))
    }

    /// Replaces the caller's id of a task by the server's own id in a client's message.
    pub(crate) fn restore(&self, message: &Message, rewrite: &mut Rewrite<'static>) {
        let related = message.meta_value(meta_key::RELATED_TASK).filter(|_| self.is_aggregated);
        let Some(related) = related else { return };
        let id = related.get("taskId").and_then(Raw::as_str);
        let routed = id.as_ref().and_then(|id| self.routes.route(self.run, id));
        if let Some((alias, own)) = routed
            && alias == self.server.alias
        {
            rewrite.meta.set(meta_key::RELATED_TASK, with_id(related, &own));
        }
    }
}

/// A task, or the name of one, under another id.
#[must_use]
pub(crate) fn with_id(task: Raw<'_>, id: &str) -> Cow<'static, [u8]> {
    let whole = Bytes::copy_from_slice(task.as_bytes());
    with_member(&whole, "taskId", id).to_vec().into()
}
