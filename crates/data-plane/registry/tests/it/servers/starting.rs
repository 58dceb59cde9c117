//! The start of servers: all start at once and independently, and each outcome is a row.

use std::{sync::Arc, time::Duration};

use narthex_model::{
    Alias, ApiKeyAuth, CallError, CallErrorKind, ConfigFault, ServerAuth, ServerState, Target,
};
use narthex_registry::config::Entry;
use narthex_testkit::{
    clock::SteppedClock,
    fixture::{Eras, Options, Quirk, Running},
};
use narthex_upstream::Deadlines;
use serde_json::json;

use crate::{
    peer::{Peer, Reply, text},
    world::{
        DEADLINE, http, message, program, row, shell, start, start_by, start_within, until,
        until_state, with_env,
    },
};

async fn fixture(eras: Eras, quirks: Vec<Quirk>) -> Running {
    Running::http(Options { eras, quirks, ..Options::default() }).await.unwrap()
}

/// E6: values given by code are taken as they are; only files have placeholders.
#[tokio::test]
async fn e6_code_gives_values_and_no_placeholders() {
    let peer = Peer::legacy(|_| None).await;
    let mut definition = http("x", &peer.url);
    let Target::Http(target) = &mut definition.target else { unreachable!("it is called") };
    let value = narthex_model::Secret::new("${env:HOME} ${HOME}");
    target.headers.insert("X-Home".to_owned(), value);
    let registry = start([definition]);
    let asked = peer.wait(|seen| seen.rpc() == "initialize").await;
    assert_eq!(asked.header("x-home"), Some("${env:HOME} ${HOME}"));
    registry.close().await;
}

#[tokio::test]
async fn e129_a_server_that_hangs_or_fails_delays_no_other() {
    let shaking = fixture(Eras::Both, vec![Quirk::HangInitialize]).await;
    let listing = fixture(Eras::Legacy, vec![Quirk::HangList]).await;
    let good = fixture(Eras::Both, Vec::new()).await;
    let registry = start([
        http("shaking", &shaking.url),
        program("silent", "sh", &["-c", "sleep 1000"]),
        http("listing", &listing.url),
        program("missing", "no-such-program-here", &[]),
        http("good", &good.url),
        shell("shell"),
    ]);
    let snapshot = until(&registry, |snapshot| {
        ["good", "shell"].iter().all(|name| row(snapshot, name).is_ready())
            && row(snapshot, "missing").state == ServerState::Error
            && row(snapshot, "listing").activity == Some("listing")
    })
    .await;
    for name in ["shaking", "silent", "listing"] {
        assert_eq!(row(&snapshot, name).state, ServerState::Connecting, "{name}");
    }
    registry.close().await;
}

/// Each server answers only when the other has got a request, too.
#[tokio::test]
async fn e129_servers_start_at_the_same_time() {
    let asked = Arc::new(tokio::sync::Semaphore::new(0));
    let (seen, wait) = (asked.clone(), asked.clone());
    let first = Peer::legacy(move |request| match request.rpc() {
        "server/discover" => {
            seen.add_permits(1);
            Some(Reply::Never)
        }
        "initialize" => Some(Reply::Never),
        _ => None,
    })
    .await;
    let registry = start([http("first", &first.url), http("second", "http://127.0.0.1:9/mcp")]);
    // The second server has failed while the first still waits for its answer.
    let permit = wait.acquire().await.unwrap();
    let snapshot =
        until(&registry, |snapshot| row(snapshot, "second").state == ServerState::Error).await;
    assert_eq!(row(&snapshot, "first").state, ServerState::Connecting);
    drop(permit);
    registry.close().await;
}

