//! The worked examples of configuration by scope, and the attached issue tracker, end to end: with
//! servers that repeat their configuration, over headers and over their environment.

use std::{collections::BTreeMap, net::SocketAddr, sync::Arc};

use fs_err as fs;
use hyper::StatusCode;
use narthex_control::Variables;
use narthex_testkit::fixture::{Options, Running};
use serde_json::{Value, json};
use tokio::{sync::Barrier, task::JoinSet};

use super::HOME;
use crate::{
    runs::{Operator, RUNS},
    support::fixture,
    world::{ADMIN, Client, World, call, modern},
};

/// The way in which a server gets its configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Over {
    Http,
    Stdio,
}

impl Over {
    const BOTH: [Self; 2] = [Self::Http, Self::Stdio];

    /// A server of the catalog, reached this way.
    pub(super) fn entry(self, entry: &Value, server: &Running) -> Value {
        let mut entry = entry.clone();
        match self {
            Self::Http => entry["url"] = json!(server.url),
            Self::Stdio => {
                entry["type"] = json!("stdio");
                entry["command"] = json!(fixture());
                entry["args"] = json!(["--stdio"]);
            }
        }
        entry
    }

    /// The name under which a key of the configuration travels (D8).
    fn name(self, key: &str) -> String {
        match self {
            Self::Http => format!("x-{}", key.replace('_', "-")),
            Self::Stdio => key.to_owned(),
        }
    }

    /// The whole configuration that the server behind an endpoint got for one call.
    async fn told(self, client: &mut Client, prefix: &str) -> BTreeMap<String, String> {
        let tool = match self {
            Self::Http => "seen_headers",
            Self::Stdio => "environment",
        };
        let asked = call(&format!("{prefix}{tool}"), json!({}));
        let reply = client.modern(&modern(1, "tools/call", asked)).await;
        assert_eq!(reply.status, StatusCode::OK, "{reply:?}");
        let answer = reply.json();
        let text = answer["result"]["content"][0]["text"].as_str();
        let text = text.unwrap_or_else(|| panic!("{answer}"));
        match self {
            Self::Http => {
                let pairs: Vec<(String, String)> = serde_json::from_str(text).unwrap();
                pairs.into_iter().collect()
            }
            Self::Stdio => serde_json::from_str(text).unwrap(),
        }
    }

    /// Checks the values that a server of a run gets under these keys; `None`: no value.
    async fn tells(self, world: &World, begun: &Value, alias: &str, keys: &[(&str, Option<&str>)]) {
        let token = begun["token"].as_str().unwrap();
        let told = self.told(&mut world.client_as(&format!("/mcp/{alias}"), token), "").await;
        assert!(!told.is_empty(), "it says what it was told");
        for (key, value) in keys {
            let said = told.get(&self.name(key)).map(String::as_str);
            assert_eq!(said, *value, "{self:?} {key}");
        }
    }
}

/// A server that answers each call with the headers that it came with.
pub(super) async fn telling() -> Running {
    Running::http(Options { records_headers: true, ..Options::default() }).await.unwrap()
}

fn context_store() -> Value {
    json!({
        "id": "context-store",
        "config_schema": {
            "context_id": { "type": "string", "required": true,
                            "description": "Context for document isolation" },
            "workflow_id": { "type": "string", "required": false,
                             "description": "Workflow correlation ID" },
        },
        "default_config": { "context_id": "default" },
    })
}

async fn has_research(operator: &Operator<'_>, over: Over, server: &Running) {
    operator.put("mcp-servers/context-store", &over.entry(&context_store(), server)).await;
    let capability = json!({ "name": "research-capability", "mcpServers": { "docs": {
        "ref": "context-store", "config": { "context_id": "${scope.context_id}" } } } });
    operator.put("capabilities/research-capability", &capability).await;
}

