//! Limits and refusals of the door, and its end.

use std::time::Duration;

use narthex_model::{Exposed, NameRule};
use narthex_socket::SocketOptions;
use narthex_testkit::fixture::Eras;
use serde_json::{Value, json};

use crate::world::{World, modern, request, text_of, tool};

/// D3: a message with a fault gets an error, and the connection stays open.
#[tokio::test]
async fn bad_messages_are_answered_and_the_connection_lives_on() {
    let world = World::new(Eras::Modern, SocketOptions::default()).await;
    let mut client = world.connect("fix.sock").await;
    let deep = format!("{}{}", "[".repeat(2_000), "]".repeat(2_000));
    let table = [
        ("{", -32700),
        ("nonsense", -32700),
        (deep.as_str(), -32700),
        (r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}"#, -32700),
        ("{}", -32600),
        ("[]", -32600),
        (r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#, -32600),
    ];
    for (text, code) in table {
        client.send_text(&format!("{text}\n")).await;
        let answer = client.receive().await;
        assert_eq!(answer["error"]["code"], code, "{text}: {answer}");
    }
    client.send_text("\n\r\n").await;
    let answer = client.ask(&modern(tool(1, "echo", json!({"message": "on"})))).await;
    assert_eq!(text_of(&answer), "on");
    assert!(world.gateway.metrics().render().contains("refused_total{reason=\"message\"} 7"));
}

/// D3, D5: a call through a socket is checked by the rules of its run, in both eras. A hidden tool
/// gets the answer of an absent one, and its server gets no call.
#[tokio::test]
async fn d3_a_hidden_tool_is_refused_through_a_socket() {
    for eras in [Eras::Modern, Eras::Legacy] {
        let tools = NameRule::new(None, &["add"]);
        let exposed = Exposed { tools, ..Exposed::default() };
        let world = World::showing(eras, SocketOptions::default(), exposed).await;
        let mut client = world.connect("fix.sock").await;
        if eras == Eras::Legacy {
            client.initialize("2025-11-25", json!({})).await;
        }
        let sent = |request| if eras == Eras::Legacy { request } else { modern(request) };
        let list = client.ask(&sent(request(1, "tools/list", json!({})))).await;
        let tools = list["result"]["tools"].as_array().unwrap();
        let has = |name: &str| tools.iter().any(|tool| tool["name"] == name);
        assert!(has("echo") && !has("add"), "{list}");
        let hidden = client.ask(&sent(tool(2, "add", json!({"a": 1, "b": 2})))).await;
        let error = &hidden["result"]["structuredContent"]["error"];
        assert_eq!(error["kind"], "tool_not_found", "{hidden}");
        let absent = client.ask(&sent(tool(2, "nix", json!({"a": 1, "b": 2})))).await;
        assert_eq!(hidden.to_string().replace("`add`", "`nix`"), absent.to_string());
        assert_eq!(world.fixture.fixture.counts().calls, 0, "{eras:?}");
        let allowed = client.ask(&sent(tool(3, "echo", json!({"message": "on"})))).await;
        assert_eq!(text_of(&allowed), "on");
    }
}

/// D3: a line that is too long ends the connection.
#[tokio::test]
async fn a_line_that_is_too_long_ends_the_connection() {
    let world = World::new(Eras::Modern, SocketOptions::default()).await;
    let mut client = world.connect("fix.sock").await;
    let limit = world.gateway.limits().message_bytes;
    client.send_text(&"x".repeat(limit + 2)).await;
    let answers = client.receive_all().await;
    assert_eq!(answers.len(), 1);
    assert_eq!(answers[0]["error"]["code"], -32600);
}

/// Of more requests than may run or wait at once, each gets exactly one answer.
#[tokio::test]
async fn many_requests_wait_for_their_turn() {
    const REQUESTS: u64 = 1_500;
    let options = SocketOptions { requests: 4, ..SocketOptions::default() };
    let world = World::new(Eras::Modern, options).await;
    let mut client = world.connect("fix.sock").await;
    let text: String = (0..REQUESTS)
        .map(|id| format!("{}\n", modern(tool(id, "echo", json!({"message": id.to_string()})))))
        .collect();
    client.send_text(&text).await;
    client.finish_sending().await;
    let mut answers = client.receive_all().await;
    answers.sort_by_key(|answer| answer["id"].as_u64());
    let texts: Vec<&str> = answers.iter().map(text_of).collect();
    let expected: Vec<String> = (0..REQUESTS).map(|id| id.to_string()).collect();
    assert_eq!(texts, expected);
}

/// Progress of a call arrives before its answer, however many calls share the connection.
#[tokio::test]
async fn steps_of_a_call_stay_in_order() {
    let world = World::new(Eras::Modern, SocketOptions::default()).await;
    let mut client = world.connect("fix.sock").await;
    for id in 0..5 {
        let mut call = modern(tool(id, "progress", json!({"count": 4})));
        call["params"]["_meta"]["progressToken"] = json!(id);
        client.send(&call).await;
    }
    client.finish_sending().await;
    let messages = client.receive_all().await;
    for id in 0..5 {
        let is_about =
            |message: &&Value| message["id"] == id || message["params"]["progressToken"] == id;
        let about: Vec<&Value> = messages.iter().filter(is_about).collect();
        let steps: Vec<f64> =
            about.iter().filter_map(|step| step["params"]["progress"].as_f64()).collect();
        assert_eq!(steps.len(), 4, "{about:?}");
        assert!(steps.is_sorted());
        assert_eq!(about.last().unwrap()["id"], id);
    }
}

#[tokio::test]
async fn a_client_that_does_not_read_is_cut() {
    let write_timeout = Duration::from_millis(50);
    let world =
        World::new(Eras::Modern, SocketOptions { write_timeout, ..Default::default() }).await;
    let mut client = world.connect("fix.sock").await;
    client.send(&modern(tool(1, "blob", json!({"bytes": 2_000_000})))).await;
    let cut = "refused_total{reason=\"socket_unread\"} 1";
    world.until(|world| world.gateway.metrics().render().contains(cut)).await;
}

/// When the door stops, it accepts no new connections, lets open calls continue for a while, and
/// leaves no files.
#[tokio::test]
async fn the_door_drains_and_leaves_nothing() {
    let drain_timeout = Duration::from_millis(50);
    let world =
        World::new(Eras::Legacy, SocketOptions { drain_timeout, ..Default::default() }).await;
    let mut client = world.connect("fix.sock").await;
    client.initialize("2025-11-25", json!({})).await;
    let mut idle = world.connect("mcp.sock").await;
    client.send(&tool(1, "sleep", json!({"ms": 600_000}))).await;
    world.until(|world| world.fixture.fixture.counts().calls == 1).await;
    world.stop.cancel();
    world.doors.wait().await;
    assert_eq!(client.receive_all().await, Vec::<Value>::new());
    assert_eq!(idle.receive_all().await, Vec::<Value>::new());
    assert!(!world.folder.join("mcp.sock").exists() && !world.folder.join("fix.sock").exists());
    assert_eq!(world.gateway.sessions_open(), 0);
    world.until(|world| world.fixture.fixture.counts().cancelled == 1).await;
}

#[tokio::test]
async fn one_connection_more_waits_for_its_turn() {
    let options = SocketOptions { connections: 1, ..SocketOptions::default() };
    let world = World::new(Eras::Modern, options).await;
    let ask = |id| modern(tool(id, "echo", json!({"message": "x"})));
    let mut first = world.connect("fix.sock").await;
    first.ask(&ask(1)).await;
    let mut second = world.connect("fix.sock").await;
    second.send(&ask(2)).await;
    first.ask(&ask(3)).await;
    drop(first);
    assert_eq!(second.receive().await["id"], 2);
}
