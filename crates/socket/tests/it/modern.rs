//! Clients whose requests stand alone.

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
    // The id is free again.
    let answer = client.ask(&modern(tool(7, "echo", json!({"message": "on"})))).await;
    assert_eq!(text_of(&answer), "on");
}

/// Plain `socat` closes its side after the last line; what it asked for is still answered, and
/// only what would never end is given up.
#[tokio::test]
async fn who_stops_sending_still_gets_answers() {
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
async fn an_open_id_is_not_taken_twice() {
    let world = World::new(Eras::Modern, SocketOptions::default()).await;
    let mut client = world.connect("fix.sock").await;
    client.send(&modern(tool(7, "sleep", json!({"ms": 600_000})))).await;
    let answer = client.ask(&modern(tool(7, "echo", json!({"message": "x"})))).await;
    assert_eq!(answer["error"]["code"], -32600);
}
