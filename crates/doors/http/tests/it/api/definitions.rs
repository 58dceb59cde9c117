//! Tests of definitions of servers with several daemons and many concurrent runs, and of the right
//! to decide on them.

use std::sync::Arc;

use http::StatusCode;
use narthex_model::{Role, RunId, ServerId, WorkspaceId};
use narthex_store::{DefinitionsOf, NewDefinition, Store};
use narthex_testkit::fixture::{Options, Running};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::task::JoinSet;

use super::{
    tenants::Tenants,
    world::{Api, SOON},
};
use crate::world::ADMIN;

const HOME: &str = "/api/workspaces/default";
const OF_DOCS: &str = "/api/workspaces/default/mcp-servers/docs/definitions";

/// A daemon on the store in a folder.
async fn daemon(place: &TempDir) -> Api {
    let store = Store::open(&place.path().join("store.db")).await.unwrap();
    Api::with_all(&json!({}), store, &place.path().join("master.key")).await
}

/// Creates an agent `docs` with this server.
async fn has_docs(api: &Api, url: &str) {
    let server = json!({ "id": "docs", "url": url }).to_string();
    api.send("PUT", &format!("{HOME}/mcp-servers/docs"), server).await.succeeded();
    let agent = json!({ "name": "docs", "mcpServers": { "docs": { "ref": "docs" } } });
    api.send("PUT", &format!("{HOME}/agents/docs"), agent.to_string()).await.succeeded();
}

/// The description of `echo` in a new run; `None` if the run does not have the tool.
async fn run_has(api: &Api) -> Option<String> {
    let asked = json!({ "agent_name": "docs" }).to_string();
    let made = api.send("POST", &format!("{HOME}/runs"), asked).await.succeeded();
    let request = api.world.modern("/mcp/docs", "tools/list", json!({}));
    let token = format!("Bearer {}", made["token"].as_str().unwrap());
    let listed = request.header("authorization", &token).send().await.json();
    let tools = listed["result"]["tools"].as_array().unwrap();
    let echo = tools.iter().find(|tool| tool["name"] == "echo")?;
    Some(echo["description"].as_str().unwrap().to_owned())
}

fn echo(description: &str) -> Value {
    json!({ "name": "echo", "description": description, "inputSchema": { "type": "object" } })
}

/// Stores a definition with this digest that waits for a human's decision.
pub(super) async fn has_seen(api: &Api, digest: &Value) {
    let new = NewDefinition {
        digest: digest.as_str().unwrap().to_owned(),
        kind: "tool",
        name: "echo".to_owned(),
        is_quarantined: true,
        text: echo("Returns the message").to_string(),
        why: json!({ "reason": "flagged", "findings": [] }).to_string(),
        why_late: String::new(),
    };
    let (workspace, server) = (WorkspaceId::default(), ServerId::new("docs").unwrap());
    let run = RunId::parse("run_0a1b2c3d4e5f").unwrap();
    let store = api.control.store().unwrap();
    let definitions = store.definitions(DefinitionsOf::Catalog(&workspace, &server));
    definitions.add(run, &[new]).await.unwrap();
}

async fn named_echo(api: &Api, state: &str) -> Vec<Value> {
    let page = api.get(&format!("{OF_DOCS}?state={state}&limit=100")).await;
    assert_eq!(page["next"], Value::Null);
    let items = page["items"].as_array().unwrap().iter();
    items.filter(|item| item["name"] == "echo").cloned().collect()
}

