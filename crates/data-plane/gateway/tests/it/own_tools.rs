//! Tools of the gateway's own for resources and prompts.

use narthex_gateway::{Caller, Endpoint, GatewayOptions};
use narthex_model::{NameRule, UriRule};
use narthex_registry::config::Entry;
use narthex_testkit::fixture::Eras;
use serde_json::{Value, json};

use super::{
    scripted::Scripts,
    world::{World, transparent},
};

const NAMES: [&str; 4] = ["list_resources", "read_resource", "list_prompts", "get_prompt"];

async fn tools(world: &World, caller: &Caller) -> Vec<Value> {
    let list = world.ask(caller, "tools/list", json!({})).await;
    list["result"]["tools"].as_array().unwrap_or_else(|| panic!("{list}")).clone()
}

async fn call(world: &World, caller: &Caller, name: &str, arguments: Value) -> Value {
    let params = json!({"name": format!("mcp__one__{name}"), "arguments": arguments});
    world.ask(caller, "tools/call", params).await
}

fn text(answer: &Value) -> &str {
    answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}"))
}

fn error(answer: &Value) -> (&str, &str) {
    let error = &answer["result"]["structuredContent"]["error"];
    assert_eq!(answer["result"]["isError"], true, "{answer}");
    (error["kind"].as_str().unwrap(), error["message"].as_str().unwrap())
}

/// E19, E82: resources and prompts can be listed, read and got through tools, for each pair of
/// eras. The results are those of the protocol's methods.
#[tokio::test]
async fn e19_resources_and_prompts_are_reached_through_tools() {
    for eras in [Eras::Legacy, Eras::Modern] {
        let world = World::with(&[("one", eras)]).await;
        for caller in world.both_callers(&Endpoint::Aggregated).await {
            let is_modern = caller.session.is_none();
            let listed = call(&world, &caller, "list_resources", json!({})).await;
            let page: Value = serde_json::from_str(text(&listed)).unwrap();
            let direct = world.ask(&caller, "resources/list", json!({})).await;
            assert_eq!(page["resources"], direct["result"]["resources"], "{eras:?}");
            assert_eq!(page["resourceTemplates"][0]["uriTemplate"], "test://template/{id}/data");
            let kind = listed["result"].get("resultType").cloned();
            assert_eq!(kind, is_modern.then(|| json!("complete")), "{listed}");
            let read = call(&world, &caller, "read_resource", json!({"uri": "test://static-text"}));
            assert!(text(&read.await).starts_with("This is the content"));
            let read =
                call(&world, &caller, "read_resource", json!({"uri": "test://static-binary"}));
            let content = read.await["result"]["content"][0].take();
            assert_eq!(content["type"], "resource", "{content}");
            assert_eq!(content["resource"]["mimeType"], "image/png", "{content}");
            assert!(content["resource"]["blob"].is_string() && content.get("text").is_none());
            let listed = call(&world, &caller, "list_prompts", json!({})).await;
            let page: Value = serde_json::from_str(text(&listed)).unwrap();
            assert!(page["prompts"].to_string().contains("\"test_simple_prompt\""), "{page}");
            let arguments = json!({"arg1": "a", "arg2": "b"});
            let arguments = json!({"name": "test_prompt_with_arguments", "arguments": arguments});
            let got = call(&world, &caller, "get_prompt", arguments).await;
            assert_eq!(text(&got), "user: Prompt with arguments: arg1='a', arg2='b'");
            let got =
                call(&world, &caller, "get_prompt", json!({"name": "test_prompt_with_image"}));
            let got = got.await;
            assert_eq!(got["result"]["content"][1]["type"], "image", "{got}");
        }
        world.gateway.drain().await;
    }
}

/// E71: own tools exist only for declared primitives; E82: with schemas that list the required
/// arguments.
#[tokio::test]
async fn e71_own_tools_exist_only_for_declared_primitives_of_a_server() {
    let scripts = Scripts::new();
    // Declares tools, logging and resources, and no prompts.
    let entries = vec![scripts.entry("one", ["", "", ""])];
    let world = World::settled(entries, GatewayOptions::default()).await;
    let caller = world.modern_caller(Endpoint::Aggregated);
    let listed = tools(&world, &caller).await;
    let names: Vec<_> = listed.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["mcp__one__act", "mcp__one__list_resources", "mcp__one__read_resource"]);
    world.gateway.drain().await;
}

