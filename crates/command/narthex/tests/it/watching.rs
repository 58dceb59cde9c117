//! `narthex strace` and `narthex top`, and the calls of a watched run at each door.

use std::{
    io::{BufRead as _, BufReader, Lines},
    process::{Child, ChildStdout, Command, Stdio},
};

use narthex_gateway::Endpoint;
use serde_json::{Value, json};

use crate::{
    support::{PROGRAM, Place},
    world::{ADMIN, Stream, World, call, legacy, modern},
};

/// The canary in arguments and in results.
const CANARY: &str = "canary-5150-of-a-call";

/// A server over stdio that gives back the arguments of every call.
const ECHO: &str = r#"
import sys, json
for line in sys.stdin:
    m = json.loads(line)
    if "id" not in m: continue
    params = m.get("params", {})
    uri = params.get("uri", "")
    answers = {
        "initialize": {"protocolVersion": "2025-11-25",
                       "capabilities": {"tools": {}, "resources": {}},
                       "serverInfo": {"name": "echo", "version": "1"}},
        "tools/list": {"tools": [{"name": "t", "inputSchema": {"type": "object"}}]},
        "resources/list": {"resources": [{"uri": "file:///a", "name": "a"}]},
        "resources/read": {"contents": [{"uri": uri, "text": "canary-5150-of-a-call"}]},
        "tools/call": {"content": [{"type": "text", "text": json.dumps(params.get("arguments"))}]},
    }
    answer = answers.get(m["method"])
    end = {"result": answer} if answer else {"error": {"code": -32601, "message": "no"}}
    print(json.dumps({"jsonrpc": "2.0", "id": m["id"], **end}), flush=True)
"#;

fn echo() -> Value {
    json!({ "raw": { "transport": "stdio", "command": "python3", "args": ["-c", ECHO] } })
}

/// The next operation that is reported, and all its text.
async fn told(stream: &mut Stream) -> (Value, String) {
    let text = stream.next().await.expect("the stream goes on");
    (serde_json::from_str(&text).unwrap(), text)
}

/// R-M35, A-8: a call is reported in the same way over HTTP and over a socket, at both endpoints
/// and in both eras. Its contents are never reported.
#[tokio::test]
async fn r_m35_contents_of_calls_are_reported_at_no_endpoint() {
    let world = World::operated(&echo()).await;
    let run = world.app.local_caller(Endpoint::Aggregated).run.id;
    let path = format!("/api/workspaces/default/runs/{run}/trace");
    let mut stream =
        world.client_as(&path, ADMIN).open("GET", &[("accept", "text/event-stream")], "").await;
    let begin = told(&mut stream).await.0;
    assert_eq!((&begin["type"], &begin["is_local"]), (&json!("begin"), &json!(true)));
    let arguments = json!({ "secret": CANARY });
    let (one, all) = (call("t", arguments.clone()), call("mcp__raw__t", arguments.clone()));
    let read = json!({ "uri": "file:///a" });
    let size = arguments.to_string().len();
    let tool = ("Write", "/mnt/mcp/0-raw/tools/t", json!(size));
    let file = ("Read", "/mnt/mcp/0-raw/resources/file:///a", Value::Null);
    let mut transparent = world.client("/mcp/raw");
    let mut aggregated = world.client("/mcp");
    let mut session = world.legacy("/mcp/raw", json!({})).await;
    let mut sessions = world.legacy("/mcp", json!({})).await;
    let mut socket = world.socket("raw").await;
    let mut answers = Vec::new();
    let mut expected = Vec::new();
    for (method, of_one, line) in [("tools/call", one, tool), ("resources/read", read, file)] {
        answers.push(transparent.modern(&modern(1, method, of_one.clone())).await.json());
        answers.push(session.post(&[], legacy(1, method, of_one.clone()).to_string()).await.json());
        answers.push(socket.ask(&modern(7, method, of_one)).await);
        expected.extend([line.clone(), line.clone(), line]);
    }
    answers.push(aggregated.modern(&modern(2, "tools/call", all.clone())).await.json());
    answers.push(sessions.post(&[], legacy(2, "tools/call", all).to_string()).await.json());
    let tool = ("Write", "/mnt/mcp/0-raw/tools/t", json!(size));
    expected.extend([tool.clone(), tool]);
    for (answer, (operation, path, size)) in answers.iter().zip(expected) {
        assert!(answer.to_string().contains(CANARY), "{answer}");
        let (line, text) = told(&mut stream).await;
        assert!(!text.contains("canary"), "{text}");
        assert_eq!((&line["operation"], &line["path"]), (&json!(operation), &json!(path)));
        assert_eq!((&line["size"], &line["error"]), (&size, &Value::Null), "{text}");
        assert!(line["result"].as_u64().unwrap() > 50, "{text}");
    }
    // A call that the gateway refuses itself, with the name that was asked for.
    transparent.modern(&modern(3, "tools/call", call("none", arguments))).await;
    let (line, text) = told(&mut stream).await;
    assert_eq!(line["path"], "/mnt/mcp/0-raw/tools/none", "{text}");
    assert!(line["error"].is_string() && !text.contains("canary"), "{text}");
    world.app.drain().await;
    assert_eq!(stream.next().await, None, "a daemon that ends closes its streams");
}

