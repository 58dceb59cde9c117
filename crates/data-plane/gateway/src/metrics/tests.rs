//! Tests of the counters.

use narthex_audit::AuditSettings;
use narthex_model::CallErrorKind;

use super::*;

fn alias(text: &str) -> Alias {
    Alias::new(text).unwrap()
}

#[track_caller]
fn assert_line(metrics: &Metrics, line: &str) {
    let text = metrics.render();
    assert!(text.lines().any(|other| other == line), "no `{line}` in\n{text}");
}

/// R4: the numbers for people are those of the rendering.
#[test]
fn r4_numbers_are_those_of_the_rendering() {
    let metrics = Metrics::default();
    let open = metrics.session_opened();
    let _stream = metrics.stream_opened();
    let numbers = metrics.numbers();
    assert_eq!((numbers.sessions_open, numbers.streams_open, numbers.calls_parked), (1, 1, 0));
    assert_line(&metrics, "narthex_sessions_open 1");
    drop(open);
    assert_eq!(metrics.numbers().sessions_open, 0);
    assert_eq!((numbers.audit_waiting_bytes, numbers.audit_is_stuck), (None, false));
}

#[test]
fn calls_are_counted_by_server_method_and_outcome() {
    let metrics = Metrics::default();
    let git = alias("git");
    let took = Duration::from_millis(3);
    for _ in 0..2 {
        metrics.call_finished(Some(&git), "tools/call", Outcome::Ok, took);
    }
    let timeout = Outcome::Failed(CallErrorKind::Timeout);
    metrics.call_finished(Some(&git), "tools/call", timeout, took);
    metrics.call_finished(Some(&git), "tools/call", Outcome::RpcError(-32602), took);
    metrics.call_finished(Some(&git), "tools/call", Outcome::RpcError(-1), took);
    metrics.call_finished(None, "vendor/thing", Outcome::Denied, took);
    let count = |server: &str, method: &str, outcome: &str, number: u32| {
        let labels = format!("server=\"{server}\",method=\"{method}\",outcome=\"{outcome}\"");
        assert_line(&metrics, &format!("narthex_calls_total{{{labels}}} {number}"));
    };
    count("git", "tools/call", "ok", 2);
    count("git", "tools/call", "timeout", 1);
    count("git", "tools/call", "rpc_error", 2);
    count("_other", "_other", "denied", 1);
    let bucket = "narthex_call_duration_seconds_bucket";
    assert_line(&metrics, &format!("{bucket}{{le=\"0.0025\",server=\"git\"}} 0"));
    assert_line(&metrics, &format!("{bucket}{{le=\"0.005\",server=\"git\"}} 5"));
}

#[test]
fn open_sessions_and_streams_are_counted_until_they_are_dropped() {
    let metrics = Metrics::default();
    let (one, two) = (metrics.session_opened(), metrics.clone().session_opened());
    let stream = metrics.stream_opened();
    assert_line(&metrics, "narthex_sessions_open 2");
    assert_line(&metrics, "narthex_sse_streams_open 1");
    drop((one, two, stream));
    assert_line(&metrics, "narthex_sessions_open 0");
    assert_line(&metrics, "narthex_sse_streams_open 0");
}

#[test]
fn servers_and_refusals_are_counted() {
    let metrics = Metrics::default();
    metrics.upstream_up(&alias("git"), true);
    metrics.upstream_up(&alias("time"), true);
    metrics.upstream_up(&alias("time"), false);
    metrics.upstream_restarted(&alias("time"));
    metrics.refused("unauthenticated");
    metrics.refused("unauthenticated");
    assert_line(&metrics, "narthex_upstream_up{server=\"git\"} 1");
    assert_line(&metrics, "narthex_upstream_up{server=\"time\"} 0");
    assert_line(&metrics, "narthex_upstream_restarts_total{server=\"time\"} 1");
    assert_line(&metrics, "narthex_refused_total{reason=\"unauthenticated\"} 2");
    assert_line(&metrics, &format!("narthex_build_info{{version=\"{}\"}} 1", crate_version()));
    assert!(metrics.render().ends_with("# EOF\n"));
}

fn crate_version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}

#[tokio::test]
async fn the_room_in_the_audit_queue_is_shown() {
    let folder = tempfile::tempdir().unwrap();
    let settings = AuditSettings { queue: 7, ..AuditSettings::default() };
    let audit = Audit::open(folder.path(), &settings).unwrap();
    let metrics = Metrics::new(&audit);
    assert_line(&metrics, "narthex_audit_queue_free 7");
    let bytes = audit.waiting().unwrap().0;
    assert_line(&metrics, &format!("narthex_audit_spool_bytes {bytes}"));
    assert!(metrics.render().contains("narthex_audit_lag_seconds"));
    let reader = audit.reader().unwrap();
    assert_line(&metrics, "narthex_audit_spool_stuck 0");
    reader.tell_stuck(true);
    assert_line(&metrics, "narthex_audit_spool_stuck 1");
    audit.close().await;
}

/// Names that clients invent add no counters, and servers have an upper limit.
#[test]
fn a_flood_of_names_adds_no_counters() {
    let metrics = Metrics::default();
    for number in 0..SERVERS_MOST + 500 {
        let alias = alias(&format!("s{number}"));
        let method = format!("vendor/{number}");
        metrics.call_finished(Some(&alias), &method, Outcome::Ok, Duration::ZERO);
        metrics.upstream_up(&alias, true);
    }
    let text = metrics.render();
    let series = |name: &str| text.lines().filter(|line| line.starts_with(name)).count();
    assert_eq!(series("narthex_calls_total{"), SERVERS_MOST + 1);
    assert_eq!(series("narthex_upstream_up{"), SERVERS_MOST + 1);
    let other = "server=\"_other\",method=\"_other\",outcome=\"ok\"";
    assert_line(&metrics, &format!("narthex_calls_total{{{other}}} 500"));
}

/// Counters are shared by callers that meet a server at the same time.
#[test]
fn concurrent_callers_lose_no_count() {
    let metrics = Metrics::default();
    std::thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| {
                for number in 0..500 {
                    let alias = alias(&format!("s{}", number % 50));
                    metrics.call_finished(Some(&alias), "ping", Outcome::Ok, Duration::ZERO);
                }
            });
        }
    });
    for number in 0..50 {
        let labels = format!("server=\"s{number}\",method=\"ping\",outcome=\"ok\"");
        assert_line(&metrics, &format!("narthex_calls_total{{{labels}}} 160"));
    }
}

/// Numbers of other crates have one line for each value of their label, and none without values.
#[test]
fn labelled_numbers_of_other_crates_are_read_at_each_rendering() {
    let metrics = Metrics::default();
    let (name, help, label) = ("absent", "Nothing", "server");
    metrics.measure_each(Labelled { name, help, label, read: Box::new(Vec::new) });
    metrics.measure_each(Labelled {
        name: "expiry_seconds",
        help: "Time left",
        label: "server",
        read: Box::new(|| vec![("git".to_owned(), -3), ("linear".to_owned(), 60)]),
    });
    metrics.count_each(Labelled {
        name: "renewals",
        help: "Renewals",
        label: "result",
        read: Box::new(|| vec![("failed".to_owned(), 2)]),
    });
    assert_line(&metrics, "narthex_expiry_seconds{server=\"git\"} -3");
    assert_line(&metrics, "narthex_expiry_seconds{server=\"linear\"} 60");
    assert_line(&metrics, "narthex_renewals_total{result=\"failed\"} 2");
    assert!(!metrics.render().contains("absent"));
}
