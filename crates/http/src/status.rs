//! What operators and the commands `status` and `tools` ask for.

use http::{HeaderValue, StatusCode, header};
use narthex_gateway::{Gateway, shown};
use narthex_model::{Alias, QualifiedName, QualifiedNames};
use narthex_registry::{ServerRow, Snapshot};
use narthex_wire::{Payload, Raw};
use serde_json::{Value, json};

use crate::{
    auth::Principal,
    respond::{self, Response},
    rows::visible,
};

/// The counters, as Prometheus reads them.
pub(crate) fn metrics(gateway: &Gateway) -> Response {
    let mut response = Response::new(Payload::from(gateway.metrics().render().into_bytes()).into());
    let text =
        HeaderValue::from_static("application/openmetrics-text; version=1.0.0; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, text);
    response
}

/// The servers, and how each of them is.
pub(crate) fn servers(snapshot: &Snapshot, principal: &Principal) -> Response {
    let rows: Vec<Value> = visible(snapshot, principal).map(server).collect();
    let body = json!({ "settled": snapshot.is_settled(), "servers": rows });
    respond::json(StatusCode::OK, body.to_string().into_bytes().into())
}

fn server(row: &ServerRow) -> Value {
    let facts = row.link.as_ref().map(|link| link.facts());
    let inventory = shown(row);
    json!({
        "alias": row.name,
        "state": row.state,
        "activity": row.activity,
        "transport": row.definition.as_ref().map(|definition| definition.transport()),
        "era": facts.map(|facts| if facts.revision.is_modern() { "modern" } else { "legacy" }),
        "revision": facts.map(|facts| facts.revision.as_str()),
        "tools": inventory.tools.len(),
        "prompts": inventory.prompts.len(),
        "resources": inventory.resources.len(),
        "resource_templates": inventory.templates.len(),
        "error": row.error,
    })
}

/// The tools of all servers under both of their names.
pub(crate) fn tools(snapshot: &Snapshot, principal: &Principal, name_limit: usize) -> Response {
    let rows: Vec<(&Alias, _)> = visible(snapshot, principal)
        .filter_map(|row| Some((row.alias.as_ref()?, shown(row))))
        .collect();
    let originals =
        rows.iter().flat_map(|(alias, shown)| shown.tools.iter().map(|tool| (*alias, &*tool.key)));
    let names = QualifiedNames::build(originals, name_limit);
    let mut tools = Vec::new();
    for (alias, shown) in &rows {
        for tool in &shown.tools {
            tools.push(json!({
                "alias": alias.as_str(),
                "name": &*tool.key,
                "qualified_name": names.name(alias, &tool.key).map(QualifiedName::as_str),
                "description": Raw::new(&tool.raw).get("description").and_then(Raw::as_str),
            }));
        }
    }
    respond::json(StatusCode::OK, json!({ "tools": tools }).to_string().into_bytes().into())
}
