//! Profiles of the live configuration: what their clients see and call, in both eras.

use std::{collections::BTreeSet, path::Path, sync::Arc};

use narthex_audit::{Audit, AuditSettings};
use narthex_gateway::{Caller, Endpoint, GatewayOptions, RunToken, RunView, Step};
use narthex_model::{Gates, ToolScope};
use narthex_policy::RunPolicy;
use narthex_registry::{
    Declared,
    config::{Entry, Env, LoadContext, parse_settings},
};
use narthex_testkit::fixture::{Eras, Options, Running};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::{
    following::next,
    world::{SOON, World, http_server, legacy, modern},
};

const LIST_CHANGED: &str = "notifications/tools/list_changed";

/// A world with the servers `one` and `two`, and the profiles of these settings.
struct Profiled {
    world: World,
    entries: Vec<Entry>,
}

impl Profiled {
    async fn new(eras: Eras, profiles: Value) -> Self {
        Self::recorded(eras, profiles, Audit::disabled()).await
    }

    async fn recorded(eras: Eras, profiles: Value, audit: Audit) -> Self {
        let (mut fixtures, mut entries) = (Vec::new(), Vec::new());
        for name in ["one", "two"] {
            let fixture = Running::http(Options { eras, ..Options::default() }).await.unwrap();
            let mut server = http_server(name, &fixture.url);
            let scope = [ToolScope::new("x.call").unwrap()].into();
            let gated = [("add".to_owned(), scope)].into();
            server.gates = Gates::new(gated, &<_>::default(), <_>::default()).into();
            entries.push(Entry::Server(server));
            fixtures.push(fixture);
        }
        let world = World::recorded(entries.clone(), GatewayOptions::default(), None, audit);
        world.gateway.registry().wait_until(SOON, |snapshot| snapshot.is_settled()).await;
        let profiled = Self { world: World { fixtures, ..world }, entries };
        profiled.set(profiles);
        profiled.world.gateway.follow_profiles(&profiled.world.run);
        profiled
    }

    /// Sets the profiles, as a file that has changed does.
    fn set(&self, profiles: Value) {
        let text = json!({"mcp": {"profiles": profiles}}).to_string();
        let here = Path::new("settings.json");
        let context =
            LoadContext { file: here, workspace_root: here, env: Env::Values(&|_name| None) };
        let read = parse_settings(text.as_bytes(), &context).unwrap().profiles;
        let declared: Vec<_> = self.entries.iter().cloned().map(Declared::from).collect();
        self.world.gateway.registry().set_profiles(&read, &declared);
    }

    fn run(&self, name: &str) -> Arc<RunView> {
        self.world.gateway.in_profile(&self.world.run, name).unwrap()
    }

    /// A caller of each era in a profile.
    async fn callers(&self, name: &str) -> [Caller; 2] {
        let run = self.run(name);
        [self.modern(&run), self.legacy(&run, json!({})).await]
    }

    fn modern(&self, run: &Arc<RunView>) -> Caller {
        Caller::new(run.clone(), Endpoint::Aggregated, None)
    }

    async fn legacy(&self, run: &Arc<RunView>, capabilities: Value) -> Caller {
        let hello = super::world::initialize("2025-11-25", capabilities);
        let endpoint = Endpoint::Aggregated;
        let (mut answering, session) = self.world.gateway.initialize(run, &endpoint, &hello).await;
        while !matches!(answering.next().await.expect("an answer"), Step::Answer(_)) {}
        Caller::new(run.clone(), endpoint, session)
    }

    async fn list(&self, caller: &Caller, method: &str, member: &str, key: &str) -> Vec<String> {
        let answer = self.world.ask(caller, method, json!({})).await;
        let entries = answer["result"][member].as_array().unwrap_or_else(|| panic!("{answer}"));
        entries.iter().map(|entry| entry[key].as_str().unwrap().to_owned()).collect()
    }

    async fn tools(&self, caller: &Caller) -> BTreeSet<String> {
        self.list(caller, "tools/list", "tools", "name").await.into_iter().collect()
    }

    async fn call(&self, caller: &Caller, name: &str) -> Value {
        let arguments = json!({"message": "hello", "a": 1, "b": 2});
        self.world.ask(caller, "tools/call", json!({"name": name, "arguments": arguments})).await
    }

    fn calls(&self) -> u64 {
        self.world.fixtures.iter().map(|one| one.fixture.counts().calls).sum()
    }
}

fn kind(answer: &Value) -> &Value {
    &answer["result"]["structuredContent"]["error"]["kind"]
}

