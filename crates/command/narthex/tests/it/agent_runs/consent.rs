//! Servers that a person has to sign in to, in runs in which no person has (D17).

use hyper::StatusCode;
use narthex_testkit::authorization::{AuthorizationFixture, Endpoint, Settings};
use serde_json::{Value, json};

use super::{HOME, noting_server, request};
use crate::{
    runs::{Operator, RUNS},
    world::{Reply, World, call, initialize, legacy, modern},
};

/// Puts the reader, whose server is a program, and a server with OAuth into the catalog.
async fn has_both(operator: &Operator<'_>, linear: &AuthorizationFixture) -> Value {
    operator.put("secrets/LIBRARY_TOKEN", &json!({ "value": "s" })).await;
    operator.put("mcp-servers/notes", &noting_server(operator.0)).await;
    operator.put("mcp-servers/linear", &entry(linear)).await;
    let mut reader = super::reader();
    reader["mcpServers"]["linear"] = json!({ "ref": "linear" });
    operator.put("agents/reader", &reader).await;
    reader
}

fn entry(linear: &AuthorizationFixture) -> Value {
    json!({ "id": "linear", "kind": "remote_oauth", "url": linear.url })
}

fn fixture() -> AuthorizationFixture {
    AuthorizationFixture::start(Settings::default())
}

/// No call has reached the server, and nothing has a token for it.
fn has_no_tokens(linear: &AuthorizationFixture) {
    assert_eq!(linear.counts().codes, 0);
    assert!(linear.asked_of(Endpoint::Mcp).iter().all(|asked| asked.bearer().is_none()));
}

async fn calls(world: &World, token: &str, path: &str, name: &str) -> Reply {
    let mut client = world.client_as(path, token);
    client.modern(&modern(1, "tools/call", call(name, json!({ "message": "x" })))).await
}

/// The answer to a run whose server waits: everywhere the same, and nothing reaches the server.
async fn waits(world: &World, linear: &AuthorizationFixture, token: &str) {
    for (path, name) in [("/mcp/linear", "echo"), ("/mcp", "mcp__linear__echo")] {
        let reply = calls(world, token, path, name).await;
        assert_eq!(reply.kind(), "auth_unavailable", "{reply:?}");
        assert!(reply.json().to_string().contains("sign in"), "{reply:?}");
    }
    // Sessions cannot be opened there, and say why.
    let mut session = world.client_as("/mcp/linear", token);
    let reply = session.post(&[], initialize(json!({})).to_string()).await.json();
    assert_eq!(reply["error"]["data"]["kind"], "auth_unavailable", "{reply}");
    // The aggregated endpoint has all others, and informs a model of this one.
    let mut client = world.client_as("/mcp", token);
    let listed = client.modern(&modern(1, "tools/list", json!({}))).await.json().to_string();
    assert!(listed.contains("mcp__library__echo") && !listed.contains("mcp__linear"), "{listed}");
    let discovered = client.modern(&modern(1, "server/discover", json!({}))).await.json();
    let reply = client.post(&[], initialize(json!({})).to_string()).await;
    for result in [&discovered["result"], &reply.json()["result"]] {
        let text = result["instructions"].as_str().unwrap();
        assert!(text.contains("# linear\n\nIts tools are not available"), "{text}");
    }
    client.session = Some(reply.headers["mcp-session-id"].to_str().unwrap().to_owned());
    let asked = legacy(2, "tools/call", call("mcp__linear__echo", json!({})));
    assert_eq!(client.post(&[], asked.to_string()).await.kind(), "auth_unavailable");
    let works = calls(world, token, "/mcp", "mcp__library__echo").await;
    assert_eq!(works.json()["result"]["content"][0]["text"], "x", "{works:?}");
    has_no_tokens(linear);
}

fn linear_of(run: &Value) -> &Value {
    let all = run["servers"].as_array().unwrap();
    all.iter().find(|server| server["alias"] == "linear").unwrap_or_else(|| panic!("{run}"))
}

