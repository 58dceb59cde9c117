//! Servers that forget, and servers that hang for one client.

use std::time::Duration;

use narthex_gateway::{Caller, Endpoint};
use narthex_testkit::fixture::{Eras, Options, Quirk};
use serde_json::json;
use tokio::time::timeout;

use super::world::{World, legacy, parse, transparent};

/// Far less than the deadlines whose end would hide a fault in these tests.
const SOON: Duration = Duration::from_secs(20);

fn echo(id: u64, prefix: &str) -> narthex_wire::Message {
    let name = format!("{prefix}echo");
    legacy(id, "tools/call", json!({"name": name, "arguments": {"message": "hello"}}))
}

async fn caller(world: &World, endpoint: Endpoint, capabilities: serde_json::Value) -> Caller {
    let session = world.session(&endpoint, capabilities).await;
    Caller::new(world.run.clone(), endpoint, Some(session))
}

/// Four calls at the same time, all of which must be answered.
async fn four_calls(world: &World, caller: &Caller, prefix: &str) {
    let call = |id: u64| world.call(caller, echo(id, prefix));
    let calls = async { tokio::join!(call(1), call(2), call(3), call(4)) };
    let answers: [_; 4] = timeout(SOON, Box::pin(calls)).await.unwrap().into();
    for answer in answers {
        let text = answer["result"]["content"][0]["text"].as_str();
        assert!(text.is_some_and(|text| text.contains("hello")), "{prefix} {answer}");
    }
}

/// R-E45, D17: if a server has forgotten its session, the gateway repeats calls once in a new
/// session. This holds on the shared link, on a link that all clients of a revision share, and on a
/// client's own link.
#[tokio::test]
async fn r_e45_a_call_in_a_forgotten_session_is_repeated_in_a_new_session() {
    for (endpoint, prefix) in [(transparent("one"), ""), (Endpoint::Aggregated, "mcp__one__")] {
        for (eras, revision, capabilities) in [
            (Eras::Legacy, "2025-11-25", json!({})),
            (Eras::Legacy, "2025-03-26", json!({})),
            (Eras::Both, "2025-11-25", json!({})),
            (Eras::Both, "2025-06-18", json!({})),
            (Eras::Legacy, "2025-11-25", json!({"sampling": {}})),
            (Eras::Both, "2025-11-25", json!({"sampling": {}})),
        ] {
            // Each world is new, since a server that forgets often gets pauses.
            let world = World::with(&[("one", eras)]).await;
            let session = world.session_of(revision, &endpoint, capabilities).await;
            let caller = Caller::new(world.run.clone(), endpoint.clone(), Some(session));
            four_calls(&world, &caller, prefix).await;
            world.fixtures[0].fixture.forget_sessions();
            four_calls(&world, &caller, prefix).await;
            world.gateway.drain().await;
        }
    }
}

/// R-E45: the gateway opens a session once more that its server forgets before it has listed, or
/// during the handshake.
#[tokio::test]
async fn r_e45_a_session_forgotten_during_its_handshake_is_opened_once_more() {
    for quirk in [Quirk::ForgetSecondSession, Quirk::ForgetSecondHandshake] {
        let forgets = Options { eras: Eras::Legacy, quirks: vec![quirk], ..Options::default() };
        let world = World::of([("one", forgets)]).await;
        let caller = caller(&world, transparent("one"), json!({"sampling": {}})).await;
        four_calls(&world, &caller, "").await;
        let opened = world.fixtures[0].fixture.counts().initializes;
        assert_eq!(opened, 3, "shared, forgotten, anew: {quirk:?}");
        world.gateway.drain().await;
    }
}

fn hanging() -> Options {
    let quirks = vec![Quirk::HangLaterInitialize];
    Options { eras: Eras::Legacy, quirks, ..Options::default() }
}

/// E129: point 4: a server that hangs for one client delays neither the client's calls to other
/// servers nor its lists.
#[tokio::test]
async fn a_server_that_hangs_does_not_delay_calls_of_its_client_to_other_servers() {
    let fine = Options { eras: Eras::Legacy, ..Options::default() };
    let world = World::of([("hangs", hanging()), ("fine", fine)]).await;
    let caller = caller(&world, Endpoint::Aggregated, json!({"sampling": {}})).await;
    let answer = timeout(SOON, world.call(&caller, echo(1, "mcp__fine__"))).await.unwrap();
    assert!(answer["result"]["content"][0]["text"].is_string(), "{answer}");
    let listing = world.call(&caller, legacy(2, "tools/list", json!({})));
    let list = timeout(SOON, listing).await.unwrap();
    let tools = list["result"]["tools"].as_array().unwrap();
    for wanted in ["mcp__fine__echo", "mcp__hangs__echo"] {
        assert!(tools.iter().any(|tool| tool["name"] == wanted), "{wanted}");
    }
}

/// E44: a client can give a call up while its server is not even connected.
#[tokio::test]
async fn a_client_cancels_a_call_before_its_server_is_connected() {
    let world = World::of([("hangs", hanging())]).await;
    let caller = caller(&world, transparent("hangs"), json!({"sampling": {}})).await;
    let calling = Box::pin(async {
        let mut answering = world.gateway.call(&caller, echo(1, "")).await;
        answering.next().await
    });
    let cancel = async {
        let cancelled = json!({"jsonrpc": "2.0", "method": "notifications/cancelled",
            "params": {"requestId": 1}});
        world.gateway.notify(&caller, parse(&cancelled)).await;
    };
    // The call is polled first, so that it is open when it is given up.
    let (step, ()) = timeout(SOON, async { tokio::join!(biased; calling, cancel) }).await.unwrap();
    assert!(step.is_none(), "{step:?}");
    assert_eq!(world.fixtures[0].fixture.counts().calls, 0);
}
