//! Tests of grants through the whole door: their authors, the calls that they permit, and their
//! duration.

use http::StatusCode;
use narthex_control::RequestOf;
use narthex_model::{GrantOf, Role, ToolScope, ToolScopeGrant};
use narthex_store::Store;
use serde_json::{Map, Value, json};
use tempfile::TempDir;
use tokio::task::JoinSet;

use super::{tenants::Tenants, world::Api};
use crate::world::{ADMIN, Answer};

const ALL: &str = "/api/workspaces/default/grants";
const LOCAL: &str = "prn_0000000000000000";

/// A daemon on the store in a folder, with a server whose tool `echo` requires `demo.write`.
pub(super) async fn gated(place: &TempDir) -> Api {
    let store = Store::open(&place.path().join("store.db")).await.unwrap();
    let server = json!({ "one": { "transport": "http", "url": "URL",
                                  "tool_scopes": { "echo": "demo.write" } } });
    Api::with_all(&server, store, &place.path().join("master.key")).await
}

/// A run with that server: its token and its id.
pub(super) async fn run(api: &Api, more: Value) -> (String, String) {
    let mut asked = json!({ "tools": ["one"] });
    asked.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let path = "/api/workspaces/default/runs";
    let made = api.send("POST", path, asked.to_string()).await.succeeded();
    let text = |name: &str| made[name].as_str().unwrap().to_owned();
    (text("token"), text("run_id"))
}

fn wanted(scope: &str, reason: &str) -> RequestOf {
    let scope = ToolScope::new(scope).unwrap();
    let of = ToolScopeGrant { scope, server: None, tool: None, arguments: None };
    RequestOf {
        asked_as: "r1".to_owned(),
        of: GrantOf::ToolScope(of),
        arguments: String::new(),
        duration: "persistent",
        reason: reason.to_owned(),
    }
}

impl Api {
    async fn echo(&self, token: &str, text: &str) -> Value {
        let params = json!({ "name": "mcp__one__echo", "arguments": { "message": text } });
        let request = self.world.modern("/mcp", "tools/call", params);
        let answer = request.header("authorization", &format!("Bearer {token}")).send().await;
        answer.json()["result"].clone()
    }

    /// The id of a run's request for some scope, with this reason.
    pub(super) async fn asked_by(&self, run: &Value, reason: &str) -> String {
        let token = run["token"].as_str().unwrap();
        let view = self.world.gateway.runs().identify(token).unwrap();
        let asked = self.control.request_grant(&view, wanted("demo.write", reason)).await;
        asked.unwrap().row.id.to_text()
    }

    pub(super) async fn may_echo(&self, token: &str) -> bool {
        let result = self.echo(token, "x").await;
        if result["isError"] == true {
            let error = &result["structuredContent"]["error"];
            assert_eq!(error["kind"], "permission_required", "{result}");
            assert_eq!(error["details"]["scopes"], json!(["demo.write"]));
            return false;
        }
        assert_eq!(result["content"][0]["text"], "x", "{result}");
        true
    }

    async fn grant(&self, more: Value) -> Answer {
        let mut grant = json!({ "grant_type": "tool_scope", "details": { "scope": "demo.write" },
                                "scope": "persistent", "user_subject_id": LOCAL });
        let fields = grant.as_object_mut().unwrap();
        for (name, value) in more.as_object().unwrap() {
            match value {
                Value::Null => drop(fields.remove(name)),
                value => drop(fields.insert(name.clone(), value.clone())),
            }
        }
        self.send("POST", ALL, grant.to_string()).await
    }

    pub(super) async fn granted(&self, more: Value) -> String {
        let made = self.grant(more).await;
        assert_eq!(made.status, StatusCode::CREATED, "{}", made.text());
        let id = made.json()["id"].as_str().unwrap().to_owned();
        assert_eq!(made.headers["location"], format!("{ALL}/{id}").as_str());
        id
    }

    async fn revoke(&self, id: &str) -> StatusCode {
        self.ask("DELETE", &format!("{ALL}/{id}")).send().await.status
    }
}

