//! The example works unchanged.

#[path = "../../examples/preview.rs"]
#[expect(dead_code, unreachable_pub, reason = "it is a program of its own")]
mod preview;

use serde_json::json;

/// O24, O101: the example shows a preview, a payload and a refusal.
#[test]
fn o101_the_example_runs() {
    let [preview, payload, refusal] = preview::run().unwrap();
    let key = &preview["mcpServers"]["library"]["config"]["api_key"];
    assert_eq!(
        (&key["value"], &key["header"]),
        (&json!({ "$secret": "DOCS_KEY" }), &json!("Authorization"))
    );
    let library = &payload["resolved_mcp_servers"]["library"];
    assert_eq!(library["url"], "https://docs.test/acme/mcp");
    assert_eq!(library["config"], json!({ "context_id": "ctx-9", "api_key": "a key" }));
    assert_eq!(refusal["errors"].as_array().unwrap().len(), 2);
}
