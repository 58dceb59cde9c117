//! Tasks as the items of requests: their owners, and the calls that made them.

use narthex_model::Alias;
use narthex_policy::{Item, Request};
use narthex_wire::{Message, Raw};

use super::not_found;
use crate::view::Handling;
use crate::{Caller, call::refusal::Refusal, gateway::Shared};

impl Shared {
    /// A task is gated like the call that made it.
    pub(crate) fn know_origin(&self, caller: &Caller, request: &mut Request) {
        if let Item::Task(id) = &request.item {
            request.origin = self.tasks.origin(caller.run.id, &caller.run.key(&request.alias), id);
        }
    }

    /// True if all tasks that a stream shall report are the caller's: those of others are as absent
    /// as none (S18).
    pub(super) fn owns_tasks(
        &self,
        caller: &Caller,
        alias: &Alias,
        request: &Message,
    ) -> Result<(), Refusal> {
        let wanted = request.get("notifications").and_then(|wanted| wanted.get("taskIds"));
        for id in wanted.map(Raw::items).unwrap_or_default() {
            let id = id.as_str().unwrap_or_default();
            if !self.tasks.owns(caller.run.id, &caller.run.key(alias), &id) {
                return Err(not_found(Handling::Task, &id));
            }
        }
        Ok(())
    }
}
