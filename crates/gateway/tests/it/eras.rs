//! Servers that speak both eras, and how that is found out: by trying, once.

use narthex_gateway::{Caller, Endpoint, GatewayOptions, Step};
use narthex_registry::config::Entry;
use narthex_testkit::fixture::{Eras, Options, Running};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::{
    fixture_process,
    world::{SOON, World, http_server, legacy, modern, parse, transparent},
};

/// What a legacy client can be asked for.
fn all_capabilities() -> Value {
    json!({"sampling": {}, "elicitation": {}, "roots": {"listChanged": true}})
}

/// Worlds with a server of both eras that lists only 2026-07-28: over HTTP, and over stdio.
async fn worlds() -> [(&'static str, World); 2] {
    let over_stdio = vec![Entry::Server(fixture_process::server("one", "both"))];
    [
        ("http", World::with(&[("one", Eras::Both)]).await),
        ("stdio", World::settled(over_stdio, GatewayOptions::default()).await),
    ]
}

fn value(payload: narthex_wire::Payload) -> Value {
    serde_json::from_slice(&payload.into_bytes()).unwrap()
}

/// Calls a tool, gives `reply` to each question that reaches the client in any way, and gives all
/// that the client got, the answer last.
async fn converse(world: &World, caller: &Caller, call: Value, reply: &Value) -> Vec<Value> {
    let session = caller.session.as_ref().unwrap();
    let mut outbox = session.take_outbox().unwrap();
    let mut answering = world.gateway.call(caller, legacy(5, "tools/call", call)).await;
    let mut got = Vec::new();
    loop {
        let message = tokio::select! {
            biased;
            Some(payload) = outbox.recv() => value(payload),
            step = answering.next() => match step.expect("an answer") {
                Step::Message(payload) => value(payload),
                Step::Break { .. } => continue,
                Step::Answer(answer) => {
                    got.push(value(answer.payload));
                    return got;
                }
            },
        };
        if let Some(id) = message.get("id") {
            let response = json!({"jsonrpc": "2.0", "id": id, "result": reply});
            world.gateway.respond(session, parse(&response)).await;
        }
        got.push(message);
    }
}

/// D12: a server of both eras is reached in the client's era, whatever versions it lists, so
/// that it can ask a legacy client, over HTTP and stdio, at both kinds of endpoint.
#[tokio::test]
async fn d12_a_server_of_both_eras_asks_a_legacy_client() {
    let sampled = json!({"role": "assistant", "model": "m",
        "content": {"type": "text", "text": "blue"}});
    let elicited = json!({"action": "accept", "content": {"username": "ada", "email": "a@b.c"}});
    for (what, world) in worlds().await {
        for (endpoint, prefix) in [(transparent("one"), ""), (Endpoint::Aggregated, "mcp__one__")] {
            for (tool, reply, wanted) in
                [("test_sampling", &sampled, "blue"), ("test_elicitation", &elicited, "ada")]
            {
                let session = world.session(&endpoint, all_capabilities()).await;
                let caller = Caller::new(world.run.clone(), endpoint.clone(), Some(session));
                let call = json!({"name": format!("{prefix}{tool}"),
                    "arguments": {"prompt": "p", "message": "m"}});
                let talking = converse(&world, &caller, call, reply);
                let got = timeout(SOON, talking).await.expect("it is not answered");
                let asked = got.iter().filter(|message| message.get("id").is_some()).count();
                assert_eq!(asked, 2, "{what} {tool}: one question and the answer: {got:?}");
                assert!(got.last().unwrap().to_string().contains(wanted), "{what}: {got:?}");
            }
        }
        world.gateway.drain().await;
    }
}

/// D12: log messages of a server of both eras reach a legacy client, over HTTP and stdio.
#[tokio::test]
async fn d12_a_server_of_both_eras_logs_for_a_legacy_client() {
    for (what, world) in worlds().await {
        let session = world.session(&transparent("one"), all_capabilities()).await;
        let caller = Caller::new(world.run.clone(), transparent("one"), Some(session));
        let set =
            world.call(&caller, legacy(1, "logging/setLevel", json!({"level": "info"}))).await;
        assert_eq!(set["result"], json!({}), "{what}");
        let call = json!({"name": "test_tool_with_logging", "arguments": {}});
        let got = timeout(SOON, converse(&world, &caller, call, &Value::Null)).await;
        let got = got.expect("it is not answered");
        let logs = got.iter().filter(|message| message["method"] == "notifications/message");
        assert!(logs.count() > 0, "{what}: {got:?}");
        world.gateway.drain().await;
    }
}

/// D12: whether a server answers `initialize` is tried once, however many clients come at once, and
/// one that refuses serves them all in its own era.
#[tokio::test]
async fn d12_a_server_that_refuses_the_handshake_is_tried_once() {
    let world = World::with(&[("one", Eras::Modern)]).await;
    let call = async |endpoint: Endpoint, capabilities: Value| {
        let prefix = if endpoint == Endpoint::Aggregated { "mcp__one__" } else { "" };
        let session = world.session(&endpoint, capabilities).await;
        let caller = Caller::new(world.run.clone(), endpoint, Some(session));
        let params = json!({"name": format!("{prefix}echo"), "arguments": {"message": "hello"}});
        let answer = world.call(&caller, legacy(3, "tools/call", params)).await;
        assert!(answer["result"].to_string().contains("hello"), "{answer}");
    };
    let refused = || world.fixtures[0].fixture.counts().initializes_refused;
    assert_eq!(refused(), 0, "nobody has needed it yet");
    tokio::join!(
        call(transparent("one"), all_capabilities()),
        call(transparent("one"), json!({})),
        call(Endpoint::Aggregated, all_capabilities()),
        call(Endpoint::Aggregated, json!({})),
    );
    assert_eq!(refused(), 1);
    call(transparent("one"), all_capabilities()).await;
    assert_eq!(refused(), 1, "it was tried again");
    let caller = world.modern_caller(transparent("one"));
    let params = json!({"name": "echo", "arguments": {"message": "hello"}});
    world.call(&caller, modern(1, "tools/call", params)).await;
    assert_eq!(refused(), 1, "a modern client has no need of it");
    world.gateway.drain().await;
}

/// D12: what was learnt holds for the definition: not for another one, and not after a person has
/// the server connected anew.
#[tokio::test]
async fn d12_what_was_tried_is_remembered_by_definition() {
    let options = Options { eras: Eras::Modern, ..Options::default() };
    let fixture = Running::http(options).await.unwrap();
    let servers = || vec![Entry::Server(http_server("one", &fixture.url))];
    let world = World::settled(servers(), GatewayOptions::default()).await;
    let refused = || fixture.fixture.counts().initializes_refused;
    let open = async || drop(world.session(&transparent("one"), all_capabilities()).await);
    open().await;
    assert_eq!(refused(), 1);
    let registry = world.gateway.registry();
    registry.apply(servers().into_iter().map(Into::into).collect()).unwrap();
    open().await;
    assert_eq!(refused(), 1, "the definition is the same");
    registry.reconnect("one").await.unwrap();
    open().await;
    assert_eq!(refused(), 2, "the server may be another by now");
    let mut changed = http_server("one", &fixture.url);
    changed.timeout = Some(SOON);
    registry.apply(vec![Entry::Server(changed).into()]).unwrap();
    open().await;
    assert_eq!(refused(), 3, "the definition is another");
    world.gateway.drain().await;
}
