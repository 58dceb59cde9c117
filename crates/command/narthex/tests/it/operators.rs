//! Output for operators: status, checks, results, settings that are read again.

use serde_json::{Value, json};

use crate::support::{Place, fixture_entry};

const UP: [&str; 5] = ["up", "--config", "mcp.json", "--listen", "127.0.0.1:0"];

/// A server with one tool that answers with half a pair of surrogates, and one that fails with such
/// text.
const HALVES: &str = r#"
import json, sys
for line in sys.stdin:
    m = json.loads(line)
    if "id" not in m:
        continue
    if m["method"] == "initialize":
        info = '{"name":"h","version":"1"}'
        r = '{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":%s}' % info
    elif m["method"] == "tools/list":
        schema = '{"type":"object"}'
        r = '{"tools":[{"name":"cut","description":"ends \\ud83d","inputSchema":%s}]}' % schema
    elif m["method"] == "tools/call" and m["params"].get("arguments"):
        r = '{"isError":true,"content":[{"type":"text","text":"broken \\udc00"}]}'
    elif m["method"] == "tools/call":
        r = '{"content":[{"type":"text","text":"cut \\ud800 off"}]}'
    else:
        error = '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}'
        print(error % json.dumps(m["id"]), flush=True)
        continue
    print('{"jsonrpc":"2.0","id":%s,"result":%s}' % (json.dumps(m["id"]), r), flush=True)
"#;

/// C: a result with half a pair of surrogates is shown, and all else that is printed of the server.
#[test]
fn results_with_half_a_pair_of_surrogates_are_shown() {
    let entry = json!({ "transport": "stdio", "command": "python3", "args": ["-c", HALVES] });
    let place = Place::with(&json!({ "halves": entry }));
    let shown = |words: &[&str]| {
        let done = place.run(words);
        format!("{}{}", done.stdout, done.stderr)
    };
    let config = ["--config", "mcp.json"];
    let called = place.run([&["call"][..], &config, &["halves", "cut"]].concat()).succeeded();
    assert_eq!(called.stdout, "cut \u{fffd} off\n");
    let _daemon = place.up();
    assert_eq!(shown(&["call", "halves", "cut"]), "cut \u{fffd} off\n");
    assert!(shown(&["call", "halves", "cut", "a=1"]).contains("broken \u{fffd}"));
    assert!(shown(&["tools", "halves"]).contains("ends \u{fffd}"));
    let tools = place.run(["tools", "--json"]).succeeded().json();
    assert_eq!(tools["data"]["servers"][0]["tools"][0]["name"], "cut");
    assert!(shown(&["vfs", "call", "0-halves/tools/cut"]).contains("cut"));
    let written = place.run(["vfs", "call", "0-halves/tools/cut", "--json"]).succeeded();
    assert!(written.json()["data"].is_object(), "{written:?}");
}

/// D25, D31: the runs and servers of all workspaces are shown, overridden rows as such, and a
/// sentence where there are none.
#[test]
fn status_shows_runs_and_servers_of_all_workspaces() {
    let place = Place::with(&json!({}));
    let daemon = place.up();
    let shown = || place.run(["status"]).succeeded().stdout;
    let empty = shown();
    assert!(empty.contains("There are no servers."), "{empty}");
    assert!(!empty.contains("runs") && !empty.contains("default"), "{empty}");
    place.run(["workspaces", "create", "team", "--name", "Team"]).succeeded();
    let without = shown();
    assert!(without.contains("There are no active runs in default, team."), "{without}");
    let request = json!({ "servers": { "mine": fixture_entry() } }).to_string();
    let words = ["runs", "create", "-", "--workspace", "team", "--quiet"];
    let begun = place.pipe(&words, &request).succeeded().stdout;
    let run = begun.split(' ').next().unwrap();
    let with_run = shown();
    let line = |name: &str| with_run.lines().find(|line| line.contains(name)).unwrap().to_owned();
    assert!(line("-mine").contains("team") && line("-mine").contains("ready"), "{with_run}");
    assert!(line(run).contains("team") && line(run).contains("running"), "{with_run}");
    let told = place.run(["status", "--json"]).succeeded().json()["data"].take();
    assert_eq!(told["workspaces"], json!(["default", "team"]));
    assert_eq!(
        (&told["runs"][0]["run_id"], &told["runs"][0]["workspace"]),
        (&json!(run), &json!("team"))
    );
    // A server of the same name in the user's settings is overridden by the project's.
    place.run(["mcp", "add", "twice", "--", "true"]).succeeded();
    place.write("mcp.json", &json!({ "servers": { "twice": fixture_entry() } }).to_string());
    place.run(["mcp", "reload"]).succeeded();
    daemon.server_in("twice", "ready");
    let rows = shown();
    let states: Vec<_> =
        rows.lines().filter(|line| line.trim_start().starts_with("twice ")).collect();
    assert_eq!(states.len(), 2, "{rows}");
    assert_eq!(states.iter().filter(|line| line.ends_with("overridden")).count(), 1, "{rows}");
}

