//! A whole story with a real client and a real server: an agent is refused, makes the call that the
//! refusal names, its user is led to the page of the request, a human approves at the command line,
//! the same call succeeds in the same run, and the audit has all of it.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use fs_err as fs;
use serde_json::{Value, json};

use super::daemon::Daemon;
use super::install::Peers;
use super::servers::Servers;
use crate::process::{self, Service};
use crate::workspace;

const DONE: Duration = Duration::from_secs(60);
const STOPPED: Duration = Duration::from_secs(10);
const API: &str = "/api/workspaces/default";

/// Runs the story with a client of this era.
pub(super) fn is_told(
    peers: &Peers,
    daemon: &Daemon,
    servers: &Servers,
    logs: &Path,
    era: &str,
) -> Result<()> {
    let (server, files) = servers.gated(peers)?;
    let narthex = Narthex { data: &servers.data };
    narthex.apply("servers", &server)?;
    let agent = json!({ "name": "writer", "mcpServers": { "notes": { "ref": "notes" } } });
    narthex.apply("agents", &agent)?;
    let run = narthex.data(&["runs", "create", "--agent", "writer", "--json"])?;
    let session = text(&run, "session_id")?;
    let token = servers.data.join("writer.token");
    fs::write(&token, text(&run, "token")?)?;
    let watcher = narthex.watch(&logs.join("pending.log"))?;

    let note = files.join(format!("{era}.txt"));
    let arguments = json!({ "path": note, "content": "by leave" }).to_string();
    let mut agent = Command::new(peers.node());
    agent.arg(workspace::root().join("e2e/clients/story.mjs")).arg("--peers").arg(peers.node_dir());
    agent.args(["--era", era, "--tool", "mcp__notes__write_file", "--arguments", &arguments]);
    agent.arg("--url").arg(text(&run["endpoints"], "aggregated")?);
    let events = format!("{API}/sessions/{session}/events");
    agent.arg("--events").arg(daemon.endpoint_url(&events)).arg("--token-file").arg(token);
    let agent = Service::start("the agent", &mut agent, &logs.join(format!("story-{era}.log")))?;

    refused(&agent, "refused", &note)?;
    let asked = step(&agent, "asked")?;
    ensure!(asked["structuredContent"]["status"] == "pending", "not asked for: {asked}");
    let pending = watcher.wait_for("a request", DONE, |line| {
        let line: Value = serde_json::from_str(line).ok()?;
        let is_ours = line["request"]["session_id"] == session;
        (line["event"] == "pending" && is_ours).then(|| line["request"]["id"].clone())
    })?;
    let request = pending.as_str().context("a request without an id")?;
    ensure!(asked["structuredContent"]["grant_request_id"] == request, "another one: {asked}");
    led_to_its_page(&agent, daemon, request, era)?;
    refused(&agent, "still refused", &note)?;
    narthex.data(&["grants", "approve", request, "--reason", "why not", "--json"])?;
    heard(&agent, request, era)?;
    let written = step(&agent, "done")?;
    ensure!(written["isError"].as_bool() != Some(true), "the call failed: {written}");
    ensure!(fs::read_to_string(&note)? == "by leave", "something else is written");
    watcher.terminate(STOPPED)?;
    narthex.recorded(text(&run, "run_id")?)
}

/// The call has not reached the server.
fn refused(agent: &Service, name: &str, note: &Path) -> Result<()> {
    let refused = step(agent, name)?;
    // The tool declares an output schema, and clients check structured content against it.
    ensure!(refused.get("structuredContent").is_none(), "this has another form: {refused}");
    let error = &refused["_meta"]["narthex/error"];
    ensure!(error["kind"] == "permission_required", "not {name}: {refused}");
    ensure!(error["details"]["scopes"] == json!(["files.write"]), "{refused}");
    let calls = error["details"]["ask"]["calls"].as_array().map_or(0, Vec::len);
    ensure!(calls == 1, "{calls} calls ask for one scope: {refused}");
    ensure!(!note.exists(), "a call without a grant has reached the server");
    Ok(())
}

/// The client was asked, in the way of its era, to show the page of the request, and has answered
/// that it does. A human who opens the page has to sign in first.
fn led_to_its_page(agent: &Service, daemon: &Daemon, request: &str, era: &str) -> Result<()> {
    let shown = step(agent, "shown")?;
    let page = format!("/workspaces/default/grant-requests/{request}");
    // Pages are at `localhost` where no `http.public_url` is set: passkeys need a name.
    let url = daemon.endpoint_url(&page).replace("//127.0.0.1:", "//localhost:");
    let (id, answered) = match era {
        "legacy" => (json!(request), json!({ "by": "response", "status": 202 })),
        _ => (Value::Null, json!({ "by": "tools/call", "status": 200 })),
    };
    let wanted = [
        ("era", json!(era)),
        ("mode", json!("url")),
        ("url", json!(url)),
        ("elicitationId", id),
        ("answered", answered),
        ("heading", json!("Sign in")),
    ];
    for (name, wanted) in wanted {
        ensure!(shown[name] == wanted, "`{name}` is not {wanted}: {shown}");
    }
    Ok(())
}

