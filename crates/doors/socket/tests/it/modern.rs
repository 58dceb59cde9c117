//! Clients whose requests use no session.

use narthex_socket::SocketOptions;
use narthex_testkit::fixture::Eras;
use serde_json::json;

use crate::world::{World, cancelled, modern, request, text_of, tool};

/// D2: both kinds of socket, against servers of either era.
#[tokio::test]
async fn d2_both_endpoints_list_and_call() {
    for eras in [Eras::Legacy, Eras::Modern] {
        let world = World::new(eras, SocketOptions::default()).await;
        for (socket, name) in [("mcp.sock", "mcp__fix__echo"), ("fix.sock", "echo")] {
            let mut client = world.connect(socket).await;
            let list = client.ask(&modern(request(1, "tools/list", json!({})))).await;
            let tools = list["result"]["tools"].as_array().unwrap();
            assert!(tools.iter().any(|tool| tool["name"] == name), "{socket}");
            let answer = client.ask(&modern(tool(2, name, json!({"message": socket})))).await;
            assert_eq!(text_of(&answer), socket);
        }
        assert_eq!(world.gateway.sessions_open(), 0);
    }
}

#[tokio::test]
async fn a_cancelled_call_gets_no_answer() {
    let world = World::new(Eras::Modern, SocketOptions::default()).await;
    let mut client = world.connect("fix.sock").await;
    client.send(&modern(tool(7, "sleep", json!({"ms": 600_000})))).await;
    world.until(|world| world.fixture.fixture.counts().calls == 1).await;
    client.send(&cancelled(7)).await;
    world.until(|world| world.fixture.fixture.counts().cancelled == 1).await;
    client.send(&cancelled(99)).await;
    // The id can be used again.
    let answer = client.ask(&modern(tool(7, "echo", json!({"message": "on"})))).await;
    assert_eq!(text_of(&answer), "on");
}

/// Plain `socat` stops sending after the last line. Its requests are still answered; only streams,
/// which would never end, are cancelled.
#[tokio::test]
async fn a_client_that_stops_sending_still_gets_answers() {
    let world = World::new(Eras::Modern, SocketOptions::default()).await;
    let mut client = world.connect("fix.sock").await;
    let listen = json!({"notifications": {"toolsListChanged": true}});
    client.send(&modern(request(1, "subscriptions/listen", listen))).await;
    assert!(client.receive().await.get("method").is_some());
    client.send(&modern(tool(2, "sleep", json!({"ms": 50})))).await;
    client.send(&modern(tool(3, "echo", json!({"message": "x"})))).await;
    client.finish_sending().await;
    let answers = client.receive_all().await;
    let mut ids: Vec<_> = answers.iter().map(|answer| answer["id"].as_u64()).collect();
    ids.sort_unstable();
    assert_eq!(ids, [Some(2), Some(3)]);
}

#[tokio::test]
async fn a_duplicate_id_of_an_open_request_is_refused() {
    let world = World::new(Eras::Modern, SocketOptions::default()).await;
    let mut client = world.connect("fix.sock").await;
    client.send(&modern(tool(7, "sleep", json!({"ms": 600_000})))).await;
    let answer = client.ask(&modern(tool(7, "echo", json!({"message": "x"})))).await;
    assert_eq!(answer["error"]["code"], -32600);
}

/// D2: the socket requires the same members of a modern request as the HTTP door, and its error
/// names the accepted versions.
#[tokio::test]
async fn d2_required_members_of_a_modern_request_are_demanded() {
    let world = World::new(Eras::Legacy, SocketOptions::default()).await;
    let mut client = world.connect("fix.sock").await;
    let version = "io.modelcontextprotocol/protocolVersion";
    let mut other = modern(request(1, "tools/list", json!({})));
    other["params"]["_meta"][version] = json!("2099-01-01");
    let refused = client.ask(&other).await;
    assert_eq!(refused["error"]["code"], -32022, "{refused}");
    let supported = refused["error"]["data"]["supported"].clone();
    let found = client.ask(&modern(request(2, "server/discover", json!({})))).await;
    assert_eq!(found["result"]["supportedVersions"], supported, "{found}");
    for (id, version_named) in supported.as_array().unwrap().iter().enumerate() {
        other["params"]["_meta"][version] = version_named.clone();
        other["id"] = json!(10 + id);
        assert!(client.ask(&other).await["result"].is_object(), "{version_named}");
    }
    let mut bare = modern(request(3, "tools/list", json!({})));
    bare["params"]["_meta"] = json!({version: "2026-07-28"});
    assert_eq!(client.ask(&bare).await["error"]["code"], -32602);
}

/// An error has the id of its request if the id can be read.
#[tokio::test]
async fn errors_about_messages_carry_the_id() {
    let world = World::new(Eras::Legacy, SocketOptions::default()).await;
    let mut client = world.connect("fix.sock").await;
    let refused =
        client.ask(&json!({"jsonrpc": "2.0", "id": 8, "method": "ping", "params": 7})).await;
    assert_eq!((&refused["id"], refused["error"]["code"].as_i64()), (&json!(8), Some(-32600)));
    let answered =
        client.ask(&json!({"jsonrpc": "2.0", "id": 9, "method": "ping", "params": null})).await;
    assert!(answered["result"].is_object(), "{answered}");
}

/// E184: a legacy server can ask a modern client at the socket, too. The call waits while other
/// calls of the connection continue, and a retry on any connection of the run finishes it.
#[tokio::test]
async fn e184_a_call_that_waits_for_its_client_is_answered_at_the_socket() {
    let world = World::new(Eras::Legacy, SocketOptions::default()).await;
    let ask = |id: u64, name: &str| {
        let mut call = modern(tool(id, name, json!({})));
        let declared = "io.modelcontextprotocol/clientCapabilities";
        call["params"]["_meta"][declared] = json!({"elicitation": {}});
        call
    };
    for (socket, prefix) in [("mcp.sock", "mcp__fix__"), ("fix.sock", "")] {
        let name = format!("{prefix}test_input_required_result_elicitation");
        let mut client = world.connect(socket).await;
        let asked = client.ask(&ask(1, &name)).await;
        assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
        let questions = asked["result"]["inputRequests"].as_object().unwrap();
        let (key, question) = questions.iter().next().unwrap();
        assert_eq!((questions.len(), &question["method"]), (1, &json!("elicitation/create")));
        let echo = modern(tool(2, &format!("{prefix}echo"), json!({"message": "beside"})));
        assert_eq!(text_of(&client.ask(&echo).await), "beside");
        let mut retry = ask(3, &name);
        retry["params"]["requestState"] = asked["result"]["requestState"].clone();
        let answer = json!({"action": "accept", "content": {"name": "Ada"}});
        retry["params"]["inputResponses"] = json!({key.clone(): answer});
        let mut other = world.connect(socket).await;
        let done = other.ask(&retry).await;
        assert_eq!(done["id"], 3);
        assert_eq!(text_of(&done), "Hello, Ada!");
        let again = client.ask(&retry).await;
        assert_eq!(again["error"]["code"], -32602, "a state is good once: {again}");
    }
}
