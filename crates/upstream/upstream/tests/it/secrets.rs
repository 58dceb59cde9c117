//! The link removes secrets from the messages of servers.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicBool, Ordering},
};

use narthex_model::{
    AuthSecret, CallErrorKind, ErrorKind, NamedSecret, Secret, SecretName, SecretPlace,
    ServerDefinition, Target,
};
use narthex_supervisor::LogRing;
use narthex_upstream::{ConnectError, Dialect, Inventory, LinkEvent};
use serde_json::json;

use super::{
    peer::{Peer, Reply, error, event, events, events_of, result, text},
    world::{
        World, call, call_to_end, http, in_time, initialize_result, initializes, program, say,
        script, shell, value, with_env, with_key,
    },
};

const KEY: &str = "sk-123456";

#[tokio::test]
async fn e62_no_request_is_sent_without_a_key() {
    let peer = Peer::start(|_| text(500, "text/plain", "")).await;
    let error = World::new().connect(&with_key(&peer.url, None)).await.unwrap_err();
    assert_eq!(error.call_kind(), CallErrorKind::AuthUnavailable);
    assert!(error.to_string().contains("auth.key"), "{error}");
    assert!(peer.seen().is_empty());
}

#[tokio::test]
async fn e22_every_request_carries_the_key() {
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
            Some(result(seen, &json!({"tools": [{"description": KEY, "name": "x"}]})))
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
    let inventory = in_time(Inventory::fetch(&link, super::world::DEADLINE)).await.unwrap();
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
    let told =
        "the server refuses the handshake: error -32000 to `initialize`: unknown key [redacted]";
    assert_eq!(error.to_string(), told);
}

#[tokio::test]
async fn e62_a_refused_credential_is_reported_as_auth_unavailable() {
    for status in [401, 403] {
        let peer = Peer::start(move |_| text(status, "text/plain", "")).await;
        let error = World::new().connect(&http(&peer.url)).await.unwrap_err();
        assert_eq!(error.call_kind(), CallErrorKind::AuthUnavailable, "{error}");
    }
}

#[tokio::test]
async fn s27_the_log_and_last_output_of_a_child_never_show_its_token() {
    let crash = r#"*tools/call*) echo "token $MY_TOKEN is wrong" >&2; exit 7;;"#;
    let cases = format!(
        r#"*server/discover*) {};; {} {crash}"#,
        say(&json!({"instructions": "none"})),
        initializes()
    );
    let mut world = World::new();
    let link = world.link(&with_env(shell(&cases), "MY_TOKEN", "t0p-secret")).await;
    let error = call_to_end(&link, "x", json!({})).await.unwrap_err();
    let expected = "the process ended with exit code 7; it wrote: token [redacted] is wrong";
    assert_eq!(error.to_string(), format!("the connection to the server has ended: {expected}"));
    assert_eq!(world.closed().await, expected);
    assert_eq!(link.log_tail(), ["token [redacted] is wrong"]);
    drop(link);
    world.drain().await;
}

/// The definition with `secret` marked as a value that was filled in.
fn filled_in(mut definition: ServerDefinition, secret: &str) -> ServerDefinition {
    definition.filled_in = vec![Secret::new(secret)];
    definition
}

/// The address of a peer, with the key in its path.
fn with_key_in_path(peer: &Peer) -> ServerDefinition {
    filled_in(http(peer.url.replace("/mcp", &format!("/{KEY}/mcp"))), KEY)
}

fn redirect(location: &str) -> Reply {
    let Reply::Now(mut answer) = text(307, "text/plain", "") else { unreachable!("it is text") };
    answer.headers_mut().insert("location", location.parse().unwrap());
    Reply::Now(answer)
}

#[tokio::test]
async fn s27_redirects_never_show_a_key_in_the_path() {
    type Location = fn(&str) -> String;
    let elsewhere = |_: &str| format!("http://other.test/{KEY}/mcp");
    let further = |path: &str| format!("{path}/x");
    let rows: [(Location, &str); 2] = [
        (elsewhere, "http://other.test/[redacted]/mcp"),
        (further, "last target was /[redacted]/mcp/x"),
    ];
    for (location, words) in rows {
        let peer = Peer::start(move |seen| redirect(&location(&seen.path))).await;
        let error = World::new().connect(&with_key_in_path(&peer)).await.unwrap_err();
        assert_eq!(error.call_kind(), CallErrorKind::TransportError);
        let texts = format!("{error} {error:?}");
        assert!(texts.contains(words) && !texts.contains(KEY), "{texts}");
    }
}

#[tokio::test]
async fn s27_a_call_that_is_redirected_never_shows_a_key_in_the_path() {
    let peer = Peer::legacy(|seen| {
        (seen.rpc() == "tools/call").then(|| redirect(&format!("http://other.test/{KEY}/mcp")))
    })
    .await;
    let link = World::new().link(&with_key_in_path(&peer)).await;
    let error = call(&link, "x", json!({})).await.unwrap_err();
    let texts = format!("{error} {error:?}");
    assert!(texts.contains("http://other.test/[redacted]/mcp") && !texts.contains(KEY), "{texts}");
    assert!(!error.is_unsent(), "it was answered");
    assert_eq!(error.kind(), ErrorKind::Invalid);
}

