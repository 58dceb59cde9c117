//! `narthex grants` with a real daemon and a real server, one tool of which is gated.

use std::{
    io::{BufRead as _, BufReader, Read as _},
    process::Stdio,
};

use serde_json::{Value, json};

use crate::support::{Done, Place, fixture_entry};

const LOCAL: &str = "prn_0000000000000000";

fn data(done: Done) -> Value {
    done.succeeded().json()["data"].take()
}

/// Everything that the daemon writes to standard error until it has stopped.
fn said_by_a_daemon(place: &Place) -> String {
    let (mut said, stderr) = std::io::pipe().unwrap();
    let mut daemon =
        place.start_with(&["up", "--config", "mcp.json", "--listen", "127.0.0.1:0"], |command| {
            command.stderr(stderr);
        });
    daemon.event("ready");
    daemon.signal("TERM");
    assert!(daemon.wait().success());
    let mut text = String::new();
    said.read_to_string(&mut text).unwrap();
    text
}

/// A new user does not read about grants: the daemon tells their state once there are any.
#[test]
fn d15_up_is_silent_about_grants_until_they_are_used() {
    let place = Place::with(&json!({ "fixture": fixture_entry() }));
    let said = said_by_a_daemon(&place);
    assert!(said.contains("stopping") && !said.contains("grant"), "{said}");
    let mut daemon = place.up();
    data(place.run(["grants", "create", "demo.write", "--user", LOCAL, "--json"]));
    daemon.signal("TERM");
    assert!(daemon.wait().success());
    assert!(said_by_a_daemon(&place).contains("grants are advisory: there is neither a passkey"));
}

fn grant_exactly(place: &Place, arguments: &str) -> Done {
    let words = ["grants", "create", "demo.write", "--user", LOCAL, "--json", "--arguments"];
    place.run([&words[..], &[arguments]].concat())
}

