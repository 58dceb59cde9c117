//! The registry's rows as the API shows them: never a secret, never an argument (E147).

use std::{sync::Arc, time::SystemTime};

use narthex_control::FileStatus;
use narthex_gateway::shown;
use narthex_model::{CallError, Pid, Reader, RowWarning, ServerDefinition, Target, Timestamp};
use narthex_policy::RunPolicy;
use narthex_registry::{ServerRow, Snapshot};
use narthex_vfs::MountName;
use narthex_wire::Raw;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};

use crate::auth::Principal;

/// The characters that are percent-encoded when a name becomes part of a row's place.
const IN_PLACES: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_');

/// The rows that a principal may see (D5). An entry without a usable alias can be attached to no
/// run by name, so only principals that see every row see it.
pub(crate) fn visible<'s>(
    snapshot: &'s Snapshot,
    principal: &'s Principal,
) -> impl Iterator<Item = &'s ServerRow> {
    snapshot.servers.iter().map(|row| &**row).filter(move |row| may_see(row, principal))
}

pub(crate) fn may_see(row: &ServerRow, principal: &Principal) -> bool {
    match (principal, &row.alias) {
        (Principal::Known(_) | Principal::Human(_) | Principal::LocalAdmin, _) => true,
        (Principal::Run(run), Some(alias)) => {
            run.policy.is_attached(alias) || run.is_built_in(alias)
        }
        (Principal::Run(run), None) => run.policy == RunPolicy::AllAttached,
    }
}

/// The rows that a principal may see by name, each with its place in this order, which it keeps
/// whatever comes and goes beside it.
pub(crate) fn in_order<'s>(
    snapshot: &'s Snapshot,
    principal: &'s Principal,
) -> Vec<(String, &'s ServerRow)> {
    let mut rows: Vec<_> = visible(snapshot, principal).collect();
    rows.sort_by_key(|row| (&row.name, row.provenance.as_str()));
    let mut placed: Vec<(String, &ServerRow)> = Vec::with_capacity(rows.len());
    let mut same = 0;
    for row in rows {
        let is_same = placed
            .last()
            .is_some_and(|(_, last)| last.name == row.name && last.provenance == row.provenance);
        same = if is_same { same + 1 } else { 0 };
        // A layer that has a name twice shows both. No name ends within another's place.
        let name = utf8_percent_encode(&row.name, IN_PLACES);
        placed.push((format!("{name},{},{same}", row.provenance.as_str()), row));
    }
    placed.sort_by(|one, other| one.0.cmp(&other.0));
    placed
}

/// All rows that a principal may see.
pub(crate) fn all(snapshot: &Snapshot, principal: &Principal, has_tools: bool) -> Value {
    let (pid, reader) = (pid_of(principal), principal.reader());
    let shown = |row: &ServerRow| one(row, reader, pid, has_tools);
    let rows: Vec<_> = visible(snapshot, principal).map(shown).collect();
    json!({ "settled": snapshot.is_settled(), "servers": rows })
}

/// Adds the members of a row that depend on who reads it: the one place that decides them (D28).
/// Operators read causes, and what their configuration does. The agent of a run reads the kind of
/// a failure, and of warnings those that are not about the configuration.
pub(crate) fn add_by_reader(document: &mut Value, row: &ServerRow, reader: Reader) {
    document["error"] = json!(row.error.as_ref().map(|failure| failure.read_by(reader)));
    document["last_failure"] = json!(last_failure(row, reader));
    let warnings = row.warnings();
    match reader {
        Reader::Operator => {
            document["warnings"] = json!(warnings);
            document["gates_unmatched"] = json!(unmatched(row));
        }
        Reader::Run => {
            let read: Vec<_> = warnings.iter().filter_map(RowWarning::for_runs).collect();
            document["warnings"] = json!(read);
        }
    }
}

/// The pid whose paths the rows have for a principal without a run: the daemon's own.
///
/// A run knows its own, and lists them as its files.
pub(crate) fn pid_of(principal: &Principal) -> Option<Pid> {
    match principal {
        Principal::Known(_) | Principal::Human(_) | Principal::LocalAdmin => Some(Pid::OWN),
        Principal::Run(_) => None,
    }
}