/// The reason for a link's end becomes an event, the status of the server, and the error of all
/// waiting calls. None of these may show the key.
#[tokio::test]
async fn s27_the_end_of_a_link_never_shows_a_key_in_the_path() {
    let (sender, stream) = events();
    let endpoint = format!("event: endpoint\ndata: /{KEY}/messages\n\n");
    sender.send(endpoint).await.unwrap();
    let (stream, has_moved) = (Arc::new(Mutex::new(Some(stream))), Arc::<AtomicBool>::default());
    let moved = has_moved.clone();
    let peer = Peer::start(move |seen| {
        if seen.method == "GET" {
            return stream.lock().unwrap().take().unwrap_or(Reply::Never);
        }
        if moved.load(Ordering::SeqCst) {
            return redirect(&format!("/{KEY}/new"));
        }
        if seen.rpc() == "initialize" {
            let id = &seen.body["id"];
            let answer = json!({"jsonrpc": "2.0", "id": id, "result": initialize_result()});
            sender.try_send(event(&answer)).unwrap();
        }
        text(202, "text/plain", "Accepted")
    })
    .await;
    let mut definition = with_key_in_path(&peer);
    if let Target::Http(target) = &mut definition.target {
        target.is_sse = true;
    }
    let mut world = World::new().knowing(Dialect::Sse);
    let link = world.link(&definition).await;
    peer.wait(|seen| seen.rpc() == "notifications/initialized").await;
    has_moved.store(true, Ordering::SeqCst);
    let error = call_to_end(&link, "x", json!({})).await.unwrap_err();
    let why = world.closed().await;
    for text in [error.to_string(), why] {
        assert!(text.contains("/[redacted]/new") && !text.contains(KEY), "{text}");
    }
    drop(link);
    world.drain().await;
}

/// Hosts are looked up and reported in small letters.
#[tokio::test]
async fn s27_unreachable_servers_never_show_a_key_in_the_address() {
    let refused = filled_in(http("http://127.0.0.1:9/mcp"), "127.0.0.1");
    let unknown = filled_in(http("http://Sk-ABCDEF.invalid/mcp"), "Sk-ABCDEF");
    let missing = filled_in(program(&format!("/nowhere/{KEY}/server"), &[]), KEY);
    let mut homeless = filled_in(program("sh", &[]), KEY);
    if let Target::Stdio(target) = &mut homeless.target {
        target.working_dir = Some(format!("/nowhere/{KEY}").into());
    }
    for (definition, secret) in
        [(refused, "127.0.0.1"), (unknown, "sk-abcdef"), (missing, KEY), (homeless, KEY)]
    {
        let error = World::new().connect(&definition).await.unwrap_err();
        let texts = format!("{error} {error:?}");
        assert!(texts.contains("[redacted]") && !texts.contains(secret), "{texts}");
    }
}

#[tokio::test]
async fn s27_the_error_of_a_child_that_ends_at_once_never_shows_a_key() {
    let script = r#"echo "no such account: $0" >&2; exit 3"#;
    let definition = filled_in(program("sh", &["-c", script, KEY]), KEY);
    let world = World::new();
    let error = world.connect(&definition).await.unwrap_err();
    assert!(matches!(error, ConnectError::Link(_) | ConnectError::Message { .. }), "{error:?}");
    let texts = format!("{error} {error:?}");
    assert!(texts.contains("no such account: [redacted]") && !texts.contains(KEY), "{texts}");
    world.drain().await;
}

/// R-E17, R-M27: a log ring from the caller keeps its lines over a restart, redacted like all
/// lines. The reason of a failure never comes from an earlier start.
#[tokio::test]
async fn r_e17_a_log_survives_several_connections() {
    let cases = format!(
        r#"*server/discover*) {};; {}"#,
        say(&json!({"instructions": "none"})),
        initializes()
    );
    let talking = format!("echo \"my token is $MY_TOKEN\" >&2; {}", script(&cases));
    let log = LogRing::default();
    let mut world = World::new();
    world.context.log = Some(log.clone());
    let program_with_token = with_env(program("sh", &["-c", &talking]), "MY_TOKEN", "t0p-secret");
    let link = world.link(&program_with_token).await;
    link.stop().await;
    let silent = program("sh", &["-c", "exit 7"]);
    let error = world.connect(&silent).await.unwrap_err().to_string();
    assert!(!error.contains("it wrote"), "{error}");
    let tail = log.tail();
    assert_eq!(tail[0], "my token is [redacted]");
    assert!(tail[1].starts_with("--- started again as process "), "{tail:?}");
    drop(link);
    world.drain().await;
}

/// D38: a server whose secrets are not filled in is not reached: it would get the text of the file.
#[tokio::test]
async fn d38_a_server_without_its_secrets_is_not_reached() {
    let peer = Peer::legacy(|_| None).await;
    let mut definition = http(&peer.url);
    definition.named_secrets = vec![NamedSecret {
        name: SecretName::new("PAY_KEY").unwrap(),
        key: "servers.pay.auth.key".to_owned(),
        place: SecretPlace::Auth(AuthSecret::Key),
        opened: None,
    }];
    let error = World::new().connect(&definition).await.unwrap_err();
    assert_eq!(error.call_kind(), CallErrorKind::AuthUnavailable, "{error}");
    let text = error.to_string();
    assert!(text.contains("`PAY_KEY` (`servers.pay.auth.key`)"), "{text}");
    assert!(text.contains("narthex secrets set PAY_KEY"), "{text}");
    assert!(peer.seen().is_empty(), "nothing was sent");
}
