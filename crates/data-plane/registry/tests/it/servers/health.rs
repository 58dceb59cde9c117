//! Effects of failing calls on a server over HTTP. Its row shows them at once, the registry
//! connects it again, and it returns by itself where no person must act (D17, D30).

use std::{
    sync::{
        Arc,
        atomic::{AtomicU16, Ordering},
    },
    time::Duration,
};

use narthex_model::{CallErrorKind, ServerDefinition, ServerState};
use narthex_registry::{MountOptions, Mountable, Registry, ServerRow, Snapshot};
use narthex_testkit::clock::SteppedClock;
use narthex_upstream::{Dialect, LinkError};
use serde_json::json;
use tokio::time::Instant;

use super::losing::{call, call_tool};
use crate::{
    peer::{Peer, Reply, event, events, result, text},
    world::{http, in_time, message, start, until, until_state},
};

/// The server's answer to all requests except those of its own protocol: 0 means that it works, 1
/// that it hangs up, 2 that it is silent.
#[derive(Clone, Default)]
struct Mode(Arc<AtomicU16>);

/// The step of the clock: requests take a few steps.
const STEP: Duration = Duration::from_millis(20);

const WORKS: u16 = 0;
const HANGS_UP: u16 = 1;
const IS_SILENT: u16 = 2;

impl Mode {
    fn set(&self, mode: u16) {
        self.0.store(mode, Ordering::SeqCst);
    }

    fn reply(&self) -> Option<Reply> {
        match self.0.load(Ordering::SeqCst) {
            WORKS => None,
            HANGS_UP => Some(Reply::Hangup),
            IS_SILENT => Some(Reply::Never),
            status => Some(text(status, "text/plain", "so it is")),
        }
    }
}

/// A server whose behaviour a test changes; calls of the tool `bad` fail with HTTP 500 always.
async fn moody() -> (Peer, Mode) {
    let mode = Mode::default();
    let now = mode.clone();
    let peer = Peer::legacy(move |seen| {
        now.reply().or_else(|| match seen.rpc() {
            "tools/list" => Some(result(seen, &json!({"tools": [{"name": "x"}]}))),
            "tools/call" if seen.body["params"]["name"] == "bad" => {
                Some(text(500, "text/plain", "a bug of one tool"))
            }
            "tools/call" => Some(result(seen, &json!({"content": []}))),
            _ => None,
        })
    })
    .await;
    (peer, mode)
}

async fn ready(registry: &Registry) -> Arc<ServerRow> {
    until_state(registry, "x", ServerState::Ready).await
}

/// A server after a call of it has failed, on a clock of steps since the server was ready.
struct Failed {
    clock: SteppedClock,
    peer: Peer,
    mode: Mode,
    registry: Registry,
    row: Arc<ServerRow>,
}

/// Has a call fail with HTTP 503, and waits for this state of the row.
async fn failed(state: ServerState, change: impl FnOnce(&mut ServerDefinition)) -> Failed {
    let (peer, mode) = moody().await;
    let mut definition = http("x", &peer.url);
    change(&mut definition);
    let registry = start([definition]);
    let row = ready(&registry).await;
    let clock = SteppedClock::by(STEP);
    mode.set(503);
    call(&row).await.unwrap_err();
    let row = until_state(&registry, "x", state).await;
    Failed { clock, peer, mode, registry, row }
}

/// Number of requests of this method that a server has received.
fn seen(peer: &Peer, method: &str) -> usize {
    peer.seen().iter().filter(|seen| seen.rpc() == method).count()
}