/// X-M54, X-M55, X-E76, X-M18, X-E79: a call is refused without a grant, permitted with one, and
/// refused after its revocation. A second revocation is no fault, and a revoked grant is shown on
/// request.
#[tokio::test]
async fn x_m54_a_call_is_permitted_until_its_grant_is_revoked() {
    let place = tempfile::tempdir().unwrap();
    let api = gated(&place).await;
    let (token, _) = run(&api, json!({})).await;
    assert!(!api.may_echo(&token).await);
    let id = api.granted(json!({ "reason": "to try it" })).await;
    assert!(api.may_echo(&token).await && api.may_echo(&token).await);
    let shown = api.get(&format!("{ALL}/{id}")).await;
    assert_eq!((&shown["is_advisory"], &shown["granted_by"]), (&json!(true), &json!("admin")));
    assert_eq!(api.revoke(&id).await, StatusCode::NO_CONTENT);
    assert!(!api.may_echo(&token).await);
    assert_eq!(api.revoke(&id).await, StatusCode::NO_CONTENT);
    assert_eq!(api.get(ALL).await["items"], json!([]));
    let all = api.get(&format!("{ALL}?include_revoked=true")).await;
    assert_eq!(all["items"][0]["revoked_by"], "admin");
    let unknown = api.ask("GET", &format!("{ALL}/gra_00000000000000ff")).send().await;
    unknown.problem(StatusCode::NOT_FOUND, "not_found");
    assert_eq!(unknown.json()["code"], "grant_not_found");
}

/// X-M57, D14: a gate for a tool that the server does not have gives a warning, with the name that
/// was probably meant, at every place where that is known. Without it, a typo would leave a tool
/// ungated.
#[tokio::test]
async fn x_m57_a_gate_for_an_unlisted_tool_gives_a_warning() {
    let place = tempfile::tempdir().unwrap();
    let store = Store::open(&place.path().join("store.db")).await.unwrap();
    let gates = json!({ "ecko": "demo.write", "add": "demo.read" });
    let server = json!({ "one": { "transport": "http", "url": "URL", "tool_scopes": gates } });
    let api = Api::with_all(&server, store, &place.path().join("master.key")).await;
    let told = "`tool_scopes` names `ecko`, which the server does not list, so it has no effect";
    let meant = format!("{told}; did you mean `echo`?");
    for path in ["/api/servers", "/api/status"] {
        let rows = api.get(path).await;
        assert_eq!(rows["items"][0]["gates_unmatched"], json!([meant]), "{path} {rows}");
    }
    let here = "/api/workspaces/default";
    let demo = json!({ "url": api.fixture_url(), "transport": "http", "tool_scopes": gates });
    let put = async || {
        let path = format!("{here}/mcp-servers/demo");
        api.send("PUT", &path, demo.to_string()).await.succeeded()["warnings"].clone()
    };
    assert_eq!(put().await, json!([]), "nobody knows yet what it has");
    let agent = json!({ "mcpServers": { "demo": { "ref": "demo" } } });
    api.send("PUT", &format!("{here}/agents/writer"), agent.to_string()).await.succeeded();
    let asked = json!({ "agent_name": "writer" }).to_string();
    let made = api.send("POST", &format!("{here}/runs"), asked).await.succeeded();
    assert_eq!(made["warnings"], json!([format!("server `demo`: {meant}")]), "{made}");
    let warnings = put().await;
    assert_eq!(warnings[0]["field"], "tool_scopes.ecko", "{warnings}");
    let message = warnings[0]["message"].as_str().unwrap();
    assert!(message.starts_with(&meant) && message.contains("servers definitions"), "{message}");
    assert_eq!(warnings.as_array().unwrap().len(), 1, "{warnings}");
    // A document of several objects, as `servers apply` sends it, gets the same warning with its
    // place.
    let other = json!({ "id": "other", "url": api.fixture_url(), "transport": "http" });
    let mut named = demo.clone();
    named["id"] = json!("demo");
    let document = json!({ "servers": [other, named] }).to_string();
    for query in ["?dry_run=true", ""] {
        let path = format!("{here}/import{query}");
        let told = api.send("POST", &path, document.clone()).await.succeeded()["warnings"].clone();
        assert_eq!(told[0]["field"], "servers[1].tool_scopes.ecko", "{told}");
        assert_eq!(told[0]["message"], message, "{told}");
        assert_eq!(told.as_array().unwrap().len(), 1, "{told}");
    }
}

