//! Items that a server's rules hide, and that a run's servers hide.

use std::{collections::BTreeMap, sync::Arc};

use narthex_gateway::{Caller, Endpoint, GatewayOptions, RunToken, RunView, Step};
use narthex_model::{Exposed, Gates, NameRule, ServerDefinition, ToolScope, UriRule, WorkspaceId};
use narthex_policy::RunPolicy;
use narthex_registry::{FirstLists, MountOptions, Mountable, config::Entry};
use narthex_testkit::{
    fixture::{Eras, Options, Running},
    warnings::Warnings,
};
use serde_json::{Value, json};

use super::world::{SOON, World, alias, http_server, modern, request, transparent};

const HIDDEN_URI: &str = "test://static-text";

fn hide(definition: &mut ServerDefinition) {
    *definition.exposed = Exposed {
        tools: NameRule::new(Some(&["echo", "add", "test_*", "list_*", "read_*"]), &["add"]),
        resources: UriRule::new(None, &[HIDDEN_URI, "test://template/*"]),
        prompts: NameRule::new(Some(&["test_simple_*"]), &[]),
    };
}

/// An answer without the caller's own words.
fn without(answer: &Value, names: &[&str]) -> String {
    names.iter().fold(answer.to_string(), |text, name| text.replace(name, "NAME"))
}

struct Asking<'w> {
    world: &'w World,
    caller: &'w Caller,
    prefix: &'static str,
}

impl Asking<'_> {
    async fn list(&self, method: &str, member: &str, key: &str) -> Vec<String> {
        let answer = self.world.ask(self.caller, method, json!({})).await;
        let entries = answer["result"][member].as_array().unwrap_or_else(|| panic!("{answer}"));
        let prefix = self.prefix;
        let name =
            |entry: &Value| entry[key].as_str().unwrap().trim_start_matches(prefix).to_owned();
        entries.iter().map(name).collect()
    }

    async fn call(&self, tool: &str) -> Value {
        let name = format!("{}{tool}", self.prefix);
        let params = json!({"name": name, "arguments": {"a": 1, "b": 2}});
        self.world.ask(self.caller, "tools/call", params).await
    }

    async fn prompt(&self, name: &str) -> Value {
        let params = json!({"name": format!("{}{name}", self.prefix)});
        self.world.ask(self.caller, "prompts/get", params).await
    }

    async fn read(&self, uri: &str) -> Value {
        self.world.ask(self.caller, "resources/read", json!({"uri": uri})).await
    }

    async fn complete(&self, reference: Value) -> Value {
        let params = json!({"ref": reference, "argument": {"name": "arg1", "value": "p"}});
        self.world.ask(self.caller, "completion/complete", params).await
    }

    async fn lists(&self) {
        let tools = self.list("tools/list", "tools", "name").await;
        assert!(tools.iter().any(|name| name == "echo"), "{tools:?}");
        let own = ["list_resources", "read_resource", "list_prompts"];
        for name in &tools {
            let is_allowed = name == "echo" || name.starts_with("test_");
            assert!(is_allowed || own.contains(&name.as_str()), "{name}");
        }
        let prompts = self.list("prompts/list", "prompts", "name").await;
        assert_eq!(prompts, ["test_simple_prompt"]);
        let resources = self.list("resources/list", "resources", "uri").await;
        assert!(resources.len() > 1 && !resources.iter().any(|uri| uri == HIDDEN_URI));
        let method = "resources/templates/list";
        assert!(self.list(method, "resourceTemplates", "uriTemplate").await.is_empty());
    }

    async fn calls(&self) {
        let (hidden, absent) = (self.call("add").await, self.call("six").await);
        assert_eq!(without(&hidden, &["add"]), without(&absent, &["six"]));
        assert_eq!(hidden["result"]["structuredContent"]["error"]["kind"], "tool_not_found");
        let name = "test_prompt_with_image";
        let (hidden, absent) = (self.prompt(name).await, self.prompt("six").await);
        assert_eq!(without(&hidden, &[name]), without(&absent, &["six"]), "{hidden}");
        assert_eq!(hidden["error"]["code"], -32602, "{hidden}");
        assert!(self.prompt("test_simple_prompt").await["result"].is_object());
        // A hidden item gets the same answer, existing or not.
        let (hidden, absent) = ("test://template/1/data", "test://template/1/nothing");
        let answers = (self.read(hidden).await, self.read(absent).await);
        assert_eq!(without(&answers.0, &[hidden]), without(&answers.1, &[absent]));
        let answer = self.read(HIDDEN_URI).await;
        let code = if self.caller.session.is_some() { -32002 } else { -32602 };
        assert_eq!(answer["error"]["code"], code, "{answer}");
        assert!(self.read("test://static-binary").await["result"].is_object());
        for reference in [
            json!({"type": "ref/prompt", "name": format!("{}{name}", self.prefix)}),
            json!({"type": "ref/resource", "uri": "test://template/{id}/data"}),
        ] {
            let answer = self.complete(reference).await;
            assert!(answer["error"].is_object(), "{answer}");
        }
    }
}