/// D25: each event of a call shows the server and the tool in columns of their own.
#[test]
fn the_list_of_the_audit_names_server_and_tool() {
    let place = Place::new();
    let _daemon = place.up();
    place.run(["call", "fixture", "echo", "message=hello"]).succeeded();
    let listed = loop {
        let listed = place.run(["audit", "list"]).succeeded().stdout;
        if listed.contains("tool_called") {
            break listed;
        }
    };
    let header = listed.lines().next().unwrap();
    assert!(header.contains("SERVER") && header.contains("TOOL"), "{listed}");
    let call = listed.lines().find(|line| line.contains("tool_called")).unwrap();
    let words: Vec<_> = call.split_whitespace().collect();
    assert!(words.windows(2).any(|pair| pair == ["fixture", "echo"]), "{listed}");
}

/// D24: a daemon that runs is asked first, and a server of it that failed is counted, with the line
/// that says why and the command that shows the rest.
#[test]
fn check_counts_servers_of_the_daemon_that_failed() {
    let script = "echo 'docker: Cannot connect to the Docker daemon at unix:///x.sock.' >&2; \
                  echo 'See the manual.' >&2; exit 1";
    let place = Place::with(&json!({
        "broken": { "transport": "stdio", "command": "sh", "args": ["-c", script] },
    }));
    let daemon = place.start(&UP);
    daemon.server_in("broken", "error");
    let done = place.run(["check", "mcp", "--json"]);
    let checks = done.json()["data"]["checks"].take();
    let is_it = |one: &&Value| one["code"] == "SERVER" && one["level"] == "error";
    let found = checks.as_array().unwrap().iter().find(is_it).unwrap_or_else(|| panic!("{checks}"));
    assert_eq!(done.code, Some(1));
    let told = found.to_string();
    for words in ["Cannot connect to the Docker daemon", "narthex mcp logs broken", "--data"] {
        assert!(told.contains(words), "no {words}: {told}");
    }
    let status = place.run(["status"]).succeeded().stdout;
    assert!(status.contains("Cannot connect to the Docker daemon"), "{status}");
    let listed = place.run(["mcp", "list"]).succeeded().stderr;
    assert!(listed.contains("narthex mcp logs broken"), "{listed}");
}

/// D24: an entry that can never start is stored, and warned of by the answer, by `validate` and by
/// the check.
#[test]
fn an_entry_that_can_never_start_causes_a_warning() {
    let place = Place::with(&json!({}));
    let _daemon = place.up();
    let image = json!({ "id": "boxed", "image": "example/server:1" }).to_string();
    let oauth = json!({ "id": "signed", "url": "https://a.example/mcp",
        "auth": { "mode": "authorizationCode" } });
    let agent = json!({ "name": "worker", "executor": "nowhere",
        "mcpServers": { "box": { "ref": "boxed" } } });
    let saved = place.pipe(&["servers", "apply", "--file", "-"], &image).succeeded();
    assert!(saved.stderr.contains("a container image is not supported yet"), "{saved:?}");
    let apply = ["servers", "apply", "--offline", "--file", "-"];
    let saved = place.pipe(&apply, &oauth.to_string()).succeeded();
    assert!(!saved.stderr.contains("not supported"), "{saved:?}");
    let saved = place.pipe(&["agents", "apply", "--file", "-"], &agent.to_string()).succeeded();
    for words in ["no executor `nowhere`", "the server `boxed` never starts"] {
        assert!(saved.stderr.contains(words), "{saved:?}");
    }
    let done = place.run(["check", "mcp", "--json"]);
    let told = done.json()["data"]["checks"].to_string();
    for words in ["`boxed` of the catalog never starts", "`nowhere`"] {
        assert!(told.contains(words), "no {words}: {told}");
    }
    assert!(!told.contains("`signed` of the catalog never starts"), "{told}");
    // A server in a file is signed in to.
    place.write(
        "mcp.json",
        &json!({ "servers": { "web": { "transport": "http",
        "url": "https://a.example/mcp", "auth": { "mode": "authorizationCode" } } } })
        .to_string(),
    );
    let told = place.run(["check", "mcp", "--json"]).json()["data"]["checks"].to_string();
    assert!(!told.contains("`web` never starts"), "{told}");
}

