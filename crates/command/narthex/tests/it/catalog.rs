//! `narthex servers`, `capabilities` and `agents` with a real daemon.

use std::process::Command;

use fs_err as fs;
use serde_json::{Value, json};

use crate::support::{Done, Place, fixture_entry};

fn data(done: Done) -> Value {
    done.succeeded().json()["data"].take()
}

/// O2: stored from a file, listed in all three ways, printed in the form that is stored, deleted.
#[test]
fn o2_objects_are_applied_listed_shown_and_deleted() {
    let place = Place::with(&json!({}));
    let _daemon = place.up();
    assert!(place.run(["servers", "list"]).succeeded().stdout.contains("There are no servers"));
    let server = json!({ "id": "docs", "name": "Papers", "url": "https://docs.test/mcp" });
    place.write("docs.json", &server.to_string());
    let stored = place.run(["servers", "apply", "--file", "docs.json"]).succeeded();
    assert_eq!(stored.stdout, "created the server docs\n");
    let capability = r#"{"name": "papers", "mcpServers": {"library": {"ref": "docs"}}}"#;
    place.pipe(&["capabilities", "apply", "-f", "-", "--quiet"], capability).succeeded();
    let agent = r#"{"name": "reader", "capabilities": ["papers"]}"#;
    let stored = data(place.pipe(&["agents", "apply", "-f", "-", "--json"], agent));
    let change = &stored["changes"][0];
    assert_eq!((&change["change"], &change["id"]), (&json!("created"), &json!("reader")));

    let listed = place.run(["servers", "list"]).succeeded();
    let lines: Vec<Vec<&str>> =
        listed.stdout.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines[0], ["ID", "ABOUT", "REVISION", "UPDATED", "BY"]);
    assert_eq!((&lines[1][..3], lines[1][4]), (&["docs", "Papers", "1"][..], "admin"));
    assert_eq!(place.run(["agents", "list", "--quiet"]).succeeded().stdout, "reader\n");
    let listed = data(place.run(["capabilities", "list", "--json"]));
    assert_eq!(listed["items"][0]["id"], "papers");

    // Printed objects can be applied as they are.
    let shown = place.run(["agents", "get", "reader"]).succeeded().stdout;
    let again = place.pipe(&["agents", "apply", "-f", "-"], &shown).succeeded();
    assert_eq!(again.stdout, "unchanged the agent reader\n");
    let merged = place.run(["agents", "get", "reader", "--merged"]).succeeded();
    assert_eq!(merged.json()["mcpServers"]["library"]["ref"], "docs");
    place.run(["servers", "get", "docs", "--merged"]).failed(2, &["agents"]);

    place.run(["servers", "delete", "docs"]).failed(1, &["conflict", "capabilities.papers"]);
    place.run(["servers", "delete", "docs", "--force"]).succeeded();
    place.run(["servers", "get", "docs"]).failed(1, &["not_found", "docs"]);
}

/// X-M12, D7: the file of a desktop client is applied as the documentation shows it.
#[test]
fn x_m12_servers_of_a_desktop_client_are_applied() {
    let place = Place::with(&json!({}));
    let _daemon = place.up();
    let docs = include_str!("../../../../../docs/guides/catalog.md");
    let (_, shown) = docs.split_once("```json\n{ \"mcpServers\": {\n").unwrap();
    let (shown, _) = shown.split_once("```").unwrap();
    place.write("desktop.json", &format!("{{ \"mcpServers\": {{\n{shown}"));
    let apply = ["servers", "apply", "-f", "desktop.json"];
    place.run(apply).failed(1, &["GITHUB_TOKEN", "PAPERS_TOKEN", "narthex secrets set"]);
    for name in ["GITHUB_TOKEN", "PAPERS_TOKEN"] {
        place.pipe(&["secrets", "set", name], "canary-pasted").succeeded();
    }
    let applied = place.run(apply).succeeded();
    assert_eq!(applied.stdout, "created the server github\ncreated the server papers\n");
    let told = "`${GITHUB_TOKEN}` is read as the secret of that name";
    assert!(applied.stderr.contains(told), "{}", applied.stderr);
    let papers = place.run(["servers", "get", "papers", "--json"]).succeeded().json();
    let auth = &papers["data"]["definition"]["auth"];
    assert_eq!((&auth["mode"], &auth["valuePrefix"]), (&json!("apiKey"), &json!("Bearer ")));
}

