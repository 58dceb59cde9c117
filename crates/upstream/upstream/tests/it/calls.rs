//! Calls over every transport and era: progress, cancellation, questions, the end of a session.

use std::sync::Arc;

use narthex_model::CallErrorKind;
use narthex_testkit::fixture::{Eras, Fixture, Options, Running, sse};
use narthex_upstream::{Frame, Link, LinkError, LinkEvent};
use narthex_wire::rpc;
use serde_json::{Value, json};
use tokio::{net::TcpListener, task::JoinSet};

use super::{
    peer::{Peer, Reply, error, event, events, result, text},
    world::{
        World, call, call_to_end, fixture_process, forward, http, in_time, initialize_result,
        text_of, value,
    },
};

/// The fixture on every transport and in every era, each with a link to it.
struct Everywhere {
    links: Vec<(&'static str, Link)>,
    world: World,
    _running: Vec<Running>,
    _tasks: JoinSet<()>,
}

impl Everywhere {
    async fn start() -> Self {
        let world = World::new();
        let mut tasks = JoinSet::new();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let sse_url = format!("http://{}/sse", listener.local_addr().unwrap());
        tasks.spawn(sse::serve(Fixture::new(Options::default()), listener));
        let mut running = Vec::new();
        for eras in [Eras::Legacy, Eras::Modern] {
            running.push(Running::http(Options { eras, ..Options::default() }).await.unwrap());
        }
        let definitions = [
            ("stdio legacy", fixture_process("legacy")),
            ("stdio modern", fixture_process("modern")),
            ("http legacy", http(&running[0].url)),
            ("http modern", http(&running[1].url)),
            ("sse", http(sse_url)),
        ];
        let mut links = Vec::new();
        for (name, definition) in definitions {
            links.push((name, world.link(&definition).await));
        }
        Self { links, world, _running: running, _tasks: tasks }
    }