/// R-E28: a server that hangs becomes an error with its cause.
#[tokio::test]
async fn e75_a_hanging_server_becomes_an_error_with_its_cause() {
    let shaking = fixture(Eras::Both, vec![Quirk::HangInitialize]).await;
    let listing = fixture(Eras::Legacy, vec![Quirk::HangList]).await;
    let short = Duration::from_secs(1);
    let handshake = Deadlines { connect: short, ..Deadlines::default() };
    let registry = start_by(handshake, vec![Entry::Server(http("shaking", &shaking.url))]);
    let row = until_state(&registry, "shaking", ServerState::Error).await;
    assert_eq!(message(&row), "timeout: no answer to the handshake within 1 s");
    registry.close().await;
    // The list alone comes too late, however long the handshake takes.
    let registry = start_within(short, vec![Entry::Server(http("listing", &listing.url))]);
    let row = until_state(&registry, "listing", ServerState::Error).await;
    assert_eq!(message(&row), "timeout: listing took longer than 1 s");
    registry.close().await;
}

#[tokio::test]
async fn e63_a_refused_connection_is_a_transport_error_with_its_cause() {
    let registry = start([http("x", "http://127.0.0.1:9/mcp")]);
    let row = until_state(&registry, "x", ServerState::Error).await;
    assert_eq!(row.error.as_ref().unwrap().kind, CallErrorKind::TransportError);
    assert!(message(&row).contains("connection refused by 127.0.0.1:9"), "{}", message(&row));
    // No message was sent, so none is named.
    assert!(!message(&row).contains("` failed"), "{}", message(&row));
    registry.close().await;
}

/// E34, E33: with `autoRecover: false`, no server recovers by itself from a failed start.
#[tokio::test(start_paused = true)]
async fn e34_a_failed_start_stays_an_error_without_recovery() {
    let mut definition = http("x", "http://127.0.0.1:9/mcp");
    definition.recovers = false;
    let registry = start([definition]);
    let row = until_state(&registry, "x", ServerState::Error).await;
    let seq = registry.snapshot().seq;
    let later = registry.wait_until(Duration::from_secs(3600), |snapshot| snapshot.seq > seq).await;
    assert_eq!(later.seq, seq);
    assert_eq!(later.get("x").unwrap().error, row.error);
    registry.close().await;
}

/// R-M11, D30: one limit of mounting covers the question of the server's era, the handshake and the
/// lists together.
#[tokio::test]
async fn r_m11_one_limit_covers_probe_handshake_and_lists() {
    let peer = Peer::legacy(|seen| match seen.rpc() {
        "server/discover" | "tools/list" => Some(Reply::Never),
        _ => None,
    })
    .await;
    let mut definition = http("x", &peer.url);
    definition.mount_timeout = Some(Duration::from_secs(2));
    definition.recovers = false;
    let clock = SteppedClock::by(Duration::from_millis(10));
    let since = tokio::time::Instant::now();
    let registry = start([definition]);
    let row = until_state(&registry, "x", ServerState::Error).await;
    let waited = since.elapsed();
    drop(clock);
    assert_eq!(message(&row), "timeout: mounting took longer than 2000 ms");
    assert_eq!(waited.as_secs(), 2, "{waited:?}");
    assert!(peer.seen().iter().any(|seen| seen.rpc() == "tools/list"));
    registry.close().await;
}

#[tokio::test]
async fn e63_the_error_of_a_missing_npx_names_node_js() {
    let empty = tempfile::tempdir().unwrap();
    let npx =
        with_env(program("x", "npx", &["-y", "server"]), "PATH", empty.path().to_str().unwrap());
    let registry = start([npx]);
    let row = until_state(&registry, "x", ServerState::Error).await;
    let text = message(&row);
    assert!(text.contains("`npx` was not found") && text.contains("Node.js"), "{text}");
    registry.close().await;
}

#[tokio::test]
async fn e62_a_missing_key_is_reported_without_a_request() {
    let peer = Peer::start(|_| text(500, "text/plain", "")).await;
    let mut definition = http("x", &peer.url);
    if let Target::Http(target) = &mut definition.target {
        let (header_name, value_prefix) = ("X-Key".to_owned(), String::new());
        target.auth = ServerAuth::ApiKey(ApiKeyAuth { header_name, value_prefix, key: None });
    }
    let registry = start([definition]);
    let row = until_state(&registry, "x", ServerState::Error).await;
    assert_eq!(row.error.as_ref().unwrap().kind, CallErrorKind::AuthUnavailable);
    assert!(peer.seen().is_empty());
    registry.close().await;
}