/// D17, X-M13, A-4: a run begins although its user has not signed in. The server is
/// `authenticating`, its calls name the remedy, and all else works; also after a restart. Switching
/// the server off ends its use at once.
#[tokio::test(flavor = "multi_thread")]
async fn d17_a_missing_consent_does_not_abort_a_run() {
    let (world, linear) = (World::operated(&json!({})).await, fixture());
    let operator = Operator(&world);
    has_both(&operator, &linear).await;
    let begun = operator.begin(&request()).await;
    let (id, token) = (begun["run_id"].as_str().unwrap(), begun["token"].as_str().unwrap());
    let shown = operator.get(&format!("{RUNS}/{id}")).await;
    for run in [&begun, &shown] {
        let row = linear_of(run);
        assert_eq!(
            (&row["state"], &row["auth"]),
            (&json!("authenticating"), &json!("authorizationCode"))
        );
        assert_eq!(row["error"]["kind"], "auth_unavailable", "{row}");
    }
    let base = format!("http://{}/mcp", world.address);
    assert_eq!(begun["endpoints"]["servers"]["linear"], format!("{base}/linear"));
    let rows = world.client_as("/api/servers/linear", token).whole("GET", &[], "").await;
    assert_eq!(rows.json()["state"], "authenticating", "{rows:?}");
    let connections = format!("{HOME}/agents/reader/mcp-attachments/connection-status");
    assert_eq!(operator.get(&connections).await["items"][0]["connected"], false);
    waits(&world, &linear, token).await;

    let world = World::operated_in(world.stop().await).await;
    waits(&world, &linear, token).await;
    let operator = Operator(&world);
    assert_eq!(linear_of(&operator.get(&format!("{RUNS}/{id}")).await)["state"], "authenticating");
    let mut off = entry(&linear);
    off["disabled"] = json!(true);
    operator.put("mcp-servers/linear", &off).await;
    for (path, name) in [("/mcp/linear", "echo"), ("/mcp", "mcp__linear__echo")] {
        assert_eq!(calls(&world, token, path, name).await.kind(), "server_disabled");
    }
}

/// X-E122, X-E31: a run without a person begins. The server to which each person signs in reports
/// what it needs, at every door, and unchanged after a restart. With `on`, the server waits for a
/// sign-in, as it does for workers; with `off`, no run is created.
#[tokio::test(flavor = "multi_thread")]
async fn x_e122_without_a_person_permission_is_required() {
    let (world, linear) = (World::operated(&json!({})).await, fixture());
    let operator = Operator(&world);
    let mut lead = has_both(&operator, &linear).await;
    allows(&operator, "on_attended").await;
    lead["agent_type"] = json!("orchestrator");
    operator.put("agents/reader", &lead).await;
    // An operator would be the person who drives it.
    let service = operator.service("runner").await;
    let begun = operator.begin_as(&service, &request()).await;
    let (id, token) = (begun["run_id"].as_str().unwrap(), begun["token"].as_str().unwrap());
    is_refused(&world, &linear, token).await;
    for run in [&begun, &operator.get(&format!("{RUNS}/{id}")).await] {
        let row = linear_of(run);
        assert_eq!((&row["state"], &row["error"]["kind"]), (&json!("error"), &json!(REQUIRED)));
    }
    allows(&operator, "on").await;
    let waiting = operator.begin_as(&service, &request()).await;
    waits(&world, &linear, waiting["token"].as_str().unwrap()).await;
    allows(&operator, "off").await;
    let body = request().to_string();
    let refused = operator.refused(&body, StatusCode::BAD_REQUEST, "invalid").await;
    assert_eq!(refused["code"], "oauth_not_allowed", "{refused}");
    assert_eq!(refused["errors"][0]["path"], "agents.reader.mcpServers.linear.ref", "{refused}");

    let world = World::operated_in(world.stop().await).await;
    is_refused(&world, &linear, token).await;
    waits(&world, &linear, waiting["token"].as_str().unwrap()).await;
}

const REQUIRED: &str = "permission_required";

async fn allows(operator: &Operator<'_>, when: &str) {
    let body = json!({ "oauth_on_orchestrators": when }).to_string();
    let reply = operator.ask("PATCH", HOME, &body).await;
    assert_eq!(reply.json()["oauth_on_orchestrators"], when, "{reply:?}");
}

async fn is_refused(world: &World, linear: &AuthorizationFixture, token: &str) {
    for (path, name) in [("/mcp/linear", "echo"), ("/mcp", "mcp__linear__echo")] {
        let reply = calls(world, token, path, name).await;
        assert_eq!(reply.kind(), REQUIRED, "{reply:?}");
        let text = reply.json().to_string();
        assert!(text.contains("a person must create the run"), "{text}");
        assert!(text.contains("`oauth_on_orchestrators`"), "{text}");
    }
    let mut client = world.client_as("/mcp", token);
    let discovered = client.modern(&modern(1, "server/discover", json!({}))).await.json();
    let text = discovered["result"]["instructions"].as_str().unwrap();
    assert!(text.contains("# linear\n\nIts tools are not available"), "{text}");
    let works = calls(world, token, "/mcp", "mcp__library__echo").await;
    assert_eq!(works.json()["result"]["content"][0]["text"], "x", "{works:?}");
    has_no_tokens(linear);
}