/// X-M12, O61: a fault that the daemon finds in a file of a desktop client has its place and its
/// line there, and the list of accepted keys has those of such files.
#[test]
fn x_m12_faults_of_a_desktop_file_have_their_place_and_line() {
    let place = Place::with(&json!({}));
    let _daemon = place.up();
    let text = r#"{
        "mcpServers": {
            "docs": {
                "url": "nope",
                "colour": 1,
                "headers": {
                    "x-key": "${NOT_SET}"
                }
            },
            "mail": {
                "command": "mail",
                "env": { "TOKEN": "${NOT_SET}" }
            }
        }
    }"#;
    place.write("desktop.json", text);
    place.run(["servers", "apply", "-f", "desktop.json"]).failed(
        1,
        &[
            "desktop.json: `mcpServers.docs.url` (line 4): ",
            "desktop.json: `mcpServers.docs.colour` (line 5): ",
            "`env`, ",
            ", `headers`\n",
            "desktop.json: `mcpServers.docs.headers.x-key` (line 7): ",
            "desktop.json: `mcpServers.mail.env.TOKEN` (line 12): ",
        ],
    );
    let text = r#"{ "id": "docs", "command": "docs", "args": ["--key=${env.KEY}"] }"#;
    place.write("server.json", text);
    let refused = place.run(["servers", "apply", "-f", "server.json"]);
    assert_eq!(refused.stderr.matches("args[0]").count(), 1, "one remedy: {refused:?}");
    assert!(refused.stderr.contains("pass the value in `env`"), "{refused:?}");
}

/// O83: a folder of files is applied as a whole, after a dry run.
#[test]
fn o83_files_are_applied_together_after_a_dry_run() {
    let place = Place::with(&json!({}));
    let _daemon = place.up();
    fs::create_dir(place.path("servers")).unwrap();
    place.write(
        "servers/b.yaml",
        "id: docs\nurl: https://docs.test/mcp\n---\nid: mail\ncommand: mail\n",
    );
    place.write("servers/a.json", r#"{"id": "search", "url": "https://search.test/mcp"}"#);
    place.write("servers/notes.txt", "none of these");
    let apply = ["servers", "apply", "-f", "servers"];
    let dry = place.run([&apply[..], &["--dry-run"]].concat()).succeeded().stdout;
    let would = ["search", "docs", "mail"].map(|id| format!("would create the server {id}\n"));
    let would = would.concat();
    assert_eq!(dry, would);
    assert_eq!(place.run(["servers", "list", "--quiet"]).succeeded().stdout, "");
    assert_eq!(place.run(apply).succeeded().stdout, would.replace("would create", "created"));

    place.write(
        "servers/a.json",
        r#"{"id": "search", "url": "https://find.test/mcp",
        "config_schema": {"pin": {"sensitive": true, "default": "canary-5"}}}"#,
    );
    let dry = place.run([&apply[..], &["--dry-run"]].concat()).succeeded().stdout;
    for told in [
        "would update the server search",
        "~ url: ",
        "https://find.test/mcp",
        "+ config_schema: ",
        "(hidden)",
        "unchanged the server docs",
    ] {
        assert!(dry.contains(told), "{told}: {dry}");
    }
    assert!(!dry.contains("canary"), "{dry}");

    // One faulty object keeps all from being stored, and the failure names it with its file.
    place.write("servers/c.yaml", "id: good\nurl: https://good.test\n---\nid: bad\nurl: 3\n");
    let refused = place.run(apply);
    refused.failed(1, &["servers/c.yaml (2): `url`"]);
    let listed = place.run(["servers", "list", "--quiet"]).succeeded().stdout;
    assert_eq!(listed, "docs\nmail\nsearch\n");
    place.run(["servers", "apply", "-f", "absent"]).failed(1, &["absent"]);
}