#[tokio::test]
async fn e117_faulty_and_disabled_entries_are_rows_and_the_rest_works() {
    let fault = ConfigFault {
        name: "not an alias".to_owned(),
        error: CallError::new(CallErrorKind::InvalidArguments, "no `command`"),
    };
    let mut disabled = shell("off");
    disabled.is_disabled = true;
    let entries = vec![Entry::Fault(fault), Entry::Server(disabled), Entry::Server(shell("on"))];
    let registry = start_within(DEADLINE, entries);
    let snapshot = until(&registry, |snapshot| snapshot.is_settled()).await;
    let states: Vec<_> = snapshot.servers.iter().map(|row| row.state).collect();
    assert_eq!(states, [ServerState::Error, ServerState::Disabled, ServerState::Ready]);
    assert_eq!(message(&snapshot.servers[0]), "invalid_arguments: no `command`");
    registry.close().await;
}

/// E68: a server's first step is a change, too, and no later state is an earlier one.
#[tokio::test]
async fn e68_every_step_is_a_snapshot_with_a_higher_number() {
    let server = fixture(Eras::Legacy, Vec::new()).await;
    let registry = start([http("x", &server.url)]);
    let first = registry.snapshot();
    assert_eq!((first.seq, first.get("x").unwrap().state), (1, ServerState::Connecting));
    let mut changes = registry.changes();
    let mut last = first.seq;
    while !registry.snapshot().is_settled() {
        changes.changed().await.unwrap();
        let seq = *changes.borrow_and_update();
        assert!(seq > last, "{seq} after {last}");
        last = seq;
    }
    // The steps are connecting, listing and ready.
    assert!(last >= 4, "{last}");
    registry.close().await;
}

#[tokio::test]
async fn e70_declared_capabilities_of_a_server_are_recorded() {
    let peer = Peer::legacy(|seen| {
        (seen.rpc() == "initialize").then(|| {
            crate::peer::result(
                seen,
                &json!({"protocolVersion": "2025-06-18", "capabilities":
                    {"resources": {"subscribe": true}, "logging": {}}}),
            )
        })
    })
    .await;
    let registry = start([http("x", &peer.url)]);
    let row = until_state(&registry, "x", ServerState::Ready).await;
    let declared = row.link.as_ref().unwrap().facts().capabilities;
    assert!(declared.resources && declared.subscribe && declared.logging && !declared.tools);
    // E76: a server without tools is ready, too.
    assert!(row.inventory.tools.is_empty());
    assert!(registry.snapshot().get("x").is_some_and(|row| row.is_ready()));
    assert_eq!(row.alias, Some(Alias::new("x").unwrap()));
    registry.close().await;
}

/// E83: a URL with a scheme other than HTTP's is refused also when code gives it, before anything
/// is sent.
#[tokio::test]
async fn e83_a_url_of_another_scheme_is_an_error_row() {
    let registry = start([http("x", "ftp://127.0.0.1/mcp"), http("y", "not a url")]);
    for name in ["x", "y"] {
        let row = until_state(&registry, name, ServerState::Error).await;
        let text = message(&row);
        let is_told = text.contains("is not an http or https address") || text.contains("URL");
        assert!(is_told, "{text}");
    }
    registry.close().await;
}

/// R-M11, E75: an entry's own limit of connecting holds for this server alone.
#[tokio::test]
async fn r_m11_a_mount_timeout_applies_only_to_its_entry() {
    let hanging = fixture(Eras::Legacy, vec![Quirk::HangList]).await;
    let mut quick = http("quick", &hanging.url);
    quick.mount_timeout = Some(Duration::from_millis(300));
    let registry = start([quick, http("patient", &hanging.url)]);
    let row = until_state(&registry, "quick", ServerState::Error).await;
    assert_eq!(row.error.as_ref().unwrap().kind, CallErrorKind::Timeout);
    assert_eq!(registry.get("patient").unwrap().state, ServerState::Connecting);
    registry.close().await;
}
