//! Subscriptions and log levels on links that several callers share: servers that hang or return.

use std::time::Duration;

use narthex_gateway::{Caller, Endpoint, GatewayOptions};
use narthex_registry::config::Entry;
use narthex_wire::Payload;
use serde_json::{Value, json};
use tokio::{sync::mpsc, time::timeout};

use super::{
    scripted::Scripts,
    world::{SOON, World, legacy, modern, transparent},
};

/// A server that reports a change of the resource at each subscription to it, and repeats its
/// level.
pub(crate) const TELLS: [&str; 3] = [
    r#"tell() {
      printf '{"jsonrpc":"2.0","method":"notifications/%s","params":{%s}}\n' "$1" "$2"
    }"#,
    r#"case $line in
    *'"method":"resources/subscribe"'*)
      tell resources/updated '"uri":"test://a"' ;;
    *'"method":"logging/setLevel"'*)
      level=${line#*'"level":"'}; level=${level%%'"'*}
      tell message '"data":"set","level":"'"$level"'"' ;;
    esac"#,
    "",
];
/// A server that never answers requests on behalf of callers.
const HANGS: [&str; 3] = [
    "",
    r#"case $line in
    *'"method":"resources/subscribe"'*|*'"method":"resources/unsubscribe"'*) continue ;;
    *'"method":"logging/setLevel"'*) continue ;;
    esac"#,
    "",
];

pub(crate) async fn next(outbox: &mut mpsc::Receiver<Payload>, method: &str) -> Value {
    let waiting = async {
        loop {
            let payload = outbox.recv().await.unwrap();
            let message: Value = serde_json::from_slice(&payload.into_bytes()).unwrap();
            if message["method"] == method {
                return message;
            }
        }
    };
    timeout(SOON, waiting).await.unwrap_or_else(|_late| panic!("no {method}"))
}

pub(crate) fn kill(pid: u32) {
    let killed = std::process::Command::new("kill").args(["-9", &pid.to_string()]).status();
    assert!(killed.unwrap().success());
}

async fn hanging_and_well(timeout: Duration) -> (World, Scripts) {
    let scripts = Scripts::new();
    let mut hangs = scripts.server("hangs", HANGS);
    hangs.timeout = Some(timeout);
    let entries = vec![Entry::Server(hangs), scripts.entry("well", TELLS)];
    (World::settled(entries, GatewayOptions::default()).await, scripts)
}

/// S31, E44, E69: a server that never answers a subscription delays neither other servers nor the
/// end of the session. Its own callers get an error within the time that its calls have.
#[tokio::test]
async fn s31_a_server_that_hangs_delays_no_subscription_at_another_server() {
    let (world, _scripts) = hanging_and_well(Duration::from_secs(300)).await;
    let stuck = world.legacy_caller(transparent("hangs")).await;
    let subscribe = || legacy(1, "resources/subscribe", json!({"uri": "test://a"}));
    let mut asking = std::pin::pin!(world.call(&stuck, subscribe()));
    let well = world.legacy_caller(transparent("well")).await;
    let other = async {
        let answer = world.call(&well, subscribe()).await;
        assert_eq!(answer["result"], json!({}), "{answer}");
        let filter = json!({"notifications": {"resourceSubscriptions": ["test://a"]}});
        let caller = world.modern_caller(transparent("well"));
        let request = modern(2, "subscriptions/listen", filter);
        let mut listening = world.gateway.call(&caller, request).await;
        assert!(listening.next().await.is_some());
        world.gateway.end_session(well.session.as_ref().unwrap()).await;
        world.gateway.end_session(stuck.session.as_ref().unwrap()).await;
    };
    tokio::select! {
        biased;
        answer = &mut asking => panic!("{answer}"),
        done = timeout(SOON, other) => done.expect("held up by a server that hangs"),
    }
    timeout(SOON, world.gateway.drain()).await.expect("held up by a server that hangs");
}

