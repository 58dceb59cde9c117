//! Tests of the built-in server through the whole door: its tools and their limits.

use std::sync::Arc;

use http::{Method, StatusCode};
use narthex_events::{EventRow, Wanted};
use narthex_gateway::RunView;
use narthex_model::{BuiltInTools, PrincipalId, SessionId, WorkspaceId};
use narthex_policy::{Actors, Authority, RunPolicy};
use narthex_store::Store;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::world::Api;
use crate::world::{Answer, whole};

const RUNS: &str = "/api/workspaces/default/runs";
const GRANTS: &str = "/api/workspaces/default/grants";
const REQUESTS: &str = "/api/workspaces/default/grant-requests";

/// A daemon whose catalog has an agent with a server; the server's tool `echo` requires a scope.
async fn daemon(place: &TempDir) -> Api {
    let store = Store::open(&place.path().join("store.db")).await.unwrap();
    let api = Api::with_all(&json!({}), store, &place.path().join("master.key")).await;
    agent_with_a_gated_tool(&api).await;
    api
}

/// Creates the agent `writer` with a server whose tool `echo` requires a scope.
pub(crate) async fn agent_with_a_gated_tool(api: &Api) {
    let server = json!({ "url": api.fixture_url(), "transport": "http",
                         "tool_scopes": { "echo": "demo.write" } });
    let here = "/api/workspaces/default";
    api.send("PUT", &format!("{here}/mcp-servers/demo"), server.to_string()).await.succeeded();
    let agent = with_tools(json!({ "mcpServers": { "demo": { "ref": "demo" } } }));
    api.send("PUT", &format!("{here}/agents/writer"), agent).await.succeeded();
}

/// An agent's document. Its runs have all built-in tools, unless it sets `builtin`.
pub(crate) fn with_tools(mut agent: Value) -> String {
    let members = agent.as_object_mut().unwrap();
    members.entry("builtin").or_insert_with(|| json!("all"));
    agent.to_string()
}

/// A run of an agent.
pub(crate) struct Run<'a> {
    pub(crate) api: &'a Api,
    pub(crate) token: String,
    pub(super) session: String,
}

impl<'a> Run<'a> {
    pub(crate) async fn begin(api: &'a Api) -> Self {
        Self::of(api, "writer").await
    }

    pub(super) async fn of(api: &'a Api, agent: &str) -> Self {
        let asked = json!({ "type": "start_session", "agent_name": agent });
        let made = api.send("POST", RUNS, asked.to_string()).await.succeeded();
        let text = |name: &str| made[name].as_str().unwrap().to_owned();
        Self { api, token: text("token"), session: text("session_id") }
    }

    /// The process's own run as the program starts it, but with all built-in tools. It has no
    /// session yet.
    pub(crate) fn own(api: &'a Api) -> Self {
        let (here, session) = (WorkspaceId::default(), SessionId::new([7; 6]));
        let actors = Actors {
            user: Some(PrincipalId::local_admin()),
            session: Some(session),
            run: Some(api.local.run_id()),
            ..Actors::default()
        };
        let (grants, rules) = (api.control.grants_of(&here), api.control.rules_of(&here));
        let run = RunView::new(&api.local, RunPolicy::AllAttached);
        let run = run.with_authority(Authority::new(actors, grants, rules));
        let run = run.with_built_in_tools(BuiltInTools::All);
        api.world.gateway.begin_run(&Arc::new(run)).unwrap();
        Self { api, token: api.local.expose().to_owned(), session: session.to_text() }
    }

    pub(super) async fn ask(&self, path: &str, method: &str, params: Value) -> Answer {
        let request = self.api.world.modern(path, method, params);
        request.header("authorization", &format!("Bearer {}", self.token)).send().await
    }

    /// The result of a tool call at the built-in server's own endpoint.
    pub(super) async fn call(&self, name: &str, arguments: Value) -> Value {
        let params = json!({ "name": name, "arguments": arguments });
        self.ask("/mcp/narthex", "tools/call", params).await.json()["result"].clone()
    }

    pub(crate) async fn called(&self, name: &str, arguments: Value) -> Value {
        let result = self.call(name, arguments).await;
        assert_eq!(result["isError"], Value::Null, "{result}");
        result["structuredContent"].clone()
    }

    pub(super) async fn refused(&self, name: &str, arguments: Value) -> Value {
        let result = self.call(name, arguments).await;
        assert_eq!(result["isError"], true, "{result}");
        result["structuredContent"]["error"].clone()
    }

    pub(crate) async fn echo(&self) -> Value {
        let params = json!({ "name": "mcp__demo__echo", "arguments": { "message": "x" } });
        self.ask("/mcp", "tools/call", params).await.json()["result"].clone()
    }

    /// The events of the run's session.
    pub(crate) async fn events(&self) -> Vec<Value> {
        let session = SessionId::parse(&self.session).unwrap();
        let wanted = Wanted { after: 0, limit: 100, kinds: &[] };
        let events = self.api.control.events().unwrap();
        let page = events.read(&WorkspaceId::default(), session, wanted).await.unwrap();
        page.events.iter().map(EventRow::envelope).collect()
    }

    async fn names(&self, path: &str) -> Vec<String> {
        let listed = self.ask(path, "tools/list", json!({})).await.json();
        let tools = listed["result"]["tools"].as_array().unwrap().clone();
        tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    }
}

/// X-M1, X-M2, X-M6: every run has the core tools, at the built-in server's own endpoint and at the
/// aggregated endpoint.
#[tokio::test]
async fn x_m2_the_core_tools_are_in_every_run() {
    let place = tempfile::tempdir().unwrap();
    let api = daemon(&place).await;
    let run = Run::begin(&api).await;
    let (own, all) = (run.names("/mcp/narthex").await, run.names("/mcp").await);
    let core = [
        "emit_status",
        "emit_artifact",
        "request_input",
        "emit_error",
        "share",
        "request_permission",
        "request_grant",
        "end_session",
    ];
    for name in core {
        assert!(own.iter().any(|one| one == name), "{name}: {own:?}");
    }
    for name in &own {
        assert!(all.contains(&format!("mcp__narthex__{name}")), "{name}: {all:?}");
    }
    assert!(all.contains(&"mcp__demo__echo".to_owned()));
    let params = json!({ "name": "mcp__narthex__emit_status", "arguments": {"status": "done"} });
    let answer = run.ask("/mcp", "tools/call", params).await.json();
    assert_eq!(answer["result"]["structuredContent"], json!({"ok": true, "recorded": true}));
}

