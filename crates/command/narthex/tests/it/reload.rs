//! Files that change while the daemon runs.

use std::{
    io::{BufRead, BufReader},
    process::{Child, Command, Stdio},
};

use narthex_testkit::fixture::{Options, Running};
use serde_json::json;

use crate::support::{Place, fixture_entry};

fn missing() -> serde_json::Value {
    json!({ "transport": "stdio", "command": "no-such-program-here" })
}

fn write(place: &Place, servers: &serde_json::Value) {
    place.write("next.json", &json!({ "servers": servers }).to_string());
    fs_err::rename(place.path("next.json"), place.path("mcp.json")).unwrap();
}

/// E10, E125, E4, D11, A-3: each atomic replacement is seen; an unchanged server keeps its process.
#[test]
fn e10_a_change_of_the_file_takes_effect() {
    let place = Place::new();
    let daemon = place.up();
    for round in 0..3 {
        let name = format!("extra-{round}");
        write(&place, &json!({ "fixture": fixture_entry(), name.clone(): missing() }));
        daemon.server_in(&name, "error");
        place.run(["call", "fixture", "echo", "message=hello"]).succeeded();
    }
    write(&place, &json!({ "fixture": fixture_entry() }));
    assert_eq!(daemon.event("removed")["alias"], "extra-2");
}

/// X-M57: warnings about gates concern the gates that are in effect.
#[test]
fn x_m57_gates_that_are_edited_are_matched_anew() {
    let place = Place::new();
    let _daemon = place.up();
    let told = |gate: &str| {
        let mut gated = fixture_entry();
        gated["tool_scopes"] = json!({ gate: "demo.write" });
        write(&place, &json!({ "fixture": gated }));
        place.run(["mcp", "reload"]).succeeded();
        let rows = place.run(["mcp", "list", "--json"]).succeeded().json();
        rows["data"]["mounts"][0]["gates_unmatched"].to_string()
    };
    let meant = told("ecko");
    assert!(meant.contains("`ecko`") && meant.contains("did you mean `echo`"), "{meant}");
    assert_eq!(told("echo"), "[]");
    place.run(["call", "fixture", "echo", "message=hello"]).failed(1, &["permission_required"]);
    assert!(told("nothing_like_it").contains("has no effect"));
    place.run(["call", "fixture", "echo", "message=hello"]).succeeded();
}

