//! Servers whose lists have faults. An odd definition harms no other definition, and a failing list
//! harms no other list.

use std::time::Duration;

use narthex_gateway::{Endpoint, GatewayOptions, Step};
use narthex_model::WarningKind;
use narthex_registry::config::Entry;
use narthex_testkit::peer::{Peer, Reply, error, result, text};
use serde_json::{Value, json};

use super::world::{World, http_server, modern, transparent};

async fn world(peer: &Peer) -> World {
    let fine = Peer::legacy(|seen| {
        let tools = json!([{"name": "fine", "inputSchema": {"type": "object"}}]);
        (seen.rpc() == "tools/list").then(|| result(seen, &json!({"tools": tools})))
    })
    .await;
    let entries = [("odd", peer), ("healthy", &fine)]
        .map(|(name, peer)| Entry::Server(http_server(name, &peer.url)));
    World::settled(entries.to_vec(), GatewayOptions::default()).await
}

fn warnings(world: &World) -> Vec<WarningKind> {
    let snapshot = world.gateway.registry().snapshot();
    snapshot.get("odd").unwrap().warnings().iter().map(|warning| warning.kind).collect()
}

fn named<'l>(list: &'l Value, name: &str) -> Option<&'l Value> {
    list["result"]["tools"].as_array().unwrap().iter().find(|tool| tool["name"] == name)
}

/// E81: the gateway repairs an odd definition in merged lists, where that changes nothing, or
/// leaves it out. At the server's own endpoint the definition is as it was written.
#[tokio::test]
async fn e81_an_odd_definition_is_repaired_or_left_out_of_merged_lists() {
    let odd = json!({"name": "odd", "description": null, "annotations": null, "inputSchema":
        {"type": "object", "required": null, "properties": {"any": true}}});
    let hopeless = json!({"name": "hopeless", "inputSchema": {"properties": "x"}});
    let tools = json!([odd, hopeless, {"name": "odd", "description": "again"}]);
    let listed = tools.clone();
    let peer = Peer::legacy(move |seen| {
        (seen.rpc() == "tools/list").then(|| result(seen, &json!({"tools": listed})))
    })
    .await;
    let world = world(&peer).await;
    for caller in world.both_callers(&Endpoint::Aggregated).await {
        let list = world.ask(&caller, "tools/list", json!({})).await;
        let repaired = named(&list, "mcp__odd__odd").unwrap();
        assert_eq!(repaired["inputSchema"], json!({"type": "object", "properties": {"any": {}}}));
        for member in ["description", "annotations"] {
            assert_eq!(repaired.get(member), None, "{repaired}");
        }
        assert!(named(&list, "mcp__healthy__fine").is_some());
        assert!(named(&list, "mcp__odd__hopeless").is_none());
        let call = json!({"name": "mcp__odd__hopeless", "arguments": {}});
        let refused = world.ask(&caller, "tools/call", call).await;
        let is_refused = !refused["error"].is_null() || refused["result"]["isError"] == true;
        assert!(is_refused, "what a list hides, a call denies: {refused}");
    }
    let caller = world.legacy_caller(transparent("odd")).await;
    assert_eq!(world.ask(&caller, "tools/list", json!({})).await["result"]["tools"], tools);
    let wanted =
        [WarningKind::ListedTwice, WarningKind::DefinitionRepaired, WarningKind::DefinitionLeftOut];
    assert_eq!(warnings(&world), wanted);
    let snapshot = world.gateway.registry().snapshot();
    assert_eq!(snapshot.get("odd").unwrap().changed, 0, "no definition has changed");
}

