//! Servers that narthex stops when they have no users, and the callers that count as users.

use std::{sync::Arc, time::Duration};

use narthex_gateway::{Caller, Endpoint, GatewayOptions, Step};
use narthex_registry::{ServerRow, Snapshot};
use serde_json::{Value, json};
use tokio::time::{Instant, timeout};

use super::{
    following::{TELLS, kill, next},
    scripted::Scripts,
    tasks::{self, LEGACY, MODERN},
    world::{SOON, World, legacy, modern, transparent},
};

/// Longer than any step here takes while the clock runs, and too short for sessions to expire.
const IDLE: Duration = Duration::from_secs(600);

async fn until(world: &World, is_it: impl Fn(&ServerRow) -> bool) -> Arc<ServerRow> {
    let is_it_there = |snapshot: &Snapshot| snapshot.get("one").is_some_and(|row| is_it(row));
    let snapshot = world.gateway.registry().wait_until(SOON, is_it_there).await;
    let row = snapshot.get("one").unwrap().clone();
    assert!(is_it(&row), "{row:?}");
    row
}

async fn one(scripts: &Scripts, idle: Duration) -> World {
    one_that(scripts, TELLS, idle).await
}

async fn one_that(scripts: &Scripts, does: [&str; 3], idle: Duration) -> World {
    let entries = vec![scripts.entry("one", does)];
    let world = World::sleepy(entries, GatewayOptions::default(), Some(idle));
    until(&world, ServerRow::is_ready).await;
    world
}

/// Lets the server's idle time pass, and no other time.
async fn pass(time: Duration) {
    tokio::time::pause();
    tokio::time::sleep(time).await;
    tokio::time::resume();
}

/// Waits until the server is stopped; `IDLE` passes at once. Returns the time that it took.
async fn asleep(world: &World, why: &str) -> Duration {
    let since = Instant::now();
    let registry = world.gateway.registry();
    let mut changes = registry.changes();
    tokio::time::pause();
    let sleeping = async {
        while !registry.get("one").unwrap().is_asleep {
            changes.changed().await.unwrap();
        }
    };
    timeout(10 * IDLE, sleeping).await.expect(why);
    let took = since.elapsed();
    tokio::time::resume();
    took
}

fn subscription(method: &str) -> narthex_wire::Message {
    legacy(1, method, json!({"uri": "test://a"}))
}

/// D12, E74: a follower of a resource waits for messages that the server sends by itself, so the
/// server stays active as long as it has a follower.
#[tokio::test]
async fn d12_a_server_with_a_subscription_is_not_stopped() {
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
    asleep(&world, "no subscription is left").await;
    world.gateway.drain().await;
}