/// E118, E124: a broken file is reported and changes nothing; a deleted one declares nothing.
#[test]
fn e118_a_broken_file_changes_no_server() {
    let place = Place::new();
    let daemon = place.up();
    place.write("mcp.json", r#"{"servers": {"#);
    let told = daemon.event("file");
    assert!(told["error"].as_str().unwrap().contains("mcp.json"), "{told}");
    place.run(["call", "fixture", "echo", "message=hello"]).succeeded();
    fs_err::remove_file(place.path("mcp.json")).unwrap();
    assert_eq!(daemon.event("removed")["alias"], "fixture");
    write(&place, &json!({ "fixture": fixture_entry() }));
    daemon.server_in("fixture", "ready");
}

/// E118, D27: while a content is refused, tables say that an older one is used, and name the
/// command that approves it, or the fault.
#[test]
fn e118_tables_report_a_refused_content_of_a_file() {
    let place = Place::new();
    place.run(["trust", "--yes"]).succeeded();
    let daemon = place.start(&["up", "--listen", "127.0.0.1:0"]);
    daemon.event("ready");
    let told = |expected: &[&str]| {
        let status = place.run(["status"]).succeeded().stdout;
        let list = place.run(["mcp", "list"]).succeeded().stderr;
        for word in expected.iter().chain(&["mcp.json was refused", "the content that it read"]) {
            assert!(status.contains(word) && list.contains(word), "{word}: {status}{list}");
        }
    };
    place.write("mcp.json", r#"{"servers": {}}"#);
    daemon.event("file");
    let file = place.path("mcp.json");
    told(&["is not trusted", &place.printed(&format!("trust {}", file.display()))]);
    place.write("mcp.json", r#"{"servers": {"#);
    daemon.event("file");
    told(&["line 1"]);
    let status = place.run(["status", "--json"]).succeeded().json();
    let list = place.run(["mcp", "list", "--json"]).succeeded().json();
    for files in [&status["data"]["files"], &list["data"]["files"]] {
        let of_project = |one: &&serde_json::Value| one["file"] == file.display().to_string();
        let entry = files.as_array().unwrap().iter().find(of_project).unwrap();
        assert!(entry["error"].as_str().unwrap().contains("line 1"), "{entry}");
        assert!(entry["applied_at"].is_string() && entry["refused_since"].is_string(), "{entry}");
    }
    place.write("mcp.json", &json!({ "servers": { "fixture": fixture_entry() } }).to_string());
    place.run(["mcp", "reload"]).succeeded();
    let clean = place.run(["status"]).succeeded().stdout;
    assert!(!clean.contains("refused"), "{clean}");
}

/// E124, D27: the daemon and the tables name a trusted file that was deleted, and the content that
/// is served now. When the same content is back, it counts without a new approval.
#[test]
fn e124_tables_report_a_deleted_file() {
    let place = Place::new();
    place.run(["trust", "--yes"]).succeeded();
    let daemon = place.start(&["up", "--listen", "127.0.0.1:0"]);
    daemon.event("ready");
    let clean = place.run(["status"]).succeeded().stdout;
    assert!(!clean.contains("mcp.json was"), "{clean}");
    fs_err::rename(place.path("mcp.json"), place.path("away.json")).unwrap();
    let told = daemon.event("file");
    assert_eq!((&told["is_gone"], &told["error"]), (&json!(true), &json!(null)), "{told}");
    let status = place.run(["status"]).succeeded().stdout;
    let list = place.run(["mcp", "list"]).succeeded().stderr;
    let reload = place.run(["mcp", "reload"]).succeeded().stderr;
    for told in [status, list, reload] {
        let sentence =
            format!("warning: {} was deleted or moved", place.path("mcp.json").display());
        assert!(told.contains(&sentence) && told.contains("its servers are unavailable"), "{told}");
    }
    fs_err::rename(place.path("away.json"), place.path("mcp.json")).unwrap();
    daemon.server_in("fixture", "ready");
    let clean = place.run(["status"]).succeeded().stdout;
    assert!(!clean.contains("mcp.json was"), "{clean}");
}

/// E118: a fault of a file is reported to a person once, by the log where there is one.
#[test]
fn e118_a_fault_of_a_file_is_reported_once() {
    for level in ["warn", "error"] {
        let mut odd = missing();
        odd["timeoutMs"] = json!("soon");
        let place = Place::with(&json!({ "odd": odd }));
        let mut command = place.command(["up", "--config", "mcp.json", "--listen", "127.0.0.1:0"]);
        command.env("NARTHEX_LOG", level).stdin(Stdio::null());
        let mut up = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // From here on the daemon follows its files.
        let mut rows = BufReader::new(up.stdout.take().unwrap()).lines().map(Result::unwrap);
        assert!(rows.any(|line| line.contains("narthex listens")));
        let mut lines = BufReader::new(up.stderr.take().unwrap()).lines().map(Result::unwrap);
        let mut told = Vec::new();
        let mut until = |word: &str| {
            let is_it = |line: &String| line.contains(word);
            let found = lines.by_ref().inspect(|line| told.push(line.clone())).find(is_it);
            assert!(found.is_some(), "no {word:?} in {told:?}");
        };
        until("timeoutMs");
        place.write("mcp.json", r#"{"servers": {"#);
        until("uses its earlier content");
        place.write("mcp.json", r#"{"servers": {"a": {}}}"#);
        until("the configuration has changed");
        fs_err::remove_file(place.path("mcp.json")).unwrap();
        until("mcp.json");
        kill(&up);
        told.extend(lines);
        up.wait().unwrap();
        let gone = "was deleted or moved; its servers are unavailable";
        for word in ["timeoutMs", "uses its earlier content", gone] {
            let count = told.iter().filter(|line| line.contains(word)).count();
            assert_eq!(count, 1, "{word:?} at {level}: {told:#?}");
        }
    }
}

fn kill(child: &Child) {
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-s", "TERM", &pid]).status().unwrap().success());
}

/// E11, E12, E146: servers of the user's settings, under those of the project; defaults come once.
#[test]
fn e12_the_users_settings_are_a_layer_below() {
    let place = Place::with(&json!({ "both": fixture_entry() }));
    fs_err::create_dir_all(place.path("config/narthex")).unwrap();
    let settings = json!({ "mcp": { "servers": { "both": missing(), "mine": fixture_entry() } } });
    place.write("config/narthex/settings.json", &settings.to_string());
    place.write("defaults.json", &json!({ "servers": { "seeded": missing() } }).to_string());
    let start = || {
        let words = ["up", "--config", "mcp.json", "--listen", "127.0.0.1:0"];
        place.start_with(&words, |command| {
            command.env("NARTHEX_DEFAULT_SERVERS", place.path("defaults.json"));
        })
    };
    let daemon = start();
    daemon.event("ready");
    place.run(["call", "mine", "echo", "message=hello"]).succeeded();
    place.run(["call", "both", "echo", "message=hello"]).succeeded();
    let stored = fs_err::read_to_string(place.path("config/narthex/settings.json")).unwrap();
    assert!(stored.contains("seeded"), "{stored}");
    place.write("config/narthex/settings.json", &settings.to_string());
    assert_eq!(daemon.event("removed")["alias"], "seeded");
    drop(daemon);
    let again = start();
    let ready = again.event("ready");
    assert!(!ready.to_string().contains("seeded"), "a default that was removed stays away");
}

/// E114, E117, E120: an entry of the settings whose variable is not set has a row with the reason
/// in every command, and can be removed.
#[test]
fn e120_a_settings_entry_without_its_variable_is_a_row() {
    let place = Place::with(&json!({ "fixture": fixture_entry() }));
    fs_err::create_dir_all(place.path("config/narthex")).unwrap();
    let mut envy = fixture_entry();
    envy["env"] = json!({ "K": "${env:NARTHEX_TEST_UNSET}" });
    let settings = json!({ "mcp": { "servers": { "envy": envy } } });
    place.write("config/narthex/settings.json", &settings.to_string());
    let _daemon = place.up();
    let reason = "the environment variable `NARTHEX_TEST_UNSET` is not set; set it before";
    let list = place.run(["mcp", "list"]).succeeded();
    assert!(list.stdout.contains("envy") && list.stderr.contains(reason), "{list:?}");
    let rows = place.run(["mcp", "list", "--json"]).succeeded().json()["data"]["mounts"].take();
    let is_envy = |row: &&serde_json::Value| row["name"] == "envy";
    let row = rows.as_array().unwrap().iter().find(is_envy).unwrap();
    assert_eq!((&row["status"], &row["provenance"]), (&json!("error"), &json!("settings")));
    let status = place.run(["status"]).succeeded().stdout;
    assert!(status.contains(reason), "{status}");
    let called = place.run(["call", "envy", "echo", "message=hello"]).failed(1, &["`envy`"]);
    assert!(!called.stderr.contains("there is no server"), "{called:?}");
    let logs = place.run(["mcp", "logs", "envy"]).succeeded();
    assert_eq!(logs.stdout, "envy has written nothing to stderr.\n");
    place.run(["mcp", "remove", "nosuch"]).failed(1, &["your settings have: envy"]);
    assert_eq!(place.run(["mcp", "remove", "envy"]).succeeded().stdout, "removed envy\n");
    let list = place.run(["mcp", "list", "--quiet"]).succeeded().stdout;
    assert_eq!(list, "fixture\n");
}

/// S23: a server of the live configuration whose definitions change is followed, and people hear of
/// it; a definition that returns to the pinned one is no change any more.
#[tokio::test(flavor = "multi_thread")]
async fn s23_a_changed_definition_of_a_live_server_is_reported() {
    let server = Running::http(Options::default()).await.unwrap();
    let place = Place::with(&json!({ "docs": { "transport": "http", "url": server.url } }));
    let _daemon = place.up();
    let changed = || {
        let status = place.run(["status", "--json"]).succeeded().json();
        status["data"]["servers"][0]["definitions_changed"].as_u64().unwrap()
    };
    assert_eq!(changed(), 0);
    let other = json!({ "name": "echo", "description": "Something else",
                        "inputSchema": { "type": "object" } });
    server.fixture.redefine("tools/list", "echo", &[other]);
    while changed() == 0 {
        tokio::task::yield_now().await;
    }
    let status = place.run(["status"]).succeeded().stdout;
    assert!(status.contains("1 of its definitions changed"), "{status}");
    let tools = place.run(["tools", "--json"]).succeeded().stdout;
    assert!(tools.contains("Something else"), "it is followed");
    server.fixture.redefine("tools/list", "echo", &[]);
    while changed() != 0 {
        tokio::task::yield_now().await;
    }
}
