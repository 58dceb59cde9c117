//! The tools of the built-in server where a tool is gated: the runs that get each of them, the
//! scopes that they require themselves, and the refusals that name them (X-M6, X-M55).

use std::sync::Arc;

use narthex_audit::{Audit, AuditSettings};
use narthex_gateway::{
    BuiltInAnswer, BuiltInCall, BuiltInResult, BuiltInServer, BuiltInTool, Caller, Endpoint,
    GatewayOptions, Lacking, RunToken, RunView,
};
use narthex_model::{
    AgentName, BuiltInTools, CallError, CallErrorKind, Gates, Grant, GrantDuration, GrantId,
    GrantOf, GrantSubject, ToolScope, ToolScopeGrant, ToolScopes,
};
use narthex_policy::{Actors, Authority, Grants, RunPolicy, WorkspaceRules};
use narthex_registry::config::Entry;
use narthex_testkit::fixture::{Options, Running};
use narthex_wire::Raw;
use serde_json::{Value, json};

use super::world::{SOON, World, alias, http_server, transparent};

/// `request_grant`, which fails by its own words, and `emit_status`, which requires a scope.
#[derive(Debug)]
struct Tools;

fn scopes(name: &str) -> ToolScopes {
    [ToolScope::new(name).unwrap()].into()
}

fn gates(tool: &str) -> Gates {
    let tools = [(tool.to_owned(), scopes("x.call"))].into();
    Gates::new(tools, &[].into(), [].into())
}

impl BuiltInServer for Tools {
    fn definitions(&self) -> Vec<BuiltInTool<'_>> {
        let tool = |name, scopes| BuiltInTool {
            name,
            definition: json!({ "name": name, "inputSchema": { "type": "object" } })
                .to_string()
                .into(),
            scopes,
            is_for_asking: name == "request_grant",
        };
        vec![tool("request_grant", ToolScopes::new()), tool("emit_status", scopes("own.use"))]
    }

    fn ask(&self, run: &RunView, lacking: &Lacking<'_>) -> Option<Value> {
        let Lacking { scope, server, name } = lacking;
        let may_ask = run.authority.actors().agent.is_some();
        may_ask.then(|| json!([scope.as_str(), server, name]))
    }

    fn shown(&self, _name: &str, _arguments: Option<Raw<'_>>) -> Option<Vec<u8>> {
        None
    }

    fn instructions(&self, _has: &BuiltInTools) -> String {
        "Ask.".to_owned()
    }

    fn meant(&self, _name: &str, _arguments: Option<Raw<'_>>) -> Option<(&'static str, Vec<u8>)> {
        None
    }

    fn check(&self, _name: &str, arguments: Option<Raw<'_>>) -> Result<(), CallError> {
        match arguments.is_some_and(|sent| sent.get("wrong").is_some()) {
            true => Err(CallError::new(CallErrorKind::InvalidArguments, "`wrong` is unknown")),
            false => Ok(()),
        }
    }

    fn call<'a>(&'a self, call: BuiltInCall<'a>) -> BuiltInAnswer<'a> {
        Box::pin(async move {
            match call.name {
                "emit_status" => Ok(BuiltInResult {
                    text: "done".to_owned(),
                    structured: json!({}),
                    is_told: false,
                    to_page: None,
                }),
                _ => Err(CallError::new(CallErrorKind::PermissionRequired, "no caller may ask")),
            }
        })
    }
}

/// A world with the server `all`, whose tool `echo` is gated if `is_gated` is set.
async fn world(is_gated: bool, audit: Audit) -> World {
    let fixture = Running::http(Options::default()).await.unwrap();
    let mut server = http_server("all", &fixture.url);
    if is_gated {
        server.gates = gates("echo").into();
    }
    let entries = vec![Entry::Server(server)];
    let world = World::recorded(entries, GatewayOptions::default(), None, audit);
    world.gateway.set_built_in_tools(Arc::new(Tools));
    world.gateway.registry().wait_until(SOON, |snapshot| snapshot.is_settled()).await;
    World { fixtures: vec![fixture], ..world }
}