/// O83, S27, R-M5: an export of one daemon is imported by another, without secrets.
#[test]
fn o83_an_export_is_imported_by_another_daemon_without_secrets() {
    let place = Place::with(&json!({}));
    let daemon = place.up();
    place.pipe(&["secrets", "set", "DOCS_KEY"], "canary-9").succeeded();
    let server = json!({ "id": "docs", "url": "https://docs.test/mcp", "description": "no: yes\n",
        "config_schema": { "key": { "kind": "secret" } },
        "default_config": { "key": "${DOCS_KEY}" } });
    place.pipe(&["servers", "apply", "-f", "-"], &server.to_string()).succeeded();
    let agent = "name: reader\nmcp:\n  servers:\n    files:\n      command: npx\n\
                 \x20     timeout: 15s\n      env:\n        KEY: ${DOCS_KEY}\n";
    place.write("agent.yaml", agent);
    let applied = place.run(["agents", "apply", "-f", "agent.yaml"]).succeeded();
    assert_eq!(applied.stdout, "created the server reader-files\ncreated the agent reader\n");
    assert!(applied.stderr.contains("the secret of that name"), "R-M5: {}", applied.stderr);
    let exported = place.run(["export"]).succeeded().stdout;
    assert!(exported.contains("reader-files") && !exported.contains("canary"), "{exported}");
    assert_eq!(place.run(["export"]).succeeded().stdout, exported);
    drop(daemon);

    let other = Place::with(&json!({}));
    let _daemon = other.up();
    other.write("workspace.yaml", &exported);
    other.run(["import", "workspace.yaml"]).failed(1, &["narthex secrets set DOCS_KEY"]);
    other.pipe(&["secrets", "set", "DOCS_KEY"], "canary-10").succeeded();
    let dry = other.run(["import", "workspace.yaml", "--dry-run"]).succeeded().stdout;
    assert!(dry.contains("would create the agent reader"), "{dry}");
    other.run(["import", "workspace.yaml"]).succeeded();
    let again = other.run(["import", "workspace.yaml"]).succeeded().stdout;
    assert_eq!(
        again,
        "unchanged the server docs\nunchanged the server reader-files\n\
                       unchanged the agent reader\n"
    );
    assert_eq!(other.run(["export"]).succeeded().stdout, exported);
    assert_eq!(data(other.run(["export", "--json"]))["version"], 1);
}

/// R-M4, R-M30, R-D2, R-E23: a manifest with servers inside and names of others is an agent of the
/// catalog, whose run has all of them; a server that cannot be used is named with its place.
#[test]
fn r_m4_a_run_of_a_manifest_has_all_named_and_inner_servers() {
    let place = Place::with(&json!({}));
    let _daemon = place.up();
    place.pipe(&["secrets", "set", "KEY"], "canary-11").succeeded();
    let entry = fixture_entry();
    let mut shared = entry.clone();
    shared["id"] = json!("shared");
    place.pipe(&["servers", "apply", "-f", "-"], &shared.to_string()).succeeded();
    let inner = json!({ "command": entry["command"], "args": entry["args"], "timeout": "15s",
        "mount_timeout": "20s", "transport_type": "stdio", "env": { "KEY": "${KEY}" } });
    let names = json!(["shared", "files"]);
    let mut agent = json!({ "name": "helper", "description": "Reads files",
        "mcp": { "servers": { "files": inner }, "names": names } });
    place.write("agent.json", &agent.to_string());
    let applied = place.run(["agents", "apply", "-f", "agent.json"]).succeeded();
    assert_eq!(applied.stdout, "created the server helper-files\ncreated the agent helper\n");
    assert!(applied.stderr.contains("that description is used"), "R-D2: {}", applied.stderr);
    let begun = data(place.run(["runs", "create", "--agent", "helper", "--json"]));
    let servers = begun["servers"].as_array().unwrap().iter();
    let mut ready: Vec<_> = servers
        .map(|one| (one["alias"].as_str().unwrap(), one["state"].as_str().unwrap()))
        .collect();
    ready.sort_unstable();
    assert_eq!(ready, [("files", "ready"), ("shared", "ready")], "{begun}");
    agent["mcp"]["servers"]["files"]["timeout"] = json!("soon");
    agent["mcp"]["servers"]["files"]["comand"] = json!("x");
    place.write("agent.json", &agent.to_string());
    let at = "agent.json: `mcp.servers.files.";
    let places = [&*format!("{at}comand`"), &format!("{at}timeout`"), "30s"];
    place.run(["agents", "apply", "-f", "agent.json"]).failed(1, &places);
    // A fault that the catalog finds is reported where it was written, too.
    agent["mcp"] =
        json!({ "servers": { "files": { "command": "npx", "env": { "K": "${NOT_SET}" } } } });
    place.write("agent.json", &agent.to_string());
    let refused = place.run(["agents", "apply", "-f", "agent.json"]);
    refused.failed(1, &["mcp.servers.files", "NOT_SET"]);
}