/// D30: whatever a failing call shows of the server, its row shows at once, with the cause.
#[tokio::test]
async fn d30_a_failing_call_marks_the_row_at_once() {
    for (mode, kind, told) in [
        (HANGS_UP, CallErrorKind::TransportError, "without an answer"),
        (401, CallErrorKind::AuthUnavailable, "HTTP 401"),
        (403, CallErrorKind::AuthUnavailable, "HTTP 403"),
        (404, CallErrorKind::TransportError, "HTTP 404"),
        (500, CallErrorKind::TransportError, "HTTP 500"),
        (502, CallErrorKind::TransportError, "HTTP 502"),
        (503, CallErrorKind::TransportError, "HTTP 503"),
    ] {
        let (peer, moody) = moody().await;
        let registry = start([http("x", &peer.url)]);
        let row = ready(&registry).await;
        moody.set(mode);
        let failed = call(&row).await.unwrap_err();
        assert_eq!(failed.call_kind(), kind, "{mode}");
        // A person must change a credential, so that narthex makes no attempt.
        let state = match kind {
            CallErrorKind::AuthUnavailable => ServerState::Error,
            _ => ServerState::Connecting,
        };
        let row = until_state(&registry, "x", state).await;
        let failure = row.health.last_failure().unwrap();
        let cause = failure.what.operator_cause();
        assert_eq!(failure.what.kind, kind, "{mode}");
        assert!(cause.contains(told), "{mode}: {cause}");
        assert!(row.health.last_success().unwrap() <= failure.at, "{mode}");
        registry.close().await;
    }
}

/// D17: a refused credential is an error at once, and stays one: a person must act.
#[tokio::test]
async fn d17_a_refused_credential_stays_an_error() {
    let (peer, mode) = moody().await;
    let registry = start([http("x", &peer.url)]);
    let row = ready(&registry).await;
    let clock = SteppedClock::by(STEP);
    let since = Instant::now();
    mode.set(401);
    call(&row).await.unwrap_err();
    let row = until_state(&registry, "x", ServerState::Error).await;
    assert!(since.elapsed() < Duration::from_secs(1), "{:?}", since.elapsed());
    drop(clock);
    assert_eq!(row.error.as_ref().unwrap().kind, CallErrorKind::AuthUnavailable);
    assert!(!message(&row).contains("attempts"), "{}", message(&row));
    assert!(!row.is_probed);
    assert_eq!(seen(&peer, "initialize"), 1, "the check has shown it");
    let before = peer.seen().len();
    mode.set(WORKS);
    let seq = registry.snapshot().seq;
    // No request is in transit: the clock may jump.
    tokio::time::pause();
    registry.wait_until(Duration::from_secs(7200), |snapshot| snapshot.seq > seq).await;
    registry.probe(&row, Duration::from_secs(60)).await;
    tokio::time::resume();
    assert_eq!(
        (registry.snapshot().seq, peer.seen().len()),
        (seq, before),
        "no check asks it again"
    );
    registry.reconnect("x").await.unwrap();
    ready(&registry).await;
    registry.close().await;
}

/// D17: a server that is merely unreachable is probed, every 30 s growing to 5 min, and is back by
/// itself.
#[tokio::test]
async fn d17_an_unreachable_server_is_probed_until_reachable() {
    let failed = failed(ServerState::Error, |_| {}).await;
    let Failed { clock, mode, registry, mut row, peer: _peer } = failed;
    assert!(row.is_probed && message(&row).contains("tries again by itself"), "{}", message(&row));
    drop(clock);
    let clock = SteppedClock::by(Duration::from_millis(50));
    let mut pauses = Vec::new();
    let all_wanted = [30.0, 60.0, 120.0, 240.0, 300.0, 300.0, 300.0];
    for wanted in all_wanted {
        let (since, probes) = (Instant::now(), row.probes);
        // Most of the pause passes at once, so that a probe which comes too early is found.
        tokio::time::advance(Duration::from_secs_f64(wanted * 0.85)).await;
        let is_probed = |snapshot: &Snapshot| snapshot.get("x").unwrap().probes > probes;
        let snapshot = registry.wait_until(Duration::from_secs(3600), is_probed).await;
        row = snapshot.get("x").unwrap().clone();
        assert_eq!(row.state, ServerState::Error);
        pauses.push(since.elapsed().as_secs_f64());
    }
    for (pause, wanted) in pauses.iter().zip(all_wanted) {
        // The requests of a probe take some steps of the clock.
        assert!((wanted * 0.89..wanted * 1.1 + 2.0).contains(pause), "{pauses:?}");
    }
    mode.set(WORKS);
    tokio::time::advance(Duration::from_secs(255)).await;
    let is_up = |snapshot: &Snapshot| snapshot.get("x").unwrap().is_ready();
    let snapshot = registry.wait_until(Duration::from_secs(3600), is_up);
    let row = snapshot.await.get("x").unwrap().clone();
    drop(clock);
    assert_eq!((row.reconnects, row.is_probed), (1, false));
    call(&row).await.unwrap();
    registry.close().await;
}