/// D5, E151: an item that a rule hides is in no list, and its use gets the answer for an absent
/// item. This holds for every pair of eras at both endpoints.
#[tokio::test]
async fn d5_items_hidden_by_a_rule_are_absent_at_both_endpoints() {
    for eras in [Eras::Legacy, Eras::Modern] {
        let world = World::changed([("one", eras)], hide).await;
        for (endpoint, prefix) in [(transparent("one"), ""), (Endpoint::Aggregated, "mcp__one__")] {
            for caller in &world.both_callers(&endpoint).await {
                let asking = Asking { world: &world, caller, prefix };
                asking.lists().await;
                asking.calls().await;
            }
        }
        let counts = world.fixtures[0].fixture.counts();
        assert_eq!(counts.calls, 0, "a hidden tool was called");
        world.gateway.drain().await;
    }
}

/// D5: a session whose servers list for it alone sees no more than others.
#[tokio::test]
async fn d5_a_session_with_its_own_link_sees_no_hidden_items() {
    let world = World::changed([("one", Eras::Legacy)], hide).await;
    for (endpoint, prefix) in [(transparent("one"), ""), (Endpoint::Aggregated, "mcp__one__")] {
        let session = world.session(&endpoint, json!({"sampling": {}})).await;
        let caller = Caller::new(world.run.clone(), endpoint, Some(session));
        let asking = Asking { world: &world, caller: &caller, prefix };
        asking.lists().await;
        asking.calls().await;
    }
    world.gateway.drain().await;
}

/// D5: no check of the door before the call distinguishes a hidden tool from an absent one.
#[tokio::test]
async fn d5_a_hidden_tool_requires_no_headers() {
    let wants_headers = |world: &World, caller: &Caller| {
        let request = |name: &str| request(caller, "tools/call", json!({"name": name}));
        let snapshot = world.gateway.registry().snapshot();
        let tools = &snapshot.get("one").unwrap().inventory.tools;
        let tool = tools.iter().find(|tool| tool.header_params.is_some());
        let tool = tool.expect("the fixture has a tool with headers").key.clone();
        world.gateway.header_params(caller, &request(&tool)).is_some()
    };
    let open = World::changed([("one", Eras::Modern)], |_| {}).await;
    assert!(wants_headers(&open, &open.modern_caller(transparent("one"))));
    let hidden = World::changed([("one", Eras::Modern)], |definition| {
        definition.exposed.tools = NameRule::new(Some(&["echo"]), &[]);
    })
    .await;
    assert!(!wants_headers(&hidden, &hidden.modern_caller(transparent("one"))));
    open.gateway.drain().await;
    hidden.gateway.drain().await;
}

