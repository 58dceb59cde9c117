//! A call that is open when its run ends.

use std::{
    io::{BufRead, BufReader},
    process::{Command, Stdio},
};

use fs_err as fs;
use serde_json::{Value, json};

use crate::support::{Done, Place};

/// A server that never answers a call, and says by a pipe that it has one.
const SILENT: &str = r#"
import sys, json
for line in sys.stdin:
    m = json.loads(line)
    if "id" not in m: continue
    if m["method"] == "tools/call":
        with open(sys.argv[1], "w") as told: told.write("called\n")
        continue
    answers = {
        "initialize": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                       "serverInfo": {"name": "silent", "version": "1"}},
        "tools/list": {"tools": [{"name": "t", "inputSchema": {"type": "object"}}]},
    }
    answer = answers.get(m["method"])
    end = {"result": answer} if answer else {"error": {"code": -32601, "message": "no"}}
    print(json.dumps({"jsonrpc": "2.0", "id": m["id"], **end}), flush=True)
"#;

/// R-M35: the end of the run is reported to the caller and to the watchers of the run in this
/// order: the call, then the end.
#[test]
fn an_open_call_is_reported_before_the_end_of_its_run() {
    let place = Place::new();
    let _daemon = place.up();
    let pipe = place.path("called");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let args = json!(["-c", SILENT, pipe]);
    let server = json!({ "transport": "stdio", "command": "python3", "args": args });
    place.write("run.json", &json!({ "servers": { "mine": server } }).to_string());
    let made = place.run(["runs", "create", "run.json", "--json"]).succeeded().json();
    let made = &made["data"];
    let text = |name: &str| made[name].as_str().unwrap().to_owned();
    let (run, token, pid) = (text("run_id"), text("token"), made["pid"].to_string());
    let mut watching = place.command(["strace", &pid, "--json"]);
    let mut watching = watching.stdout(Stdio::piped()).spawn().unwrap();
    let mut told = BufReader::new(watching.stdout.take().unwrap()).lines();
    let mut told = || -> Value { serde_json::from_str(&told.next().unwrap().unwrap()).unwrap() };
    assert_eq!(told()["type"], "begin");

    let path = format!("/mnt/mcp/{pid}-mine/tools/t");
    let mut calling = place.command(["vfs", "call", &path]);
    calling.env("NARTHEX_TOKEN", token).stdin(Stdio::null());
    let calling = calling.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    assert_eq!(fs::read_to_string(&pipe).unwrap(), "called\n", "the call is open");
    place.run(["runs", "end", &run]).succeeded();

    let done = Done::from(calling.wait_with_output().unwrap());
    assert_ne!(done.code, Some(0), "{done:?}");
    assert!(done.stderr.contains("[DEVICE_DISCONNECTED] Write: "), "{done:?}");
    let mut seen = Vec::new();
    let end = loop {
        let line = told();
        if line["type"] == "end" {
            break line;
        }
        seen.push(line);
    };
    assert_eq!(end["status"], "ended");
    let write = seen.iter().find(|line| line["operation"] == "Write" && line["is_inner"] == false);
    let write = write.unwrap_or_else(|| panic!("the call is not told: {seen:?}"));
    assert_eq!(
        (&write["path"], &write["error"]),
        (&json!(path), &json!("DEVICE_DISCONNECTED")),
        "{write}"
    );
    assert!(watching.wait().unwrap().success());
}