/// X-M57: a grant for a user who is no member is refused, with the command that adds the member.
/// The refusal is the same for a user that does not exist.
#[tokio::test]
async fn x_m57_a_refused_grant_for_a_non_member_names_the_command_that_adds_members() {
    let place = tempfile::tempdir().unwrap();
    let api = gated(&place).await;
    api.send("POST", "/api/principals", json!({ "name": "bob2" }).to_string()).await.succeeded();
    let refused = async |who: &str| {
        let answer = api.grant(json!({ "user_subject_id": who })).await;
        answer.problem(StatusCode::UNPROCESSABLE_ENTITY, "invalid");
        answer.json()["errors"][0]["message"].as_str().unwrap().to_owned()
    };
    let told = |who: &str| {
        format!(
            "`{who}` is not a member of the workspace `default`; `narthex members list` lists its \
             members, and `narthex members set {who} author` adds a user, with this role or \
             another"
        )
    };
    assert_eq!(refused("bob2").await, told("bob2"));
    assert_eq!(refused("no-such").await, told("no-such"), "as one that there is not");
    let members = "/api/workspaces/default/members";
    api.send("PUT", &format!("{members}/bob2"), roles_of("author")).await.succeeded();
    assert_eq!(refused("bob3").await, format!("{}; did you mean `bob2`?", told("bob3")));
    api.granted(json!({ "user_subject_id": "bob2" })).await;
    let token = json!({ "service": "ci", "roles": ["runner"] }).to_string();
    let tokens = "/api/workspaces/default/service-tokens";
    api.send("POST", tokens, token).await.succeeded();
    assert!(refused("default/ci").await.starts_with("`default/ci` is a service, not a human"));
    let misspelt = api.send("POST", tokens, json!({ "service": "cj" }).to_string()).await;
    let error = misspelt.json()["errors"][0].clone();
    assert!(error["remedy"].as_str().unwrap().ends_with("did you mean `default/ci`?"), "{error}");
    let nobody = api.send("PUT", &format!("{members}/cara"), roles_of("author")).await;
    let told = nobody.json()["detail"].as_str().unwrap().to_owned();
    assert!(told.contains("`narthex users create cara`"), "{told}");
}

fn roles_of(role: &str) -> String {
    json!({ "roles": [role] }).to_string()
}

/// X-M62, X-M65, A-11: the event of a call names the grant by which it was allowed.
#[tokio::test]
async fn x_m62_x_m65_a_call_names_its_grant() {
    let place = tempfile::tempdir().unwrap();
    let api = gated(&place).await;
    let (token, run_id) = run(&api, json!({})).await;
    let id = api.granted(json!({})).await;
    assert!(api.may_echo(&token).await);
    // The event is recorded after the answer.
    let call = loop {
        let page = api.get("/api/workspaces/default/audit?limit=100").await;
        let items = page["items"].as_array().unwrap().clone();
        let is_call = |one: &Value| one["kind"] == "session.mcp.tool_called";
        if let Some(call) = items.into_iter().find(is_call) {
            break call;
        }
    };
    assert_eq!((&call["granted_via"], &call["run"]), (&json!(id), &json!(run_id)), "{call}");
}

/// X-E75, D25: of a hundred concurrent calls with a grant for one call, one reaches the server.
/// After a restart the grant is still used up.
#[tokio::test]
async fn x_e75_one_of_many_concurrent_calls_uses_a_grant_for_a_single_call() {
    let place = tempfile::tempdir().unwrap();
    let api = gated(&place).await;
    let (token, run_id) = run(&api, json!({})).await;
    let id = api.granted(json!({ "scope": "once" })).await;
    let before = api.calls();
    let mut calls = JoinSet::new();
    let api = std::sync::Arc::new(api);
    for _ in 0..100 {
        let (api, token) = (api.clone(), token.clone());
        calls.spawn(async move { api.may_echo(&token).await });
    }
    let through = calls.join_all().await.into_iter().filter(|may| *may).count();
    assert_eq!((through, api.calls() - before), (1, 1));
    let shown = api.get(&format!("{ALL}/{id}")).await;
    assert_eq!(shown["consumed_by"], run_id.as_str());
    let lasting =
        api.granted(json!({ "details": { "scope": "demo.write", "tool": "other" } })).await;
    drop(api);
    let api = gated(&place).await;
    assert!(!api.may_echo(&token).await, "it stays used up, and another tool's does not count");
    assert_eq!(api.revoke(&lasting).await, StatusCode::NO_CONTENT);
    let (other, _) = run(&api, json!({})).await;
    api.granted(json!({ "scope": "once" })).await;
    assert!(api.may_echo(&other).await && !api.may_echo(&other).await);
}

