//! Rules of the workspace (D13): a forbidden request does not reach its server, at every endpoint
//! and in every era alike. A request that requires a grant is decided by grants.

use std::sync::Arc;

use narthex_audit::{Audit, AuditSettings};
use narthex_cedar::RuleSet;
use narthex_gateway::{Answering, Caller, Endpoint, GatewayOptions, RunToken, RunView, Step};
use narthex_model::{
    AgentName, Grant, GrantDuration, GrantId, GrantOf, GrantSubject, ToolScope, ToolScopeGrant,
    WorkspaceId,
};
use narthex_policy::{Actors, Authority, Grants, RunPolicy, WorkspaceRules};
use narthex_registry::{MountIdentity, MountOptions, Mountable, config::Entry};
use narthex_testkit::fixture::{Eras, Options, Running};
use serde_json::{Value, json};

use super::{
    following::next,
    scripted::Scripts,
    world::{SOON, World, http_server, legacy, modern, request, transparent},
};

const ERAS: [Eras; 2] = [Eras::Legacy, Eras::Modern];

/// A world with the server `all`, and a run of the agent `writer` whose workspace has rules.
struct Ruled {
    world: World,
    grants: Arc<Grants>,
    rules: Arc<WorkspaceRules>,
}

fn set(rules: &WorkspaceRules, text: &str) {
    let set = RuleSet::compile(text).unwrap_or_else(|faults| panic!("{faults}"));
    rules.set((!set.is_empty()).then(|| Box::new(set) as Box<dyn narthex_policy::Rules>));
}

impl Ruled {
    async fn new(eras: Eras) -> Self {
        Self::over(World::with(&[("all", eras)]).await)
    }

    fn over(mut world: World) -> Self {
        let (grants, rules) = (Arc::<Grants>::default(), Arc::<WorkspaceRules>::default());
        let token = RunToken::generate().unwrap();
        let authority = authority(&token, &grants, &rules);
        let run = RunView::new(&token, RunPolicy::AllAttached).with_authority(authority);
        world.run = Arc::new(run);
        world.gateway.begin_run(&world.run).unwrap();
        Self { world, grants, rules }
    }

    async fn callers(&self) -> Vec<(Caller, &'static str)> {
        let mut callers = Vec::new();
        for (endpoint, prefix) in [(transparent("all"), ""), (Endpoint::Aggregated, "mcp__all__")] {
            let both = self.world.both_callers(&endpoint).await;
            callers.extend(both.map(|caller| (caller, prefix)));
        }
        callers
    }

    fn calls(&self) -> u64 {
        self.world.fixtures[0].fixture.counts().calls
    }

    /// Grants the agent this scope, until the grant is removed.
    fn grant(&self, scope: &str) -> GrantId {
        let (scope, id) = (ToolScope::new(scope).unwrap(), GrantId::new([1; 8]));
        let of = ToolScopeGrant { scope, server: None, tool: None, arguments: None };
        self.grants.add(Grant {
            id,
            subject: GrantSubject::Agent(AgentName::new("writer").unwrap()),
            of: GrantOf::ToolScope(of),
            duration: GrantDuration::Persistent,
            expires_at: None,
        });
        id
    }

    async fn echo(&self, (caller, prefix): &(Caller, &str), message: &str) -> Value {
        let params = json!({"name": format!("{prefix}echo"), "arguments": {"message": message}});
        self.world.ask(caller, "tools/call", params).await
    }
}

fn authority(token: &RunToken, grants: &Arc<Grants>, rules: &Arc<WorkspaceRules>) -> Authority {
    let agent = AgentName::new("writer").ok();
    let actors = Actors { agent, run: Some(token.run_id()), ..Actors::default() };
    Authority::new(actors, grants.clone(), rules.clone())
}

/// The error object of a failed call.
fn error(answer: &Value) -> Value {
    let tool = &answer["result"]["structuredContent"]["error"];
    if tool.is_null() { answer["error"]["data"].clone() } else { tool.clone() }
}

