//! Failed calls of tools with an output schema. Clients check the structured content of a result
//! against the schema, also in an error, and reject the whole result if it does not fit.

use std::time::Duration;

use narthex_gateway::{Caller, Endpoint, GatewayOptions};
use narthex_model::ServerDefinition;
use narthex_registry::config::Entry;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::{
    scripted::Scripts,
    world::{SOON, World, transparent},
};

/// A server that lists one tool with an output schema and one without; `$what` handles calls.
fn each(what: &str) -> String {
    let tools = json!({"tools": [
        {"name": "act", "inputSchema": {"type": "object"},
         "outputSchema": {"type": "object", "required": ["sum"]}},
        {"name": "plain", "inputSchema": {"type": "object"}},
    ]});
    format!("case $line in *tools/list*) answer '{tools}'; continue;; *tools/call*) {what};; esac")
}

fn server(scripts: &Scripts, name: &str, what: &str) -> ServerDefinition {
    scripts.server(name, ["", &each(what), ""])
}

async fn call(world: &World, caller: &Caller, server: &str, tool: &str) -> Value {
    let name = match caller.endpoint {
        Endpoint::Aggregated => format!("mcp__{server}__{tool}"),
        Endpoint::Transparent(_) => tool.to_owned(),
    };
    let asked = world.ask(caller, "tools/call", json!({ "name": name }));
    let answer = timeout(SOON, asked).await.unwrap();
    assert_eq!(answer["result"]["isError"], true, "{answer}");
    answer["result"].clone()
}

/// The kind of a failure that fits any schema, which a model and a program read, each in one place.
fn kind(result: &Value) -> String {
    assert_eq!(result["structuredContent"], Value::Null, "{result}");
    let error = &result["_meta"]["narthex/error"];
    assert_eq!(result["content"].as_array().unwrap().len(), 1, "{result}");
    assert_eq!(result["content"][0]["text"], error["message"], "{result}");
    error["kind"].as_str().unwrap().to_owned()
}

/// Callers at both endpoints of a server, in both eras.
async fn callers(world: &World, server: &str) -> Vec<Caller> {
    let mut callers = Vec::new();
    for endpoint in [transparent(server), Endpoint::Aggregated] {
        callers.extend(world.both_callers(&endpoint).await);
    }
    callers
}

/// Checks how calls fail at the server's own endpoint, and at the aggregated one.
async fn fail(world: &World, callers: &[Caller], server: &str, expected: [&str; 2]) {
    for caller in callers {
        let expected = expected[usize::from(caller.endpoint == Endpoint::Aggregated)];
        let result = call(world, caller, server, "act").await;
        assert_eq!(kind(&result), expected, "{server} {:?} {result}", caller.endpoint);
    }
}

/// D16: the error of such a call fits the schema, for each reason why the call fails: before it is
/// sent, while the server handles it, or since its server is absent.
#[tokio::test]
async fn d16_the_error_of_a_failed_call_fits_the_output_schema_of_its_tool() {
    let scripts = Scripts::new();
    let mut silent = server(&scripts, "silent", "continue");
    // The time is long enough for the server's start on a busy machine.
    silent.timeout = Some(Duration::from_secs(3));
    let servers = [silent, server(&scripts, "ends", "exit 9"), server(&scripts, "off", "continue")];
    let entries = servers.map(Entry::Server).into();
    let world = World::settled(entries, GatewayOptions::default()).await;
    let (silent, ends) = (callers(&world, "silent").await, callers(&world, "ends").await);
    let off = callers(&world, "off").await;
    fail(&world, &silent, "silent", ["timeout"; 2]).await;
    // At the first call the server ends, and then it is starting again.
    fail(&world, &ends, "ends", ["transport_error"; 2]).await;
    world.gateway.registry().disable("off").unwrap();
    fail(&world, &off, "off", ["server_disabled", "tool_not_found"]).await;
    // Without such a schema, programs find the error in its usual place.
    for server in ["silent", "off"] {
        let result = call(&world, &world.modern_caller(transparent(server)), server, "plain").await;
        assert!(result["structuredContent"]["error"]["kind"].is_string(), "{result}");
    }
    world.gateway.drain().await;
}

/// D5: an item that the rules of a server hide fails like an absent one, also in its form.
#[tokio::test]
async fn d5_a_hidden_tool_fails_in_the_same_form_as_an_absent_tool() {
    let scripts = Scripts::new();
    let mut definition = server(&scripts, "one", "continue");
    definition.exposed.tools = narthex_model::NameRule::new(None, &["act"]);
    let world = World::settled(vec![Entry::Server(definition)], GatewayOptions::default()).await;
    let callers = callers(&world, "one").await;
    for is_off in [false, true] {
        if is_off {
            world.gateway.registry().disable("one").unwrap();
        }
        for caller in &callers {
            let hidden = call(&world, caller, "one", "act").await.to_string();
            let absent = call(&world, caller, "one", "six").await.to_string();
            assert_eq!(hidden, absent.replace("six", "act"));
        }
    }
    world.gateway.drain().await;
}