/// X-M12: all faults of a desktop client's file are reported at once: parts in a form that the
/// catalog does not have, and the catalog's faults in the rest.
#[test]
fn x_m12_all_faults_of_a_pasted_file_are_reported_together() {
    let place = Place::with(&json!({}));
    let file = json!({ "mcpServers": {
        "one": { "command": "npx", "args": ["--key=${API_KEY}"], "comand": "x" },
        "two": { "url": "https://two.test/mcp", "hedaers": {} },
        "three": { "url": "not an address" },
        "four": { "command": "npx", "env": { "A": {} } } } });
    place.write("desktop.json", &serde_json::to_string_pretty(&file).unwrap());
    let apply = ["servers", "apply", "--file", "desktop.json"];
    let own = ["`mcpServers.one.args[0]` (line", "`mcpServers.two.hedaers` (line", "four.env.A` ("];
    let alone = place.run(apply).failed(1, &own);
    assert!(alone.stderr.starts_with("error: invalid: nothing was stored:\n"), "{alone:?}");
    assert_eq!(alone.stderr.lines().count(), 4, "{alone:?}");
    let _daemon = place.up();
    let others = ["`mcpServers.one.comand` (line", "`mcpServers.three.url` (line"];
    let refused = place.run(apply).failed(1, &own).failed(1, &others);
    assert_eq!(refused.stderr.lines().count(), 6, "each once: {refused:?}");
    let told = place.run(apply.into_iter().chain(["--json"])).json();
    let errors = told["error"]["details"]["errors"].as_array().unwrap();
    let is_whole = |error: &Value| {
        error["source"] == "desktop.json" && error["line"].is_u64() && error["code"].is_string()
    };
    assert!(errors.len() == 5 && errors.iter().all(is_whole), "{told}");
    assert_eq!(place.run(["servers", "list", "--quiet"]).succeeded().stdout, "");
}

/// D9: each fault has a line of its own with its field, in each command that stores the document.
#[test]
fn d9_each_fault_is_printed_on_a_separate_line() {
    let place = Place::with(&json!({}));
    let _daemon = place.up();
    let rule = |word: &str| format!("@{word}(\"x\")\nforbid(principal, action, resource);\n");
    place.write("rules.cedar", &format!("{}{}", rule("nope"), rule("more")));
    let document = json!({ "version": 1, "servers": [{ "id": "a", "url": "nope", "colour": 1 }] });
    place.write("all.json", &serde_json::to_string_pretty(&document).unwrap());
    let set = place.printed("secrets set A_URL");
    let url =
        format!("`url`: the secret `A_URL` is not set in workspace `default`; set it with {set}");
    let webhook = ["webhooks", "set", "ops", "--url", "${A_URL}", "--signing-key", "${A_KEY}"];
    for (words, faults) in [
        (&["policy", "set", "--file", "rules.cedar"][..], ["`rules`: ", "`rules`: "]),
        (&["import", "all.json"], ["all.json: `servers[0].url` (line ", "all.json: `servers[0].c"]),
        (&["env-bindings", "set", "NONE", "--agent", "none"], ["`scope_id`: ", "`secret`: "]),
        (&webhook, [&*url, "`sign"]),
    ] {
        let refused = place.run(words).failed(1, &[]);
        let mut lines = refused.stderr.lines();
        assert_eq!(lines.next(), Some("error: invalid: nothing was stored:"), "{refused:?}");
        let lines: Vec<_> = lines.collect();
        assert_eq!(lines.len(), 2, "{refused:?}");
        for fault in faults {
            assert!(lines.iter().any(|line| line.starts_with(fault)), "{fault:?}: {refused:?}");
        }
    }
}