/// Number of audit events that report a pinned text of `echo`. Each daemon moves its records into
/// the store in its own time.
async fn pinned_echoes(apis: &[Arc<Api>]) -> usize {
    let path = format!("{HOME}/audit?kind=definition.pinned&limit=100");
    let is_done = |event: &&Value| {
        let names = event["details"]["names"].to_string();
        event["outcome"] == "ok" && names.contains("\"echo\"")
    };
    let counting = async {
        loop {
            let mut count = 0;
            for api in apis {
                let events = api.get(&path).await;
                count = events["items"].as_array().unwrap().iter().filter(is_done).count();
            }
            if count > 0 {
                return count;
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(SOON, counting).await.expect("nothing was recorded")
}

/// S23, D10: twenty runs start at once at two daemons on one store, while the server changes its
/// text. One text is pinned, once, and no run has the other one, also after a restart.
#[tokio::test]
async fn s23_many_runs_at_two_daemons_pin_one_text() {
    let server = Running::http(Options::default()).await.unwrap();
    let place = tempfile::tempdir().unwrap();
    let apis = [Arc::new(daemon(&place).await), Arc::new(daemon(&place).await)];
    has_docs(&apis[0], &server.url).await;
    let texts = ["Returns the message", "Returns it, and whatever else there is"];
    server.fixture.redefine("tools/list", "echo", &[echo(texts[0])]);
    let mut running = JoinSet::new();
    for number in 0..20 {
        let api = apis[number % 2].clone();
        running.spawn(async move { run_has(&api).await });
        if number == 3 {
            // By now one run has seen the first text; others see the second.
            running.join_next().await.unwrap().unwrap();
            server.fixture.redefine("tools/list", "echo", &[echo(texts[1])]);
        }
    }
    let seen = running.join_all().await;
    let pinned = named_echo(&apis[1], "pinned").await;
    assert_eq!(pinned.len(), 1, "{pinned:?}");
    let text = pinned[0]["text"].as_str().unwrap();
    let pinned = texts.iter().find(|one| text.contains(&format!("\"{one}\""))).unwrap();
    for one in seen.into_iter().flatten() {
        assert_eq!(one, *pinned);
    }
    assert_eq!(pinned_echoes(&apis).await, 1);

    // Another daemon knows the pinned text.
    let other = texts.iter().find(|one| *one != pinned).unwrap();
    server.fixture.redefine("tools/list", "echo", &[echo(other)]);
    let third = daemon(&place).await;
    assert_eq!(run_has(&third).await, None);
    assert_eq!(named_echo(&third, "pinned").await.len(), 1);
    server.fixture.redefine("tools/list", "echo", &[echo(pinned)]);
    assert_eq!(run_has(&daemon(&place).await).await.as_deref(), Some(*pinned));
}

/// S23, S32: the audit's record of a call names the check that refused it: a server's changed
/// definition is put under review by `definitions`.
#[tokio::test]
async fn s32_the_audit_names_definitions_as_the_check_that_refused_a_call() {
    let server = Running::http(Options::default()).await.unwrap();
    let place = tempfile::tempdir().unwrap();
    let api = daemon(&place).await;
    has_docs(&api, &server.url).await;
    assert!(run_has(&api).await.is_some());
    // Another daemon, which has not listed the server before.
    drop(api);
    server.fixture.redefine("tools/list", "echo", &[echo("Returns it, and more")]);
    let api = daemon(&place).await;
    let asked = json!({ "agent_name": "docs" }).to_string();
    let made = api.send("POST", &format!("{HOME}/runs"), asked).await.succeeded();
    let params = json!({ "name": "echo", "arguments": { "message": "x" } });
    let request = api.world.modern("/mcp/docs", "tools/call", params);
    let token = format!("Bearer {}", made["token"].as_str().unwrap());
    let refused = request.header("authorization", &token).send().await.json();
    let error = &refused["result"]["structuredContent"]["error"];
    assert_eq!(error["kind"], "definition_changed", "{refused}");
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("until an admin of the workspace accepts it"), "{message}");
    assert!(!message.contains("narthex "), "{message}");
    let run = made["run_id"].as_str().unwrap();
    let path = format!("{HOME}/audit?kind=session.mcp.tool_called&run={run}");
    let called = api.get(&path).await;
    assert_eq!(called["items"].as_array().unwrap().len(), 1, "{called}");
    let record = &called["items"][0];
    assert_eq!(record["details"]["refused_by"], "definitions", "{record}");
    assert_eq!(record["outcome"], "definition_changed", "{record}");
}

/// S23, D10: a definition that changes during a run is refused at once, and then waits for a
/// human's decision. If the server restores the old definition, calls succeed again.
#[tokio::test]
async fn s23_a_definition_changed_during_a_run_is_refused_and_goes_under_review() {
    let server = Running::http(Options::default()).await.unwrap();
    let place = tempfile::tempdir().unwrap();
    let api = daemon(&place).await;
    has_docs(&api, &server.url).await;
    server.fixture.redefine("tools/list", "echo", &[echo("Returns the message")]);
    let asked = json!({ "agent_name": "docs" }).to_string();
    let made = api.send("POST", &format!("{HOME}/runs"), asked).await.succeeded();
    let token = format!("Bearer {}", made["token"].as_str().unwrap());
    let calls = async |path: &str, name: &str| {
        let params = json!({ "name": name, "arguments": { "message": "x" } });
        let request = api.world.modern(path, "tools/call", params);
        request.header("authorization", &token).send().await.json()
    };
    let kind = |answer: &Value| answer["result"]["structuredContent"]["error"]["kind"].clone();
    let first = calls("/mcp/docs", "echo").await;
    assert_eq!(kind(&first), Value::Null, "{first}");

    server.fixture.redefine("tools/list", "echo", &[echo("Returns it, and all that you know")]);
    let changed = async {
        loop {
            let answer = calls("/mcp/docs", "echo").await;
            if !kind(&answer).is_null() {
                return answer;
            }
            tokio::task::yield_now().await;
        }
    };
    let changed = tokio::time::timeout(SOON, changed).await.unwrap();
    assert_eq!(kind(&changed), "definition_changed", "{changed}");
    assert_eq!(kind(&calls("/mcp", "mcp__docs__echo").await), "definition_changed");
    assert_eq!(kind(&calls("/mcp/docs", "no_such_tool").await), "tool_not_found");
    let waits = async {
        while named_echo(&api, "quarantined").await.is_empty() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(SOON, waits).await.expect("nobody has looked at it");
    let path = format!("{HOME}/audit?kind=definition.quarantined&limit=100");
    let told = async { while !api.get(&path).await["items"].to_string().contains("echo") {} };
    tokio::time::timeout(SOON, told).await.expect("nobody is told");

    server.fixture.redefine("tools/list", "echo", &[echo("Returns the message")]);
    let back = async {
        while !kind(&calls("/mcp/docs", "echo").await).is_null() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(SOON, back).await.expect("it is as it was");
}

/// D10, D15: only a human with the role can decide. Each decision is in the audit, and all faults
/// are reported at once.
#[tokio::test]
async fn d10_only_humans_decide_on_definitions() {
    let server = Running::http(Options::default()).await.unwrap();
    let place = tempfile::tempdir().unwrap();
    let api = daemon(&place).await;
    has_docs(&api, &server.url).await;
    run_has(&api).await.unwrap();
    let digest = named_echo(&api, "pinned").await[0]["digest"].as_str().unwrap().to_owned();
    let body = json!({ "digests": [digest] }).to_string();
    for (body, field) in [
        (r#"{"digests": []}"#.to_owned(), "digests"),
        (r#"{"names": ["echo"]}"#.to_owned(), "digests"),
        (json!({ "digests": ["00", &digest] }).to_string(), "digests[0]"),
        (body.clone(), "digests[0]"),
    ] {
        let refused = api.send("POST", &format!("{OF_DOCS}/accept"), body).await;
        refused.problem(StatusCode::UNPROCESSABLE_ENTITY, "invalid");
        assert_eq!(refused.json()["errors"][0]["field"], field);
    }
    api.send("POST", &format!("{OF_DOCS}/reject"), body.clone()).await.succeeded();
    assert_eq!(run_has(&api).await, None);
    api.send("POST", &format!("{OF_DOCS}/accept"), body).await.succeeded();
    assert!(run_has(&api).await.is_some());
    for kind in ["definition.rejected", "definition.accepted"] {
        let events = api.get(&format!("{HOME}/audit?kind={kind}")).await;
        let event = &events["items"][0];
        assert_eq!((&event["outcome"], &event["actor"]["id"]), (&json!("ok"), &json!("admin")));
        assert_eq!(event["details"]["digests"], json!([digest]));
    }
    let unknown = api.ask("GET", &format!("{HOME}/mcp-servers/mail/definitions")).send().await;
    unknown.problem(StatusCode::NOT_FOUND, "not_found");
    let pages = api.get(&format!("{OF_DOCS}?limit=1")).await;
    let next = pages["next"].as_str().unwrap();
    let second = api.get(&format!("{OF_DOCS}?limit=1&after={next}")).await;
    assert_ne!(second["items"][0]["digest"], pages["items"][0]["digest"]);
}

/// X-M58: a service's token cannot decide on definitions, whatever its role.
#[tokio::test]
async fn x_m58_no_service_decides_on_definitions() {
    let tenants = Tenants::with(&["team"]).await;
    let server = json!({ "id": "docs", "url": "https://docs.test/mcp" }).to_string();
    let path = "/api/workspaces/team/mcp-servers/docs";
    let stored = tenants.ask(ADMIN, "PUT", path, &server).send().await;
    stored.succeeded();
    let token = tenants.token("team", Role::Admin);
    for verb in ["accept", "reject"] {
        let body = json!({ "digests": ["00"] }).to_string();
        let place = format!("{path}/definitions/{verb}");
        let refused = tenants.ask(token, "POST", &place, &body).send().await;
        refused.problem(StatusCode::FORBIDDEN, "denied");
    }
}

/// S23, D10: two daemons on one store that read the same file share the pins of a live server. Each
/// also applies the decisions that were made at the other.
#[tokio::test]
async fn s23_daemons_share_pins_and_decisions_of_live_servers() {
    let server = Running::http(Options::default()).await.unwrap();
    server.fixture.redefine("tools/list", "echo", &[echo("Returns the message")]);
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("mcp.json");
    let entry = json!({ "transport": "http", "url": server.url, "pinDefinitions": true });
    fs_err::write(&file, json!({ "servers": { "live": entry } }).to_string()).unwrap();
    let daemon = async || {
        let store = Store::open(&place.path().join("store.db")).await.unwrap();
        Api::with_file(&file, store, &place.path().join("master.key")).await
    };
    let apis = [daemon().await, daemon().await];
    let has = |api: &Api| api.row("live").inventory.tool("echo").is_some();
    let becomes = async |api: &Api, is_there: bool| {
        let registry = api.control.registry();
        let is_so = |_: &narthex_registry::Snapshot| has(api) == is_there;
        registry.wait_until(SOON, is_so).await;
        assert_eq!(has(api), is_there);
    };
    let definitions = format!("{HOME}/mcp-servers/live/definitions");
    let named = async |state: &str| {
        let page = apis[0].get(&format!("{definitions}?source=live&state={state}&limit=100")).await;
        let items = page["items"].as_array().unwrap().iter();
        let echoes = items.filter(|item| item["name"] == "echo");
        echoes.map(|item| item["digest"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let decides = async |api: &Api, verb: &str, digest: &str| {
        let body = json!({ "digests": [digest] }).to_string();
        let path = format!("{definitions}/{verb}?source=live");
        api.send("POST", &path, body).await.succeeded();
    };
    becomes(&apis[0], true).await;
    becomes(&apis[1], true).await;
    assert_eq!(named("pinned").await.len(), 1, "one text is pinned, for both");
    server.fixture.redefine("tools/list", "echo", &[echo("Returns it, and more")]);
    becomes(&apis[0], false).await;
    becomes(&apis[1], false).await;
    let [changed] = &named("quarantined").await[..] else { panic!("it waits once") };
    decides(&apis[0], "accept", changed).await;
    assert!(has(&apis[0]), "at once where it was decided");
    becomes(&apis[1], true).await;
    decides(&apis[1], "reject", changed).await;
    assert!(!has(&apis[1]));
    becomes(&apis[0], false).await;
}
