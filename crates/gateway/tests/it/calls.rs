//! Lists and calls through both kinds of endpoint, for every pair of eras.

use narthex_gateway::{Caller, Endpoint};
use narthex_testkit::fixture::Eras;
use serde_json::{Value, json};

use super::world::{World, legacy, modern, transparent};

fn text(answer: &Value) -> &str {
    answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}"))
}

async fn both_callers(world: &World, endpoint: Endpoint) -> [Caller; 2] {
    [world.modern_caller(endpoint.clone()), world.legacy_caller(endpoint).await]
}

fn request(caller: &Caller, method: &str, params: Value) -> narthex_wire::Message {
    if caller.session.is_some() { legacy(7, method, params) } else { modern(7, method, params) }
}

/// Issue point 5: tools, resources and prompts work for each pair of eras at both endpoints.
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

/// D5, D16: what is not there fails as such, in the words of the door.
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

/// E79: two servers with the same tools never get each other's calls.
#[tokio::test]
async fn e79_equal_tools_of_two_servers_stay_apart() {
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