/// D29: a run has few tools by default. Its agent, or else its request, can select others. A tool
/// that the run lacks is answered like one that does not exist.
#[tokio::test]
async fn d29_builtin_sets_the_built_in_tools_of_a_run() {
    let place = tempfile::tempdir().unwrap();
    let api = daemon(&place).await;
    let here = "/api/workspaces/default";
    let usual = ["request_input", "read_messages", "request_grant", "end_session"];
    let share = ["share"];
    for (of_agent, of_run, names) in [
        (Value::Null, Value::Null, &usual[..]),
        (json!("none"), Value::Null, &[]),
        (json!("none"), json!(["share"]), &share[..]),
        (json!(["share"]), Value::Null, &share[..]),
        (json!("all"), json!("ask"), &usual[..3]),
    ] {
        let agent = json!({ "builtin": of_agent, "mcpServers": { "demo": { "ref": "demo" } } });
        api.send("PUT", &format!("{here}/agents/few"), agent.to_string()).await.succeeded();
        let asked = json!({ "agent_name": "few", "builtin": of_run }).to_string();
        let made = api.send("POST", RUNS, asked).await.succeeded();
        let text = |name: &str| made[name].as_str().unwrap().to_owned();
        let run = Run { api: &api, token: text("token"), session: text("session_id") };
        let mut own = run.names("/mcp/narthex").await;
        own.sort();
        let mut expected = names.to_vec();
        expected.sort_unstable();
        assert_eq!(own, expected);
        let mut all = run.names("/mcp").await;
        all.retain(|name| name.starts_with("mcp__narthex__"));
        all.sort();
        let expected: Vec<_> = own.iter().map(|name| format!("mcp__narthex__{name}")).collect();
        assert_eq!(all, expected);
        let absent = run.refused("emit_status", json!({ "status": "done" })).await;
        assert_eq!(absent["kind"], "tool_not_found", "{absent}");
        let params = json!({ "name": "mcp__narthex__emit_status", "arguments": {} });
        let absent = run.ask("/mcp", "tools/call", params).await.json();
        assert_eq!(absent["result"]["isError"], true, "{absent}");
        let told = run.ask("/mcp", "server/discover", json!({})).await.text().to_owned();
        assert!(!told.contains("emit_status"), "{told}");
    }
    for wrong in [json!("cor"), json!(["emit_statu"]), json!(1)] {
        let asked = json!({ "agent_name": "writer", "builtin": wrong }).to_string();
        let refused = api.send("POST", RUNS, asked).await;
        assert!(refused.status.is_client_error() && refused.text().contains("builtin"));
    }
}

/// D29: attached under another alias, the built-in server has the tools of orchestrators, also at
/// the aggregated endpoint. `start_agent` starts an agent as `spawn_session` does.
#[tokio::test]
async fn d29_the_orchestrator_server_under_an_alias_has_the_tools_of_orchestrators() {
    let place = tempfile::tempdir().unwrap();
    let api = daemon(&place).await;
    let here = "/api/workspaces/default";
    let server = json!({ "url": "${runner.orchestrator_mcp_url}" }).to_string();
    api.send("PUT", &format!("{here}/mcp-servers/crew"), server).await.succeeded();
    let agent =
        json!({ "spawnable_agents": ["writer"], "mcpServers": { "crew": { "ref": "crew" } } });
    api.send("PUT", &format!("{here}/agents/lead"), agent.to_string()).await.succeeded();
    let run = Run::of(&api, "lead").await;
    let (own, all) = (run.names("/mcp/crew").await, run.names("/mcp").await);
    assert!(own.contains(&"start_agent".to_owned()) && !own.contains(&"end_session".to_owned()));
    for name in &own {
        assert!(all.contains(&format!("mcp__crew__{name}")), "{name}: {all:?}");
    }
    assert!(!all.contains(&"mcp__narthex__spawn_session".to_owned()), "{all:?}");
    for (path, name, member) in [
        ("/mcp", "mcp__crew__start_agent", "agent_name"),
        ("/mcp/crew", "start_agent", "agent_name"),
        ("/mcp", "mcp__crew__spawn_session", "child_agent_id"),
    ] {
        let params = json!({ "name": name, "arguments": { member: "writer" } });
        let answer = run.ask(path, "tools/call", params).await.json();
        assert_eq!(
            answer["result"]["structuredContent"]["session"]["agent_id"], "writer",
            "{answer}"
        );
    }
    let kept = api.get("/api/workspaces/default/audit?kind=session.mcp.tool_called").await;
    assert_eq!(kept["items"].as_array().unwrap().len(), 3, "{kept}");
    let text = kept.to_string();
    assert!(text.contains("spawn_session") && !text.contains("start_agent"), "{text}");
}

/// D13, D14: rules and grants name `spawn_session`. A rule or grant that names `start_agent` is
/// answered with the right name when it is saved. A check of `start_agent` answers for the call as
/// rules see it.
#[tokio::test]
async fn d13_rules_and_grants_accept_spawn_session_and_refuse_start_agent() {
    let place = tempfile::tempdir().unwrap();
    let api = daemon(&place).await;
    let policy = "/api/workspaces/default/policy";
    let of =
        |tool: &str| format!("forbid(principal, action, resource == Tool::\"narthex/{tool}\");");
    let dead = json!({ "rules": of("start_agent") }).to_string();
    let refused = api.send("PUT", policy, dead).await;
    refused.problem(StatusCode::UNPROCESSABLE_ENTITY, "invalid");
    assert!(refused.text().contains("narthex/spawn_session"), "{}", refused.text());

    let rules = "forbid(principal, action, resource == Tool::\"narthex/spawn_session\") when \
                 { context.arguments has child_agent_id && \
                 context.arguments.child_agent_id == \"writer\" };";
    for (agent, decision) in [("writer", "forbidden"), ("other", "allowed")] {
        let asked = json!({ "server": "narthex", "tool": "start_agent", "rules": rules,
                            "arguments": { "agent_name": agent } });
        let said = api.send("POST", &format!("{policy}/check"), asked.to_string()).await;
        let said = said.succeeded();
        assert_eq!(said["decision"], decision, "{said}");
        let warning = said["warnings"][0].as_str().unwrap();
        assert!(warning.contains("another name of `spawn_session`"), "{warning}");
    }
    let grant = json!({ "grant_type": "tool_scope", "scope": "once", "agent_subject_id": "writer",
        "details": { "scope": "a.b", "server": "narthex", "tool": "start_agent" } });
    let refused = api.send("POST", GRANTS, grant.to_string()).await;
    refused.problem(StatusCode::UNPROCESSABLE_ENTITY, "invalid");
    let fault = &refused.json()["errors"][0];
    assert_eq!(fault["field"], "details.tool", "{fault}");
    assert!(fault["message"].as_str().unwrap().contains("`spawn_session`"), "{fault}");
}

