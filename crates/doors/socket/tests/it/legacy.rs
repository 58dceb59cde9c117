//! Clients that start with `initialize`.

use narthex_socket::SocketOptions;
use narthex_testkit::fixture::Eras;
use serde_json::{Value, json};

use crate::world::{World, cancelled, modern, request, text_of, tool};

/// D2: both kinds of socket, against servers of either era.
#[tokio::test]
async fn d2_both_endpoints_list_and_call() {
    for eras in [Eras::Legacy, Eras::Modern] {
        let world = World::new(eras, SocketOptions::default()).await;
        for (socket, name) in [("mcp.sock", "mcp__fix__echo"), ("fix.sock", "echo")] {
            let mut client = world.connect(socket).await;
            client.initialize("2025-06-18", json!({})).await;
            let list = client.ask(&request(1, "tools/list", json!({}))).await;
            let tools = list["result"]["tools"].as_array().unwrap();
            assert!(tools.iter().any(|tool| tool["name"] == name), "{socket}");
            let answer = client.ask(&tool(2, name, json!({"message": socket}))).await;
            assert_eq!(text_of(&answer), socket);
        }
    }
}

#[tokio::test]
async fn a_session_needs_its_handshake_once() {
    let world = World::new(Eras::Legacy, SocketOptions::default()).await;
    let mut client = world.connect("fix.sock").await;
    let early = client.ask(&request(1, "tools/list", json!({}))).await;
    assert_eq!(early["error"]["code"], -32600);
    let ping = client.ask(&request(2, "ping", json!({}))).await;
    assert_eq!(ping["result"], json!({}));
    client.initialize("2025-11-25", json!({})).await;
    assert_eq!(world.gateway.sessions_open(), 1);
    let again = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {}});
    assert_eq!(client.ask(&request(3, "initialize", again)).await["error"]["code"], -32600);
    drop(client);
    world.until(|world| world.gateway.sessions_open() == 0).await;
}

/// A client may send a modern request first, and initialize a session afterwards.
#[tokio::test]
async fn a_modern_request_does_not_prevent_a_later_handshake() {
    let world = World::new(Eras::Both, SocketOptions::default()).await;
    let mut client = world.connect("fix.sock").await;
    let found = client.ask(&modern(request(1, "server/discover", json!({})))).await;
    assert!(found["result"]["supportedVersions"].is_array(), "{found}");
    client.initialize("2025-11-25", json!({})).await;
    let answer = client.ask(&tool(2, "echo", json!({"message": "hi"}))).await;
    assert_eq!(text_of(&answer), "hi");
}

/// E84: a cancelled call gets no answer.
#[tokio::test]
async fn a_cancelled_call_gets_no_answer() {
    let world = World::new(Eras::Legacy, SocketOptions::default()).await;
    let mut client = world.connect("fix.sock").await;
    client.initialize("2025-11-25", json!({})).await;
    client.send(&tool(7, "sleep", json!({"ms": 600_000}))).await;
    world.until(|world| world.fixture.fixture.counts().calls == 1).await;
    client.send(&cancelled(7)).await;
    world.until(|world| world.fixture.fixture.counts().cancelled == 1).await;
    // The gateway may not have seen this call when its cancellation arrives.
    let (late, cancel) = (tool(8, "sleep", json!({"ms": 600_000})), cancelled(8));
    client.send_text(&format!("{late}\n{cancel}\n")).await;
    client.send(&tool(9, "echo", json!({"message": "on"}))).await;
    client.finish_sending().await;
    let answers = client.receive_all().await;
    assert_eq!(answers.iter().map(|answer| &answer["id"]).collect::<Vec<_>>(), [9]);
}

/// E84: if a client disconnects, its calls are cancelled.
#[tokio::test]
async fn a_client_that_disconnects_cancels_its_calls() {
    let world = World::new(Eras::Legacy, SocketOptions::default()).await;
    let mut client = world.connect("fix.sock").await;
    client.initialize("2025-11-25", json!({})).await;
    client.send(&tool(7, "sleep", json!({"ms": 600_000}))).await;
    world.until(|world| world.fixture.fixture.counts().calls == 1).await;
    drop(client);
    world.until(|world| world.fixture.fixture.counts().cancelled == 1).await;
    world.until(|world| world.gateway.sessions_open() == 0).await;
}

