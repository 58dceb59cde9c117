//! `narthex up`: events, tokens, one daemon for each data directory, and an end without remains.

use std::{
    io::{BufRead, BufReader},
    process::{Child, Command, Stdio},
    time::{Duration, SystemTime},
};

use fs_err as fs;
use serde_json::json;

use crate::support::{Done, Place, descendants, fixture, fixture_entry};

#[test]
fn events_have_the_data_that_a_calling_program_needs() {
    let place = Place::with(&json!({
        "fixture": fixture_entry(),
        "idle": { "transport": "stdio", "command": fixture(), "disabled": true },
        "missing": { "transport": "stdio", "command": "no-such-program" },
    }));
    let daemon = place.start(&["up", "--config", "mcp.json", "--listen", "127.0.0.1:0"]);
    let listening = daemon.event("listening");
    let url = listening["url"].as_str().unwrap();
    assert!(url.starts_with("http://127.0.0.1:"), "{listening}");
    assert_eq!(listening["mcp"], format!("{url}/mcp"));
    for file in ["token_file", "admin_token_file", "socket"] {
        assert!(fs::metadata(listening[file].as_str().unwrap()).is_ok(), "{file}");
    }
    let ready = daemon.event("ready");
    let states: Vec<_> = ready["servers"].as_array().unwrap().iter().collect();
    assert_eq!(states[0]["alias"], "fixture");
    assert_eq!(states[0]["status"], "ready");
    assert!(states[0]["tools"].as_u64().unwrap() > 10);
    assert_eq!(states[1]["status"], "disabled");
    assert_eq!(states[2]["status"], "error");
    assert_eq!(states[2]["error"]["kind"], "transport_error");
}