/// X-E100, D16: calls of an unknown tool, or with invalid arguments, give a failed result. All
/// faults of the arguments are reported at once.
#[tokio::test]
async fn x_e100_an_unknown_tool_or_invalid_arguments_are_a_failed_result() {
    let place = tempfile::tempdir().unwrap();
    let api = daemon(&place).await;
    let run = Run::begin(&api).await;
    assert_eq!(run.refused("graph_query", json!({})).await["kind"], "tool_not_found");
    let error = run.refused("emit_artifact", json!({"artifact_type": "song", "more": 1})).await;
    assert_eq!(error["kind"], "invalid_arguments");
    let errors = error["details"]["errors"].as_array().unwrap();
    let told = |text: &str| errors.iter().any(|one| one.to_string().contains(text));
    assert!(told("title") && told("content") && told("artifact_type") && told("more"), "{error}");
    assert!(told("takes one of `code`, `analysis`") && told("a string of 4 characters"), "{error}");
    let error = run.refused("request_permission", json!({"scopes": ["X"], "justification": "y"}));
    assert_eq!(error.await["details"]["errors"][0]["field"], "scopes.0");
}

/// D15, D5: a request for a grant for a tool that the run lacks is refused without asking a human.
/// A tool that is hidden from the run is answered like one that does not exist.
#[tokio::test]
async fn d15_a_request_for_a_tool_that_the_run_does_not_have_is_refused() {
    let place = tempfile::tempdir().unwrap();
    let api = daemon(&place).await;
    let server = json!({ "url": api.fixture_url(), "transport": "http",
                         "tool_scopes": { "echo": "demo.write" },
                         "tools": { "deny": ["add"] } });
    let path = "/api/workspaces/default/mcp-servers/demo";
    api.send("PUT", path, server.to_string()).await.succeeded();
    let run = Run::begin(&api).await;
    let refused = async |details: Value| {
        let mut asked = json!({
            "request_id": "ask-1", "grant_type": "tool_scope", "scope": "session",
            "details": { "scope": "demo.write" }, "justification": "to try it",
        });
        asked["details"].as_object_mut().unwrap().extend(details.as_object().unwrap().clone());
        let error = run.refused("request_grant", asked).await;
        assert_eq!(error["kind"], "invalid_arguments", "{error}");
        let fault = &error["details"]["errors"][0];
        let text = |name: &str| fault[name].as_str().unwrap().to_owned();
        (text("field"), text("message"))
    };
    let (field, message) = refused(json!({ "server": "dem" })).await;
    assert_eq!(field, "details.server");
    assert!(message.contains("did you mean `demo`?"), "{message}");
    let (field, message) = refused(json!({ "server": "demo", "tool": "ecko" })).await;
    assert_eq!(field, "details.tool");
    assert!(message.contains("did you mean `echo`?") && !message.contains("`add`"), "{message}");
    let of = async |tool: &str| {
        let (_, message) = refused(json!({ "server": "demo", "tool": tool })).await;
        message.split_once("; there are").unwrap().0.replace(tool, "TOOL")
    };
    assert_eq!(of("add").await, of("six").await, "what is hidden is as what is not there");
    for tool in ["echo", "test_simple_prompt", "test://static-text"] {
        let asked = json!({
            "request_id": tool, "grant_type": "tool_scope", "scope": "session",
            "details": { "scope": "demo.write", "server": "demo", "tool": tool },
            "justification": "to try it",
        });
        assert_eq!(run.called("request_grant", asked).await["status"], "pending", "{tool}");
    }
}

/// D15, D5: a request for a misspelt scope is refused if a similar scope is required by the run's
/// servers. A scope that only hidden tools require is answered like one that does not exist.
#[tokio::test]
async fn d15_a_request_for_a_misspelt_scope_is_refused() {
    let place = tempfile::tempdir().unwrap();
    let api = daemon(&place).await;
    let server = json!({ "url": api.fixture_url(), "transport": "http",
                         "tool_scopes": { "echo": "demo.write", "add": "hidden.write" },
                         "tools": { "deny": ["add"] } });
    let path = "/api/workspaces/default/mcp-servers/demo";
    api.send("PUT", path, server.to_string()).await.succeeded();
    let run = Run::begin(&api).await;
    let asked = |scope: &str| {
        json!({ "request_id": scope, "grant_type": "tool_scope", "scope": "session",
                "details": { "scope": scope }, "justification": "to try it" })
    };
    let told = "nothing that this run has requires `demo.wirte`; did you mean `demo.write`?";
    let error = run.refused("request_grant", asked("demo.wirte")).await;
    let fault = &error["details"]["errors"][0];
    assert_eq!((&fault["field"], &fault["message"]), (&json!("details.scope"), &json!(told)));
    let several = json!({ "scopes": ["demo.write", "demo.wirte"], "justification": "to try it" });
    let error = run.refused("request_permission", several).await;
    let fault = &error["details"]["errors"][0];
    assert_eq!((&fault["field"], &fault["message"]), (&json!("scopes.1"), &json!(told)));
    for scope in ["hidden.wirte", "quite.other"] {
        assert_eq!(run.called("request_grant", asked(scope)).await["status"], "pending", "{scope}");
    }
    // A model learns nothing about rules: neither the scopes in them nor their words.
    let rules = r#"// demo.wirtes hidden.wirtes
        @approval("demo.wirte") forbid(principal, action, resource == Tool::"demo/echo");"#;
    let rules = json!({ "rules": rules }).to_string();
    api.send("PUT", "/api/workspaces/default/policy", rules).await.succeeded();
    for scope in ["demo.wirte", "demo.wirtes"] {
        let error = run.refused("request_grant", asked(scope)).await;
        let message = &error["details"]["errors"][0]["message"];
        assert_eq!(*message, json!(told.replace("demo.wirte`", &format!("{scope}`"))), "{error}");
    }
    // A request that copies the words of a refusal is accepted, even if only a rule requires the
    // scope.
    let mut refused = asked("demo.wirte");
    refused["details"] = json!({ "scope": "demo.wirte", "server": "demo", "tool": "echo" });
    assert_eq!(run.called("request_grant", refused).await["status"], "pending");
    assert_eq!(run.called("request_grant", asked("hidden.wirtes")).await["status"], "pending");
    let path = "/api/workspaces/default/grant-requests";
    let rows = api.get(path).await["items"].as_array().unwrap().clone();
    let of = |scope: &str| rows.iter().find(|row| row["details"]["scope"] == scope).unwrap();
    let told = "no server and no rule requires `hidden.wirte`; did you mean `hidden.write`?";
    assert_eq!(of("hidden.wirte")["warnings"], json!([told]), "a human may know");
    let told = "no server and no rule requires `hidden.wirtes`; did you mean `hidden.write`?";
    assert_eq!(of("hidden.wirtes")["warnings"], json!([told]), "a comment is no scope");
    assert_eq!(of("demo.wirte")["warnings"], json!([]), "a rule requires it");
    assert_eq!(of("quite.other")["warnings"], json!([]));
}

