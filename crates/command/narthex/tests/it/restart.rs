//! `narthex daemon restart`: another program takes the listener, and no request is lost.

use std::{
    io::{BufRead, BufReader},
    net::SocketAddr,
};

use fs_err as fs;
use narthex_testkit::messages::{Era, message};
use serde_json::{Value, json};
use tokio::{sync::mpsc, task::JoinSet};
use tokio_util::sync::CancellationToken;

use crate::{
    support::{Daemon, Place},
    world::{Client, call},
};

const UP: [&str; 5] = ["up", "--config", "mcp.json", "--listen", "127.0.0.1:0"];
const CALLERS: u64 = 8;

/// The address and the token of a daemon that is ready.
fn ready(place: &Place, daemon: &Daemon) -> (SocketAddr, String) {
    let listening = daemon.event("listening");
    daemon.event("ready");
    let address = listening["url"].as_str().unwrap().strip_prefix("http://").unwrap().parse();
    let token = fs::read_to_string(place.path("data/client.token")).unwrap();
    (address.unwrap(), token.trim().to_owned())
}

/// The text of the answer to a call of the fixture, which must not have failed.
async fn text(client: &mut Client, tool: &str, arguments: Value) -> String {
    let params = call(&format!("mcp__fixture__{tool}"), arguments);
    let reply = client.modern(&message(Era::Modern, Some(1), "tools/call", params)).await;
    let answer = reply.json();
    let result = &answer["result"];
    assert!(reply.status.is_success() && result["isError"] != true, "{answer}");
    result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
}

/// Calls without a pause, until the test stops it.
async fn caller(mut client: Client, number: u64, done: mpsc::Sender<()>, stop: CancellationToken) {
    let mut calls = 0;
    while !stop.is_cancelled() {
        calls += 1;
        let words = format!("{calls} of caller {number}");
        assert_eq!(text(&mut client, "echo", json!({ "message": words })).await, words);
        done.send(()).await.unwrap();
    }
}

/// Clients with connections that they use again, and new ones, call through two restarts. An open
/// call that takes longer finishes too.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_calls_over_http_across_two_restarts_all_succeed() {
    let place = Place::new();
    let daemon = place.start(&UP);
    let (address, token) = ready(&place, &daemon);
    let (done, mut count) = mpsc::channel(10_000);
    let stop = CancellationToken::new();
    let mut callers = JoinSet::new();
    for number in 0..CALLERS {
        let client = Client::new(address, "/mcp", &token);
        callers.spawn(caller(client, number, done.clone(), stop.clone()));
    }
    let mut slow = Client::new(address, "/mcp", &token);
    callers.spawn(async move {
        text(&mut slow, "sleep", json!({ "ms": 2_000 })).await;
    });
    for calls in [300, 300, 400] {
        for _ in 0..calls {
            count.recv().await.unwrap();
        }
        if calls == 300 {
            let told = place.run(["daemon", "restart"]).succeeded().stdout;
            let process = format!("The daemon, process {}, has restarted", daemon.pid());
            assert!(told.contains(&process) && told.contains(&address.to_string()), "{told}");
            ready(&place, &daemon);
        }
    }
    stop.cancel();
    while let Some(ended) = callers.join_next().await {
        ended.unwrap();
    }
    place.run(["daemon", "stop"]).succeeded();
}

/// A restart that would end the daemon is refused: here its file of servers has become unusable.
#[test]
fn a_daemon_that_could_not_start_again_serves_on() {
    let place = Place::new();
    let (told, stderr) = std::io::pipe().unwrap();
    let daemon = place.start_with(&UP, |command| {
        command.stderr(stderr);
    });
    ready(&place, &daemon);
    place.write("mcp.json", "{");
    place.run(["daemon", "restart", "--timeout", "1s"]).failed(1, &["timeout", "was not replaced"]);
    let mut lines = BufReader::new(told).lines().map(Result::unwrap);
    assert!(lines.any(|line| line.contains("not restarted") && line.contains("mcp.json")));
    place.run(["call", "fixture", "echo", "message=hello"]).succeeded();
}

#[test]
fn only_a_daemon_that_can_hand_over_is_restarted() {
    let place = Place::new();
    place.run(["daemon", "restart"]).failed(1, &["no daemon runs", "`narthex up"]);
    let daemon = place.up();
    // The file of a daemon before this version has no such key.
    let state = place.path("data/daemon.json");
    let mut old: Value = serde_json::from_slice(&fs::read(&state).unwrap()).unwrap();
    old.as_object_mut().unwrap().remove("can_restart").unwrap();
    place.write("data/daemon.json", &old.to_string());
    let done = place.run(["daemon", "restart"]);
    done.failed(1, &[&daemon.pid().to_string(), "older daemon", "`narthex daemon stop"]);
    place.run(["status"]).succeeded();
    place.run(["up", "--handed-over"]).failed(1, &["is for the daemon itself"]);
}