/// D17: a probe for a caller does not make the next probe later.
#[tokio::test]
async fn d17_requested_probes_do_not_delay_the_next_probe() {
    let failed = failed(ServerState::Error, |_| {}).await;
    let Failed { clock, mode, registry, row, peer: _peer } = failed;
    for _ in 0..3 {
        registry.probe(&row, Duration::from_secs(20)).await;
    }
    mode.set(WORKS);
    let since = Instant::now();
    let is_up = |snapshot: &Snapshot| snapshot.get("x").unwrap().is_ready();
    registry.wait_until(Duration::from_secs(3600), is_up).await;
    assert!(since.elapsed() < Duration::from_secs(34), "{:?}", since.elapsed());
    drop(clock);
    registry.close().await;
}

/// D17: a mount of a server that is being connected again fails with the attempt that is due first,
/// and reports the cause alone: no mount is left for which narthex could try again.
#[tokio::test]
async fn d17_a_mount_waits_for_one_attempt_at_most() {
    let Failed { clock, peer, registry, .. } = failed(ServerState::Connecting, |_| {}).await;
    let definition = http("x", &peer.url);
    let since = Instant::now();
    for wanted in [1, 0] {
        let before = since.elapsed();
        let options = MountOptions { is_strict: true, ..MountOptions::default() };
        let set = vec![Mountable::new(Arc::new(definition.clone()))];
        let error = registry.mount(set, &options).await.unwrap_err();
        assert_eq!((since.elapsed() - before).as_secs(), wanted, "{error}");
        let text = error.to_string();
        assert!(text.contains("HTTP 503") && !text.contains("again"), "{text}");
    }
    drop(clock);
    registry.close().await;
}

/// D17: a server that could not be reached at its start comes back, too; a program that was never
/// an MCP server does not.
#[tokio::test]
async fn d17_a_server_that_starts_late_connects_without_a_caller() {
    let (peer, mode) = moody().await;
    let other = Peer::start(|_| text(405, "text/plain", "no")).await;
    mode.set(502);
    let clock = SteppedClock::by(STEP);
    let registry = start([http("x", &peer.url), http("other", &other.url)]);
    until(&registry, Snapshot::is_settled).await;
    mode.set(WORKS);
    ready(&registry).await;
    drop(clock);
    let row = registry.get("other").unwrap();
    assert_eq!((row.state, row.is_probed), (ServerState::Error, false));
    registry.close().await;
}

/// D17, E34: `autoRecover: false` leaves every error to a person.
#[tokio::test]
async fn e34_without_recovery_an_unreachable_server_stays_an_error() {
    let is_left = |definition: &mut ServerDefinition| definition.recovers = false;
    let failed = failed(ServerState::Error, is_left).await;
    let Failed { clock, mode, registry, row, peer: _peer } = failed;
    assert!(message(&row).contains("gave up after 3 attempts"), "{}", message(&row));
    mode.set(WORKS);
    let seq = registry.snapshot().seq;
    // No request is in transit: the clock may jump.
    drop(clock);
    tokio::time::pause();
    let later = registry.wait_until(Duration::from_secs(7200), |snapshot| snapshot.seq > seq).await;
    tokio::time::resume();
    assert_eq!(later.seq, seq);
    registry.close().await;
}

