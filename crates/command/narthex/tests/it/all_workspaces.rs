//! Commands without a workspace show everything that their token may see. Other commands name the
//! workspaces that have an object which they did not find.

use serde_json::json;

use crate::support::{Place, fixture_entry};

/// D36: no command reports a fact about one workspace as a fact about all.
#[test]
fn d36_no_command_reports_one_workspace_as_all_workspaces() {
    let place = Place::new();
    let _daemon = place.up();
    place.run(["workspaces", "create", "team"]).succeeded();
    place.write("run.json", &json!({ "servers": { "own": fixture_entry() } }).to_string());
    let create = ["runs", "create", "run.json", "--workspace", "team", "--json"];
    let made = place.run(create).succeeded().json();
    let pid = made["data"]["pid"].to_string();
    let name = format!("{pid}-own");
    let listed = place.run(["mcp", "list"]).succeeded();
    assert!(listed.stdout.to_lowercase().contains("workspace"), "{listed:?}");
    let row = listed.stdout.lines().find(|line| line.contains(&name));
    assert!(row.is_some_and(|row| row.contains("team")), "{listed:?}");
    let of = |workspace| {
        let listed = place.run(["mcp", "list", "--quiet", "--workspace", workspace]);
        listed.succeeded().stdout
    };
    assert_eq!(of("team"), format!("{name}\n"));
    assert!(!of("default").contains(&name));
    let none = place.run(["mcp", "list", "--workspace", "other"]).succeeded().stdout;
    assert!(none.contains("No active run of workspace other that this token can see"), "{none}");
    let logs = place.run(["mcp", "logs", &name]).succeeded();
    assert!(logs.stderr.contains("of workspace team"), "{logs:?}");
    let reconnect = place.run(["mcp", "reconnect", &name]);
    reconnect.failed(1, &["a server of a run of workspace `team`", "runs end", "--workspace team"]);
    let here = "no run `".to_owned() + &pid + "` is active in workspace `default`";
    let strace = place.run(["strace", &pid]);
    strace.failed(1, &[&here, "workspace team has 1", "--workspace team"]);
    let top = place.run(["top", "--once"]).succeeded();
    assert!(top.stderr.contains("workspace team has 1"), "{top:?}");
    let pending = place.run(["grants", "pending"]).succeeded();
    assert!(pending.stdout.contains("No run of workspace default waits"), "{pending:?}");
    let agent = json!({ "name": "clerk" }).to_string();
    let words = ["agents", "apply", "--file", "-", "--workspace", "team"];
    place.pipe(&words, &agent).succeeded();
    let checks = place.run(["check", "mcp"]);
    assert!(checks.stdout.contains("workspace team: 0 agents have settings"), "{checks:?}");
}

/// O99, X-M57: a server of a run is tried without an effect on the run, by the name of its mount or
/// its own name, and `status` shows its warnings. For a server of the catalog, the failure names
/// the commands that give it to a run.
#[test]
fn o99_servers_of_runs_are_tested_and_their_warnings_shown() {
    let place = Place::new();
    let _daemon = place.up();
    place.run(["workspaces", "create", "team"]).succeeded();
    let mut own = fixture_entry();
    own["tool_scopes"] = json!({ "ecko": "demo.write" });
    place.write("run.json", &json!({ "servers": { "own": own } }).to_string());
    let create = ["runs", "create", "run.json", "--workspace", "team", "--json"];
    let made = place.run(create).succeeded().json();
    let mount = format!("{}-own", made["data"]["pid"]);
    for name in [&*mount, "own"] {
        let tried = place.run(["mcp", "test", name]).succeeded();
        assert!(tried.stdout.contains("[2/4] tools/list ... OK ("), "{tried:?}");
        assert!(tried.stderr.contains(&format!("`{mount}`")), "{tried:?}");
        assert!(tried.stderr.contains("of workspace team"), "{tried:?}");
    }
    let there = ["mcp", "test", "own", "--workspace"];
    place.run([&there[..], &["team"]].concat()).succeeded();
    let told = ["not_found", "no active run of workspace `other` has a server `own`", "mcp list"];
    place.run([&there[..], &["other"]].concat()).failed(1, &told);
    let status = place.run(["status"]).succeeded();
    let row = status.stdout.lines().find(|line| line.contains(&mount)).unwrap();
    assert!(row.contains("ready; warning: `tool_scopes` names `ecko`"), "{status:?}");
    let docs = json!({ "id": "docs", "url": "https://docs.test/mcp" });
    place.write("docs.json", &docs.to_string());
    place.run(["servers", "apply", "-f", "docs.json", "--workspace", "team"]).succeeded();
    let told = ["`docs` is in the catalog of workspace team", "runs create", "--workspace team"];
    place.run(["mcp", "test", "docs"]).failed(1, &told);
}

/// D36: a member of one workspace sees the runs there and their servers, and reads that the
/// daemon's own are left out.
#[test]
fn d36_a_member_sees_only_the_workspace_of_their_token() {
    let place = Place::new();
    let _daemon = place.up();
    for workspace in ["team", "other"] {
        place.run(["workspaces", "create", workspace]).succeeded();
        place.write("run.json", &json!({ "servers": { workspace: fixture_entry() } }).to_string());
        place.run(["runs", "create", "run.json", "--workspace", workspace]).succeeded();
    }
    for role in ["runner", "admin"] {
        let made = ["tokens", "create", role, "--role", role, "--workspace", "team", "--quiet"];
        let token = place.run(made).succeeded().stdout;
        place.write("member.token", &token);
        let words = ["status", "--token-file", "member.token"];
        let status = place.run(words).succeeded();
        assert!(status.stdout.contains("-team ") && status.stdout.contains("run_"), "{status:?}");
        assert!(!status.stdout.contains("other") && !status.stdout.contains("default"));
        assert!(
            status.stderr.contains("Only operators see the daemon's own servers"),
            "{status:?}"
        );
        let json = place.run([&words[..], &["--json"]].concat()).succeeded().json()["data"].take();
        assert_eq!((&json["servers"], &json["workspaces"]), (&json!([]), &json!(["team"])));
        assert_eq!(json["runs"].as_array().unwrap().len(), 1, "{json}");
        let listed = place.run(["mcp", "list", "--token-file", "member.token"]).succeeded();
        assert!(listed.stdout.contains("-team ") && !listed.stdout.contains("other"), "{listed:?}");
        assert!(
            listed.stderr.contains("Only operators see the daemon's own servers"),
            "{listed:?}"
        );
    }
}

/// D36: an agent that is not there is one error at each command, with workspace and nearest name.
#[test]
fn d36_a_missing_agent_is_one_error_with_the_nearest_name() {
    let place = Place::new();
    let _daemon = place.up();
    place.run(["workspaces", "create", "team"]).succeeded();
    place.write("agent.json", &json!({ "name": "reader" }).to_string());
    place.run(["agents", "apply", "--file", "agent.json", "--workspace", "team"]).succeeded();
    let commands: [&[&str]; 3] = [
        &["runs", "create", "--params", "a=1", "--agent"],
        &["runs", "create", "--agent"],
        &["clients", "register", "desk", "--agent"],
    ];
    for (agent, hint) in [("reade", "did you mean `reader`?"), ("nope", "agents list")] {
        for command in commands {
            let words = command.iter().copied().chain([agent, "--workspace", "team"]);
            let told = format!("there is no agent `{agent}` in workspace `team`; ");
            place.run(words).failed(1, &["not_found", &told, hint]);
        }
    }
}
