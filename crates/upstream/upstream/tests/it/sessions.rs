//! The ways in which servers report that a session is over, and answers that only look like it.

use std::time::Duration;

use narthex_testkit::clock::SteppedClock;
use narthex_upstream::{Frame, LinkError};
use serde_json::json;

use super::{
    peer::{Peer, Reply, event, events_of, text},
    world::{World, call, call_to_end, finish, http, in_time},
};

/// R-E45: a server without a stream of its own may answer 404 or 410 to the GET for the stream. The
/// session continues.
#[tokio::test]
async fn r_e45_a_server_without_a_stream_keeps_its_session() {
    for status in [400, 404, 405, 410] {
        let peer = Peer::session(move |seen| match (seen.method.as_str(), seen.rpc()) {
            ("GET", _) => Some(text(status, "text/plain", "Cannot GET /mcp: no session here")),
            _ => None,
        })
        .await;
        let link = World::new().link(&http(&peer.url)).await;
        peer.wait(|seen| seen.method == "GET").await;
        call_to_end(&link, "x", json!({})).await.unwrap();
        assert!(!link.closed().is_cancelled(), "{status}");
    }
}

/// R-E45: a server that refuses `notifications/initialized` works all the same.
#[tokio::test]
async fn r_e45_a_refused_notification_is_no_failed_handshake() {
    for status in [400, 405, 500] {
        let peer = Peer::session(move |seen| {
            let is_it = seen.rpc() == "notifications/initialized";
            is_it.then(|| text(status, "text/plain", "NPE"))
        })
        .await;
        let link = World::new().link(&http(&peer.url)).await;
        call_to_end(&link, "x", json!({})).await.unwrap();
    }
}

/// D37: a call whose stream had started does not count as unsent when its session ends.
#[tokio::test]
async fn d37_a_started_call_is_not_unsent_when_the_session_ends() {
    let peer = Peer::session(|seen| match (seen.method.as_str(), seen.rpc()) {
        ("POST", "tools/call") => {
            let progress = json!({"jsonrpc": "2.0", "method": "notifications/x"});
            Some(events_of(&[format!("id: 7\nretry: 1\n{}", event(&progress))]))
        }
        ("GET", _) if seen.header("last-event-id").is_some() => {
            Some(text(404, "text/plain", "Session not found"))
        }
        ("POST", "ping") => Some(text(404, "text/plain", "Session not found")),
        _ => None,
    })
    .await;
    let link = World::new().link(&http(&peer.url)).await;
    let mut taken = call(&link, "x", json!({})).await.unwrap();
    let error = finish(&mut taken).await.unwrap_err();
    assert!(!error.is_unsent(), "{error}");
    assert!(link.is_session_over());
}

/// R-E45: the frame that was checked for words about the session is delivered, and in its place.
#[tokio::test]
async fn r_e45_the_first_frame_of_a_stream_is_delivered_once_and_first() {
    let peer = Peer::session(|seen| {
        let notice = |n: u64| {
            let params = json!({"n": n});
            event(&json!({"jsonrpc": "2.0", "method": "notifications/x", "params": params}))
        };
        let id = &seen.body["id"];
        let answer = event(&json!({"jsonrpc": "2.0", "id": id, "result": {"content": []}}));
        let is_call = seen.rpc() == "tools/call";
        is_call.then(|| events_of(&[notice(1), notice(2), answer]))
    })
    .await;
    let link = World::new().link(&http(&peer.url)).await;
    // With small steps of the clock, a call's wait for its first frame does not pass on a busy
    // machine.
    let clock = SteppedClock::by(Duration::from_millis(1));
    let mut forwarded = call(&link, "x", json!({})).await.unwrap();
    drop(clock);
    let Some(Ok(Frame::Notification(first))) = forwarded.buffered() else { panic!("a frame") };
    assert!(first.get("n").is_some_and(|n| n.as_u64() == Some(1)));
    let (rest, answer) = finish(&mut forwarded).await.unwrap();
    assert_eq!((rest.len(), &rest[0]["params"]["n"]), (1, &json!(2)));
    assert_eq!(answer["result"], json!({"content": []}));
}

/// D37: of two calls over HTTP+SSE, only the call whose POST is refused counts as unsent.
#[tokio::test]
async fn d37_only_the_refused_call_is_unsent_after_a_forgotten_sse_session() {
    let (sender, stream) = super::peer::events();
    let stream = std::sync::Arc::new(std::sync::Mutex::new(Some(stream)));
    let told = sender.clone();
    let peer = Peer::start(move |seen| match (seen.method.as_str(), seen.rpc()) {
        ("GET", _) => stream.lock().unwrap().take().unwrap(),
        ("POST", "initialize") => {
            let result = super::world::initialize_result();
            let answer = json!({"jsonrpc": "2.0", "id": seen.body["id"], "result": result});
            told.try_send(event(&answer)).unwrap();
            text(202, "text/plain", "")
        }
        ("POST", "tools/call") if seen.body["params"]["name"] == "refused" => {
            text(404, "text/plain", "no such session")
        }
        ("POST", _) => text(202, "text/plain", ""),
        _ => Reply::Never,
    })
    .await;
    sender.try_send("event: endpoint\ndata: /messages\n\n".to_owned()).unwrap();
    let mut server = http(&peer.url);
    if let narthex_model::Target::Http(target) = &mut server.target {
        target.is_sse = true;
    }
    let link = World::new().link(&server).await;
    let mut taken = call(&link, "taken", json!({})).await.unwrap();
    peer.wait(|seen| seen.body["params"]["name"] == "taken").await;
    let mut refused = call(&link, "refused", json!({})).await.unwrap();
    let error = in_time(refused.next()).await.unwrap_err();
    assert!(matches!(error, LinkError::SessionEnded) && error.is_unsent(), "{error}");
    let error = in_time(taken.next()).await.unwrap_err();
    assert!(!error.is_unsent(), "{error}");
}