/// A run of this policy, by an agent if one is named.
fn run(
    world: &World,
    policy: RunPolicy,
    agent: Option<&str>,
    grants: &Arc<Grants>,
) -> Arc<RunView> {
    let token = RunToken::generate().unwrap();
    let agent = agent.map(|name| AgentName::new(name).unwrap());
    let actors = Actors { agent, run: Some(token.run_id()), ..Actors::default() };
    let authority = Authority::new(actors, grants.clone(), WorkspaceRules::none());
    let is_live = policy == RunPolicy::AllAttached;
    let run = RunView::new(&token, policy).with_authority(authority);
    let run = if is_live { run } else { run.with_built_in_tools(BuiltInTools::All) };
    let run = Arc::new(run);
    world.gateway.begin_run(&run).unwrap();
    run
}

async fn called(world: &World, caller: &Caller, name: &str) -> Value {
    let params = json!({ "name": name, "arguments": { "message": "x" } });
    world.ask(caller, "tools/call", params).await["result"].take()
}

fn error(result: &Value) -> Value {
    assert_eq!(result["isError"], true, "{result}");
    result["structuredContent"]["error"].clone()
}

async fn own_names(world: &World, caller: &Caller) -> Vec<String> {
    let listed = world.ask(caller, "tools/list", json!({})).await;
    let names = listed["result"]["tools"].as_array().unwrap().iter();
    let names = names.filter_map(|tool| tool["name"].as_str()?.strip_prefix("mcp__narthex__"));
    names.map(str::to_owned).collect()
}

/// X-M55: a caller that sees the whole configuration gets the tools that ask for grants if any tool
/// is gated, and no others. Other runs have all of the built-in tools.
#[tokio::test]
async fn x_m55_a_run_on_all_servers_gets_request_grant_only_if_a_tool_is_gated() {
    for (is_gated, offered) in [(true, vec!["request_grant"]), (false, vec![])] {
        let world = world(is_gated, Audit::disabled()).await;
        let grants = Arc::default();
        let whole = run(&world, RunPolicy::AllAttached, Some("writer"), &grants);
        let caller = Caller::new(whole, Endpoint::Aggregated, None);
        assert_eq!(own_names(&world, &caller).await, offered);
        let guarded = error(&called(&world, &caller, "mcp__narthex__emit_status").await);
        assert_eq!(guarded["kind"], "tool_not_found", "{guarded}");
        let asked = error(&called(&world, &caller, "mcp__narthex__request_grant").await);
        let kind = if is_gated { "permission_required" } else { "tool_not_found" };
        assert_eq!(asked["kind"], kind, "{asked}");
        let named = RunPolicy::Attached([alias("all")].into());
        let named = run(&world, named, Some("writer"), &grants);
        let caller = Caller::new(named, Endpoint::Aggregated, None);
        assert_eq!(own_names(&world, &caller).await, ["request_grant", "emit_status"]);
    }
}

/// X-M55, D15, D28: a refusal names the way to ask, by the name of the tool at the endpoint, once
/// and in few words. Where no human can be asked, the refusal states that a human must allow the
/// call.
#[tokio::test]
async fn x_m55_a_refusal_names_the_tool_that_asks_for_a_grant() {
    let world = world(true, Audit::disabled()).await;
    let grants = Arc::default();
    let asking = run(&world, RunPolicy::AllAttached, Some("writer"), &grants);
    for (endpoint, echo, tool) in [
        (transparent("all"), "echo", "request_grant"),
        (Endpoint::Aggregated, "mcp__all__echo", "mcp__narthex__request_grant"),
    ] {
        let caller = Caller::new(asking.clone(), endpoint, None);
        let result = called(&world, &caller, echo).await;
        let (refused, text) = (error(&result), result["content"][0]["text"].as_str().unwrap());
        let call = json!({ "name": tool, "arguments": ["x.call", "all", "echo"] });
        let wanted = json!({ "server": "narthex", "calls": [call] });
        assert_eq!(refused["details"]["ask"], wanted, "{refused}");
        assert!(text.contains(&format!("`{tool}`")) && text.len() <= 300, "{text}");
        assert!(text.contains("`x.call`") && !text.contains("narthex "), "{text}");
        assert_eq!(result.to_string().matches("Ask a human").count(), 1, "{result}");
        assert_eq!(result["content"].as_array().unwrap().len(), 1, "{result}");
    }
    let mute = run(&world, RunPolicy::AllAttached, None, &grants);
    let caller = Caller::new(mute, transparent("all"), None);
    let refused = error(&called(&world, &caller, "echo").await);
    // The run acts for no person, so a grant would have no holder.
    let wanted = json!({ "name": "echo", "scopes": ["x.call"] });
    assert_eq!(refused["details"], wanted, "{refused}");
    assert!(refused["message"].as_str().unwrap().contains("a human must allow it"), "{refused}");
}

