//! `narthex connect`: a client that speaks over standard input and output, in both eras.

use std::{
    io::{BufRead, BufReader, Read, Write},
    process::{Child, ChildStderr, ChildStdin, ChildStdout, Stdio},
};

use serde_json::{Value, json};

use crate::{
    support::{Done, Place},
    world::modern,
};

fn legacy(tool: &str) -> [Value; 3] {
    [
        json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": { "name": "test", "version": "1" },
        } }),
        json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
        json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {
            "name": tool, "arguments": { "message": "hello" },
        } }),
    ]
}

fn answer(done: &Done, id: u32) -> Value {
    let found = done.lines().into_iter().find(|line| line["id"] == id);
    found.unwrap_or_else(|| panic!("no answer {id} in {done:?}"))
}

/// D2.
#[test]
fn both_eras_reach_both_endpoints() {
    let place = Place::new();
    let _daemon = place.up();
    for (words, tool) in
        [(&["connect"][..], "mcp__fixture__echo"), (&["connect", "--server", "fixture"], "echo")]
    {
        let done = place.feed(words, &legacy(tool)).succeeded();
        assert_eq!(answer(&done, 1)["result"]["protocolVersion"], "2025-11-25");
        assert_eq!(answer(&done, 2)["result"]["content"][0]["text"], "hello");
        let params = json!({ "name": tool, "arguments": { "message": "hello" } });
        let call = modern(7, "tools/call", params);
        let done = place.feed(words, &[call]).succeeded();
        assert_eq!(answer(&done, 7)["result"]["content"][0]["text"], "hello");
        assert!(done.stderr.is_empty(), "{done:?}");
    }
}

/// The end of the input is no end of the calls.
#[test]
fn answers_are_waited_for_after_the_last_line() {
    let place = Place::new();
    let _daemon = place.up();
    let params = json!({ "name": "sleep", "arguments": { "ms": 300 } });
    let call = modern(1, "tools/call", params);
    let done = place.feed(&["connect", "--server", "fixture"], &[call]).succeeded();
    assert!(answer(&done, 1)["result"]["content"].is_array());
}

#[test]
fn failures_leave_standard_output_to_the_protocol() {
    let place = Place::new();
    let words = ["connect", "--wait", "0", "--json"];
    let done = place.run(words).failed(1, &["no daemon", "narthex up"]);
    assert!(done.stdout.is_empty(), "{done:?}");
    let _daemon = place.up();
    for (server, hint) in [("fixtur", "did you mean `fixture`?"), ("nosuch", "narthex status")] {
        let told = format!("not_found: there is no server `{server}`; ");
        let done = place.run(["connect", "--server", server]).failed(1, &[&told, hint]);
        assert!(done.stdout.is_empty(), "{done:?}");
    }
}

/// D15: the holder of a run's token gets no other run for it.
#[test]
fn the_token_of_a_run_opens_no_other_run() {
    let place = Place::new();
    let _daemon = place.up();
    let of_run = |token: &str| {
        Done::from(place.command(["connect"]).env("NARTHEX_TOKEN", token).output().unwrap())
    };
    let done = of_run("nxt_0123456789");
    done.failed(2, &["the token belongs to a run", "`mcpServers`", "`socat - UNIX-CONNECT:PATH`"]);
    place.write("token", "nxt_0123456789\n");
    place.run(["connect", "--token-file", "token"]).failed(2, &["belongs to a run"]);
    place.run(["connect", "--token-file", "absent"]).failed(1, &["absent"]);
    // Other variables in the environment of an operator have no effect.
    of_run("of-an-operator").succeeded();
}