/// E73: a server whose resources cannot be listed keeps its tools, and its row reports it.
#[tokio::test]
async fn e73_tools_stay_where_another_list_fails() {
    let peer = Peer::legacy(|seen| match seen.rpc() {
        "initialize" => Some(result(
            seen,
            &json!({"protocolVersion": "2025-11-25", "serverInfo": {"name": "x", "version": "1"},
                "capabilities": {"tools": {}, "resources": {}}}),
        )),
        "resources/list" => Some(error(200, seen, -32603)),
        "resources/templates/list" => Some(result(seen, &json!({"resourceTemplates": []}))),
        "tools/list" => Some(result(seen, &json!({"tools": [{"name": "a"}]}))),
        _ => None,
    })
    .await;
    let world = world(&peer).await;
    let caller = world.legacy_caller(Endpoint::Aggregated).await;
    let list = world.ask(&caller, "tools/list", json!({})).await;
    assert!(named(&list, "mcp__odd__a").is_some(), "{list}");
    let call = json!({"name": "mcp__odd__a", "arguments": {}});
    let answer = world.ask(&caller, "tools/call", call).await;
    assert_eq!(answer["result"]["content"], json!([]), "{answer}");
    assert_eq!(warnings(&world), [WarningKind::ListFailed]);
}

/// E73: while a server cannot list its tools, a call of such a tool is refused with that cause. A
/// model reads no words of the server in it. Other lists stay.
#[tokio::test]
async fn e73_a_refused_call_states_that_the_servers_tools_cannot_be_listed() {
    let peer = Peer::legacy(|seen| match seen.rpc() {
        "initialize" => Some(result(
            seen,
            &json!({"protocolVersion": "2025-11-25", "serverInfo": {"name": "x", "version": "1"},
                "capabilities": {"tools": {}, "prompts": {}}}),
        )),
        "tools/list" => Some(error(200, seen, -32603)),
        "prompts/list" => Some(result(seen, &json!({"prompts": [{"name": "p"}]}))),
        _ => None,
    })
    .await;
    let world = world(&peer).await;
    assert_eq!(warnings(&world), [WarningKind::ListFailed]);
    for (endpoint, name) in [(transparent("odd"), "a"), (Endpoint::Aggregated, "mcp__odd__a")] {
        for caller in world.both_callers(&endpoint).await {
            let call = json!({"name": name, "arguments": {}});
            let answer = world.ask(&caller, "tools/call", call).await;
            let error = &answer["result"]["structuredContent"]["error"];
            assert_eq!(error["kind"], "tool_not_found", "{answer}");
            let expected =
                format!("there is no tool `{name}`: the tools of server `odd` cannot be listed");
            assert_eq!(error["message"], expected);
        }
    }
    let caller = world.legacy_caller(Endpoint::Aggregated).await;
    let answer = world.ask(&caller, "tools/call", json!({"name": "mcp__healthy__a"})).await;
    let message = &answer["result"]["structuredContent"]["error"]["message"];
    assert_eq!(message, "there is no tool `mcp__healthy__a`");
}

/// E48: the details of a failure state when a busy server takes calls again. A header of an error
/// that is no result states it, too.
#[tokio::test]
async fn e48_the_error_of_a_busy_server_states_when_to_retry() {
    let peer = Peer::legacy(|seen| {
        let status = match seen.rpc() {
            "tools/list" => return Some(result(seen, &json!({"tools": [{"name": "a"}]}))),
            "tools/call" => 429,
            "resources/read" => 503,
            _ => return None,
        };
        let body = json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32000, "message": "m"}});
        let mut reply = text(status, "application/json", body.to_string());
        if let Reply::Now(response) = &mut reply {
            response.headers_mut().insert("retry-after", "7".parse().unwrap());
        }
        Some(reply)
    })
    .await;
    let world = world(&peer).await;
    let caller = world.modern_caller(transparent("odd"));
    let details = |status: u16| json!({"status": status, "retry_after_ms": 7000, "code": -32000});
    let answer = world.ask(&caller, "tools/call", json!({"name": "a", "arguments": {}})).await;
    let error = &answer["result"]["structuredContent"]["error"];
    assert_eq!((&error["kind"], &error["details"]), (&json!("limit_exceeded"), &details(429)));
    let read = modern(1, "resources/read", json!({"uri": "a:b"}));
    let mut answering = world.gateway.call(&caller, read).await;
    let Some(Step::Answer(answer)) = answering.next().await else { panic!("no answer") };
    assert_eq!(answer.retry_after, Some(Duration::from_secs(7)));
    let answer: Value = serde_json::from_slice(&answer.payload.into_bytes()).unwrap();
    assert_eq!(answer["error"]["data"]["details"], details(503), "{answer}");
}