/// D12: questions and notifications of servers reach the client, and the client's answers reach the
/// servers.
#[tokio::test]
async fn servers_ask_and_notify() {
    let world = World::new(Eras::Legacy, SocketOptions::default()).await;
    let mut client = world.connect("fix.sock").await;
    client.initialize("2025-11-25", json!({"elicitation": {}})).await;
    client.send(&tool(1, "test_elicitation", json!({"message": "who?"}))).await;
    let question = client.receive().await;
    assert_eq!(question["method"], "elicitation/create", "{question}");
    let result = json!({"action": "accept", "content": {"username": "u", "email": "e@x.y"}});
    client.send(&json!({"jsonrpc": "2.0", "id": question["id"], "result": result})).await;
    let answer = client.receive().await;
    assert!(text_of(&answer).contains("accept"), "{answer}");

    client.send(&tool(2, "test_trigger_tool_change", json!({}))).await;
    let both = [client.receive().await, client.receive().await];
    let is_change = |message: &Value| message["method"] == "notifications/tools/list_changed";
    assert!(both.iter().any(is_change), "{both:?}");
    assert!(both.iter().any(|message| message["id"] == 2), "{both:?}");
}

/// E174, E178: questions of a server of 2026-07-28 reach a legacy client on its connection, at both
/// sockets and all at the same time. If the client cancels a call, the call's questions are
/// cancelled too.
#[tokio::test]
async fn e174_servers_of_the_other_era_ask() {
    let world = World::new(Eras::Modern, SocketOptions::default()).await;
    for (socket, prefix) in [("mcp.sock", "mcp__fix__"), ("fix.sock", "")] {
        let mut client = world.connect(socket).await;
        let can = json!({"elicitation": {}, "sampling": {}, "roots": {}});
        client.initialize("2025-11-25", can).await;
        let name = format!("{prefix}test_input_required_result_multiple_inputs");
        client.send(&tool(1, &name, json!({}))).await;
        let mut asked = Vec::new();
        for _ in 0..3 {
            asked.push(client.receive().await);
        }
        for question in &asked {
            let result = match question["method"].as_str().unwrap() {
                "roots/list" => json!({"roots": []}),
                "elicitation/create" => json!({"action": "accept", "content": {"name": "ada"}}),
                _ => json!({"role": "assistant", "model": "m",
                    "content": {"type": "text", "text": "hi"}}),
            };
            client.send(&json!({"jsonrpc": "2.0", "id": question["id"], "result": result})).await;
        }
        let answer = client.receive().await;
        assert!(text_of(&answer).starts_with("ada"), "{answer}");

        client.send(&tool(2, &name, json!({}))).await;
        let mut open = std::collections::HashSet::new();
        for _ in 0..3 {
            open.insert(client.receive().await["id"].as_u64());
        }
        client.send(&cancelled(2)).await;
        for _ in 0..3 {
            let taken_back = client.receive().await;
            assert_eq!(taken_back["method"], "notifications/cancelled", "{taken_back}");
            assert!(open.remove(&taken_back["params"]["requestId"].as_u64()), "{taken_back}");
        }
    }
}

#[tokio::test]
async fn batches_are_split_in_revisions_that_have_batches() {
    let world = World::new(Eras::Legacy, SocketOptions::default()).await;
    let batch = json!([
        tool(1, "echo", json!({"message": "one"})),
        {"jsonrpc": "2.0", "method": "notifications/vendor"},
        tool(2, "echo", json!({"message": "two"})),
    ]);
    let mut client = world.connect("fix.sock").await;
    client.initialize("2025-03-26", json!({})).await;
    client.send(&batch).await;
    let answers = [client.receive().await, client.receive().await];
    for (id, text) in [(1, "one"), (2, "two")] {
        let answer = answers.iter().find(|answer| answer["id"] == id).unwrap();
        assert_eq!(text_of(answer), text);
    }
    client.send_text("[]\n").await;
    assert_eq!(client.receive().await["error"]["code"], -32600);

    let mut client = world.connect("fix.sock").await;
    client.initialize("2025-06-18", json!({})).await;
    client.send(&batch).await;
    assert_eq!(client.receive().await["error"]["code"], -32600);
}