#[test]
fn connect_fails_when_the_daemon_ends() {
    let place = Place::new();
    let daemon = place.up();
    let mut command = place.command(["connect", "--wait", "0"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // The input stays open, so that only the daemon's end can end the program.
    let mut input = child.stdin.take().unwrap();
    writeln!(input, "{}", modern(1, "server/discover", json!({}))).unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    assert!(line.contains("2026-07-28"), "{line}");
    daemon.signal("TERM");
    let done = Done::from(child.wait_with_output().unwrap());
    drop(input);
    done.failed(1, &["the daemon closed the connection"]);
}

/// Programs that want JSON get it on standard error, out of the way of messages.
#[test]
fn failures_are_json_on_standard_error() {
    let place = Place::new();
    let done = place.run(["connect", "--wait", "0", "--json"]);
    assert_eq!((done.code, done.stdout.as_str()), (Some(1), ""), "{done:?}");
    let told: Value = serde_json::from_str(&done.stderr).unwrap();
    assert_eq!((&told["ok"], &told["error"]["kind"]), (&json!(false), &json!("unavailable")));
    let plain = place.run(["connect", "--wait", "0"]);
    assert!(plain.stderr.starts_with("error: unavailable: "), "{plain:?}");
}

/// A client that stays while daemons come and go.
struct Client {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    said: BufReader<ChildStderr>,
}

impl Client {
    fn begin(place: &Place, words: &[&str]) -> Self {
        let mut command = place.command(words);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let said = BufReader::new(child.stderr.take().unwrap());
        Self { child, input, output: BufReader::new(output), said }
    }

    fn say(&mut self, message: &Value) {
        writeln!(self.input, "{message}").unwrap();
    }

    /// The next message with this id; those before it are passed over.
    #[track_caller]
    fn answer(&mut self, id: u32) -> Value {
        loop {
            let next = self.next();
            if next["id"] == id {
                return next;
            }
        }
    }

    #[track_caller]
    fn next(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
    }

    /// Reads standard error up to a line that says this.
    #[track_caller]
    fn told(&mut self, text: &str) {
        let mut line = String::new();
        while !line.contains(text) {
            line.clear();
            assert_ne!(self.said.read_line(&mut line).unwrap(), 0, "nothing says {text:?}");
        }
    }

    fn ends(mut self) {
        drop(self.input);
        assert_eq!(self.child.wait().unwrap().code(), Some(0));
    }
}

/// I-M33: a client starts it whenever it likes, and knows nothing of daemons.
#[test]
fn a_daemon_is_waited_for() {
    let place = Place::new();
    let mut client = Client::begin(&place, &["connect", "--no-start", "--wait", "60s"]);
    client.told("waiting for one, for up to 60 s");
    client.say(&modern(1, "server/discover", json!({})));
    let _daemon = place.up();
    assert!(client.answer(1)["result"].is_object());
    client.ends();
}

/// I-M33: `connect` prints each text once, and names a wait only where it waits.
#[test]
fn a_wait_is_reported_once_with_its_real_length() {
    let place = Place::new();
    let now = place.run(["connect", "--no-start", "--wait", "3600s"]);
    assert!(!now.stderr.contains("3600"), "{now:?}");
    now.failed(1, &["error: unavailable: no daemon runs with the data directory"]);
    for is_json in [false, true] {
        let mut words = vec!["connect", "--no-start", "--wait", "1s"];
        words.extend(is_json.then_some("--json"));
        let Client { mut child, input, mut said, .. } = Client::begin(&place, &words);
        let mut told = String::new();
        said.read_to_string(&mut told).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(1));
        drop(input);
        let once = ["no daemon runs with the data directory", "for up to 1 s", "within 1 s"];
        for text in once {
            assert_eq!(told.matches(text).count(), 1, "{text:?} in {told}");
        }
        let remedy = place.printed("connect");
        assert!(told.contains(&remedy), "{told}");
    }
}

/// I-M33: the session of a client outlives its daemon: it is opened again at the next one. A
/// request that was under way gets an error and is not sent again.
#[test]
fn a_session_is_opened_again_at_the_next_daemon() {
    let place = Place::new();
    let mut daemon = place.up();
    let mut client = Client::begin(&place, &["connect", "--wait", "60s", "--server", "fixture"]);
    for message in legacy("echo") {
        client.say(&message);
    }
    assert_eq!(client.answer(2)["result"]["content"][0]["text"], "hello");
    let call = |id: u32, tool: &str, arguments: Value| {
        json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call",
            "params": { "name": tool, "arguments": arguments } })
    };
    client.say(&call(3, "sleep", json!({ "ms": 600_000 })));
    // When this call is answered, the call before it has begun.
    client.say(&call(4, "echo", json!({ "message": "still" })));
    assert_eq!(client.answer(4)["result"]["content"][0]["text"], "still");
    daemon.signal("KILL");
    daemon.wait();
    let lost = client.answer(3);
    assert_eq!(lost["error"]["code"], -31503, "{lost}");
    let text = lost["error"]["message"].as_str().unwrap();
    assert!(text.contains("ended before it answered"), "{text}");
    client.told("connecting again");
    client.say(&call(5, "echo", json!({ "message": "again" })));
    let _next = place.up();
    client.told("connected again");
    let news = client.next();
    assert_eq!(news["method"], "notifications/tools/list_changed", "{news}");
    assert_eq!(client.answer(5)["result"]["content"][0]["text"], "again");
    client.ends();
}

/// I-M33: a restart is as another daemon. A call that takes longer than the drain ends with an
/// error that says so, and is not sent again.
#[test]
fn a_restart_keeps_the_session_and_ends_calls_over_the_drain_time() {
    let place = Place::new();
    let _daemon = place.up();
    let mut client = Client::begin(&place, &["connect", "--wait", "60s", "--server", "fixture"]);
    for message in legacy("echo") {
        client.say(&message);
    }
    client.answer(2);
    let call = |id: u32, tool: &str, arguments: Value| {
        json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call",
            "params": { "name": tool, "arguments": arguments } })
    };
    client.say(&call(3, "sleep", json!({ "ms": 600_000 })));
    client.say(&call(4, "echo", json!({ "message": "still" })));
    client.answer(4);
    place.run(["daemon", "restart"]).succeeded();
    let lost = client.answer(3);
    assert_eq!(lost["error"]["code"], -31503, "{lost}");
    let text = lost["error"]["message"].as_str().unwrap();
    assert!(text.contains("ended before it answered"), "{text}");
    client.say(&call(5, "echo", json!({ "message": "again" })));
    assert_eq!(client.answer(5)["result"]["content"][0]["text"], "again");
    client.ends();
}

