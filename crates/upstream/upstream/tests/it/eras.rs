//! Finds the era of a server from the answers of real servers to the probe.

use std::time::Duration;

use narthex_upstream::{ConnectError, Dialect};
use narthex_wire::Revision;
use serde_json::json;

use super::{
    peer::{Peer, Reply, Seen, error, event, events, result, text},
    world::{
        World, call_to_end, fixture_process, http, initialize_result, initializes, say, shell,
        with_key,
    },
};

#[tokio::test]
async fn e134_stdio_servers_that_refuse_the_probe_are_legacy() {
    for (what, code) in [("as the TypeScript SDK", -32601), ("as the Python SDK", -32602)] {
        let refusal = format!(
            r#"*server/discover*) printf '{{"jsonrpc":"2.0","id":%s,"error":%s}}\n' "$id" \
            '{{"code":{code},"message":"no"}}';;"#
        );
        let world = World::new();
        let (link, dialect) = world.connect(&shell(&(refusal + &initializes()))).await.unwrap();
        assert_eq!(dialect, Dialect::Legacy, "{what}");
        assert_eq!(link.facts().revision, Revision::LEGACY_LATEST);
        link.stop().await;
        world.drain().await;
    }
}

/// A server of an older revision may answer the probe with a text that is no valid JSON-RPC. The
/// handshake must succeed all the same.
#[tokio::test]
async fn e134_a_stdio_server_that_answers_the_probe_badly_is_legacy() {
    let answers = [
        r#""result":null,"error":{"code":-32601,"message":"no"}"#,
        r#""result":{},"result":{}"#,
        r#""result":{"text":"cut"#,
    ];
    for bad in answers {
        let refusal = format!(
            r#"*server/discover*) printf '{{"jsonrpc":"2.0","id":%s,%s}}\n' "$id" '{bad}';;"#
        );
        let world = World::new();
        let (link, dialect) = world.connect(&shell(&(refusal + &initializes()))).await.unwrap();
        assert_eq!(dialect, Dialect::Legacy, "{bad}");
        link.stop().await;
        world.drain().await;
    }
}

#[tokio::test]
async fn e75_a_stdio_server_that_ignores_the_probe_is_initialized() {
    let world = World::impatient();
    let (link, dialect) = world.connect(&shell(&initializes())).await.unwrap();
    assert_eq!(dialect, Dialect::Legacy);
    link.stop().await;
    world.drain().await;
}

/// The end of the first process must not count as the end of the second process.
#[tokio::test]
async fn e133_a_stdio_server_that_exits_on_the_probe_is_started_again() {
    let mut world = World::new();
    let ping = format!("*ping*) {};;", say(&json!({})));
    let cases = format!("*server/discover*) exit 3;; {} {ping}", initializes());
    let (link, dialect) = world.connect(&shell(&cases)).await.unwrap();
    assert_eq!(dialect, Dialect::Legacy);
    link.ping().await.unwrap();
    assert!(world.events.try_recv().is_err(), "no event tells of the first process");
    link.stop().await;
    assert_eq!(world.closed().await, "it was stopped");
    world.drain().await;
}

#[tokio::test]
async fn e134_a_stdio_server_of_both_eras_is_modern() {
    let world = World::new();
    let (link, dialect) = world.connect(&fixture_process("both")).await.unwrap();
    assert_eq!((dialect, link.facts().revision), (Dialect::Modern, Revision::LATEST));
    link.stop().await;
    world.drain().await;
}

#[tokio::test]
async fn e134_http_servers_that_refuse_the_probe_are_legacy() {
    type Refuse = fn(&Seen) -> Reply;
    let rows: [(&str, Refuse); 5] = [
        ("as the TypeScript SDK", |seen| {
            error(400, &Seen { body: json!({}), ..seen.clone() }, -32000)
        }),
        ("as a plain proxy", |_| text(404, "text/html", "<html>no</html>")),
        ("as a server that crashes", |_| Reply::Hangup),
        ("as a server that is silent", |_| Reply::Never),
        ("as a server that takes anything", |seen| result(seen, &json!({"ok": true}))),
    ];
    for (what, refuse) in rows {
        let peer =
            Peer::legacy(move |seen| (seen.rpc() == "server/discover").then(|| refuse(seen)));
        let peer = peer.await;
        let world = World::impatient();
        let (link, dialect) = world.connect(&http(&peer.url)).await.unwrap();
        assert_eq!(dialect, Dialect::Legacy, "{what}");
        call_to_end(&link, "x", json!({})).await.unwrap();
        link.stop().await;
        world.drain().await;
    }
}

