//! Servers that one run has for itself (E7): their items in its view, and hidden from others.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use narthex_gateway::{Answering, Caller, Endpoint, GatewayOptions, RunToken, RunView, Step};
use narthex_model::{ServerDefinition, WorkspaceId};
use narthex_policy::RunPolicy;
use narthex_registry::{MountOptions, Mountable, Sharing, config::Entry};
use narthex_testkit::fixture::{Eras, Options, Running};
use serde_json::{Value, json};
use tokio::{sync::mpsc, time::timeout};

use super::{
    following::TELLS,
    scripted::Scripts,
    world::{SOON, World, alias, http_server, modern, transparent},
};

const RESOURCE: &str = "test://watched-resource";

/// Begins a run that has these servers for itself.
pub(crate) async fn begin(
    world: &World,
    policy: RunPolicy,
    own: Vec<ServerDefinition>,
) -> (Arc<RunView>, RunToken) {
    static NUMBERS: AtomicU64 = AtomicU64::new(1);
    let sharing = Sharing::Only(NUMBERS.fetch_add(1, Ordering::Relaxed));
    let options = MountOptions { timeout: SOON, ..MountOptions::default() };
    let mountable = |own| Mountable { sharing, ..Mountable::new(Arc::new(own)) };
    let set = own.into_iter().map(mountable).collect();
    let set = world.gateway.registry().mount(set, &options).await.unwrap();
    let token = RunToken::generate().unwrap();
    let run = Arc::new(RunView::with_servers(&token, WorkspaceId::default(), policy, set));
    world.gateway.begin_run(&run).unwrap();
    (run, token)
}

impl World {
    /// The same world with another run as the caller.
    pub(crate) fn seen_by(&self, run: &Arc<RunView>) -> Self {
        Self { gateway: self.gateway.clone(), run: run.clone(), fixtures: Vec::new() }
    }
}

async fn fixture(eras: Eras) -> Running {
    Running::http(Options { eras, ..Options::default() }).await.unwrap()
}

fn none() -> RunPolicy {
    RunPolicy::default()
}

/// A world with the shared server `all`, and two runs that each have an own server `mine`.
struct Two {
    world: World,
    /// The own servers of the two runs, in the same order.
    mine: [Running; 2],
    /// The world as each of the two runs sees it.
    seen: [World; 2],
}

impl Two {
    async fn of(eras: Eras) -> Self {
        Self::with(eras, &RunPolicy::AllAttached).await
    }

    /// As [`Self::of`], with the shared servers that `policy` attaches.
    async fn with(eras: Eras, policy: &RunPolicy) -> Self {
        let world = World::with(&[("all", eras)]).await;
        let mine = [fixture(eras).await, fixture(eras).await];
        let mut seen = Vec::new();
        for fixture in &mine {
            let own = vec![http_server("mine", &fixture.url)];
            let (run, _token) = begin(&world, policy.clone(), own).await;
            seen.push(world.seen_by(&run));
        }
        Self { world, mine, seen: seen.try_into().ok().unwrap() }
    }
}