fn assert_forbidden(answer: &Value, rule: &str) {
    let error = error(answer);
    assert_eq!(error["kind"], "permission_required", "{answer}");
    assert_eq!(error["details"]["rule"], rule, "{answer}");
    assert!(error["details"].get("scopes").is_none(), "{answer}");
}

/// D13, S14: a forbidden call does not reach its server, and the caller gets the rule and the
/// reason; a change of the rules counts for the next call of the same run.
#[tokio::test(flavor = "multi_thread")]
async fn d13_a_forbidden_call_does_not_reach_its_server() {
    for eras in ERAS {
        let ruled = Ruled::new(eras).await;
        for caller in ruled.callers().await {
            set(&ruled.rules, "");
            assert!(error(&ruled.echo(&caller, "x").await).is_null());
            let rule = r#"@id("no-echo") @reason("be quiet")
                forbid(principal == Agent::"writer", action, resource == Tool::"all/echo");"#;
            set(&ruled.rules, rule);
            let before = ruled.calls();
            let refused = ruled.echo(&caller, "x").await;
            assert_eq!(refused["result"]["isError"], true, "{refused}");
            assert_forbidden(&refused, "no-echo");
            assert_eq!(error(&refused)["details"]["reason"], "be quiet");
            assert!(refused.to_string().contains("be quiet"), "{refused}");
            assert_eq!(ruled.calls(), before, "it reached the server");
            let free = json!({"name": format!("{}test_simple_text", caller.1), "arguments": {}});
            let free = ruled.world.ask(&caller.0, "tools/call", free).await;
            assert!(error(&free).is_null(), "{free}");
            // The lists show a forbidden tool all the same.
            let listed = ruled.world.ask(&caller.0, "tools/list", json!({})).await;
            assert!(listed.to_string().contains("echo"), "{listed}");
        }
    }
}

/// D13, X-M55: a rule that asks for approval makes a call require its scope, which a grant gives.
#[tokio::test(flavor = "multi_thread")]
async fn d13_a_grant_permits_a_call_whose_rule_requires_approval() {
    for eras in ERAS {
        let ruled = Ruled::new(eras).await;
        let rule = r#"@approval("x.loud") forbid(principal, action, resource is Tool)
            when { context.arguments has message && context.arguments.message like "*!" };"#;
        set(&ruled.rules, rule);
        for caller in ruled.callers().await {
            assert!(error(&ruled.echo(&caller, "hello").await).is_null());
            let refused = ruled.echo(&caller, "hello!").await;
            let told = error(&refused);
            assert_eq!(told["kind"], "permission_required", "{refused}");
            assert_eq!(told["details"]["scopes"], json!(["x.loud"]), "{refused}");
            let id = ruled.grant("x.loud");
            let answer = ruled.echo(&caller, "hello!").await;
            assert!(error(&answer).is_null(), "{answer}");
            assert!(ruled.grants.remove(id));
        }
    }
}

/// S14: resources, prompts, completion, the gateway's own tools for them and servers' additions to
/// the protocol pass the same rules; a caller that asks for an absent item learns of no rule.
#[tokio::test(flavor = "multi_thread")]
async fn s14_resources_prompts_and_completion_pass_the_rules() {
    for eras in ERAS {
        let ruled = Ruled::new(eras).await;
        let rule = r#"@id("none") forbid(principal, action, resource in Server::"all");"#;
        set(&ruled.rules, rule);
        for (caller, prefix) in ruled.callers().await {
            let prompt = format!("{prefix}test_prompt_with_arguments");
            let argument = json!({"name": "arg1", "value": "p"});
            let of_prompt = json!({"type": "ref/prompt", "name": prompt});
            let arguments = json!({"arg1": "a", "arg2": "b"});
            let mut asked = vec![
                ("resources/read", json!({"uri": "test://static-text"})),
                ("resources/read", json!({"uri": "test://template/7/data"})),
                ("prompts/get", json!({"name": prompt, "arguments": arguments})),
                ("completion/complete", json!({"ref": of_prompt, "argument": argument})),
            ];
            if prefix.is_empty() {
                asked.push(("vendor/thing", json!({})));
            } else {
                let arguments = json!({"uri": "test://static-text"});
                let name = format!("{prefix}read_resource");
                asked.push(("tools/call", json!({"name": name, "arguments": arguments})));
            }
            for (method, params) in asked {
                let refused = ruled.world.ask(&caller, method, params).await;
                assert_forbidden(&refused, "none");
            }
            let absent = json!({"name": format!("{prefix}absent"), "arguments": {}});
            let absent = ruled.world.ask(&caller, "tools/call", absent).await;
            assert!(!absent.to_string().contains("permission"), "{absent}");
        }
    }
}

