//! Lists and calls through both kinds of endpoint, for every pair of eras.

use narthex_gateway::{Caller, Endpoint, GatewayOptions, RunToken, RunView, Step};
use narthex_policy::RunPolicy;
use narthex_registry::config::Entry;
use narthex_testkit::fixture::{Eras, Options, Running};
use serde_json::{Value, json};

use super::{
    following::next,
    scripted::Scripts,
    world::{World, http_server, legacy, modern, transparent},
};

fn text(answer: &Value) -> &str {
    answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}"))
}

async fn both_callers(world: &World, endpoint: Endpoint) -> [Caller; 2] {
    [world.modern_caller(endpoint.clone()), world.legacy_caller(endpoint).await]
}

fn request(caller: &Caller, method: &str, params: Value) -> narthex_wire::Message {
    if caller.session.is_some() { legacy(7, method, params) } else { modern(7, method, params) }
}

/// E77, D2, A-7: issue point 5: tools, resources and prompts work for each pair of eras at both
/// endpoints.
#[tokio::test]
async fn every_pair_of_eras_lists_and_calls() {
    for eras in [Eras::Legacy, Eras::Modern, Eras::Both] {
        let world = World::with(&[("one", eras)]).await;
        for (endpoint, prefix) in [(transparent("one"), ""), (Endpoint::Aggregated, "mcp__one__")] {
            for caller in both_callers(&world, endpoint.clone()).await {
                let is_modern = caller.session.is_none();
                let list = world.call(&caller, request(&caller, "tools/list", json!({}))).await;
                let tools = list["result"]["tools"].as_array().unwrap_or_else(|| panic!("{list}"));
                let wanted = format!("{prefix}echo");
                assert!(tools.iter().any(|tool| tool["name"] == wanted), "{eras:?} {list}");
                assert_eq!(list["result"].get("ttlMs").is_some(), is_modern, "{list}");
                let params = json!({"name": wanted, "arguments": {"message": "hello"}});
                let answer = world.call(&caller, request(&caller, "tools/call", params)).await;
                assert!(text(&answer).contains("hello"), "{answer}");
                assert_eq!(answer["id"], 7);
                let kind = answer["result"].get("resultType").cloned();
                assert_eq!(kind, is_modern.then(|| json!("complete")), "{answer}");
                let params = json!({"uri": "test://static-text"});
                let answer = world.call(&caller, request(&caller, "resources/read", params)).await;
                assert!(answer["result"]["contents"][0]["text"].is_string(), "{answer}");
                let params = json!({"name": format!("{prefix}test_simple_prompt")});
                let answer = world.call(&caller, request(&caller, "prompts/get", params)).await;
                assert!(answer["result"]["messages"].is_array(), "{answer}");
            }
        }
        world.gateway.drain().await;
    }
}

/// D5, D16, E88: a request for an absent item fails as such, in the words of the door.
#[tokio::test]
async fn d16_unknown_tools_are_tool_results() {
    let world = World::with(&[("one", Eras::Both)]).await;
    for endpoint in [transparent("one"), Endpoint::Aggregated] {
        for caller in both_callers(&world, endpoint.clone()).await {
            let params = json!({"name": "absent", "arguments": {}});
            let answer = world.call(&caller, request(&caller, "tools/call", params)).await;
            assert_eq!(answer["result"]["isError"], true, "{answer}");
            assert_eq!(answer["result"]["structuredContent"]["error"]["kind"], "tool_not_found");
        }
    }
    world.gateway.drain().await;
}

/// E79, R-E26, S24: two servers with the same tools never get each other's calls.
#[tokio::test]
async fn e79_calls_of_equal_tools_reach_the_named_server() {
    let world = World::with(&[("one", Eras::Both), ("two", Eras::Legacy)]).await;
    let caller = world.modern_caller(Endpoint::Aggregated);
    for (name, index) in [("one", 0), ("two", 1)] {
        let before: Vec<_> = world.fixtures.iter().map(|f| f.fixture.counts().calls).collect();
        let params = json!({"name": format!("mcp__{name}__echo"), "arguments": {"message": name}});
        let answer = world.call(&caller, modern(1, "tools/call", params)).await;
        assert!(text(&answer).contains(name));
        for (at, fixture) in world.fixtures.iter().enumerate() {
            let called = fixture.fixture.counts().calls - before[at];
            assert_eq!(called, u64::from(at == index), "server {at}");
        }
    }
    world.gateway.drain().await;
}