/// The decision reaches the follower of the session, the client that has shown the page, and the
/// agent that asks again, whose user is led nowhere again.
fn heard(agent: &Service, request: &str, era: &str) -> Result<()> {
    let decided = step(agent, "decided")?;
    ensure!(decided["type"] == "permission.granted", "not granted: {decided}");
    ensure!(decided["payload"]["grant_request_id"] == request, "something else: {decided}");
    if era == "legacy" {
        let completed = step(agent, "completed")?;
        ensure!(completed["elicitationId"] == request, "another page: {completed}");
    }
    let stands = step(agent, "stands")?;
    let standing = &stands["result"]["structuredContent"];
    ensure!(standing["status"] == "approved", "it does not stand so: {stands}");
    ensure!(standing["grant_request_id"] == request, "another one: {stands}");
    ensure!(stands["pages"] == 1, "led to a page more than once: {stands}");
    Ok(())
}

/// Returns the agent's report of a step.
fn step(agent: &Service, name: &str) -> Result<Value> {
    agent.wait_for(&format!("step {name}"), DONE, |line| {
        let mut line: Value = serde_json::from_str(line).ok()?;
        (line["step"] == name).then(|| line["result"].take())
    })
}

fn text<'a>(value: &'a Value, name: &str) -> Result<&'a str> {
    value[name].as_str().with_context(|| format!("no `{name}` in {value}"))
}

/// The command line, as the operator uses it.
struct Narthex<'a> {
    data: &'a Path,
}

impl Narthex<'_> {
    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(workspace::built("narthex"));
        command.arg("--data").arg(self.data).args(words);
        command
    }

    fn data(&self, words: &[&str]) -> Result<Value> {
        let done = process::capture(&mut self.command(words), DONE)?;
        let said = format!("{}{}", done.stdout, done.stderr);
        ensure!(done.status.success(), "{words:?} ended with {}: {said}", done.status);
        let mut told: Value =
            serde_json::from_str(&done.stdout).context("the answer is no JSON")?;
        Ok(told["data"].take())
    }

    fn apply(&self, kind: &str, document: &Value) -> Result<()> {
        let file = self.data.join(format!("{kind}.json"));
        fs::write(&file, document.to_string())?;
        let done = process::capture(self.command(&[kind, "apply", "-f"]).arg(&file), DONE)?;
        ensure!(done.status.success(), "{kind}: {}{}", done.stdout, done.stderr);
        Ok(())
    }

    fn watch(&self, log: &Path) -> Result<Service> {
        let mut command = self.command(&["grants", "pending", "--watch", "--json"]);
        Service::start("narthex grants pending", &mut command, log)
    }

    /// The audit has the refusals, the request, the approval and the call of a run, in this order,
    /// and verifies.
    fn recorded(&self, run: &str) -> Result<()> {
        let told = self.data(&["audit", "list", "--run", run, "--json"])?;
        let items = told["items"].as_array().context("the audit lists nothing")?;
        let of_note = |item: &&Value| {
            let kind = item["kind"].as_str().unwrap_or_default();
            kind.starts_with("permission.") || item["tool"] == "write_file"
        };
        let word = |item: &Value, name: &str| item[name].as_str().unwrap_or("-").to_owned();
        // The newest is the first.
        let told: Vec<_> = items.iter().rev().filter(of_note).collect();
        let found: Vec<_> =
            told.iter().map(|item| [word(item, "kind"), word(item, "outcome")]).collect();
        let wanted = [
            ["session.mcp.tool_called", "permission_required"],
            ["permission.requested", "ok"],
            ["session.mcp.tool_called", "permission_required"],
            ["permission.granted", "ok"],
            ["permission.consumed", "ok"],
            ["session.mcp.tool_called", "ok"],
        ];
        ensure!(found == wanted, "{found:?} is recorded");
        let (grant, used) = (&told[3]["resource"]["id"], &told[5]["granted_via"]);
        ensure!(grant.is_string() && grant == used, "granted as {grant}, called by {used}");
        self.data(&["audit", "verify", "--json"])?;
        Ok(())
    }
}
