//! `narthex daemon restart`: another program takes the listener, and no request is lost.

use std::{
    net::{SocketAddr, TcpListener},
    process::{Command, Stdio},
};

use fs_err as fs;
use narthex_testkit::messages::{Era, message};
use serde_json::{Value, json};
use tokio::{sync::mpsc, task::JoinSet};
use tokio_util::sync::CancellationToken;

use crate::{
    support::{Daemon, Done, PROGRAM, Place},
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

/// A restart that would end the daemon is refused with the reason of the next program, and the
/// daemon serves on.
#[test]
fn a_daemon_that_could_not_start_again_serves_on() {
    let place = Place::new();
    fs::create_dir_all(place.path("config/narthex")).unwrap();
    let settings = "config/narthex/narthex.toml";
    place.write(settings, "listen = \"127.0.0.1:0\"\n");
    let daemon = place.start(&["up", "--config", "mcp.json"]);
    let (address, _) = ready(&place, &daemon);
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let listen = format!("listen = \"{}\"\n", taken.local_addr().unwrap());
    for (file, content, words) in [
        ("mcp.json", "{", ["mcp.json", "serves on"]),
        (settings, &*listen, ["cannot listen on", "listens there already"]),
        ("data/client.token", "not a token\n", ["client.token", "delete it"]),
        ("data/master.key", "not a key\n", ["master.key", "no valid master keys"]),
    ] {
        let before = fs::read_to_string(place.path(file)).unwrap();
        place.write(file, content);
        let done = place.run(["daemon", "restart"]);
        done.failed(1, &["was not restarted", &daemon.pid().to_string(), words[0], words[1]]);
        place.write(file, &before);
        place.run(["call", "fixture", "echo", "message=hello"]).succeeded();
    }
    place.set_mode("data/client.token", 0o644);
    place.run(["daemon", "restart"]).failed(1, &["client.token", "0644", "chmod 600"]);
    place.set_mode("data/client.token", 0o600);
    // A step that the next program would take only once it has taken over.
    let new = place.path("data/audit/audit.new");
    fs::create_dir(&new).unwrap();
    place.run(["daemon", "restart"]).failed(1, &["audit record", "audit.new", "serves on"]);
    fs::remove_dir(&new).unwrap();
    // The reasons are gone, and the address of the settings is another one.
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    place.write(settings, &format!("listen = \"{free}\"\n"));
    let told = place.run(["daemon", "restart"]).succeeded().stdout;
    let version =
        format!(" with narthex {}; it listens at http://{free}", env!("CARGO_PKG_VERSION"));
    assert!(told.contains(&version) && address != free, "{told}");
    place.run(["call", "fixture", "echo", "message=hello"]).succeeded();
}

/// A daemon whose folder was deleted could not start there again.
#[test]
fn a_daemon_whose_folder_is_gone_is_not_restarted() {
    let place = Place::new();
    let (folder, config) = (place.path("folder"), place.path("mcp.json"));
    fs::create_dir(&folder).unwrap();
    let config = config.display().to_string();
    let words = ["up", "--config", &config, "--listen", "127.0.0.1:0"];
    let daemon = place.start_with(&words, |command| {
        command.current_dir(&folder);
    });
    ready(&place, &daemon);
    fs::remove_dir(&folder).unwrap();
    let done = place.run(["daemon", "restart"]);
    done.failed(1, &["serves on", "the folder in which narthex works", "was it deleted?"]);
    place.run(["call", "fixture", "echo", "message=hello"]).succeeded();
}

/// A package manager links the program to its present version: a restart starts the file that the
/// link leads to at that time, and printed commands name the link.
#[test]
fn a_program_that_is_a_link_is_restarted_as_the_file_that_it_leads_to() {
    let place = Place::new();
    for version in ["1.0", "1.1"] {
        let folder = place.path("cellar").join(version);
        fs::create_dir_all(&folder).unwrap();
        if fs::hard_link(PROGRAM, folder.join("narthex")).is_err() {
            fs::copy(PROGRAM, folder.join("narthex")).unwrap();
        }
    }
    let link = place.path("bin/narthex");
    fs::create_dir(place.path("bin")).unwrap();
    std::os::unix::fs::symlink("../cellar/1.0/narthex", &link).unwrap();
    // A manager of services that knows none.
    place.write("bin/systemctl", "#!/bin/sh\n");
    place.set_mode("bin/systemctl", 0o755);
    let run = |words: &[&str]| {
        let alike = place.command([""; 0]);
        let mut command = Command::new("narthex");
        command.env_clear();
        command
            .current_dir(place.path(""))
            .envs(alike.get_envs().filter_map(|(n, v)| Some((n, v?))));
        let path = std::env::var_os("PATH").unwrap().into_string().unwrap();
        command.env("PATH", format!("{}:{path}", place.path("bin").display()));
        Done::from(command.args(words).stdin(Stdio::null()).output().unwrap()).succeeded()
    };
    let unit = run(&["service", "install", "--dry-run"]).stdout;
    assert!(unit.contains(&format!("\"{}\" \"up\"", link.display())), "{unit}");
    let up = run(&["up", "--config", "mcp.json", "--listen", "127.0.0.1:0", "--detach", "--json"]);
    let pid = up.json()["data"]["pid"].as_u64().unwrap();
    let exe = || fs::canonicalize(format!("/proc/{pid}/exe")).unwrap();
    let cellar = fs::canonicalize(place.path("cellar")).unwrap();
    assert_eq!(exe(), cellar.join("1.0/narthex"));

    fs::remove_file(&link).unwrap();
    std::os::unix::fs::symlink("../cellar/1.1/narthex", &link).unwrap();
    fs::remove_file(place.path("cellar/1.0/narthex")).unwrap();
    for _ in 0..2 {
        run(&["daemon", "restart"]);
        assert_eq!(exe(), cellar.join("1.1/narthex"));
    }
    run(&["daemon", "stop"]);
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
    // A daemon that starts or stops has no such file.
    fs::remove_file(&state).unwrap();
    let told = format!("process {}, is starting or stopping", daemon.pid());
    place.run(["daemon", "restart"]).failed(1, &[&told, "`narthex daemon status"]);
    place.run(["up", "--handed-over"]).failed(1, &["is for the daemon itself"]);
}
