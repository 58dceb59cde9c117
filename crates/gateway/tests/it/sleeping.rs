//! Servers that are stopped when nobody uses them, and who counts as using one.

use std::{sync::Arc, time::Duration};

use narthex_gateway::{Caller, Endpoint, GatewayOptions, Step};
use narthex_registry::{ServerRow, Snapshot};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::{
    following::{TELLS, kill, next},
    scripted::Scripts,
    world::{SOON, World, legacy, modern, transparent},
};

/// Longer than anything here takes while the clock runs, and too short for sessions to expire.
const IDLE: Duration = Duration::from_secs(600);

async fn until(world: &World, is_it: impl Fn(&ServerRow) -> bool) -> Arc<ServerRow> {
    let is_it_there = |snapshot: &Snapshot| snapshot.get("one").is_some_and(|row| is_it(row));
    let snapshot = world.gateway.registry().wait_until(SOON, is_it_there).await;
    let row = snapshot.get("one").unwrap().clone();
    assert!(is_it(&row), "{row:?}");
    row
}

async fn one(scripts: &Scripts, idle: Duration) -> World {
    let entries = vec![scripts.entry("one", TELLS)];
    let world = World::sleepy(entries, GatewayOptions::default(), Some(idle));
    until(&world, ServerRow::is_ready).await;
    world
}

/// Lets the server's time pass, and no other.
async fn pass(time: Duration) {
    tokio::time::pause();
    tokio::time::sleep(time).await;
    tokio::time::resume();
}

/// Waits until the server is stopped; `IDLE` is over at once.
async fn asleep(world: &World, why: &str) {
    let registry = world.gateway.registry();
    let mut changes = registry.changes();
    tokio::time::pause();
    let sleeping = async {
        while !registry.get("one").unwrap().is_asleep {
            changes.changed().await.unwrap();
        }
    };
    timeout(10 * IDLE, sleeping).await.expect(why);
    tokio::time::resume();
}

fn subscription(method: &str) -> narthex_wire::Message {
    legacy(1, method, json!({"uri": "test://a"}))
}

/// D12, E74: whoever follows a resource waits for what the server says by itself, so the server
/// stays as long as somebody does.
#[tokio::test]
async fn d12_a_server_that_is_followed_is_not_stopped() {
    let scripts = Scripts::new();
    let world = one(&scripts, IDLE).await;
    let caller = world.legacy_caller(transparent("one")).await;
    let subscribed = world.call(&caller, subscription("resources/subscribe")).await;
    assert_eq!(subscribed["result"], json!({}));
    pass(3 * IDLE).await;
    assert!(!world.gateway.registry().get("one").unwrap().is_asleep);
    assert_eq!(scripts.started("one").len(), 1);
    let ended = world.call(&caller, subscription("resources/unsubscribe")).await;
    assert_eq!(ended["result"], json!({}));
    asleep(&world, "nobody follows any more").await;
    world.gateway.drain().await;
}

/// D12: who begins to follow wakes a server, at either endpoint and in either era.
#[tokio::test]
async fn d12_whoever_follows_wakes_a_server_that_sleeps() {
    let scripts = Scripts::new();
    let world = one(&scripts, IDLE).await;
    for endpoint in [transparent("one"), Endpoint::Aggregated] {
        asleep(&world, "nobody follows yet").await;
        let caller = world.modern_caller(endpoint);
        let filter = json!({"notifications": {"resourceSubscriptions": ["test://a"]}});
        let mut listening =
            world.gateway.call(&caller, modern(2, "subscriptions/listen", filter)).await;
        let Some(Step::Message(told)) = timeout(SOON, listening.next()).await.unwrap() else {
            panic!("no acknowledgement")
        };
        let told: Value = serde_json::from_slice(&told.into_bytes()).unwrap();
        let honoured = &told["params"]["notifications"]["resourceSubscriptions"];
        assert_eq!(honoured, &json!(["test://a"]), "{told}");
        pass(3 * IDLE).await;
        assert!(!world.gateway.registry().get("one").unwrap().is_asleep, "as long as it listens");
    }
    world.gateway.drain().await;
}