/// The server refuses the probe as the Python SDK does, but opens a session. The DELETE has the
/// credential, too.
#[tokio::test]
async fn s16_a_session_opened_by_a_refused_probe_is_deleted() {
    let peer = Peer::legacy(|seen| {
        let Reply::Now(mut refusal) =
            error(400, &Seen { body: json!({"id": "server-error"}), ..seen.clone() }, -32600)
        else {
            return None;
        };
        refusal.headers_mut().insert("mcp-session-id", "leaked".parse().unwrap());
        (seen.rpc() == "server/discover").then_some(Reply::Now(refusal))
    });
    let peer = peer.await;
    let world = World::new();
    let (link, dialect) = world.connect(&with_key(&peer.url, Some("sk-123456"))).await.unwrap();
    assert_eq!(dialect, Dialect::Legacy);
    let deleted = peer.wait(|seen| seen.method == "DELETE").await;
    assert_eq!(deleted.header("mcp-session-id"), Some("leaked"));
    assert_eq!(deleted.header("x-key"), Some("Key sk-123456"));
    call_to_end(&link, "x", json!({})).await.unwrap();
    assert!(peer.seen().iter().all(|seen| seen.header("x-key") == Some("Key sk-123456")));
}

/// E162: a URL that speaks only HTTP+SSE is recognized and used.
#[tokio::test]
async fn e134_an_endpoint_that_has_no_post_is_the_older_transport() {
    let (sender, stream) = events();
    let stream = std::sync::Arc::new(std::sync::Mutex::new(Some(stream)));
    let peer = Peer::start({
        let sender = sender.clone();
        move |seen| match (seen.method.as_str(), seen.path.as_str()) {
            ("GET", "/mcp") => stream.lock().unwrap().take().unwrap_or(Reply::Never),
            ("POST", "/messages?s=1") => {
                if seen.rpc() == "initialize" {
                    let id = &seen.body["id"];
                    let answer = json!({"jsonrpc": "2.0", "id": id, "result": initialize_result()});
                    sender.try_send(event(&answer)).unwrap();
                }
                text(202, "text/plain", "Accepted")
            }
            _ => text(404, "text/html", "<html>Cannot POST /mcp</html>"),
        }
    })
    .await;
    sender.send("event: endpoint\ndata: /messages?s=1\n\n".to_owned()).await.unwrap();
    let world = World::new();
    let (link, dialect) = world.connect(&http(&peer.url)).await.unwrap();
    assert_eq!(dialect, Dialect::Sse);
    let initialize = peer.wait(|seen| seen.rpc() == "initialize" && seen.path != "/mcp").await;
    assert_eq!(initialize.body["params"]["clientInfo"]["name"], "narthex-test");
    drop(link);
    world.drain().await;
}

#[tokio::test]
async fn e63_a_server_that_is_not_mcp_is_reported_with_its_answer() {
    let peer = Peer::start(|_| text(404, "text/plain", "nothing here")).await;
    let error = World::new().connect(&http(&peer.url)).await.unwrap_err();
    let told = "`initialize` failed: the server answered HTTP 404: nothing here";
    assert_eq!(error.to_string(), told);
}

#[tokio::test]
async fn e134_a_known_dialect_needs_no_probe() {
    let peer = Peer::session(|_| None).await;
    let world = World::new().knowing(Dialect::Legacy);
    let (_link, _) = world.connect(&http(&peer.url)).await.unwrap();
    assert!(peer.seen().iter().all(|seen| seen.rpc() != "server/discover"));
}

#[tokio::test]
async fn e75_connecting_to_a_server_that_never_answers_times_out() {
    let peer = Peer::start(|_| Reply::Never).await;
    let mut world = World::impatient();
    world.context.deadlines.connect = Duration::from_millis(600);
    for definition in [http(&peer.url), shell("*) ;;")] {
        let error = world.connect(&definition).await.unwrap_err();
        assert!(matches!(error, ConnectError::Deadline { .. }), "{error}");
    }
    world.drain().await;
}

/// E63: when a handshake fails, its error names the refused message and the reason. A refused probe
/// or notification alone does not fail the connection.
#[tokio::test]
async fn e63_a_refused_handshake_names_the_message() {
    for (refused, status, told) in [
        ("initialize", 403, "`initialize` failed: the server refuses the credential"),
        ("initialize", 500, "`initialize` failed: the server answered HTTP 500: no room"),
        ("initialize", 400, "`initialize` failed: the server answered HTTP 400: no room"),
    ] {
        let peer = Peer::legacy(move |seen| {
            (seen.rpc() == refused).then(|| text(status, "text/plain", "no room"))
        })
        .await;
        let error = World::new().connect(&http(&peer.url)).await.unwrap_err();
        assert!(error.to_string().starts_with(told), "{refused} {status}: {error}");
    }
}
