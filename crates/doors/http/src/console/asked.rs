//! Permissions, requests and their agents in words: one projection for all pages.

use narthex_console::pages::approvals::{Decided, Outcome, RequestRow};
use narthex_console::parts::{Moment, Words};
use narthex_control::{GrantRequestRow, GrantRequestStatus};
use narthex_model::{AgentName, GrantDuration, GrantOf, PrincipalId, SpawnGrant, ToolScopeGrant};

use super::viewer::Viewer;
use crate::{Access, deciding::approval_path, routes::ADMIN};

/// The permission in words.
pub(super) fn what(of: &GrantOf) -> String {
    let (scope, server, tool, has_arguments) = match of {
        GrantOf::Spawn(SpawnGrant { child_agent, .. }) => {
            return format!("to start the agent {child_agent}");
        }
        GrantOf::ToolScope(ToolScopeGrant { scope, server, tool, arguments }) => {
            (scope, server, tool, arguments.is_some())
        }
    };
    let only = match (tool, server) {
        (Some(tool), Some(server)) => format!(", only for {tool} of {server}"),
        (Some(tool), None) => format!(", only for {tool}"),
        (None, Some(server)) => format!(", only at {server}"),
        (None, None) => String::new(),
    };
    let arguments = if has_arguments { ", only with exact arguments" } else { "" };
    format!("tool scope {scope}{only}{arguments}")
}

/// The number of uses of a grant, or its time, in words.
pub(super) fn lasts(duration: GrantDuration) -> String {
    match duration {
        GrantDuration::Once => "one call in the workspace".to_owned(),
        GrantDuration::OnceIn(session) => format!("one call in the session {}", session.to_text()),
        GrantDuration::Run(run) => format!("all calls until the run {} ends", run.to_text()),
        GrantDuration::Session(session) => {
            format!("all calls until the session {} ends", session.to_text())
        }
        GrantDuration::Persistent => "all calls until it is revoked".to_owned(),
    }
}

/// The agent that asks, or the run if it has none.
pub(super) fn who(row: &GrantRequestRow) -> String {
    row.agent.as_ref().map_or_else(|| row.run.to_text(), ToString::to_string)
}

/// The human who drives a run.
pub(super) fn driver(viewer: &Viewer<'_>, id: &PrincipalId) -> String {
    let name = viewer.control().principal_name(id);
    match *id == PrincipalId::local_admin() {
        true => format!("{name} (the holder of the admin token)"),
        false => name,
    }
}

/// The address of a list of this workspace with these parameters; empty ones are left out.
pub(super) fn address(viewer: &Viewer<'_>, page: &str, pairs: &[(&str, &str)]) -> String {
    let mut written = form_urlencoded::Serializer::new(String::new());
    written.extend_pairs(pairs.iter().filter(|(_, value)| !value.is_empty()));
    match written.finish().as_str() {
        "" => viewer.path(page),
        query => viewer.path(&format!("{page}?{query}")),
    }
}

/// The address of the requests of an agent with a status.
pub(super) fn of_agent(viewer: &Viewer<'_>, agent: &AgentName, status: &str) -> String {
    address(viewer, "approvals", &[("status", status), ("agent", agent.as_str())])
}

/// The end of a request; `None` while it waits.
pub(super) fn outcome(row: &GrantRequestRow) -> Option<Outcome> {
    let decided = |(at, by): &(std::time::SystemTime, String)| Decided {
        by: Words::new(by),
        at: Moment::new(*at),
        reason: Words::new(&row.decision_reason),
    };
    (row.status != GrantRequestStatus::Pending).then(|| Outcome {
        word: row.status.as_str(),
        is_granted: row.status == GrantRequestStatus::Approved,
        decided: row.decided.as_ref().map(decided),
    })
}

/// The row of a request. `status` is that of the list, which the links of agents keep.
pub(super) fn request(viewer: &Viewer<'_>, row: &GrantRequestRow, status: &str) -> RequestRow {
    let id = row.id.to_text();
    let outcome = outcome(row);
    RequestRow {
        href: approval_path(&viewer.workspace, &id),
        id: format!("request-{id}"),
        what: Words::new(&what(&row.of)),
        who: Words::new(&who(row)),
        who_href: row.agent.as_ref().map(|agent| of_agent(viewer, agent, status)),
        driver: row.user.as_ref().map(|user| Words::new(&driver(viewer, user))),
        reason: Words::within(&row.reason, 200),
        since: Moment::new(row.requested_at),
        until: Moment::new(row.expires_at),
        is_for_me: outcome.is_none() && viewer.may(Access::Member(ADMIN)),
        outcome,
    }
}

#[cfg(test)]
mod tests {
    use narthex_model::{Alias, ToolScope};

    use super::*;

    /// A permission says each of its limits.
    #[test]
    fn d15_a_permission_says_each_of_its_limits() {
        let of = |server: Option<&str>, tool: Option<&str>| {
            what(&GrantOf::ToolScope(ToolScopeGrant {
                scope: ToolScope::new("git.write").unwrap(),
                server: server.map(|name| Alias::new(name).unwrap()),
                tool: tool.map(str::to_owned),
                arguments: None,
            }))
        };
        assert_eq!(of(None, None), "tool scope git.write");
        assert_eq!(of(Some("git"), None), "tool scope git.write, only at git");
        assert_eq!(of(None, Some("push")), "tool scope git.write, only for push");
        assert_eq!(of(Some("git"), Some("push")), "tool scope git.write, only for push of git");
    }
}
