//! A folder's `mcp.json` starts nothing until it was approved (D27).

use std::{
    io::{BufRead, BufReader},
    process::Stdio,
};

use serde_json::json;

use crate::support::{Done, PROGRAM, Place};

const UP: [&str; 3] = ["up", "--listen", "127.0.0.1:0"];

/// E8.
#[test]
fn d27_an_unknown_file_starts_nothing() {
    let place = Place::with(&json!({
        "marker": { "transport": "stdio", "command": "touch", "args": ["started"] },
    }));
    let file = place.path("mcp.json").display().to_string();
    // Both lead here from any folder.
    let remedies = [place.printed(&format!("trust {file}")), format!("--config {file} ")];
    let refused = place.run(UP).failed(1, &["denied", "mcp.json", &remedies[0], &remedies[1]]);
    assert!(!place.path("started").exists());
    let connect = place.feed(&["connect", "--start", "--wait", "60s"], &[]);
    connect.failed(1, &["the daemon failed to start", &remedies[0]]);
    let trust = place.run(["trust"]).failed(1, &["is not approved"]);
    assert!(trust.stdout.contains("touch started"), "{refused:?}");
}

#[test]
fn d27_trust_holds_for_one_content() {
    let place = Place::new();
    let done = place.run(["trust", "--yes"]).succeeded();
    assert!(done.stdout.contains("narthex-fixture --stdio"), "{done:?}");
    assert_eq!(place.mode("data/store.db"), 0o600);
    let daemon = place.start(&UP);
    daemon.event("ready");
    drop(daemon);
    place.write("mcp.json", r#"{"servers": {}}"#);
    place.run(UP).failed(1, &["has changed", "narthex trust"]);
    place.run(["trust", "mcp.json", "--yes"]).succeeded();
    place.start(&UP).event("ready");
}

/// D27: a default decides what is started where the variable is not set, so it is shown.
#[test]
fn d27_trust_shows_the_defaults_of_variables() {
    let place = Place::with(&json!({
        "program": { "transport": "stdio", "command": "${env:NO_SUCH:-other-program}",
                     "args": ["${env:NO_SUCH:-first}"] },
    }));
    let shown = place.run(["trust"]).failed(1, &["is not approved"]).stdout;
    for text in ["NO_SUCH:-other-program", "NO_SUCH:-first"] {
        assert!(shown.contains(text), "no {text} in {shown}");
    }
}

/// S5: a package that would be downloaded in another version each time is named before approval.
#[test]
fn s5_trust_names_packages_without_a_version() {
    let place = Place::with(&json!({
        "fixed": { "transport": "stdio", "command": "npx", "args": ["-y", "server@1.2.3"] },
        "newest": { "transport": "stdio", "command": "pipx", "args": ["run", "server"] },
    }));
    let done = place.run(["trust", "--yes"]).succeeded();
    let warnings = done.stdout.lines().filter(|line| line.contains("warning:"));
    let warnings: Vec<_> = warnings.collect();
    assert!(matches!(warnings[..], [one] if one.contains("write `server==VERSION`")), "{done:?}");
    let shown = place.run(["trust", "--yes", "--json"]).succeeded().json()["data"].take();
    assert_eq!(shown["servers"][0]["unpinned"], json!([]));
    assert!(shown["servers"][1]["unpinned"][0].as_str().unwrap().contains("`server` has no fixed"));
}

/// D27: programs that the file would start are shown before anything is approved, and where no user
/// can answer, nothing is.
#[test]
fn d27_no_content_is_approved_without_an_answer() {
    let place = Place::new();
    let remedy = ["denied", "mcp.json is not approved", "nothing has changed", "--yes"];
    let done = place.run(["trust"]).failed(1, &remedy);
    assert!(done.stdout.contains("narthex-fixture --stdio"), "{done:?}");
    assert_eq!(place.run(["trust", "--quiet"]).failed(1, &remedy).stdout, "");
    let done = place.run(["trust", "--json"]);
    let outcome = done.json();
    assert_eq!((done.code, &outcome["ok"]), (Some(1), &json!(false)));
    let starts = outcome["error"]["details"]["servers"][0]["starts"].as_str().unwrap();
    assert!(starts.contains("narthex-fixture --stdio"), "{outcome}");
    assert!(!place.path("data").exists(), "nothing was made");
    let approved = place.run(["trust", "--yes", "--json"]).succeeded().json();
    assert_eq!(approved, json!({ "ok": true, "data": outcome["error"]["details"] }));
    // An approved content is not asked for again.
    let again = place.run(["trust"]).succeeded();
    assert!(again.stdout.contains("mcp.json is trusted already"), "{again:?}");
    assert_eq!(place.run(["trust", "--json"]).succeeded().json(), approved);
    assert_eq!(place.run(["trust", "--quiet"]).succeeded().stdout, "");
    place.start(&UP).event("ready");
}

/// D27: on a terminal a person is asked, after the file's programs and addresses were shown. Any
/// answer but a clear yes is a no.
#[test]
fn d27_a_person_is_asked_after_all_programs_are_shown() {
    let place = Place::new();
    let ask = |answer: &str| {
        let shown = place.on_terminal(&format!("{PROGRAM} trust"), "[y/N] ", answer);
        let asked = shown.find("[y/N] ").unwrap();
        let starts = shown.find("narthex-fixture --stdio").unwrap();
        assert!(starts < asked, "{shown}");
        shown
    };
    for no in ["\n", "n\n", "yeah\n", "\x04"] {
        let shown = ask(no);
        assert!(shown.contains("is not approved"), "{no:?}: {shown}");
        assert!(!place.path("data").exists(), "{no:?}");
    }
    place.run(UP).failed(1, &["is not trusted yet"]);
    let shown = ask("Y\n");
    assert!(shown.contains("trusted mcp.json as it is now"), "{shown}");
    place.start(&UP).event("ready");
    place.write("mcp.json", r#"{"servers":  {}}"#);
    let shown = place.on_terminal(&format!("{PROGRAM} trust"), "[y/N] ", "yes\n");
    assert!(shown.contains("no servers") && shown.contains("trusted mcp.json"), "{shown}");
}

/// The daemon has its data directory to itself, but not the store.
#[test]
fn a_file_can_be_trusted_beside_a_daemon() {
    let place = Place::new();
    place.run(["trust", "--yes"]).succeeded();
    let daemon = place.start(&UP);
    daemon.event("ready");
    place.write("mcp.json", r#"{"servers": {}}"#);
    let done = place.run(["trust", "--yes"]).succeeded();
    assert!(done.stdout.contains("the running daemon uses it from now on"), "{done:?}");
    assert!(!done.stdout.contains("narthex up"), "{done:?}");
    fs_err::create_dir(place.path("other")).unwrap();
    place.write("other/mcp.json", r#"{"servers": {}}"#);
    let done = place.run(["trust", "other/mcp.json", "--yes"]).succeeded();
    let folder = fs_err::canonicalize(place.path("other")).unwrap();
    let then = format!("{} starts it, in the folder {}", place.printed("up"), folder.display());
    assert!(done.stdout.contains(&then), "{done:?}");
    drop(daemon);
    place.start(&UP).event("ready");
}

/// D27: the text that a person reads before approving is that of the file: no name in it moves the
/// cursor over a line above, or turns letters round.
#[test]
fn d27_control_characters_in_names_of_an_unknown_file_are_inert() {
    let tricks = "x\u{1b}[1A\u{1b}[2K\u{202e}\r\u{9b}1A";
    let entry = |env: &str| {
        let mut entry = json!({ "transport": "stdio", "command": "false", "args": [] });
        entry["env"] = json!({ env: "1" });
        entry
    };
    let mut servers = json!({ "tool": entry(tricks) });
    servers[tricks] = entry("PLAIN");
    let place = Place::with(&servers);
    let is_plain = |text: &str| !text.contains(['\u{1b}', '\u{202e}', '\r', '\u{9b}']);
    for words in [&["trust"][..], &["trust", "--yes"], &["tools", "--config", "mcp.json"]] {
        let done = place.run(words);
        assert!(is_plain(&done.stdout) && is_plain(&done.stderr), "{words:?}: {done:?}");
    }
    let done = place.run(["trust", "--yes"]).succeeded();
    assert!(done.stdout.contains("with environment x\u{fffd}[1A"), "{done:?}");
    let mut up = place.command(UP).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let lines = BufReader::new(up.stdout.take().unwrap()).lines().map_while(Result::ok);
    let told = lines.take_while(|line| !line.starts_with("x\u{fffd}[1A")).collect::<Vec<_>>();
    up.kill().unwrap();
    up.wait().unwrap();
    assert!(told.iter().all(|line| is_plain(line)), "{told:?}");
}

/// Many at once make one store and lose nothing of each other's.
#[test]
fn files_can_be_trusted_at_the_same_time() {
    let place = Place::new();
    let folders: Vec<_> = (0..6).map(|number| format!("folder-{number}")).collect();
    let file = |folder: &str| format!("{folder}/mcp.json");
    let trusting = folders.iter().map(|folder| {
        fs_err::create_dir(place.path(folder)).unwrap();
        place.write(&file(folder), r#"{"servers": {}}"#);
        place.command(["trust", &file(folder), "--yes"]).stdout(Stdio::null()).spawn().unwrap()
    });
    for mut child in trusting.collect::<Vec<_>>() {
        assert!(child.wait().unwrap().success());
    }
    for folder in &folders {
        place.write(&file(folder), r#"{"servers":  {}}"#);
        let output = place.command(UP).current_dir(place.path(folder)).output().unwrap();
        Done::from(output).failed(1, &["has changed"]);
    }
}

#[test]
fn an_unusable_store_is_reported_with_its_remedy() {
    let place = Place::new();
    place.run(["trust", "--yes"]).succeeded();
    place.set_mode("data/store.db", 0o644);
    place.run(UP).failed(1, &["denied", "store.db", "chmod 600"]);
    place.write("data/store.db", &"no database ".repeat(100));
    place.set_mode("data/store.db", 0o600);
    place
        .run(["trust", "--yes"])
        .failed(1, &["unavailable", "store.db", "damaged", "move it away"]);
}

/// A command that names its file needs no approval, and without a daemon no store.
#[test]
fn commands_that_need_no_store_create_no_store() {
    let place = Place::new();
    let call = ["call", "--config", "mcp.json", "fixture", "echo", "message=x"];
    place.run(call).succeeded();
    assert!(place.path("data").is_dir());
    assert!(!place.path("data/store.db").exists());
}

#[test]
fn a_missing_mcp_json_is_reported_with_its_remedy() {
    let place = Place::new();
    fs_err::remove_file(place.path("mcp.json")).unwrap();
    place.run(["call", "x", "y"]).failed(1, &["narthex up", "--config"]);
    let daemon = place.start(&UP);
    daemon.event("ready");
}

/// D27, E118: a change of the folder's file counts once it is approved, and until then the approved
/// content is used.
#[test]
fn d27_a_changed_file_counts_after_its_approval() {
    let place = Place::new();
    place.run(["trust", "--yes"]).succeeded();
    let daemon = place.start(&UP);
    daemon.event("ready");
    let more = json!({ "fixture": crate::support::fixture_entry(), "more": {
        "transport": "stdio", "command": "no-such-program-here" } });
    place.write("mcp.json", &json!({ "servers": more }).to_string());
    let refused = daemon.event("file");
    assert!(refused["error"].as_str().unwrap().contains("narthex trust"), "{refused}");
    place.run(["trust", "--yes"]).succeeded();
    daemon.server_in("more", "error");
}

/// S27: the shown text holds no value of the environment and no literal secret.
#[test]
fn s27_trust_shows_no_secrets() {
    let place = Place::with(&json!({
        "one": {
            "transport": "stdio",
            "command": "server",
            "args": ["--key", "${env:HIDDEN_ONE}", "ghp_0123456789abcdefghij"],
            "env": { "API_KEY": "hidden-two-hidden" },
        },
        "two": {
            "transport": "http",
            "url": "https://user:hidden-three@host.example/mcp?key=hidden-four",
            "headers": { "X-Key": "hidden-five-hidden" },
        },
    }));
    for words in [&["trust", "--yes"][..], &["trust", "--yes", "--json"]] {
        let mut command = place.command(words);
        let output = command.env("HIDDEN_ONE", "hidden-one").output().unwrap();
        let done = Done::from(output).succeeded();
        assert!(done.stdout.contains("${env:HIDDEN_ONE}"), "{done:?}");
        assert!(done.stdout.contains("API_KEY") && done.stdout.contains("host.example"));
        let all = format!("{}{}", done.stdout, done.stderr);
        assert!(!all.contains("hidden-"), "{all}");
    }
}

/// D27: an approved program is shown with the folder from which its command is looked up.
#[test]
fn d27_trust_shows_the_working_folder_of_a_program() {
    let place = Place::with(&json!({
        "one": { "transport": "stdio", "command": "./run", "cwd": "elsewhere",
                 "confinement": "strict" },
    }));
    let done = place.run(["trust", "--yes"]).succeeded();
    assert!(done.stdout.contains("./run"), "{done:?}");
    assert!(done.stdout.contains("/elsewhere"), "{done:?}");
    assert!(done.stdout.contains("confined to reading"), "{done:?}");
    assert!(done.stdout.contains("no network"), "{done:?}");
}

/// D27: the approved programs are those that a daemon in the file's folder would start, wherever
/// the command runs.
#[test]
fn d27_trust_resolves_folders_from_the_file_and_not_from_the_caller() {
    let place = Place::with(&json!({
        "one": { "transport": "stdio", "command": "${workspaceRoot}/run", "cwd": "below",
                 "args": ["${workspaceRoot}"],
                 "env": { "MEMORY_FILE_PATH": "${workspaceRoot}/memory.jsonl" } },
    }));
    let file = place.path("mcp.json").display().to_string();
    let mut command = place.command(["trust", &file, "--yes", "--json"]);
    let shown =
        Done::from(command.current_dir("/").output().unwrap()).succeeded().json()["data"].take();
    let root = fs_err::canonicalize(place.path("")).unwrap().display().to_string();
    let one = &shown["servers"][0];
    assert_eq!(one["starts"], format!("{root}/run {root}"));
    assert_eq!(one["folder"], format!("{root}/below"));
    assert_eq!(one["environment"]["MEMORY_FILE_PATH"], format!("{root}/memory.jsonl"));
    assert_eq!(shown, place.run(["trust", "--yes", "--json"]).succeeded().json()["data"]);
}

/// A folder without a file is answered with the files that were looked for, and the commands that
/// make or approve one.
#[test]
fn a_folder_without_a_file_is_told_what_was_looked_for() {
    let place = Place::new();
    fs_err::remove_file(place.path("mcp.json")).unwrap();
    let root = fs_err::canonicalize(place.path("")).unwrap().display().to_string();
    let init = place.printed("init");
    let neither =
        format!("{root} has neither an mcp.json, which {init} writes, nor a project file");
    place.run(["trust"]).failed(1, &["not_found", &neither, "such as .vscode/mcp.json"]);
    place.run(["trust", "no.json"]).failed(1, &["there is no file no.json", "correct its path"]);
    fs_err::create_dir(place.path(".vscode")).unwrap();
    place.write(".vscode/mcp.json", r#"{"servers": {}}"#);
    let trust = place.printed(&format!("trust {root}/.vscode/mcp.json"));
    let other = format!("but project files of clients: {trust} approves that of VS Code");
    place.run(["trust"]).failed(1, &[&format!("no mcp.json, which {init} writes"), &other]);
    // A file that is written now does not have the servers of the client.
    let done = place.run(["init"]).succeeded();
    let told =
        format!("This folder has project files of clients: {trust} approves that of VS Code");
    assert!(done.stdout.contains(&told), "{done:?}");
}

/// The file of a client in the home folder is the user's own, which needs no approval.
#[test]
fn the_home_folder_is_no_project_of_a_client() {
    let place = Place::new();
    fs_err::remove_file(place.path("mcp.json")).unwrap();
    fs_err::create_dir(place.path(".cursor")).unwrap();
    place.write(".cursor/mcp.json", r#"{"mcpServers": {}}"#);
    place.run(["trust"]).failed(1, &["project files of clients", "approves that of Cursor"]);
    let mut trust = place.command(["trust"]);
    trust.env("HOME", fs_err::canonicalize(place.path("")).unwrap());
    let at_home = Done::from(trust.stdin(Stdio::null()).output().unwrap());
    assert!(!at_home.stderr.contains("Cursor"), "{at_home:?}");
}

/// D27: an address is shown as it is written wherever its placeholders stand, for the daemon fills
/// them in; so are the variables that go to the server.
#[test]
fn d27_trust_shows_addresses_with_placeholders() {
    let place = Place::with(&json!({
        "host": { "transport": "http", "url": "https://${env:TRUST_HOST:-evil.test}/?k=hidden-3#x",
                  "headers": { "X-Key": "Bearer ${env:TRUST_KEY}" } },
        "whole": { "transport": "sse", "url": "${env:TRUST_URL}" },
        "path": { "transport": "http", "url": "https://me:hidden-4@a.example/${env:TRUST_TEAM}",
                  "auth": { "mode": "apiKey", "headerName": "${env:TRUST_NAME:-X-Key}",
                            "key": "${env:TRUST_KEY}" } },
        "far": { "transport": "stdio", "command": "${env:TRUST_BIN:-./bin}/run",
                 "cwd": "${env:TRUST_DIR}/work" },
    }));
    let mut command = place.command(["trust", "--yes"]);
    let command =
        command.env("TRUST_HOST", "hidden-1").env("TRUST_URL", "https://hidden-2.example");
    let done = Done::from(command.output().unwrap()).succeeded();
    for shown in [
        "https://${env:TRUST_HOST:-evil.test}/?k=…",
        "gets your variables TRUST_KEY\n",
        "whole            ${env:TRUST_URL}\n",
        "path             https://a.example/${env:TRUST_TEAM}\n",
        "a key in the header ${env:TRUST_NAME:-X-Key}\n",
        "far              ${env:TRUST_BIN:-./bin}/run\n",
        "in ${env:TRUST_DIR}/work\n",
    ] {
        assert!(done.stdout.contains(shown), "no {shown}: {done:?}");
    }
    for hidden in ["hidden-", "nothing"] {
        assert!(!done.stdout.contains(hidden), "{hidden}: {done:?}");
    }
}

/// D27: each value that decides what runs is shown before the approval: variables that load code
/// into a program, code that looks like a key, and the receiver of a credential.
#[test]
fn d27_trust_shows_each_value_that_decides_what_runs() {
    let place = Place::with(&json!({
        "one": { "transport": "stdio", "command": "node", "args": ["-e", "sk-1; steal()"],
                 "env": { "NODE_OPTIONS": "--require ./evil.js", "GIT_SSH_COMMAND": "sh -c evil",
                          "PLACE": "${env:HOME}/c" } },
        "two": { "transport": "http", "url": "https://host.example/mcp?team=a",
                 "auth": { "mode": "clientCredentials", "tokenUrl": "https://id.example/token",
                           "clientId": "c", "clientSecret": "${env:CLIENT_SECRET}" } },
    }));
    let done = place.run(["trust", "--yes"]).succeeded();
    for shown in [
        "sk-1; steal()",
        "NODE_OPTIONS=\"--require ./evil.js\"",
        "GIT_SSH_COMMAND=\"sh -c evil\"",
        "PLACE=${env:HOME}/c",
        "?team=…",
        "clientCredentials at https://id.example/token",
    ] {
        assert!(done.stdout.contains(shown), "no {shown}: {done:?}");
    }
    let shown =
        place.run(["trust", "--yes", "--json"]).succeeded().json()["data"]["servers"].take();
    let one = shown.as_array().unwrap().iter().find(|one| one["alias"] == "one").unwrap();
    assert_eq!(one["environment"]["NODE_OPTIONS"], "--require ./evil.js");
}
