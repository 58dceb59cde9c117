//! Child processes: their end, tolerated output, and no process that remains.

use std::{os::unix::fs::PermissionsExt, sync::Arc, time::Duration};

use narthex_testkit::clock::SteppedClock;
use narthex_upstream::{ConnectError, Dialect, LinkError, Phase, connect};
use serde_json::json;
use tokio::task::JoinSet;

use super::world::{
    Log, World, call, call_to_end, fixture_process, in_time, initializes, program, say, script,
    shell,
};

#[tokio::test]
async fn e133_a_child_that_dies_in_a_call_is_reported_with_its_exit_code() {
    let mut world = World::new();
    let link = world.link(&fixture_process("legacy,crash-on-call")).await;
    let error = call_to_end(&link, "echo", json!({"message": "x"})).await.unwrap_err();
    assert!(matches!(&error, LinkError::Closed(why) if why.contains("exit code 101")), "{error}");
    assert!(world.closed().await.contains("exit code 101"));
    let error = call(&link, "echo", json!({"message": "x"})).await.unwrap_err();
    assert!(matches!(error, LinkError::Closed(_)), "{error}");
    drop(link);
    world.drain().await;
}

/// R-M27: text on stdout that is no message does not fail the handshake.
#[tokio::test]
async fn e133_banners_on_stdout_are_tolerated() {
    let cases = format!(r#"*server/discover*) echo "{{broken";; {}"#, initializes());
    let banner = format!("echo 'Server v1 is listening'; {}", script(&cases));
    let world = World::impatient();
    let link = world.link(&program("sh", &["-c", &banner])).await;
    link.stop().await;
    world.drain().await;
}

/// A log record may have an id, too, even the id of a call.
#[tokio::test]
async fn e133_a_log_record_on_stdout_fails_no_call() {
    let logging = r#"*tools/call*)
        printf '{"level":"error","id":%s,"error":"cannot read"}\n' "$id"
        printf '{"jsonrpc":"2.0","id":%s,"result":{"is":"there"}}\n' "$id";;"#;
    let cases = format!("{} {logging}", initializes_at_once());
    let world = World::new();
    let link = world.link(&shell(&cases)).await;
    let (_, answer) = call_to_end(&link, "x", json!({})).await.unwrap();
    assert_eq!(answer["result"]["is"], "there");
    link.stop().await;
    drop(link);
    world.drain().await;
}

#[tokio::test]
async fn s12_a_line_that_is_too_long_ends_the_link_with_an_error() {
    let long = r#"*tools/call*) head -c 20000 /dev/zero | tr '\0' 'x'; sleep 1000;;"#;
    let cases = format!("*server/discover*) {};; {} {long}", say(&json!({})), initializes());
    let mut world = World::new();
    world.context.limits.message_bytes = 10_000;
    let link = world.link(&shell(&cases)).await;
    let error = call_to_end(&link, "x", json!({})).await.unwrap_err();
    assert!(error.to_string().contains("it wrote a line that is longer than the limit"), "{error}");
    world.closed().await;
    drop(link);
    world.drain().await;
}

#[tokio::test]
async fn e133_a_question_of_a_child_is_forwarded_and_a_ping_is_answered() {
    let asking = r#"*tools/call*) call=$id
        echo '{"jsonrpc":"2.0","id":"p","method":"ping"}'; read -r pong;
        echo '{"jsonrpc":"2.0","id":"q","method":"roots/list"}'; read -r roots;
        printf '{"jsonrpc":"2.0","id":%s,"result":{"seen":[%s,%s]}}\n' "$call" "$pong" "$roots";;"#;
    let cases = format!("*server/discover*) {};; {} {asking}", say(&json!({})), initializes());
    let mut world = World::new();
    let link = world.link(&shell(&cases)).await;
    let mut forwarded = call(&link, "x", json!({})).await.unwrap();
    let narthex_upstream::LinkEvent::Request(question) = world.event().await else { panic!() };
    let id = question.id().unwrap();
    let roots = narthex_wire::rpc::result_response(id, &bytes::Bytes::from_static(b"{}"));
    in_time(link.respond(roots)).await.unwrap();
    let (_, answer) = super::world::finish(&mut forwarded).await.unwrap();
    assert_eq!(answer["result"]["seen"][0], json!({"jsonrpc": "2.0", "id": "p", "result": {}}));
    assert_eq!(answer["result"]["seen"][1], json!({"jsonrpc": "2.0", "id": "q", "result": {}}));
    link.stop().await;
    drop(link);
    world.drain().await;
}

#[tokio::test]
async fn s31_a_dropped_link_leaves_no_child() {
    let world = World::new();
    let link = world.link(&shell(&initializes_at_once())).await;
    drop(link);
    world.drain().await;
}

#[tokio::test]
async fn s31_an_abandoned_connection_leaves_no_child() {
    let world = World::new();
    let definition = shell("*) ;;");
    let mut connecting = Box::pin(connect(&definition, &world.context));
    // Polling the future starts the child; then the caller stops waiting.
    assert!(tokio::time::timeout(Duration::from_millis(300), &mut connecting).await.is_err());
    drop(connecting);
    world.drain().await;
}

fn initializes_at_once() -> String {
    format!("*server/discover*) {};; {}", say(&json!({})), initializes())
}

/// Opens and closes links one after the other; returns the process ids of their children.
async fn open_and_close(world: Arc<World>, times: usize) -> Vec<u32> {
    let mut children = Vec::new();
    for _ in 0..times {
        let link = world.link(&shell(&initializes())).await;
        children.push(link.process_id().unwrap());
        link.stop().await;
    }
    children
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s31_a_thousand_links_leave_no_child_and_no_memory() {
    let world = Arc::new(World::new().knowing(Dialect::Legacy));
    let mut after_warm_up = 0;
    for round in 0..10 {
        let mut cycles = JoinSet::new();
        for _ in 0..4 {
            cycles.spawn(open_and_close(Arc::clone(&world), 25));
        }
        for child in in_time(cycles.join_all()).await.into_iter().flatten() {
            assert!(!std::path::Path::new(&format!("/proc/{child}")).exists(), "{child} is left");
        }
        if round == 2 {
            after_warm_up = resident_kib();
        }
    }
    world.drain().await;
    let grown = resident_kib().saturating_sub(after_warm_up);
    assert!(grown < 32 * 1024, "700 links have left {grown} KiB");
}

fn resident_kib() -> u64 {
    let status = fs_err::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0)
}

/// A world in which `npx` is this script, with the log of the connection's phases.
fn runner(text: &str) -> (tempfile::TempDir, narthex_model::ServerDefinition, World, Log<Phase>) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("npx");
    fs_err::write(&file, format!("#!/bin/sh\n{text}\n")).unwrap();
    fs_err::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut world = World::new();
    let phases = Log::<Phase>::default();
    let log = phases.clone();
    world.context.on_phase = Some(Arc::new(move |phase| log.lock().unwrap().push(phase)));
    world.context.deadlines.probe = Duration::from_millis(300);
    world.context.deadlines.connect = Duration::from_secs(3);
    let definition = program(file.to_str().unwrap(), &[]);
    (folder, definition, world, phases)
}

