//! The object of an event, and the list as an address, a command and a request.

use narthex_model::command::{CommandLine, narthex};
use serde_json::Value;

use crate::console::viewer::Viewer;

/// The object of an event: the resource, or the tool of a server.
pub(super) fn object(event: &Value) -> String {
    let text = |place: &str| event.pointer(place).and_then(Value::as_str);
    match (text("/resource/kind"), text("/resource/id"), text("/server"), text("/tool")) {
        (Some(kind), Some(id), ..) => format!("{kind} {id}"),
        (_, _, Some(server), Some(tool)) => format!("{tool} of {server}"),
        (_, _, Some(server), None) => server.to_owned(),
        _ => String::new(),
    }
}

/// The list with these filters.
pub(super) fn address(viewer: &Viewer<'_>, pairs: &[(&str, String)]) -> String {
    let mut written = form_urlencoded::Serializer::new(String::new());
    written.extend_pairs(pairs);
    match written.finish().as_str() {
        "" => viewer.path("audit"),
        query => viewer.path(&format!("audit?{query}")),
    }
}

/// The command that lists the events. Those of no workspace have a flag.
pub(super) fn command(viewer: &Viewer<'_>) -> CommandLine {
    match viewer.is_of_operators() {
        true => narthex("audit list --installation", &[]),
        false => narthex("audit list", &[]),
    }
}

/// The path of the same list in the API.
pub(super) fn api(viewer: &Viewer<'_>) -> String {
    match viewer.audited() {
        Some(workspace) => format!("/api/workspaces/{workspace}/audit"),
        None => "/api/audit".to_owned(),
    }
}