/// One row for a reader, with its path in a run's files (R-C1), and with the list of its tools on
/// demand.
pub(crate) fn one(row: &ServerRow, reader: Reader, pid: Option<Pid>, has_tools: bool) -> Value {
    // Only what is ready has anything (E33, E72), and of that only what callers may see (D5).
    let inventory = if row.is_ready() { shown(row) } else { Arc::default() };
    let revision = row.facts.as_ref().map(|facts| facts.revision);
    let mut document = json!({
        "name": row.name,
        "path": path(row, pid),
        "state": row.state,
        "activity": row.activity,
        "transport": row.definition.as_ref().map(|definition| definition.transport()),
        "auth": row.definition.as_deref().map(auth),
        "provenance": row.provenance,
        "is_overridden": row.is_overridden,
        "tools": inventory.tools.len(),
        "prompts": inventory.prompts.len(),
        "resources": inventory.resources.len(),
        "resource_templates": inventory.templates.len(),
        "era": revision.map(|one| if one.is_modern() { "modern" } else { "legacy" }),
        "revision": revision.map(|one| one.as_str()),
        "capabilities": capabilities(row),
        "attempt": row.attempt,
        "definitions_changed": row.changed,
        "definitions_held_back": row.pinned.as_ref().map_or(0, |said| said.held().count()),
        "reconnects": row.reconnects,
        "forced_kills": row.forced_kills,
        "last_check": row.last_check.map(time),
        "last_success": row.health.last_success().map(time),
        "is_probed": row.is_probed,
        "is_asleep": row.is_asleep,
        "has_logs": row.log.has_output(),
    });
    add_by_reader(&mut document, row, reader);
    if reader == Reader::Operator {
        document["file"] = json!(row.file.as_deref());
    }
    if has_tools {
        let tool = |raw: Raw<'_>, name: &str| {
            let description = raw.get("description").and_then(Raw::as_str);
            json!({ "name": name, "description": description })
        };
        let list = inventory.tools.iter().map(|entry| tool(Raw::new(&entry.raw), &entry.key));
        document["tool_list"] = list.collect();
    }
    document
}

/// The last failure of calls and checks; they may have succeeded since then (D30).
fn last_failure(row: &ServerRow, reader: Reader) -> Option<Value> {
    let failure = row.health.last_failure()?;
    let CallError { kind, message, details: _ } = failure.what.read_by(reader);
    Some(json!({ "at": time(failure.at), "kind": kind, "message": message }))
}

pub(crate) fn time(time: SystemTime) -> String {
    Timestamp::new(time).to_string()
}

/// Gates that gate nothing, in sentences.
fn unmatched(row: &ServerRow) -> Vec<String> {
    row.unmatched().iter().map(ToString::to_string).collect()
}

/// Where it is among files; an entry without a usable alias is nowhere.
fn path(row: &ServerRow, pid: Option<Pid>) -> Option<String> {
    let (alias, pid) = (row.alias.clone()?, pid?);
    (!row.is_overridden).then(|| MountName { pid, alias }.path())
}

fn auth(definition: &ServerDefinition) -> &'static str {
    match &definition.target {
        Target::Stdio(_) => "none",
        Target::Http(target) => target.auth.mode(),
    }
}

/// The capabilities that a server declared (E70).
fn capabilities(row: &ServerRow) -> Option<Value> {
    let has = &row.facts.as_ref()?.capabilities;
    Some(json!({
        "tools": has.tools,
        "prompts": has.prompts,
        "resources": has.resources,
        "subscribe": has.subscribe,
        "completions": has.completions,
        "logging": has.logging,
        "tasks": has.tasks,
        "list_changed": has.list_changed,
    }))
}

/// The status of a followed file.
pub(crate) fn file(status: &FileStatus) -> Value {
    json!({
        "file": status.file,
        "provenance": status.provenance,
        "is_present": status.is_present,
        "applied_at": status.applied_at.map(time),
        "error": status.error,
        "refused_since": status.refused_since.map(time),
        "gone_since": status.gone_since.map(time),
        "last_read": status.last_read.map(time),
    })
}
