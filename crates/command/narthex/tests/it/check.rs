//! `narthex check mcp`: its findings, their weight, and how they are shown.

use std::{os::unix::fs::symlink, path::Path};

use fs_err as fs;
use serde_json::{Value, json};

use crate::support::{Done, Place, fixture_entry};

/// A folder as PATH, with these programs in it.
fn programs(place: &Place, names: &[&str]) {
    fs::create_dir_all(place.path("bin")).unwrap();
    for name in names {
        symlink("/bin/sh", place.path("bin").join(name)).unwrap();
    }
}

fn check(place: &Place, words: &[&str]) -> Done {
    let mut command = place.command([&["check", "mcp"], words].concat());
    command.env("PATH", place.path("bin")).env("HOME", place.path("home"));
    Done::from(command.output().unwrap())
}

fn found<'d>(data: &'d Value, code: &str) -> Vec<&'d Value> {
    data["checks"].as_array().unwrap().iter().filter(|one| one["code"] == code).collect()
}

fn levels(data: &Value, code: &str) -> Vec<String> {
    found(data, code).iter().map(|one| one["level"].as_str().unwrap().to_owned()).collect()
}

/// §3.5 `check mcp`, R-M33, R-F5: programs with their places, entries, variables, trust.
#[test]
fn r_m33_every_finding_has_its_code_and_level() {
    let place = Place::with(&json!({
        "bad": { "transport": "pigeon" },
        "lost": { "transport": "stdio", "command": "no-such-program" },
        "node": { "transport": "stdio", "command": "npx",
            "args": ["-y", "@playwright/mcp", "--browser=chromium"] },
        "python": { "transport": "stdio", "command": "uvx" },
        "unset": { "transport": "stdio", "command": "node",
            "env": { "A": "${env:NARTHEX_TEST_UNSET}" } },
        "web": { "transport": "http", "url": "https://a.example/mcp" },
    }));
    programs(&place, &["node", "npx"]);
    let done = check(&place, &["--json"]).succeeded();
    assert_eq!(done.stdout.lines().count(), 1);
    let outcome = done.json();
    let data = &outcome["data"];
    assert_eq!((&outcome["ok"], &data["status"]), (&json!(true), &json!("warn")));
    for (code, expected) in [
        ("TRANSPORT", &["info"][..]),
        ("NODE", &["info"]),
        ("NPX", &["info"]),
        ("UVX", &["warn"]),
        ("PYTHON", &[]),
        ("CHROMIUM", &["warn"]),
        ("SETTINGS", &["info"]),
        ("MCP_JSON", &["info", "warn"]),
        ("COMMAND", &["warn", "info", "warn", "info"]),
        ("ENV", &["warn"]),
        ("ENTRY", &["warn"]),
        ("UNPINNED", &["warn"]),
        ("EXECUTORS", &[]),
        ("AGENTS", &[]),
    ] {
        assert_eq!(levels(data, code), expected, "{code} in {data}");
    }
    let npx = found(data, "NPX")[0]["message"].as_str().unwrap();
    assert!(npx.contains(place.path("bin/npx").to_str().unwrap()), "{npx}");
    let trust = found(data, "MCP_JSON")[1];
    assert!(trust["hint"].as_str().unwrap().contains("narthex trust"), "{trust}");
    let browser = found(data, "CHROMIUM")[0]["hint"].as_str().unwrap();
    assert!(browser.contains("install-browser chrome-for-testing"), "{browser}");
    let env = found(data, "ENV")[0];
    assert!(env["message"].as_str().unwrap().contains("`unset`"), "{env}");
    assert!(env["detail"].as_str().unwrap().contains("NARTHEX_TEST_UNSET"), "{env}");
    let lost = found(data, "COMMAND")[0];
    assert!(lost["message"].as_str().unwrap().contains("`lost` starts no-such-program"), "{lost}");
    assert!(!place.path("data").exists(), "a look makes nothing");
}

