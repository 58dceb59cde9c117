//! What models are told at MCP doors names nothing that only operators do (D28).

use narthex_store::Store;
use serde_json::{Map, Value, json};

use super::{
    built_in::{Run, agent_with_a_gated_tool},
    world::Api,
};

/// Marks of commands and addresses of operators.
const MARKS: [&str; 3] = ["narthex ", "grants create", "/api/"];

fn is_for_models(text: &str) {
    for mark in MARKS {
        assert!(!text.contains(mark), "`{mark}` in {text}");
    }
}

/// Arguments that fit the schema of a tool, and lead to nothing that is there.
fn arguments(schema: &Value) -> Value {
    let names = schema["required"].as_array().cloned().unwrap_or_default();
    let member = |name: &Value| {
        let name = name.as_str().unwrap().to_owned();
        let value = of_type(&schema["properties"][&name]);
        (name, value)
    };
    names.iter().map(member).collect::<Map<_, _>>().into()
}

fn of_type(schema: &Value) -> Value {
    if let Some(first) = schema["enum"].get(0) {
        return first.clone();
    }
    match schema["type"].as_str() {
        Some("integer" | "number") => json!(1),
        Some("boolean") => json!(true),
        Some("array") => json!([of_type(&schema["items"])]),
        Some("object") => json!({ "scope": "a.b", "child_agent_id": "absent" }),
        _ => json!("absent"),
    }
}

/// D28: each built-in tool is called without arguments, with some that fit, and with wrong ones, in
/// a run with servers and in one that may ask for nothing; and so is what is gated, absent and off.
#[tokio::test]
async fn d28_no_answer_to_a_model_names_what_operators_do() {
    let place = tempfile::tempdir().unwrap();
    let store = Store::open(&place.path().join("store.db")).await.unwrap();
    let api = Api::with_all(&json!({}), store, &place.path().join("master.key")).await;
    agent_with_a_gated_tool(&api).await;
    let here = "/api/workspaces/default";
    for asks in [true, false] {
        let settings = json!({ "runtime_requests": asks }).to_string();
        api.send("PATCH", here, settings).await.succeeded();
        let run = Run::begin(&api).await;
        let listed = run.ask("/mcp/narthex", "tools/list", json!({})).await.json();
        is_for_models(&listed.to_string());
        is_for_models(&run.ask("/mcp", "server/discover", json!({})).await.json().to_string());
        let tools = listed["result"]["tools"].as_array().unwrap();
        // The one that ends the run comes last.
        let (last, others): (Vec<_>, Vec<_>) =
            tools.iter().partition(|tool| tool["name"] == "end_session");
        assert!(others.len() > 10, "{listed}");
        for tool in others.into_iter().chain(last) {
            let name = tool["name"].as_str().unwrap();
            for given in [json!({}), json!({ "\u{e9}": 1 }), arguments(&tool["inputSchema"])] {
                is_for_models(&run.call(name, given).await.to_string());
            }
        }
        let run = Run::begin(&api).await;
        let refused = run.echo().await;
        is_for_models(&refused.to_string());
        let text = refused["content"][0]["text"].as_str().unwrap();
        assert!(text.len() <= 300, "{text}");
        let is_named = text.contains("`mcp__narthex__request_grant`");
        assert_eq!((is_named, text.contains("a human must allow it")), (asks, !asks), "{text}");
        for (method, params) in [
            ("tools/call", json!({ "name": "mcp__demo__absent", "arguments": {} })),
            ("resources/read", json!({ "uri": "absent://x" })),
            ("prompts/get", json!({ "name": "absent" })),
            ("absent/method", json!({})),
        ] {
            for path in ["/mcp", "/mcp/demo", "/mcp/absent"] {
                is_for_models(run.ask(path, method, params.clone()).await.text());
            }
        }
    }
}
