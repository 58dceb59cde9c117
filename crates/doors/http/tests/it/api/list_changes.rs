//! A test of a server whose lists change without end, and of the warning in its row.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use narthex_registry::Snapshot;
use narthex_testkit::{
    clock::SteppedClock,
    peer::{Peer, event, events, result},
};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::world::{Api, SOON};

/// The open stream of list changes, and the id of its subscription.
type Changes = Arc<Mutex<Option<(mpsc::Sender<String>, Value)>>>;

fn notice(method: &str, subscription: &Value) -> String {
    let meta = json!({ "io.modelcontextprotocol/subscriptionId": subscription });
    let params = json!({ "_meta": meta, "notifications": {} });
    event(&json!({ "jsonrpc": "2.0", "method": method, "params": params }))
}

/// A server that announces a list change after each reading of its tools, while `announces` is
/// true.
async fn announcing(announces: Arc<AtomicBool>) -> Peer {
    let changes = Changes::default();
    Peer::modern(move |seen| match seen.rpc() {
        "subscriptions/listen" => {
            let (sender, stream) = events();
            let id = &seen.body["id"];
            let taken = notice("notifications/subscriptions/acknowledged", id);
            sender.try_send(taken).unwrap();
            *changes.lock().unwrap() = Some((sender, id.clone()));
            Some(stream)
        }
        "tools/list" => {
            let open = changes.lock().unwrap();
            if let Some((sender, id)) = open.as_ref().filter(|_| announces.load(Ordering::SeqCst)) {
                sender.try_send(notice("notifications/tools/list_changed", id)).unwrap();
            }
            Some(result(seen, &json!({ "tools": [] })))
        }
        _ => None,
    })
    .await
}

/// E74: a server that announces a change after each reading is read less and less often. Its row in
/// the API warns about that until the announcements end.
#[tokio::test]
async fn e74_the_row_of_a_server_warns_of_endless_list_changes() {
    let announces = Arc::new(AtomicBool::new(true));
    let peer = announcing(announces.clone()).await;
    let api = Api::over(&json!({ "x": { "transport": "http", "url": peer.url } })).await;
    let warnings = async || api.get("/api/servers/x").await["warnings"].clone();
    assert_eq!(warnings().await, json!([]));
    let registry = api.control.registry();
    let is_warned = |snapshot: &Snapshot| !snapshot.get("x").unwrap().warnings().is_empty();
    // This clock runs fifty times as fast.
    let clock = SteppedClock::by(Duration::from_millis(50));
    assert!(is_warned(&*registry.wait_until(10 * SOON, is_warned).await), "nothing is said of it");
    drop(clock);
    let told = warnings().await.to_string();
    assert!(told.contains("announces changes of its lists too often"), "{told}");
    let readings = peer.seen().iter().filter(|seen| seen.rpc() == "tools/list").count();
    assert!((3..=12).contains(&readings), "each pause is twice the one before: {readings}");
    announces.store(false, Ordering::SeqCst);
    let clock = SteppedClock::by(Duration::from_millis(50));
    let is_calm = |snapshot: &Snapshot| !is_warned(snapshot);
    assert!(is_calm(&*registry.wait_until(10 * SOON, is_calm).await), "it is quiet");
    drop(clock);
    assert_eq!(warnings().await, json!([]));
}