/// I-M33: the same in the modern era, where each request is complete in itself.
#[test]
fn modern_requests_are_sent_to_the_next_daemon() {
    let place = Place::new();
    let mut daemon = place.up();
    let mut client = Client::begin(&place, &["connect", "--wait", "60s"]);
    client.say(&modern(1, "server/discover", json!({})));
    client.answer(1);
    daemon.signal("TERM");
    daemon.wait();
    client.told("connecting again");
    let _next = place.up();
    client.say(&modern(2, "tools/list", json!({})));
    assert_eq!(client.next()["id"], 2);
    client.ends();
}

/// I-M33.
#[test]
fn connect_waits_for_a_missing_daemon_only_up_to_its_limit() {
    let place = Place::new();
    let mut client = Client::begin(&place, &["connect", "--no-start", "--wait", "1s"]);
    client.told("waiting for one, for up to 1 s");
    client.told("error: unavailable: no connection within 1 s, and no daemon runs");
    assert_eq!(client.child.wait().unwrap().code(), Some(1));
}

/// I-M33: a client that has closed standard input wants nothing any more, also of a daemon that
/// comes.
#[test]
fn no_daemon_is_waited_for_after_the_last_line() {
    let place = Place::new();
    let mut client = Client::begin(&place, &["connect", "--no-start", "--wait", "3600s"]);
    client.told("waiting for one");
    client.say(&modern(1, "server/discover", json!({})));
    let Client { mut child, input, .. } = client;
    drop(input);
    assert_eq!(child.wait().unwrap().code(), Some(1));
    let words = ["connect", "--no-start", "--wait", "3600s"];
    place.run(words).failed(1, &["error: unavailable: no daemon runs"]);
}

/// I-M33: a daemon that hangs still has its socket, and a client would wait for ever.
#[test]
fn a_daemon_that_hangs_is_reported_within_the_wait() {
    let place = Place::new();
    let daemon = place.up();
    daemon.signal("STOP");
    let mut client = Client::begin(&place, &["connect", "--wait", "1s"]);
    client.say(&modern(1, "server/discover", json!({})));
    client.told(&format!(
        "error: timeout: the daemon, process {}, has not answered within 1 s; end it with {}",
        daemon.pid(),
        place.printed("daemon stop --force")
    ));
    let Client { mut child, input, mut output, .. } = client;
    assert_eq!(child.wait().unwrap().code(), Some(1));
    drop(input);
    let mut rest = String::new();
    output.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "");
    daemon.signal("CONT");
}

/// I-M33: a daemon that hangs and cannot be asked gives no sign of life either.
#[test]
fn a_daemon_that_hangs_and_cannot_be_asked_is_reported_within_the_wait() {
    let place = Place::new();
    let daemon = place.up();
    fs_err::remove_file(place.path("data/admin.token")).unwrap();
    daemon.signal("STOP");
    let mut client = Client::begin(&place, &["connect", "--wait", "1s"]);
    client.say(&modern(1, "server/discover", json!({})));
    client.told("has not answered within 1 s");
    assert_eq!(client.child.wait().unwrap().code(), Some(1));
    daemon.signal("CONT");
}

/// I-M33: a data folder in which no daemon can start is named on standard error.
#[test]
fn a_daemon_without_a_log_is_reported_on_standard_error() {
    let place = Place::new();
    fs_err::create_dir_all(place.path("data/daemon.log")).unwrap();
    place.set_mode("data", 0o700);
    let done = place.run(["connect", "--wait", "60s"]);
    assert!(done.stdout.is_empty(), "{done:?}");
    done.failed(1, &["error: ", "daemon.log` is not a regular file", "`mv '"]);
}

/// I-M33: `--start` starts the daemon of the client's folder.
#[test]
fn connect_starts_a_daemon_on_request() {
    let place = Place::new();
    let words = ["connect", "--start", "--config", "mcp.json", "--wait", "60s"];
    fs_err::create_dir_all(place.path("config/narthex")).unwrap();
    place.write("config/narthex/narthex.toml", "listen = \"127.0.0.1:0\"\n");
    let mut client = Client::begin(&place, &words);
    client.told("starting a daemon");
    // Clients that read the list once have the tools.
    client.say(&modern(1, "tools/list", json!({})));
    let listed = client.answer(1);
    assert!(listed.to_string().contains("__echo"), "{listed}");
    client.ends();
    place.run(["daemon", "status"]).succeeded();
    // The next one finds it.
    let mut client = Client::begin(&place, &words);
    client.say(&modern(1, "server/discover", json!({})));
    client.answer(1);
    client.ends();
    place.run(["daemon", "stop"]).succeeded();

    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    place.write("config/narthex/narthex.toml", &format!("listen = \"{address}\"\n"));
    place.run(words).failed(1, &["failed to start", &address]);
}
