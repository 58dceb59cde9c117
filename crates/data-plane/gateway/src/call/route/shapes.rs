//! Output schemas that a client may know while their server cannot be called.

use narthex_model::{Alias, QualifiedNames};
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
    let is_known = match handling {
        Handling::Tool => {
            let known = row.known_tools().map(|own| (alias, own));
            let names = QualifiedNames::build(known, name_limit);
            names.route(&shown).is_some_and(|(_, own)| exposed(row).tools.lets(own))
        }
        Handling::Prompt => {
            let known = row.known_prompts().map(|own| (alias, own));
            let names = QualifiedNames::build(known, name_limit);
            names.route(&shown).is_some_and(|(_, own)| exposed(row).prompts.lets(own))
        }
        _ => row.knows_resource(&shown) && exposed(row).resources.lets(&shown),
    };
    is_known.then(|| unusable(row))
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
    let is_shaped = |row: &ServerRow, own: &str| row.is_shaped(own) && exposed(row).tools.lets(own);
    match &caller.endpoint {
        Endpoint::Transparent(alias) => {
            let row = rows.get(alias.as_str());
            row.is_some_and(|row| is_shaped(&row, &name))
        }
        Endpoint::Aggregated => {
            let found = expected(handling, asked, rows);
            found.is_some_and(|(row, alias)| {
                let known = row.known_tools().map(|own| (alias, own));
                let names = QualifiedNames::build(known, name_limit);
                names.route(&name).is_some_and(|(_, own)| is_shaped(row, own))
            })
        }
    }
}