/// The first example; O7, O16, O24, O25: a capability takes the place of the default with the value
/// of the scope, and a default never replaces a value that the scope does not have (O59).
#[tokio::test(flavor = "multi_thread")]
async fn o25_example_1_a_store_gets_the_scope_of_its_run() {
    for over in Over::BOTH {
        let (world, server) = (World::operated(&json!({})).await, telling().await);
        let operator = Operator(&world);
        has_research(&operator, over, &server).await;
        let agent = json!({ "name": "sprint-researcher", "capabilities": ["research-capability"],
            "params_schema": { "topic": { "type": "string", "required": true } } });
        operator.put("agents/sprint-researcher", &agent).await;
        let mut request = json!({ "agent_name": "sprint-researcher",
            "params": { "topic": "API design" }, "scope": { "context_id": "sprint-42" } });
        let begun = operator.begin(&request).await;
        let keys = [("context_id", Some("sprint-42")), ("workflow_id", None)];
        over.tells(&world, &begun, "docs", &keys).await;
        request["scope"] = json!({});
        let bad = StatusCode::BAD_REQUEST;
        let problem = operator.refused(&request.to_string(), bad, "invalid").await;
        let text = problem["error"].as_str().unwrap();
        assert!(text.contains("scope.context_id") && text.contains("context_id"), "{problem}");
        assert_eq!(problem["missing_fields"], json!(["context_id"]));
    }
}

/// O25: the second example; O15, O68, D22: the key comes from a variable of the daemon, only the
/// server has it, and the key is made unreadable in the server's answers.
#[tokio::test(flavor = "multi_thread")]
async fn o15_example_2_a_key_comes_from_the_daemons_variables() {
    const KEY: &str = "sk-canary-actual-key";
    for over in Over::BOTH {
        let server = telling().await;
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("mcp.json"), r#"{"servers":{}}"#).unwrap();
        let look_up = |name: &str| (name == "ATLASSIAN_API_KEY").then(|| KEY.to_owned());
        let allowed = ["ATLASSIAN_API_KEY".to_owned()];
        let variables = Variables::new(&allowed, Arc::new(look_up)).unwrap();
        let world = World::operated_with(dir, variables).await;
        let operator = Operator(&world);
        let atlassian = json!({ "id": "atlassian", "config_schema": {
            "api_key": { "type": "string", "required": true, "sensitive": true,
                         "description": "Atlassian API key" },
            "jira_projects": { "type": "string", "required": false,
                               "description": "Comma-separated project keys" } } });
        let mut entry = over.entry(&atlassian, &server);
        if over == Over::Stdio {
            let (file, program) = (world.path("key"), fixture());
            let script = "printf %s \"$api_key\" > \"$1\"; exec \"$2\" --stdio";
            entry["command"] = json!("sh");
            entry["args"] = json!(["-c", script, "sh", file, program]);
        }
        operator.put("mcp-servers/atlassian", &entry).await;
        let capability = json!({ "name": "jira-access", "mcpServers": { "jira": {
            "ref": "atlassian", "config": {
                "api_key": "${env.ATLASSIAN_API_KEY}",
                "jira_projects": "${scope.allowed_projects}" } } } });
        operator.put("capabilities/jira-access", &capability).await;
        let agent = json!({ "name": "project-assistant", "capabilities": ["jira-access"],
            "params_schema": { "task": { "type": "string", "required": true } } });
        operator.put("agents/project-assistant", &agent).await;
        let begun = operator
            .begin(&json!({ "agent_name": "project-assistant",
                "params": { "task": "List open bugs" },
                "scope": { "allowed_projects": "ALPHA,BETA" } }))
            .await;
        let keys = [("api_key", Some("[redacted]")), ("jira_projects", Some("ALPHA,BETA"))];
        over.tells(&world, &begun, "jira", &keys).await;
        let had = match over {
            Over::Http => server.fixture.seen_headers()["x-api-key"].to_str().unwrap().to_owned(),
            Over::Stdio => fs::read_to_string(world.path("key")).unwrap(),
        };
        assert_eq!(had, KEY);
        assert!(!begun.to_string().contains(KEY), "{begun}");
    }
}