/// D5: a request may name the built-in tools that its run is offered. A hidden one is answered like
/// one that does not exist.
#[tokio::test]
async fn d15_a_request_for_a_hidden_built_in_tool_is_refused_like_an_absent_tool() {
    let place = tempfile::tempdir().unwrap();
    let api = daemon(&place).await;
    let agent = json!({ "builtin": ["request_grant", "emit_status"] });
    api.send("PUT", "/api/workspaces/default/agents/shy", with_tools(agent)).await.succeeded();
    let run = Run::of(&api, "shy").await;
    let asked = |tool: &str| {
        json!({ "request_id": tool, "grant_type": "tool_scope", "scope": "session",
                "details": { "scope": "a.b", "server": "narthex", "tool": tool },
                "justification": "to try it" })
    };
    for (tool, meant) in [
        ("spawn_session", ""),
        ("spawn_sesion", ""),
        ("emit_artifact", ""),
        ("emit_statu", "; did you mean `emit_status`?"),
    ] {
        let error = run.refused("request_grant", asked(tool)).await;
        let told = format!(
            "there is no tool, prompt or resource `{tool}` at the server `narthex`{meant}; there \
             are `emit_status`, `request_grant`"
        );
        assert_eq!(error["details"]["errors"][0]["message"], json!(told));
    }
    assert_eq!(run.called("request_grant", asked("emit_status")).await["status"], "pending");
}

/// D5, D15: no answer to a request for `start_agent` reveals `spawn_session`. If the run is offered
/// `start_agent`, the stored request is for `spawn_session`, the name that grants use.
#[tokio::test]
async fn d15_answers_for_start_agent_do_not_reveal_spawn_session() {
    let place = tempfile::tempdir().unwrap();
    let api = daemon(&place).await;
    let start = json!({ "request_id": "x", "grant_type": "tool_scope", "scope": "session",
        "details": { "scope": "a.b", "server": "narthex", "tool": "start_agent" },
        "justification": "to try it" });
    for (builtin, is_there) in [
        (json!(["request_grant"]), false),
        (json!(["request_grant", "start_agent"]), true),
        (json!(["request_grant", "list_spawnable_agents"]), false),
    ] {
        let agent = with_tools(json!({ "builtin": builtin, "spawnable_agents": [] }));
        api.send("PUT", "/api/workspaces/default/agents/few", agent).await.succeeded();
        let run = Run::of(&api, "few").await;
        let answer = run.call("request_grant", start.clone()).await;
        assert_eq!(answer["isError"] != true, is_there, "{answer}");
        let listed = run.ask("/mcp/narthex", "tools/list", json!({})).await.text().to_owned();
        let told = run.call("start_agent", json!({ "agent_name": "writer" })).await;
        for text in [answer.to_string(), listed, told.to_string()] {
            assert!(!text.contains("spawn_session"), "{builtin}: {text}");
        }
    }
    let rows = api.get("/api/workspaces/default/grant-requests").await;
    assert_eq!(rows["items"][0]["details"]["tool"], "spawn_session", "{rows}");
    assert_eq!(rows["items"].as_array().unwrap().len(), 1, "{rows}");
}

/// D15: a human sees that the tool in a request requires a scope other than the requested one.
#[tokio::test]
async fn d15_a_request_for_a_wrong_scope_has_a_warning_for_the_human() {
    let place = tempfile::tempdir().unwrap();
    let api = daemon(&place).await;
    let server = json!({ "url": api.fixture_url(), "transport": "http",
                         "tool_scopes": { "echo": "demo.write", "add": ["demo.read"] } });
    let path = "/api/workspaces/default/mcp-servers/demo";
    api.send("PUT", path, server.to_string()).await.succeeded();
    let run = Run::begin(&api).await;
    for (tool, scope) in [("add", "demo.write"), ("echo", "demo.write")] {
        let details = json!({ "scope": scope, "server": "demo", "tool": tool });
        let asked = json!({ "request_id": tool, "grant_type": "tool_scope", "scope": "session",
                            "details": details, "justification": "to try it" });
        assert_eq!(run.called("request_grant", asked).await["status"], "pending", "{tool}");
    }
    let rows = api.get("/api/workspaces/default/grant-requests").await;
    let rows = rows["items"].as_array().unwrap();
    let of = |tool: &str| rows.iter().find(|row| row["details"]["tool"] == tool).unwrap();
    let told =
        "`add` requires `demo.read`, not `demo.write`: this grant would not allow any call of it";
    assert_eq!(of("add")["warnings"], json!([told]));
    assert_eq!(of("echo")["warnings"], json!([]));
}

/// X-E74: a request for a grant has limits, so that its report always fits into one event.
#[tokio::test]
async fn x_e74_details_have_bounds() {
    let place = tempfile::tempdir().unwrap();
    let api = daemon(&place).await;
    let run = Run::begin(&api).await;
    let many = |count: usize| (0..count).map(|one| format!("m{one}")).collect::<Vec<_>>();
    let spawn = |models: Value| json!({ "child_agent_id": "writer", "allowed_models": models });
    let scope = |tool: usize| json!({ "scope": "demo.write", "tool": "x".repeat(tool) });
    for (kind, details, field) in [
        ("spawn", spawn(json!(many(101))), "details.allowed_models"),
        ("spawn", spawn(json!(["m".repeat(201)])), "details.allowed_models"),
        ("spawn", spawn(json!([""])), "details.allowed_models"),
        ("tool_scope", scope(4097), "details.tool"),
    ] {
        let asked = json!({ "request_id": "a", "grant_type": kind, "details": details,
                            "scope": "once", "justification": "to try it" });
        let error = run.refused("request_grant", asked).await;
        assert_eq!(error["details"]["errors"][0]["field"], field, "{error}");
        let grant = json!({ "grant_type": kind, "details": details, "scope": "once",
                            "agent_subject_id": "writer" });
        let refused = api.send("POST", GRANTS, grant.to_string()).await;
        refused.problem(StatusCode::UNPROCESSABLE_ENTITY, "invalid");
        assert_eq!(refused.json()["errors"][0]["code"], "invalid_grant_shape");
    }
    assert_eq!(api.get(REQUESTS).await["items"], json!([]));
    for (kind, details) in [("spawn", spawn(json!(many(100)))), ("tool_scope", scope(4096))] {
        let grant = json!({ "grant_type": kind, "details": details, "scope": "once",
                            "agent_subject_id": "writer" });
        api.send("POST", GRANTS, grant.to_string()).await.succeeded();
    }
}