/// D12, E74: a server that was lost is followed again, even if nobody else wants it meanwhile.
#[tokio::test]
async fn d12_a_server_that_is_followed_is_woken_for_it() {
    let scripts = Scripts::new();
    let world = one(&scripts, Duration::from_millis(1)).await;
    let caller = world.legacy_caller(transparent("one")).await;
    let mut outbox = caller.session.as_ref().unwrap().take_outbox().unwrap();
    let subscribed = world.call(&caller, subscription("resources/subscribe")).await;
    assert_eq!(subscribed["result"], json!({}));
    next(&mut outbox, "notifications/resources/updated").await;
    kill(*scripts.started("one").last().unwrap());
    next(&mut outbox, "notifications/resources/updated").await;
    world.gateway.drain().await;
}

/// D12: a level keeps no server from sleeping, as a server that sleeps says nothing; it is told
/// again when the server wakes.
#[tokio::test]
async fn d12_a_level_is_told_again_when_a_server_wakes() {
    let scripts = Scripts::new();
    let world = one(&scripts, IDLE).await;
    let caller = world.legacy_caller(Endpoint::Aggregated).await;
    let mut outbox = caller.session.as_ref().unwrap().take_outbox().unwrap();
    let level = legacy(1, "logging/setLevel", json!({"level": "warning"}));
    assert_eq!(world.call(&caller, level).await["result"], json!({}));
    next(&mut outbox, "notifications/message").await;
    asleep(&world, "a level keeps no server awake").await;
    let call = legacy(2, "tools/call", json!({"name": "mcp__one__act"}));
    assert!(world.call(&caller, call).await["result"].is_object());
    let told = next(&mut outbox, "notifications/message").await;
    assert_eq!(told["params"]["level"], "warning", "{told}");
    world.gateway.drain().await;
}

/// D12: a server that sleeps can be asked what it is, and wakes for nobody who asks only that.
#[tokio::test]
async fn d12_a_server_that_sleeps_is_told_of_as_before() {
    let scripts = Scripts::new();
    let world = one(&scripts, IDLE).await;
    let caller = world.modern_caller(transparent("one"));
    let before = world.ask(&caller, "server/discover", json!({})).await;
    assert!(before["result"]["capabilities"]["resources"].is_object(), "{before}");
    asleep(&world, "nobody uses it").await;
    let asleep = world.ask(&caller, "server/discover", json!({})).await;
    assert_eq!(asleep["result"], before["result"]);
    assert_eq!(scripts.started("one").len(), 1);
    world.gateway.drain().await;
}

/// E72: only ready servers are listed; what a server had comes back with it.
#[tokio::test]
async fn e72_a_server_that_reconnects_is_not_listed() {
    let scripts = Scripts::new();
    let gate = scripts.pipe("gate");
    // From its second start on, it waits to be let in.
    let first = format!(r#"if [ -e "$PIDS" ]; then read -r _ < {}; fi"#, gate.display());
    let entries = vec![scripts.entry("one", [&first, "", ""])];
    let world = World::settled(entries, GatewayOptions::default()).await;
    for caller in world.both_callers(&Endpoint::Aggregated).await {
        let tools = async |caller: &Caller| {
            let list = world.ask(caller, "tools/list", json!({})).await;
            let tools = list["result"]["tools"].as_array().unwrap().clone();
            tools.iter().any(|tool| tool["name"] == "mcp__one__act")
        };
        assert!(tools(&caller).await);
        kill(*scripts.started("one").last().unwrap());
        until(&world, |row| !row.is_ready()).await;
        assert!(!tools(&caller).await, "it cannot be called now");
        let gate = gate.clone();
        let opening = tokio::task::spawn_blocking(move || fs_err::write(gate, "\n"));
        until(&world, ServerRow::is_ready).await;
        assert!(tools(&caller).await);
        opening.await.unwrap().unwrap();
    }
    world.gateway.drain().await;
}