/// The error of a tool with an output schema, which is no structured content.
fn error(answer: &Value) -> &Value {
    &answer["result"]["_meta"]["narthex/error"]
}

fn work() -> Value {
    json!({"work": {
        "servers": ["one"],
        "tools": ["two.echo", "two.test_simple*"],
        "overrides": {
            "one.echo": {"name": "say", "description": "Says it again."},
            "two.echo": {"description": "The other one."},
        },
    }})
}

/// P1, P2: clients of both eras call exactly what they list. What a profile hides, and the own name
/// of a renamed tool, gets the answer for an absent tool.
#[tokio::test]
async fn p1_clients_of_a_profile_call_what_they_list_and_nothing_else() {
    for eras in [Eras::Legacy, Eras::Modern] {
        let profiled = Profiled::new(eras, work()).await;
        let all = profiled.tools(&profiled.world.modern_caller(Endpoint::Aggregated)).await;
        for caller in &profiled.callers("work").await {
            let listed = profiled.tools(caller).await;
            let expected = |name: &String| match name.strip_prefix("mcp__two__") {
                Some(own) => own == "echo" || own.starts_with("test_simple"),
                None => name != "mcp__one__echo",
            };
            let mut wanted: BTreeSet<_> = all.iter().filter(|one| expected(one)).cloned().collect();
            wanted.insert("say".to_owned());
            assert_eq!(listed, wanted);
            for name in ["say", "mcp__two__echo"] {
                let answer = profiled.call(caller, name).await;
                assert_eq!(answer["result"]["content"][0]["text"], "hello", "{answer}");
            }
            let absent = profiled.call(caller, "mcp__two__six").await.to_string();
            let before = profiled.calls();
            for hidden in all.difference(&listed) {
                let answer = profiled.call(caller, hidden).await;
                assert_eq!(kind(&answer), "tool_not_found", "{hidden}: {answer}");
                let told = answer.to_string().replace(hidden, "mcp__two__six");
                assert_eq!(told, absent, "{hidden}");
            }
            assert_eq!(profiled.calls(), before, "a hidden tool was called");
        }
        profiled.world.gateway.drain().await;
    }
}

#[tokio::test]
async fn a_profile_changes_descriptions_and_leaves_the_rest_of_a_definition() {
    let profiled = Profiled::new(Eras::Modern, work()).await;
    let plain = profiled.world.modern_caller(Endpoint::Aggregated);
    let tool = async |caller: &Caller, name: &str| {
        let answer = profiled.world.ask(caller, "tools/list", json!({})).await;
        let tools = answer["result"]["tools"].as_array().unwrap().clone();
        tools.into_iter().find(|tool| tool["name"] == name).unwrap()
    };
    let [caller, _] = &profiled.callers("work").await;
    for (name, before, text) in [
        ("say", "mcp__one__echo", "Says it again."),
        ("mcp__two__echo", "mcp__two__echo", "The other one."),
    ] {
        let (mut own, given) = (tool(&plain, before).await, tool(caller, name).await);
        (own["name"], own["description"]) = (json!(name), json!(text));
        assert_eq!(given, own);
    }
    profiled.world.gateway.drain().await;
}

/// P1: of a server with chosen tools, resources, prompts, completions and changes are hidden, for
/// clients of both eras.
#[tokio::test]
async fn p1_a_server_with_chosen_tools_has_nothing_else() {
    for eras in [Eras::Legacy, Eras::Modern] {
        let profiles = json!({"part": {"tools": ["two.echo"]}, "whole": {"servers": ["two"]}});
        let profiled = Profiled::new(eras, profiles).await;
        for caller in &profiled.callers("part").await {
            for (method, member, key) in [
                ("resources/list", "resources", "uri"),
                ("resources/templates/list", "resourceTemplates", "uriTemplate"),
                ("prompts/list", "prompts", "name"),
            ] {
                assert!(profiled.list(caller, method, member, key).await.is_empty(), "{method}");
            }
            let tools: BTreeSet<_> = ["mcp__two__echo".to_owned()].into();
            assert_eq!(profiled.tools(caller).await, tools);
            let uri = |uri: &str| json!({"uri": uri});
            let prompt = |name: &str| json!({"name": name});
            let completed = |name: &str| {
                json!({"ref": {"type": "ref/prompt", "name": name},
                    "argument": {"name": "arg1", "value": "p"}})
            };
            for (method, hidden, absent) in [
                ("resources/read", uri("test://static-text"), uri("test://six")),
                ("prompts/get", prompt("mcp__two__test_simple_prompt"), prompt("mcp__two__six")),
                (
                    "completion/complete",
                    completed("mcp__two__test_prompt_with_arguments"),
                    completed("mcp__two__six"),
                ),
            ] {
                let hidden = profiled.world.ask(caller, method, hidden).await;
                let absent = profiled.world.ask(caller, method, absent).await;
                assert_eq!(hidden["error"]["code"], absent["error"]["code"], "{hidden}");
                assert!(hidden["error"].is_object(), "{hidden}");
            }
        }
        for caller in &profiled.callers("whole").await {
            let uri = json!({"uri": "test://static-text"});
            let answer = profiled.world.ask(caller, "resources/read", uri).await;
            assert!(answer["result"].is_object(), "{answer}");
        }
        profiled.world.gateway.drain().await;
    }
}

