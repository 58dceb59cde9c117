//! Guarantees for clients about tools and results at the aggregated endpoint.

use narthex_gateway::{Endpoint, GatewayOptions};
use narthex_model::{ApiKeyAuth, Secret, ServerAuth, Target};
use narthex_registry::config::Entry;
use narthex_testkit::fixture::{Bearer, Eras, Options, Running};
use serde_json::{Value, json};

use super::{
    scripted::Scripts,
    world::{SOON, World, http_server, transparent},
};

/// A world over a script that answers `tools/call` with this result.
async fn answering(scripts: &Scripts, result: &str) -> World {
    let talks =
        format!(r#"case $line in *'"method":"tools/call"'*) answer '{result}'; continue ;; esac"#);
    let entries = vec![scripts.entry("one", ["", &talks, ""])];
    World::settled(entries, GatewayOptions::default()).await
}

async fn act(world: &World, endpoint: Endpoint) -> Value {
    let name = if endpoint == Endpoint::Aggregated { "mcp__one__act" } else { "act" };
    let caller = world.legacy_caller(endpoint).await;
    world.ask(&caller, "tools/call", json!({"name": name})).await["result"].take()
}

/// E81, R-E27, R-M1: every tool has the schema of an object, whatever its server lists.
#[tokio::test]
async fn e81_every_listed_tool_has_an_object_schema() {
    const LISTS: &str = r#"case $line in *'"method":"tools/list"'*)
        answer '{"tools":[{"name":"none"},{"name":"text","inputSchema":{"type":"string"}},
          {"name":"bare","inputSchema":{"type":"object"}},
          {"name":"whole","description":"All of it.",
           "inputSchema":{"type":"object","properties":{"a":{"type":"number"}}}}]}'
        continue ;; esac"#;
    let scripts = Scripts::new();
    let lists: String = LISTS.lines().map(str::trim).collect::<Vec<_>>().join(" ");
    let lists = lists.replace(") answer", ")\nanswer").replace("}' continue", "}'; continue");
    let entries = vec![scripts.entry("one", ["", &lists, ""])];
    let world = World::settled(entries, GatewayOptions::default()).await;
    let empty = json!({"type": "object", "properties": {}, "required": []});
    let whole = json!({"type": "object", "properties": {"a": {"type": "number"}}});
    for caller in world.both_callers(&Endpoint::Aggregated).await {
        let list = world.ask(&caller, "tools/list", json!({})).await;
        for (name, schema) in
            [("none", &empty), ("text", &empty), ("bare", &empty), ("whole", &whole)]
        {
            let name = format!("mcp__one__{name}");
            let tools = list["result"]["tools"].as_array().unwrap();
            let tool = tools.iter().find(|tool| tool["name"] == name);
            let tool = tool.unwrap_or_else(|| panic!("{list}"));
            assert_eq!(tool["inputSchema"], *schema, "{name}");
            let is_told = tool["description"] == "All of it.";
            assert_eq!(is_told, name == "mcp__one__whole", "R-M1: {tool}");
        }
    }
    // D2: an endpoint of one server shows the server's own words.
    let caller = world.modern_caller(transparent("one"));
    let list = world.ask(&caller, "tools/list", json!({})).await;
    assert_eq!(list["result"]["tools"][0], json!({"name": "none"}));
    world.gateway.drain().await;
}

/// E89: a result without content gets an empty content, and keeps its other members. Transparent
/// endpoints change nothing.
#[tokio::test]
async fn e89_a_result_without_content_gets_an_empty_content_and_keeps_its_members() {
    for (result, expected) in [
        ("{}", json!({"content": []})),
        (
            r#"{"toolResult":{"a":1}}"#,
            json!({"toolResult": {"a": 1}, "content": [],
                "structuredContent": {"toolResult": {"a": 1}}}),
        ),
        (r#"{"structuredContent":{"a":1}}"#, json!({"content": [], "structuredContent": {"a": 1}})),
        (r#"{"content":"text"}"#, json!({"content": [], "structuredContent": {"content": "text"}})),
        (r#"{"isError":true}"#, json!({"content": [], "isError": true})),
        ("[1]", json!({"content": [], "structuredContent": {"result": [1]}})),
        (
            r#"{"content":[{"type":"text","text":"x"}],"y":1}"#,
            json!({"content": [{"type": "text", "text": "x"}], "y": 1}),
        ),
    ] {
        let scripts = Scripts::new();
        let world = answering(&scripts, result).await;
        assert_eq!(act(&world, Endpoint::Aggregated).await, expected, "{result}");
        let raw: Value = serde_json::from_str(result).unwrap();
        assert_eq!(act(&world, transparent("one")).await, raw, "{result}");
        world.gateway.drain().await;
    }
}

/// E88: a tool that failed by its own words keeps them, and is counted as a failed tool.
#[tokio::test]
async fn e88_a_failed_tool_keeps_its_content() {
    let world = World::with(&[("one", Eras::Both)]).await;
    for endpoint in [transparent("one"), Endpoint::Aggregated] {
        let prefix = if endpoint == Endpoint::Aggregated { "mcp__one__" } else { "" };
        for caller in world.both_callers(&endpoint).await {
            let params = json!({"name": format!("{prefix}fail"), "arguments": {}});
            let answer = world.ask(&caller, "tools/call", params).await;
            assert_eq!(answer["result"]["isError"], true, "{answer}");
            let text = &answer["result"]["content"][0]["text"];
            assert_eq!(text, "this tool always fails", "{answer}");
        }
    }
    let metrics = world.gateway.metrics().render();
    let line = r#"narthex_calls_total{server="one",method="tools/call",outcome="tool_error"} 4"#;
    assert!(metrics.contains(line), "{metrics}");
    world.gateway.drain().await;
}

/// E88: a refused credential is reported by its kind, whatever the server writes.
#[tokio::test]
async fn e88_a_refused_credential_is_auth_unavailable_by_type() {
    let required_bearer = Some(Bearer("right".to_owned()));
    let fixture = Running::http(Options { required_bearer, ..Options::default() }).await.unwrap();
    let mut definition = http_server("one", &fixture.url);
    let Target::Http(target) = &mut definition.target else { unreachable!("it is one") };
    target.auth = ServerAuth::ApiKey(ApiKeyAuth {
        header_name: "Authorization".to_owned(),
        value_prefix: "Bearer ".to_owned(),
        key: Some(Secret::new("wrong")),
    });
    let world = World::over(vec![Entry::Server(definition)], GatewayOptions::default());
    let settled = |snapshot: &narthex_registry::Snapshot| snapshot.is_settled();
    world.gateway.registry().wait_until(SOON, settled).await;
    let caller = world.modern_caller(transparent("one"));
    let answer = world.ask(&caller, "tools/call", json!({"name": "echo"})).await;
    let error = &answer["result"]["structuredContent"]["error"];
    assert_eq!(error["kind"], "auth_unavailable", "{answer}");
    let params = json!({"name": "mcp__one__echo"});
    let caller = world.modern_caller(Endpoint::Aggregated);
    let answer = world.ask(&caller, "tools/call", params).await;
    assert_eq!(answer["result"]["structuredContent"]["error"]["kind"], "tool_not_found");
    world.gateway.drain().await;
}