/// A download may take any time: the deadlines begin when the server starts.
#[tokio::test]
async fn e75_a_download_counts_against_no_deadline() {
    let (folder, definition, mut world, phases) = runner("");
    // This time is enough for the server itself, but shorter than the download.
    world.context.deadlines.connect = Duration::from_secs(20);
    let [fifo, file, mark] = ["fifo", "npx", "mark"].map(|name| folder.path().join(name));
    let made = std::process::Command::new("mkfifo").arg(&fifo).status().unwrap();
    assert!(made.success());
    // Until the test writes to the pipe, the runner waits without a child; then the server is its
    // child.
    let script = script(&initializes_at_once()).replace('\'', "'\\''");
    let waits = format!(": > {}\nread -r go < {}", mark.display(), fifo.display());
    fs_err::write(&file, format!("#!/bin/sh\n{waits}\nsh -c '{script}'\n")).unwrap();
    let connecting = world.connect(&definition);
    let download = async {
        while !mark.exists() {
            tokio::task::yield_now().await;
        }
        let clock = SteppedClock::by(Duration::from_millis(50));
        let started = tokio::time::Instant::now();
        let mut ticks = tokio::time::interval(Duration::from_millis(50));
        while started.elapsed() < Duration::from_secs(25) {
            ticks.tick().await;
        }
        drop(clock);
        tokio::task::spawn_blocking(move || fs_err::write(fifo, "go\n").unwrap()).await.unwrap();
    };
    let (connected, ()) = tokio::join!(connecting, download);
    let (link, dialect) = connected.unwrap();
    assert_eq!(dialect, Dialect::Legacy);
    assert_eq!(phases.lock().unwrap().first(), Some(&Phase::Installing));
    link.stop().await;
    drop(link);
    world.drain().await;
}

/// A server that hangs behind a package runner gets the connect deadline, not the deadline of a
/// download.
#[tokio::test]
async fn e75_a_hanging_server_behind_a_package_runner_gets_the_connect_deadline() {
    let (_folder, definition, world, phases) = runner("sleep 1000 & wait");
    let error = world.connect(&definition).await.unwrap_err();
    assert!(matches!(error, ConnectError::Deadline { after, .. } if after.as_secs() == 3));
    assert_eq!(*phases.lock().unwrap(), [Phase::Installing, Phase::Connecting]);
    world.drain().await;
}

/// E170: for a server that frames messages as language servers do, the error names this cause, in
/// the handshake and in a call.
#[tokio::test]
async fn e170_the_error_of_content_length_framing_names_the_cause() {
    let framed = r#"printf 'Content-Length: 2\r\n\r\n{}';;"#;
    let world = World::impatient();
    let at_once = shell(&format!("*server/discover*|*initialize*) {framed}"));
    let error = world.connect(&at_once).await.unwrap_err().to_string();
    assert!(error.contains("`Content-Length`") && error.contains("one JSON message"), "{error}");
    let link = world.link(&shell(&format!("{} *tools/call*) {framed}", initializes()))).await;
    let error = call_to_end(&link, "x", json!({})).await.unwrap_err().to_string();
    assert!(error.contains("`Content-Length`"), "{error}");
    drop(link);
    world.drain().await;
}

/// E170: a server may return the id of a request as a string.
#[tokio::test]
async fn e170_an_id_may_be_returned_as_a_string() {
    let reply = r#"{"jsonrpc":"2.0","id":"%s","result":{"is":"there"}}"#;
    let cases = format!(r#"{} *tools/call*) printf '{reply}\n' "$id";;"#, initializes_at_once());
    let world = World::new();
    let link = world.link(&shell(&cases)).await;
    let (_, answer) = call_to_end(&link, "x", json!({})).await.unwrap();
    assert_eq!(answer["result"]["is"], "there");
    link.stop().await;
    drop(link);
    world.drain().await;
}