/// E82: a required argument is required by the schema and by the call.
#[tokio::test]
async fn e82_required_arguments_are_in_the_schema_and_checked() {
    let world = World::with(&[("one", Eras::Both)]).await;
    let caller = world.modern_caller(Endpoint::Aggregated);
    let listed = tools(&world, &caller).await;
    for (name, required) in
        NAMES.into_iter().zip([json!([]), json!(["uri"]), json!([]), json!(["name"])])
    {
        let is_it = |tool: &&Value| tool["name"] == format!("mcp__one__{name}");
        let tool = listed.iter().find(is_it).unwrap_or_else(|| panic!("{name}"));
        assert_eq!(tool["inputSchema"]["type"], "object");
        assert_eq!(tool["inputSchema"]["required"], required, "{tool}");
    }
    for (name, arguments) in [
        ("read_resource", json!({})),
        ("read_resource", json!({"uri": 7})),
        ("get_prompt", json!({"arguments": {}})),
    ] {
        let answer = call(&world, &caller, name, arguments).await;
        assert_eq!(error(&answer).0, "invalid_arguments", "{answer}");
    }
    // An absent item gets the same error from the server and from the gateway.
    let answer = call(&world, &caller, "read_resource", json!({"uri": "test://none"})).await;
    assert_eq!(error(&answer), ("invalid_arguments", "there is no resource `test://none`"));
    let answer = call(&world, &caller, "get_prompt", json!({"name": "none"})).await;
    assert_eq!(error(&answer), ("invalid_arguments", "there is no prompt `none`"));
    let lacking = json!({"name": "test_prompt_with_arguments"});
    let answer = call(&world, &caller, "get_prompt", lacking).await;
    assert_eq!(error(&answer), ("server_error", "argument arg1 is missing"));
    world.gateway.drain().await;
}

/// E80: a server's tool keeps its name if the gateway has a tool of the same name, and calls reach
/// the server's tool.
#[tokio::test]
async fn e80_a_servers_tool_is_not_hidden_by_a_synthetic_tool_of_the_same_name() {
    const TALKS: &str = r#"case $line in
        *'"method":"tools/list"'*)
          answer '{"tools":[{"name":"list_resources"}]}'; continue ;;
        *'"method":"tools/call"'*)
          answer '{"content":[{"type":"text","text":"the real one"}]}'; continue ;; esac"#;
    let scripts = Scripts::new();
    let entries = vec![scripts.entry("one", ["", TALKS, ""])];
    let world = World::settled(entries, GatewayOptions::default()).await;
    for caller in world.both_callers(&Endpoint::Aggregated).await {
        let answer = call(&world, &caller, "list_resources", json!({})).await;
        assert_eq!(text(&answer), "the real one");
        let listed = tools(&world, &caller).await;
        let named =
            |tool: &&Value| tool["name"].as_str().unwrap().starts_with("mcp__one__list_resources");
        let names: Vec<_> = listed.iter().filter(named).map(|tool| tool["name"].clone()).collect();
        assert_eq!(names.len(), 2, "{names:?}");
        assert_eq!(names[0], "mcp__one__list_resources");
        let own = names[1].as_str().unwrap().strip_prefix("mcp__one__").unwrap();
        let answer = call(&world, &caller, own, json!({})).await;
        assert!(text(&answer).contains("test://a"), "{answer}");
    }
    world.gateway.drain().await;
}