    async fn stop(self) {
        for (_, link) in &self.links {
            link.stop().await;
        }
        drop(self.links);
        self.world.drain().await;
    }
}

/// E85: progress arrives before the answer, under a token of the link instead of the caller's
/// token.
#[tokio::test]
async fn e44_progress_arrives_before_the_answer_with_a_token_of_the_link() {
    let everywhere = Everywhere::start().await;
    for (name, link) in &everywhere.links {
        let (notifications, answer) =
            call_to_end(link, "progress", json!({"count": 3})).await.unwrap();
        let steps: Vec<_> =
            notifications.iter().map(|one| one["params"]["progress"].clone()).collect();
        assert_eq!(steps, [1, 2, 3], "{name}");
        assert_ne!(notifications[0]["params"]["progressToken"], "theirs", "{name}");
        assert_eq!(answer["result"]["content"][0]["text"], "Reported 3 times", "{name}");
    }
    everywhere.stop().await;
}

async fn wait_for_one_cancelled(link: &Link) {
    let mut cancelled = json!(0);
    while cancelled != 1 {
        let counts = text_of(link, "fixture_stats", json!({})).await;
        cancelled = serde_json::from_str::<Value>(&counts).unwrap()["cancelled"].take();
    }
}

#[tokio::test]
async fn e44_a_call_that_is_dropped_is_cancelled_at_the_server() {
    let everywhere = Everywhere::start().await;
    for (name, link) in &everywhere.links {
        let mut sleeping = call(link, "sleep", json!({"ms": 600_000})).await.unwrap();
        // Waits until the call has reached the server, before the test drops the call.
        text_of(link, "echo", json!({"message": "x"})).await;
        tokio::select! {
            biased;
            frame = sleeping.next() => panic!("{name}: {frame:?}"),
            () = std::future::ready(()) => {}
        }
        drop(sleeping);
        in_time(Box::pin(wait_for_one_cancelled(link))).await;
    }
    everywhere.stop().await;
}

#[tokio::test]
async fn e44_a_cancellation_to_a_legacy_server_has_the_id_of_the_link() {
    let (sender, stream) = events();
    let stream = Arc::new(std::sync::Mutex::new(Some(stream)));
    let peer = Peer::session(move |seen| match seen.rpc() {
        "tools/call" => stream.lock().unwrap().take(),
        _ => None,
    })
    .await;
    let world = World::new();
    let link = world.link(&http(&peer.url)).await;
    let sleeping = call(&link, "x", json!({})).await.unwrap();
    let id = peer.wait(|seen| seen.rpc() == "tools/call").await.body["id"].clone();
    drop(sleeping);
    let cancelled = peer.wait(|seen| seen.rpc() == "notifications/cancelled").await;
    assert_eq!(cancelled.body["params"]["requestId"], id);
    assert_eq!(cancelled.header("mcp-session-id"), Some("s-1"));
    in_time(sender.closed()).await;
    link.stop().await;
    drop(link);
    world.drain().await;
}

/// A server that does not accept the cancellation must not delay the end of the link.
#[tokio::test]
async fn s31_an_unanswered_cancellation_ends_with_the_link() {
    let peer = Peer::session(|seen| match seen.rpc() {
        "tools/call" => Some(events().1),
        "notifications/cancelled" => Some(Reply::Never),
        _ => None,
    })
    .await;
    let world = World::new();
    let link = world.link(&http(&peer.url)).await;
    // The stream of this reply ends at once, and has no answer.
    let error = call_to_end(&link, "x", json!({})).await.unwrap_err();
    assert!(matches!(error, LinkError::Protocol(_)), "{error}");
    peer.wait(|seen| seen.rpc() == "notifications/cancelled").await;
    link.stop().await;
    world.drain().await;
}

#[tokio::test]
async fn e44_a_session_that_the_server_forgot_is_a_distinct_error() {
    let peer = Peer::session(|seen| {
        (seen.rpc() == "tools/call").then(|| text(404, "application/json", r#"{"error":"gone"}"#))
    })
    .await;
    let mut world = World::new();
    let link = world.link(&http(&peer.url)).await;
    for _ in 0..2 {
        let error = call(&link, "x", json!({})).await.unwrap_err();
        assert!(matches!(error, LinkError::SessionEnded) && error.is_unsent(), "{error}");
    }
    assert!(link.is_session_over());
    assert_eq!(world.closed().await, "the server ended the session");
    link.stop().await;
    assert!(peer.seen().iter().all(|seen| seen.method != "DELETE"), "there is nothing to end");
}

#[tokio::test]
async fn e44_a_404_of_a_modern_server_is_the_answer_to_one_request() {
    let peer = Peer::modern(|seen| (seen.rpc() == "x/y").then(|| error(404, seen, -32601))).await;
    let link = World::new().link(&http(&peer.url)).await;
    let mut forwarded = forward(&link, "x/y", json!({})).await.unwrap();
    let Frame::Answer(answer) = in_time(forwarded.next()).await.unwrap() else { panic!() };
    assert_eq!(answer.error_code(), Some(-32601));
    assert!(!link.closed().is_cancelled());
}

/// A later redirect of the server within its origin makes no call fail.
#[tokio::test]
async fn e44_a_server_that_moves_is_followed() {
    let has_moved = Arc::<std::sync::atomic::AtomicBool>::default();
    let moved = has_moved.clone();
    let peer = Peer::legacy(move |seen| {
        if seen.path == "/new" {
            return Some(result(seen, &json!({"content": []})));
        }
        moved.load(std::sync::atomic::Ordering::SeqCst).then(|| {
            let Reply::Now(mut reply) = text(308, "text/plain", "") else { unreachable!() };
            reply.headers_mut().insert("location", "/new".parse().unwrap());
            Reply::Now(reply)
        })
    })
    .await;
    let link = World::new().link(&http(&peer.url)).await;
    has_moved.store(true, std::sync::atomic::Ordering::SeqCst);
    call_to_end(&link, "x", json!({})).await.unwrap();
    let sent = peer.seen().into_iter().filter(|seen| seen.rpc() == "tools/call");
    let paths: Vec<_> = sent.map(|seen| seen.path).collect();
    assert_eq!(paths, ["/mcp", "/new"], "the redirect was read, so its path gets nothing more");
}

#[tokio::test]
async fn e44_questions_on_the_stream_of_a_call_are_frames_and_pings_are_answered() {
    let (sender, stream) = events();
    let stream = Arc::new(std::sync::Mutex::new(Some(stream)));
    let peer = Peer::session(move |seen| match seen.rpc() {
        "tools/call" => stream.lock().unwrap().take(),
        _ => None,
    })
    .await;
    let world = World::new();
    let link = world.link(&http(&peer.url)).await;
    let mut forwarded = call(&link, "x", json!({})).await.unwrap();
    let id = peer.wait(|seen| seen.rpc() == "tools/call").await.body["id"].clone();
    for message in [
        json!({"jsonrpc": "2.0", "id": "p", "method": "ping"}),
        json!({"jsonrpc": "2.0", "id": "q", "method": "roots/list"}),
    ] {
        sender.send(event(&message)).await.unwrap();
    }
    let Frame::Request(question) = in_time(forwarded.next()).await.unwrap() else { panic!() };
    let answer = rpc::result_response(question.id().unwrap(), &bytes::Bytes::from_static(b"{}"));
    in_time(link.respond(answer)).await.unwrap();
    for id in ["p", "q"] {
        peer.wait(|seen| seen.body == json!({"jsonrpc": "2.0", "id": id, "result": {}})).await;
    }
    let answer = json!({"jsonrpc": "2.0", "id": id, "result": {}});
    sender.send(event(&answer)).await.unwrap();
    let Frame::Answer(found) = in_time(forwarded.next()).await.unwrap() else { panic!() };
    assert_eq!(value(&found), answer);
}

#[tokio::test]
async fn e44_the_servers_own_stream_is_open_before_the_first_call() {
    let (sender, stream) = events();
    let stream = Arc::new(std::sync::Mutex::new(Some(stream)));
    let peer = Peer::session(move |seen| match seen.method.as_str() {
        "GET" => stream.lock().unwrap().take(),
        _ => None,
    })
    .await;
    let mut world = World::new();
    let link = world.link(&http(&peer.url)).await;
    call_to_end(&link, "x", json!({})).await.unwrap();
    let steps: Vec<_> =
        peer.seen().iter().map(|seen| format!("{} {}", seen.method, seen.rpc())).collect();
    let order = [
        "POST server/discover",
        "POST initialize",
        "POST notifications/initialized",
        "GET ",
        "POST tools/call",
    ];
    assert_eq!(steps, order);
    for message in [
        json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}),
        json!({"jsonrpc": "2.0", "id": 2, "method": "roots/list"}),
        json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}),
    ] {
        sender.send(event(&message)).await.unwrap();
    }
    peer.wait(|seen| seen.body == json!({"jsonrpc": "2.0", "id": 1, "result": {}})).await;
    let LinkEvent::Request(question) = world.event().await else { panic!() };
    assert_eq!(question.method(), "roots/list");
    let LinkEvent::Notification(_) = world.event().await else { panic!() };
    link.stop().await;
    peer.wait(|seen| seen.method == "DELETE").await;
    drop(link);
    world.drain().await;
}

