//! Changes that take effect at once in active runs (D10).

use hyper::StatusCode;
use serde_json::json;

use super::{HOME, noting_server, request};
use crate::{runs::Operator, world::World};

/// D10, D16, X-M50: clearing a secret ends the servers that hold it, in all runs, and calls say so;
/// others stay.
#[tokio::test(flavor = "multi_thread")]
async fn d10_clearing_a_secret_ends_open_use_at_once() {
    let world = World::operated(&json!({})).await;
    let operator = Operator(&world);
    operator.has_reader("secret").await;
    operator.put("secrets/OTHER", &json!({ "value": "other" })).await;
    let mut other = super::reader();
    other["name"] = json!("other");
    other["mcpServers"]["library"]["config"]["API_TOKEN"] = json!("${OTHER}");
    operator.put("agents/other", &other).await;
    let begun = operator.begin(&request()).await;
    let mut of_other = request();
    of_other["agent_name"] = json!("other");
    let beside = operator.begin(&of_other).await;
    operator.works(begun["token"].as_str().unwrap()).await;
    let cleared = operator.ask("DELETE", &format!("{HOME}/secrets/LIBRARY_TOKEN"), "").await;
    assert_eq!(cleared.status, StatusCode::OK);
    // The run that holds it is named with the server that ends, and no other run.
    let run = json!({ "run_id": begun["run_id"], "pid": begun["pid"], "agent_name": "reader",
        "session_id": begun["session_id"], "servers": ["library"], "agent_env_names": [] });
    assert_eq!(cleared.json()["runs"], json!([run]));
    let reply = operator.echoes(begun["token"].as_str().unwrap()).await;
    assert_eq!(reply.kind(), "secret_cleared", "{reply:?}");
    operator.works(beside["token"].as_str().unwrap()).await;
    // A new value is for the next run, and the server's description follows it.
    let path = format!("{HOME}/runs/{}", begun["run_id"].as_str().unwrap());
    let said = async || {
        let run = operator.ask("GET", &path, "").await.json();
        run["servers"][0]["error"]["message"].as_str().unwrap_or_default().to_owned()
    };
    assert!(said().await.contains("narthex secrets set LIBRARY_TOKEN"), "{}", said().await);
    operator.put("secrets/LIBRARY_TOKEN", &json!({ "value": "again" })).await;
    assert!(said().await.contains("is set again: create a new run"), "{}", said().await);
    assert_eq!(operator.echoes(begun["token"].as_str().unwrap()).await.kind(), "secret_cleared");
    operator.works(operator.begin(&request()).await["token"].as_str().unwrap()).await;
}

/// D10, D16: switching a server of the catalog off ends it for all runs, and no run begins with it,
/// whether it is written alone or comes in a document.
#[tokio::test(flavor = "multi_thread")]
async fn d10_switching_a_server_off_ends_open_use_at_once() {
    let world = World::operated(&json!({})).await;
    let operator = Operator(&world);
    operator.has_reader("secret").await;
    for is_imported in [false, true] {
        let begun = operator.begin(&request()).await;
        let mut off = noting_server(&world);
        off["disabled"] = json!(true);
        if is_imported {
            let import = json!({ "version": 1, "servers": [off] }).to_string();
            let imported = operator.ask("POST", &format!("{HOME}/import"), &import).await;
            assert!(imported.status.is_success(), "{imported:?}");
        } else {
            operator.put("mcp-servers/notes", &off).await;
        }
        let reply = operator.echoes(begun["token"].as_str().unwrap()).await;
        assert_eq!(reply.kind(), "server_disabled", "{reply:?}");
        let text = request().to_string();
        let status = StatusCode::SERVICE_UNAVAILABLE;
        let problem = operator.refused(&text, status, "unavailable").await;
        assert_eq!(
            (&problem["code"], &problem["server_name"]),
            (&json!("server_disabled"), &json!("library"))
        );
        operator.put("mcp-servers/notes", &noting_server(&world)).await;
        operator.works(operator.begin(&request()).await["token"].as_str().unwrap()).await;
    }
}
