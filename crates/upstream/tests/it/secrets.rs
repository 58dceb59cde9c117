//! What servers say of our secrets does not get past the link.

use narthex_upstream::{Inventory, LinkEvent};
use serde_json::json;

use super::{
    peer::{Peer, error, event, events_of, result, text},
    world::{
        World, call, call_to_end, http, in_time, initializes, say, shell, value, with_env, with_key,
    },
};

const KEY: &str = "sk-123456";

#[tokio::test]
async fn e62_without_a_key_nothing_is_sent() {
    let peer = Peer::start(|_| text(500, "text/plain", "")).await;
    let error = World::new().connect(&with_key(&peer.url, None)).await.unwrap_err();
    assert_eq!(error.call_kind(), narthex_model::CallErrorKind::AuthUnavailable);
    assert!(error.to_string().contains("auth.key"), "{error}");
    assert!(peer.seen().is_empty());
}

#[tokio::test]
async fn e22_the_key_goes_with_every_request() {
    let peer = Peer::session(|seen| {
        let change = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
        (seen.method == "GET").then(|| events_of(&[event(&change)]))
    })
    .await;
    let mut world = World::new();
    let link = world.link(&with_key(&peer.url, Some(KEY))).await;
    world.event().await;
    call_to_end(&link, "x", json!({})).await.unwrap();
    link.stop().await;
    let seen = peer.seen();
    let methods: Vec<_> = seen.iter().map(|seen| seen.method.as_str()).collect();
    assert!(methods.contains(&"GET") && methods.contains(&"DELETE"), "{methods:?}");
    assert!(seen.iter().all(|seen| seen.header("x-key") == Some("Key sk-123456")));
    assert!(!format!("{link:?}").contains(KEY));
}

#[tokio::test]
async fn s27_errors_results_lists_and_events_never_show_the_key() {
    let leak = || json!({"content": [{"type": "text", "text": format!("you sent {KEY}")}]});
    let peer = Peer::session(move |seen| match (seen.method.as_str(), seen.rpc()) {
        ("GET", _) => Some(events_of(&[event(&json!({"jsonrpc": "2.0", "method":
            "notifications/message", "params": {"level": "info", "data": KEY}}))])),
        (_, "tools/list") => {
            Some(result(seen, &json!({"tools": [{"name": "x", "description": KEY}]})))
        }
        (_, "tools/call") if seen.body["params"]["name"] == "status" => {
            Some(text(500, "text/plain", format!("bad key {KEY}")))
        }
        (_, "tools/call") => Some(result(seen, &leak())),
        _ => None,
    })
    .await;
    let mut world = World::new();
    let link = world.link(&with_key(&peer.url, Some(KEY))).await;
    let LinkEvent::Notification(message) = world.event().await else { panic!() };
    assert_eq!(value(&message)["params"]["data"], "[redacted]");
    let (_, answer) = call_to_end(&link, "x", json!({})).await.unwrap();
    assert_eq!(answer["result"]["content"][0]["text"], "you sent [redacted]");
    let error = call(&link, "status", json!({})).await.unwrap_err();
    assert_eq!(error.to_string(), "the server answered HTTP 500: bad key [redacted]");
    let inventory = in_time(Inventory::fetch(&link)).await.unwrap();
    assert_eq!(inventory.tools[0].raw, r#"{"description":"[redacted]","name":"x"}"#);
}

#[tokio::test]
async fn s27_a_refused_handshake_never_shows_the_key() {
    let peer = Peer::start(|seen| match seen.rpc() {
        "initialize" => {
            let fault = json!({"code": -32000, "message": format!("unknown key {KEY}")});
            let body = json!({"jsonrpc": "2.0", "id": seen.body["id"], "error": fault});
            text(200, "application/json", body.to_string())
        }
        _ => error(400, seen, -32000),
    })
    .await;
    let error = World::new().connect(&with_key(&peer.url, Some(KEY))).await.unwrap_err();
    assert_eq!(error.to_string(), "the server refuses the handshake: unknown key [redacted]");
}

#[tokio::test]
async fn e62_a_refused_credential_is_told_as_such() {
    for status in [401, 403] {
        let peer = Peer::start(move |_| text(status, "text/plain", "")).await;
        let error = World::new().connect(&http(&peer.url)).await.unwrap_err();
        assert_eq!(error.call_kind(), narthex_model::CallErrorKind::AuthUnavailable, "{error}");
    }
}

#[tokio::test]
async fn s27_a_childs_log_and_last_words_never_show_its_token() {
    let crash = r#"*tools/call*) echo "token $MY_TOKEN is wrong" >&2; exit 7;;"#;
    let cases = format!(
        r#"*server/discover*) {};; {} {crash}"#,
        say(&json!({"instructions": "none"})),
        initializes()
    );
    let mut world = World::new();
    let link = world.link(&with_env(shell(&cases), "MY_TOKEN", "t0p-secret")).await;
    let error = call_to_end(&link, "x", json!({})).await.unwrap_err();
    let expected = "the process ended with exit code 7; its last words: token [redacted] is wrong";
    assert_eq!(error.to_string(), format!("the connection to the server has ended: {expected}"));
    assert_eq!(world.closed().await, expected);
    assert_eq!(link.log_tail(), ["token [redacted] is wrong"]);
    drop(link);
    world.drain().await;
}