/// X-M6, D13: the decision that requires the scopes of other tools also requires those of built-in
/// tools.
#[tokio::test]
async fn x_m6_built_in_tools_require_their_declared_scopes() {
    let world = world(false, Audit::disabled()).await;
    let grants = Arc::<Grants>::default();
    let policy = RunPolicy::Attached([alias("all")].into());
    let run = run(&world, policy, Some("writer"), &grants);
    for (number, endpoint, tool) in [
        (1, transparent("narthex"), "emit_status"),
        (2, Endpoint::Aggregated, "mcp__narthex__emit_status"),
    ] {
        let caller = Caller::new(run.clone(), endpoint, None);
        let refused = error(&called(&world, &caller, tool).await);
        assert_eq!(refused["details"]["scopes"], json!(["own.use"]), "{refused}");
        let (scope, id) = (ToolScope::new("own.use").unwrap(), GrantId::new([number; 8]));
        let server = Some(alias("narthex"));
        let of =
            ToolScopeGrant { scope, server, tool: Some("emit_status".into()), arguments: None };
        grants.add(Grant {
            id,
            subject: GrantSubject::Agent(AgentName::new("writer").unwrap()),
            of: GrantOf::ToolScope(of),
            duration: GrantDuration::Persistent,
            expires_at: None,
        });
        assert_eq!(called(&world, &caller, tool).await["content"][0]["text"], "done");
        assert!(grants.remove(id));
    }
}

/// X-E75: an invalid call of a built-in tool does not use a grant for a single call up: the gateway
/// reports the fault before it asks policy.
#[tokio::test]
async fn x_e75_invalid_arguments_of_a_built_in_tool_use_no_grant() {
    let world = world(false, Audit::disabled()).await;
    let policy = RunPolicy::Attached([alias("all")].into());
    let run = run(&world, policy, Some("writer"), &Arc::default());
    let caller = Caller::new(run, transparent("narthex"), None);
    let call = async |arguments: Value| {
        let params = json!({"name": "emit_status", "arguments": arguments});
        error(&world.ask(&caller, "tools/call", params).await["result"])["kind"].clone()
    };
    assert_eq!(call(json!({"wrong": 1})).await, "invalid_arguments");
    assert_eq!(call(json!({})).await, "permission_required");
}

/// S32: the record names the check that refused a call. A built-in tool's own error has no such
/// check.
#[tokio::test]
async fn s32_a_built_in_tools_own_error_is_not_recorded_as_a_refusal() {
    let dir = tempfile::tempdir().unwrap();
    let audit = Audit::open(dir.path(), &AuditSettings::default()).unwrap();
    let world = world(true, audit.clone()).await;
    let policy = RunPolicy::Attached([alias("all")].into());
    let run = run(&world, policy, Some("writer"), &Arc::default());
    for (endpoint, tool, check) in [
        (transparent("narthex"), "request_grant", None),
        (transparent("narthex"), "emit_status", Some("grants")),
        (transparent("narthex"), "absent", Some("exposed")),
        (transparent("all"), "echo", Some("grants")),
        (transparent("all"), "absent", Some("exposed")),
    ] {
        let caller = Caller::new(run.clone(), endpoint, None);
        error(&called(&world, &caller, tool).await);
        audit.flush().await;
        let text = fs_err::read_to_string(dir.path().join("audit.jsonl")).unwrap();
        let last: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
        let found = last.to_string();
        assert!(found.contains(&format!("\"{tool}\"")), "{found}");
        match check {
            Some(check) => {
                assert!(found.contains(&format!("\"refused_by\":\"{check}\"")), "{found}");
            }
            None => assert!(!found.contains("refused_by"), "{found}"),
        }
    }
}
