//! The server that every run has without attaching it (X-M1).

use hyper::StatusCode;
use serde_json::{Value, json};

use super::HOME;
use crate::{
    runs::{Operator, RUNS},
    world::{World, call, initialize, legacy, modern},
};

/// The lists, with the member of each.
const LISTS: [(&str, &str); 4] = [
    ("tools/list", "tools"),
    ("prompts/list", "prompts"),
    ("resources/list", "resources"),
    ("resources/templates/list", "resourceTemplates"),
];

/// Checks that a list of tools has the built-in server's `tool`. Other lists must be empty.
fn has_own(result: &Value, member: &str, tool: Option<&str>) {
    let listed = result[member].as_array().unwrap_or_else(|| panic!("{result}"));
    let tool = tool.filter(|_| member == "tools");
    let has = listed.iter().any(|one| Some(one["name"].as_str().unwrap()) == tool);
    assert_eq!((has, listed.is_empty()), (tool.is_some(), tool.is_none()), "{result}");
}

/// Checks that the built-in server answers here, by the rules of both eras, and has this tool, or
/// none.
pub(super) async fn is_there(world: &World, alias: &str, token: &str, tool: Option<&str>) {
    let path = format!("/mcp/{alias}");
    let mut client = world.client_as(&path, token);
    let found = client.modern(&modern(1, "server/discover", json!({}))).await.json();
    let info = &found["result"]["_meta"]["io.modelcontextprotocol/serverInfo"];
    assert_eq!(info["name"], "narthex", "{found}");
    let has = json!({ "tools": { "listChanged": true } });
    assert_eq!(found["result"]["capabilities"], has, "{found}");
    for (number, (method, member)) in (2..).zip(LISTS) {
        let reply = client.modern(&modern(number, method, json!({}))).await;
        has_own(&reply.json()["result"], member, tool);
    }
    let reply = client.modern(&modern(9, "tools/call", call("spawn", json!({})))).await;
    assert_eq!(reply.kind(), "tool_not_found", "{reply:?}");
    let wrong = modern(10, "vendor/other", json!({}));
    assert_eq!(client.modern(&wrong).await.code(), Some(-32601));

    let mut client = world.client_as(&path, token);
    let reply = client.post(&[], initialize(json!({ "sampling": {} })).to_string()).await;
    let said = reply.json();
    assert_eq!(said["result"]["serverInfo"]["name"], "narthex", "{said}");
    assert_eq!(said["result"]["capabilities"], has, "{said}");
    client.session = Some(reply.headers["mcp-session-id"].to_str().unwrap().to_owned());
    let reply = client.post(&[], legacy(1, "ping", json!({})).to_string()).await;
    assert_eq!(reply.json()["result"], json!({}), "{reply:?}");
    for (number, (method, member)) in (2..).zip(LISTS) {
        let reply = client.post(&[], legacy(number, method, json!({})).to_string()).await;
        has_own(&reply.json()["result"], member, tool);
    }
    let reply = client.post(&[], legacy(9, "tools/call", call("x", json!({}))).to_string()).await;
    assert_eq!(reply.kind(), "tool_not_found", "{reply:?}");
    client.end_session().await;
}

/// X-M1, X-M6, X-E29, A-7: every run has the built-in server besides its own: a run of an agent, a
/// run with servers of its own, and the process's run; also over a socket. Aggregated endpoints
/// have its tools, except for the process's run, which shows only the configured servers.
#[tokio::test(flavor = "multi_thread")]
async fn x_m1_every_run_has_the_built_in_server() {
    let world = World::operated(&json!({})).await;
    let operator = Operator(&world);
    operator.put("agents/empty", &json!({ "name": "empty" })).await;
    let of_agent = operator.begin(&json!({ "agent_name": "empty" })).await;
    let url = format!("http://{}/mcp/narthex", world.address);
    assert_eq!(of_agent["endpoints"]["servers"], json!({ "narthex": url }));
    assert_eq!(of_agent["mcpServersByAlias"]["narthex"]["url"], json!(url));
    let own = operator.begin(&json!({ "servers": { "mine": super::plain() } })).await;
    for begun in [&of_agent, &own] {
        let token = begun["token"].as_str().unwrap();
        is_there(&world, "narthex", token, Some("end_session")).await;
        let mut all = world.client_as("/mcp", token);
        let listed = all.modern(&modern(1, "tools/list", json!({}))).await.json().to_string();
        assert!(listed.contains("mcp__narthex__request_grant"), "{listed}");
    }
    let mut plain = world.client("/mcp");
    let listed = plain.modern(&modern(1, "tools/list", json!({}))).await.json().to_string();
    assert!(!listed.contains("mcp__narthex"), "{listed}");
    is_there(&world, "narthex", &world.token, None).await;
    let mut socket = world.socket("narthex").await;
    let answer = socket.ask(&modern(1, "tools/list", json!({}))).await;
    has_own(&answer["result"], "tools", None);
    // A stream of changes is open, though nothing changes.
    let listen = json!({ "notifications": { "toolsListChanged": true } });
    socket.send(&modern(2, "subscriptions/listen", listen).to_string()).await;
    let told: Value = serde_json::from_str(&socket.next().await).unwrap();
    assert_eq!(told["method"], "notifications/subscriptions/acknowledged", "{told}");
}

/// X-M1: no server may take its alias: such a server is refused when it is saved, with a remedy.
#[tokio::test(flavor = "multi_thread")]
async fn x_m1_the_alias_of_the_built_in_server_is_reserved() {
    let world = World::operated(&json!({})).await;
    let operator = Operator(&world);
    operator.put("mcp-servers/docs", &json!({ "id": "docs", "url": "https://docs.test/" })).await;
    operator.put("agents/reader", &json!({ "name": "reader" })).await;
    let attached = json!({ "mcpServers": { "narthex": { "ref": "docs" } } });
    let bodies = [
        ("agents/other", attached.clone()),
        ("capabilities/other", attached),
        ("agents/reader/mcp-attachments", json!({ "name": "docs", "alias": "narthex" })),
    ];
    for (path, body) in bodies {
        let reply = operator.ask("PUT", &format!("{HOME}/{path}"), &body.to_string()).await;
        assert_eq!(reply.status, StatusCode::UNPROCESSABLE_ENTITY, "{path} {reply:?}");
        let text = String::from_utf8(reply.body.to_vec()).unwrap();
        assert!(text.contains("the built-in server") && text.contains("another"), "{text}");
    }
    let own = json!({ "servers": { "narthex": super::plain() } });
    let reply = operator.ask("POST", RUNS, &own.to_string()).await;
    assert_eq!(reply.status, StatusCode::BAD_REQUEST, "{reply:?}");
    assert!(String::from_utf8(reply.body.to_vec()).unwrap().contains("narthex-2"));
    operator.has_none().await;
}
