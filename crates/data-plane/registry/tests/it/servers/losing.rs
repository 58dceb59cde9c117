//! Servers that were ready and are lost: back after a pause, at once, or never (D17).

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use narthex_model::{CallErrorKind, ServerState, Target};
use narthex_policy::{Item, Request};
use narthex_registry::{Registry, ServerRow};
use narthex_testkit::clock::SteppedClock;
use narthex_upstream::{Booked, Hop, LinkError};
use narthex_wire::{Limits, Message};
use serde_json::json;
use tokio::{sync::mpsc, time::Instant};

use crate::{
    peer::{Peer, event, events, result, text},
    world::{
        booking, http, in_time, initialize_result, message, permitted, shell, sse, start,
        until_state,
    },
};

type Streams = Arc<Mutex<Vec<mpsc::Sender<String>>>>;

/// A server over HTTP+SSE, and the streams that it has opened; dropping those loses its clients.
async fn sse_peer() -> (Peer, Streams) {
    let streams = Streams::default();
    let open = streams.clone();
    let peer = Peer::start(move |seen| {
        let say = |text: String| open.lock().unwrap().last().unwrap().try_send(text).unwrap();
        match (seen.method.as_str(), seen.rpc()) {
            ("GET", _) => {
                let (sender, stream) = events();
                open.lock().unwrap().push(sender);
                say("event: endpoint\ndata: /messages\n\n".to_owned());
                return stream;
            }
            (_, "initialize") => say(event(
                &json!({"jsonrpc": "2.0", "id": seen.body["id"], "result": initialize_result()}),
            )),
            (_, "tools/list") => say(event(&json!({"jsonrpc": "2.0", "id": seen.body["id"],
                    "result": {"tools": [{"name": "x"}]}}))),
            _ => {}
        }
        text(202, "text/plain", "")
    })
    .await;
    (peer, streams)
}

pub(super) async fn call(row: &ServerRow) -> Result<(), LinkError> {
    call_tool(row, "x").await
}

pub(super) async fn call_tool(row: &ServerRow, name: &str) -> Result<(), LinkError> {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name}});
    let message = Message::parse(body.to_string().into(), &Limits::default()).unwrap();
    let request = Request::new(row.alias.clone().unwrap(), message, Item::Tool(name.into()));
    let link = row.link.as_ref().unwrap();
    let (slot, admission) = booking();
    let booked = Booked::new(&slot, &admission);
    let forwarding = link.forward(permitted(request), Hop::default(), booked);
    let mut forwarded = in_time(forwarding).await?;
    in_time(forwarded.next()).await.map(drop)
}

/// Waits until a row has a newer link than `before`.
async fn ready_again(registry: &Registry, before: &ServerRow) -> Arc<ServerRow> {
    let old = before.link.clone().unwrap();
    let is_new =
        |row: &Arc<ServerRow>| row.link.as_ref().is_some_and(|link| !Arc::ptr_eq(link, &old));
    let snapshot =
        crate::world::until(registry, |snapshot| snapshot.get(&before.name).is_some_and(is_new));
    snapshot.await.get(&before.name).unwrap().clone()
}

/// D17, R-E8, E72: the attempts come after 1, 2 and 4 seconds, and then the server fails.
#[tokio::test]
async fn d17_a_lost_server_gets_three_attempts_and_then_fails() {
    let (peer, streams) = sse_peer().await;
    let registry = start([sse("x", &peer.url)]);
    until_state(&registry, "x", ServerState::Ready).await;
    // From here on only timers matter: no server listens, so that connections fail at once.
    let clock = SteppedClock::by(Duration::from_millis(10));
    let lost = Instant::now();
    drop((peer, streams));
    let row = until_state(&registry, "x", ServerState::Connecting).await;
    assert!(row.inventory.tool("x").is_some(), "lists stay calm while it reconnects");
    let row = until_state(&registry, "x", ServerState::Error).await;
    let waited = lost.elapsed();
    drop(clock);
    assert!((7..8).contains(&waited.as_secs()), "{waited:?}");
    assert_eq!(row.error.as_ref().unwrap().kind, CallErrorKind::TransportError);
    assert!(message(&row).contains("3 attempts to reconnect failed"), "{}", message(&row));
    assert!(row.inventory.is_empty());
    registry.close().await;
}

#[tokio::test]
async fn d17_a_lost_stream_is_opened_again_after_a_second() {
    let (peer, streams) = sse_peer().await;
    let registry = start([sse("x", &peer.url)]);
    let before = until_state(&registry, "x", ServerState::Ready).await;
    let lost = Instant::now();
    streams.lock().unwrap().clear();
    let row = until_state(&registry, "x", ServerState::Connecting).await;
    assert_eq!(row.activity, Some("reconnecting"));
    let after = ready_again(&registry, &before).await;
    assert!(lost.elapsed() >= Duration::from_secs(1));
    assert!(after.inventory_version > before.inventory_version);
    registry.close().await;
}