/// D12: a new follower wakes a server, at either endpoint and in either era.
#[tokio::test]
async fn d12_a_new_subscription_wakes_a_sleeping_server() {
    let scripts = Scripts::new();
    let world = one(&scripts, IDLE).await;
    for endpoint in [transparent("one"), Endpoint::Aggregated] {
        asleep(&world, "there is no subscription yet").await;
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

/// D12, E74: a lost server is followed again, even if no other caller uses it meanwhile.
#[tokio::test]
async fn d12_a_lost_server_with_a_subscription_is_started_again() {
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

/// Starts a task without followers, in the era of this server; returns its caller.
async fn caller_with_a_task(world: &World, does: [&str; 3]) -> Caller {
    if does == LEGACY {
        let caller = world.legacy_caller(transparent("one")).await;
        let params = json!({"name": "act", "arguments": {}, "task": {}});
        let started = world.call(&caller, legacy(1, "tools/call", params)).await;
        assert_eq!(started["result"]["task"]["status"], "working", "{started}");
        return caller;
    }
    let caller = world.modern_caller(transparent("one"));
    assert_eq!(tasks::start(world, &caller, "act", json!({})).await, "t1");
    caller
}

/// D12: an active task keeps its server awake, also without followers or requests for the task,
/// until the task is forgotten with its run.
#[tokio::test]
async fn d12_a_server_with_a_running_task_is_not_stopped() {
    for does in [MODERN, LEGACY] {
        let scripts = Scripts::new();
        let world = one_that(&scripts, does, IDLE).await;
        let caller = caller_with_a_task(&world, does).await;
        pass(3 * IDLE).await;
        assert!(!world.gateway.registry().get("one").unwrap().is_asleep);
        assert_eq!(scripts.started("one").len(), 1);
        assert!(world.gateway.end_run(caller.run.id).await.is_some());
        let took = asleep(&world, "its run has ended").await;
        assert!(took < 3 * IDLE, "{took:?}");
        world.gateway.drain().await;
    }
}

/// A modern server that reports the status that it last got for its task.
const TOLD: &str = r#"case $line in *'"method":"tasks/cancel"'*) now=cancelled
    answer '{"resultType":"complete"}'; continue ;; esac"#;
/// A legacy server that reports at a call without a task that the earlier task has ended.
const TELLS_END: &str = r#"case $line in *'"method":"tools/call"'*'"task":{'*) ;;
    *'"method":"tools/call"'*) printf '{"jsonrpc":"2.0","method":"notifications/tasks/status",'
      printf '"params":{"taskId":"t1","status":"failed"}}\n'; answer '{"content":[]}'
      continue ;; esac"#;
/// A legacy server that has the result of its task at once.
const HAS_RESULT: &str = r#"case $line in *'"method":"tasks/result"'*)
    answer '{"content":[],'"$related"'}'; continue ;; esac"#;
/// A legacy server that lists its task as ended.
const LISTS_END: &str = r#"case $line in *'"method":"tasks/list"'*)
    answer '{"tasks":[{"taskId":"t1","status":"completed"}]}'; continue ;; esac"#;

/// D12: a task that has ended keeps no server awake, whichever message reports the end.
#[tokio::test]
async fn d12_the_end_of_a_task_lets_its_server_sleep() {
    let (id, call) = (json!({"taskId": "t1"}), json!({"name": "act", "arguments": {}}));
    for (does, more, asked) in [
        (MODERN, TOLD, vec![("tasks/cancel", id.clone()), ("tasks/get", id.clone())]),
        (LEGACY, "", vec![("tasks/cancel", id.clone())]),
        (LEGACY, TELLS_END, vec![("tools/call", call)]),
        (LEGACY, HAS_RESULT, vec![("tasks/result", id)]),
        (LEGACY, LISTS_END, vec![("tasks/list", json!({}))]),
    ] {
        let scripts = Scripts::new();
        let each = format!("{more}\n{}", does[1]);
        let world = one_that(&scripts, [does[0], &each, ""], IDLE).await;
        let caller = caller_with_a_task(&world, does).await;
        for (method, mut params) in asked {
            if does == MODERN {
                params["_meta"] = tasks::declared();
            }
            let answer = world.ask(&caller, method, params).await;
            assert!(answer["result"].is_object(), "{answer}");
        }
        let took = asleep(&world, "its task has ended").await;
        assert!(took < 3 * IDLE, "{took:?} with {more}");
        world.gateway.drain().await;
    }
}

/// D12: a task keeps its server awake no longer than the server keeps the task. Without any message
/// about the task, that ends after an hour.
#[tokio::test]
async fn d12_a_task_without_messages_keeps_its_server_awake_until_its_ttl_or_one_hour() {
    let hour = Duration::from_secs(3600);
    for (does, ttl, expires) in [
        (MODERN, "1200000", 2 * IDLE),
        (LEGACY, "1200000", 2 * IDLE),
        (MODERN, "null", hour),
        (MODERN, "36000000", hour),
    ] {
        let scripts = Scripts::new();
        let first = does[0].replace("null", ttl);
        let world = one_that(&scripts, [&first, does[1], ""], IDLE).await;
        caller_with_a_task(&world, does).await;
        let took = asleep(&world, "its task has expired").await;
        assert!((expires..expires + 2 * IDLE).contains(&took), "{took:?} with {ttl}");
        world.gateway.drain().await;
    }
}

/// D12: a level keeps no server awake, since a sleeping server logs nothing. The gateway sends the
/// level again when the server wakes.
#[tokio::test]
async fn d12_a_log_level_is_sent_again_when_a_server_wakes() {
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

/// D12: a sleeping server can be described, and does not wake for a request of its description
/// alone.
#[tokio::test]
async fn d12_the_description_of_a_sleeping_server_is_unchanged() {
    let scripts = Scripts::new();
    let world = one(&scripts, IDLE).await;
    let caller = world.modern_caller(transparent("one"));
    let before = world.ask(&caller, "server/discover", json!({})).await;
    assert!(before["result"]["capabilities"]["resources"].is_object(), "{before}");
    asleep(&world, "no caller uses it").await;
    let asleep = world.ask(&caller, "server/discover", json!({})).await;
    assert_eq!(asleep["result"], before["result"]);
    assert_eq!(scripts.started("one").len(), 1);
    world.gateway.drain().await;
}

/// E72: only ready servers are listed; a server's items return with the server.
#[tokio::test]
async fn e72_a_server_that_reconnects_is_not_listed() {
    let scripts = Scripts::new();
    let gate = scripts.pipe("gate");
    // From its second start on, the server waits until the test writes to the gate.
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
