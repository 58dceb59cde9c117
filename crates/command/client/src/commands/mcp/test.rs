//! `narthex mcp test`: a fresh connection to one server, stage by stage.

use std::{fmt::Write, process::ExitCode};

use http::Method;
use narthex_model::{ErrorKind, command::narthex};
use serde_json::{Value, json};

use super::{Whose, is_not_found, list, text, with_names};
use crate::{
    Context, Failure,
    cli::TestArgs,
    commands::{
        across::{HOME, workspaces},
        waiting::{ellipsis, waiting},
    },
    daemon_client::{DaemonClient, EventReader, segment, server_path, workspace_path},
    output::{self, Colour, harmless, paint},
};

const STAGES: [&str; 4] = ["connect", "tools/list", "resources/list", "prompts/list"];

pub(super) async fn run(args: &TestArgs, context: &Context) -> Result<ExitCode, Failure> {
    let client = DaemonClient::operator(&context.daemon)?;
    let events = opened(args, &client, context).await?;
    result(&watched(events, context).await?, context)
}

/// Tests a server of the daemon's own by this very name, shows its stages, and returns the result.
pub(in crate::commands) async fn probe(
    name: &str,
    client: &DaemonClient,
    context: &Context,
) -> Result<Value, Failure> {
    let events = client.api_events(Method::POST, server_path(name, "/test")).await?;
    watched(events, context).await
}

/// Shows the stages as they end, and returns the result.
async fn watched(mut events: EventReader, context: &Context) -> Result<Value, Failure> {
    let mut done = 0;
    loop {
        let running = STAGES.get(done).copied().unwrap_or("the end of the server");
        let number = (done + 1).min(STAGES.len());
        let what = format!("[{number}/{}] {running}", STAGES.len());
        let event = waiting(&what, context, events.next()).await?;
        let Some(event) = event else {
            let text = "the test ended early; check the daemon's log, then try again";
            return Err(Failure::new(ErrorKind::Unavailable, text));
        };
        if event["stage"].is_object() {
            done += 1;
            if context.format.is_text() {
                output::sentence(&stage(done, &event["stage"], context))?;
            }
        } else if event["result"].is_object() {
            return Ok(event["result"].clone());
        }
    }
}

/// Begins the test of a server of the daemon's own, of the mount of this name, or else of the
/// newest run that has a server of this name; with a workspace, only of one there.
async fn opened(
    args: &TestArgs,
    client: &DaemonClient,
    context: &Context,
) -> Result<EventReader, Failure> {
    let TestArgs { name, workspace } = args;
    let workspace = workspace.as_deref();
    let is_wanted = |other: &str| workspace.is_none_or(|wanted| wanted == other);
    let ask = async |path| client.api_events(Method::POST, path).await;
    let failure = match is_wanted(HOME) {
        false => absent(name, workspace.unwrap_or_default()),
        true => match ask(server_path(name, "/test")).await {
            Err(failure) if is_not_found(&failure) => failure,
            asked => return asked,
        },
    };
    let mut mounts = list::mounts_of_runs(name, client).await?;
    mounts.retain(|mount| is_wanted(&mount.workspace));
    // A run may have ended since.
    while let Some(mount) = mounts.pop() {
        let query = format!("/test?workspace={}", segment(&mount.workspace));
        let asked = match ask(server_path(&mount.name, &query)).await {
            Err(failure) if is_not_found(&failure) => continue,
            asked => asked?,
        };
        if !context.format.is_quiet() {
            let text = format!(
                "this is a new connection to the server of `{}`, a run's of workspace {}",
                mount.name, mount.workspace
            );
            output::notice(&harmless(&text));
        }
        return Ok(asked);
    }
    match in_catalog(name, workspace, client).await {
        Some(workspace) => Err(Failure { message: of_catalog(name, &workspace), ..failure }),
        None if is_wanted(HOME) => Err(with_names(name, Whose::Daemon, failure, client).await),
        None => Err(failure),
    }
}

/// The failure for a workspace whose active runs have no such server.
fn absent(name: &str, workspace: &str) -> Failure {
    let text = format!(
        "no active run of workspace `{}` has a server `{}`; `{}` lists the servers of all runs",
        harmless(workspace),
        harmless(name),
        narthex("mcp list", &[])
    );
    Failure::new(ErrorKind::NotFound, text)
}

/// The workspace whose catalog has a server of this id: the wanted one, or any.
async fn in_catalog(id: &str, wanted: Option<&str>, client: &DaemonClient) -> Option<String> {
    let mut all = workspaces(client).await.ok()?;
    all.retain(|workspace| wanted.is_none_or(|wanted| wanted == workspace));
    for workspace in all {
        let path = workspace_path(&workspace, &format!("/mcp-servers/{}", segment(id)));
        if client.api_get(path).await.is_ok() {
            return Some(workspace);
        }
    }
    None
}

