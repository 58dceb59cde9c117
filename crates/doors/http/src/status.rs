//! The metrics of the daemon, and short forms of servers and their tools.

use std::borrow::Cow;

use http::{HeaderValue, header};
use narthex_gateway::{Gateway, shown};
use narthex_model::{Alias, CallError, QualifiedNames, Reader};
use narthex_registry::{ServerRow, Snapshot};
use narthex_wire::{Payload, Raw};

use crate::{
    auth::Principal,
    problem::Problem,
    respond::Response,
    rows::{brief, time, visible, words_for_runs},
    servers::{Query, page_of},
    shapes::{Page, StatusRow, ToolRow},
};

/// The counters in the format of Prometheus.
pub(crate) fn metrics(gateway: &Gateway) -> Response {
    for row in &gateway.registry().snapshot().servers {
        if let Some(alias) = row.alias.as_ref().filter(|_| !row.is_overridden) {
            let failure = row.health.last_failure().map(|failure| failure.at);
            gateway.metrics().upstream_seen(alias, row.health.last_success(), failure);
        }
    }
    let mut response = Response::new(Payload::from(gateway.metrics().render().into_bytes()).into());
    let text =
        HeaderValue::from_static("application/openmetrics-text; version=1.0.0; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, text);
    response
}

/// The status of each server that a principal may see, one line each: for `/readyz?verbose`.
pub(crate) fn readiness(snapshot: &Snapshot, principal: &Principal) -> String {
    let mut lines = String::new();
    let never = || "never".to_owned();
    for row in visible(snapshot, principal).filter(|row| !row.is_overridden) {
        let mark = if row.is_ready() { '+' } else { '-' };
        let succeeded = row.health.last_success().map_or_else(never, time);
        let failure = row.health.last_failure();
        let failed = failure.as_ref().map_or_else(never, |failure| {
            let CallError { kind, message, details: _ } = failure.what.read_by(principal.reader());
            format!("{} ({kind}: {})", time(failure.at), one_line(&message))
        });
        let (name, state) = (one_line(&row.name), row.state.as_str());
        lines.push_str(&format!(
            "[{mark}] {name} {state}, last success {succeeded}, last failure {failed}\n"
        ));
    }
    lines
}

/// The text on one line.
fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// The short form of a server, for a reader.
pub(crate) fn server(row: &ServerRow, reader: Reader) -> StatusRow {
    let revision = row.link.as_ref().map(|link| link.facts().revision);
    let brief = brief(row, revision, true);
    let server = match reader {
        Reader::Operator => brief,
        Reader::Run => brief.for_runs(words_for_runs(row)),
    };
    StatusRow { alias: row.name.clone(), server }
}

/// A page of the tools of all servers, ordered by alias and name, each tool with both of its names.
pub(crate) fn tools(
    query: &Query,
    snapshot: &Snapshot,
    principal: &Principal,
    name_limit: usize,
) -> Result<Page<ToolRow>, Problem> {
    let rows: Vec<(&Alias, _)> = visible(snapshot, principal)
        .filter_map(|row| Some((row.alias.as_ref()?, shown(row))))
        .collect();
    let originals =
        rows.iter().flat_map(|(alias, shown)| shown.tools.iter().map(|tool| (*alias, &*tool.key)));
    let names = QualifiedNames::build(originals, name_limit);
    let mut tools = Vec::new();
    for (alias, shown) in &rows {
        // No alias has a comma.
        tools
            .extend(shown.tools.iter().map(|tool| (format!("{alias},{}", tool.key), *alias, tool)));
    }
    tools.sort_unstable_by(|one, other| one.0.cmp(&other.0));
    page_of(
        query,
        tools,
        |(place, ..)| place,
        |(_, alias, tool)| {
            let description = Raw::new(&tool.raw).get("description").and_then(Raw::as_str);
            ToolRow {
                alias: alias.to_string(),
                name: tool.key.to_string(),
                qualified_name: names.name(alias, &tool.key).map(ToString::to_string),
                description: description.map(Cow::into_owned),
            }
        },
    )
}