/// D7: a variable that only clients fill in has one cause and one remedy, in files of clients, in
/// manifests and in entries. The file with the remedies is stored.
#[test]
fn d7_variables_of_clients_have_remedies_that_work() {
    let place = Place::with(&json!({}));
    let _daemon = place.up();
    let pasted = |args: &str, key: &str| {
        let file = json!({ "mcpServers": { "one": { "command": "npx", "args": [args],
            "env": { "KEY": key } } } });
        place.write("desktop.json", &serde_json::to_string_pretty(&file).unwrap());
        place.run(["servers", "apply", "--file", "desktop.json"])
    };
    let remedy = place.printed("secrets set API_KEY");
    let told = ["`${workspaceRoot}` is a variable of clients", "write the path", "`${API_KEY}`"];
    let refused = pasted("${workspaceRoot}", "${input:api-key}").failed(1, &told);
    assert!(refused.stderr.contains(&remedy), "{refused:?}");
    assert_eq!(refused.stderr.lines().count(), 3, "one cause and one remedy each: {refused:?}");
    let manifest = json!({ "name": "helper", "mcp": { "servers": { "one": { "command": "npx",
        "args": ["${workspaceFolder}/x"], "env": { "KEY": "${input:api-key}" } } } } });
    let entry = json!({ "id": "two", "command": "${workspaceFolder}/run",
        "default_config": { "KEY": "${input:api-key}" } });
    for (kind, document) in [("agents", manifest), ("servers", entry)] {
        place.write("document.json", &document.to_string());
        let refused = place.run([kind, "apply", "--file", "document.json"]);
        assert!(refused.stderr.contains(&remedy), "{refused:?}");
        assert!(refused.stderr.contains("write the "), "{refused:?}");
        assert_eq!(refused.stderr.lines().count(), 3, "{refused:?}");
    }
    place.pipe(&["secrets", "set", "API_KEY"], "canary-41").succeeded();
    pasted("/srv/project", "${API_KEY}").succeeded();
}

