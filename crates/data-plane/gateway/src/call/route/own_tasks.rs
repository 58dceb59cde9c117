//! Tasks as the items of requests: their owners, and the calls that made them.

use narthex_model::Alias;
use narthex_policy::{Item, Request};
use narthex_wire::{Message, Raw, notification::TASKS_FILTER};

use crate::{
    Caller,
    refusal::{Refusal, not_found},
    tasks::TaskRoutes,
    view::Handling,
};

/// Adds the call that made a task to a request: a task is gated like that call.
pub(crate) fn know_origin(tasks: &TaskRoutes, caller: &Caller, request: &mut Request) {
    if let Item::Task(id) = &request.item {
        request.origin = tasks.origin(caller.run.id, &caller.run.key(&request.alias), id);
    }
}

/// Checks that all tasks of a stream are the caller's: tasks of others get the answer for
/// absent ones (S18).
pub(super) fn owns_tasks(
    tasks: &TaskRoutes,
    caller: &Caller,
    alias: &Alias,
    request: &Message,
) -> Result<(), Refusal> {
    let wanted = request.get("notifications").and_then(|wanted| wanted.get(TASKS_FILTER));
    for id in wanted.map(Raw::items).unwrap_or_default() {
        let id = id.as_str().unwrap_or_default();
        if !tasks.owns(caller.run.id, &caller.run.key(alias), &id) {
            return Err(not_found(Handling::Task, &id));
        }
    }
    Ok(())
}
