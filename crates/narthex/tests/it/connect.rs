//! `narthex connect`: a client that speaks over standard input and output, in both eras.

use std::{
    io::{BufRead, BufReader, Write},
    process::Stdio,
};

use serde_json::{Value, json};

use crate::support::{Done, Place};

fn modern(id: u32, method: &str, mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

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
    let done = place.run(["connect", "--json"]).failed(1, &["no daemon", "narthex up"]);
    assert!(done.stdout.is_empty(), "{done:?}");
    let _daemon = place.up();
    let done = place.run(["connect", "--server", "nobody"]).failed(1, &["nobody"]);
    assert!(done.stdout.is_empty(), "{done:?}");
}

/// D15: who has a run's token gets no other run for it.
#[test]
fn the_token_of_a_run_opens_no_other_run() {
    let place = Place::new();
    let _daemon = place.up();
    let of_run = |token: &str| {
        Done::from(place.command(["connect"]).env("NARTHEX_TOKEN", token).output().unwrap())
    };
    let done = of_run("nxt_0123456789");
    done.failed(2, &["the token is a run's", "narthex runs create"]);
    place.write("token", "nxt_0123456789\n");
    place.run(["connect", "--token-file", "token"]).failed(2, &["is a run's"]);
    place.run(["connect", "--token-file", "absent"]).failed(1, &["absent"]);
    // What else is in the environment of an operator is no matter.
    of_run("of-an-operator").succeeded();
}

#[test]
fn the_end_of_the_daemon_is_a_failure() {
    let place = Place::new();
    let daemon = place.up();
    let mut command = place.command(["connect"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // Held open, so that only the daemon's end can be what ends it.
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

/// Programs that want JSON get it where it is in nobody's way.
#[test]
fn failures_are_json_on_standard_error() {
    let place = Place::new();
    let done = place.run(["connect", "--json"]);
    assert_eq!((done.code, done.stdout.as_str()), (Some(1), ""), "{done:?}");
    let told: Value = serde_json::from_str(&done.stderr).unwrap();
    assert_eq!((&told["ok"], &told["error"]["kind"]), (&json!(false), &json!("unavailable")));
    let plain = place.run(["connect"]);
    assert!(plain.stderr.starts_with("error: unavailable: "), "{plain:?}");
}