/// X-E81, A-13: grants to a user count in the runs that this user drives, and in no others.
#[tokio::test]
async fn x_e81_grants_to_a_user_apply_only_to_runs_driven_by_that_user() {
    let place = tempfile::tempdir().unwrap();
    let api = gated(&place).await;
    for name in ["ada", "bob"] {
        api.send("POST", "/api/principals", json!({ "name": name }).to_string()).await.succeeded();
        let member = format!("/api/workspaces/default/members/{name}");
        api.send("PUT", &member, r#"{"roles": ["runner"]}"#).await.succeeded();
    }
    let (of_ada, _) = run(&api, json!({ "user": "ada" })).await;
    let (of_bob, of_bob_id) = run(&api, json!({ "user": "bob" })).await;
    let shown = api.get(&format!("/api/workspaces/default/runs/{of_bob_id}")).await;
    let bob = api.get("/api/principals/bob").await;
    assert_eq!(shown["user"], bob["id"]);
    let id = api.granted(json!({ "user_subject_id": "ada" })).await;
    assert!(api.may_echo(&of_ada).await);
    assert!(!api.may_echo(&of_bob).await);
    let asked = json!({ "tools": ["one"], "user": "eve" }).to_string();
    let refused = api.send("POST", "/api/workspaces/default/runs", asked).await;
    refused.problem(StatusCode::FORBIDDEN, "denied");
    // A user who leaves the workspace loses the grants in it.
    let member = "/api/workspaces/default/members/ada";
    assert_eq!(api.ask("DELETE", member).send().await.status, StatusCode::NO_CONTENT);
    assert!(!api.may_echo(&of_ada).await);
    assert!(api.get(&format!("{ALL}/{id}")).await["revoked_at"].is_string());
    // A grant for one run does not count in another.
    api.granted(json!({ "user_subject_id": "bob", "scope": "run", "run_id": of_bob_id })).await;
    assert!(api.may_echo(&of_bob).await);
    let (again, _) = run(&api, json!({ "user": "bob" })).await;
    assert!(!api.may_echo(&again).await);
}

/// D14: a grant for exact arguments has only their digest, and permits no others.
#[tokio::test]
async fn d14_a_grant_for_exact_arguments_permits_only_these_arguments() {
    let place = tempfile::tempdir().unwrap();
    let api = gated(&place).await;
    let (token, _) = run(&api, json!({})).await;
    let details = json!({ "scope": "demo.write", "server": "one", "tool": "echo",
                          "arguments": { "message": "a" } });
    let id = api.granted(json!({ "details": details })).await;
    let shown = api.get(&format!("{ALL}/{id}")).await;
    let digest = shown["details"]["arguments_digest"].as_str().unwrap();
    assert!(digest.starts_with("sha256:") && shown["details"].get("arguments").is_none());
    // A grant that gives only the digest means the same.
    let exactly = json!({ "scope": "demo.read", "arguments_digest": digest });
    let other = api.granted(json!({ "details": exactly })).await;
    assert_eq!(api.get(&format!("{ALL}/{other}")).await["details"], exactly);
    let refused = api.echo(&token, "b").await;
    assert_eq!(refused["structuredContent"]["error"]["kind"], "permission_required");
    assert_eq!(api.echo(&token, "a").await["content"][0]["text"], "a");
}

/// X-E71, X-E72, X-E73, X-E74: all faults of a grant are reported at once, with their codes.
#[tokio::test]
async fn x_e71_all_faults_of_a_grant_are_reported_with_codes() {
    let place = tempfile::tempdir().unwrap();
    let api = gated(&place).await;
    let cases = [
        (json!({ "agent_subject_id": "x" }), "exactly_one_of_user_subject_id_or_agent_subject_id"),
        (json!({ "user_subject_id": null }), "exactly_one_of_user_subject_id_or_agent_subject_id"),
        (json!({ "details": { "scope": "demo.write", "more": 1 } }), "invalid_grant_shape"),
        (json!({ "details": { "scope": "Demo" } }), "invalid_grant_shape"),
        (json!({ "details": {} }), "invalid_grant_shape"),
        (json!({ "details": { "scope": "a.b", "arguments": 1 } }), "invalid_grant_shape"),
        (
            json!({ "details": { "scope": "a.b",
                                 "arguments": { "n": 9_007_199_254_740_993_u64 } } }),
            "invalid_grant_shape",
        ),
        (json!({ "scope": "session" }), "session_scope_requires_session_id"),
        (json!({ "session_id": "ses_000000000001" }), "non_session_scope_rejects_session_id"),
        (json!({ "scope": "run" }), "run_scope_requires_run_id"),
        (json!({ "run_id": "run_000000000001" }), "non_run_scope_rejects_run_id"),
        (json!({ "scope": "run", "run_id": "run_000000000001" }), "value_invalid"),
        (json!({ "scope": "session", "session_id": "ses_000000000001" }), "value_invalid"),
        (json!({ "user_subject_id": "nobody" }), "value_invalid"),
        (json!({ "user_subject_id": null, "agent_subject_id": "nobody" }), "value_invalid"),
        (json!({ "grant_type": "all" }), "value_invalid"),
        (json!({ "expires_at": "2020-01-01T00:00:00Z" }), "value_invalid"),
        (
            json!({ "grant_type": "spawn", "details": { "child_agent_id": "nobody" } }),
            "value_invalid",
        ),
    ];
    for (more, code) in cases {
        let refused = api.grant(more.clone()).await;
        refused.problem(StatusCode::UNPROCESSABLE_ENTITY, "invalid");
        let errors = refused.json()["errors"].clone();
        assert_eq!(
            (errors.as_array().unwrap().len(), &errors[0]["code"]),
            (1, &json!(code)),
            "{more}"
        );
    }
    let all = json!({ "details": { "scope": "x" }, "scope": "run", "session_id": "ses_000000000001",
                      "agent_subject_id": "a", "expires_at": "soon" });
    let refused = api.grant(all).await;
    assert_eq!(refused.json()["errors"].as_array().unwrap().len(), 5, "{}", refused.text());
    assert_eq!(api.get(ALL).await["items"], json!([]));
}

/// X-M58, X-E79, D15, A-12: neither services nor runs can create a grant, whatever their role.
#[tokio::test]
async fn x_m58_only_humans_create_grants() {
    let tenants = Tenants::with(&["team"]).await;
    let put =
        tenants.send(ADMIN, "PUT", "/api/workspaces/team/agents/reader", r#"{"name":"reader"}"#);
    put.await.succeeded();
    let path = "/api/workspaces/team/grants";
    let grant = json!({ "grant_type": "tool_scope", "details": { "scope": "a.b" },
                        "scope": "persistent", "agent_subject_id": "reader" })
    .to_string();
    for role in Role::ALL {
        let refused = tenants.send(tenants.token("team", role), "POST", path, &grant).await;
        refused.problem(StatusCode::FORBIDDEN, "denied");
    }
    let refused = tenants.send(tenants.token("team", Role::Admin), "POST", path, &grant).await;
    assert_eq!(refused.json()["code"], "admin_denied");
    let run =
        tenants.send(ADMIN, "POST", "/api/workspaces/team/runs", r#"{"agent_name":"reader"}"#);
    let token = run.await.succeeded()["token"].as_str().unwrap().to_owned();
    for (method, path) in
        [("POST", path.to_owned()), ("DELETE", format!("{path}/gra_0000000000000001"))]
    {
        let refused = tenants.send(&token, method, &path, &grant).await;
        refused.problem(StatusCode::FORBIDDEN, "denied");
    }
    let made = tenants.send(ADMIN, "POST", path, &grant).await;
    assert_eq!(made.status, StatusCode::CREATED);
    // The deletion of an agent removes its grants, so a new agent with its name gets none.
    let place = "/api/workspaces/team/agents/reader";
    assert_eq!(tenants.send(ADMIN, "DELETE", place, "").await.status, StatusCode::NO_CONTENT);
    assert!(tenants.items(ADMIN, path).await.is_empty());
}

/// A grant for a scope that nearly spells a scope of a server gives a warning.
#[tokio::test]
async fn d15_a_grant_for_a_misspelt_scope_gives_a_warning() {
    let place = tempfile::tempdir().unwrap();
    let api = gated(&place).await;
    let grant = async |scope: &str| {
        let made = api.grant(json!({ "details": { "scope": scope } })).await;
        assert_eq!(made.status, StatusCode::CREATED, "{}", made.text());
        made.json()["warnings"].clone()
    };
    let warning = "no server and no rule requires `demo.wirte`; did you mean `demo.write`?";
    assert_eq!(grant("demo.wirte").await, json!([warning]));
    assert_eq!(grant("demo.write").await, Value::Null);
    assert_eq!(grant("quite.other").await, Value::Null);
    let details = json!({ "scope": "quite.other", "server": "one", "tool": "echo" });
    let made = api.grant(json!({ "details": details })).await;
    let warning = "`echo` requires `demo.write`, not `quite.other`: this grant would not allow any \
                   call of it";
    assert_eq!(made.json()["warnings"], json!([warning]), "{}", made.text());
    // A scope that only a rule requires counts as required. A rule whose scope nearly spells a
    // server's scope gives a warning.
    let rules = r#"@approval("team.release, demo.wirte")
        forbid(principal, action, resource == Tool::"one/echo");"#;
    let rules = json!({ "rules": rules }).to_string();
    let set = api.send("PUT", "/api/workspaces/default/policy", rules).await.succeeded();
    let warning =
        "`@approval` requires `demo.wirte`, which no server requires; did you mean `demo.write`?";
    assert_eq!(set["warnings"], json!([warning]));
    let warning = "no server and no rule requires `team.relaese`; did you mean `team.release`?";
    assert_eq!(grant("team.relaese").await, json!([warning]));
    assert_eq!(grant("demo.wirte").await, Value::Null);
}

/// A grant for an unknown server, or for a name that no server has listed, gives a warning. This
/// holds when a grant is created and when a request is approved.
#[tokio::test]
async fn d15_a_grant_for_an_unknown_server_or_tool_gives_a_warning() {
    let place = tempfile::tempdir().unwrap();
    let api = gated(&place).await;
    let warnings = async |details: Value| {
        let made = api.grant(json!({ "details": details })).await;
        assert_eq!(made.status, StatusCode::CREATED, "{}", made.text());
        made.json()["warnings"].clone()
    };
    let of = |server: &str, tool: &str| {
        let all = [("scope", "demo.write"), ("server", server), ("tool", tool)];
        let said = all.into_iter().filter(|(_, text)| !text.is_empty());
        said.map(|(key, text)| (key.to_owned(), json!(text))).collect::<Map<_, _>>()
    };
    let absent = "there is no server `onee`, neither in the catalog nor live; did you mean `one`?";
    assert_eq!(warnings(json!(of("onee", ""))).await, json!([absent]));
    assert_eq!(warnings(json!(of("onee", "echo"))).await, json!([absent]));
    let unlisted = "the server `one` has listed no tool, prompt or resource `ecko`; did you mean \
                    `echo`?";
    assert_eq!(warnings(json!(of("one", "ecko"))).await, json!([unlisted]));
    let nowhere = "no server has listed a tool, prompt or resource `ecko`; did you mean `echo`?";
    assert_eq!(warnings(json!(of("", "ecko"))).await, json!([nowhere]));
    for (server, tool) in [("one", "echo"), ("", "echo"), ("one", "")] {
        assert_eq!(warnings(json!(of(server, tool))).await, Value::Null, "{server} {tool}");
    }
    let (token, _) = run(&api, json!({})).await;
    let view = api.world.gateway.runs().identify(&token).unwrap();
    let asked = api.control.request_grant(&view, wanted("demo.wirte", "x")).await.unwrap();
    let path = format!("/api/workspaces/default/grant-requests/{}/approve", asked.row.id);
    let approved = api.send("POST", &path, "{}").await.succeeded();
    let misspelt = "no server and no rule requires `demo.wirte`; did you mean `demo.write`?";
    assert_eq!(approved["warnings"], json!([misspelt]));
}

/// D15, X-E80, X-E83, A-12: a run asks, a human decides, and the approval permits the run's next
/// call.
#[tokio::test]
async fn d15_a_run_requests_a_grant_and_a_human_decides() {
    let place = tempfile::tempdir().unwrap();
    let api = gated(&place).await;
    let (token, _) = run(&api, json!({})).await;
    let view = api.world.gateway.runs().identify(&token).unwrap();
    let wanted = wanted("demo.write", "to write");
    let first = api.control.request_grant(&view, wanted.clone()).await.unwrap();
    let again = api.control.request_grant(&view, wanted.clone()).await.unwrap();
    assert_eq!((first.is_new, again.is_new, again.row.id), (true, false, first.row.id));
    assert!(!api.may_echo(&token).await);
    let all = "/api/workspaces/default/grant-requests";
    let waiting = api.get(all).await;
    assert_eq!(waiting["items"][0]["reason"], "to write");
    assert!(waiting["items"][0]["page"].is_null(), "no one signs in here");
    let at = |what: &str| format!("{all}/{}/{what}", first.row.id);
    for past in ["2020-01-01T00:00:00Z", "soon"] {
        let body = json!({ "expires_at": past }).to_string();
        let refused = api.send("POST", &at("approve"), body).await;
        refused.problem(StatusCode::UNPROCESSABLE_ENTITY, "invalid");
        assert_eq!(refused.json()["errors"][0]["field"], "expires_at", "{}", refused.text());
    }
    let body = r#"{"scope": "once", "reason": "but only once",
                   "expires_at": "2127-01-31T12:00:00Z"}"#;
    let approved = api.send("POST", &at("approve"), body).await.succeeded();
    assert_eq!(approved["status"], "approved");
    let grant =
        format!("/api/workspaces/default/grants/{}", approved["grant_id"].as_str().unwrap());
    assert_eq!(api.get(&grant).await["expires_at"], "2127-01-31T12:00:00.000Z");
    assert!(api.may_echo(&token).await && !api.may_echo(&token).await);
    let late = api.send("POST", &at("deny"), "{}").await;
    late.problem(StatusCode::CONFLICT, "conflict");
    assert_eq!(late.json()["code"], "grant_request_decided");
    assert_eq!(api.get(all).await["items"], json!([]));

    let second = api.control.request_grant(&view, wanted).await.unwrap();
    assert!(second.is_new, "what was decided may be asked again");
    let denied = format!("{all}/{}/deny", second.row.id);
    let denied = api.send("POST", &denied, r#"{"reason": "no"}"#).await.succeeded();
    assert_eq!((&denied["status"], &denied["decision_reason"]), (&json!("denied"), &json!("no")));
    assert!(!api.may_echo(&token).await);
    let audit = api.get("/api/workspaces/default/audit?limit=100").await.to_string();
    for kind in ["granted", "denied", "requested", "consumed"] {
        assert!(audit.contains(&format!("permission.{kind}")), "{kind}");
    }
}

/// X-E76: another daemon on the same store sees new and revoked grants.
#[tokio::test]
async fn x_e76_other_daemons_see_new_and_revoked_grants() {
    let place = tempfile::tempdir().unwrap();
    let (api, other) = (gated(&place).await, gated(&place).await);
    let (token, _) = run(&api, json!({})).await;
    assert!(!other.may_echo(&token).await);
    let id = api.granted(json!({})).await;
    let deadline = tokio::time::Instant::now() + super::world::SOON;
    let until = async |wanted: bool| {
        while other.may_echo(&token).await != wanted {
            assert!(tokio::time::Instant::now() < deadline, "it was never seen");
            tokio::task::yield_now().await;
        }
    };
    until(true).await;
    assert_eq!(api.revoke(&id).await, StatusCode::NO_CONTENT);
    until(false).await;
}