/// R-M4: each fault and each warning has its file, its place and its line, for people and for
/// programs; a server that is taken out of a manifest is reported, and deleted where that is asked
/// for.
#[test]
fn r_m4_faults_have_line_numbers_and_removed_servers_are_pruned() {
    let place = Place::with(&json!({}));
    let _daemon = place.up();
    place.pipe(&["secrets", "set", "KEY"], "canary-12").succeeded();
    let shared = r#"{"id": "shared", "url": "https://shared.test/mcp"}"#;
    place.pipe(&["servers", "apply", "-f", "-"], shared).succeeded();
    let lines = "name: helper\nmcp:\n  servers:\n    files:\n      command: npx\n      \
                 timeout: soon\n      env:\n        K: ${NOT_SET}\n  names:\n    \
                 - shared\n    - none\n";
    place.write("lines.yaml", lines);
    let refused = place.run(["agents", "apply", "-f", "lines.yaml"]);
    let at = |place: &str, line| format!("lines.yaml: `mcp.{place}` (line {line}): ");
    let places = [at("servers.files.timeout", 6), at("servers.files.env.K", 8), at("names[1]", 11)];
    refused.failed(1, &places.each_ref().map(String::as_str));
    let told = place.run(["agents", "apply", "-f", "lines.yaml", "--json"]).json();
    let error = &told["error"]["details"]["errors"][0];
    assert_eq!((&error["source"], &error["line"]), (&json!("lines.yaml"), &json!(6)), "{told}");
    place.write(
        "lines.yaml",
        &lines.replace("soon", "0s").replace("NOT_SET", "KEY").replace("    - none\n", ""),
    );
    let applied = place.run(["agents", "apply", "-f", "lines.yaml"]).succeeded();
    let warning = format!("warning: {}zero or less", at("servers.files.timeout", 6));
    assert!(applied.stderr.contains(&warning), "{}", applied.stderr);
    assert!(!applied.stderr.contains("agents[0]"), "{}", applied.stderr);
    // A server that is taken out is reported, and deleted where that is asked for.
    place.write("lines.yaml", "name: helper\nmcp: {}\n");
    let dry = ["agents", "apply", "-f", "lines.yaml", "--prune", "--dry-run"];
    let dry = place.run(dry).succeeded();
    assert!(dry.stderr.contains("`servers.helper-files`: "), "{}", dry.stderr);
    let pruned = place.run(["agents", "apply", "-f", "lines.yaml", "--prune"]).succeeded();
    let wanted = "updated the agent helper\ndeleted the server helper-files\n";
    assert_eq!(pruned.stdout, wanted, "{}", pruned.stderr);
    place.run(["servers", "apply", "-f", "lines.yaml", "--prune"]).failed(2, &["--prune"]);
    place.run(["agents", "apply", "-f", "nope.yaml"]).failed(1, &["not_found", "correct the name"]);
    place.write("agent.toml", "name = 'a'");
    place.run(["agents", "apply", "-f", "agent.toml"]).failed(1, &["JSON or YAML"]);
}

/// R-M4: an absent name in an agent is reported with all that cannot be read at all.
#[test]
fn r_m4_all_faults_of_a_manifest_are_reported_together() {
    let place = Place::with(&json!({}));
    let _daemon = place.up();
    let shared = r#"{"id": "shared", "url": "https://shared.test/mcp"}"#;
    place.pipe(&["servers", "apply", "-f", "-"], shared).succeeded();
    let text = "name: helper\nexecutor: nowhere\ndescripton: x\nskills: [none]\nmcp:\n  \
                servers:\n    files:\n      comand: npx\n    git:\n      command: git\n      \
                max_output_tokens: -1\n  names:\n    - shared\n    - none\n";
    place.write("all.yaml", text);
    let refused = place.run(["agents", "apply", "-f", "all.yaml", "--json"]).json();
    let errors = refused["error"]["details"]["errors"].as_array().unwrap();
    let told = |error: &Value| {
        assert_eq!(error["source"], "all.yaml", "{error}");
        (error["field"].as_str().unwrap().to_owned(), error["line"].as_u64().unwrap())
    };
    let mut told: Vec<_> = errors.iter().map(told).collect();
    told.sort_by_key(|(_, line)| *line);
    let at = |place: &str, line| (place.to_owned(), line);
    let files = "mcp.servers.files";
    let wanted = [
        at("descripton", 3),
        at("skills[0]", 4),
        at(&format!("{files}.command"), 7),
        at(&format!("{files}.comand"), 8),
        at("mcp.servers.git.max_output_tokens", 11),
        at("mcp.names[1]", 14),
    ];
    assert_eq!(told, wanted, "{refused}");
}