#[tokio::test]
async fn e133_a_child_that_crashed_is_started_again() {
    let registry = start([shell("x")]);
    let before = until_state(&registry, "x", ServerState::Ready).await;
    let error = call(&before).await.unwrap_err();
    assert!(error.to_string().contains("exit code 9"), "{error}");
    let after = ready_again(&registry, &before).await;
    let ids = [before, after].map(|row| row.link.as_ref().unwrap().process_id());
    assert_ne!(ids[0], ids[1]);
    registry.close().await;
}

/// A session that the server forgot costs no pause: the server works.
#[tokio::test]
async fn d17_a_forgotten_session_is_opened_again_at_once() {
    let is_first = Arc::new(std::sync::atomic::AtomicBool::new(true));
    let first = is_first.clone();
    let peer = Peer::session(move |seen| match seen.rpc() {
        "tools/list" => Some(result(seen, &json!({"tools": [{"name": "x"}]}))),
        "tools/call" => first
            .swap(false, std::sync::atomic::Ordering::SeqCst)
            .then(|| text(404, "text/plain", "who are you?")),
        _ => None,
    })
    .await;
    let registry = start([http("x", &peer.url)]);
    let before = until_state(&registry, "x", ServerState::Ready).await;
    let clock = SteppedClock::by(Duration::from_millis(10));
    let lost = Instant::now();
    let error = call(&before).await.unwrap_err();
    assert!(matches!(error, LinkError::SessionEnded), "{error}");
    let after = ready_again(&registry, &before).await;
    assert!(lost.elapsed() < Duration::from_secs(1), "{:?}", lost.elapsed());
    drop(clock);
    call(&after).await.unwrap();
    registry.close().await;
}

/// A server over HTTP that answers messages of this method `times` times as if it did not know the
/// session that it has just opened.
async fn forgetful(method: &'static str, times: usize) -> Peer {
    let left = Arc::new(std::sync::atomic::AtomicUsize::new(times));
    Peer::session(move |seen| {
        let forgets = |left: usize| left.checked_sub(1);
        let order = std::sync::atomic::Ordering::SeqCst;
        match seen.rpc() {
            now if now == method && left.fetch_update(order, order, forgets).is_ok() => {
                Some(text(404, "text/plain", "who are you?"))
            }
            "tools/list" => Some(result(seen, &json!({"tools": [{"name": "x"}]}))),
            _ => None,
        }
    })
    .await
}

fn sessions(peer: &Peer) -> usize {
    peer.seen().iter().filter(|seen| seen.rpc() == "initialize").count()
}

/// D17, R-E45: a session that is forgotten before the first list, or before its handshake is over,
/// is opened once more, and no more than once.
#[tokio::test]
async fn d17_a_session_forgotten_at_once_is_reopened_only_once() {
    for method in ["tools/list", "notifications/initialized"] {
        let (once, always) = (forgetful(method, 1).await, forgetful(method, usize::MAX).await);
        let registry = start([http("once", &once.url), http("always", &always.url)]);
        let row = until_state(&registry, "once", ServerState::Ready).await;
        assert!(row.inventory.tool("x").is_some());
        assert_eq!((sessions(&once), row.reconnects), (2, 0), "it was not lost at {method}");
        let row = until_state(&registry, "always", ServerState::Error).await;
        assert!(message(&row).contains("ended the session"), "{}", message(&row));
        assert_eq!(sessions(&always), 2, "at {method}");
        registry.close().await;
    }
}

/// R-E47: headers that are empty after filling in are logged once, by their names alone.
#[tokio::test]
async fn r_e47_an_empty_header_is_logged_once() {
    let peer = forgetful("tools/list", 1).await;
    let mut definition = http("x", &peer.url);
    let Target::Http(target) = &mut definition.target else { unreachable!("it is called") };
    let headers = [("Authorization", "Bearer "), ("X-Empty", ""), ("X-Team", "a b"), ("X-Id", "7")];
    target.headers =
        headers.map(|(name, value)| (name.to_owned(), narthex_model::Secret::new(value))).into();
    let registry = start([definition]);
    let row = until_state(&registry, "x", ServerState::Ready).await;
    assert_eq!(sessions(&peer), 2, "it was tried twice");
    let told = row.log.tail();
    assert_eq!(told.len(), 2, "{told:?}");
    for (line, name) in told.iter().zip(["Authorization", "X-Empty"]) {
        assert!(line.starts_with(&format!("[narthex] the header `{name}` is empty")), "{line}");
        assert!(!line.contains("Bearer"), "{line}");
    }
    registry.close().await;
}