/// D31: a file that was trusted and is broken now is reported as broken.
#[test]
fn a_syntax_error_in_a_trusted_file_is_reported_as_syntax_error() {
    let place = Place::new();
    place.run(["trust", "--yes"]).succeeded();
    let daemon = place.start(&["up", "--listen", "127.0.0.1:0"]);
    daemon.event("ready");
    place.write("mcp.json", "{ \"servers\": { \"a\": } }");
    let refused = place.run(["mcp", "reload"]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.stderr.contains("line 1"), "{refused:?}");
    assert!(!refused.stderr.contains("not trusted"), "{refused:?}");
    // A file that can be read is a matter of trust again.
    place.write("mcp.json", "{ \"servers\":   {} }");
    let refused = place.run(["mcp", "reload"]).failed(1, &["is not trusted", "narthex trust"]);
    assert!(refused.stderr.contains("/mcp.json"), "{refused:?}");
    drop(daemon);
    place.write("mcp.json", "{ \"servers\": { \"a\": } }");
    let refused = place.run(["up", "--listen", "127.0.0.1:0"]).failed(1, &["line 1"]);
    assert!(!refused.stderr.contains("trust"), "{refused:?}");
}

/// D34: parameters are typed as arguments of calls are, and a scope comes from a file.
#[test]
fn runs_take_parameters_and_a_scope() {
    let place = Place::with(&json!({}));
    let _daemon = place.up();
    let agent = json!({ "name": "reader", "params_schema": {
        "topic": { "type": "string", "required": true }, "count": { "type": "number" } } });
    place.pipe(&["agents", "apply", "--file", "-"], &agent.to_string()).succeeded();
    place.write("scope.json", r#"{"context_id": "ctx-9"}"#);
    place.write("task.json", r#"{"agent_name": "reader", "params": {"topic": "old"}}"#);
    let create = ["runs", "create", "--quiet", "--agent", "reader"];
    place.run(create).failed(1, &["topic"]);
    // By the schema, a value that looks like a number is a text.
    let params = ["--params", "topic=7", "--params", "count=3", "--scope", "scope.json"];
    place.run([&create[..], &params].concat()).succeeded();
    place
        .run([&create[..], &["--params", "topic=a", "--params", "count=x"]].concat())
        .failed(1, &["count"]);
    place.run([&create[..], &["--params", "topic:=7"]].concat()).failed(1, &["topic"]);
    place.run(["runs", "create", "task.json", "--params", "topic=new", "--quiet"]).succeeded();
    place.run([&create[..], &["--params", "topic"]].concat()).failed(2, &["topic"]);
    place.write("list.json", "[]");
    let refused =
        place.run([&create[..], &["--params", "topic=a", "--scope", "list.json"]].concat());
    refused.failed(1, &["list.json", "context_id"]);
}

/// D27, O68: example 2 of the resolution document works after the one line that its refusal shows,
/// in the running daemon.
#[test]
fn d27_a_variable_is_allowed_by_the_line_that_is_shown() {
    let place = Place::with(&json!({}));
    place.write("narthex.toml", "catalog.env = [\"REGION\"]\n[log]\nlevel = \"warn\"\n");
    let settings = ["--settings", "narthex.toml"];
    let daemon = place.start_with(&[&UP[..], &settings].concat(), |command| {
        command.env("ATLASSIAN_API_KEY", "sk-of-the-coordinator");
    });
    daemon.event("ready");
    let run = |words: &[&str]| place.run([words, &settings].concat());
    let feed = |words: &[&str], value: &Value| {
        place.pipe(&[words, &settings].concat(), &value.to_string())
    };
    let server = json!({ "id": "atlassian", "url": "http://127.0.0.1:9/mcp", "config_schema": {
        "api_key": { "type": "string", "required": true, "sensitive": true },
        "jira_projects": { "type": "string", "required": false } } });
    feed(&["servers", "apply", "--file", "-"], &server).succeeded();
    let capability = json!({ "name": "jira-access", "mcpServers": { "jira": { "ref": "atlassian",
        "config": { "api_key": "${env.ATLASSIAN_API_KEY}",
                    "jira_projects": "${scope.allowed_projects}" } } } });
    let refused = feed(&["capabilities", "apply", "--file", "-"], &capability);
    let told = format!("{}{}", refused.stdout, refused.stderr);
    let line = told
        .split('`')
        .find(|span| span.starts_with("catalog.env = "))
        .unwrap_or_else(|| panic!("{told}"));
    assert_eq!(line, "catalog.env = [\"REGION\", \"ATLASSIAN_API_KEY\"]");
    assert!(told.contains("narthex mcp reload"), "{told}");
    place.write("narthex.toml", &format!("{line}\n[log]\nlevel = \"warn\"\n"));
    run(&["mcp", "reload"]).succeeded();
    feed(&["capabilities", "apply", "--file", "-"], &capability).succeeded();
    let agent = json!({ "name": "project-assistant", "capabilities": ["jira-access"],
        "params_schema": { "task": { "type": "string", "required": true } } });
    feed(&["agents", "apply", "--file", "-"], &agent).succeeded();
    let request = json!({ "agent_name": "project-assistant", "params": { "task": "List open bugs" },
        "scope": { "allowed_projects": "ALPHA,BETA" }, "direct": true });
    let begun = feed(&["runs", "create", "-", "--json"], &request);
    let told = format!("{}{}", begun.stdout, begun.stderr);
    // The values are there; only the server of the example is not.
    assert!(!told.contains("ATLASSIAN_API_KEY") && told.contains("transport_error"), "{told}");
    // A list that is broken takes nothing away.
    place.write("narthex.toml", "catalog.env = [\"*\"]\n");
    let refused = place.run(["mcp", "reload", "--data", "data"]);
    refused.failed(1, &["narthex.toml", "`*`"]);
}

/// D36: an empty table names the command that adds the first row, and the deletion of an agent
/// names the objects that it leaves behind.
#[test]
fn d36_empty_tables_and_deletions_name_the_next_command() {
    let place = Place::with(&json!({}));
    let _daemon = place.up();
    for (words, add) in [
        (&["agents", "list"][..], "agents apply --file FILE"),
        (&["servers", "list"], "servers apply --file FILE"),
        (&["capabilities", "list"], "capabilities apply --file FILE"),
        (&["secrets", "list"], "secrets set NAME"),
        (&["tokens", "list"], "tokens create SERVICE"),
        (&["policy", "show"], "policy set --file FILE"),
    ] {
        let done = place.run(words).succeeded();
        // Rules are printed as they are stored, so the sentence is no part of standard output.
        let shown = if words[0] == "policy" { done.stderr } else { done.stdout };
        assert!(shown.starts_with("There are no "), "{shown}");
        assert!(shown.contains(&format!("yet; add one with `narthex {add} ")), "{shown}");
    }
    let told = ["is now in the shell's history", "`narthex secrets set X ", "standard input"];
    place.run(["secrets", "set", "X=abc"]).failed(2, &told);
    place.write("agent.json", r#"{ "name": "reader" }"#);
    place.run(["agents", "apply", "--file", "agent.json"]).succeeded();
    place.run(["clients", "register", "desk", "--agent", "reader"]).succeeded();
    let deleted = place.run(["agents", "delete", "reader"]).succeeded();
    assert!(deleted.stderr.contains("`narthex clients revoke "), "{deleted:?}");
}

/// A fault of an entry is reported once, with the remedy of the entry.
#[test]
fn check_reports_a_faulty_entry_once() {
    let place = Place::with(&json!({ "one": { "transport": "stdio", "comand": "true" } }));
    let _daemon = place.up();
    let done = place.run(["check", "mcp"]);
    let meant = "did you mean `command`?";
    assert_eq!(done.stdout.matches(meant).count(), 1, "{}", done.stdout);
    assert!(done.stdout.contains("correct the entry, then read the file again"), "{}", done.stdout);
    assert!(!done.stdout.contains("mcp reconnect"), "{}", done.stdout);
}