fn endpoints() -> [(Endpoint, &'static str); 2] {
    [(transparent("mine"), ""), (Endpoint::Aggregated, "mcp__mine__")]
}

/// One request of each method that concerns a server or one of its items; `mine` in the request is
/// the server's alias.
fn requests(prefix: &str, task: &str) -> Vec<(&'static str, Value)> {
    let name = |name: &str| format!("{prefix}{name}");
    let argument = || json!({"name": "arg1", "value": "p"});
    let reference = |kind: &str, key: &str, value: String| json!({"type": kind, key: value});
    let prompt = reference("ref/prompt", "name", name("test_prompt_with_arguments"));
    let template = "test://template/{id}/data".to_owned();
    let template = reference("ref/resource", "uri", template);
    vec![
        ("tools/call", json!({"name": name("echo"), "arguments": {"message": "x"}})),
        ("tools/call", json!({"name": name("list_resources"), "arguments": {}})),
        ("tools/call", json!({"name": name("read_resource"), "arguments": {"uri": RESOURCE}})),
        ("prompts/get", json!({"name": name("test_simple_prompt")})),
        ("resources/read", json!({"uri": "test://static-text"})),
        ("completion/complete", json!({"ref": prompt, "argument": argument()})),
        ("completion/complete", json!({"ref": template, "argument": argument()})),
        ("resources/subscribe", json!({"uri": RESOURCE})),
        ("resources/unsubscribe", json!({"uri": RESOURCE})),
        ("logging/setLevel", json!({"level": "error"})),
        ("tools/list", json!({})),
        ("prompts/list", json!({})),
        ("resources/list", json!({})),
        ("resources/templates/list", json!({})),
        ("server/discover", json!({})),
        ("subscriptions/listen", json!({"notifications": {"resourceSubscriptions": [RESOURCE]}})),
        ("tasks/get", json!({"taskId": task})),
        ("tasks/cancel", json!({"taskId": task})),
        ("tasks/result", json!({"taskId": task})),
        ("tasks/list", json!({})),
        ("ping", json!({})),
        ("vendor/anything", json!({})),
    ]
}

/// The first message that a caller gets, without the caller's own words.
async fn heard(world: &World, caller: &Caller, method: &str, params: Value, words: &str) -> String {
    let mut params = params;
    if method.starts_with("tasks/") && caller.session.is_none() {
        params["_meta"] = json!({"io.modelcontextprotocol/clientCapabilities":
            {"extensions": {"io.modelcontextprotocol/tasks": {}}}});
    }
    let request = super::world::request(caller, method, params);
    let mut answering = world.gateway.call(caller, request).await;
    let step = timeout(SOON, answering.next()).await.expect("no answer");
    let payload = match step {
        Some(Step::Answer(answer)) => answer.payload,
        Some(Step::Message(message)) => message,
        other => panic!("{method}: {other:?}"),
    };
    String::from_utf8(payload.into_bytes().to_vec()).unwrap().replace(words, "SERVER")
}

async fn tools(world: &World, caller: &Caller) -> Vec<String> {
    let list = world.ask(caller, "tools/list", json!({})).await;
    let tools = list["result"]["tools"].as_array().unwrap_or_else(|| panic!("{list}"));
    tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

/// True if a request is one of the caller's era, and the fixture answers it without an error.
fn is_answered(caller: &Caller, method: &str) -> bool {
    match method {
        "server/discover" | "subscriptions/listen" => caller.session.is_none(),
        "ping" | "logging/setLevel" | "resources/subscribe" | "resources/unsubscribe" => {
            caller.session.is_some()
        }
        _ => !method.starts_with("tasks/") && !method.starts_with("vendor/"),
    }
}

/// Checks that each kind of request to an own server has an answer.
async fn uses(world: &World, caller: &Caller, prefix: &str, sees_shared: bool) {
    for (method, params) in requests(prefix, "absent") {
        let is_own_tool = params.to_string().contains("_resource");
        if is_answered(caller, method) && !(is_own_tool && prefix.is_empty()) {
            let answer = heard(world, caller, method, params, "mine").await;
            assert!(!answer.contains("\"error\":{"), "{method} {answer}");
        }
    }
    let names = tools(world, caller).await;
    let has = |name: &str| names.iter().any(|one| one == name);
    assert!(has(&format!("{prefix}echo")), "{names:?}");
    assert_eq!(has("mcp__all__echo"), sees_shared, "{names:?}");
}

/// E7: a run uses an own server like any other, at both endpoints, for each pair of eras, with and
/// without shared servers.
#[tokio::test]
async fn e7_a_run_uses_its_own_server_like_a_shared_server() {
    for eras in [Eras::Legacy, Eras::Modern] {
        let shared = World::with(&[("all", eras)]).await;
        for policy in [RunPolicy::AllAttached, none()] {
            let mine = fixture(eras).await;
            let own = vec![http_server("mine", &mine.url)];
            let (run, token) = begin(&shared, policy.clone(), own).await;
            assert_eq!(shared.gateway.runs().identify(token.expose()).unwrap().id, run.id);
            let world = shared.seen_by(&run);
            for (endpoint, prefix) in endpoints() {
                let sees_shared = !prefix.is_empty() && policy == RunPolicy::AllAttached;
                let [modern, legacy] = world.both_callers(&endpoint).await;
                uses(&world, &modern, prefix, sees_shared).await;
                uses(&world, &legacy, prefix, sees_shared).await;
            }
            assert!(mine.fixture.counts().calls > 0);
            assert!(world.gateway.end_run(run.id).await.is_some());
        }
        shared.gateway.drain().await;
    }
}

/// E7, D5, S18: every other run gets the answers for an absent server in each request. This holds
/// for a run with all shared servers, and for a run with another server of the same alias.
#[tokio::test]
async fn e7_an_own_server_of_a_run_is_absent_for_other_runs_in_every_method() {
    for eras in [Eras::Legacy, Eras::Modern] {
        let two = Two::of(eras).await;
        let task = some_task(&two.seen[0], eras).await;
        // No session can be opened at the endpoint of an absent server; see below.
        for (is_aggregated, is_session) in [(false, false), (true, false), (true, true)] {
            let caller = async |name: &str| {
                let endpoint = match is_aggregated {
                    true => Endpoint::Aggregated,
                    false => transparent(name),
                };
                match is_session {
                    true => two.world.legacy_caller(endpoint).await,
                    false => two.world.modern_caller(endpoint),
                }
            };
            let prefix = |name: &str| match is_aggregated {
                true => format!("mcp__{name}__"),
                false => String::new(),
            };
            let (real, absent) = (caller("mine").await, caller("nope").await);
            let (asked, control) = (prefix("mine"), prefix("nope"));
            let asked = requests(&asked, &task);
            for (one, other) in asked.into_iter().zip(requests(&control, "absent")) {
                let (method, params) = one;
                let before = two.mine.each_ref().map(|mine| mine.fixture.counts().calls);
                let real = heard(&two.world, &real, method, params, "mine").await;
                let control = heard(&two.world, &absent, method, other.1, "nope").await;
                let real = real.replace(&task, "absent");
                assert_eq!(real, control, "{method} {is_aggregated} {is_session}");
                let is_list = method.ends_with("/list");
                assert!(!is_list || !real.contains("mcp__SERVER"), "{real}");
                let after = two.mine.each_ref().map(|mine| mine.fixture.counts().calls);
                assert_eq!(before, after, "{method}");
            }
        }
        // No session is opened at the own server's endpoint, either.
        let request = super::world::initialize("2025-11-25", json!({}));
        let (gateway, run) = (&two.world.gateway, &two.world.run);
        for name in ["mine", "nope"] {
            let (_, session) = gateway.initialize(run, &transparent(name), &request).await;
            assert!(session.is_none(), "{name}");
        }
        two.world.gateway.drain().await;
    }
}

/// A task that a run has at its own server.
async fn some_task(world: &World, eras: Eras) -> String {
    let aggregated = Endpoint::Aggregated;
    let answer = match eras {
        Eras::Modern => {
            let caller = world.modern_caller(aggregated);
            let meta = json!({"io.modelcontextprotocol/clientCapabilities":
                {"elicitation": {}, "extensions": {"io.modelcontextprotocol/tasks": {}}}});
            let params = json!({"name": "mcp__mine__confirm_delete",
                "arguments": {"filename": "a.txt"}, "_meta": meta});
            world.call(&caller, modern(1, "tools/call", params)).await["result"].take()
        }
        _ => return "some-task".to_owned(),
    };
    answer["taskId"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
}

/// S18: the task of a run is unknown in another run that has another server of the same alias.
#[tokio::test]
async fn s18_the_task_of_a_run_is_unknown_to_another_run_with_an_equal_alias() {
    let two = Two::of(Eras::Modern).await;
    let task = some_task(&two.seen[0], Eras::Modern).await;
    for (endpoint, _) in endpoints() {
        let params = json!({"taskId": task});
        let other = two.seen[1].modern_caller(endpoint.clone());
        let real = heard(&two.world, &other, "tasks/get", params.clone(), &task).await;
        let params_absent = json!({"taskId": "absent"});
        let absent = heard(&two.world, &other, "tasks/get", params_absent, "absent").await;
        assert_eq!(real, absent);
        let owner = two.seen[0].modern_caller(endpoint);
        let own = heard(&two.world, &owner, "tasks/get", params, &task).await;
        assert!(own.contains("\"status\""), "{own}");
    }
    two.world.gateway.drain().await;
}

async fn listen(world: &World, endpoint: &Endpoint) -> Answering {
    let caller = world.modern_caller(endpoint.clone());
    let wanted = json!({"resourceSubscriptions": [RESOURCE], "toolsListChanged": true});
    let request = modern(9, "subscriptions/listen", json!({"notifications": wanted}));
    let mut listening = world.gateway.call(&caller, request).await;
    let first = next(&mut listening).await;
    assert_eq!(first["method"], "notifications/subscriptions/acknowledged", "{first}");
    listening
}

async fn next(listening: &mut Answering) -> Value {
    match timeout(SOON, listening.next()).await.expect("nothing comes") {
        Some(Step::Message(payload)) => serde_json::from_slice(&payload.into_bytes()).unwrap(),
        other => panic!("{other:?}"),
    }
}

/// Opens a session that has subscribed to the resource, and returns the session's messages.
async fn subscriber(world: &World, endpoint: &Endpoint) -> mpsc::Receiver<narthex_wire::Payload> {
    let caller = world.legacy_caller(endpoint.clone()).await;
    let outbox = caller.session.as_ref().unwrap().take_outbox().unwrap();
    let answer = world.ask(&caller, "resources/subscribe", json!({"uri": RESOURCE})).await;
    assert_eq!(answer["result"], json!({}), "{answer}");
    outbox
}

async fn told(outbox: &mut mpsc::Receiver<narthex_wire::Payload>) -> String {
    let payload = timeout(SOON, outbox.recv()).await.expect("nothing comes").unwrap();
    let message: Value = serde_json::from_slice(&payload.into_bytes()).unwrap();
    message["method"].as_str().unwrap().to_owned()
}

const UPDATED: &str = "notifications/resources/updated";
const LIST_CHANGED: &str = "notifications/tools/list_changed";

/// E7, D5: messages of an own server reach only its run, although another run has followed the same
/// subject of a server of the same alias. The order proves this: the first message to the other run
/// is the last one of its own server.
#[tokio::test]
async fn e7_notifications_of_an_own_server_reach_only_its_run() {
    for eras in [Eras::Legacy, Eras::Modern] {
        let two = Two::with(eras, &none()).await;
        for (endpoint, _) in endpoints() {
            let mut listeners =
                [listen(&two.seen[0], &endpoint).await, listen(&two.seen[1], &endpoint).await];
            let mut sessions = [
                subscriber(&two.seen[0], &endpoint).await,
                subscriber(&two.seen[1], &endpoint).await,
            ];
            let [one, other] = &two.mine;
            one.fixture.toggle_dynamic_tool();
            assert_eq!(next(&mut listeners[0]).await["method"], LIST_CHANGED, "{eras:?}");
            assert_eq!(told(&mut sessions[0]).await, LIST_CHANGED, "{eras:?}");
            other.fixture.touch_resource(RESOURCE);
            let heard = next(&mut listeners[1]).await;
            assert_eq!(heard["method"], UPDATED, "{eras:?} {heard}");
            assert_eq!(heard["params"]["uri"], RESOURCE);
            assert_eq!(told(&mut sessions[1]).await, UPDATED, "{eras:?}");
            one.fixture.touch_resource(RESOURCE);
            assert_eq!(next(&mut listeners[0]).await["method"], UPDATED, "{eras:?}");
            assert_eq!(told(&mut sessions[0]).await, UPDATED, "{eras:?}");
            let has_dynamic = tools(&two.seen[1], &two.seen[1].modern_caller(endpoint)).await;
            assert!(!has_dynamic.iter().any(|name| name.ends_with("dynamic_tool")));
        }
        two.world.gateway.drain().await;
    }
}

/// E7, D5: log messages of an own server reach only sessions of its run that have set a level. Each
/// server gets the level of its own run's sessions.
#[tokio::test]
async fn e7_log_messages_of_an_own_server_reach_only_its_run() {
    let scripts = Scripts::new();
    let world = World::settled(vec![scripts.entry("all", TELLS)], GatewayOptions::default()).await;
    let mut seen = vec![world.seen_by(&world.run)];
    for name in ["one", "two"] {
        let mut own = scripts.server(name, TELLS);
        own.alias = alias("mine");
        let (run, _token) = begin(&world, none(), vec![own]).await;
        seen.push(world.seen_by(&run));
    }
    let mut callers = Vec::new();
    for world in &seen {
        let caller = world.legacy_caller(Endpoint::Aggregated).await;
        let outbox = caller.session.as_ref().unwrap().take_outbox().unwrap();
        callers.push((caller, outbox));
    }
    // A receiver of an earlier message would get that one first.
    for (index, level) in [(1, "error"), (2, "warning"), (0, "notice")] {
        let (caller, outbox) = &mut callers[index];
        let answer = world.ask(caller, "logging/setLevel", json!({"level": level})).await;
        assert_eq!(answer["result"], json!({}), "{answer}");
        let payload = timeout(SOON, outbox.recv()).await.expect("nothing comes").unwrap();
        let message: Value = serde_json::from_slice(&payload.into_bytes()).unwrap();
        assert_eq!(message["method"], "notifications/message", "{message}");
        assert_eq!(message["params"]["level"], level, "{message}");
    }
    world.gateway.drain().await;
}

/// D5: a run without a shared server gets no changes of that server.
#[tokio::test]
async fn d5_a_run_gets_no_notifications_of_servers_that_are_not_attached() {
    let two = Two::of(Eras::Legacy).await;
    let (narrow, _token) =
        begin(&two.world, none(), vec![http_server("mine", &two.mine[0].url)]).await;
    let narrow = two.world.seen_by(&narrow);
    let mut hears = listen(&narrow, &Endpoint::Aggregated).await;
    let mut everybody = listen(&two.world, &Endpoint::Aggregated).await;
    let mut session = subscriber(&narrow, &Endpoint::Aggregated).await;
    two.world.fixtures[0].fixture.toggle_dynamic_tool();
    assert_eq!(next(&mut everybody).await["method"], LIST_CHANGED);
    two.mine[0].fixture.touch_resource(RESOURCE);
    assert_eq!(next(&mut hears).await["method"], UPDATED);
    assert_eq!(told(&mut session).await, UPDATED);
    two.world.gateway.drain().await;
}

/// E7: a run keeps its own server also if the shared configuration begins to use its alias.
#[tokio::test]
async fn e7_an_own_server_keeps_its_alias_when_a_shared_server_gets_that_alias() {
    let scripts = Scripts::new();
    let world = World::settled(vec![], GatewayOptions::default()).await;
    let mine = fixture(Eras::Legacy).await;
    let (run, _token) =
        begin(&world, RunPolicy::AllAttached, vec![http_server("mine", &mine.url)]).await;
    let added = world.gateway.registry().add_server(scripts.entry("mine", ["", "", ""])).await;
    added.unwrap();
    let tools_of =
        async |world: &World| tools(world, &world.modern_caller(Endpoint::Aggregated)).await;
    let seen = tools_of(&world.seen_by(&run)).await;
    assert!(seen.iter().any(|name| name == "mcp__mine__echo"), "{seen:?}");
    assert!(!seen.iter().any(|name| name == "mcp__mine__act"), "{seen:?}");
    let shared = tools_of(&world).await;
    assert!(shared.iter().any(|name| name == "mcp__mine__act"), "{shared:?}");
    assert!(!shared.iter().any(|name| name == "mcp__mine__echo"), "{shared:?}");
    world.gateway.drain().await;
}

/// E7, D12: a session that servers may ask questions gets a process of the run's own server.
#[tokio::test]
async fn e7_a_session_that_takes_questions_gets_a_process_of_its_runs_own_server() {
    let scripts = Scripts::new();
    let world = World::settled(vec![], GatewayOptions::default()).await;
    let own = vec![scripts.server("mine", ["", "", ""])];
    let (run, _token) = begin(&world, none(), own).await;
    let seen = world.seen_by(&run);
    for (endpoint, prefix) in endpoints() {
        let session = seen.session(&endpoint, json!({"sampling": {}})).await;
        let caller = Caller::new(run.clone(), endpoint, Some(session));
        let params = json!({"name": format!("{prefix}act"), "arguments": {}});
        let answer = seen.ask(&caller, "tools/call", params).await;
        assert!(answer["result"].is_object(), "{answer}");
    }
    assert_eq!(scripts.started("mine").len(), 3);
    assert_eq!(seen.gateway.snapshot(&run).servers.len(), 1);
    assert!(world.gateway.registry().snapshot().get(alias("mine").as_str()).is_none());
    world.gateway.drain().await;
}

/// E20: the tools that a run sees are recorded when it begins and when they change, with a digest
/// of each definition; tools of other runs change nothing in it.
#[tokio::test]
async fn e20_the_tools_of_a_run_are_recorded() {
    let two = Two::of(Eras::Legacy).await;
    let run = &two.seen[0].run;
    let recorded = || run.tools().unwrap();
    let first = recorded();
    let caller = two.seen[0].modern_caller(Endpoint::Aggregated);
    let listed = tools(&two.seen[0], &caller).await;
    assert_eq!(first.tools.iter().map(|tool| &*tool.name).collect::<Vec<_>>(), listed);
    let echo = first.tools.iter().find(|tool| &*tool.name == "mcp__mine__echo").unwrap();
    assert_eq!(echo.server, alias("mine"));
    let shared = first.tools.iter().find(|tool| &*tool.name == "mcp__all__echo").unwrap();
    // Two servers list the same definition.
    assert_eq!(echo.digest, shared.digest);
    let mut hears = listen(&two.seen[0], &Endpoint::Aggregated).await;
    two.mine[1].fixture.toggle_dynamic_tool();
    two.mine[0].fixture.toggle_dynamic_tool();
    assert_eq!(next(&mut hears).await["method"], LIST_CHANGED);
    let waiting = async {
        while recorded().digest == first.digest {
            tokio::task::yield_now().await;
        }
    };
    timeout(SOON, waiting).await.expect("not recorded");
    let names: Vec<_> = recorded().tools.iter().map(|tool| tool.name.to_string()).collect();
    assert_eq!(names.iter().filter(|name| name.ends_with("dynamic_tool")).count(), 1);
    assert_eq!(names.len(), listed.len() + 1);
    two.world.gateway.drain().await;
}

/// E7: state stored by alias is separate for entries of the shared configuration and own servers.
#[tokio::test]
async fn e7_metrics_do_not_name_own_servers_of_runs() {
    let two = Two::of(Eras::Legacy).await;
    let caller = two.seen[0].modern_caller(transparent("mine"));
    let params = json!({"name": "echo", "arguments": {"message": "x"}});
    let answer = two.world.ask(&caller, "tools/call", params).await;
    assert!(answer["result"].is_object(), "{answer}");
    let metrics = two.world.gateway.metrics().render();
    assert!(!metrics.contains("\"mine\""), "{metrics}");
    assert!(metrics.contains("server=\"all\""), "{metrics}");
    let entry = Entry::Server(http_server("mine", &two.mine[0].url));
    two.world.gateway.registry().add_server(entry).await.unwrap();
    two.world.gateway.drain().await;
}