/// D5, E17, R-M31: a server that a run does not have looks like one that does not exist, in lists
/// and calls, at both endpoints and in both eras.
#[tokio::test]
async fn d5_unattached_servers_look_like_absent_servers() {
    let mut world = World::with(&[("one", Eras::Both), ("two", Eras::Both)]).await;
    let attached = RunPolicy::Attached([super::world::alias("one")].into());
    let token = RunToken::generate().unwrap();
    world.run = std::sync::Arc::new(RunView::new(&token, attached));
    for caller in both_callers(&world, Endpoint::Aggregated).await {
        let list = world.call(&caller, request(&caller, "tools/list", json!({}))).await;
        let text = list.to_string();
        assert!(text.contains("mcp__one__echo") && !text.contains("mcp__two__"));
        let call = |name: &str| request(&caller, "tools/call", json!({"name": name}));
        let hidden = world.call(&caller, call("mcp__two__echo")).await;
        let absent = world.call(&caller, call("mcp__six__echo")).await;
        assert_eq!(hidden.to_string().replace("two", "six"), absent.to_string());
    }
    let caller = |name: &str| world.modern_caller(transparent(name));
    for (method, params) in [
        ("tools/call", json!({"name": "echo"})),
        ("tools/list", json!({})),
        ("server/discover", json!({})),
        ("resources/read", json!({"uri": "test://static-text"})),
        ("subscriptions/listen", json!({"notifications": {}})),
        ("vendor/thing", json!({})),
    ] {
        let hidden = world.call(&caller("two"), modern(1, method, params.clone())).await;
        let absent = world.call(&caller("six"), modern(1, method, params)).await;
        assert!(hidden.get("result").is_none() || hidden["result"]["isError"] == true, "{hidden}");
        assert_eq!(hidden.to_string().replace("two", "six"), absent.to_string(), "{method}");
    }
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": {"name": "t", "version": "1"}});
    let initialize = legacy(0, "initialize", params);
    let (_, session) = world.gateway.initialize(&world.run, &transparent("two"), &initialize).await;
    assert!(session.is_none());
    world.gateway.drain().await;
}

/// Issue point 2: when the gateway stops, open calls come to their end first.
#[tokio::test]
async fn drain_lets_open_calls_finish() {
    let world = World::with(&[("one", Eras::Both)]).await;
    for caller in both_callers(&world, transparent("one")).await {
        let params = json!({"name": "sleep", "arguments": {"ms": 200}});
        let request = request(&caller, "tools/call", params);
        let gateway = world.gateway.clone();
        let mut calling = std::pin::pin!(async {
            super::world::finish(gateway.call(&caller, request).await).await
        });
        // The call is sent, but not answered.
        assert!(futures_ready(&mut calling).await.is_none());
        let drained = async {
            if caller.session.is_some() {
                world.gateway.drain().await;
            }
        };
        let (answer, ()) = tokio::join!(calling, drained);
        assert!(answer["result"].get("isError").is_none_or(|is| is == false), "{answer}");
    }
}

/// Polls until the call is at the server: a future that was polled once has been sent.
async fn futures_ready<F: Future + Unpin>(future: &mut F) -> Option<F::Output> {
    tokio::select! {
        biased;
        output = future => Some(output),
        () = tokio::task::yield_now() => None,
    }
}

