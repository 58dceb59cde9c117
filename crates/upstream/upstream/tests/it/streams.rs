//! Streams that break and are resumed, and answers that are too large.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use narthex_testkit::{
    clock::SteppedClock,
    fixture::{Eras, Options, Running},
};
use narthex_upstream::{Frame, LinkError, LinkEvent};
use serde_json::json;

use super::{
    peer::{Peer, Reply, event, events_of, text},
    world::{World, call, call_to_end, http, in_time},
};

fn with_id(id: &str, event: &str) -> String {
    format!("id: {id}\n{event}")
}

#[tokio::test]
async fn e44_a_stream_that_breaks_after_its_priming_event_is_resumed() {
    let id = Arc::new(AtomicU64::new(0));
    let peer = Peer::session(move |seen| {
        if seen.rpc() == "tools/call" {
            id.store(seen.body["id"].as_u64().unwrap(), Ordering::SeqCst);
        }
        let id = id.load(Ordering::SeqCst);
        let answer = event(&json!({"jsonrpc": "2.0", "id": id, "result": {"content": []}}));
        let progress = json!({"jsonrpc": "2.0", "method": "notifications/progress",
            "params": {"progressToken": id, "progress": 1}});
        match (seen.method.as_str(), seen.rpc(), seen.header("last-event-id")) {
            ("POST", "tools/call", _) => {
                Some(events_of(&["id: e1\nretry: 20\ndata: \n\n".to_owned()]))
            }
            ("GET", _, Some("e1")) => Some(events_of(&[with_id("e2", &event(&progress))])),
            ("GET", _, Some("e2")) => Some(events_of(&[with_id("e3", &answer)])),
            _ => None,
        }
    })
    .await;
    let world = World::new();
    let link = world.link(&http(&peer.url)).await;
    let mut forwarded = call(&link, "x", json!({})).await.unwrap();
    peer.wait(|seen| seen.rpc() == "tools/call").await;
    let mut frames = Vec::new();
    loop {
        frames.push(match in_time(forwarded.next()).await.unwrap() {
            Frame::Break { retry_ms } => format!("break {retry_ms:?}"),
            Frame::Notification(_) => "progress".to_owned(),
            Frame::Answer(_) => break,
            Frame::Request(_) => panic!(),
        });
    }
    assert_eq!(frames, ["break Some(20)", "progress", "break Some(20)"]);
    link.stop().await;
    drop((forwarded, link));
    world.drain().await;
}

#[tokio::test]
async fn e44_the_fixtures_stream_is_resumed_too() {
    let running =
        Running::http(Options { eras: Eras::Legacy, ..Options::default() }).await.unwrap();
    let link = World::new().link(&http(&running.url)).await;
    let mut forwarded = call(&link, "test_reconnection", json!({})).await.unwrap();
    assert!(matches!(in_time(forwarded.next()).await.unwrap(), Frame::Break { .. }));
    assert!(matches!(in_time(forwarded.next()).await.unwrap(), Frame::Answer(_)));
}

/// D37: a call whose stream cannot be resumed does not count as unsent, because its server had
/// accepted the request.
#[tokio::test]
async fn d37_a_call_with_an_unresumable_stream_is_not_unsent() {
    let peer = Peer::session(|seen| {
        (seen.rpc() == "tools/call")
            .then(|| events_of(&["id: e1\nretry: 20\ndata: \n\n".to_owned()]))
    })
    .await;
    let world = World::new();
    let link = world.link(&http(&peer.url)).await;
    let mut forwarded = call(&link, "x", json!({})).await.unwrap();
    assert!(matches!(in_time(forwarded.next()).await.unwrap(), Frame::Break { .. }));
    drop(peer);
    let error = loop {
        if let Err(error) = in_time(forwarded.next()).await {
            break error;
        }
    };
    assert!(error.to_string().starts_with("the answer ended too early"), "{error}");
    assert!(error.may_have_acted() && !error.is_unsent(), "{error}");
    assert!(error.is_unreachable(), "{error}");
}