/// E44: a request of the gateway for its callers has the time of a call.
#[tokio::test]
async fn e44_requests_for_subscriptions_and_levels_have_the_timeout_of_a_call() {
    let (world, _scripts) = hanging_and_well(Duration::from_millis(200)).await;
    let asking = async {
        let caller = world.legacy_caller(transparent("hangs")).await;
        let request = legacy(1, "resources/subscribe", json!({"uri": "test://a"}));
        let answer = world.call(&caller, request).await;
        assert_eq!(answer["error"]["code"], -31504, "{answer}");
        let caller = world.legacy_caller(Endpoint::Aggregated).await;
        let mut outbox = caller.session.as_ref().unwrap().take_outbox().unwrap();
        let request = legacy(2, "logging/setLevel", json!({"level": "error"}));
        assert_eq!(world.call(&caller, request).await["result"], json!({}));
        let told = next(&mut outbox, "notifications/message").await;
        assert_eq!(told["params"]["level"], "error", "{told}");
    };
    timeout(SOON, asking).await.expect("held up by a server that hangs");
    world.gateway.drain().await;
}

/// E74: subscriptions and the level outlive a server's process.
#[tokio::test]
async fn e74_subscriptions_and_levels_outlive_a_connection() {
    let scripts = Scripts::new();
    let entries = vec![scripts.entry("one", TELLS)];
    let world = World::settled(entries, GatewayOptions::default()).await;
    let caller = world.legacy_caller(Endpoint::Aggregated).await;
    let mut outbox = caller.session.as_ref().unwrap().take_outbox().unwrap();
    let level = legacy(1, "logging/setLevel", json!({"level": "warning"}));
    assert_eq!(world.call(&caller, level).await["result"], json!({}));
    next(&mut outbox, "notifications/message").await;
    let subscribe = legacy(2, "resources/subscribe", json!({"uri": "test://a"}));
    assert_eq!(world.call(&caller, subscribe).await["result"], json!({}));
    next(&mut outbox, "notifications/resources/updated").await;
    kill(scripts.started("one")[0]);
    let (mut is_followed, mut is_told) = (false, false);
    let waiting = async {
        while !(is_followed && is_told) {
            let payload = outbox.recv().await.unwrap();
            let message: Value = serde_json::from_slice(&payload.into_bytes()).unwrap();
            is_followed |= message["method"] == "notifications/resources/updated";
            is_told |= message["method"] == "notifications/message";
        }
    };
    let waited = timeout(SOON, waiting).await;
    assert!(waited.is_ok(), "followed again: {is_followed}, level told again: {is_told}");
    assert_eq!(scripts.started("one").len(), 2);
    world.gateway.drain().await;
}

/// E74: a server that becomes ready after a client set its level gets the level once.
#[tokio::test]
async fn e74_a_level_reaches_a_server_that_becomes_ready_later() {
    let scripts = Scripts::new();
    let gate = scripts.pipe("gate");
    let first = format!("read -r _ < {}\n{}", gate.display(), TELLS[0]);
    let late = scripts.entry("late", [&first, TELLS[1], ""]);
    let world = World::over(vec![late], GatewayOptions::default());
    let caller = world.legacy_caller(Endpoint::Aggregated).await;
    let quiet = world.legacy_caller(Endpoint::Aggregated).await;
    let mut outbox = caller.session.as_ref().unwrap().take_outbox().unwrap();
    for (caller, level) in [(&quiet, "alert"), (&caller, "warning")] {
        let request = legacy(1, "logging/setLevel", json!({"level": level}));
        assert_eq!(world.call(caller, request).await["result"], json!({}));
    }
    let opening = tokio::task::spawn_blocking(move || fs_err::write(gate, "\n"));
    // The server gets the lowest of the levels that were set.
    let told = next(&mut outbox, "notifications/message").await;
    assert_eq!(told["params"]["level"], "warning", "{told}");
    opening.await.unwrap().unwrap();
    for level in ["warning", "error"] {
        let request = legacy(2, "logging/setLevel", json!({"level": level}));
        assert_eq!(world.call(&caller, request).await["result"], json!({}));
    }
    let request = legacy(3, "logging/setLevel", json!({"level": "notice"}));
    assert_eq!(world.call(&caller, request).await["result"], json!({}));
    // The server got neither `warning` again nor `error`: it logs as much already.
    let told = next(&mut outbox, "notifications/message").await;
    assert_eq!(told["params"]["level"], "notice", "{told}");
    world.gateway.drain().await;
}