/// S18, SEP-2663: tasks are answered to their own run, and only if the request declares them.
#[tokio::test]
async fn s18_tasks_need_the_extension_and_their_run() {
    let mut world = World::with(&[("one", Eras::Modern)]).await;
    let declared = json!({"io.modelcontextprotocol/clientCapabilities":
        {"extensions": {"io.modelcontextprotocol/tasks": {}}}});
    let caller = world.modern_caller(transparent("one"));
    let params = json!({"name": "slow_compute", "arguments": {"seconds": 1}, "_meta": declared});
    let started = world.call(&caller, modern(1, "tools/call", params)).await;
    let task = started["result"]["taskId"].as_str().unwrap_or_else(|| panic!("{started}"));
    let get = |meta: &Value| modern(2, "tasks/get", json!({"taskId": task, "_meta": meta}));
    let own = world.call(&caller, get(&declared)).await;
    assert_eq!(own["result"]["taskId"], task, "{own}");
    let undeclared = world.call(&caller, get(&json!({}))).await;
    assert_eq!(undeclared["error"]["code"], -32021, "{undeclared}");
    let listen = || {
        let wanted = json!({"taskIds": [task]});
        modern(3, "subscriptions/listen", json!({"notifications": wanted, "_meta": declared}))
    };
    let mut listening = world.gateway.call(&caller, listen()).await;
    let first = listening.next().await;
    assert!(matches!(first, Some(Step::Message(_))), "{first:?}");
    drop(listening);
    world.run =
        std::sync::Arc::new(RunView::new(&RunToken::generate().unwrap(), RunPolicy::AllAttached));
    let other = world.modern_caller(transparent("one"));
    let foreign = world.call(&other, get(&declared)).await;
    assert_eq!(foreign["error"]["code"], -32602, "{foreign}");
    let foreign = world.call(&other, listen()).await;
    assert_eq!(foreign["error"]["code"], -32602, "{foreign}");
    world.gateway.drain().await;
}

/// E39: running clients are notified of a new server, and call its tools.
#[tokio::test]
async fn e39_a_connected_client_lists_and_calls_a_new_server() {
    let world = World::with(&[("one", Eras::Both)]).await;
    let caller = world.legacy_caller(Endpoint::Aggregated).await;
    let mut outbox = caller.session.as_ref().unwrap().take_outbox().unwrap();
    let fixture = Running::http(Options::default()).await.unwrap();
    let entry = Entry::Server(http_server("two", &fixture.url));
    assert!(world.gateway.registry().add_server(entry).await.unwrap().is_ready());
    next(&mut outbox, "notifications/tools/list_changed").await;
    let list = world.ask(&caller, "tools/list", json!({})).await;
    let tools = list["result"]["tools"].as_array().unwrap();
    assert!(tools.iter().any(|tool| tool["name"] == "mcp__two__echo"), "{list}");
    let params = json!({"name": "mcp__two__echo", "arguments": {"message": "hello"}});
    let answer = world.ask(&caller, "tools/call", params).await;
    assert!(text(&answer).contains("hello"), "{answer}");
    world.gateway.drain().await;
}

/// E87, A-4: on every path that a call can take, a server that ends during it is a
/// `transport_error`.
#[tokio::test]
async fn e87_a_server_that_ends_under_a_call_is_a_transport_error_at_every_endpoint() {
    const ENDS: [&str; 3] =
        ["", r#"case $line in *tools/call*|*resources/read*) exit 9;; esac"#, ""];
    let scripts = Scripts::new();
    let names = ["direct", "named", "own", "read"];
    let entries = names.map(|name| scripts.entry(name, ENDS)).into();
    let world = World::settled(entries, GatewayOptions::default()).await;
    let kind = async |endpoint: Endpoint, method: &str, params: Value| {
        let answer = world.ask(&world.modern_caller(endpoint), method, params).await;
        let of_tool = &answer["result"]["structuredContent"]["error"]["kind"];
        let of_other = &answer["error"]["data"]["kind"];
        let kind = of_tool.as_str().or(of_other.as_str());
        kind.unwrap_or_else(|| panic!("{answer}")).to_owned()
    };
    let uri = json!({"uri": "test://a"});
    let own = json!({"name": "mcp__own__read_resource", "arguments": uri});
    for (endpoint, method, params) in [
        (transparent("direct"), "tools/call", json!({"name": "act"})),
        (Endpoint::Aggregated, "tools/call", json!({"name": "mcp__named__act"})),
        (Endpoint::Aggregated, "tools/call", own),
        (transparent("read"), "resources/read", uri.clone()),
    ] {
        let found = kind(endpoint, method, params.clone()).await;
        assert_eq!(found, "transport_error", "{method} {params}");
    }
    world.gateway.drain().await;
}