/// D13, S14: a rule sees the endpoint and the era. It decides alike for all where its condition
/// names neither.
#[tokio::test(flavor = "multi_thread")]
async fn d13_a_rule_sees_the_endpoint_and_the_era_of_a_call() {
    let ruled = Ruled::new(Eras::Modern).await;
    let callers = ruled.callers().await;
    for (condition, expected) in [
        (r#"context.endpoint == "aggregated""#, [false, false, true, true]),
        (r#"context.era == "legacy""#, [false, true, false, true]),
        (r#"context.annotations.destructiveHint"#, [true, true, true, true]),
        (r#"principal.is_child || principal.user != """#, [false, false, false, false]),
    ] {
        let rule = format!(
            "@id(\"it\") forbid(principal, action, resource is Tool) when {{ {condition} }};"
        );
        set(&ruled.rules, &rule);
        let mut refused = Vec::new();
        for caller in &callers {
            refused.push(error(&ruled.echo(caller, "x").await)["details"]["rule"] == "it");
        }
        assert_eq!(refused, expected, "{condition}");
    }
}

/// D13, S14: policy decides on later requests about a task as on the call that made the task, and
/// by their own method. This holds also if that call required no grant.
#[tokio::test(flavor = "multi_thread")]
async fn d13_a_rule_distinguishes_calls_from_requests_about_their_tasks() {
    let ruled = Ruled::new(Eras::Modern).await;
    let with_tasks = |mut params: Value| {
        params["_meta"] = json!({"io.modelcontextprotocol/clientCapabilities":
            {"extensions": {"io.modelcontextprotocol/tasks": {}}}});
        params
    };
    for (endpoint, prefix) in [(transparent("all"), ""), (Endpoint::Aggregated, "mcp__all__")] {
        let caller = ruled.world.modern_caller(endpoint);
        let name = format!("{prefix}confirm_delete");
        let start = with_tasks(json!({"name": name, "arguments": {"filename": "a.txt"}}));
        set(&ruled.rules, "");
        let started = ruled.world.ask(&caller, "tools/call", start.clone()).await;
        let id = started["result"]["taskId"].as_str().unwrap_or_else(|| panic!("{started}"));
        let poll = with_tasks(json!({"taskId": id}));
        for (origin, is_refused) in [("call", [true, false]), ("task", [false, true])] {
            let rule = format!(
                "@id(\"it\") forbid(principal, action, resource == Tool::\"all/confirm_delete\") \
                 when {{ context.origin == \"{origin}\" }};"
            );
            set(&ruled.rules, &rule);
            let call = ruled.world.ask(&caller, "tools/call", start.clone()).await;
            let polled = ruled.world.ask(&caller, "tasks/get", poll.clone()).await;
            let refused = [call, polled].map(|answer| error(&answer)["details"]["rule"] == "it");
            assert_eq!(refused, is_refused, "{origin}");
        }
    }
}

/// D13, S24: a rule about a server of the catalog holds under every alias that a run gives the
/// server.
#[tokio::test(flavor = "multi_thread")]
async fn s24_a_rule_holds_under_every_alias() {
    let world = World::settled(Vec::new(), GatewayOptions::default()).await;
    let fixture = Running::http(Options { eras: Eras::Modern, ..Options::default() }).await;
    let fixture = fixture.unwrap();
    let definition = Arc::new(http_server("harmless", &fixture.url));
    let identity =
        |server: &str| MountIdentity { server: Some(server.into()), ..MountIdentity::default() };
    let rules = Arc::<WorkspaceRules>::default();
    set(&rules, r#"@id("github") forbid(principal, action, resource in Server::"github");"#);
    for (server, is_refused) in [("default/github", true), ("default/other", false)] {
        let one = Mountable {
            identity: Arc::new(identity(server)),
            ..Mountable::new(definition.clone())
        };
        let options = MountOptions { timeout: SOON, ..MountOptions::default() };
        let own = world.gateway.registry().mount(vec![one], &options).await.unwrap();
        let token = RunToken::generate().unwrap();
        let workspace = WorkspaceId::default();
        let run = RunView::with_servers(&token, workspace, RunPolicy::default(), own);
        let run = run.with_authority(authority(&token, &Arc::default(), &rules));
        let run = Arc::new(run);
        world.gateway.begin_run(&run).unwrap();
        let caller = Caller::new(run, transparent("harmless"), None);
        let params = json!({"name": "echo", "arguments": {"message": "x"}});
        let answer = world.call(&caller, request(&caller, "tools/call", params)).await;
        assert_eq!(error(&answer)["details"]["rule"] == "github", is_refused, "{answer}");
    }
}

/// D13, S32, A-5: the audit names the check and the rule that refused a call.
#[tokio::test(flavor = "multi_thread")]
async fn s32_the_audit_names_the_rule() {
    let dir = tempfile::tempdir().unwrap();
    let audit = Audit::open(dir.path(), &AuditSettings::default()).unwrap();
    let fixture = Running::http(Options { eras: Eras::Modern, ..Options::default() }).await;
    let fixture = fixture.unwrap();
    let entry = Entry::Server(http_server("all", &fixture.url));
    let world = World::recorded(vec![entry], GatewayOptions::default(), None, audit.clone());
    let settled = |snapshot: &narthex_registry::Snapshot| snapshot.is_settled();
    world.gateway.registry().wait_until(SOON, settled).await;
    let ruled = Ruled::over(World { fixtures: vec![fixture], ..world });
    set(&ruled.rules, r#"@id("no-echo") forbid(principal, action, resource == Tool::"all/echo");"#);
    let caller = (ruled.world.modern_caller(transparent("all")), "");
    assert_forbidden(&ruled.echo(&caller, "x").await, "no-echo");
    audit.flush().await;
    let text = fs_err::read_to_string(dir.path().join("audit.jsonl")).unwrap();
    let line = text.lines().find(|line| line.contains("\"refused_by\":\"rules\""));
    assert!(line.expect("no event says so").contains("\"rule\":\"no-echo\""), "{line:?}");
}

const WATCHED: &str = "test://watched-resource";

/// The next message of a stream; `None` at its end.
async fn step(answering: &mut Answering) -> Option<String> {
    let step = tokio::time::timeout(SOON, answering.next()).await.expect("nothing comes")?;
    let bytes = match step {
        Step::Message(message) => message.into_bytes(),
        Step::Answer(answer) => answer.payload.into_bytes(),
        Step::Break { .. } => return Some(String::new()),
    };
    Some(String::from_utf8(bytes.to_vec()).unwrap())
}

const FORBIDS: &str = r#"@id("watch") forbid(principal, action, resource in Server::"all")
    when { resource.name like "test://watched*" };"#;
const ASKS: &str = r#"@id("ask") @approval("x.read") forbid(principal, action, resource)
    when { resource.name like "test://watched*" };
    @id("echo") forbid(principal, action, resource == Tool::"all/echo");"#;

/// D13, D5: a permitted stream ends when a new rule forbids its resource, or requires a scope that
/// has not been granted. A stream that the new rules permit stays open.
#[tokio::test(flavor = "multi_thread")]
async fn d5_streams_end_when_a_new_rule_forbids_their_resource() {
    for eras in ERAS {
        let ruled = Ruled::new(eras).await;
        for (endpoint, prefix) in [(transparent("all"), ""), (Endpoint::Aggregated, "mcp__all__")] {
            let caller = (ruled.world.modern_caller(endpoint), prefix);
            ruled.check_stream(&caller, Some(FORBIDS)).await;
            ruled.check_stream(&caller, None).await;
        }
    }
}

impl Ruled {
    /// A stream begins without rules, and stays open with rules that a grant meets. It ends with
    /// the rules `last`, or else when the grant is revoked.
    async fn check_stream(&self, (caller, prefix): &(Caller, &str), last: Option<&str>) {
        set(&self.rules, "");
        let wanted = json!({"notifications": {"resourceSubscriptions": [WATCHED]}});
        let listen = modern(5, "subscriptions/listen", wanted);
        let mut listening = self.world.gateway.call(caller, listen).await;
        let first = step(&mut listening).await.unwrap();
        assert!(first.contains(WATCHED), "{first}");
        let grant = self.grant("x.read");
        set(&self.rules, ASKS);
        let name = format!("{prefix}trigger_resource_updated");
        let params = json!({"name": name, "arguments": {"uri": WATCHED}});
        let touched = self.world.ask(caller, "tools/call", params).await;
        assert!(error(&touched).is_null(), "{touched}");
        let told = step(&mut listening).await.unwrap();
        assert!(told.contains("resources/updated"), "{told}");
        match last {
            Some(rules) => set(&self.rules, rules),
            None => assert!(self.grants.remove(grant)),
        }
        while step(&mut listening).await.is_some() {}
        self.grants.remove(grant);
    }
}

/// A server that sends a message when a subscription ends, and repeats its level.
const GIVEN_UP: [&str; 3] = [
    r#"tell() {
      printf '{"jsonrpc":"2.0","method":"notifications/message","params":{%s}}\n' "$1"
    }"#,
    r#"case $line in
    *'"method":"resources/unsubscribe"'*) tell '"data":"given up","level":"error"' ;;
    *'"method":"logging/setLevel"'*) tell '"data":"set","level":"error"' ;;
    esac"#,
    "",
];

/// D13, D5: a legacy client's subscription ends like a stream, on a shared link and on its own.
#[tokio::test(flavor = "multi_thread")]
async fn d5_subscriptions_end_when_a_new_rule_forbids_their_resource() {
    let scripts = Scripts::new();
    let entries = vec![scripts.entry("one", GIVEN_UP)];
    let ruled = Ruled::over(World::settled(entries, GatewayOptions::default()).await);
    let forbids = r#"@id("a") forbid(principal, action, resource == Resource::"one/test://a");"#;
    for endpoint in [transparent("one"), Endpoint::Aggregated] {
        for capabilities in [json!({}), json!({"elicitation": {}})] {
            set(&ruled.rules, "");
            let session = ruled.world.session(&endpoint, capabilities.clone()).await;
            let mut outbox = session.take_outbox().unwrap();
            let run = ruled.world.run.clone();
            let caller = Caller::new(run, endpoint.clone(), Some(session.clone()));
            let level = legacy(1, "logging/setLevel", json!({"level": "error"}));
            assert_eq!(ruled.world.call(&caller, level).await["result"], json!({}));
            let subscribe = legacy(2, "resources/subscribe", json!({"uri": "test://a"}));
            assert_eq!(ruled.world.call(&caller, subscribe).await["result"], json!({}));
            set(&ruled.rules, forbids);
            while next(&mut outbox, "notifications/message").await["params"]["data"] != "given up" {
            }
            let subscribe = legacy(3, "resources/subscribe", json!({"uri": "test://a"}));
            assert_forbidden(&ruled.world.call(&caller, subscribe).await, "a");
            ruled.world.gateway.end_session(&session).await;
        }
    }
    ruled.world.gateway.drain().await;
}
