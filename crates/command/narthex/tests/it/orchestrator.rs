//! The built-in server under an alias of an agent, at the command line with a run's token.

use serde_json::json;

use crate::support::Place;

/// O28: a run that has the built-in server under an alias lists its tools there, and under its own
/// name, and calls them.
#[test]
fn o28_tools_of_an_orchestrators_alias_are_listed() {
    let place = Place::with(&json!({}));
    let _daemon = place.up();
    let server = json!({ "id": "orchestrator", "url": "${runner.orchestrator_mcp_url}" });
    place.feed(&["servers", "apply", "--file", "-"], &[server]).succeeded();
    let agent = json!({ "name": "lead", "agent_type": "orchestrator", "builtin": "core",
        "mcpServers": { "orch": { "ref": "orchestrator" } } });
    place.feed(&["agents", "apply", "--file", "-"], &[agent]).succeeded();
    let begun = place.run(["runs", "create", "--agent", "lead", "--json"]).succeeded().json();
    let token = begun["data"]["token"].as_str().or(begun["token"].as_str()).unwrap();
    place.write("run.tok", token);
    place.set_mode("run.tok", 0o600);
    let tools = |more: &[&str]| {
        let words = [&["tools"], more, &["--token-file", "run.tok"]].concat();
        place.run(words).succeeded().stdout
    };
    let all = tools(&[]);
    assert!(all.contains("orch") && all.contains("narthex"), "{all}");
    let own = tools(&["narthex"]);
    assert!(own.contains("request_grant") && own.contains("read_messages"), "{own}");
    let listed = tools(&["orch"]);
    for tool in ["start_agent", "spawn_session", "read_child_output"] {
        assert!(listed.contains(tool) && all.contains(tool), "{tool}: {listed}{all}");
    }
    let call = |alias: &str, tool: &str| {
        place.run([
            "call",
            alias,
            tool,
            "child_agent_id=nope",
            "prompt=x",
            "--token-file",
            "run.tok",
        ])
    };
    call("orch", "spawn_session").failed(1, &["nope"]);
    let unknown = place.run(["tools", "orhc", "--token-file", "run.tok"]);
    unknown.failed(1, &["did you mean `orch`?"]);
}
