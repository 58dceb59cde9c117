//! Output schemas that a client may know while their server cannot be called.

use std::sync::Arc;

use narthex_model::{Alias, QualifiedNames};
use narthex_policy::Item;
use narthex_registry::ServerRow;
use narthex_wire::Message;

use super::expected::expected;
use crate::{
    Caller, Endpoint,
    names::text,
    refusal::{Refusal, unusable},
    runs::run::RunRows,
    view::{Handling, exposed},
};

/// The refusal for a caller that was shown an item and cannot use it now: the server is
/// disabled, has failed, or waits for a sign-in (D30). `None` for an item that this run was
/// never shown.
pub(super) fn taken_away(
    name_limit: usize,
    caller: &Caller,
    row: &ServerRow,
    alias: &Alias,
    handling: Handling,
    request: &Message,
) -> Option<Refusal> {
    if row.is_ready() || !caller.run.was_shown(alias) {
        return None;
    }
    let member = match handling {
        Handling::Tool | Handling::Prompt => "name",
        _ => "uri",
    };
    let shown = text(request, member).ok()?;
    let item = match handling {
        Handling::Tool => Item::Tool(known_tool(name_limit, caller, row, alias, &shown)?),
        Handling::Prompt => {
            let known = row.known_prompts().map(|own| (alias, own));
            let names = QualifiedNames::build(known, name_limit);
            Item::Prompt(names.route(&shown)?.1.clone())
        }
        _ => row.knows_resource(&shown).then(|| Item::Resource(shown.as_ref().into()))?,
    };
    let is_shown = item.is_exposed(exposed(row)) && caller.run.shows(alias, &item);
    is_shown.then(|| unusable(row))
}

/// The server's own name of a tool that it has listed, by the name that the caller knows. `None`
/// for the qualified name of a tool that the caller's profile renames.
fn known_tool(
    name_limit: usize,
    caller: &Caller,
    row: &ServerRow,
    alias: &Alias,
    shown: &str,
) -> Option<Arc<str>> {
    if let Some((_, own)) = caller.run.original(shown).filter(|(server, _)| server == alias) {
        return row.known_tools().any(|known| *known == *own).then_some(own);
    }
    let names = QualifiedNames::build(row.known_tools().map(|own| (alias, own)), name_limit);
    let (_, own) = names.route(shown)?;
    (!caller.run.is_renamed(alias, own)).then(|| own.clone())
}

/// True if an unroutable call is for a tool whose output schema the client may know. A hidden
/// tool counts as absent (D5).
pub(crate) fn is_shaped(
    name_limit: usize,
    rows: &RunRows,
    caller: &Caller,
    handling: Handling,
    asked: &Message,
) -> bool {
    let Some(name) = text(asked, "name").ok().filter(|_| handling == Handling::Tool) else {
        return false;
    };
    let is_shaped = |row: &ServerRow, alias: &Alias, own: &str| {
        let item = Item::Tool(own.into());
        row.is_shaped(own) && item.is_exposed(exposed(row)) && caller.run.shows(alias, &item)
    };
    match &caller.endpoint {
        Endpoint::Transparent(alias) => {
            let row = rows.get(alias.as_str());
            row.is_some_and(|row| is_shaped(&row, alias, &name))
        }
        Endpoint::Aggregated => {
            let found = expected(&caller.run, handling, asked, rows);
            found.is_some_and(|(row, alias)| {
                let own = known_tool(name_limit, caller, row, alias, &name);
                own.is_some_and(|own| is_shaped(row, alias, &own))
            })
        }
    }
}