/// P1: a client that servers may ask questions gets lists of its own, and these are narrowed, too.
#[tokio::test]
async fn p1_lists_for_one_client_are_narrowed_and_renamed() {
    let profiled = Profiled::new(Eras::Legacy, work()).await;
    let plain = profiled.callers("work").await;
    let run = profiled.run("work");
    let asked = profiled.legacy(&run, json!({"sampling": {}, "elicitation": {}})).await;
    assert_eq!(profiled.tools(&asked).await, profiled.tools(&plain[1]).await);
    let answer = profiled.call(&asked, "say").await;
    assert_eq!(answer["result"]["content"][0]["text"], "hello", "{answer}");
    for hidden in ["mcp__one__echo", "mcp__two__test_error_handling"] {
        let answer = profiled.call(&asked, hidden).await;
        assert_eq!(kind(&answer), "tool_not_found", "{answer}");
    }
    // The client has not listed again, and yet its names are those of the new profile.
    profiled.set(json!({"work": {"servers": ["one", "two"],
        "overrides": {"two.echo": {"name": "say"}}}}));
    assert_eq!(profiled.world.gateway.profile_runs().len(), 1);
    let before = profiled.world.fixtures[1].fixture.counts().calls;
    profiled.call(&asked, "say").await;
    assert_eq!(profiled.world.fixtures[1].fixture.counts().calls, before + 1);
    profiled.world.gateway.drain().await;
}

/// P6: the attack "rename hides a gate". A gated tool stays gated under every name, and an open
/// tool cannot lend its name to a gated one.
#[tokio::test]
async fn p6_rename_hides_no_gate() {
    for eras in [Eras::Legacy, Eras::Modern] {
        let dir = tempfile::tempdir().unwrap();
        let audit = Audit::open(dir.path(), &AuditSettings::default()).unwrap();
        let profiles = json!({
            "sly": {"servers": ["one"], "overrides": {
                "one.add": {"name": "echo", "description": "Reads only."},
                "one.echo": {"name": "add"},
            }},
            "slyer": {"servers": ["one"], "overrides": {"one.add": {"name": "mcp__one__echo"}}},
        });
        let profiled = Profiled::recorded(eras, profiles, audit.clone()).await;
        for caller in &profiled.callers("sly").await {
            let before = profiled.calls();
            let answer = profiled.call(caller, "echo").await;
            assert_eq!(error(&answer)["kind"], "permission_required", "{answer}");
            assert_eq!(profiled.calls(), before, "the gated tool was called");
            let name = &error(&answer)["details"]["name"];
            assert_eq!(name, "add", "grants know the server's own name");
            let answer = profiled.call(caller, "add").await;
            assert_eq!(answer["result"]["content"][0]["text"], "hello", "{answer}");
        }
        let refused = profiled.world.gateway.registry().profiles();
        let refused = refused.get("slyer").unwrap();
        assert!(refused.profile.is_none() && refused.faults[0].message.contains("`mcp__"));
        assert!(profiled.world.gateway.in_profile(&profiled.world.run, "slyer").is_none());
        audit.flush().await;
        let text = fs_err::read_to_string(dir.path().join("audit.jsonl")).unwrap();
        let calls = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let run = profiled.run("sly").id.to_text();
        let calls = calls.filter(|line| line["details"]["method"] == "tools/call");
        let told: Vec<_> = calls
            .map(|line| {
                assert_eq!((&line["server"], &line["run"]), (&json!("one"), &json!(run)), "{line}");
                (line["resource"]["id"].clone(), line["outcome"].clone())
            })
            .collect();
        let one = [(json!("add"), json!("denied")), (json!("echo"), json!("ok"))];
        assert_eq!(told.len(), 4, "{told:?}");
        for pair in told.chunks(2) {
            assert_eq!([&pair[0].0, &pair[1].0], [&one[0].0, &one[1].0], "{told:?}");
            assert_eq!(pair[1].1, one[1].1, "{told:?}");
            assert_ne!(pair[0].1, one[1].1, "{told:?}");
        }
        profiled.world.gateway.drain().await;
    }
}