/// Over HTTP+SSE, a message that the server refuses, or answers badly, fails only its own call.
#[tokio::test]
async fn e44_a_message_refused_over_http_sse_fails_only_its_own_call() {
    let (sender, stream) = events();
    let stream = Arc::new(std::sync::Mutex::new(Some(stream)));
    let answers = sender.clone();
    let peer = Peer::start(move |seen| {
        let answer = |result: Value| {
            let message = json!({"jsonrpc": "2.0", "id": seen.body["id"], "result": result});
            answers.try_send(event(&message)).unwrap();
            text(202, "text/plain", "Accepted")
        };
        match (seen.method.as_str(), seen.rpc()) {
            ("GET", _) => stream.lock().unwrap().take().unwrap_or(Reply::Never),
            ("POST", "initialize") => answer(initialize_result()),
            ("POST", "tools/call") if seen.body["params"]["name"] == "bad" => {
                text(400, "text/plain", "no")
            }
            ("POST", "tools/call") if seen.body["params"]["name"] == "odd" => {
                let (id, no) = (&seen.body["id"], json!({"code": -32601, "message": "no"}));
                let both = json!({"jsonrpc": "2.0", "id": id, "result": {}, "error": no});
                answers.try_send(event(&both)).unwrap();
                text(202, "text/plain", "Accepted")
            }
            ("POST", "tools/call") => answer(json!({"content": []})),
            _ => text(202, "text/plain", ""),
        }
    })
    .await;
    sender.send("event: endpoint\ndata: /messages\n\n".to_owned()).await.unwrap();
    let mut definition = http(&peer.url);
    if let narthex_model::Target::Http(target) = &mut definition.target {
        target.is_sse = true;
    }
    let mut world = World::new();
    let link = world.link(&definition).await;
    let error = call_to_end(&link, "bad", json!({})).await.unwrap_err();
    assert!(matches!(error, LinkError::Status { status: 400, .. }), "{error}");
    let error = call_to_end(&link, "odd", json!({})).await.unwrap_err();
    assert!(matches!(error, LinkError::Protocol(_)), "{error}");
    call_to_end(&link, "good", json!({})).await.unwrap();
    sender.send(event(&json!({"jsonrpc": "2.0", "id": 9, "method": "ping"}))).await.unwrap();
    peer.wait(|seen| seen.body == json!({"jsonrpc": "2.0", "id": 9, "result": {}})).await;
    link.stop().await;
    assert_eq!(world.closed().await, "it was stopped");
    drop(link);
    world.drain().await;
}