/// D5: rules for resources and prompts hold for the gateway's tools too, as do rules for tools.
#[tokio::test]
async fn d5_own_tools_do_not_show_items_hidden_by_a_rule() {
    let world = World::changed([("one", Eras::Both)], |definition| {
        definition.exposed.tools = NameRule::new(None, &["list_prompts"]);
        definition.exposed.resources = UriRule::new(None, &["test://static-*", "*template*"]);
        definition.exposed.prompts = NameRule::new(Some(&["test_simple_prompt"]), &[]);
    })
    .await;
    for caller in world.both_callers(&Endpoint::Aggregated).await {
        let listed = call(&world, &caller, "list_resources", json!({})).await;
        assert!(text(&listed).contains("test://watched-resource"), "{listed}");
        assert!(!text(&listed).contains("test://static") && !text(&listed).contains("template"));
        for uri in ["test://static-text", "test://static-none"] {
            let answer = call(&world, &caller, "read_resource", json!({"uri": uri})).await;
            let message = format!("there is no resource `{uri}`");
            assert_eq!(error(&answer), ("invalid_arguments", message.as_str()));
        }
        for name in ["test_prompt_with_image", "none"] {
            let answer = call(&world, &caller, "get_prompt", json!({"name": name})).await;
            let message = format!("there is no prompt `{name}`");
            assert_eq!(error(&answer), ("invalid_arguments", message.as_str()));
        }
        let answer = call(&world, &caller, "list_prompts", json!({})).await;
        assert_eq!(error(&answer).0, "tool_not_found");
    }
    world.gateway.drain().await;
}

/// E19: an operator can switch the gateway's tools off, and no transparent endpoint has them (D2).
#[tokio::test]
async fn e19_own_tools_exist_only_at_the_aggregated_endpoint_and_can_be_switched_off() {
    let world = World::with(&[("one", Eras::Both)]).await;
    let caller = world.modern_caller(transparent("one"));
    let listed = tools(&world, &caller).await;
    assert!(!listed.iter().any(|tool| NAMES.iter().any(|name| tool["name"] == *name)));
    world.gateway.drain().await;

    let scripts = Scripts::new();
    let options = GatewayOptions { synthetic_tools: false, ..GatewayOptions::default() };
    let entries: Vec<Entry> = vec![scripts.entry("one", ["", "", ""])];
    let world = World::settled(entries, options).await;
    let caller = world.modern_caller(Endpoint::Aggregated);
    assert_eq!(tools(&world, &caller).await.len(), 1);
    let answer = call(&world, &caller, "list_resources", json!({})).await;
    assert_eq!(error(&answer).0, "tool_not_found");
    world.gateway.drain().await;
}

/// D23: results of the gateway's tools have the server's limits. D13: their calls are calls like
/// any other, counted by the method of the request to the server.
#[tokio::test]
async fn d23_own_tools_have_the_servers_limits_and_are_counted() {
    let world = World::changed([("one", Eras::Both)], |definition| {
        definition.output.bytes = std::num::NonZeroU64::new(20);
    })
    .await;
    let caller = world.modern_caller(Endpoint::Aggregated);
    let read = call(&world, &caller, "read_resource", json!({"uri": "test://static-text"})).await;
    assert!(text(&read).starts_with("This is the content … [cut by narthex: 20 of"), "{read}");
    let metrics = world.gateway.metrics().render();
    let line = r#"narthex_calls_total{server="one",method="resources/read",outcome="ok"} 1"#;
    assert!(metrics.contains(line), "{metrics}");
    world.gateway.drain().await;
}

/// E19: §1.3: a server that needs input for a prompt gets the input through the tool, too, and its
/// state with it.
#[tokio::test]
async fn own_tools_carry_questions_and_their_answers() {
    let world = World::with(&[("one", Eras::Modern)]).await;
    let caller = world.modern_caller(Endpoint::Aggregated);
    let meta = json!({"io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}}});
    let name = "mcp__one__get_prompt";
    let arguments = json!({"name": "test_input_required_result_prompt"});
    let mut params = json!({"name": name, "arguments": arguments, "_meta": meta});
    let asked = world.ask(&caller, "tools/call", params.clone()).await;
    assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
    let answer = json!({"action": "accept", "content": {"context": "winter"}});
    params["inputResponses"] = json!({"user_context": answer});
    if let Some(state) = asked["result"].get("requestState") {
        params["requestState"] = state.clone();
    }
    let got = world.ask(&caller, "tools/call", params).await;
    assert!(text(&got).contains("Use this context: winter"), "{got}");
    world.gateway.drain().await;
}