#[tokio::test]
async fn e44_a_modern_stream_is_never_resumed() {
    let peer = Peer::modern(|seen| {
        (seen.rpc() == "tools/call").then(|| events_of(&["id: e1\ndata: \n\n".to_owned()]))
    })
    .await;
    let link = World::new().link(&http(&peer.url)).await;
    let error = call_to_end(&link, "x", json!({})).await.unwrap_err();
    assert!(matches!(error, LinkError::Protocol(_)), "{error}");
    assert!(peer.seen().iter().all(|seen| seen.method == "POST"));
}

#[tokio::test]
async fn s12_an_answer_that_is_too_large_is_refused_while_reading() {
    let large = json!({"jsonrpc": "2.0", "id": 3, "result": {"text": "x".repeat(20_000)}});
    for is_stream in [false, true] {
        let large = large.clone();
        let peer = Peer::session(move |seen| {
            (seen.rpc() == "tools/call").then(|| match is_stream {
                true => events_of(&[event(&large)]),
                false => text(200, "application/json", large.to_string()),
            })
        })
        .await;
        let mut world = World::new();
        world.context.limits.message_bytes = 10_000;
        let link = world.link(&http(&peer.url)).await;
        let error = call_to_end(&link, "x", json!({})).await.unwrap_err();
        assert!(error.to_string().contains("10000 bytes"), "{error}");
    }
}

#[tokio::test]
async fn s16_an_endpoint_event_that_names_another_origin_is_refused() {
    for endpoint in ["http://127.0.0.1:9/messages", "//evil.test/messages", "https://127.0.0.1/"] {
        let peer = Peer::start(move |seen| match seen.method.as_str() {
            "GET" => events_of(&[format!("event: endpoint\ndata: {endpoint}\n\n")]),
            _ => text(404, "text/plain", ""),
        })
        .await;
        let mut definition = http(&peer.url);
        if let narthex_model::Target::Http(target) = &mut definition.target {
            target.is_sse = true;
        }
        let error = World::new().connect(&definition).await.unwrap_err();
        assert!(error.to_string().contains("another origin"), "{endpoint}: {error}");
    }
}

/// The end of a link is reported even if earlier events fill the queue.
#[tokio::test]
async fn e68_the_end_of_a_link_is_not_lost_in_a_full_queue() {
    let peer = Peer::session(|seen| match (seen.method.as_str(), seen.rpc()) {
        ("GET", _) => {
            let change = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
            Some(events_of(&vec![event(&change); 20]))
        }
        ("POST", "tools/call") => Some(text(404, "text/plain", "")),
        _ => None,
    })
    .await;
    let mut world = World::with_queue(4);
    let link = world.link(&http(&peer.url)).await;
    // The client opens the stream again after it has read all events of the first one.
    peer.wait(|seen| seen.method == "GET").await;
    call(&link, "x", json!({})).await.unwrap_err();
    let mut events = Vec::new();
    while !matches!(events.last(), Some(LinkEvent::Closed(_))) {
        events.push(world.event().await);
    }
    assert!(events.len() <= 4);
}

/// A connection that fails during the handshake ends its session at the server.
#[tokio::test]
async fn s31_the_session_of_an_abandoned_connection_is_deleted() {
    let peer =
        Peer::session(|seen| (seen.rpc() == "notifications/initialized").then_some(Reply::Never))
            .await;
    let mut world = World::new();
    let within = std::time::Duration::from_secs(30);
    world.context.deadlines.connect = within;
    let server = http(&peer.url);
    let half_way = async {
        peer.wait(|seen| seen.rpc() == "notifications/initialized").await;
        tokio::time::pause();
        tokio::time::advance(within).await;
        tokio::time::resume();
    };
    let (connected, ()) = tokio::join!(world.connect(&server), half_way);
    connected.unwrap_err();
    let deleted = peer.wait(|seen| seen.method == "DELETE").await;
    assert_eq!(deleted.header("mcp-session-id"), Some("s-1"));
    world.drain().await;
}