/// R-M4: a server that `--prune` cannot delete once all else is stored is reported, and deleted the
/// next time.
#[test]
fn r_m4_a_server_that_cannot_be_pruned_is_reported() {
    let place = Place::with(&json!({}));
    let _daemon = place.up();
    let servers = "mcp:\n  servers:\n    files:\n      command: npx\n";
    place.write("agent.yaml", &format!("name: helper\n{servers}"));
    let apply = |words: &[&str]| {
        let apply = ["agents", "apply", "-f", "agent.yaml", "--prune"];
        place.run([&apply[..], words].concat()).succeeded()
    };
    apply(&[]);
    place.write("agent.yaml", "name: helper\nmcp: {}\n");
    let sql = |statement: &str| {
        let script = "import sqlite3, sys\n\
                      with sqlite3.connect('data/store.db') as store: store.execute(sys.argv[1])";
        let mut python = Command::new("python3");
        python.args(["-c", script, statement]).current_dir(place.path(""));
        assert!(python.status().unwrap().success(), "{statement}");
    };
    sql("CREATE TRIGGER stays BEFORE DELETE ON mcp_servers \
         BEGIN SELECT RAISE(ABORT, 'canary-of-the-store'); END");
    let told = apply(&[]);
    assert_eq!(told.stdout, "updated the agent helper\n");
    for part in
        ["`servers.helper-files`", "all other objects are stored", "servers delete helper-files"]
    {
        assert!(told.stderr.contains(part), "{part}: {}", told.stderr);
    }
    assert!(!told.stderr.contains("canary"), "{}", told.stderr);
    let agent = place.run(["agents", "get", "helper"]).succeeded().json();
    assert_eq!((&agent["mcp"], &agent["mcpServers"]), (&json!({}), &Value::Null));
    assert_eq!(place.run(["servers", "list", "--quiet"]).succeeded().stdout, "helper-files\n");
    let changes = data(apply(&["--json"]))["changes"].take();
    assert_eq!(changes.as_array().map(Vec::len), Some(1), "it is no change: {changes}");
    sql("DROP TRIGGER stays");
    let told = apply(&[]);
    assert_eq!(told.stdout, "unchanged the agent helper\ndeleted the server helper-files\n");
    assert_eq!(place.run(["servers", "list", "--quiet"]).succeeded().stdout, "");
}

/// R-M4: a server that a manifest has made is not forgotten with its agent.
#[test]
fn r_m4_deleting_an_agent_names_the_servers_of_its_manifest() {
    let place = Place::with(&json!({}));
    let _daemon = place.up();
    let server = |name: &str| format!("    {name}:\n      command: npx\n");
    let manifest = format!("name: helper\nmcp:\n  servers:\n{}{}", server("a"), server("b"));
    place.write("agent.yaml", &manifest);
    let apply = || place.run(["agents", "apply", "-f", "agent.yaml"]).succeeded();
    apply();
    let left = place.run(["agents", "delete", "helper"]).succeeded();
    assert_eq!(left.stdout, "deleted the agent helper\n");
    for id in ["helper-a", "helper-b"] {
        let command = place.printed(&format!("servers delete {id}"));
        let command = format!("{command} removes it");
        assert!(left.stderr.contains(&command), "{}", left.stderr);
    }
    apply();
    let other = r#"{"name": "other", "mcpServers": {"b": {"ref": "helper-b"}}}"#;
    place.pipe(&["agents", "apply", "-f", "-"], other).succeeded();
    let words = ["agents", "delete", "helper", "--with-servers", "--json"];
    let servers = data(place.run(words))["servers"].take();
    assert_eq!(servers[0], json!({ "id": "helper-a", "deleted": true, "message": null }));
    assert_eq!((&servers[1]["id"], &servers[1]["deleted"]), (&json!("helper-b"), &json!(false)));
    assert!(servers[1]["message"].as_str().unwrap().contains("agents.other"), "{servers}");
    assert_eq!(place.run(["servers", "list", "--quiet"]).succeeded().stdout, "helper-b\n");
    place.run(["servers", "delete", "helper-b", "--with-servers"]).failed(2, &["--with-servers"]);
}

