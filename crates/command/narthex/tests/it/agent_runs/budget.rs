//! Limits of a workspace for the servers of one run (X-E115).

use hyper::StatusCode;
use serde_json::{Value, json};

use super::HOME;
use crate::{
    runs::{Operator, RUNS},
    support::{Place, fixture},
    world::{World, modern},
};

impl Operator<'_> {
    /// Replaces the limits of the workspace.
    async fn limits(&self, limits: &Value) {
        self.put("limits", limits).await;
        assert_eq!(&self.get(&format!("{HOME}/limits")).await, limits);
    }

    /// An agent with two programs, of which the second may be left out.
    async fn has_pair(&self, confinement: &Value) {
        for name in ["one", "two"] {
            let mut entry = json!({ "command": fixture(), "args": ["--stdio"] });
            if !confinement.is_null() {
                entry["confinement"] = confinement.clone();
            }
            self.put(&format!("mcp-servers/{name}"), &entry).await;
        }
        let attached =
            json!({ "one": { "ref": "one" }, "two": { "ref": "two", "optional": true } });
        self.put("agents/pair", &json!({ "mcpServers": attached })).await;
    }

    /// Refuses a request for a run that does not fit, and gives the text; nothing of it is there.
    async fn is_over(&self, request: &str) -> String {
        let problem = self.refused(request, StatusCode::BAD_REQUEST, "invalid").await;
        assert_eq!(problem["code"], "over_budget", "{problem}");
        self.has_none().await;
        problem["error"].as_str().unwrap().to_owned()
    }
}

/// X-E115: a run of an agent that would start more than its workspace allows is refused before
/// anything starts, with everything that is too much. One that fits begins, and stays when the
/// budget shrinks, also over a restart; the next one is refused.
#[tokio::test(flavor = "multi_thread")]
async fn x_e115_a_run_over_its_budget_is_refused() {
    let world = World::operated(&json!({})).await;
    let operator = Operator(&world);
    let request = json!({ "agent_name": "pair" });
    operator.has_pair(&json!({ "limits": { "memoryMb": 1025 } })).await;
    operator.limits(&json!({ "servers_per_run": 1, "memory_mb_per_run": 2049 })).await;
    let said = operator.is_over(&request.to_string()).await;
    for words in ["2 servers, and the limit is 1", "2050 MiB of memory, and the limit is 2049 MiB"]
    {
        assert!(said.contains(words), "{said}");
    }
    operator.has_pair(&Value::Null).await;
    operator.limits(&json!({ "servers_per_run": 2, "memory_mb_per_run": 2049 })).await;
    let said = operator.is_over(&request.to_string()).await;
    assert!(said.contains("the memory of `one`, `two` is not limited"), "{said}");
    assert!(!said.contains("servers_per_run"), "{said}");

    operator.limits(&json!({ "servers_per_run": 2 })).await;
    let begun = operator.begin(&request).await;
    operator.limits(&json!({ "servers_per_run": 1 })).await;
    let asked = operator.ask("POST", RUNS, &request.to_string()).await;
    assert_eq!(asked.status, StatusCode::BAD_REQUEST, "{asked:?}");
    let world = World::operated_in(world.stop().await).await;
    let mut client = world.client_as("/mcp", begun["token"].as_str().unwrap());
    let list = client.modern(&modern(1, "tools/list", json!({}))).await.json();
    let tools = list["result"]["tools"].as_array().unwrap();
    for alias in ["one", "two"] {
        let name = format!("mcp__{alias}__echo");
        assert!(tools.iter().any(|tool| tool["name"] == name.as_str()), "{name}");
    }
    world.app.drain().await;
}

/// X-E115: programs with a limit of memory fit into their sum, and not into less.
#[test]
fn x_e115_memory_limits_of_all_servers_are_summed() {
    let place = Place::with(&json!({}));
    let _daemon = place.up();
    for name in ["one", "two"] {
        let entry = json!({ "id": name, "command": fixture(), "args": ["--stdio"],
            "confinement": { "limits": { "memoryMb": 2048 } } });
        place.write("entry.json", &entry.to_string());
        place.run(["servers", "apply", "-f", "entry.json"]).succeeded();
    }
    let attached = json!({ "one": { "ref": "one" }, "two": { "ref": "two" } });
    place.write("agent.json", &json!({ "name": "pair", "mcpServers": attached }).to_string());
    place.run(["agents", "apply", "-f", "agent.json"]).succeeded();
    let begin = |most: &str| {
        let words = ["limits", "set", "--servers-per-run", "2", "--memory-mb-per-run", most];
        let done = place.run(words).succeeded();
        assert_eq!(done.stdout.trim(), format!("2 servers a run, {most} MiB of memory a run"));
        place.run(["runs", "create", "--agent", "pair"])
    };
    begin("4095").failed(1, &["4096 MiB", "4095 MiB", "memory_mb_per_run"]);
    begin("4096").succeeded();
}

/// X-E115: servers that a run brings count like servers of an agent. Shared servers do not count,
/// and other workspaces have budgets of their own.
#[tokio::test(flavor = "multi_thread")]
async fn x_e115_servers_that_a_run_brings_count_in_the_budget() {
    let world = World::operated(&json!({ "shared": super::plain() })).await;
    let operator = Operator(&world);
    operator.limits(&json!({ "servers_per_run": 1 })).await;
    let two = json!({ "servers": { "a": super::plain(), "b": super::plain() } }).to_string();
    let said = operator.is_over(&two).await;
    assert!(said.contains("2 servers, and the limit is 1"), "{said}");
    let one = json!({ "servers": { "a": super::plain() }, "tools": ["shared"] });
    assert_eq!(operator.begin(&one).await["servers"].as_array().unwrap().len(), 1);
    let made = operator.ask("POST", "/api/workspaces", &json!({ "id": "other" }).to_string()).await;
    assert!(made.status.is_success(), "{made:?}");
    let other = operator.ask("POST", "/api/workspaces/other/runs", &two).await;
    assert_eq!(other.status, StatusCode::CREATED, "{other:?}");
    world.app.drain().await;
}