/// Some servers send the head of the stream's answer only together with the first message.
#[tokio::test]
async fn e75_a_stream_that_opens_slowly_does_not_delay_the_handshake() {
    let peer = Peer::session(|seen| (seen.method == "GET").then_some(Reply::Never)).await;
    let world = World::new();
    let link = world.link(&http(&peer.url)).await;
    peer.wait(|seen| seen.method == "GET").await;
    call_to_end(&link, "x", json!({})).await.unwrap();
    link.stop().await;
    drop(link);
    world.drain().await;
}

/// R-E43, R-E46: after the handshake each request names the revision and the session, and accepts
/// both kinds of answers. The link ends the session at the server exactly once.
#[tokio::test]
async fn r_e43_requests_carry_session_and_revision() {
    let peer = Peer::session(|_| None).await;
    let world = World::new();
    let link = world.link(&http(&peer.url)).await;
    call_to_end(&link, "x", json!({})).await.unwrap();
    link.stop().await;
    link.stop().await;
    drop(link);
    world.drain().await;
    let seen = peer.seen();
    let after = seen.iter().position(|seen| seen.rpc() == "notifications/initialized").unwrap();
    for request in &seen[after..] {
        assert_eq!(request.header("mcp-session-id"), Some("s-1"), "{request:?}");
        assert_eq!(request.header("mcp-protocol-version"), Some("2025-11-25"), "{request:?}");
        let accept = request.header("accept").unwrap_or_default();
        let is_right = match request.method.as_str() {
            "POST" => accept.contains("application/json") && accept.contains("text/event-stream"),
            "GET" => accept == "text/event-stream",
            _ => true,
        };
        assert!(is_right, "{request:?}");
    }
    assert_eq!(seen.iter().filter(|seen| seen.method == "DELETE").count(), 1);
}

/// R-E44: the link asks a server without a stream of its own only once for the stream. If a
/// server's stream is always empty, the link asks with growing pauses, even if the server wants no
/// pause.
#[tokio::test]
async fn r_e44_an_empty_stream_is_not_reopened_in_a_loop() {
    let without = Peer::session(|_| None).await;
    let empty = Peer::session(|seen| {
        (seen.method == "GET").then(|| events_of(&["retry: 0\n\n".to_owned()]))
    })
    .await;
    let world = World::new();
    let links = [world.link(&http(&without.url)).await, world.link(&http(&empty.url)).await];
    let gets = |peer: &Peer| peer.seen().iter().filter(|seen| seen.method == "GET").count();
    let first = empty.wait(|seen| seen.method == "GET").await;
    assert_eq!(first.header("last-event-id"), None);
    let clock = SteppedClock::by(std::time::Duration::from_millis(200));
    let began = tokio::time::Instant::now();
    let mut ticks = tokio::time::interval(std::time::Duration::from_millis(100));
    while began.elapsed() < std::time::Duration::from_secs(600) {
        ticks.tick().await;
    }
    drop(clock);
    assert_eq!(gets(&without), 1, "405 is an answer");
    let asked = gets(&empty);
    assert!((5..=25).contains(&asked), "{asked} times in 10 minutes");
    for link in links {
        call_to_end(&link, "x", json!({})).await.unwrap();
        link.stop().await;
        drop(link);
    }
    world.drain().await;
}

/// R-E44: a broken stream is resumed from the last event that arrived.
#[tokio::test]
async fn r_e44_the_servers_own_stream_is_resumed_from_its_last_event() {
    let peer = Peer::session(|seen| {
        (seen.method == "GET").then(|| match seen.header("last-event-id") {
            None => events_of(&[
                "retry: 1\n\n".to_owned(),
                with_id("e-7", &event(&json!({"jsonrpc": "2.0", "method": "notifications/one"}))),
            ]),
            Some(_) => Reply::Never,
        })
    })
    .await;
    let mut world = World::new();
    let link = world.link(&http(&peer.url)).await;
    let LinkEvent::Notification(one) = world.event().await else { panic!("no notification") };
    assert_eq!(one.method(), "notifications/one");
    peer.wait(|seen| seen.header("last-event-id") == Some("e-7")).await;
    link.stop().await;
    drop(link);
    world.drain().await;
}