/// X-M36, X-M44, D39: a server is attached, listed with its literals, and taken out again.
#[test]
fn x_m36_servers_are_attached_and_detached() {
    let place = Place::with(&json!({}));
    let _daemon = place.up();
    let server = r#"{"id": "linear", "command": "true", "manifest": {"tool_scopes": {}, "env": {
        "KEY": {"kind": "secret"}, "TEAM": {"kind": "value", "required": false},
        "MAX": {"kind": "value", "type": "number", "required": false}}}}"#;
    place.pipe(&["servers", "apply", "-f", "-"], server).succeeded();
    place.pipe(&["agents", "apply", "-f", "-"], r#"{"name": "planner"}"#).succeeded();
    let list = || place.run(["agents", "attachments", "planner"]).succeeded().stdout;
    assert!(list().contains("no server"), "{}", list());

    let attach = ["agents", "attach", "planner", "linear", "KEY=${LINEAR}", "TEAM=7", "MAX=3"];
    place.run(attach).failed(1, &["env.KEY", "narthex secrets set LINEAR"]);
    place.pipe(&["secrets", "set", "LINEAR"], "canary-1b").succeeded();
    let told = place.run(attach).succeeded().stdout;
    assert_eq!(told, "the agent planner has the server linear as linear\n");
    let rows = list();
    let line: Vec<&str> = rows.lines().nth(1).unwrap().split_whitespace().collect();
    assert_eq!(line, ["linear", "linear", "KEY=${LINEAR}", "MAX=3", "TEAM=7"], "{rows}");
    let words = ["--alias", "work", "--optional", "--json"];
    let second = data(place.run([&attach[..5], &words].concat()));
    assert_eq!((&second["alias"], &second["optional"]), (&json!("work"), &json!(true)));

    place.run(["agents", "detach", "planner", "linear"]).succeeded();
    place.run(["agents", "detach", "planner", "linear"]).failed(1, &["not_found", "linear"]);
    let quiet = place.run(["agents", "attachments", "planner", "--quiet"]).succeeded();
    assert_eq!(quiet.stdout, "work\n");
    place.run(["agents", "attach", "planner", "linear", "KEY"]).failed(2, &["key=value"]);
    place.run(["agents", "attach", "planner", "linear", "K=a", "K=b"]).failed(2, &["twice"]);
    place.run(["agents", "attach", "planner", "absent", "K=a"]).failed(1, &["`name`", "absent"]);
}

/// D9, X-M41: a refusal reports every place, and to programs field by field.
#[test]
fn d9_refusals_name_every_place() {
    let place = Place::with(&json!({}));
    let _daemon = place.up();
    let agent =
        r#"{"name": "reader", "capabilities": ["absent"], "mcpServers": {"a": {"ref": "b"}}}"#;
    let words = ["agents", "apply", "-f", "-"];
    place.pipe(&words, agent).failed(1, &["invalid", "capabilities[0]", "mcpServers.a.ref"]);
    let refused = place.pipe(&[&words[..], &["--json"]].concat(), agent);
    let errors = refused.json()["error"]["details"]["errors"].take();
    assert_eq!(errors.as_array().map(Vec::len), Some(2), "{errors}");
    let table =
        [("{", "standard input"), ("{}", "`name`"), ("[]", "an object"), ("3", "an object")];
    for (text, told) in table {
        place.pipe(&words, text).failed(1, &["invalid", told]);
    }
    place.run(["agents", "apply", "--file", "absent.json"]).failed(1, &["absent.json"]);
    place.run(["agents", "list", "--workspace", "other"]).failed(1, &["not_found", "workspace"]);
    assert_eq!(place.run(["agents", "list", "--quiet"]).succeeded().stdout, "");
}

/// Without a daemon every command names the remedy.
#[test]
fn without_a_daemon_each_catalog_command_names_the_remedy() {
    let place = Place::with(&json!({}));
    place.write("a.json", r#"{"id": "a", "name": "a"}"#);
    for group in ["servers", "capabilities", "agents"] {
        for words in [&["list"][..], &["get", "a"], &["delete", "a"], &["apply", "-f", "a.json"]] {
            let done = place.run([&[group], words].concat());
            done.failed(1, &["no daemon runs", "narthex up"]);
        }
    }
}