/// X-M54, X-M55, X-E75, X-E76: a call is refused, granted by a human, let through, revoked, and
/// refused. Grants outlive a restart, and so does their use.
#[test]
fn x_m54_a_human_grants_and_revokes_at_the_command_line() {
    let mut entry = fixture_entry();
    entry["tool_scopes"] = json!({ "echo": "demo.write" });
    let place = Place::with(&json!({ "fixture": entry }));
    let mut daemon = place.up();
    let call = || place.run(["call", "fixture", "echo", "message=hello"]);
    call().failed(1, &["permission_required", "demo.write"]);
    let grant = |more: &[&str]| {
        let new = ["grants", "create", "demo.write", "--user", LOCAL, "--json"];
        data(place.run([&new[..], more].concat()))
    };
    let lasting = grant(&["--server", "fixture", "--reason", "to try"]);
    assert_eq!((&lasting["scope"], &lasting["is_advisory"]), (&json!("persistent"), &json!(true)));
    assert_eq!(call().succeeded().stdout, "hello\n");
    let id = lasting["id"].as_str().unwrap();
    let listed = place.run(["grants", "list"]).succeeded().stdout;
    assert!(listed.contains(id) && listed.contains("demo.write fixture"), "{listed}");
    assert!(listed.contains("COUNTS") && listed.contains("advisory"), "{listed}");
    let shown = place.run(["grants", "show", id]).succeeded().stdout;
    assert!(shown.contains("advisory"), "{shown}");

    daemon.signal("TERM");
    assert!(daemon.wait().success());
    let mut daemon = place.up();
    assert_eq!(call().succeeded().stdout, "hello\n");
    place.run(["grants", "revoke", id]).succeeded();
    call().failed(1, &["permission_required"]);
    assert_eq!(place.run(["grants", "list", "--quiet"]).succeeded().stdout, "");
    let all = place.run(["grants", "list", "--all", "--quiet"]).succeeded().stdout;
    assert_eq!(all, format!("{id}\n"));

    grant(&["--once"]);
    assert_eq!(call().succeeded().stdout, "hello\n");
    call().failed(1, &["permission_required"]);
    daemon.signal("TERM");
    assert!(daemon.wait().success());
    let _daemon = place.up();
    call().failed(1, &["permission_required"]);

    let exact = data(grant_exactly(&place, r#"{"message": "hello", "n": 1.0}"#));
    let digest = &exact["details"]["arguments_digest"];
    assert_eq!(
        *digest,
        data(grant_exactly(&place, r#"{"n":1,"message":"hello"}"#))["details"]["arguments_digest"]
    );
    for (wrong, code, told) in [("{", 2, "--arguments"), ("[1]", 1, "details.arguments")] {
        let refused = grant_exactly(&place, wrong).failed(code, &[]);
        assert!(refused.stdout.contains(told), "{refused:?}");
    }
    call().failed(1, &["permission_required"]);
    let same = grant_exactly(&place, r#"{"message": "hello"}"#);
    same.succeeded();
    assert_eq!(call().succeeded().stdout, "hello\n");

    place.write("helper.json", r#"{"name": "helper"}"#);
    place.run(["agents", "apply", "-f", "helper.json"]).succeeded();
    let spawn = ["grants", "create", "--spawn", "helper", "--user", LOCAL, "--json"];
    let spawn = data(place.run(spawn));
    assert_eq!(spawn["grant_type"], "spawn");
    assert_eq!(spawn["details"], json!({ "child_agent_id": "helper" }));
    place.run(["grants", "create", "x.y", "--spawn", "helper", "--user", LOCAL]).failed(2, &[]);

    commands_say_what_they_did(&place);
}

fn commands_say_what_they_did(place: &Place) {
    let quiet = ["grants", "create", "demo.read", "--user", LOCAL, "--quiet"];
    let quiet = place.run(quiet).succeeded().stdout;
    assert!(quiet.starts_with("gra_") && quiet.trim_end().len() == 20, "{quiet}");
    // People read a name.
    let listed = place.run(["grants", "list"]).succeeded().stdout;
    assert!(listed.contains("user admin ") && !listed.contains(LOCAL), "{listed}");
    place.run(["grants", "create", "demo.write", "--agent", "nosuch"]).failed(1, &["nosuch"]);
    place.run(["grants", "show", "gra_00"]).failed(1, &["not_found", "gra_00"]);
    let waiting = data(place.run(["grants", "pending", "--json"]));
    assert_eq!(waiting["items"], json!([]));
    for verb in ["approve", "deny"] {
        let decided = place.run(["grants", verb, "grq_0000000000000001"]);
        decided.failed(1, &["not_found", "grq_0000000000000001"]);
    }
}

fn call_json(place: &Place, words: &[&str]) -> Value {
    let done = place.run([&["call"], words, &["--json"]].concat());
    serde_json::from_str(&done.stdout).unwrap_or_else(|_| panic!("{done:?}"))
}

/// X-M55, X-M56, X-E81, X-E83: the run of the daemon itself learns how to ask, asks, and hears the
/// status of its request; people see the request where they see those of others, and their decision
/// counts. A grant for its session ends with the daemon.
#[test]
fn x_m56_the_daemons_own_run_requests_grants_like_other_runs() {
    let mut entry = fixture_entry();
    entry["tool_scopes"] = json!({ "echo": "demo.write" });
    let place = Place::with(&json!({ "fixture": entry }));
    let mut daemon = place.up();
    let sessions = || data(place.run(["sessions", "list", "--json"]))["items"].clone();
    assert_eq!(sessions(), json!([]), "there is nothing to tell yet");
    let mut watch = place.command(["grants", "pending", "--watch", "--json"]);
    let mut watch = watch.stdout(Stdio::piped()).spawn().unwrap();
    let mut watched = BufReader::new(watch.stdout.take().unwrap()).lines();

    let echo = || call_json(&place, &["fixture", "echo", "message=hello"]);
    let refused = echo();
    let error = &refused["structuredContent"]["error"];
    assert_eq!(error["kind"], "permission_required", "{refused}");
    let ask = &error["details"]["ask"];
    assert_eq!(
        (&ask["server"], &ask["calls"][0]["name"]),
        (&json!("narthex"), &json!("request_grant"))
    );
    let ask_for = |arguments: &Value| {
        let text = arguments.to_string();
        let result = call_json(&place, &["narthex", "request_grant", &text]);
        result["structuredContent"].clone()
    };
    let mut wanted = ask["calls"][0]["arguments"].clone();
    wanted["scope"] = json!("run");
    let kept_nowhere = ask_for(&wanted);
    assert!(kept_nowhere["error"].to_string().contains("write `session`"), "{kept_nowhere}");
    wanted["scope"] = json!("session");
    let asked = ask_for(&wanted);
    assert_eq!(asked["status"], "pending", "{asked}");
    let id = asked["grant_request_id"].as_str().unwrap();
    assert_eq!(ask_for(&wanted), asked, "asked twice is asked once");
    let told = watched.next().unwrap().unwrap();
    assert!(told.contains(id), "{told}");
    let waiting = data(place.run(["grants", "pending", "--json"]));
    assert_eq!(waiting["items"][0]["id"], id, "{waiting}");
    let session = sessions()[0]["session_id"].as_str().unwrap().to_owned();
    place.run(["sessions", "end", &session]).failed(1, &["the daemon itself"]);

    place.run(["grants", "approve", id, "--scope", "session"]).succeeded();
    let told = watched.next().unwrap().unwrap();
    assert!(told.contains("approved") || told.contains("granted"), "{told}");
    watch.kill().unwrap();
    watch.wait().unwrap();
    assert_eq!(ask_for(&wanted)["status"], "approved");
    assert_eq!(echo()["content"][0]["text"], "hello");
    assert_eq!(echo()["content"][0]["text"], "hello");
    let events = data(place.run(["sessions", "events", &session, "--json"]));
    let kinds: Vec<_> =
        events["items"].as_array().unwrap().iter().map(|event| &event["type"]).collect();
    assert_eq!(kinds, ["agent.permission_request", "permission.granted"]);

    daemon.signal("TERM");
    assert!(daemon.wait().success());
    let _daemon = place.up();
    assert_eq!(echo()["structuredContent"]["error"]["kind"], "permission_required");
    assert_eq!(sessions()[0]["status"], "ended", "{}", sessions());
    let again = ask_for(&wanted);
    assert_eq!(again["status"], "pending", "{again}");
    place.run(["grants", "deny", again["grant_request_id"].as_str().unwrap()]).succeeded();
    assert_eq!(ask_for(&wanted)["status"], "denied");
}