/// S5: each package without a fixed version is named with the pin to write, and with the version
/// that is installed already, where one is.
#[test]
fn s5_check_names_packages_without_a_version() {
    let place = Place::with(&json!({
        "fixed": { "transport": "stdio", "command": "npx", "args": ["-y", "server@1.2.3"] },
        "known": { "transport": "stdio", "command": "npx", "args": ["-y", "@scope/known"] },
        "python": { "transport": "stdio", "command": "uvx", "args": ["server@latest"] },
    }));
    programs(&place, &["node", "npx", "uvx"]);
    let known = "home/.npm/_npx/0a1b/node_modules/@scope/known";
    fs::create_dir_all(place.path(known)).unwrap();
    place.write(&format!("{known}/package.json"), r#"{"version":"4.5.6"}"#);
    let outcome = check(&place, &["--json"]).succeeded().json();
    let details = found(&outcome["data"], "UNPINNED").into_iter().map(|one| &one["detail"]);
    let details: Vec<_> = details.map(|detail| detail.as_str().unwrap()).collect();
    assert_eq!(details.len(), 2, "{details:?}");
    assert!(details[0].ends_with("write `@scope/known@4.5.6`"), "{details:?}");
    assert!(details[1].contains("write `server==VERSION`; `pip index versions server`"));
}

/// X-M57: a live server belongs to no workspace: `check` lists its gates once, without one.
#[test]
fn x_m57_unmatched_gates_of_a_live_server_are_reported_once() {
    let mut live = fixture_entry();
    live["tool_scopes"] = json!({ "ecko": "demo.write" });
    let place = Place::with(&json!({ "live": live }));
    let _daemon = place.up();
    place.run(["workspaces", "create", "team"]).succeeded();
    let seen = check(&place, &["--json"]).json()["data"].take();
    let gates = found(&seen, "GATES");
    assert_eq!(gates.len(), 1, "{seen}");
    let told = gates[0]["message"].as_str().unwrap();
    assert!(told.starts_with("`live`: `tool_scopes` names `ecko`"), "{told}");
}

/// R-M33, R-F5, R-M8: with a daemon, its agents are checked: their servers, the faults of these,
/// and the agents that have no servers on purpose.
#[test]
fn r_m33_agents_of_the_catalog_are_checked() {
    let place = Place::with(&json!({}));
    programs(&place, &["node", "npx"]);
    let look = || check(&place, &["--json"]).succeeded().json()["data"].take();
    let down = look();
    assert!(levels(&down, "AGENTS").is_empty() && levels(&down, "EXECUTORS").is_empty(), "{down}");
    let daemon = place.up();
    let alone = look();
    assert!(levels(&alone, "AGENTS").is_empty(), "{alone}");
    assert!(levels(&alone, "EXECUTORS").is_empty(), "{alone}");
    let helper = "name: helper\nmcp:\n  servers:\n    lost: {command: no-such-program}\n    \
                  npx: {command: npx}\n---\nname: quiet\nmcp: {}\n---\nname: plain\n";
    let applied = place.pipe(&["agents", "apply", "-f", "-"], helper).succeeded();
    assert!(applied.stderr.contains("standard input (2): `mcp` (line 8): "), "{}", applied.stderr);
    let seen = look();
    let agents = found(&seen, "AGENTS");
    assert_eq!(agents[0]["message"], "2 agents have settings for servers", "{seen}");
    let detail = "helper: lost, npx; quiet: none, as its `mcp: {}` says";
    assert_eq!(agents[0]["detail"], detail, "{seen}");
    assert_eq!(levels(&seen, "EXECUTORS"), ["info"], "{seen}");
    let agent = found(&seen, "AGENT");
    assert_eq!(agent.len(), 1, "{seen}");
    let told = agent[0]["message"].as_str().unwrap();
    assert!(told.contains("`lost`") && told.contains("was not found in PATH"), "{told}");
    // The mark is stored, and stays when the object is applied once more.
    let kept = place.run(["agents", "get", "quiet"]).succeeded();
    assert_eq!(kept.json(), json!({ "name": "quiet", "active": true, "mcp": {} }));
    let again = place.pipe(&["agents", "apply", "-f", "-"], &kept.stdout).succeeded();
    assert_eq!(again.stdout, "unchanged the agent quiet\n");
    let merged = place.run(["agents", "get", "quiet", "--merged"]).succeeded().json();
    assert_eq!(merged["mcp"], json!({}), "{merged}");
    // Without the daemon they are there still, and nothing is reported as well.
    drop(daemon);
    let left = look();
    let agents = found(&left, "AGENTS");
    let told = agents[0]["message"].as_str().unwrap();
    assert_eq!(told, "3 agents of the data folder cannot be checked: no daemon runs", "{left}");
    assert_eq!((&agents[0]["level"], &left["status"]), (&json!("warn"), &json!("warn")), "{left}");
}

/// R-M33: a check does not create a store, and does not change a store that a daemon has just begun
/// to make.
#[test]
fn r_m33_a_check_does_not_change_the_store() {
    let place = Place::with(&json!({}));
    programs(&place, &["node", "npx"]);
    fs::create_dir(place.path("data")).unwrap();
    place.write("data/store.db", "");
    place.set_mode("data/store.db", 0o600);
    let outcome = check(&place, &["--json"]).succeeded().json();
    assert_eq!(levels(&outcome["data"], "MCP_JSON"), ["info", "warn"], "not trusted: {outcome}");
    assert_eq!(fs::metadata(place.path("data/store.db")).unwrap().len(), 0);
    assert_eq!(fs::read_dir(place.path("data")).unwrap().count(), 1);
}

/// R-M33: §3.5 `check mcp`: the header, a line for each finding, and three counts.
#[test]
fn check_prints_a_header_findings_and_counts() {
    let place = Place::with(&json!({}));
    programs(&place, &["node", "npx"]);
    place.run(["trust", "--yes"]).succeeded();
    let done = check(&place, &[]).succeeded();
    let lines: Vec<_> = done.stdout.lines().collect();
    let time = lines[0].strip_prefix("Checks of MCP servers, ").unwrap();
    assert!(narthex_model::Timestamp::read(time).is_some(), "{time}");
    assert!(lines[1].starts_with("[INFO] TRANSPORT "), "{done:?}");
    assert!(lines[2].starts_with("  detail: revisions 2024-11-05"), "{done:?}");
    assert!(lines.last().unwrap().ends_with(" info, 0 warnings, 0 errors"), "{done:?}");
    let outcome = check(&place, &["--json"]).succeeded().json();
    assert_eq!(outcome["data"]["status"], "pass");
    assert_eq!(check(&place, &["--quiet"]).succeeded().stdout, "");
    place.write("mcp.json", "{");
    let done = check(&place, &[]).succeeded();
    assert!(done.stdout.contains("[WARN] MCP_JSON mcp.json cannot be used"), "{done:?}");
    assert!(done.stdout.contains("  hint: correct the file"), "{done:?}");
}

/// R-M33: §3.5 `check mcp`: without npx it fails, and only then.
#[test]
fn check_fails_only_for_errors() {
    let place = Place::with(&json!({}));
    programs(&place, &[]);
    let done = check(&place, &[]);
    assert_eq!(done.code, Some(1));
    assert!(done.stdout.contains("[WARN] NODE ") && done.stdout.contains("[ERROR] NPX "));
    assert!(done.stdout.contains("1 errors") || done.stdout.contains("1 error"), "{done:?}");
    let quiet = check(&place, &["--quiet"]);
    assert_eq!((quiet.code, &*quiet.stdout), (Some(1), "[ERROR] NPX npx is not in PATH\n"));
    let done = check(&place, &["--json"]);
    let outcome = done.json();
    assert_eq!((done.code, &outcome["ok"]), (Some(1), &json!(false)));
    assert_eq!(outcome["data"]["status"], "fail");
    assert_eq!(outcome["error"]["code"], "check_failed");
    assert_eq!(outcome["error"]["kind"], "unavailable");
    programs(&place, &["npx"]);
    assert_eq!(check(&place, &["--json"]).succeeded().json()["data"]["status"], "warn");
}

/// The programs that confined servers need of the host are looked at, too.
#[test]
fn programs_that_confined_servers_need_are_checked() {
    let entry = json!({ "transport": "stdio", "command": "npx", "confinement": {
        "filesystem": { "read": ["/tmp"] }, "bwrap": true } });
    let place = Place::with(&json!({ "one": entry }));
    programs(&place, &["node", "npx"]);
    let outcome = check(&place, &["--json"]).succeeded().json();
    assert_eq!(levels(&outcome["data"], "BWRAP"), ["warn"], "{outcome}");
    assert_eq!(levels(&outcome["data"], "LANDLOCK").len(), 1, "{outcome}");
    programs(&place, &["bwrap"]);
    let outcome = check(&place, &["--json"]).succeeded().json();
    assert_eq!(levels(&outcome["data"], "BWRAP"), ["info"], "{outcome}");
}

#[test]
fn a_missing_file_is_no_fault() {
    let place = Place::with(&json!({}));
    fs::remove_file(place.path("mcp.json")).unwrap();
    programs(&place, &["node", "npx"]);
    let outcome = check(&place, &["--json"]).succeeded().json();
    assert_eq!(outcome["data"]["status"], "pass", "{outcome}");
    let check = found(&outcome["data"], "MCP_JSON")[0];
    assert!(check["hint"].as_str().unwrap().contains("narthex init"), "{check}");
    assert!(!Path::new(&place.path("mcp.json")).exists());
}
