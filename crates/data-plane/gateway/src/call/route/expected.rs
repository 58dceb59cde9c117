//! Finds the server to which a name seems to belong, before the server is connected.

use std::sync::Arc;

use narthex_model::Alias;
use narthex_registry::ServerRow;
use narthex_wire::Message;

use crate::{RunView, names::text, runs::run::RunRows, view::Handling};

/// The server to which an item seems to belong, by the prefix of its tools and prompts or by its
/// earlier lists, or by a name that the run's profile gives. A server that is being connected comes
/// first.
pub(super) fn expected<'s>(
    run: &RunView,
    handling: Handling,
    request: &Message,
    rows: &'s RunRows,
) -> Option<(&'s Arc<ServerRow>, &'s Alias)> {
    let member = match handling {
        Handling::Tool | Handling::Prompt => "name",
        Handling::Resource | Handling::Subscribe { .. } => "uri",
        _ => return None,
    };
    let name = text(request, member).ok()?;
    let given = run.original(&name).filter(|_| handling == Handling::Tool);
    let has_it = |row: &ServerRow, alias: &Alias| match handling {
        Handling::Tool if given.as_ref().is_some_and(|(server, _)| server == alias) => true,
        Handling::Tool | Handling::Prompt => {
            let rest =
                name.strip_prefix("mcp__").and_then(|rest| rest.strip_prefix(alias.as_str()));
            rest.is_some_and(|rest| rest.starts_with("__"))
        }
        _ => row.knows_resource(&name),
    };
    let is_its = |(row, alias): &(&Arc<ServerRow>, &Alias)| has_it(row, alias);
    let named = rows.servers.iter().filter(|row| !row.is_overridden);
    let named = named.filter_map(|row| Some((row, row.alias.as_ref()?)));
    named.filter(is_its).min_by_key(|(row, _)| row.state.is_settled())
}
