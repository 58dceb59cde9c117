//! `narthex sessions list`: sessions by time, with the reasons of failed ones.

use std::{collections::BTreeSet, process::ExitCode};

use crate::cli::WorkspaceArgs;
use serde_json::{Value, json};

use super::{env, session_path};
use crate::{
    Context, Failure,
    commands::waiting::waiting,
    daemon_client::{DaemonClient, workspace_path},
    output::{self, harmless},
    table,
};

/// Number of failed sessions whose reason is asked for: the newest.
const REASONS_MAX: usize = 20;

pub(super) async fn list(
    client: &DaemonClient,
    place: &WorkspaceArgs,
    context: &Context,
) -> Result<ExitCode, Failure> {
    let path = workspace_path(&place.workspace, "/sessions");
    let mut items = waiting("asking the daemon", context, client.api_all(&path)).await?;
    in_order(&mut items);
    let path = workspace_path(&place.workspace, "/runs?status=failed");
    let runs = waiting("asking the daemon", context, client.api_all(&path)).await?;
    mark(&mut items, &runs);
    let failed = items.iter_mut().rev().filter(|one| one["has_failed"] == true);
    for one in failed.take(REASONS_MAX) {
        let id = one["session_id"].as_str().unwrap_or_default();
        let path = format!("{}/events?type=session.failed", session_path(place, id));
        let told = client.api_get(path).await?;
        // The last of its events that say so.
        let last = told["items"].as_array().and_then(|items| items.last());
        one["failure"] = last.map_or(Value::Null, |event| event["payload"]["reason"].clone());
    }
    let header = ["id", "status", "agent", "created", "by", "parent", "env"];
    let code = table::list(&items, &header, row, "There are no sessions yet.", context)?;
    if context.format.is_text() {
        for one in items.iter().filter(|one| one["failure"].is_string()) {
            let (id, why) = (table::text(one, "session_id"), table::text(one, "failure"));
            output::notice(&harmless(&format!("{id} failed: {why}")));
        }
    }
    Ok(code)
}

/// Sorts by time; the newest session comes last, and so is the last line on a terminal.
fn in_order(items: &mut [Value]) {
    let key = |one: &Value| [table::text(one, "created_at"), table::text(one, "session_id")];
    items.sort_by_cached_key(key);
}

/// Notes which sessions have ended with a run that has failed.
fn mark(items: &mut [Value], runs: &[Value]) {
    let failed: BTreeSet<_> = runs.iter().filter_map(|run| run["session_id"].as_str()).collect();
    for one in items {
        let is_over = one["status"] == "ended";
        let has_failed = one["session_id"].as_str().is_some_and(|id| failed.contains(id));
        one["has_failed"] = json!(is_over && has_failed);
        one["failure"] = Value::Null;
    }
}

fn row(one: &Value) -> Vec<String> {
    let has_failed = one["has_failed"] == true;
    vec![
        table::text(one, "session_id"),
        if has_failed { "failed".to_owned() } else { table::text(one, "status") },
        table::or_none(one, "agent_name"),
        table::text(one, "created_at"),
        table::text(one, "created_by"),
        table::or_none(one, "parent_run_id"),
        env(one),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sessions come by time, and failed ones are shown as such.
    #[test]
    fn sessions_are_sorted_by_time_and_failed_sessions_are_marked() {
        let one = |id: &str, at: &str, status: &str| -> Value {
            json!({ "session_id": id, "created_at": at, "status": status })
        };
        let mut items = [
            one("ses_a", "2026-03-02T00:00:00Z", "running"),
            one("ses_b", "2026-03-01T00:00:00Z", "ended"),
            one("ses_c", "2026-03-03T00:00:00Z", "ended"),
        ];
        in_order(&mut items);
        // A session that is active after a run has failed has not.
        mark(&mut items, &["ses_a", "ses_c"].map(|id| json!({ "session_id": id })));
        let seen = items.each_ref().map(|one| row(one)[..2].join(" "));
        assert_eq!(seen, ["ses_b ended", "ses_a running", "ses_c failed"]);
    }
}
