//! The facts of a request: the agent, the permission, the exact arguments, and its grant.

use narthex_console::{
    pages::approval::{Arguments, Asked, Fact, GrantLink},
    parts::{Moment, Words},
};
use narthex_control::GrantRequestRow;
use narthex_model::ErrorKind;
use serde_json::Value;

use crate::{
    Access,
    console::{asked, links, viewer::Viewer},
    problem::Problem,
    request_warnings::warnings,
    routes::SEE_RUNS,
};

/// Maximum number of characters of arguments: all that are stored, also if many are invisible.
const ARGUMENTS_MAX: usize = 50_000;
/// The detail of a request that has a part of its own.
const DIGEST: &str = "arguments_digest";

/// The facts of a request, with the warning of a probable mistake.
pub(super) async fn facts(viewer: &Viewer<'_>, row: &GrantRequestRow) -> Result<Asked, Problem> {
    let fact = |name, value: &str, href| Fact { name, value: Words::new(value), href };
    let mut facts = Vec::new();
    if let Some(agent) = &row.agent {
        facts.push(fact("agent", agent.as_str(), Some(asked::of_agent(viewer, agent, ""))));
    }
    if let Some(user) = &row.user {
        facts.push(fact("driven by", &asked::driver(viewer, user), None));
    }
    let run = row.run.to_text();
    facts.push(fact("run", &run, links::run(viewer, &run)));
    if let Some(session) = row.session {
        let session = session.to_text();
        let sees_runs = viewer.may(Access::Member(SEE_RUNS));
        let list = sees_runs.then(|| asked::address(viewer, "runs", &[("session", &session)]));
        facts.push(fact("session", &session, list));
    }
    let asks_for = match row.of.word() {
        "tool_scope" => "a tool scope",
        other => other,
    };
    facts.push(fact("asks for", asks_for, None));
    let details = row.of.details();
    for (name, value) in details.as_object().into_iter().flatten() {
        if name != DIGEST {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            facts.push(fact(detail(name), &value, None));
        }
    }
    facts.push(fact("how long", row.duration, None));
    let one = std::slice::from_ref(row);
    let reads_catalog = viewer.principal.may_read_catalog(&viewer.workspace);
    let warning = warnings(viewer.control(), &viewer.workspace, one, reads_catalog).await?;
    Ok(Asked {
        facts,
        arguments: details.get(DIGEST).map(|digest| arguments(row, digest)),
        reason: Words::within(&row.reason, 1_000),
        warning: warning.into_iter().flatten().next().as_deref().map(Words::new),
        since: Moment::new(row.requested_at),
        until: Moment::new(row.expires_at),
    })
}

fn detail(name: &str) -> &'static str {
    match name {
        "scope" => "tool scope",
        "server" => "only at the server",
        "tool" => "only the tool",
        "child_agent_id" => "agent to start",
        "allowed_models" => "only with the models",
        "allowed_runtime_types" => "only with the runtimes",
        _ => "also",
    }
}

/// The exact arguments. A text that was cut ends in a sentence, and not in the end of an object.
fn arguments(row: &GrantRequestRow, digest: &Value) -> Arguments {
    Arguments {
        text: Words::within(&row.arguments, ARGUMENTS_MAX),
        is_whole: row.arguments.ends_with('}'),
        digest: Words::new(digest.as_str().unwrap_or_default()),
    }
}

/// The grant of an approval, if it still exists.
pub(super) async fn grant(
    viewer: &Viewer<'_>,
    row: &GrantRequestRow,
) -> Result<Option<GrantLink>, Problem> {
    let Some(id) = row.grant else { return Ok(None) };
    let id = id.to_text();
    let granted = match viewer.control().grant(&viewer.workspace, &id).await {
        Ok(granted) => granted,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    Ok(Some(GrantLink {
        href: viewer.path(&format!("grants/{id}")),
        lasts: Words::new(&asked::lasts(granted.grant.duration)),
        ends: granted.grant.expires_at.map(Moment::new),
        proof: match granted.is_advisory {
            true => "Nothing proved that a human approved it.",
            false => "A passkey or a provider proved that a human approved it.",
        },
    }))
}