/// The error of a server that accepts no more requests has the server's text and the time until the
/// next try.
#[tokio::test]
async fn e48_http_429_is_reported_with_its_text_and_retry_time() {
    let peer = Peer::legacy(|seen| {
        (seen.rpc() == "tools/call").then(|| {
            let mut reply = text(429, "text/markdown", "slow down, 60 a minute");
            if let Reply::Now(response) = &mut reply {
                response.headers_mut().insert("retry-after", "7".parse().unwrap());
            }
            reply
        })
    })
    .await;
    let link = World::new().link(&http(&peer.url)).await;
    let error = call(&link, "x", json!({})).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the server answered HTTP 429, too many requests: slow down, 60 a minute; \
         try again after 7 s"
    );
    assert_eq!(error.call_kind(), CallErrorKind::LimitExceeded);
    assert_eq!(error.retry_after(), Some(std::time::Duration::from_secs(7)));
    link.stop().await;
}

/// E48: HTTP 429, and 503 with a time, fail the call whatever JSON-RPC error is in the body.
/// Otherwise, such an error is the server's own answer.
#[tokio::test]
async fn e48_http_429_and_503_keep_their_retry_time_with_any_body() {
    let peer = Peer::legacy(|seen| {
        let (status, id, when) = match seen.body["params"]["name"].as_str()? {
            "429" => (429, seen.body["id"].clone(), Some("7")),
            "429 null" => (429, Value::Null, Some("7")),
            "429 bare" => (429, Value::Null, None),
            "503" => (503, seen.body["id"].clone(), Some("7")),
            _ => (503, seen.body["id"].clone(), None),
        };
        let error = json!({"code": -32000, "message": "slow down"});
        let body = json!({"jsonrpc": "2.0", "id": id, "error": error});
        let mut reply = text(status, "application/json", body.to_string());
        if let (Reply::Now(response), Some(when)) = (&mut reply, when) {
            response.headers_mut().insert("retry-after", when.parse().unwrap());
        }
        Some(reply)
    })
    .await;
    let link = World::new().link(&http(&peer.url)).await;
    for (name, kind, details) in [
        ("429", CallErrorKind::LimitExceeded, json!({"status": 429, "retry_after_ms": 7000})),
        ("429 null", CallErrorKind::LimitExceeded, json!({"status": 429, "retry_after_ms": 7000})),
        ("429 bare", CallErrorKind::LimitExceeded, json!({"status": 429})),
        ("503", CallErrorKind::TransportError, json!({"status": 503, "retry_after_ms": 7000})),
    ] {
        let mut details = details;
        details["code"] = json!(-32000);
        let error = call(&link, name, json!({})).await.unwrap_err();
        assert_eq!((error.call_kind(), error.details()), (kind, Some(details)), "{name}");
        assert!(error.to_string().contains(": slow down"), "{error}");
    }
    let message = call(&link, "503 bare", json!({})).await.unwrap();
    assert_eq!(message.error_code(), Some(-32000), "an answer of the server");
    link.stop().await;
}

/// E63: the error for an answer that is no JSON names the answer's status and media type.
#[tokio::test]
async fn e63_an_answer_that_is_no_json_is_named() {
    let peer = Peer::legacy(|seen| {
        Some(match seen.body["params"]["name"].as_str()? {
            "page" => text(200, "Text/HTML; charset=utf-8", "<html>Welcome</html>"),
            "claimed" => text(200, "application/json", "\n<!DOCTYPE html><p>Welcome"),
            "text" => text(200, "text/plain", "Welcome"),
            "empty" => text(200, "application/json", ""),
            "refused" => text(502, "text/html", "<html>bad gateway</html>"),
            _ => text(200, "application/json", "{"),
        })
    })
    .await;
    let link = World::new().link(&http(&peer.url)).await;
    let unusable = "the server sent an unusable answer: ";
    for (name, expected) in [
        ("page", "HTTP 200 with HTML instead of JSON (`text/html`)"),
        ("claimed", "HTTP 200 with HTML instead of JSON (`application/json`)"),
        ("text", "HTTP 200 with `text/plain` instead of JSON: Welcome"),
        ("empty", "HTTP 200 with an empty body"),
    ] {
        let error = call(&link, name, json!({})).await.unwrap_err();
        assert_eq!(error.to_string(), format!("{unusable}{expected}"));
    }
    let error = call(&link, "refused", json!({})).await.unwrap_err();
    let expected = "the server answered HTTP 502: HTML instead of JSON (`text/html`)";
    assert_eq!(error.to_string(), expected);
    let error = call(&link, "broken", json!({})).await.unwrap_err();
    assert!(error.to_string().contains("not valid JSON"), "{error}");
    link.stop().await;
}
