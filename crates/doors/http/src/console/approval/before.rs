//! The past of an agent that asks: the calls of its run, and its earlier requests.

use std::time::Duration;

use narthex_audit::kind;
use narthex_console::{
    pages::approval::{Call, Calls, Earlier},
    parts::{Moment, Words},
};
use narthex_control::{AuditQuery, GrantRequestRow, RequestSearch, RequestState};
use narthex_model::{GrantOf, Timestamp, ToolScopeGrant, command::narthex};
use serde_json::Value;

use crate::{
    Access,
    console::{asked, viewer::Viewer},
    deciding::approval_path,
    problem::Problem,
    routes::AUDIT,
};

/// Number of calls of the run that are looked at.
const CALLS: u32 = 50;
/// Number of calls that the page shows.
const SHOWN: usize = 10;
/// Number of earlier requests of the agent.
const EARLIER: u32 = 5;

/// The calls of the run before its request, with the access of the audit.
pub(super) async fn calls(
    viewer: &Viewer<'_>,
    row: &GrantRequestRow,
) -> Result<Option<Calls>, Problem> {
    if !viewer.may(Access::Member(AUDIT)) {
        return Ok(None);
    }
    let run = row.run.to_text();
    let query = AuditQuery {
        run: run.clone(),
        kind: kind::TOOL_CALLED.to_owned(),
        // Times of the audit are whole milliseconds.
        until: Some(row.requested_at + Duration::from_millis(1)),
        ..AuditQuery::newest(Some(viewer.workspace.clone()), CALLS)
    };
    let found = viewer.control().audit_list(&query).await?;
    let events: Vec<_> = found.items.iter().map(|item| &item.event).collect();
    let refused = events.iter().find(|event| is_cause(event, &row.of));
    let command = narthex("audit list --run {}", &[&run]).in_workspace(&viewer.workspace);
    Ok(Some(Calls {
        refused: refused.and_then(|event| call(event)),
        last: events.iter().take(SHOWN).filter_map(|event| call(event)).collect(),
        command: command.to_string(),
    }))
}

/// True if a refused call may be the cause of a request: a grant was missing, or a rule refused it.
fn is_cause(event: &Value, of: &GrantOf) -> bool {
    let check = event.pointer("/details/refused_by").and_then(Value::as_str);
    let wanted = match of {
        GrantOf::ToolScope(ToolScopeGrant { tool, .. }) => tool.as_deref(),
        GrantOf::Spawn(_) => return false,
    };
    let tool = event.get("tool").and_then(Value::as_str);
    matches!(check, Some("grants" | "rules")) && (wanted.is_none() || wanted == tool)
}

fn call(event: &Value) -> Option<Call> {
    let text = |place: &str| event.pointer(place).and_then(Value::as_str);
    let at = Timestamp::parse(text("/time")?)?;
    let tool = match (text("/tool"), text("/server")) {
        (Some(tool), Some(server)) => format!("{tool} of {server}"),
        (tool, server) => tool.or(server).unwrap_or_default().to_owned(),
    };
    let outcome = match (text("/details/refused_by"), text("/details/rule")) {
        (Some("grants"), _) => "refused: it requires a grant that was missing".to_owned(),
        (Some("rules"), Some(rule)) => format!("refused by the rule {rule}"),
        (Some("exposed"), _) => "refused: the run has no such tool, or it is hidden".to_owned(),
        (Some("attached"), _) => "refused: the run has no such server".to_owned(),
        (Some("definitions"), _) => "refused: its definition is under review".to_owned(),
        (Some(check), _) => format!("refused by the check {check}"),
        (None, _) => text("/outcome").unwrap_or_default().to_owned(),
    };
    Some(Call { at: Moment::new(at), tool: Words::new(&tool), outcome: Words::new(&outcome) })
}

/// Closed requests of the same agent, the newest first.
pub(super) async fn earlier(
    viewer: &Viewer<'_>,
    row: &GrantRequestRow,
) -> Result<Vec<Earlier>, Problem> {
    let Some(agent) = row.agent.clone() else { return Ok(Vec::new()) };
    let search = RequestSearch {
        state: RequestState::Closed(None),
        agent: Some(agent),
        after: None,
        limit: EARLIER,
    };
    let found = viewer.control().grant_requests_search(&viewer.workspace, &search).await?;
    let others = found.items.iter().filter(|other| other.id != row.id);
    let shown = others.map(|other| Earlier {
        href: approval_path(&viewer.workspace, &other.id.to_text()),
        what: Words::new(&asked::what(&other.of)),
        word: other.status.as_str(),
        since: Moment::new(other.requested_at),
    });
    Ok(shown.collect())
}

#[cfg(test)]
mod tests {
    use narthex_model::ToolScope;
    use serde_json::json;

    use super::*;

    /// The cause of a request is a call that a grant would have allowed, of the requested tool.
    #[test]
    fn d15_the_cause_of_a_request_is_a_call_that_a_grant_allows() {
        let of = |tool: Option<&str>| {
            GrantOf::ToolScope(ToolScopeGrant {
                scope: ToolScope::new("git.write").unwrap(),
                server: None,
                tool: tool.map(str::to_owned),
                arguments: None,
            })
        };
        let event = |check: &str| {
            json!({ "time": "2026-11-22T10:39:14.343Z", "tool": "push", "server": "git",
                    "outcome": "denied", "details": { "refused_by": check, "rule": "no-push" } })
        };
        assert!(is_cause(&event("grants"), &of(None)));
        assert!(is_cause(&event("rules"), &of(Some("push"))));
        assert!(!is_cause(&event("grants"), &of(Some("pull"))));
        assert!(!is_cause(&event("attached"), &of(None)));
        let told = |check| call(&event(check)).unwrap().outcome;
        assert_eq!(told("rules").as_str(), "refused by the rule no-push");
        assert_eq!(call(&event("grants")).unwrap().tool.as_str(), "push of git");
        assert!(call(&json!({ "outcome": "ok" })).is_none(), "an event without a time");
    }
}