/// D17: a caller can ask for an early attempt to reach a probed server, and callers share one
/// attempt a second.
#[tokio::test]
async fn d17_a_caller_has_an_unreachable_server_tried() {
    let Failed { clock, peer, mode, registry, row } = failed(ServerState::Error, |_| {}).await;
    let before = seen(&peer, "initialize");
    let since = Instant::now();
    let probe = || registry.probe(&row, Duration::from_secs(20));
    tokio::join!(probe(), probe(), probe());
    // That second began with the last attempt, a step or two before the test read the clock.
    let waited = since.elapsed().as_secs_f64();
    assert!((0.9..2.0).contains(&waited), "{waited}");
    assert_eq!(seen(&peer, "initialize"), before + 1);
    mode.set(WORKS);
    let row = registry.get("x").unwrap();
    registry.probe(&row, Duration::from_secs(20)).await;
    let row = registry.get("x").unwrap();
    assert!(row.is_ready() && since.elapsed() < Duration::from_secs(4), "{:?}", since.elapsed());
    drop(clock);
    registry.close().await;
}

/// D30: a tool that fails by itself is no failure of its server: a check shows that it works.
#[tokio::test]
async fn d30_a_failing_tool_is_no_failure_of_its_server() {
    let (peer, _mode) = moody().await;
    let registry = start([http("x", &peer.url)]);
    let row = ready(&registry).await;
    let link = row.link.clone().unwrap();
    let error = call_tool(&row, "bad").await.unwrap_err();
    assert!(matches!(error, LinkError::Status { status: 500, .. }), "{error}");
    peer.wait(|seen| seen.rpc() == "ping").await;
    call(&row).await.unwrap();
    let row = ready(&registry).await;
    assert!(Arc::ptr_eq(row.link.as_ref().unwrap(), &link) && row.losses == 0);
    assert_eq!(seen(&peer, "initialize"), 1);
    assert_eq!(row.dialect, Some(Dialect::Legacy));
    let failure = row.health.last_failure().unwrap();
    let cause = failure.what.operator_cause();
    assert!(cause.contains("a bug of one tool"), "{cause}");
    registry.close().await;
}

/// D30: a server that leaves a call unanswered is checked; if it does not answer the check, it is
/// lost.
#[tokio::test]
async fn d30_a_silent_server_is_checked() {
    let (peer, mode) = moody().await;
    let registry = start([http("x", &peer.url)]);
    let row = ready(&registry).await;
    let link = row.link.clone().unwrap();
    link.note_silence(Duration::from_secs(4));
    in_time(peer.wait(|seen| seen.rpc() == "ping")).await;
    assert!(ready(&registry).await.losses == 0, "it answers");
    // The answer to that check may still be in transit.
    let clock = SteppedClock::by(STEP);
    mode.set(IS_SILENT);
    link.note_silence(Duration::from_secs(4));
    let row = until_state(&registry, "x", ServerState::Connecting).await;
    drop(clock);
    assert_eq!(row.losses, 1);
    let failure = row.health.last_failure().unwrap();
    assert_eq!(failure.what.kind, CallErrorKind::Timeout, "{failure:?}");
    registry.close().await;
}

/// D30: the failure of one call ends no other call that the server still answers.
#[tokio::test]
async fn d30_a_lost_server_may_finish_its_open_calls() {
    let mode = Mode::default();
    let now = mode.clone();
    let (sender, stream) = events();
    let stream = Arc::new(std::sync::Mutex::new(Some(stream)));
    let peer = Peer::legacy(move |seen| match (seen.rpc(), now.reply()) {
        ("tools/list", None) => Some(result(seen, &json!({"tools": [{"name": "x"}]}))),
        ("tools/call", None) => stream.lock().unwrap().take(),
        (_, reply) => reply,
    })
    .await;
    let registry = start([http("x", &peer.url)]);
    let row = ready(&registry).await;
    let open = registry.tasks().spawn({
        let row = row.clone();
        async move {
            let _in_use = row.link.as_ref().unwrap().enter().unwrap();
            call(&row).await
        }
    });
    let asked = peer.wait(|seen| seen.rpc() == "tools/call").await;
    mode.set(503);
    call(&row).await.unwrap_err();
    until_state(&registry, "x", ServerState::Connecting).await;
    let answer = json!({"jsonrpc": "2.0", "id": asked.body["id"], "result": {"content": []}});
    sender.send(event(&answer)).await.unwrap();
    in_time(open).await.unwrap().unwrap();
    registry.close().await;
}
