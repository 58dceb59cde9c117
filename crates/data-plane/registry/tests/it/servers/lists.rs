//! Lists: the inventory of a ready server, and its changes.

use narthex_model::ServerState;
use narthex_testkit::fixture::{Eras, Options, Running};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::{
    peer::{Peer, Reply, event, events, result},
    world::{http, in_time, row, start, until, until_state},
};

fn has(snapshot: &narthex_registry::Snapshot, tool: &str) -> bool {
    row(snapshot, "x").inventory.tool(tool).is_some()
}

#[tokio::test]
async fn e74_changed_lists_are_read_again_in_both_eras() {
    for eras in [Eras::Legacy, Eras::Modern] {
        let server = Running::http(Options { eras, ..Options::default() }).await.unwrap();
        let registry = start([http("x", &server.url)]);
        let mut notices = registry.notices();
        let before = until_state(&registry, "x", ServerState::Ready).await;
        assert!(before.inventory.tool("dynamic_tool").is_none());
        server.fixture.toggle_dynamic_tool();
        let after = until(&registry, |snapshot| has(snapshot, "dynamic_tool")).await;
        assert!(row(&after, "x").inventory_version > before.inventory_version, "{eras:?}");
        let notice = in_time(notices.recv()).await.unwrap();
        assert_eq!(notice.message.method(), "notifications/tools/list_changed");
        server.fixture.toggle_dynamic_prompt();
        until(&registry, |snapshot| row(snapshot, "x").inventory.has_prompt("dynamic_prompt"))
            .await;
        registry.close().await;
    }
}

/// A modern server's stream of changes is open before its lists are read, so that none is missed.
#[tokio::test]
async fn e74_the_stream_of_changes_is_open_before_the_lists_are_read() {
    let peer = Peer::modern(|seen| match seen.rpc() {
        "subscriptions/listen" => {
            let (sender, stream) = events();
            sender.try_send(acknowledgement(&seen.body["id"])).unwrap();
            // Open as long as this test runs.
            std::mem::forget(sender);
            Some(stream)
        }
        "tools/list" => Some(result(seen, &json!({"tools": []}))),
        _ => None,
    })
    .await;
    let registry = start([http("x", &peer.url)]);
    until_state(&registry, "x", ServerState::Ready).await;
    let steps: Vec<_> = peer.seen().iter().map(|seen| seen.rpc().to_owned()).collect();
    assert_eq!(steps, ["server/discover", "subscriptions/listen", "tools/list"]);
    registry.close().await;
}

fn acknowledgement(id: &Value) -> String {
    event(&json!({"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged",
        "params": {"_meta": {"io.modelcontextprotocol/subscriptionId": id}, "notifications": {}}}))
}

/// A broken stream of changes is opened again, and missed changes are read.
#[tokio::test]
async fn e74_a_stream_of_changes_that_breaks_is_opened_again() {
    let peer = Peer::modern(|seen| match seen.rpc() {
        "subscriptions/listen" => {
            Some(crate::peer::events_of(&[acknowledgement(&seen.body["id"])]))
        }
        "tools/list" => Some(result(seen, &json!({"tools": [{"name": "x"}]}))),
        _ => None,
    })
    .await;
    let registry = start([http("x", &peer.url)]);
    let before = until_state(&registry, "x", ServerState::Ready).await;
    let version = before.inventory_version;
    until(&registry, |snapshot| row(snapshot, "x").inventory_version > version).await;
    let listens = || peer.seen().iter().filter(|seen| seen.rpc() == "subscriptions/listen").count();
    let listens_before = listens();
    until(&registry, |snapshot| row(snapshot, "x").inventory_version > version + 1).await;
    assert!(listens() > listens_before);
    registry.close().await;
}

/// A server that asks before it lists must not wait for an answer that no caller gives.
#[tokio::test]
async fn e75_questions_during_the_listing_are_refused_at_once() {
    let (sender, stream) = events();
    let stream = std::sync::Arc::new(std::sync::Mutex::new(Some(stream)));
    let peer = Peer::session(move |seen| {
        (seen.rpc() == "tools/list").then(|| stream.lock().unwrap().take().unwrap_or(Reply::Never))
    })
    .await;
    let registry = start([http("x", &peer.url)]);
    let id = peer.wait(|seen| seen.rpc() == "tools/list").await.body["id"].clone();
    ask_then_list(&peer, &sender, &id).await;
    let row = until_state(&registry, "x", ServerState::Ready).await;
    assert!(row.inventory.tool("late").is_some());
    registry.close().await;
}

async fn ask_then_list(peer: &Peer, sender: &mpsc::Sender<String>, id: &Value) {
    let question = json!({"jsonrpc": "2.0", "id": "q", "method": "roots/list"});
    sender.send(event(&question)).await.unwrap();
    let refusal = peer.wait(|seen| seen.body["id"] == "q").await;
    assert_eq!(refusal.body["error"]["code"], -32601);
    let list = json!({"jsonrpc": "2.0", "id": id, "result": {"tools": [{"name": "late"}]}});
    sender.send(event(&list)).await.unwrap();
}

#[tokio::test]
async fn e76_a_server_with_resources_alone_is_ready_without_tools() {
    let peer = Peer::legacy(|seen| match seen.rpc() {
        "initialize" => Some(result(
            seen,
            &json!({"protocolVersion": "2025-11-25", "capabilities": {"resources": {}}}),
        )),
        "resources/list" => {
            Some(result(seen, &json!({"resources": [{"uri": "a:b", "name": "b"}]})))
        }
        _ => None,
    })
    .await;
    let registry = start([http("x", &peer.url)]);
    let row = until_state(&registry, "x", ServerState::Ready).await;
    assert_eq!((row.inventory.tools.len(), row.inventory.resources.len()), (0, 1));
    assert!(peer.seen().iter().all(|seen| seen.rpc() != "tools/list"));
    registry.close().await;
}