/// The third example; O14, O22, O28, O70: the server with the URL that only the daemon knows is the
/// built-in one, which needs the run's id alone. The child has the scope of its parent, and no
/// caller passes it.
#[tokio::test(flavor = "multi_thread")]
async fn o28_example_3_an_orchestrator_is_built_in_and_a_child_inherits() {
    for over in Over::BOTH {
        let (world, server) = (World::operated(&json!({})).await, telling().await);
        let operator = Operator(&world);
        has_research(&operator, over, &server).await;
        let orchestrator = json!({ "id": "orchestrator", "url": "${runner.orchestrator_mcp_url}",
            "config_schema": { "run_id": { "type": "string", "required": true, "internal": true,
                                           "description": "Current run ID" } } });
        operator.put("mcp-servers/orchestrator", &orchestrator).await;
        let capability = json!({ "name": "orchestration", "mcpServers": { "orchestrator": {
            "ref": "orchestrator", "config": { "run_id": "${runtime.run_id}" } } } });
        operator.put("capabilities/orchestration", &capability).await;
        let mut lead = json!({ "name": "lead-researcher",
            "capabilities": ["orchestration", "research-capability"],
            "spawnable_agents": ["detail-researcher"],
            "params_schema": { "research_topic": { "type": "string", "required": true } } });
        operator.put("agents/lead-researcher", &lead).await;
        let detail = json!({ "name": "detail-researcher",
            "capabilities": ["orchestration", "research-capability"] });
        operator.put("agents/detail-researcher", &detail).await;
        let mut request = json!({ "agent_name": "lead-researcher", "direct": true,
            "params": { "research_topic": "Authentication patterns" },
            "scope": { "context_id": "project-123", "workflow_id": "wf-789" } });
        let parent = operator.begin(&request).await;
        let url = format!("http://{}/mcp/orchestrator", world.address);
        let config = json!({ "run_id": parent["run_id"] });
        let resolved = &parent["resolved_mcp_servers"];
        let expected = json!({ "type": "http", "url": url, "config": config });
        assert_eq!(resolved["orchestrator"], expected);
        assert!(resolved["docs"]["config"].get("run_id").is_none(), "{resolved}");
        let child = child_of(&world, &parent, "detail-researcher").await;
        assert_eq!(child["parent_run_id"], parent["run_id"]);
        for begun in [&parent, &child] {
            over.tells(&world, begun, "docs", &[("context_id", Some("project-123"))]).await;
            assert_eq!(begun["endpoints"]["servers"].as_object().unwrap().len(), 3, "{begun}");
            let token = begun["token"].as_str().unwrap();
            for (alias, tool) in [("orchestrator", "start_agent"), ("narthex", "end_session")] {
                super::built_in::is_there(&world, alias, token, Some(tool)).await;
            }
        }

        // O70: other values of the daemon alone are refused by their names, and leave nothing.
        let mut unknown = orchestrator.clone();
        unknown["config_schema"]["folder"] = json!({ "required": true });
        unknown["default_config"] = json!({ "folder": "${runner.scripts_dir}" });
        operator.put("mcp-servers/orchestrator", &unknown).await;
        request["direct"] = json!(false);
        let bad = StatusCode::BAD_REQUEST;
        let problem = operator.refused(&request.to_string(), bad, "invalid").await;
        assert_eq!(problem["server_name"], "orchestrator", "{problem}");
        let text = problem["error"].as_str().unwrap();
        assert!(text.contains("runner.scripts_dir"), "{problem}");
        lead["capabilities"] = json!(["research-capability"]);
        operator.put("agents/lead-researcher", &lead).await;
        let token = operator.begin(&request).await["token"].as_str().unwrap().to_owned();
        let mut client = world.client_as("/mcp/orchestrator", &token);
        let reply = client.modern(&modern(1, "tools/list", json!({}))).await;
        assert_eq!(reply.status, StatusCode::NOT_FOUND, "{reply:?}");
    }
}

async fn child_of(world: &World, parent: &Value, agent: &str) -> Value {
    let client = world.client_as(RUNS, parent["token"].as_str().unwrap());
    let reply = client.whole("POST", &[], json!({ "agent_name": agent }).to_string()).await;
    assert_eq!(reply.status, StatusCode::CREATED, "{reply:?}");
    reply.json()
}