/// D22, R-M35: operations with files are reported without secrets as well, however their names are
/// spelled.
#[tokio::test]
async fn d22_file_operations_are_reported_without_secrets_of_servers() {
    let mut servers = echo();
    servers["raw"]["env"] = json!({ "API_TOKEN": "topsecret99" });
    let world = World::operated(&servers).await;
    let run = world.app.local_caller(Endpoint::Aggregated).run.id;
    let path = format!("/api/workspaces/default/runs/{run}/trace");
    let mut stream =
        world.client_as(&path, ADMIN).open("GET", &[("accept", "text/event-stream")], "").await;
    told(&mut stream).await;
    let report = r#"{"operation":"Stat","code":"NOT_FOUND","duration_us":9}"#;
    for (path, body, last) in [
        ("tools/call_topsecret99", "{}", "Close"),
        ("tools/call_tops%2565cret99", "{}", "Close"),
        ("tools/call_topsecret99?op=failed", report, "Stat"),
        ("resources/x:topsecret99?op=failed", report, "Stat"),
    ] {
        world.client(&format!("/vfs/mnt/mcp/0-raw/{path}")).post(&[], body.to_owned()).await;
        let mut is_told = false;
        loop {
            let (line, text) = told(&mut stream).await;
            assert!(!text.contains("cret99"), "{path}: {text}");
            is_told |= text.contains("[redacted]");
            if line["operation"] == last {
                break;
            }
        }
        assert!(is_told, "{path}");
    }
}

/// A command that runs on, and its lines.
struct Following {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Following {
    fn of(place: &Place, words: &[&str]) -> Self {
        let mut command = place.command(words);
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines }
    }

    fn next(&mut self) -> String {
        self.lines.next().expect("it goes on").unwrap()
    }

    fn json(&mut self) -> Value {
        serde_json::from_str(&self.next()).unwrap()
    }

    /// Interrupts the program as Ctrl-C does; returns its exit code.
    fn interrupted(mut self) -> Option<i32> {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-s", "INT", &id]).status().unwrap().success());
        self.child.wait().unwrap().code()
    }
}

/// R-M35: the lines of the document, until the user has seen enough; a daemon that was killed is
/// waited for.
#[test]
fn r_m35_strace_continues_after_a_restart() {
    let place = Place::new();
    let mut daemon = place.up();
    let mut follower = Following::of(&place, &["strace", "local", "--json", "--alias", "fixture"]);
    assert_eq!(follower.json()["type"], "begin");
    place.run(["call", "fixture", "echo", "message=hello"]).succeeded();
    let line = loop {
        let line = follower.json();
        if line["operation"] == "Write" {
            break line;
        }
    };
    assert_eq!(
        (&line["path"], &line["size"]),
        (&json!("/mnt/mcp/0-fixture/tools/echo"), &json!(19))
    );
    assert!(!line.to_string().contains("hello"), "{line}");
    daemon.signal("KILL");
    daemon.wait();
    let _daemon = place.up();
    let again = loop {
        let line = follower.json();
        if line["type"] == "begin" {
            break line;
        }
    };
    assert_eq!(again["is_local"], true);
    place.run(["call", "fixture", "echo", "message=hello"]).succeeded();
    while follower.json()["operation"] != "Write" {}
    assert_eq!(follower.interrupted(), Some(0));
}

