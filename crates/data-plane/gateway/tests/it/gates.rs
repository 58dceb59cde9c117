//! Tool scopes and grants (D14): a gated request does not reach its server without a grant, at
//! every endpoint and in every era alike.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex},
};

use narthex_gateway::{
    Answering, Caller, Consumed, Consuming, Endpoint, GatewayOptions, GrantLedger, LedgerError,
    RunToken, RunView, Step,
};
use narthex_model::{
    AgentName, Gates, Grant, GrantDuration, GrantId, GrantOf, GrantSubject, PrincipalId, ToolScope,
    ToolScopeGrant, ToolScopes, WorkspaceId,
};
use narthex_policy::{Actors, Authority, Grants, RunPolicy, WorkspaceRules};
use narthex_registry::{MountOptions, MountSet, Mountable, config::Entry};
use narthex_testkit::fixture::{Eras, Options, Quirk, Running};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::world::{SOON, World, http_server, legacy, parse, transparent};

const ERAS: [Eras; 2] = [Eras::Legacy, Eras::Modern];

fn scopes(name: &str) -> ToolScopes {
    [ToolScope::new(name).unwrap()].into()
}

fn named(names: &[(&str, &str)]) -> BTreeMap<String, ToolScopes> {
    names.iter().map(|(name, scope)| ((*name).to_owned(), scopes(scope))).collect()
}

fn gates() -> Gates {
    Gates::new(
        named(&[("echo", "x.call")]),
        &named(&[("test://static-*", "x.read"), ("test://template/*", "x.read")]),
        named(&[("test_prompt_with_arguments", "x.prompt")]),
    )
}

fn agent() -> AgentName {
    AgentName::new("writer").unwrap()
}

fn grant(number: u8, scope: &str, duration: GrantDuration) -> Grant {
    let scope = ToolScope::new(scope).unwrap();
    let of = ToolScopeGrant { scope, server: None, tool: None, arguments: None };
    let id = GrantId::new([number; 8]);
    let subject = GrantSubject::Agent(agent());
    Grant { id, subject, of: GrantOf::ToolScope(of), duration, expires_at: None }
}

/// Stores used-up grants in memory.
#[derive(Debug, Default)]
struct Ledger {
    used: Mutex<BTreeSet<GrantId>>,
    is_away: bool,
}

impl GrantLedger for Ledger {
    fn consume<'a>(&'a self, _run: &'a RunView, grants: Vec<GrantId>) -> Consuming<'a> {
        Box::pin(async move {
            if self.is_away {
                return Err(LedgerError("the store is away; try again later".to_owned()));
            }
            let mut used = self.used.lock().unwrap();
            let gone: Vec<_> = grants.iter().filter(|id| used.contains(id)).copied().collect();
            if !gone.is_empty() {
                return Ok(Consumed::Gone(gone));
            }
            used.extend(grants);
            Ok(Consumed::All)
        })
    }
}

/// A world with the server `all`, gated, and a run of the agent `writer`.
struct Gated {
    world: World,
    grants: Arc<Grants>,
    ledger: Arc<Ledger>,
}

impl Gated {
    async fn new(eras: Eras) -> Self {
        Self::gated(eras, gates(), Ledger::default()).await
    }

    async fn gated(eras: Eras, gates: Gates, ledger: Ledger) -> Self {
        Self::over(Options { eras, ..Options::default() }, gates, ledger).await
    }

