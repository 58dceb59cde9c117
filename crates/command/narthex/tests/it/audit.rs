//! `narthex audit` with a real daemon: every act is there, once, also when the daemon is killed.

use std::{
    io::Write,
    process::{Child, Stdio},
};

use fs_err as fs;
use narthex_testkit::planted;
use serde_json::{Value, json};

use crate::support::{Done, Place};

const CANARY: &str = "canary-1b9e-value";

fn set(place: &Place, name: &str) -> Child {
    planted::remember(CANARY);
    let mut command = place.command(["secrets", "set", name, "--quiet"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(CANARY.as_bytes()).unwrap();
    child
}

fn ended(child: Child) -> Done {
    Done::from(child.wait_with_output().unwrap())
}

fn listed(place: &Place, words: &[&str]) -> Vec<Value> {
    let command = ["audit", "list", "--json", "--limit", "1000"].iter().chain(words);
    let done = place.run(command).succeeded().json();
    let mut items = done["data"]["items"].as_array().unwrap().clone();
    items.reverse();
    items
}

fn has(place: &Place, text: &str) -> bool {
    let folders = ["data", "data/audit"].map(|name| place.path(name));
    let files = folders.iter().flat_map(|folder| fs::read_dir(folder).unwrap());
    let mut files = files.map(|entry| entry.unwrap().path()).filter(|path| path.is_file());
    files.any(|path| {
        let bytes = fs::read(path).unwrap();
        bytes.windows(text.len()).any(|window| window == text.as_bytes())
    })
}

/// X-M62, X-M63, X-M64, A-2, A-8: calls and changes are listed, exported and verified, here and
/// offline, and neither arguments nor results nor values are anywhere.
#[test]
fn x_m62_x_m64_calls_are_listed_exported_and_verified_without_arguments() {
    let place = Place::new();
    let mut daemon = place.up();
    let message = format!("message={CANARY}");
    let called = place.run(["call", "fixture", "echo", &message]).succeeded();
    assert!(called.stdout.contains(CANARY));
    place.run(["call", "fixture", "fail", &message]).failed(1, &[]);
    ended(set(&place, "TOKEN")).succeeded();
    let calls = listed(&place, &["--kind", "session.mcp.tool_called"]);
    let shown =
        |event: &Value| format!("{} {} {}", event["server"], event["tool"], event["outcome"]);
    let shown: Vec<_> = calls.iter().map(shown).collect();
    assert_eq!(shown, [r#""fixture" "echo" "ok""#, r#""fixture" "fail" "tool_error""#]);
    for call in &calls {
        assert_eq!(call["actor"]["kind"], "run");
        assert!(call["duration_ms"].is_number() && call["resource"]["id"].is_string(), "{call}");
    }
    let people = place.run(["audit", "list", "--kind", "workspace."]).succeeded();
    assert!(people.stdout.contains("workspace.secret.set"), "{people:?}");

    let verified = place.run(["audit", "verify"]).succeeded();
    assert!(verified.stdout.contains("are as they were written"), "{verified:?}");
    place.run(["audit", "verify", "--installation"]).succeeded();
    let exported = place.run(["audit", "export"]).succeeded().stdout;
    assert!(!exported.contains("canary"));
    place.write("audit.jsonl", &exported);
    daemon.signal("TERM");
    daemon.wait();
    assert!(!has(&place, CANARY));

    place.run(["audit", "verify", "--file", "audit.jsonl"]).succeeded();
    let edited = exported.replacen("\"outcome\":\"tool_error\"", "\"outcome\":\"ok\"", 1);
    assert_ne!(edited, exported);
    place.write("edited.jsonl", &edited);
    let verify = ["audit", "verify", "--file", "edited.jsonl"];
    place.run(verify).failed(1, &["it was edited"]);
    let broken = place.run(verify.iter().chain(&["--json"])).failed(1, &[]).json();
    assert_eq!(broken["error"]["details"]["broken"][0]["fault"], "edited");
    let lines: Vec<_> = exported.lines().collect();
    place.write("cut.jsonl", &lines[..lines.len() - 2].join("\n"));
    place.run(["audit", "verify", "--file", "cut.jsonl"]).failed(1, &["removed", "incomplete"]);
}

/// D25: an event that is not in the store is not passed over in silence by any command that reads
/// the store, and a chain with absent events is not called whole.
#[test]
fn every_audit_command_reports_events_that_are_not_in_the_store() {
    let place = Place::new();
    place.write("none.jsonl", "{\"end\":{\"events\":0}}\n");
    place.write("any.json", "{}\n");
    let any = place.run(["audit", "verify", "--file", "any.json"]);
    any.failed(1, &["any.json is no audit export; write one with `narthex "]);
    let none = place.run(["audit", "verify", "--file", "none.jsonl"]).succeeded();
    assert_eq!(none.stdout, "there are no events\n");
    let mut daemon = place.up();
    // This path has the name of a file of the audit and cannot be read.
    let unreadable = place.path("data/audit/audit-01-ffffffffffff-000001.jsonl");
    fs::create_dir(&unreadable).unwrap();
    ended(set(&place, "LATER")).succeeded();
    let told = "events of default cannot be moved";
    let of_default = ["--workspace", "default"];
    let verify = ["audit", "verify"].into_iter().chain(of_default);
    place.run(verify.clone()).failed(1, &[told, "not verified"]);
    let failed = place.run(verify.clone().chain(["--json"])).failed(1, &[]).json();
    assert_eq!(failed["error"]["details"]["waiting"][0]["is_stuck"], true);
    for command in ["list", "export"] {
        let done = place.run(["audit", command].into_iter().chain(of_default)).succeeded();
        assert!(done.stderr.contains(told), "{done:?}");
        assert!(!done.stdout.contains("LATER"), "{done:?}");
    }
    let listed = place.run(["audit", "list", "--json"]).succeeded().json();
    assert_eq!(listed["data"]["waiting"]["is_stuck"], true);
    fs::remove_dir(&unreadable).unwrap();
    let done = place.run(verify).succeeded();
    assert!(!done.stderr.contains(told), "{done:?}");
    daemon.signal("TERM");
    daemon.wait();
}

/// S32: a database was restored from an earlier copy, with its chains and its marks of their ends.
/// It lacks events that the daemon's disk knows.
#[test]
fn s32_a_database_restored_from_an_earlier_copy_is_detected() {
    let place = Place::new();
    let gone = "was in the store, and is missing now";
    let verify = ["audit", "verify", "--workspace", "team"];
    let while_up = |work: &dyn Fn()| {
        let mut daemon = place.up();
        work();
        daemon.signal("TERM");
        daemon.wait();
    };
    while_up(&|| {
        place.run(["workspaces", "create", "team"]).succeeded();
        place.run(["backup", "copy.tar"]).succeeded();
        place.run(["workspaces", "change", "team", "--name", "Others"]).succeeded();
        let verified = place.run(verify).succeeded();
        assert!(verified.stdout.contains("2 events in 1 chain "), "{verified:?}");
    });
    // The files of the process before it are moved and removed.
    while_up(&|| drop(place.run(verify).succeeded()));
    // The disk of the daemon is the same, and only its store is an older one.
    let older = place.path("older").display().to_string();
    place.run(["restore", "copy.tar", "--data", &older]).succeeded();
    for name in ["data/store.db-wal", "data/store.db-shm"] {
        if place.path(name).exists() {
            fs::remove_file(place.path(name)).unwrap();
        }
    }
    fs::copy(place.path("older/store.db"), place.path("data/store.db")).unwrap();
    while_up(&|| {
        place.run(verify).failed(1, &[gone, "in team", "of 0 events"]);
        let done = place.run(["audit", "export", "--workspace", "team"]).succeeded();
        place.write("export.jsonl", &done.stdout);
    });
    place.run(["audit", "verify", "--file", "export.jsonl"]).failed(1, &[gone]);
}

/// X-E31: an admin sets by the command line which agents may have servers with a sign-in per
/// person. The setting is shown and recorded, and stays until it is changed.
#[test]
fn x_e31_the_command_line_sets_oauth_on_orchestrators() {
    let place = Place::new();
    let mut daemon = place.up();
    let change = |further: &[&str]| {
        let change = ["workspaces", "change", "default"];
        place.run(change.iter().chain(further))
    };
    let attended = change(&["--oauth-on-orchestrators", "on_attended"]).succeeded();
    assert!(attended.stdout.contains("a person drives"), "{attended:?}");
    assert!(place.run(["workspaces", "list"]).succeeded().stdout.contains("on_attended"));
    let renamed = change(&["--name", "Home", "--json"]).succeeded().json();
    assert_eq!(renamed["data"]["oauth_on_orchestrators"], "on_attended");
    let off = change(&["--oauth-on-orchestrators", "off", "--json"]).succeeded().json();
    assert_eq!(off["data"]["oauth_on_orchestrators"], "off");
    change(&["--oauth-on-orchestrators", "attended"]).failed(2, &["on_attended"]);
    let events = listed(&place, &["--kind", "workspace.oauth_on_orchestrators"]);
    let values: Vec<_> = events.iter().map(|event| &event["details"]["value"]).collect();
    assert_eq!(values, ["on_attended", "off"]);
    daemon.signal("TERM");
    daemon.wait();
}

/// X-M64, A-8: one switch makes the contents of calls shown, exported and verified, at every door,
/// until it is turned off.
#[test]
fn x_m64_a_workspace_can_record_the_contents_of_calls() {
    let place = Place::new();
    let mut daemon = place.up();
    let on = ["workspaces", "change", "default", "--audit-contents", "on"];
    let switched = place.run(on).succeeded();
    assert!(switched.stdout.contains("records arguments and results"), "{switched:?}");
    assert!(place.run(["workspaces", "list"]).succeeded().stdout.contains("with contents"));
    place.run(["call", "fixture", "echo", "message=shown-word"]).succeeded();
    let off = ["workspaces", "change", "default", "--audit-contents", "off", "--json"];
    assert_eq!(place.run(off).succeeded().json()["data"]["audits_contents"], false);
    place.run(["call", "fixture", "echo", "message=hidden-word"]).succeeded();
    place.run(["workspaces", "change", "default"]).failed(2, &["--audit-contents"]);

    let calls = ["--kind", "session.mcp.tool_called"];
    let shown = listed(&place, &calls);
    assert_eq!(shown.len(), 2);
    let contents = &shown[0]["details"]["contents"];
    for side in ["request", "answer"] {
        assert!(contents[side]["text"].as_str().unwrap().contains("shown-word"), "{contents}");
    }
    assert_eq!(shown[1]["details"].get("contents"), None);
    let table = place.run(["audit", "list"].iter().chain(&calls)).succeeded();
    assert!(!table.stdout.contains("shown-word") && table.stderr.contains("--contents"));
    let whole = place.run(["audit", "list", "--contents"].iter().chain(&calls)).succeeded();
    assert_eq!(whole.stdout.matches("shown-word").count(), 2, "{whole:?}");
    let switches = listed(&place, &["--kind", "workspace.audit_contents"]);
    let switches: Vec<_> = switches.iter().map(|event| event["kind"].as_str().unwrap()).collect();
    let expected = ["workspace.audit_contents.enabled", "workspace.audit_contents.disabled"];
    assert_eq!(switches, expected);
    place.run(["audit", "verify"]).succeeded();
    let exported = place.run(["audit", "export"]).succeeded().stdout;
    assert!(exported.contains("shown-word") && !exported.contains("hidden-word"));
    place.write("audit.jsonl", &exported.replacen("shown-word", "other-word", 1));
    place.run(["audit", "verify", "--file", "audit.jsonl"]).failed(1, &["it was edited"]);
    daemon.signal("TERM");
    daemon.wait();
    assert!(has(&place, "shown-word") && !has(&place, "hidden-word"));
}

/// S32: without a place, all events are verified that the caller may read; a workspace other than
/// `default` is not passed over.
#[test]
fn s32_all_workspaces_are_verified() {
    let place = Place::with(&json!({}));
    let up = ["up", "--config", "mcp.json", "--listen", "127.0.0.1:0"];
    let mut daemon = place.start(&up);
    let url = daemon.event("listening")["url"].as_str().unwrap().to_owned();
    daemon.event("ready");
    place.run(["workspaces", "create", "team"]).succeeded();
    let events = |words: &[&str]| {
        let verified = place.run([&["audit", "verify", "--json"], words].concat()).succeeded();
        verified.json()["data"]["events"].as_u64().unwrap()
    };
    let made = ["tokens", "create", "watch", "--role", "auditor", "--workspace", "team", "--quiet"];
    let token = place.run(made).succeeded().stdout;
    place.run(["tokens", "create", "ci", "--role", "runner", "--workspace", "team"]).succeeded();
    let team = events(&["--workspace", "team"]);
    assert!(team > 0 && events(&["--installation"]) > 0);
    assert!(events(&[]) > team);
    // An auditor of one workspace verifies that one, and a runner none.
    place.write("watch.token", &token);
    let of_token = ["audit", "verify", "--daemon-url", &url, "--token-file"];
    let verified = place.run([&of_token[..], &["watch.token", "--json"]].concat()).succeeded();
    assert!(verified.json()["data"]["events"].as_u64().unwrap() >= team);
    let made = ["tokens", "create", "ci", "--workspace", "team", "--quiet"];
    place.write("ci.token", &place.run(made).succeeded().stdout);
    place.run([&of_token[..], &["ci.token"]].concat()).failed(1, &["the role admin or auditor"]);

    daemon.signal("TERM");
    daemon.wait();
    let mut bytes = fs::read(place.path("data/store.db")).unwrap();
    let name = br#""name":"team/watch""#;
    let at = bytes.windows(name.len()).position(|window| window == name).unwrap();
    bytes[at..at + name.len()].copy_from_slice(br#""name":"team/forge""#);
    fs::write(place.path("data/store.db"), bytes).unwrap();
    let _daemon = place.up();
    place.run(["audit", "verify"]).failed(1, &["it was edited", "team"]);
    place.run(["audit", "verify", "--workspace", "default"]).succeeded();
}

/// S32: a change of the store behind the daemon's back is found out.
#[test]
fn s32_an_event_that_is_changed_in_the_store_is_found() {
    let place = Place::with(&json!({}));
    let mut daemon = place.up();
    ended(set(&place, "HONEST_NAME")).succeeded();
    place.run(["audit", "verify"]).succeeded();
    daemon.signal("TERM");
    daemon.wait();
    let mut bytes = fs::read(place.path("data/store.db")).unwrap();
    let name = br#""id":"HONEST_NAME""#;
    let at = bytes.windows(name.len()).position(|window| window == name).unwrap();
    bytes[at..at + name.len()].copy_from_slice(br#""id":"FORGED_NAME""#);
    fs::write(place.path("data/store.db"), bytes).unwrap();
    let _daemon = place.up();
    place.run(["audit", "verify"]).failed(1, &["it was edited", "default"]);
}

/// A daemon that is killed loses nothing that it has answered, and doubles nothing; an act that it
/// was about to do is there as well.
#[test]
fn s32_a_killed_daemon_loses_and_doubles_nothing() {
    let place = Place::with(&json!({}));
    let mut acknowledged = Vec::new();
    for round in 0..4 {
        let mut daemon = place.up();
        for number in 0..round {
            let name = format!("SURE_{round}_{number}");
            ended(set(&place, &name)).succeeded();
            acknowledged.push(name);
        }
        // Some of these calls have ended, some are open, and some have not begun.
        let open: Vec<_> = (0..4)
            .map(|number| format!("OPEN_{round}_{number}"))
            .map(|name| (set(&place, &name), name))
            .collect();
        let mut open = open.into_iter();
        for (child, name) in open.by_ref().take(round) {
            if ended(child).code == Some(0) {
                acknowledged.push(name);
            }
        }
        daemon.signal("KILL");
        daemon.wait();
        acknowledged.extend(
            open.filter_map(|(child, name)| (ended(child).code == Some(0)).then_some(name)),
        );
    }
    let _daemon = place.up();
    let events = listed(&place, &["--kind", "workspace.secret"]);
    let of = |name: &str| {
        let of = events.iter().filter(|event| event["resource"]["id"] == *name);
        of.map(|event| event["outcome"].as_str().unwrap()).collect::<Vec<_>>()
    };
    assert!(acknowledged.len() >= 6);
    for name in &acknowledged {
        assert_eq!(of(name), ["ok"], "{name}");
    }
    let secrets = place.run(["secrets", "list", "--quiet"]).succeeded().stdout;
    for name in secrets.lines() {
        let outcomes = of(name);
        assert!(outcomes == ["ok"] || outcomes == ["interrupted"], "{name}: {outcomes:?}");
    }
    place.run(["audit", "verify"]).succeeded();
}

/// Audit events of a command in process are moved into the store by the daemon.
#[test]
fn calls_in_process_are_in_the_audit() {
    let place = Place::new();
    let call = ["call", "--config", "mcp.json", "fixture", "echo", "message=hello"];
    place.run(call).succeeded();
    let _daemon = place.up();
    let calls = listed(&place, &["--kind", "session.mcp.tool_called"]);
    assert_eq!(calls.len(), 1, "{calls:?}");
    place.run(call).succeeded();
    assert_eq!(listed(&place, &["--kind", "session.mcp.tool_called"]).len(), 2);
    place.run(["audit", "verify"]).succeeded();
}

#[test]
fn the_retention_of_events_is_shown_and_set() {
    let place = Place::with(&json!({}));
    let _daemon = place.up();
    let shown = place.run(["audit", "keep"]).succeeded();
    assert!(shown.stdout.contains("stored forever"), "{shown:?}");
    let set = place.run(["audit", "keep", "--days", "400"]).succeeded();
    assert!(set.stdout.contains("400 days"), "{set:?}");
    let events = listed(&place, &["--kind", "audit.settings.changed"]);
    assert_eq!(events[0]["details"]["kept_days"], 400);
}