/// A person can paste all that the start prints: the entry reaches the daemon, and the command for
/// a header prints the whole one.
#[test]
fn the_start_prints_what_can_be_pasted() {
    let place = Place::new();
    let mut command = place.command(["up", "--config", "mcp.json", "--listen", "127.0.0.1:0"]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut daemon = command.spawn().unwrap();
    let mut output = BufReader::new(daemon.stdout.take().unwrap());
    let mut text = String::new();
    while !text.contains("echo ") {
        assert!(output.read_line(&mut text).unwrap() > 0, "{text}");
    }
    let setup = place.printed("setup").trim_matches('`').to_owned();
    assert!(text.contains(&format!("\n  {setup}\n")), "{text}");
    assert!(!text.contains('<'), "{text}");
    let entry = &text[text.find("\n{").unwrap()..text.find("\n}").unwrap() + 2];
    let entry: serde_json::Value = serde_json::from_str(entry).unwrap();
    let entry = &entry["mcpServers"]["narthex"];
    let words = entry["args"].as_array().unwrap().iter().map(|word| word.as_str().unwrap());
    let mut connect = place.command(words);
    connect.stdin(Stdio::null()).stdout(Stdio::null());
    assert!(connect.status().unwrap().success(), "{entry}");
    let echo = text.lines().find(|line| line.contains("echo ")).unwrap();
    let header = Command::new("sh").args(["-c", echo]).output().unwrap().stdout;
    let token = fs::read_to_string(place.path("data/client.token")).unwrap();
    assert_eq!(
        String::from_utf8(header).unwrap().trim(),
        format!("Authorization: Bearer {}", token.trim())
    );
    daemon.kill().unwrap();
    daemon.wait().unwrap();
}

#[test]
fn commands_work_through_the_daemon() {
    let place = Place::new();
    place.run(["call", "fixture", "echo", "message=x"]).failed(1, &["no daemon", "narthex up"]);
    place.run(["status"]).failed(1, &["no daemon"]);
    let _daemon = place.up();
    let done = place.run(["call", "fixture", "echo", "message=hello"]).succeeded();
    assert_eq!(done.stdout, "hello\n");
    place.run(["call", "fixture", "fail"]).failed(1, &["server_error"]);
    place.run(["call", "fixture", "ecko"]).failed(1, &["tool_not_found", "echo"]);
    place.run(["call", "nosuch", "echo"]).failed(1, &["`nosuch`", "it has fixture"]);
    place.run(["call", "fixtrue", "echo"]).failed(1, &["did you mean `fixture`?"]);
    // As other commands for a run, this command is refused with the token of no run.
    let mut foreign = place.command(["call", "fixture", "echo", "message=x"]);
    let foreign = foreign.env("NARTHEX_TOKEN", "nrt_nosuch").output().unwrap();
    Done::from(foreign).failed(1, &["unauthenticated"]);
    let status = place.run(["status", "--json"]).succeeded().json()["data"].take();
    assert_eq!(status["servers"][0]["status"], "ready");
    assert!(place.run(["status"]).succeeded().stdout.contains("ready"));
    let tools = place.run(["tools", "--json"]).succeeded().json();
    let tools = tools["data"]["servers"][0]["tools"].as_array().unwrap();
    assert_eq!(Some(tools.len() as u64), status["servers"][0]["tools"].as_u64());
    place.run(["tools", "nosuch"]).failed(1, &["nosuch", "it has fixture"]);
}

/// `tools` waits for a server that is still connecting, as `call` does, and says so.
#[test]
fn tools_waits_for_a_server_that_is_connecting() {
    let place = Place::with(&json!({}));
    let script = "until [ -e \"$0\" ]; do sleep 0.05; done; exec \"$@\"";
    let args = json!(["-c", script, place.path("gate"), fixture(), "--stdio"]);
    let slow = json!({ "transport": "stdio", "command": "sh", "args": args });
    place.write("mcp.json", &json!({ "servers": { "slow": slow } }).to_string());
    let daemon = place.start(&["up", "--config", "mcp.json", "--listen", "127.0.0.1:0"]);
    daemon.event("listening");
    let mut command = place.command(["tools", "slow", "--json"]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut tools = command.spawn().unwrap();
    let mut notices = BufReader::new(tools.stderr.take().unwrap());
    let mut told = String::new();
    while !told.contains("waiting for servers that are connecting") {
        assert!(notices.read_line(&mut told).unwrap() > 0, "{told}");
    }
    place.write("gate", "");
    let done = Done::from(tools.wait_with_output().unwrap()).succeeded().json();
    let slow = &done["data"]["servers"][0];
    assert_eq!((&slow["alias"], &slow["status"]), (&json!("slow"), &json!("ready")));
    assert!(slow["tools"].as_array().unwrap().len() > 10, "{slow}");
}

/// D4: tokens are created once, readable only by their owner.
#[test]
fn d4_token_files_are_private_and_created_once() {
    let place = Place::new();
    drop(place.up());
    assert_eq!(place.mode("data"), 0o700);
    let read = |name: &str| fs::read_to_string(place.path(name)).unwrap();
    let tokens = ["data/client.token", "data/admin.token"];
    let first = tokens.map(read);
    assert_ne!(first[0], first[1]);
    for name in tokens {
        assert_eq!(place.mode(name), 0o600);
    }
    drop(place.up());
    assert_eq!(tokens.map(read), first);
    place.set_mode("data/client.token", 0o640);
    let done = place.run(["up", "--config", "mcp.json", "--listen", "127.0.0.1:0"]);
    done.failed(1, &["client.token", "0640", "chmod 600"]);
    assert!(!read("data/daemon.lock").contains(first[0].trim()));
}

#[test]
fn a_damaged_token_is_reported_with_its_remedy() {
    let place = Place::new();
    drop(place.up());
    place.write("data/client.token", "not a token\n");
    let done = place.run(["up", "--config", "mcp.json", "--listen", "127.0.0.1:0"]);
    done.failed(1, &["client.token", "delete it"]);
}

#[test]
fn two_daemons_never_share_a_data_directory() {
    let place = Place::new();
    let daemon = place.up();
    let done = place.run(["up", "--config", "mcp.json", "--listen", "127.0.0.1:0"]);
    done.failed(1, &["conflict", &daemon.pid().to_string(), "--data"]);
    let done = place.run(["up", "--config", "mcp.json", "--data", "other", "--listen", "x"]);
    done.failed(2, &["127.0.0.1:7717"]);
}

/// Memory of a process in KiB that is neither shared nor a page of a program: the pointers that the
/// loader writes into those grow with the program.
fn own_memory(pid: u32) -> u64 {
    let maps = fs::read_to_string(format!("/proc/{pid}/smaps")).unwrap();
    let mut is_of_file = false;
    let mut sum = 0;
    for line in maps.lines() {
        let words: Vec<_> = line.split_whitespace().collect();
        match words.as_slice() {
            // A range of addresses, with its file at the end of the line.
            [range, _rights, _offset, _device, _inode, file @ ..] if range.contains('-') => {
                is_of_file = file.first().is_some_and(|file| file.starts_with('/'));
            }
            ["Anonymous:", size, "kB"] if !is_of_file => sum += size.parse::<u64>().unwrap(),
            _other => {}
        }
    }
    sum
}

#[test]
fn sigterm_ends_the_daemon_and_leaves_no_child() {
    let place = Place::new();
    let mut daemon = place.up();
    let children = descendants(daemon.pid());
    // The server, and the shim above it.
    assert_eq!(children.len(), 2, "{children:?}");
    let shim = fs::read_to_string(format!("/proc/{}/status", children[0])).unwrap();
    assert!(shim.contains("Name:\tnarthex-shim") && shim.contains("Threads:\t1\n"), "{shim}");
    let memory = own_memory(children[0]);
    assert!(memory < 512, "{memory} KiB");
    daemon.signal("TERM");
    daemon.event("stopped");
    assert_eq!(daemon.wait().code(), Some(0));
    assert!(children.iter().all(|pid| !is_alive(*pid)), "{children:?}");
    for left in ["data/daemon.json", "data/run/mcp.sock", "data/run/fixture.sock"] {
        assert!(!place.path(left).exists(), "{left}");
    }
}

#[test]
fn open_calls_finish_before_the_end() {
    let place = Place::new();
    let mut daemon = place.up();
    let call = open_call(&place, "ms=1000");
    daemon.signal("INT");
    assert_eq!(daemon.wait().code(), Some(0));
    let output = call.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn a_second_signal_ends_at_once() {
    let place = Place::new();
    let (told, stderr) = std::io::pipe().unwrap();
    let words = ["up", "--config", "mcp.json", "--listen", "127.0.0.1:0"];
    let mut daemon = place.start_with(&words, |command| {
        command.stderr(stderr);
    });
    daemon.event("ready");
    let children = descendants(daemon.pid());
    let mut call = open_call(&place, "ms=600000");
    daemon.signal("TERM");
    // From then on the next signal is the second one.
    let mut told = BufReader::new(told).lines().map_while(Result::ok);
    assert!(told.any(|line| line.contains("to stop at once")));
    daemon.signal("INT");
    assert_eq!(daemon.wait().code(), Some(0));
    wait_for_the_end_of(&children);
    call.wait().unwrap();
}

/// R-M18: killed, the daemon can do nothing any more, and still no process stays.
#[test]
fn d22_processes_outside_of_their_group_end_with_a_killed_daemon() {
    let script = r#"setsid sh -c 'trap "" TERM; exec sleep 1000' & (setsid sleep 1000 &)
        exec "$0" --stdio"#;
    let args = json!(["-c", script, fixture()]);
    let entry = json!({ "transport": "stdio", "command": "sh", "args": args });
    let place = Place::with(&json!({ "fixture": entry }));
    let mut daemon = place.up();
    let children = descendants(daemon.pid());
    assert_eq!(children.len(), 4, "{children:?}");
    daemon.signal("KILL");
    daemon.wait();
    wait_for_the_end_of(&children);
}

/// D22, A-15: with a one-word setting, a server is confined and still works. A server that cannot
/// be confined is an `error` row.
#[test]
fn d22_entries_confine_their_servers() {
    let with = |confinement| {
        let mut entry = fixture_entry();
        entry["confinement"] = confinement;
        entry
    };
    let place = Place::with(&json!({
        "fixture": with(json!("strict")),
        "lost": with(json!({ "filesystem": { "read": ["no-such-folder"] } })),
    }));
    let daemon = place.start(&["up", "--config", "mcp.json", "--listen", "127.0.0.1:0"]);
    let ready = daemon.event("ready");
    assert_eq!(ready["servers"][0]["status"], "ready", "{ready}");
    let why = ready["servers"][1]["error"]["message"].as_str().unwrap();
    assert!(why.contains("no-such-folder` does not exist"), "{why}");
    let done = place.run(["call", "fixture", "echo", "message=confined"]).succeeded();
    assert_eq!(done.stdout, "confined\n");
    let server = *descendants(daemon.pid()).last().unwrap();
    let status = fs::read_to_string(format!("/proc/{server}/status")).unwrap();
    assert!(status.contains("NoNewPrivs:\t1") && status.contains("Seccomp:\t2"), "{status}");
}

#[test]
fn other_machines_are_served_only_on_demand() {
    let place = Place::new();
    let words = ["up", "--config", "mcp.json", "--listen", "0.0.0.0:0"];
    for words in [&words[..], &[&words[..], &["--allow-remote"]].concat()] {
        place.run(words).failed(2, &["other machines", "--tls-cert", "--allow-plain-remote"]);
    }
    let daemon = place.start(&[&words[..], &["--allow-plain-remote"]].concat());
    let url = daemon.event("listening")["url"].take();
    assert!(url.as_str().unwrap().starts_with("http://127.0.0.1:"), "{url}");
    place.run(["status"]).succeeded();
}

/// Starts a call through the daemon and waits until the server has it.
fn open_call(place: &Place, duration: &str) -> Child {
    let before = calls_so_far(place);
    let mut command = place.command(["call", "fixture", "sleep", duration]);
    let call = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // Each question is a call as well.
    let mut asked = 1;
    while calls_so_far(place) <= before + asked {
        asked += 1;
    }
    call
}

fn calls_so_far(place: &Place) -> u64 {
    let done = place.run(["call", "fixture", "fixture_stats", "--json"]).succeeded();
    done.json()["structuredContent"]["calls"].as_u64().unwrap()
}

/// Waits for processes that are not children of the test.
fn wait_for_the_end_of(processes: &[u32]) {
    let began = SystemTime::now();
    while processes.iter().any(|pid| is_alive(*pid)) {
        assert!(began.elapsed().unwrap() < Duration::from_secs(60), "{processes:?}");
        std::thread::yield_now();
    }
}

fn is_alive(pid: u32) -> bool {
    let state = fs::read_to_string(format!("/proc/{pid}/stat"));
    state.is_ok_and(|text| !text.contains(") Z "))
}
