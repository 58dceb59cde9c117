//! Number of deliveries of a call: servers that end sessions in various ways, and redirects.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

use narthex_gateway::GatewayOptions;
use narthex_registry::config::Entry;
use narthex_testkit::peer::{
    Peer, Reply, Seen, events_of, initialize_result, legacy_reply, result, text,
};
use serde_json::{Value, json};

use super::world::{World, http_server, transparent};

/// Ways in which a server refuses messages of an unknown session.
const WAYS: [(&str, u16, &str, &str); 16] = [
    ("404 without words", 404, "text/html", "<html>nope</html>"),
    ("410", 410, "text/plain", "gone"),
    (
        "the example servers of TypeScript",
        400,
        "application/json",
        concat!(
            r#"{"jsonrpc":"2.0","error":{"code":-32000,"#,
            r#""message":"Bad Request: No valid session ID provided"},"id":null}"#,
        ),
    ),
    (
        "one transport of TypeScript, started anew",
        400,
        "application/json",
        concat!(
            r#"{"jsonrpc":"2.0","error":{"code":-32000,"#,
            r#""message":"Bad Request: Server not initialized"},"id":null}"#,
        ),
    ),
    ("400 as text", 400, "text/plain", "Invalid or missing session ID"),
    ("401", 401, "text/plain", "Unauthorized: Session not found"),
    ("500", 500, "text/plain", "Internal Server Error: unknown session"),
    (
        "200 and an error",
        200,
        "application/json",
        r#"{"jsonrpc":"2.0","error":{"code":-32001,"message":"Session not found"},"id":ID}"#,
    ),
    (
        "200 and an error without an id",
        200,
        "application/json",
        r#"{"jsonrpc":"2.0","error":{"code":-32600,"message":"Session terminated"},"id":null}"#,
    ),
    ("200 and no JSON-RPC", 200, "application/json", r#"{"error":"Session not found"}"#),
    (
        "an event with an error",
        200,
        "text/event-stream",
        "data: {\"jsonrpc\":\"2.0\",\"error\":{\"code\":-32001,\"message\":\"Session not found\"},\
         \"id\":ID}\n\n",
    ),
    (
        "an event that is no JSON-RPC",
        200,
        "text/event-stream",
        "event: message\ndata: {\"error\":\"Session not found\"}\n\n",
    ),
    (
        "200 without a handshake",
        200,
        "application/json",
        concat!(
            r#"{"jsonrpc":"2.0","id":ID,"error":{"code":-32602,"#,
            r#""message":"Received request before initialization was complete"}}"#,
        ),
    ),
    (
        PYTHON,
        200,
        "text/event-stream",
        concat!(
            "event: message\r\ndata: ",
            r#"{"jsonrpc":"2.0","id":ID,"error":{"code":-32602,"#,
            r#""message":"Received request before initialization was complete"}}"#,
            "\r\n\r\n",
        ),
    ),
    ("200 and a code", 200, "application/json", r#"{"error":"session_not_found"}"#),
    ("an event of another name", 200, "text/event-stream", "event: error\ndata: session gone\n\n"),
];

/// Refusals that name no session: the server may have acted on the call.
const WITHOUT_A_REASON: [(u16, &str, &str); 9] = [
    (400, "text/plain", "KeyError"),
    (500, "text/plain", "KeyError"),
    (422, "application/json", r#"{"detail":"invalid"}"#),
    (502, "text/html", "<html>bad gateway</html>"),
    (503, "text/plain", ""),
    (200, "application/json", r#"{"error":"no"}"#),
    (200, "text/event-stream", "event: error\ndata: no\n\n"),
    (
        200,
        "application/json",
        r#"{"jsonrpc":"2.0","error":{"code":-32603,"message":"no"},"id":null}"#,
    ),
    (409, "text/plain", "no"),
];
/// The SDK answers a ping before the handshake, too.
const PYTHON: &str = "the Python SDK";

/// The replies of an ordinary server with one tool.
fn reply(seen: &Seen, session: Option<&str>) -> Reply {
    let tools = json!([{"name": "go", "inputSchema": {"type": "object"}}]);
    match seen.rpc() {
        "tools/list" => result(seen, &json!({"tools": tools})),
        _ => legacy_reply(seen, session),
    }
}

/// The answer that opens session `number`.
fn opening(seen: &Seen, revision: &str, number: u64) -> Reply {
    let mut about = initialize_result();
    about["protocolVersion"] = revision.into();
    let Reply::Now(mut response) = result(seen, &about) else { unreachable!("an answer") };
    response.headers_mut().insert("mcp-session-id", format!("s-{number}").parse().unwrap());
    Reply::Now(response)
}

/// A server with one session at a time, named by a number that tests may raise.
struct Forgetful {
    peer: Peer,
    current: Arc<AtomicU64>,
    /// True if the server knows each session that was opened since it last forgot all sessions.
    many: Arc<AtomicBool>,
    forgotten: Arc<AtomicU64>,
}

impl Forgetful {
    /// Starts a server; `refuse` answers messages of a session that is not the current one.
    async fn start(refuse: impl Fn(&Seen) -> Reply + Clone + Send + Sync + 'static) -> Self {
        Self::of("2025-11-25", refuse).await
    }

    /// As [`Self::start`], at this revision.
    async fn of(
        revision: &'static str,
        refuse: impl Fn(&Seen) -> Reply + Clone + Send + Sync + 'static,
    ) -> Self {
        let current = Arc::<AtomicU64>::default();
        let (many, forgotten) = (Arc::<AtomicBool>::default(), Arc::<AtomicU64>::default());
        let (known, all, gone) = (current.clone(), many.clone(), forgotten.clone());
        let peer = Peer::start(move |seen| {
            let session = seen.header("mcp-session-id").and_then(|id| id.strip_prefix("s-"));
            let session = session.and_then(|number| number.parse::<u64>().ok());
            let Some(session) = session.filter(|_| seen.method == "POST") else {
                if seen.rpc() == "initialize" {
                    let opened = known.fetch_add(1, Ordering::SeqCst) + 1;
                    return opening(seen, revision, opened);
                }
                return reply(seen, None);
            };
            let is_known = match all.load(Ordering::SeqCst) {
                true => session > gone.load(Ordering::SeqCst),
                false => session == known.load(Ordering::SeqCst),
            };
            if is_known { reply(seen, None) } else { refuse(seen) }
        })
        .await;
        Self { peer, current, many, forgotten }
    }

    fn forget(&self) {
        let last = self.current.fetch_add(1, Ordering::SeqCst);
        self.forgotten.store(last + 1, Ordering::SeqCst);
    }

    fn count(&self, rpc: &str) -> usize {
        self.peer.seen().iter().filter(|seen| seen.rpc() == rpc).count()
    }

    async fn world(&self) -> World {
        let entry = Entry::Server(http_server("one", &self.peer.url));
        World::settled(vec![entry], GatewayOptions::default()).await
    }
}

async fn call(world: &World, caller: &narthex_gateway::Caller) -> Value {
    world.ask(caller, "tools/call", json!({"name": "go", "arguments": {}})).await
}

/// R-E45: an ended session fails no call, in whatever way the server reports the end.
#[tokio::test]
async fn r_e45_a_call_in_an_ended_session_is_sent_again_once_in_one_new_session() {
    for (way, status, kind, body) in WAYS {
        let server = Forgetful::start(move |seen| match (way, seen.rpc()) {
            (PYTHON, "ping") => reply(seen, None),
            _ => text(status, kind, body.replace("ID", &seen.body["id"].to_string())),
        })
        .await;
        let world = server.world().await;
        let caller = world.modern_caller(transparent("one"));
        let answer = call(&world, &caller).await;
        assert_eq!(answer["result"]["content"], json!([]), "{way}: {answer}");
        server.forget();
        for _ in 0..2 {
            let answer = call(&world, &caller).await;
            assert_eq!(answer["result"]["content"], json!([]), "{way}: {answer}");
        }
        assert_eq!(server.count("initialize"), 2, "{way}");
        assert_eq!(server.count("tools/call"), 4, "{way}: one was refused, and sent once more");
        world.gateway.drain().await;
    }
}

/// R-E45: the same words from a tool, in a session that has not ended, are the tool's answer.
#[tokio::test]
async fn r_e45_a_tools_text_about_a_lost_session_is_the_tools_answer() {
    for (way, status, kind, body) in WAYS.into_iter().filter(|way| !matches!(way.1, 404 | 410)) {
        let peer = Peer::session(move |seen| {
            let answer = || text(status, kind, body.replace("ID", &seen.body["id"].to_string()));
            match seen.rpc() {
                "tools/call" => Some(answer()),
                "tools/list" => Some(reply(seen, None)),
                _ => None,
            }
        })
        .await;
        let entry = Entry::Server(http_server("one", &peer.url));
        let world = World::settled(vec![entry], GatewayOptions::default()).await;
        let caller = world.modern_caller(transparent("one"));
        let answer = call(&world, &caller).await;
        let is_error = !answer["error"].is_null() || answer["result"]["isError"] == true;
        assert!(is_error, "{way}: {answer}");
        let count = |rpc: &str| peer.seen().iter().filter(|seen| seen.rpc() == rpc).count();
        assert_eq!((count("tools/call"), count("initialize")), (1, 1), "{way}");
        world.gateway.drain().await;
    }
}

/// R-E45: a refusal that names no reason may come from a server that has acted on the call. The
/// gateway does not send the call again, and the next call has a new session. This holds on the
/// shared link, and on a session's own link.
#[tokio::test]
async fn r_e45_a_call_refused_without_a_reason_is_not_sent_again() {
    for (status, kind, body) in WITHOUT_A_REASON {
        for is_own in [false, true] {
            let way = format!("{status} {body}, own: {is_own}");
            let server = Forgetful::start(move |_| text(status, kind, body)).await;
            server.many.store(true, Ordering::SeqCst);
            let world = server.world().await;
            let caller = match is_own {
                true => {
                    let asked = json!({"roots": {}, "elicitation": {}});
                    world.legacy_caller_with(transparent("one"), asked).await
                }
                false => world.modern_caller(transparent("one")),
            };
            assert_eq!(call(&world, &caller).await["result"]["content"], json!([]), "{way}");
            let (calls, opened) = (server.count("tools/call"), server.count("initialize"));
            server.forget();
            let answer = call(&world, &caller).await;
            let is_error = !answer["error"].is_null() || answer["result"]["isError"] == true;
            assert!(is_error, "{way}: {answer}");
            assert_eq!(server.count("tools/call") - calls, 1, "{way}");
            let answer = call(&world, &caller).await;
            assert_eq!(answer["result"]["content"], json!([]), "{way}: {answer}");
            assert_eq!(server.count("tools/call") - calls, 2, "{way}");
            assert!(server.count("initialize") > opened, "{way}");
            world.gateway.drain().await;
        }
    }
}

/// R-E45: an answer of a server to one call does not end a session in which the server answers, and
/// the session keeps its state at the server.
#[tokio::test]
async fn r_e45_a_refused_call_does_not_end_its_session() {
    for (status, kind, body) in WITHOUT_A_REASON {
        let peer = Peer::session(move |seen| match seen.rpc() {
            "tools/call" => Some(text(status, kind, body)),
            "tools/list" => Some(reply(seen, None)),
            _ => None,
        })
        .await;
        let entry = Entry::Server(http_server("one", &peer.url));
        let world = World::settled(vec![entry], GatewayOptions::default()).await;
        let asked = json!({"roots": {}, "elicitation": {}});
        let caller = world.legacy_caller_with(transparent("one"), asked).await;
        for _ in 0..3 {
            call(&world, &caller).await;
        }
        let count = |rpc: &str| peer.seen().iter().filter(|seen| seen.rpc() == rpc).count();
        assert_eq!((count("tools/call"), count("initialize")), (3, 2), "{status} {body}");
        world.gateway.drain().await;
    }
}

/// R-E45: the link that legacy sessions of one revision share is opened again after its session has
/// ended.
#[tokio::test]
async fn r_e45_a_shared_link_is_opened_again_after_its_session_ended() {
    let refuse = |_: &Seen| text(404, "text/plain", "Session not found");
    let server = Forgetful::of("2025-06-18", refuse).await;
    server.many.store(true, Ordering::SeqCst);
    let world = server.world().await;
    let caller = world.legacy_caller(transparent("one")).await;
    for _ in 0..3 {
        let answer = call(&world, &caller).await;
        assert_eq!(answer["result"]["content"], json!([]), "{answer}");
        server.forget();
    }
    world.gateway.drain().await;
}

/// D37: a call that got any answer was delivered, also if the answer is a redirect.
#[tokio::test]
async fn d37_an_answered_call_is_not_sent_again() {
    let elsewhere = Peer::start(|_| text(200, "text/plain", "caught")).await;
    let target = elsewhere.url.clone();
    let redirect = move |status: u16, to: &str| {
        let Reply::Now(mut reply) = text(status, "text/plain", "") else { unreachable!() };
        reply.headers_mut().insert("location", to.parse().unwrap());
        Reply::Now(reply)
    };
    let broken = || {
        let Reply::Now(mut reply) = events_of(&[]) else { unreachable!() };
        *reply.status_mut() = 200.try_into().unwrap();
        Reply::Now(reply)
    };
    for kind in ["301", "302", "303", "307", "308", "circle", "429", "503", "cut", "no JSON"] {
        let target = target.clone();
        let peer = Peer::session(move |seen| {
            if seen.rpc() != "tools/call" {
                return (seen.rpc() == "tools/list").then(|| reply(seen, None));
            }
            Some(match kind {
                "circle" => redirect(307, &format!("{}x", seen.path)),
                "cut" => broken(),
                "no JSON" => text(200, "application/json", "{"),
                status if status.starts_with('3') => redirect(status.parse().unwrap(), &target),
                status => text(status.parse().unwrap(), "text/plain", "later"),
            })
        })
        .await;
        let entry = Entry::Server(http_server("one", &peer.url));
        let world = World::settled(vec![entry], GatewayOptions::default()).await;
        let caller = world.legacy_caller(transparent("one")).await;
        let answer = call(&world, &caller).await;
        assert_eq!(answer["result"]["isError"], true, "{kind}: {answer}");
        let first = |seen: &&Seen| seen.rpc() == "tools/call" && seen.path == "/mcp";
        // A redirect within the origin asks for the call at another path: the gateway sends the
        // call there alone.
        assert_eq!(peer.seen().iter().filter(first).count(), 1, "{kind}: {answer}");
        world.gateway.drain().await;
    }
    assert_eq!(elsewhere.seen().len(), 0, "credentials stay");
}