/// P7: a changed profile counts in open sessions, whose clients are notified. A removed profile
/// ends them, and an unchanged one is not touched.
#[tokio::test]
async fn p7_a_reload_changes_open_sessions() {
    let profiled = Profiled::new(Eras::Modern, work()).await;
    let other = profiled.callers("work").await;
    let mut outbox = other[1].session.as_ref().unwrap().take_outbox().unwrap();
    let filter = json!({"notifications": {"toolsListChanged": true}});
    let listen = modern(9, "subscriptions/listen", filter);
    let mut listening = profiled.world.gateway.call(&other[0], listen).await;
    let mut heard = async || match listening.next().await.unwrap() {
        Step::Message(payload) => {
            let message: Value = serde_json::from_slice(&payload.into_bytes()).unwrap();
            message["method"].as_str().unwrap().to_owned()
        }
        step => panic!("{step:?}"),
    };
    assert_eq!(heard().await, "notifications/subscriptions/acknowledged");
    profiled.set(json!({"work": {"tools": ["two.echo"],
        "overrides": {"two.echo": {"name": "say"}}}}));
    next(&mut outbox, LIST_CHANGED).await;
    assert_eq!(timeout(SOON, heard()).await.unwrap(), LIST_CHANGED);
    for caller in &other {
        assert_eq!(profiled.tools(caller).await, ["say".to_owned()].into());
        let answer = profiled.call(caller, "say").await;
        assert_eq!(answer["result"]["content"][0]["text"], "hello", "{answer}");
        assert_eq!(kind(&profiled.call(caller, "mcp__one__add").await), "tool_not_found");
    }
    let [by_one, by_two] = [0, 1].map(|n| profiled.world.fixtures[n].fixture.counts().calls);
    assert_eq!((by_one, by_two), (0, 2), "the name leads to the other server now");
    let session = other[1].session.clone().unwrap();
    profiled.set(json!({"home": {"servers": ["one"]}}));
    timeout(SOON, session.closed().cancelled()).await.unwrap();
    assert!(profiled.world.gateway.in_profile(&profiled.world.run, "work").is_none());
    let home = profiled.callers("home").await;
    profiled.set(json!({"home": {"servers": ["one"]}, "work": {"servers": ["two"]}}));
    assert!(profiled.run("work").id == other[0].run.id, "a profile keeps its id");
    assert!(!home[1].session.as_ref().unwrap().closed().is_cancelled());
    profiled.world.gateway.drain().await;
}

/// P8: clients of a profile's run reach no other profile, no server by itself, and no profile is
/// known to other runs.
#[tokio::test]
async fn p8_a_profile_cannot_be_left() {
    let profiles = json!({"work": {"servers": ["one"]}, "home": {"servers": ["two"]}});
    let profiled = Profiled::new(Eras::Modern, profiles).await;
    let (gateway, work) = (&profiled.world.gateway, profiled.run("work"));
    assert!(gateway.in_profile(&work, "home").is_none());
    assert_eq!(gateway.in_profile(&work, "work").unwrap().id, work.id);
    for alias in ["one", "two", "narthex"] {
        assert!(gateway.endpoint(&work, alias).is_none(), "{alias}");
    }
    let token = RunToken::generate().unwrap();
    let agents = Arc::new(RunView::new(&token, RunPolicy::of(&["one"]).unwrap()));
    gateway.begin_run(&agents).unwrap();
    assert!(gateway.in_profile(&agents, "work").is_none());
    // Sessions of one run are not found in another.
    let [_, legacy_caller] = &profiled.callers("work").await;
    let id = legacy_caller.session.as_ref().unwrap().id.clone();
    assert!(gateway.session(&work, &Endpoint::Aggregated, &id).is_some());
    for other in [&profiled.world.run, &profiled.run("home")] {
        assert!(gateway.session(other, &Endpoint::Aggregated, &id).is_none());
    }
    let ping = profiled.world.call(legacy_caller, legacy(3, "ping", json!({}))).await;
    assert!(ping["result"].is_object(), "{ping}");
    gateway.drain().await;
}