/// The failure for a server of the catalog, which can only be tried in a run: the values for its
/// connection come from the run's agent.
fn of_catalog(id: &str, workspace: &str) -> String {
    let create = narthex("runs create --agent AGENT", &[]).in_workspace(workspace);
    let test = narthex("mcp test {}", &[&id]);
    format!(
        "`{}` is in the catalog of workspace {}, and no active run has it; create a run of an \
         agent that has it with `{create}`, and test it then with `{test}`",
        harmless(id),
        harmless(workspace)
    )
}

/// Such as `[2/4] tools/list … OK (12 tools, 8ms)`.
fn stage(number: usize, stage: &Value, context: &Context) -> String {
    let (name, took) = (text(stage, "name"), stage["duration_ms"].as_u64().unwrap_or(0));
    let marker = match text(stage, "outcome") {
        "ok" => {
            let what = name.split('/').next().unwrap_or_default();
            let count = stage["count"].as_u64().map(|count| match count {
                1 => format!("1 {}, ", what.trim_end_matches('s')),
                count => format!("{count} {what}, "),
            });
            format!("{} ({}{took}ms)", paint("OK", Colour::Green), count.unwrap_or_default())
        }
        "not_supported" => "N/A (not supported)".to_owned(),
        "timeout" => {
            let after = stage["after_ms"].as_u64().unwrap_or(took);
            format!("{} (after {after} ms)", paint("TIMEOUT", Colour::Red))
        }
        _ => format!("{} ({})", paint("FAILED", Colour::Red), harmless(text(stage, "reason"))),
    };
    format!("[{number}/{}] {name} {} {marker}", STAGES.len(), ellipsis(context))
}

fn result(probe: &Value, context: &Context) -> Result<ExitCode, Failure> {
    let is_ok = probe["ok"] == true;
    let code = if is_ok { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    let why = || failed(probe);
    if context.format.is_json() {
        match is_ok {
            true => output::done(probe)?,
            false => {
                let kind = ErrorKind::Unavailable.as_str();
                let error = json!({ "code": "test_failed", "kind": kind, "message": why() });
                output::json(&json!({ "ok": false, "error": error, "data": probe }))?;
            }
        }
        return Ok(code);
    }
    let word = match is_ok {
        true => paint("OK", Colour::Green),
        false => paint("FAILED", Colour::Red),
    };
    if context.format.is_quiet() {
        output::line(&word)?;
        return Ok(code);
    }
    // The reasons are in the lines of the stages.
    let rest = if is_ok { server(probe) } else { failed_stages(probe) };
    output::line(&format!("{word} {}", harmless(&rest)))?;
    Ok(code)
}

/// The server's own name and version, such as `everything 2.0.0 (2025-11-25)`.
fn server(probe: &Value) -> String {
    let mut server = match text(probe, "server_name") {
        "" => text(probe, "name").to_owned(),
        name => name.to_owned(),
    };
    for (before, member, after) in [(" ", "server_version", ""), (" (", "revision", ")")] {
        let said = text(probe, member);
        if !said.is_empty() && write!(server, "{before}{said}{after}").is_err() {
            break;
        }
    }
    server
}

/// The names of the stages that failed.
fn failed_stages(probe: &Value) -> String {
    let stages = probe["stages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let is_bad = |stage: &&Value| matches!(text(stage, "outcome"), "failed" | "timeout");
    stages.iter().filter(is_bad).map(|stage| text(stage, "name")).collect::<Vec<_>>().join(", ")
}

/// The stages that failed, with their reasons, in one line.
pub(in crate::commands) fn failed(probe: &Value) -> String {
    let stages = probe["stages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let bad = stages.iter().filter_map(|stage| match text(stage, "outcome") {
        "failed" => Some(format!("{}: {}", text(stage, "name"), text(stage, "reason"))),
        "timeout" => {
            Some(format!("{}: no answer in {} ms", text(stage, "name"), stage["after_ms"]))
        }
        _ => None,
    });
    bad.collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_probe_shows_the_name_version_and_revision_that_the_server_reports() {
        let probe = json!({"name": "a", "server_name": "x", "server_version": "1",
            "revision": "2025-11-25"});
        assert_eq!(server(&probe), "x 1 (2025-11-25)");
        assert_eq!(server(&json!({"name": "a", "server_name": null})), "a");
    }

    #[test]
    fn every_failed_stage_of_a_probe_is_reported() {
        let probe = json!({"stages": [
            {"name": "connect", "outcome": "ok"},
            {"name": "tools/list", "outcome": "timeout", "after_ms": 5000},
            {"name": "resources/list", "outcome": "not_supported"},
            {"name": "prompts/list", "outcome": "failed", "reason": "error -32603: no"},
        ]});
        let expected = "tools/list: no answer in 5000 ms; prompts/list: error -32603: no";
        assert_eq!(failed(&probe), expected);
        assert_eq!(failed_stages(&probe), "tools/list, prompts/list");
    }
}