/// O17: the fourth example; O26, O27: agents that share a server, each with its own part of it or
/// none.
#[tokio::test(flavor = "multi_thread")]
async fn o26_example_4_agents_share_a_server() {
    for over in Over::BOTH {
        let (world, server) = (World::operated(&json!({})).await, telling().await);
        let operator = Operator(&world);
        let neo4j = json!({ "id": "neo4j",
            "config_schema": { "partition": { "type": "string", "required": false } } });
        operator.put("mcp-servers/neo4j", &over.entry(&neo4j, &server)).await;
        let team = json!({ "partition": "${scope.team_partition}" });
        let cases = [
            ("team-alpha-analyst", team.clone(), json!({ "team_partition": "team-alpha" })),
            ("team-beta-analyst", team, json!({ "team_partition": "team-beta" })),
            ("global-analyst", json!({}), json!({})),
        ];
        let mut begun = Vec::new();
        for (name, config, scope) in cases {
            let reference = json!({ "kg": { "ref": "neo4j", "config": config } });
            let agent = json!({ "name": name, "mcpServers": reference });
            operator.put(&format!("agents/{name}"), &agent).await;
            let run = operator.begin(&json!({ "agent_name": name, "scope": scope })).await;
            begun.push((run, scope["team_partition"].as_str().map(str::to_owned)));
        }
        for (run, partition) in begun.iter().chain(begun.iter().rev()) {
            assert_eq!((&run["omitted"], &run["warnings"]), (&json!([]), &json!([])), "{run}");
            over.tells(&world, run, "kg", &[("partition", partition.as_deref())]).await;
        }
        // A misspelt key leaves the partition out; answer and audit say so.
        let scope = json!({ "team_partitoin": "team-alpha" });
        let asked = json!({ "agent_name": "team-alpha-analyst", "scope": scope });
        let run = operator.begin(&asked).await;
        let omitted = json!([{ "server_name": "kg", "key": "partition",
                               "missing": ["scope.team_partition"] }]);
        assert_eq!(run["omitted"], omitted, "{run}");
        let warned = run["warnings"].to_string();
        assert!(warned.contains("did you mean `team_partition`?"), "{warned}");
        assert!(warned.contains("`kg` starts without its key `partition`"), "{warned}");
        let id = run["run_id"].as_str().unwrap();
        let path = format!("{HOME}/audit?kind=session.run.created&run={id}");
        let recorded = operator.get(&path).await;
        assert_eq!(recorded["items"][0]["details"]["omitted"], omitted, "{recorded}");
        assert!(!recorded.to_string().contains("team-alpha\""), "{recorded}");
        // A parent gives its children their values; an empty text narrows nothing.
        let lead = json!({ "name": "lead", "spawnable_agents": ["team-alpha-analyst"] });
        operator.put("agents/lead", &lead).await;
        for (partition, is_warned) in [("team-alpha", false), ("", true)] {
            let scope = json!({ "team_partition": partition });
            let run = operator.begin(&json!({ "agent_name": "lead", "scope": scope })).await;
            let warned = run["warnings"].to_string();
            assert_eq!(warned.contains("`team_partition` is an empty text"), is_warned, "{run}");
            assert_eq!(warned.contains("team_partition"), is_warned, "{run}");
        }
        // If the server accepts no other keys, a run with such a key does not begin.
        let closed = json!({ "id": "neo4j", "config_schema": { "partition": {} },
            "scope_schema": { "additionalProperties": false } });
        operator.put("mcp-servers/neo4j", &over.entry(&closed, &server)).await;
        let reply = operator.ask("POST", RUNS, &asked.to_string()).await;
        assert_eq!(reply.status, StatusCode::BAD_REQUEST, "{reply:?}");
        let problem: Value = serde_json::from_slice(&reply.body).unwrap();
        assert_eq!(problem["errors"][0]["path"], "run.scope.team_partitoin", "{reply:?}");
    }
}

/// Number of times that each run asks for its server's configuration.
const CALLS: usize = 6;

/// O22, O26, D12, O91: many runs at once, two of each scope, with children: each call gets its own
/// scope and no other, at both kinds of endpoint.
#[tokio::test(flavor = "multi_thread")]
async fn o26_scopes_of_many_runs_at_once_never_cross() {
    for (over, runs) in [(Over::Http, 24), (Over::Stdio, 4)] {
        let (world, server) = (World::operated(&json!({})).await, telling().await);
        let operator = Operator(&world);
        has_research(&operator, over, &server).await;
        let agent = json!({ "name": "reader", "capabilities": ["research-capability"],
            "spawnable_agents": ["reader"] });
        operator.put("agents/reader", &agent).await;
        let (address, barrier) = (world.address, Arc::new(Barrier::new(runs)));
        let mut all = JoinSet::new();
        for number in 0..runs {
            let barrier = barrier.clone();
            all.spawn(async move {
                let scope = format!("scope-{}", number / 2);
                let mut clients = with_child(address, &scope).await;
                barrier.wait().await;
                hear_only(over, &mut clients, &scope).await;
            });
        }
        while let Some(done) = all.join_next().await {
            done.unwrap();
        }
    }
}