/// D15, X-E83, X-M55: if no human decides on a request in time, the run that asked receives the
/// outcome once. This holds with several daemons, and after a restart in between.
#[tokio::test]
async fn d15_an_expired_request_is_reported_to_its_run_once() {
    let place = tempfile::tempdir().unwrap();
    let store = Store::open(&place.path().join("store.db")).await.unwrap();
    let keys = place.path().join("master.key");
    let api = Api::with_lifetime(store, &keys, std::time::Duration::ZERO).await;
    agent_with_a_gated_tool(&api).await;
    let run = Run::begin(&api).await;
    let wanted = json!({ "request_id": "ask-1", "grant_type": "tool_scope", "scope": "session",
                         "details": { "scope": "demo.write" }, "justification": "to write" });
    let asked = run.called("request_grant", wanted).await;
    for _ in 0..2 {
        api.control.grant_requests_expire().await.unwrap();
    }
    let told = run.called("read_messages", json!({})).await;
    let messages = told["messages"].as_array().unwrap();
    assert_eq!(messages.len(), 1, "{told}");
    assert_eq!(
        (&messages[0]["request_id"], &messages[0]["status"]),
        (&json!("ask-1"), &json!("expired"))
    );
    assert_eq!(messages[0]["grant_request_id"], asked["grant_request_id"], "{told}");
    let expired = api.get(&format!("{REQUESTS}?status=expired")).await;
    assert_eq!(expired["items"].as_array().unwrap().len(), 1, "{expired}");
}

/// D15, X-M55: a run's request is closed with its session: no human can approve it afterwards.
#[tokio::test]
async fn d15_a_request_ends_with_its_session() {
    let place = tempfile::tempdir().unwrap();
    let api = daemon(&place).await;
    let run = Run::begin(&api).await;
    let wanted = json!({ "request_id": "ask-1", "grant_type": "tool_scope", "scope": "session",
                         "details": { "scope": "demo.write" }, "justification": "to write" });
    let asked = run.called("request_grant", wanted).await;
    let path = format!("/api/workspaces/default/sessions/{}", run.session);
    assert!(api.ask("DELETE", &path).send().await.status.is_success());
    assert_eq!(api.get(REQUESTS).await["items"], json!([]));
    let id = asked["grant_request_id"].as_str().unwrap();
    let decide = format!("{REQUESTS}/{id}/approve");
    for body in ["{}", r#"{"scope": "persistent"}"#] {
        let late = api.send("POST", &decide, body).await;
        late.problem(StatusCode::CONFLICT, "conflict");
        assert_eq!(late.json()["code"], "grant_request_decided");
    }
    assert_eq!(api.get(GRANTS).await["items"], json!([]));
}

/// D15, X-M55: a `request_id` names one request, so that a decision under it is unambiguous.
/// `request_permission` creates all of its requests or none.
#[tokio::test]
async fn d15_a_request_id_belongs_to_one_request() {
    let place = tempfile::tempdir().unwrap();
    let api = daemon(&place).await;
    let run = Run::begin(&api).await;
    let wanted = |id: &str, scope: &str| {
        json!({ "request_id": id, "grant_type": "tool_scope", "scope": "session",
                "details": { "scope": scope }, "justification": "to write" })
    };
    run.called("request_grant", wanted("s", "demo.write")).await;
    let error = run.refused("request_grant", wanted("s", "demo.read")).await;
    assert_eq!(error["details"]["code"], "request_id_conflict", "{error}");
    run.called("request_grant", wanted("s", "demo.write")).await;
    run.called("request_grant", wanted("t", "demo.read")).await;
    // Two requests are open; 97 more follow, and then two at once would be one too many.
    for number in 2..99 {
        let (id, scope) = (format!("n{number}"), format!("demo.n{number}"));
        run.called("request_grant", wanted(&id, &scope)).await;
    }
    let ask = |scopes: Value| json!({ "scopes": scopes, "justification": "to write" });
    let error = run.refused("request_permission", ask(json!(["demo.a", "demo.b"]))).await;
    assert_eq!(error["details"]["code"], "too_many_grant_requests", "{error}");
    let told = run.called("request_permission", ask(json!(["demo.write", "demo.a"]))).await;
    assert_eq!(told["requests"].as_array().unwrap().len(), 2, "{told}");
}

