//! Servers that are saved and that nothing here starts yet.

use hyper::StatusCode;
use serde_json::{Value, json};

use super::HOME;
use crate::{runs::Operator, world::World};

/// X-M9, D9, X-M10: a run that needs such a server is refused before anything starts, with the
/// server, the field and a remedy. A run that does not require the server begins.
#[tokio::test(flavor = "multi_thread")]
async fn x_m9_a_server_shape_that_is_not_supported_yet_refuses_the_run() {
    let world = World::operated(&json!({})).await;
    let operator = Operator(&world);
    let servers = [
        ("image", "command", json!({ "image": "ghcr.io/org/linear-mcp:1.2.0" })),
        ("script", "command", json!({ "type": "stdio", "script": "file-server" })),
    ];
    for (field, remedy, mut entry) in servers {
        entry["id"] = json!(field);
        operator.put(&format!("mcp-servers/{field}"), &entry).await;
        let alias = format!("the-{field}");
        let mut attached = json!({ &alias: { "ref": field } });
        operator.put("agents/a", &json!({ "name": "a", "mcpServers": attached })).await;
        let text = json!({ "agent_name": "a" }).to_string();
        let problem = operator.refused(&text, StatusCode::BAD_REQUEST, "invalid").await;
        assert_eq!(problem["server_name"], alias.as_str(), "{problem}");
        let said = problem["error"].as_str().unwrap();
        for word in [&format!("`{field}` of `{alias}`"), "narthex cannot start", remedy] {
            assert!(said.contains(word), "{word}: {said}");
        }
        operator.has_none().await;
        attached[&alias]["optional"] = json!(true);
        operator.put("agents/a", &json!({ "name": "a", "mcpServers": attached })).await;
        let begun = operator.begin(&json!({ "agent_name": "a" })).await;
        assert_eq!(begun["servers"][0]["alias"], alias.as_str(), "{begun}");
        let end = format!("{HOME}/runs/{}", begun["run_id"].as_str().unwrap());
        assert_eq!(operator.ask("DELETE", &end, "").await.status, StatusCode::NO_CONTENT);
    }
}

/// O22: an agent that may start an unknown agent is warned of, as others may be saved later. It is
/// there itself.
#[tokio::test(flavor = "multi_thread")]
async fn o22_unknown_spawnable_agents_cause_a_warning() {
    let world = World::operated(&json!({})).await;
    let operator = Operator(&world);
    let lead = json!({ "name": "lead", "spawnable_agents": ["lead", "nosuch"] });
    let saved = async || -> Value {
        let reply = operator.ask("PUT", &format!("{HOME}/agents/lead"), &lead.to_string()).await;
        assert!(reply.status.is_success(), "{reply:?}");
        reply.json()["warnings"].clone()
    };
    let warnings = saved().await;
    assert_eq!(warnings.as_array().unwrap().len(), 1, "{warnings}");
    assert_eq!(warnings[0]["field"], "spawnable_agents");
    assert!(warnings[0]["message"].as_str().unwrap().contains("`nosuch`"), "{warnings}");
    operator.put("agents/nosuch", &json!({ "name": "nosuch" })).await;
    assert_eq!(saved().await, json!([]));
}