    async fn over(options: Options, gates: Gates, ledger: Ledger) -> Self {
        let fixture = Running::http(options).await.unwrap();
        let mut server = http_server("all", &fixture.url);
        server.gates = gates.into();
        let settled = World::settled(vec![Entry::Server(server)], GatewayOptions::default()).await;
        let mut world = World { fixtures: vec![fixture], ..settled };
        let (grants, ledger) = (Arc::<Grants>::default(), Arc::new(ledger));
        world.gateway.set_ledger(ledger.clone());
        world.run = begin(&world, &grants, None);
        Self { world, grants, ledger }
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

    async fn echo(&self, caller: &Caller, prefix: &str, message: &str) -> Value {
        let params = json!({"name": format!("{prefix}echo"), "arguments": {"message": message}});
        self.world.ask(caller, "tools/call", params).await
    }
}

/// Begins a run with all shared servers, or only with servers of its own.
fn begin(world: &World, grants: &Arc<Grants>, own: Option<MountSet>) -> Arc<RunView> {
    let token = RunToken::generate().unwrap();
    let actors = Actors { agent: Some(agent()), run: Some(token.run_id()), ..Actors::default() };
    let run = match own {
        None => RunView::new(&token, RunPolicy::AllAttached),
        Some(own) => {
            RunView::with_servers(&token, WorkspaceId::default(), RunPolicy::default(), own)
        }
    };
    let authority = Authority::new(actors, grants.clone(), WorkspaceRules::none());
    let run = Arc::new(run.with_authority(authority));
    world.gateway.begin_run(&run).unwrap();
    run
}

fn kind(answer: &Value) -> &Value {
    let tool = &answer["result"]["structuredContent"]["error"]["kind"];
    if tool.is_null() { &answer["error"]["data"]["kind"] } else { tool }
}

/// X-M54, X-M55, X-M57, S14, A-2: a gated call does not reach its server without a grant, names the
/// scope, and succeeds with one. This holds at both endpoints and in all pairs of eras. Tools that
/// are not named need none.
#[tokio::test(flavor = "multi_thread")]
async fn x_m55_a_gated_call_needs_a_grant_at_every_endpoint_in_every_era() {
    for eras in ERAS {
        let gated = Gated::new(eras).await;
        for (caller, prefix) in gated.callers().await {
            let before = gated.calls();
            let refused = gated.echo(&caller, prefix, "x").await;
            let error = &refused["result"]["structuredContent"]["error"];
            assert_eq!(refused["result"]["isError"], true, "{refused}");
            assert_eq!(error["kind"], "permission_required", "{refused}");
            assert_eq!(error["details"]["scopes"], json!(["x.call"]), "{refused}");
            assert_eq!(gated.calls(), before, "it reached the server");
            let free = json!({"name": format!("{prefix}test_simple_text"), "arguments": {}});
            let free = gated.world.ask(&caller, "tools/call", free).await;
            assert_eq!(kind(&free), &Value::Null, "{free}");

            gated.grants.add(grant(1, "x.call", GrantDuration::Persistent));
            let answer = gated.echo(&caller, prefix, "x").await;
            assert!(answer["result"].to_string().contains('x'), "{answer}");
            assert_ne!(answer["result"]["isError"], true, "{answer}");
            assert!(gated.grants.remove(GrantId::new([1; 8])));
            assert_eq!(kind(&gated.echo(&caller, prefix, "x").await), "permission_required");
        }
    }
}

/// S14, D5: resources, templates, prompts, completion and the gateway's own tools for them pass the
/// same gate; a caller that asks for an absent item learns of no gate.
#[tokio::test(flavor = "multi_thread")]
async fn s14_resources_prompts_and_completion_are_gated_alike() {
    for eras in ERAS {
        let gated = Gated::new(eras).await;
        for (caller, prefix) in gated.callers().await {
            let prompt = format!("{prefix}test_prompt_with_arguments");
            let argument = json!({"name": "arg1", "value": "p"});
            let of_prompt = json!({"type": "ref/prompt", "name": prompt});
            let template = "test://template/{id}/data";
            let of_template = json!({"type": "ref/resource", "uri": template});
            let arguments = json!({"arg1": "a", "arg2": "b"});
            let mut asked = vec![
                ("resources/read", json!({"uri": "test://static-text"}), "x.read"),
                ("resources/read", json!({"uri": "test://template/7/data"}), "x.read"),
                ("resources/read", json!({"uri": "TEST://template/7/data"}), "x.read"),
                ("prompts/get", json!({"name": prompt, "arguments": arguments}), "x.prompt"),
                (
                    "completion/complete",
                    json!({"ref": of_prompt, "argument": argument}),
                    "x.prompt",
                ),
                (
                    "completion/complete",
                    json!({"ref": of_template, "argument": argument}),
                    "x.read",
                ),
            ];
            if !prefix.is_empty() {
                let arguments = json!({"uri": "test://static-text"});
                let name = format!("{prefix}read_resource");
                asked.push(("tools/call", json!({"name": name, "arguments": arguments}), "x.read"));
            }
            for (method, params, scope) in asked {
                let refused = gated.world.ask(&caller, method, params.clone()).await;
                assert_eq!(kind(&refused), "permission_required", "{method} {params}: {refused}");
                assert!(refused.to_string().contains(scope), "{refused}");
                gated.grants.add(grant(1, scope, GrantDuration::Persistent));
                let answer = gated.world.ask(&caller, method, params.clone()).await;
                assert_eq!(kind(&answer), &Value::Null, "{method} {params}: {answer}");
                assert!(gated.grants.remove(GrantId::new([1; 8])));
            }
            for (method, params) in [
                ("tools/call", json!({"name": "absent", "arguments": {}})),
                ("prompts/get", json!({"name": "absent"})),
                ("resources/read", json!({"uri": "te\tst://static-text"})),
                ("resources/read", json!({"uri": " test://static-text"})),
            ] {
                let absent = gated.world.ask(&caller, method, params).await;
                assert!(!absent.to_string().contains("permission"), "{absent}");
                assert!(absent.get("error").is_some() || !kind(&absent).is_null(), "{absent}");
            }
        }
    }
}

/// X-E75, D25: one call uses a grant for a single call up, also if several callers ask at the same
/// time. The ledger decides which call that is.
#[tokio::test(flavor = "multi_thread")]
async fn x_e75_one_of_many_concurrent_calls_uses_a_grant_for_a_single_call() {
    let gated = Gated::new(Eras::Modern).await;
    gated.grants.add(grant(1, "x.call", GrantDuration::Once));
    let caller = gated.world.modern_caller(transparent("all"));
    let before = gated.calls();
    let mut calling = JoinSet::new();
    for _ in 0..50 {
        let (world, caller) = (gated.world.seen_by(&gated.world.run), caller.clone());
        calling.spawn(async move {
            let params = json!({"name": "echo", "arguments": {"message": "x"}});
            world.ask(&caller, "tools/call", params).await
        });
    }
    let all = calling.join_all().await;
    let went = all.iter().filter(|answer| kind(answer).is_null()).count();
    assert_eq!((went, gated.calls() - before), (1, 1), "{all:?}");
    // A grant that another daemon has used up does not count; the next grant does.
    gated.ledger.used.lock().unwrap().insert(GrantId::new([2; 8]));
    gated.grants.add(grant(2, "x.call", GrantDuration::Once));
    assert_eq!(kind(&gated.echo(&caller, "", "x").await), "permission_required");
    gated.ledger.used.lock().unwrap().insert(GrantId::new([3; 8]));
    gated.grants.add(grant(3, "x.call", GrantDuration::Once));
    gated.grants.add(grant(4, "x.call", GrantDuration::Once));
    assert!(kind(&gated.echo(&caller, "", "x").await).is_null());
    assert_eq!(kind(&gated.echo(&caller, "", "x").await), "permission_required");
}

/// S26, D25: a grant for a single call pays for each round of that call once, and for no other
/// arguments, also where the arguments have no digest.
#[tokio::test(flavor = "multi_thread")]
async fn s26_a_grant_for_a_single_call_covers_each_round_of_the_call_once() {
    let tool = "test_input_required_result_request_state";
    let gates = Gates::new(named(&[(tool, "x.call")]), &BTreeMap::new(), BTreeMap::new());
    let gated = Gated::gated(Eras::Modern, gates, Ledger::default()).await;
    let caller = gated.world.modern_caller(transparent("all"));
    let ask = async |params: &Value| gated.world.ask(&caller, "tools/call", params.clone()).await;
    for (number, arguments, other) in [
        (1, json!({}), json!({"amount": 2})),
        // Readers round these numbers, so such arguments have no digest.
        (2, json!({"big": 12345678901234567890_u64}), json!({"big": 12345678901234567891_u64})),
    ] {
        let capabilities = json!({"io.modelcontextprotocol/clientCapabilities":
            {"elicitation": {}, "sampling": {}, "roots": {}}});
        let mut call = json!({"name": tool, "arguments": arguments, "_meta": capabilities});
        gated.grants.add(grant(number, "x.call", GrantDuration::Once));
        let first = ask(&call).await;
        assert_eq!(first["result"]["resultType"], "input_required", "{first}");
        let key = first["result"]["inputRequests"].as_object().unwrap().keys().next().unwrap();
        let content = json!({"confirmed": true, "name": "x", "ok": true, "confirm": true});
        call["inputResponses"] = json!({key: {"action": "accept", "content": content}});
        call["requestState"] = first["result"]["requestState"].clone();
        let mut others = call.clone();
        others["arguments"] = other;
        let before = gated.calls();
        assert_eq!(kind(&ask(&others).await), "permission_required");
        let second = ask(&call).await;
        assert_eq!(second["result"]["resultType"], "complete", "{second}");
        for _ in 0..2 {
            assert_eq!(kind(&ask(&call).await), "permission_required", "it was done");
        }
        assert_eq!(gated.calls() - before, 1);
    }
}

/// S26, E174: a legacy client's answers to a modern server's questions cause further rounds. All
/// rounds use one grant for a single call, and policy decides on each round anew.
#[tokio::test(flavor = "multi_thread")]
async fn s26_rounds_of_a_legacy_client_use_one_grant_and_each_round_is_checked() {
    let tool = "test_input_required_result_multi_round";
    let gates = Gates::new(named(&[(tool, "x.call")]), &BTreeMap::new(), BTreeMap::new());
    let gated = Gated::gated(Eras::Modern, gates, Ledger::default()).await;
    let endpoint = transparent("all");
    let session = gated.world.session(&endpoint, json!({"elicitation": {}})).await;
    let caller = Caller::new(gated.world.run.clone(), endpoint, Some(session.clone()));
    let call = async || {
        let call = legacy(7, "tools/call", json!({"name": tool, "arguments": {}}));
        gated.world.gateway.call(&caller, call).await
    };
    // Answers each question after `first` is done; returns the answer to the call.
    let answer = async |mut call: Answering, first: &dyn Fn()| loop {
        match call.next().await.unwrap() {
            Step::Message(question) => {
                first();
                let question: Value = serde_json::from_slice(&question.into_bytes()).unwrap();
                let content = json!({"name": "ada", "color": "red"});
                let result = json!({"action": "accept", "content": content});
                let response = json!({"jsonrpc": "2.0", "id": question["id"], "result": result});
                gated.world.gateway.respond(&session, parse(&response)).await;
            }
            Step::Break { .. } => {}
            Step::Answer(answer) => {
                return serde_json::from_slice::<Value>(&answer.payload.into_bytes()).unwrap();
            }
        }
    };
    gated.grants.add(grant(1, "x.call", GrantDuration::Once));
    let done = answer(call().await, &|| {}).await;
    assert_eq!(done["result"]["content"][0]["text"], "ada likes red", "{done}");
    assert_eq!((gated.ledger.used.lock().unwrap().len(), gated.calls()), (1, 3));
    assert_eq!(kind(&answer(call().await, &|| {}).await), "permission_required");

    gated.grants.add(grant(2, "x.call", GrantDuration::Persistent));
    let revoke = || assert!(gated.grants.remove(GrantId::new([2; 8])));
    let refused = answer(call().await, &revoke).await;
    assert_eq!(kind(&refused), "permission_required", "{refused}");
    assert_eq!(gated.calls(), 4, "a round was made without a grant");
}

/// E184, D25: policy decides anew on the retry of a call that waited for its client. A grant for a
/// single call counts once for the call, and the end of a grant ends the call.
#[tokio::test(flavor = "multi_thread")]
async fn e184_the_retry_of_a_parked_call_is_checked_against_grants_again() {
    let tool = "test_input_required_result_elicitation";
    let gates = Gates::new(named(&[(tool, "x.call")]), &BTreeMap::new(), BTreeMap::new());
    let gated = Gated::gated(Eras::Legacy, gates, Ledger::default()).await;
    let caller = gated.world.modern_caller(transparent("all"));
    let ask = async |params: &Value| gated.world.ask(&caller, "tools/call", params.clone()).await;
    let declared = json!({"io.modelcontextprotocol/clientCapabilities": {"elicitation": {}}});
    let call = json!({"name": tool, "arguments": {}, "_meta": declared});
    let retry = |first: &Value| {
        assert_eq!(first["result"]["resultType"], "input_required", "{first}");
        let key = first["result"]["inputRequests"].as_object().unwrap().keys().next().unwrap();
        let mut retry = call.clone();
        let reply = json!({"action": "accept", "content": {"name": "Ada"}});
        retry["inputResponses"] = json!({key: reply});
        retry["requestState"] = first["result"]["requestState"].clone();
        retry
    };
    gated.grants.add(grant(1, "x.call", GrantDuration::Once));
    let first = ask(&call).await;
    let done = ask(&retry(&first)).await;
    assert_eq!(done["result"]["content"][0]["text"], "Hello, Ada!", "{done}");
    assert_eq!(kind(&ask(&call).await), "permission_required");

    gated.grants.add(grant(2, "x.call", GrantDuration::Persistent));
    let first = ask(&call).await;
    assert!(gated.grants.remove(GrantId::new([2; 8])));
    assert_eq!(kind(&ask(&retry(&first)).await), "permission_required");
    gated.grants.add(grant(3, "x.call", GrantDuration::Persistent));
    let gone = ask(&retry(&first)).await;
    assert_eq!(gone["error"]["code"], -32602, "it was ended: {gone}");
}

/// X-E75, D25: a call that certainly no server has seen has used up no grant for a single call: the
/// next call gets this grant, and no other one.
#[tokio::test(flavor = "multi_thread")]
async fn x_e75_an_unsent_call_uses_no_grant_for_a_single_call() {
    let quirks = vec![Quirk::ForgetCalls];
    let forgets = Options { eras: Eras::Legacy, quirks, ..Options::default() };
    let gated = Gated::over(forgets, gates(), Ledger::default()).await;
    gated.grants.add(grant(1, "x.call", GrantDuration::Once));
    let caller = gated.world.modern_caller(transparent("all"));
    let failed = gated.echo(&caller, "", "x").await;
    assert_eq!(kind(&failed), "transport_error", "{failed}");
    assert_eq!(gated.ledger.used.lock().unwrap().len(), 1, "it is used up for everybody else");
    let gates_nothing = json!({"name": "add", "arguments": {"a": 1, "b": 2}});
    gated.world.ask(&caller, "tools/call", gates_nothing).await;
    let other = begin(&gated.world, &gated.grants, None);
    let elsewhere = Caller::new(other, transparent("all"), None);
    assert_eq!(kind(&gated.echo(&elsewhere, "", "x").await), "permission_required");
    let done = gated.echo(&caller, "", "x").await;
    assert!(kind(&done).is_null(), "{done}");
    assert_eq!(kind(&gated.echo(&caller, "", "x").await), "permission_required");
}

/// D25: a store that cannot be asked uses no grant up, and lets no call through.
#[tokio::test(flavor = "multi_thread")]
async fn d25_no_grant_for_a_single_call_applies_while_the_ledger_is_away() {
    let away = Ledger { is_away: true, ..Ledger::default() };
    let gated = Gated::gated(Eras::Modern, gates(), away).await;
    gated.grants.add(grant(1, "x.call", GrantDuration::Once));
    let caller = gated.world.modern_caller(transparent("all"));
    for _ in 0..2 {
        let refused = gated.echo(&caller, "", "x").await;
        assert!(refused["error"]["message"].as_str().unwrap().contains("away"), "{refused}");
    }
    assert_eq!(gated.calls(), 0);
}

/// D12: runs that share a connection each have their own gates and limits.
#[tokio::test(flavor = "multi_thread")]
async fn d12_runs_on_a_shared_connection_have_separate_gates_and_exposure_rules() {
    let world = World::changed([("all", Eras::Modern)], |_| {}).await;
    let registry = world.gateway.registry();
    let shared = registry.snapshot().servers[0].definition.clone().unwrap();
    let mut seen = Vec::new();
    for (is_gated, is_narrow) in [(false, false), (true, false), (false, true)] {
        let mut definition = (*shared).clone();
        if is_gated {
            definition.gates = gates().into();
        }
        if is_narrow {
            definition.exposed.tools = narthex_model::NameRule::new(Some(&["test_*"]), &[]);
        }
        let set = vec![Mountable::new(Arc::new(definition))];
        let options = MountOptions { timeout: SOON, ..MountOptions::default() };
        let set = registry.mount(set, &options).await.unwrap();
        let id = set.mounts()[0].id();
        let grants = Arc::<Grants>::default();
        let run = begin(&world, &grants, Some(set));
        let run = world.seen_by(&run);
        let caller = run.modern_caller(transparent("all"));
        let params = json!({"name": "echo", "arguments": {"message": "x"}});
        let answer = run.ask(&caller, "tools/call", params).await;
        seen.push((id, kind(&answer).as_str().map(str::to_owned)));
    }
    assert_eq!(seen[0].0, seen[1].0, "they share");
    assert_eq!(seen[0].0, seen[2].0, "they share");
    let kinds: Vec<_> = seen.iter().map(|(_, kind)| kind.as_deref()).collect();
    assert_eq!(kinds, [None, Some("permission_required"), Some("tool_not_found")]);
}

/// The URI of a test resource that a caller watches at the server `all`.
const WATCHED: &str = "test://watched-resource";

fn watched() -> Gates {
    Gates::new(BTreeMap::new(), &named(&[("test://watched-*", "x.read")]), BTreeMap::new())
}

/// D5, S14: a stream reports only granted resources, and ends when the grant is revoked. A legacy
/// client's subscription ends as well, on a shared link and on its own.
#[tokio::test(flavor = "multi_thread")]
async fn d5_revocation_ends_streams_and_subscriptions() {
    for eras in ERAS {
        let gated = Gated::gated(eras, watched(), Ledger::default()).await;
        for endpoint in [transparent("all"), Endpoint::Aggregated] {
            let caller = gated.world.modern_caller(endpoint.clone());
            let wanted = json!({"notifications": {"resourceSubscriptions": [WATCHED]}});
            let listen = || super::world::modern(5, "subscriptions/listen", wanted.clone());
            let mut refused = gated.world.gateway.call(&caller, listen()).await;
            let first = step(&mut refused).await;
            assert!(!first.contains(WATCHED), "{first}");
            drop(refused);

            gated.grants.add(grant(1, "x.read", GrantDuration::Persistent));
            let mut listening = gated.world.gateway.call(&caller, listen()).await;
            let first = step(&mut listening).await;
            assert!(first.contains(WATCHED), "{first}");
            let legacy = gated.world.legacy_caller(endpoint.clone()).await;
            let asked = json!({"elicitation": {}});
            let session = gated.world.session(&endpoint, asked).await;
            let own = Caller::new(gated.world.run.clone(), endpoint, Some(session));
            for caller in [&legacy, &own] {
                let answer =
                    gated.world.ask(caller, "resources/subscribe", json!({"uri": WATCHED})).await;
                assert_eq!(answer["result"], json!({}), "{answer}");
            }
            gated.grants.remove(GrantId::new([1; 8]));
            let ended = at_its_end(&mut listening);
            tokio::time::timeout(SOON, ended).await.expect("the stream goes on");
            for caller in [&legacy, &own] {
                let answer =
                    gated.world.ask(caller, "resources/subscribe", json!({"uri": WATCHED})).await;
                assert_eq!(kind(&answer), "permission_required", "{answer}");
                // A caller that unsubscribes from a lost resource is not asked for a grant.
                let answer =
                    gated.world.ask(caller, "resources/unsubscribe", json!({"uri": WATCHED})).await;
                assert_eq!(answer["result"], json!({}), "{answer}");
            }
        }
    }
}

/// X-E81: a stream that needs a grant of the person whose turn it is ends with the turn.
#[tokio::test(flavor = "multi_thread")]
async fn x_e81_a_stream_ends_with_the_turn_of_its_user() {
    let gated = Gated::gated(Eras::Modern, watched(), Ledger::default()).await;
    let [ada, bob] =
        ["a", "b"].map(|digit| PrincipalId::new(&format!("prn_{}", digit.repeat(16))).unwrap());
    let subject = GrantSubject::User(ada.clone());
    gated.grants.add(Grant { subject, ..grant(1, "x.read", GrantDuration::Persistent) });
    let caller = gated.world.modern_caller(transparent("all"));
    let wanted = json!({"notifications": {"resourceSubscriptions": [WATCHED]}});
    let listen = || super::world::modern(5, "subscriptions/listen", wanted.clone());
    let acting = gated.world.run.authority.acting();
    acting.take_turn(1, Some(&ada));
    let mut listening = gated.world.gateway.call(&caller, listen()).await;
    let first = step(&mut listening).await;
    assert!(first.contains(WATCHED), "{first}");
    acting.take_turn(2, Some(&bob));
    let ended = at_its_end(&mut listening);
    tokio::time::timeout(SOON, ended).await.expect("the stream goes on");
    let mut refused = gated.world.gateway.call(&caller, listen()).await;
    let first = step(&mut refused).await;
    assert!(!first.contains(WATCHED), "{first}");
}

async fn at_its_end(answering: &mut Answering) {
    while answering.next().await.is_some() {}
}

/// The next message of a stream.
async fn step(answering: &mut Answering) -> String {
    let step = tokio::time::timeout(SOON, answering.next()).await.expect("nothing comes");
    match step.expect("the stream has ended") {
        Step::Message(message) => String::from_utf8(message.into_bytes().to_vec()).unwrap(),
        Step::Answer(answer) => String::from_utf8(answer.payload.into_bytes().to_vec()).unwrap(),
        Step::Break { .. } => String::new(),
    }
}

/// D14, S14: a task is gated like its call. A client may poll it until the call's grant is revoked,
/// also if the grant was for a single call and is used up.
#[tokio::test(flavor = "multi_thread")]
async fn s14_a_task_can_be_polled_until_its_grant_is_revoked() {
    let tools = named(&[("confirm_delete", "x.call")]);
    let gates = Gates::new(tools, &BTreeMap::new(), BTreeMap::new());
    let gated = Gated::gated(Eras::Modern, gates, Ledger::default()).await;
    for (endpoint, prefix) in [(transparent("all"), ""), (Endpoint::Aggregated, "mcp__all__")] {
        let caller = gated.world.modern_caller(endpoint);
        let with_tasks = |mut params: Value| {
            params["_meta"] = json!({"io.modelcontextprotocol/clientCapabilities":
                {"extensions": {"io.modelcontextprotocol/tasks": {}}}});
            params
        };
        let name = format!("{prefix}confirm_delete");
        let start = with_tasks(json!({"name": name, "arguments": {"filename": "a.txt"}}));
        let refused = gated.world.ask(&caller, "tools/call", start.clone()).await;
        assert_eq!(kind(&refused), "permission_required", "{refused}");
        gated.ledger.used.lock().unwrap().clear();
        gated.grants.add(grant(1, "x.call", GrantDuration::Once));
        let started = gated.world.ask(&caller, "tools/call", start.clone()).await;
        let id = started["result"]["taskId"].as_str().unwrap_or_else(|| panic!("{started}"));
        let poll = with_tasks(json!({"taskId": id}));
        for _ in 0..2 {
            let got = gated.world.ask(&caller, "tasks/get", poll.clone()).await;
            assert_eq!(got["result"]["taskId"], id, "{got}");
        }
        assert_eq!(
            kind(&gated.world.ask(&caller, "tools/call", start).await),
            "permission_required"
        );
        assert!(gated.grants.remove(GrantId::new([1; 8])));
        let got = gated.world.ask(&caller, "tasks/get", poll).await;
        assert_eq!(kind(&got), "permission_required", "{got}");
    }
}