/// D5: a listener to a hidden resource gets no change of any, where the server acknowledges and
/// where the gateway does.
#[tokio::test]
async fn d5_hidden_resources_are_not_followed() {
    let watched = "test://watched-resource";
    for endpoint in [transparent("one"), Endpoint::Aggregated] {
        let world = World::changed([("one", Eras::Modern)], |definition| {
            definition.exposed.resources = UriRule::new(None, &[HIDDEN_URI]);
        })
        .await;
        let caller = world.modern_caller(endpoint.clone());
        let wanted = json!({"notifications": {"resourceSubscriptions": [HIDDEN_URI, watched]}});
        let listen = modern(9, "subscriptions/listen", wanted);
        let mut listening = world.gateway.call(&caller, listen).await;
        let Some(Step::Message(first)) = listening.next().await else { panic!("{endpoint:?}") };
        let first: Value = serde_json::from_slice(&first.into_bytes()).unwrap();
        let honoured = &first["params"]["notifications"]["resourceSubscriptions"];
        assert_eq!(*honoured, json!([watched]), "{endpoint:?} {first}");
        drop(listening);
        world.gateway.drain().await;
    }
}

/// E17, E91, X-E30: a run that asks for no server sees no tool, and finds none.
#[tokio::test]
async fn e17_a_run_without_servers_sees_and_finds_no_tools() {
    let mut world = World::with(&[("one", Eras::Both)]).await;
    world.run_as(RunPolicy::default());
    for caller in world.both_callers(&Endpoint::Aggregated).await {
        let list = world.ask(&caller, "tools/list", json!({})).await;
        assert_eq!(list["result"]["tools"], json!([]), "{list}");
        let params = json!({"name": "mcp__one__echo", "arguments": {"message": "x"}});
        let answer = world.ask(&caller, "tools/call", params).await;
        assert_eq!(answer["result"]["structuredContent"]["error"]["kind"], "tool_not_found");
    }
    world.gateway.drain().await;
}

/// E90, E93: servers that a run names and that do not exist make one warning with each name once. A
/// server without tools counts as existing, and the wildcard causes no warning.
#[tokio::test]
async fn e90_one_warning_names_all_missing_servers() {
    let warnings = Warnings::follow();
    let mut world = {
        let fixture = Running::http(Options::default()).await.unwrap();
        let mut bare = http_server("bare", &fixture.url);
        bare.exposed.tools = NameRule::new::<&str>(Some(&[]), &[]);
        let down = http_server("down", "http://127.0.0.1:1/mcp");
        let entries = [bare, http_server("one", &fixture.url), down].map(Entry::Server).to_vec();
        let world = World::over(entries, GatewayOptions::default());
        let settled = |snapshot: &narthex_registry::Snapshot| snapshot.is_settled();
        world.gateway.registry().wait_until(SOON, settled).await;
        World { fixtures: vec![fixture], ..world }
    };
    let missing = || {
        let all = warnings.take();
        all.into_iter().filter(|text| text.contains("this run names")).collect::<Vec<_>>()
    };
    missing();
    let names = ["one", "bare", "down", "ghost"];
    for (policy, expected) in [
        (RunPolicy::of(&names).unwrap(), Some("do not exist: down, ghost")),
        (RunPolicy::Attached([alias("one"), alias("bare")].into()), None),
        (RunPolicy::AllAttached, None),
        (RunPolicy::default(), None),
    ] {
        world.run_as(policy.clone());
        let caller = world.modern_caller(Endpoint::Aggregated);
        for method in ["tools/list", "prompts/list", "tools/list"] {
            world.ask(&caller, method, json!({})).await;
        }
        // Each of these sessions has its own view, and lacks the same servers.
        for _ in 0..2 {
            let session = world.session(&Endpoint::Aggregated, json!({"sampling": {}})).await;
            let caller = Caller::new(world.run.clone(), Endpoint::Aggregated, Some(session));
            world.ask(&caller, "tools/list", json!({})).await;
        }
        let told = missing();
        assert_eq!(told.len(), usize::from(expected.is_some()), "{policy:?}: {told:?}");
        assert!(expected.is_none_or(|text| told[0].ends_with(text)), "{told:?}");
    }
    drop(warnings);
    world.gateway.drain().await;
}