/// R-C1, R-M35: a run is named by its number too; a user who names none is shown which there are,
/// and the end of a run is the end of the command.
#[test]
fn r_m35_strace_of_a_run_ends_with_the_run() {
    let place = Place::new();
    let _daemon = place.up();
    let unknown = place.run(["strace", "99"]);
    unknown.failed(
        1,
        &["not_found", "no run `99` is active in workspace `default`", "its active runs: local"],
    );
    let bad = place.run(["strace", "local", "--alias", "No"]);
    bad.failed(1, &["invalid", "alias"]);
    let silent = place.run(["strace", "local", "--alias", "fixture,absent"]);
    silent.failed(1, &["alias", "has no server `absent`", "name one that it has: fixture"]);
    let own = place.run(["runs", "end", "local"]);
    own.failed(1, &["the run of the daemon itself", &place.printed("daemon stop")]);
    let made = place.run(["runs", "create", "--tools", "fixture", "--json"]).succeeded().json();
    let run = &made["data"]["run_id"];
    let pid = made["data"]["pid"].to_string();
    let mut followers = [pid.as_str(), run.as_str().unwrap()]
        .map(|name| Following::of(&place, &["strace", name, "--json"]));
    for follower in &mut followers {
        let begin = follower.json();
        assert_eq!((&begin["run_id"], begin["pid"].to_string()), (run, pid.clone()));
    }
    place.run(["runs", "end", run.as_str().unwrap()]).succeeded();
    for mut follower in followers {
        assert_eq!(follower.json(), json!({ "type": "end", "status": "ended" }));
        assert!(follower.child.wait().unwrap().success());
    }
}

/// A table of the runs, for people and for programs; the fixture is a process that uses memory.
#[test]
fn top_shows_runs_with_the_resources_of_their_servers() {
    let place = Place::new();
    let _daemon = place.up();
    let once = place.run(["top", "--once", "--json"]).succeeded().json();
    let row = &once["runs"][0];
    assert_eq!((&row["is_local"], &row["servers"][0]["alias"]), (&json!(true), &json!("fixture")));
    assert_eq!(row["calls"], 0);
    if cfg!(target_os = "linux") {
        assert!(row["memory_bytes"].as_u64().unwrap() > 100_000, "{once}");
        assert!(row["cpu_percent"].is_number(), "{once}");
    }
    let text = place.run(["top", "--once", "--sort", "memory"]).succeeded().stdout;
    assert!(text.starts_with("1 run, 0.0 calls/s, 0 errors, 0 open\n\n PID"), "{text}");
    assert!(text.contains(" local ") && text.contains("1 ready"), "{text}");
    assert!(!text.contains('\u{1b}'), "{text:?}");
    place.run(["top", "--sort", "size"]).failed(2, &["memory"]);
    let mut follower = Following::of(&place, &["top", "--json"]);
    let (one, two) = (follower.json(), follower.json());
    assert!(one["interval_ms"].as_u64() >= Some(1000) && two["at"] != one["at"], "{one} {two}");
    assert_eq!(follower.interrupted(), Some(0));
}

/// On a terminal the screen is drawn anew and given back, and `q` leaves.
#[test]
fn top_restores_the_terminal_on_quit() {
    let place = Place::new();
    let _daemon = place.up();
    let shown = place.on_terminal(&format!("{PROGRAM} top"), "1 ready", "q");
    assert!(shown.starts_with("\u{1b}[?1049h\u{1b}[?25l\u{1b}[H"), "{shown:?}");
    assert!(shown.trim_end().ends_with("\u{1b}[?25h\u{1b}[?1049l"), "{shown:?}");
    assert!(shown.contains("by calls, q leaves"), "{shown:?}");
    let narrow = format!("stty cols 40; {PROGRAM} top");
    let shown = place.on_terminal(&narrow, "by calls, q leaves", "q");
    assert!(shown.contains("0 open\u{1b}[K\r"), "{shown:?}");
    assert!(shown.contains("\nby calls, q leaves\u{1b}[K"), "{shown:?}");
}

/// Ctrl-C gives the terminal back; Ctrl-Z does so until the program is resumed, which then takes it
/// again.
#[test]
fn top_restores_the_terminal_on_interrupt_and_stop() {
    let place = Place::new();
    let _daemon = place.up();
    let (enter, leave) = ("\u{1b}[?1049h\u{1b}[?25l", "\u{1b}[?25h\u{1b}[?1049l");
    let ended = place.at_terminal(&format!("exec {PROGRAM} top"), &[("1 ready", "\u{3}")]);
    assert!(ended.trim_end().ends_with(leave), "{ended:?}");
    let script = format!("set -m\n{PROGRAM} top\nstty -a | tr ' ' '\\n'\necho looked\nfg\n");
    place.write("stops.sh", &script);
    let steps = [("1 ready", "\u{1a}"), ("\nlooked", ""), ("1 ready", "q")];
    let shown = place.at_terminal("bash stops.sh", &steps);
    let parts: Vec<_> = shown.split(enter).collect();
    assert_eq!(parts.len(), 3, "{shown:?}");
    assert!(parts[1].contains(leave), "{shown:?}");
    for mode in ["echo", "icanon"] {
        assert!(parts[1].lines().any(|line| line.trim() == mode), "{mode}: {shown:?}");
    }
    assert!(parts[2].contains(leave), "{shown:?}");
}