/// X-M55, X-M56, X-E80: a gated call is refused. The run asks for a grant and gets an answer at
/// once, a human decides, and the same call succeeds in the same run.
#[tokio::test]
async fn x_m56_a_requested_grant_allows_the_call_in_the_same_run() {
    let place = tempfile::tempdir().unwrap();
    let api = daemon(&place).await;
    let run = Run::begin(&api).await;
    let refused = run.echo().await;
    let error = &refused["structuredContent"]["error"];
    assert_eq!(error["kind"], "permission_required", "{refused}");
    assert_eq!(error["details"]["scopes"], json!(["demo.write"]));
    let text = refused["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("`mcp__narthex__request_grant`") && text.len() <= 300, "{text}");
    assert!(!refused.to_string().contains("narthex grants"), "{refused}");
    let wanted = json!({
        "request_id": "ask-1", "grant_type": "tool_scope", "scope": "session",
        "details": { "scope": "demo.write" }, "justification": "to write the report",
    });
    let asked = run.called("request_grant", wanted.clone()).await;
    assert_eq!((&asked["status"], &asked["request_id"]), (&json!("pending"), &json!("ask-1")));
    // An equal second request is the same request (D15).
    assert_eq!(
        run.called("request_grant", wanted).await["grant_request_id"],
        asked["grant_request_id"]
    );
    assert_eq!(run.echo().await["isError"], true);
    let pending = api.get(REQUESTS).await;
    assert_eq!(pending["items"].as_array().unwrap().len(), 1, "{pending}");
    let id = asked["grant_request_id"].as_str().unwrap();
    api.send("POST", &format!("{REQUESTS}/{id}/approve"), "{}").await.succeeded();
    assert_eq!(run.echo().await["content"][0]["text"], "x");
}

/// D14, X-M54: a grant for a server applies to the catalog server with that id. An agent's author
/// cannot make it apply to another server by an alias, and it applies under each alias of that
/// server. Refusals and requests name the server by its id.
#[tokio::test]
async fn d14_a_grant_applies_to_the_server_of_the_catalog_and_not_to_an_alias() {
    let place = tempfile::tempdir().unwrap();
    let api = daemon(&place).await;
    let here = "/api/workspaces/default";
    let granted = async |server: &str| {
        let grant = json!({ "grant_type": "tool_scope", "scope": "persistent",
                            "details": { "scope": "demo.write", "server": server },
                            "agent_subject_id": "writer" });
        let made = api.send("POST", GRANTS, grant.to_string()).await.succeeded();
        made["id"].as_str().unwrap().to_owned()
    };
    let staging = granted("staging").await;
    // The author attaches another server under the alias `staging`.
    let agent = json!({ "mcpServers": { "staging": { "ref": "demo" } } });
    api.send("PUT", &format!("{here}/agents/writer"), with_tools(agent)).await.succeeded();
    let run = Run::begin(&api).await;
    let params = json!({ "name": "mcp__staging__echo", "arguments": { "message": "x" } });
    let echo = async || {
        let answer = run.ask("/mcp", "tools/call", params.clone()).await;
        answer.json()["result"].clone()
    };
    let refused = echo().await;
    let error = &refused["structuredContent"]["error"];
    assert_eq!(error["kind"], "permission_required", "{refused}");
    let asks = error["details"]["ask"]["calls"][0]["arguments"].clone();
    assert_eq!(asks["details"]["server"], "demo", "{refused}");
    assert!(refused["content"][0]["text"].as_str().unwrap().contains(r#""server":"demo""#));
    // A request may also use the agent's alias; it is stored with the id.
    for (id, server) in [("by-alias", "staging"), ("by-id", "demo")] {
        let asked = json!({ "request_id": id, "grant_type": "tool_scope", "scope": "once",
                            "details": { "scope": "demo.write", "server": server, "tool": "echo" },
                            "justification": "to try it" });
        run.called("request_grant", asked).await;
    }
    let pending = api.get(REQUESTS).await;
    assert_eq!(pending["items"].as_array().unwrap().len(), 1, "{pending}");
    assert_eq!(pending["items"][0]["details"]["server"], "demo", "{pending}");
    api.ask("DELETE", &format!("{GRANTS}/{staging}")).send().await;
    granted("demo").await;
    assert_eq!(echo().await["content"][0]["text"], "x");
}

/// X-E80: a workspace can forbid its runs to ask humans. Pending requests can still be decided.
#[tokio::test]
async fn x_e80_a_workspace_can_disable_requests_of_its_runs() {
    let place = tempfile::tempdir().unwrap();
    let api = daemon(&place).await;
    let run = Run::begin(&api).await;
    let wanted = |id: &str, scope: &str| {
        json!({ "request_id": id, "grant_type": "tool_scope", "scope": "session",
                "details": { "scope": scope }, "justification": "to write" })
    };
    let asked = run.called("request_grant", wanted("a", "demo.write")).await;
    let switch = |is_on: bool| {
        let change = json!({ "runtime_requests": is_on }).to_string();
        api.send("PATCH", "/api/workspaces/default", change)
    };
    assert_eq!(switch(false).await.succeeded()["runtime_requests"], false);
    for (tool, arguments) in [
        ("request_grant", wanted("b", "demo.read")),
        ("request_permission", json!({ "scopes": ["demo.read"], "justification": "x" })),
    ] {
        let error = run.refused(tool, arguments).await;
        assert_eq!(error["kind"], "permission_required", "{error}");
        assert_eq!(error["details"]["code"], "runtime_requests_disabled", "{error}");
    }
    assert_eq!(api.get(REQUESTS).await["items"].as_array().unwrap().len(), 1);
    let id = asked["grant_request_id"].as_str().unwrap();
    api.send("POST", &format!("{REQUESTS}/{id}/approve"), "{}").await.succeeded();
    assert_eq!(run.echo().await["content"][0]["text"], "x");
    switch(true).await.succeeded();
    run.called("request_grant", wanted("b", "demo.read")).await;
}

/// X-M58, D15, A-12: no attempt of an agent creates a grant.
#[tokio::test]
async fn x_m58_an_agent_cannot_write_a_grant() {
    let place = tempfile::tempdir().unwrap();
    let api = daemon(&place).await;
    let run = Run::begin(&api).await;
    let grant = json!({ "grant_type": "tool_scope", "details": { "scope": "demo.write" },
                        "scope": "persistent", "agent_subject_id": "writer" });
    let own = format!("Bearer {}", run.token);
    let wanted = json!({
        "request_id": "a", "grant_type": "tool_scope", "scope": "persistent",
        "details": { "scope": "demo.write" }, "justification": "please",
    });
    let asked = run.called("request_grant", wanted).await;
    let id = asked["grant_request_id"].as_str().unwrap();
    let decide = format!("{REQUESTS}/{id}/approve");
    for (path, body) in [(GRANTS, grant.to_string()), (&*decide, "{}".to_owned())] {
        for forged in ["x-user", "x-forwarded-user", "x-narthex-user", "x-principal"] {
            let request = api.world.request(Method::POST, path).header("authorization", &own);
            let answer = request.header(forged, "admin").body(whole(body.clone())).send().await;
            assert!([401, 403, 404].contains(&answer.status.as_u16()), "{}", answer.text());
        }
    }
    assert_eq!(api.get(GRANTS).await["items"], json!([]));
    assert_eq!(run.echo().await["isError"], true);
}

/// Checks that each token of these runs is refused, with several forged headers, at every route
/// that permits an act. Includes the routes that would make the caller one who may permit acts.
async fn no_token_lets_in(runs: &[&Run<'_>], asked: &[&str]) {
    let (api, here) = (runs[0].api, "/api/workspaces/default");
    let grant = json!({ "grant_type": "tool_scope", "details": { "scope": "demo.write" },
                        "scope": "persistent", "agent_subject_id": "lead" })
    .to_string();
    let open = json!({ "url": api.fixture_url(), "transport": "http" }).to_string();
    let admin = r#"{"service": "me", "roles": ["admin"]}"#;
    let mut tries = vec![
        ("POST", GRANTS.to_owned(), grant.as_str()),
        ("PUT", format!("{here}/mcp-servers/demo"), &open),
        ("PUT", format!("{here}/policy"), r#"{"rules": ""}"#),
        ("PUT", format!("{here}/members/prn_0000000000000000"), r#"{"roles": ["admin"]}"#),
        ("POST", format!("{here}/service-tokens"), admin),
        ("POST", "/api/principals".to_owned(), r#"{"name": "me", "is_operator": true}"#),
        ("POST", format!("{RUNS}?as=admin"), r#"{"tools": ["demo"]}"#),
    ];
    for id in asked {
        tries.push(("POST", format!("{REQUESTS}/{id}/approve"), "{}"));
        tries.push(("POST", format!("{REQUESTS}/{id}/approve?user=admin"), "{}"));
    }
    for (method, path, body) in &tries {
        for run in runs {
            for (name, value) in [
                ("x-narthex-run", "admin"),
                ("x-forwarded-user", "admin"),
                ("cookie", "narthex-session=admin"),
                ("mcp-session-id", &*run.session),
            ] {
                let request = api.world.request(method.parse().unwrap(), path);
                let request = request.header("authorization", &format!("Bearer {}", run.token));
                let request = request.header("content-type", "application/json");
                let request = request.header(name, value).body(whole((*body).to_owned()));
                let answer = request.send().await;
                let (status, told) = (answer.status, answer.text());
                assert!(status.is_client_error(), "{method} {path} {name}: {status} {told}");
            }
        }
    }
}

/// X-M58, D15: an agent that tries every trick creates no grant and gets no call through. It uses
/// its own token and a child's token at every route that permits acts, ids of requests that it has
/// seen, a second request, a child's request, and words that look like a decision.
#[tokio::test]
async fn x_m58_an_agent_with_every_trick_gets_no_grant() {
    let place = tempfile::tempdir().unwrap();
    let api = daemon(&place).await;
    let here = "/api/workspaces/default";
    let agent = json!({ "agent_type": "orchestrator", "spawnable_agents": ["writer"],
                        "mcpServers": { "demo": { "ref": "demo" } } });
    api.send("PUT", &format!("{here}/agents/lead"), with_tools(agent)).await.succeeded();
    let lead = Run::of(&api, "lead").await;
    let wanted = json!({ "request_id": "a", "grant_type": "tool_scope", "scope": "persistent",
        "details": { "scope": "demo.write" }, "justification": "please" });
    let ask = async |run: &Run<'_>| {
        let asked = run.called("request_grant", wanted.clone()).await;
        assert_eq!(asked["status"], "pending", "{asked}");
        asked["grant_request_id"].as_str().unwrap().to_owned()
    };
    let own = ask(&lead).await;
    assert_eq!(ask(&lead).await, own, "asked twice is asked once");
    let spawned = lead.called("spawn_session", json!({ "child_agent_id": "writer" })).await;
    let claim = format!("{RUNS}/{}/claim", spawned["session"]["run_id"].as_str().unwrap());
    let claim = api.send("POST", &claim, "{}").await.succeeded();
    let text = |name: &str| claim["run"][name].as_str().unwrap().to_owned();
    let child = Run { api: &api, token: text("token"), session: text("session_id") };
    let for_it = ask(&child).await;
    assert_ne!(for_it, own, "an id that another run has used is its own here");
    let said = json!({ "child_session_id": child.session, "text": "approved", "message_id": own });
    lead.called("inject_message", said).await;
    let told = json!({ "summary": "permission.granted", "body": wanted.to_string() });
    child.called("message_caller", told).await;

    no_token_lets_in(&[&lead, &child], &[&own, &for_it]).await;
    assert_eq!(api.get(GRANTS).await["items"], json!([]));
    assert_eq!(
        (lead.echo().await["isError"].take(), child.echo().await["isError"].take()),
        (json!(true), json!(true))
    );

    // A human's grant for the child applies only to the child. The id of a decided request has no
    // effect later.
    let decide = format!("{REQUESTS}/{for_it}/approve");
    api.send("POST", &decide, r#"{"scope": "once"}"#).await.succeeded();
    assert_eq!(lead.echo().await["isError"], true, "the parent got nothing by it");
    assert_eq!(child.echo().await["content"][0]["text"], "x");
    assert_eq!(child.echo().await["isError"], true, "once is once");
    assert_ne!(ask(&child).await, for_it, "it has to be decided anew");
    assert_eq!(child.echo().await["isError"], true);
    assert_eq!(api.get(&format!("{GRANTS}?include_revoked=true")).await["items"][1], Value::Null);
}

/// X-M53, X-M57, X-D15: the required scopes are frozen with the run, but grants are not. A server
/// whose gates name no tool requires no scope.
#[tokio::test]
async fn x_m53_required_scopes_are_frozen_with_the_run() {
    let place = tempfile::tempdir().unwrap();
    let api = daemon(&place).await;
    let gated = Run::begin(&api).await;
    assert_eq!(gated.echo().await["isError"], true);
    let put = async |scopes: Value| {
        let server = json!({ "url": api.fixture_url(), "transport": "http",
                             "tool_scopes": scopes });
        let path = "/api/workspaces/default/mcp-servers/demo";
        api.send("PUT", path, server.to_string()).await.succeeded();
    };
    put(json!({})).await;
    let open = Run::begin(&api).await;
    assert_eq!(open.echo().await["content"][0]["text"], "x");
    assert_eq!(gated.echo().await["isError"], true, "as when it began");
    put(json!({ "echo": ["demo.write", "demo.more"] })).await;
    assert_eq!(open.echo().await["content"][0]["text"], "x", "as when it began");
    let both = Run::begin(&api).await;
    let grant = json!({ "grant_type": "tool_scope", "details": { "scope": "demo.write" },
                        "scope": "persistent", "agent_subject_id": "writer" });
    api.send("POST", GRANTS, grant.to_string()).await.succeeded();
    assert_eq!(gated.echo().await["content"][0]["text"], "x", "what is granted counts at once");
    let refused = &both.echo().await["structuredContent"]["error"]["details"]["scopes"];
    assert_eq!(*refused, json!(["demo.more"]));
}

/// X-M56: after a run has ended, its request cannot be approved for that run. A longer grant can
/// still be approved.
#[tokio::test]
async fn x_m56_a_request_for_an_ended_run_is_not_granted() {
    let place = tempfile::tempdir().unwrap();
    let api = daemon(&place).await;
    let run = Run::begin(&api).await;
    let wanted = json!({ "request_id": "a", "grant_type": "tool_scope", "scope": "run",
        "details": { "scope": "demo.write" }, "justification": "please" });
    let asked = run.called("request_grant", wanted).await;
    let decide = format!("{REQUESTS}/{}/approve", asked["grant_request_id"].as_str().unwrap());
    let of = api.world.gateway.runs().identify(&run.token).unwrap().id;
    let ended = api.ask("DELETE", &format!("{RUNS}/{of}")).send().await;
    assert_eq!(ended.status, StatusCode::NO_CONTENT);
    let refused = api.send("POST", &decide, "{}").await;
    assert!(refused.status.is_client_error(), "{}", refused.text());
    assert_eq!(api.get(GRANTS).await["items"], json!([]));
    let longer = api.send("POST", &decide, r#"{"scope": "persistent"}"#).await.succeeded();
    assert_eq!(longer["status"], "approved", "{longer}");
}

/// D15, X-M58: no run can decide, neither on its own request nor on another run's, for scopes and
/// for children. Nothing is decided or granted by the attempts.
#[tokio::test]
async fn d15_runs_cannot_decide_on_requests_for_grants() {
    let place = tempfile::tempdir().unwrap();
    let api = daemon(&place).await;
    let (run, other) = (Run::begin(&api).await, Run::begin(&api).await);
    for (number, kind, details) in [
        (1, "tool_scope", json!({ "scope": "demo.write" })),
        (2, "spawn", json!({ "child_agent_id": "writer" })),
    ] {
        let wanted = json!({ "request_id": format!("a{number}"), "grant_type": kind,
            "scope": "session", "details": details, "justification": "please" });
        let asked = run.called("request_grant", wanted).await;
        let id = asked["grant_request_id"].as_str().unwrap();
        for token in [&run.token, &other.token, &api.world.token] {
            for how in ["approve", "deny"] {
                let request = api.world.request(Method::POST, &format!("{REQUESTS}/{id}/{how}"));
                let request = request.header("authorization", &format!("Bearer {token}"));
                let request = request.header("content-type", "application/json");
                let refused = request.body(whole("{}")).send().await;
                refused.problem(StatusCode::FORBIDDEN, "denied");
            }
        }
    }
    assert_eq!(api.get(REQUESTS).await["items"].as_array().unwrap().len(), 2, "both wait still");
    assert_eq!(api.get(GRANTS).await["items"], json!([]));
    assert_eq!(run.echo().await["isError"], true);
    let audit = api.get("/api/workspaces/default/audit?limit=100").await.to_string();
    assert!(!audit.contains("permission.granted") && !audit.contains("permission.denied"));
}

/// X-E98, X-E99: a run's reports are stored in the order in which it sent them.
#[tokio::test]
async fn x_e98_reports_of_a_run_are_numbered_in_order() {
    let place = tempfile::tempdir().unwrap();
    let api = daemon(&place).await;
    let run = Run::begin(&api).await;
    run.called("emit_status", json!({"status": "writing", "detail": "chapter 1"})).await;
    let artifact = json!({"artifact_type": "summary", "title": "Report", "content": "# It works"});
    run.called("emit_artifact", artifact).await;
    let input = json!({"question": "Which one?", "request_id": "q", "options": ["a", "b"]});
    assert_eq!(run.called("request_input", input.clone()).await["request_id"], "q");
    run.called("request_input", input).await;
    run.called("emit_error", json!({"message": "no paper", "recoverable": true})).await;
    let events = run.events().await;
    let agents: Vec<_> = events
        .iter()
        .filter(|event| event["type"].as_str().unwrap().starts_with("agent."))
        .collect();
    let types: Vec<_> = agents.iter().map(|event| event["type"].as_str().unwrap()).collect();
    let expected = ["agent.status", "agent.artifact", "agent.input_request", "agent.error"];
    assert_eq!(types, expected);
    assert!(agents.is_sorted_by_key(|event| event["sequence"].as_u64().unwrap()));
    assert_eq!(agents[0]["payload"]["detail"], "chapter 1");
}

/// A session ends once, after its agent has received the answer. Then the token is refused.
#[tokio::test]
async fn a_session_ends_once_when_its_agent_ends_it() {
    let place = tempfile::tempdir().unwrap();
    let api = daemon(&place).await;
    let run = Run::begin(&api).await;
    let view = api.world.gateway.runs().identify(&run.token).unwrap();
    let bearer = format!("Bearer {}", run.token);
    let seen = api.ask("GET", "/api/status").header("authorization", &bearer).send().await.json();
    // D29: the rows that a run reads include the built-in tools, like the rows of servers.
    let own = seen["items"].as_array().unwrap().iter().find(|row| row["alias"] == "narthex");
    let own = own.unwrap_or_else(|| panic!("{seen}"));
    assert!(own["state"] == "ready" && own["tools"].as_u64() > Some(0), "{own}");
    let ended = run.called("end_session", json!({"summary": "all done"})).await;
    assert_eq!(ended["status"], "ending");
    view.ended().await;
    let answer = run.ask("/mcp/narthex", "tools/list", json!({})).await;
    assert_eq!(answer.status, StatusCode::UNAUTHORIZED);
    assert!(answer.text().contains("the run of this token has ended"), "{}", answer.text());
    let events = run.events().await;
    let said: Vec<_> = events.iter().filter(|one| one["type"] == "session.completed").collect();
    assert_eq!(said.len(), 1, "{events:?}");
    assert_eq!(said[0]["payload"]["summary"], "all done");
}

/// D13: calls of built-in tools are subject to the workspace's rules, like all calls, with the
/// tools' declared hints. A forbidden call is not made.
#[tokio::test]
async fn d13_built_in_tools_pass_the_rules() {
    let place = tempfile::tempdir().unwrap();
    let api = daemon(&place).await;
    let run = Run::begin(&api).await;
    let set = async |rules: &str| {
        let document = json!({ "rules": rules }).to_string();
        api.send("PUT", "/api/workspaces/default/policy", document).await.succeeded()
    };
    let status = json!({ "status": "writing" });
    set(r#"@id("mild") forbid(principal, action, resource in Server::"narthex")
           when { context.annotations.destructiveHint };"#)
    .await;
    run.called("emit_status", status.clone()).await;
    let ended = run.refused("end_session", json!({ "summary": "done" })).await;
    assert_eq!(ended["details"]["rule"], "mild", "it ends something: {ended}");
    set(r#"@id("inside") forbid(principal, action, resource in Server::"narthex")
           when { context.annotations.openWorldHint };"#)
    .await;
    let posted = json!({ "channel": "team", "text": "x" });
    let refused = run.refused("post_message", posted).await;
    assert_eq!(refused["details"]["rule"], "inside", "it reaches others: {refused}");
    let told = run.events().await.len();

    set(r#"@id("quiet") @reason("say nothing")
           forbid(principal, action, resource == Tool::"narthex/emit_status");"#)
    .await;
    let refused = run.refused("emit_status", status.clone()).await;
    assert_eq!(refused["kind"], "permission_required", "{refused}");
    assert_eq!(refused["details"]["rule"], "quiet", "{refused}");
    let params = json!({ "name": "mcp__narthex__emit_status", "arguments": status });
    let refused = run.ask("/mcp", "tools/call", params).await.json()["result"].clone();
    assert_eq!(refused["structuredContent"]["error"]["details"]["rule"], "quiet", "{refused}");
    assert_eq!(run.events().await.len(), told, "nothing was said");

    set(r#"@approval("talk.aloud") forbid(principal, action, resource in Server::"narthex")
           when { context.arguments has status && context.arguments.status like "w*" };"#)
    .await;
    let refused = run.refused("emit_status", status.clone()).await;
    assert_eq!(refused["details"]["scopes"], json!(["talk.aloud"]), "{refused}");
    run.called("emit_status", json!({ "status": "done" })).await;
    let grant = json!({ "grant_type": "tool_scope", "details": { "scope": "talk.aloud" },
                        "scope": "persistent", "agent_subject_id": "writer" });
    api.send("POST", GRANTS, grant.to_string()).await.succeeded();
    run.called("emit_status", status).await;
}