/// D12, E151: each of two runs that share a connection sees the part that its own definition shows.
#[tokio::test(flavor = "multi_thread")]
async fn d12_runs_on_a_shared_connection_have_separate_exposure_rules() {
    let world = World::changed([("all", Eras::Modern)], |_| {}).await;
    let registry = world.gateway.registry();
    let shared = registry.snapshot().servers[0].definition.clone().unwrap();
    let mut seen = Vec::new();
    for allow in [None, Some(&["test_*"][..]), None] {
        let mut definition = (*shared).clone();
        definition.exposed.tools = NameRule::new(allow, &[]);
        let options = MountOptions { timeout: SOON, ..MountOptions::default() };
        let set = vec![Mountable::new(Arc::new(definition))];
        let set = registry.mount(set, &options).await.unwrap();
        let id = set.mounts()[0].id();
        let token = RunToken::generate().unwrap();
        let (workspace, policy) = (WorkspaceId::default(), RunPolicy::default());
        let run = Arc::new(RunView::with_servers(&token, workspace, policy, set));
        world.gateway.begin_run(&run).unwrap();
        let run = world.seen_by(&run);
        let caller = run.modern_caller(transparent("all"));
        let params = json!({"name": "echo", "arguments": {"message": "x"}});
        let answer = run.ask(&caller, "tools/call", params).await;
        seen.push((id, answer["result"]["isError"] == true));
    }
    assert!(seen.iter().all(|(id, _)| *id == seen[0].0), "they share");
    assert_eq!(
        seen.iter().map(|(_, is_hidden)| *is_hidden).collect::<Vec<_>>(),
        [false, true, false]
    );
}

/// S21: a list from which entries are hidden is private, also where the server lets caches share
/// it. A list without hidden entries stays as the server wrote it.
#[tokio::test]
async fn s21_a_filtered_list_is_private() {
    let eras = Eras::Modern;
    let open = World::with(&[("one", eras)]).await;
    let rules = World::changed([("one", eras)], hide).await;
    let mut frozen = World::with(&[("one", eras)]).await;
    let mount = Mountable::new(Arc::new(http_server("mine", &frozen.fixtures[0].url)));
    let options = MountOptions { timeout: SOON, ..MountOptions::default() };
    let set = frozen.gateway.registry().mount(vec![mount], &options).await.unwrap();
    let first = FirstLists::of(&set);
    let token = RunToken::generate().unwrap();
    let policy = RunPolicy::default();
    let run = RunView::with_servers(&token, WorkspaceId::default(), policy, set);
    frozen.run = Arc::new(run.frozen_to(first));
    frozen.gateway.begin_run(&frozen.run).unwrap();
    for (world, name, scope) in
        [(&open, "one", "public"), (&rules, "one", "private"), (&frozen, "mine", "private")]
    {
        let caller = world.modern_caller(transparent(name));
        let lists = ["tools/list", "prompts/list", "resources/list", "resources/templates/list"];
        for method in lists {
            let answer = world.ask(&caller, method, json!({})).await;
            assert_eq!(answer["result"]["cacheScope"], scope, "{name} {method}: {answer}");
            assert_eq!(answer["result"]["resultType"], "complete", "{answer}");
        }
        world.gateway.drain().await;
    }
}

/// S21: a result that a gate lets some callers read is private to its caller, also where the server
/// lets caches share it.
#[tokio::test]
async fn s21_a_result_of_a_gated_server_is_private_to_its_caller() {
    let gate = |definition: &mut ServerDefinition| {
        let scopes = BTreeMap::from([("echo".to_owned(), [ToolScope::new("a.b").unwrap()].into())]);
        definition.gates = Gates::new(scopes, &BTreeMap::new(), BTreeMap::new()).into();
    };
    let open = World::with(&[("one", Eras::Modern)]).await;
    let gated = World::changed([("one", Eras::Modern)], gate).await;
    for (world, scope) in [(&open, "public"), (&gated, "private")] {
        let caller = world.modern_caller(transparent("one"));
        let read = json!({ "uri": "test://static-text" });
        let answer = world.ask(&caller, "resources/read", read).await;
        assert_eq!(answer["result"]["cacheScope"], scope, "{answer}");
        world.gateway.drain().await;
    }
}