/// Begins a run with this scope, and a child of it: clients of both, at both kinds of endpoint,
/// with the prefix of the names of tools there.
async fn with_child(address: SocketAddr, scope: &str) -> Vec<(Client, &'static str)> {
    let begin = async |token: &str, request: Value| {
        let reply = Client::new(address, RUNS, token).whole("POST", &[], request.to_string()).await;
        assert_eq!(reply.status, StatusCode::CREATED, "{reply:?}");
        reply.json()["token"].as_str().unwrap().to_owned()
    };
    let request = json!({ "agent_name": "reader", "scope": { "context_id": scope } });
    let parent = begin(ADMIN, request).await;
    let child = begin(&parent, json!({ "agent_name": "reader" })).await;
    let clients = |token: &String| {
        let alone = (Client::new(address, "/mcp/docs", token), "");
        [alone, (Client::new(address, "/mcp", token), "mcp__docs__")]
    };
    [parent, child].iter().flat_map(clients).collect()
}

/// Checks that the server gets this scope and no other for each of these clients, each time.
async fn hear_only(over: Over, clients: &mut [(Client, &'static str)], scope: &str) {
    let count = clients.len();
    for one in (0..CALLS * count).map(|number| number % count) {
        let (client, prefix) = &mut clients[one];
        let told = over.told(client, prefix).await;
        assert_eq!(told.get(&over.name("context_id")).map(String::as_str), Some(scope), "{over:?}");
        let scopes = told.values().filter(|text| text.starts_with("scope-"));
        assert_eq!(scopes.count(), 1, "{told:?}");
    }
}

/// X-M15, X-M17, X-M36, X-M48, X-M4: an issue tracker with a manifest, attached to an agent by the
/// form: the program has the key, and neither the agent nor any answer does.
#[tokio::test(flavor = "multi_thread")]
async fn x_m36_the_issue_tracker_gets_its_key_and_the_agent_does_not() {
    const KEY: &str = "lin_canary_key";
    let world = World::operated(&json!({})).await;
    let operator = Operator(&world);
    let script = "printf '%s %s' \"$LINEAR_API_KEY\" \"$LINEAR_WORKSPACE_ID\" > \"$1\"; \
                  exec \"$2\" --stdio";
    let linear = json!({ "name": "linear", "command": "sh",
        "args": ["-c", script, "sh", world.path("told"), fixture()],
        "manifest": {
            "env": { "LINEAR_API_KEY": { "kind": "secret", "label": "API key", "required": true },
                     "LINEAR_WORKSPACE_ID": { "kind": "value", "label": "Workspace ID" } },
            "tool_scopes": { "create_issue": "linear.write", "search_issues": "linear.read" } } });
    operator.put("mcp-servers/linear", &linear).await;
    operator.put("secrets/LINEAR_API_KEY", &json!({ "value": KEY })).await;
    operator.put("agents/helper", &json!({ "name": "helper" })).await;
    let attached = |key: &str| {
        json!({ "name": "linear",
            "env": { "LINEAR_API_KEY": key, "LINEAR_WORKSPACE_ID": "x1-org" } })
    };
    let path = format!("{HOME}/agents/helper/mcp-attachments");
    for key in ["prefix-${LINEAR_API_KEY}-suffix", "a literal"] {
        let reply = operator.ask("PUT", &path, &attached(key).to_string()).await;
        assert_eq!(reply.status, StatusCode::UNPROCESSABLE_ENTITY, "{reply:?}");
    }
    operator.put("agents/helper/mcp-attachments", &attached("${LINEAR_API_KEY}")).await;
    let begun = operator.begin(&json!({ "agent_name": "helper" })).await;
    assert_eq!(fs::read_to_string(world.path("told")).unwrap(), format!("{KEY} x1-org"));
    let keys = [("LINEAR_API_KEY", Some("[redacted]")), ("LINEAR_WORKSPACE_ID", Some("x1-org"))];
    Over::Stdio.tells(&world, &begun, "linear", &keys).await;
    let id = begun["run_id"].as_str().unwrap();
    let shown = [
        begun.clone(),
        operator.get(&format!("{RUNS}/{id}")).await,
        operator.get(&format!("{HOME}/agents/helper?view=merged")).await,
        operator.get(&format!("{HOME}/secrets")).await,
    ];
    assert!(shown.iter().all(|one| !one.to_string().contains(KEY)), "{shown:?}");
}