/// E74: a server that refused a level gets the same level again when a client sets it again.
#[tokio::test]
async fn e74_a_level_that_a_server_refused_is_sent_again() {
    const REFUSES_ONCE: &str = r#"case $line in
    *'"method":"logging/setLevel"'*)
      if [ ! -e "$PIDS.refused" ]; then
        : > "$PIDS.refused"
        printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32603,"message":"later"}}\n' "$id"
        continue
      fi ;;
    esac"#;
    let scripts = Scripts::new();
    let each = format!("{REFUSES_ONCE}\n{}", TELLS[1]);
    let entry = scripts.entry("one", [TELLS[0], &each, TELLS[2]]);
    let world = World::settled(vec![entry], GatewayOptions::default()).await;
    let caller = world.legacy_caller(Endpoint::Aggregated).await;
    let mut outbox = caller.session.as_ref().unwrap().take_outbox().unwrap();
    for id in [1, 2] {
        let request = legacy(id, "logging/setLevel", json!({"level": "warning"}));
        assert_eq!(world.call(&caller, request).await["result"], json!({}));
    }
    let told = next(&mut outbox, "notifications/message").await;
    assert_eq!(told["params"]["level"], "warning", "{told}");
    world.gateway.drain().await;
}

/// E74: subscriptions on a session's own link are made again on the next such link, except those
/// that the client ended.
#[tokio::test]
async fn e74_subscriptions_outlive_the_link_of_a_session() {
    let scripts = Scripts::new();
    let world = World::settled(vec![scripts.entry("one", TELLS)], GatewayOptions::default()).await;
    for (endpoint, tool) in [(transparent("one"), "act"), (Endpoint::Aggregated, "mcp__one__act")] {
        let session = world.session(&endpoint, json!({"sampling": {}})).await;
        let caller = Caller::new(world.run.clone(), endpoint, Some(session.clone()));
        let mut outbox = session.take_outbox().unwrap();
        for (method, uri) in [
            ("resources/subscribe", "test://a"),
            ("resources/subscribe", "test://ended"),
            ("resources/unsubscribe", "test://ended"),
        ] {
            let request = legacy(1, method, json!({"uri": uri}));
            assert_eq!(world.call(&caller, request).await["result"], json!({}));
        }
        let mut updates = 0;
        while let Ok(payload) = outbox.try_recv() {
            let text = String::from_utf8(payload.into_bytes().to_vec()).unwrap();
            updates += usize::from(text.contains("resources/updated"));
        }
        for _ in updates..2 {
            next(&mut outbox, "notifications/resources/updated").await;
        }
        let before = scripts.started("one");
        kill(*before.last().unwrap());
        // The next call that finds the link ended opens another link.
        let reopening = async {
            while scripts.started("one").len() == before.len() {
                world.call(&caller, legacy(2, "tools/call", json!({"name": tool}))).await;
                tokio::task::yield_now().await;
            }
        };
        timeout(SOON, reopening).await.expect("not opened again");
        next(&mut outbox, "notifications/resources/updated").await;
        let request = legacy(3, "tools/call", json!({"name": tool}));
        // E89: a result without content has an empty one at the aggregated endpoint.
        let expected = match &caller.endpoint {
            Endpoint::Aggregated => json!({"content": []}),
            Endpoint::Transparent(_) => json!({}),
        };
        assert_eq!(world.call(&caller, request).await["result"], expected);
        let again = outbox.try_recv().ok().map(|payload| payload.into_bytes());
        let is_update = |text: &bytes::Bytes| text.windows(9).any(|part| part == b"/updated\"");
        assert!(!again.as_ref().is_some_and(is_update), "{again:?}");
        world.gateway.end_session(&session).await;
    }
    world.gateway.drain().await;
}
