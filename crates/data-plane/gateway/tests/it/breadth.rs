//! Point 5: requests other than tools and calls, for each pair of eras at both endpoints.

use narthex_gateway::{Answering, Caller, Endpoint, Step};
use narthex_testkit::fixture::Eras;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::world::{SOON, World, legacy, modern, transparent};

const RESOURCE: &str = "test://watched-resource";

fn request(caller: &Caller, method: &str, params: Value) -> narthex_wire::Message {
    if caller.session.is_some() { legacy(7, method, params) } else { modern(7, method, params) }
}

/// A world of one server, with its two endpoints, and the prefix of names at each.
async fn worlds() -> Vec<(World, Eras)> {
    let mut worlds = Vec::new();
    for eras in [Eras::Legacy, Eras::Modern, Eras::Both] {
        worlds.push((World::with(&[("one", eras)]).await, eras));
    }
    worlds
}

fn endpoints() -> [(Endpoint, &'static str); 2] {
    [(transparent("one"), ""), (Endpoint::Aggregated, "mcp__one__")]
}

async fn callers(world: &World, endpoint: &Endpoint) -> [Caller; 2] {
    [world.modern_caller(endpoint.clone()), world.legacy_caller(endpoint.clone()).await]
}

#[tokio::test]
async fn templates_prompts_and_completion_pass_between_all_eras() {
    for (world, _) in worlds().await {
        for (endpoint, prefix) in endpoints() {
            for caller in callers(&world, &endpoint).await {
                templates_prompts_and_completion(&world, &caller, prefix).await;
            }
        }
        world.gateway.drain().await;
    }
}

async fn templates_prompts_and_completion(world: &World, caller: &Caller, prefix: &str) {
    let ask =
        async |method: &str, params| world.call(caller, request(caller, method, params)).await;
    let listed = ask("resources/templates/list", json!({})).await;
    let templates = listed["result"]["resourceTemplates"].as_array();
    assert!(templates.is_some_and(|all| !all.is_empty()), "{listed}");
    let listed = ask("prompts/list", json!({})).await;
    let name = format!("{prefix}test_prompt_with_arguments");
    assert!(listed.to_string().contains(&format!("\"{name}\"")), "{listed}");
    let params = json!({"ref": {"type": "ref/prompt", "name": name},
        "argument": {"name": "arg1", "value": "p"}});
    let completed = ask("completion/complete", params).await;
    assert!(completed["result"]["completion"]["values"].is_array(), "{completed}");
}

#[tokio::test]
async fn levels_are_set_at_every_endpoint() {
    for (world, eras) in worlds().await {
        for (endpoint, _) in endpoints() {
            let caller = world.legacy_caller(endpoint).await;
            let level = legacy(7, "logging/setLevel", json!({"level": "warning"}));
            let answer = world.call(&caller, level).await;
            assert_eq!(answer["result"], json!({}), "{eras:?} {answer}");
            let wrong = legacy(8, "logging/setLevel", json!({"level": "loud"}));
            let answer = world.call(&caller, wrong).await;
            assert_eq!(answer["error"]["code"], -32602, "{eras:?} {answer}");
        }
        world.gateway.drain().await;
    }
}

async fn next(listening: &mut Answering, eras: Eras, endpoint: &Endpoint) -> Value {
    let step = timeout(SOON, listening.next()).await;
    match step.unwrap_or_else(|_late| panic!("nothing comes: {eras:?} {endpoint:?}")) {
        Some(Step::Message(payload)) => serde_json::from_slice(&payload.into_bytes()).unwrap(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn updates_of_resources_reach_listeners_from_servers_of_every_era() {
    for (world, eras) in worlds().await {
        for (endpoint, _) in endpoints() {
            let caller = world.modern_caller(endpoint.clone());
            let wanted = json!({"notifications": {"resourceSubscriptions": [RESOURCE]}});
            let mut listening =
                world.gateway.call(&caller, modern(9, "subscriptions/listen", wanted)).await;
            let first = next(&mut listening, eras, &endpoint).await;
            assert_eq!(first["method"], "notifications/subscriptions/acknowledged", "{eras:?}");
            world.fixtures[0].fixture.touch_resource(RESOURCE);
            let told = next(&mut listening, eras, &endpoint).await;
            assert_eq!(told["method"], "notifications/resources/updated", "{eras:?} {told}");
            assert_eq!(told["params"]["uri"], RESOURCE, "{eras:?} {endpoint:?}");
        }
        world.gateway.drain().await;
    }
}
