//! Direct mode: the callers that may get the resolved servers, and that no other caller does.

use fs_err as fs;
use hyper::StatusCode;
use serde_json::{Value, json};

use super::{
    HOME,
    examples::{Over, telling},
    request,
};
use crate::{
    runs::{Operator, RUNS},
    world::{ADMIN, World},
};

impl Operator<'_> {
    /// The token of a new service with a role.
    pub(super) async fn service(&self, role: &str) -> String {
        let asked = json!({ "service": role, "roles": [role] }).to_string();
        let reply = self.ask("POST", &format!("{HOME}/service-tokens"), &asked).await;
        assert_eq!(reply.status, StatusCode::CREATED, "{reply:?}");
        reply.json()["token"].as_str().unwrap().to_owned()
    }

    /// The events that record that a caller got values.
    async fn direct_events(&self) -> Vec<Value> {
        let page = self.get(&format!("{HOME}/audit?kind=session.run.direct")).await;
        page["items"].as_array().unwrap().clone()
    }
}

fn direct() -> Value {
    let mut request = request();
    request["direct"] = json!(true);
    request
}

/// O24, O86, O81: a caller that asks for it when it creates a run gets the run's servers with all
/// values, once. No later answer, no record and no file has the values.
#[tokio::test(flavor = "multi_thread")]
async fn o24_direct_mode_returns_the_resolved_servers_once() {
    let (world, server) = (World::operated(&json!({})).await, telling().await);
    let operator = Operator(&world);
    operator.has_reader("canary-secret").await;
    let docs = json!({ "id": "docs", "default_config": { "run": "${runtime.run_id}" },
        "config_schema": { "context_id": { "required": true }, "run": { "internal": true },
                           "api_key": { "type": "string", "sensitive": true } } });
    operator.put("mcp-servers/docs", &Over::Http.entry(&docs, &server)).await;
    let mut agent = super::reader();
    agent["mcpServers"]["docs"] = json!({ "ref": "docs", "config": {
        "context_id": "${scope.context_id}", "api_key": "${LIBRARY_TOKEN}" } });
    operator.put("agents/reader", &agent).await;
    let begun = operator.begin(&direct()).await;
    let id = begun["run_id"].as_str().unwrap();
    let servers = &begun["resolved_mcp_servers"];
    let config = json!({ "context_id": "canary-scope", "api_key": "canary-secret", "run": id });
    let docs = json!({ "type": "http", "url": server.url, "config": config });
    assert_eq!(servers["docs"], docs);
    assert_eq!(servers["library"]["type"], "stdio");
    assert_eq!(servers["library"]["command"], "sh");
    let config = json!({ "API_TOKEN": "canary-secret", "CONTEXT": "canary-scope",
        "TOPIC": "auth", "RUN": id });
    assert_eq!(servers["library"]["config"], config);
    let built_in = format!("http://{}/mcp/narthex", world.address);
    assert_eq!(servers["narthex"], json!({ "type": "http", "url": built_in, "config": {} }));
    assert_eq!(servers.as_object().unwrap().len(), 3);
    operator.works(begun["token"].as_str().unwrap()).await;
    let events = operator.direct_events().await;
    assert_eq!(events.len(), 1, "{events:?}");
    assert_eq!((&events[0]["run"], &events[0]["outcome"]), (&json!(id), &json!("ok")));
    assert_eq!(events[0]["details"]["servers"], json!(["docs", "library", "narthex"]));

    let session = begun["session_id"].as_str().unwrap();
    let mut shown = Vec::new();
    for path in ["runs", &format!("runs/{id}"), "sessions", &format!("sessions/{session}")] {
        shown.push(operator.get(&format!("{HOME}/{path}")).await.to_string());
    }
    // A caller that does not ask for the values gets none, nor does a caller that refuses them.
    for asked in [request(), {
        let mut no = direct();
        no["direct"] = json!(false);
        no
    }] {
        shown.push(operator.begin(&asked).await.to_string());
    }
    assert_eq!(operator.direct_events().await.len(), 1);
    let dir = world.stop().await;
    for file in ["store.db", "audit/audit.jsonl"] {
        let bytes = fs::read(dir.path().join(file)).unwrap();
        shown.push(String::from_utf8_lossy(&bytes).into_owned());
    }
    for canary in ["canary-scope", "canary-secret", "resolved_mcp_servers"] {
        assert!(shown.iter().all(|text| !text.contains(canary)), "{canary}");
    }
}

/// O20, O81: a runner may ask for it, in its workspace. Others may not, nor does a run for its
/// child; a refused request begins nothing and gives no caller any value.
#[tokio::test(flavor = "multi_thread")]
async fn o81_only_runners_may_use_direct_mode() {
    let world = World::operated(&json!({})).await;
    let operator = Operator(&world);
    operator.has_reader("secret").await;
    let mut lead = super::reader();
    lead["spawnable_agents"] = json!(["reader"]);
    operator.put("agents/reader", &lead).await;
    let ask = async |token: &str, document: &Value| {
        world.client_as(RUNS, token).whole("POST", &[], document.to_string()).await
    };
    for role in ["author", "auditor"] {
        let reply = ask(&operator.service(role).await, &direct()).await;
        assert_eq!(reply.status, StatusCode::FORBIDDEN, "{role} {reply:?}");
    }
    let begun = operator.begin(&request()).await;
    let child = json!({ "agent_name": "reader", "params": { "topic": "x" }, "direct": true });
    let reply = ask(begun["token"].as_str().unwrap(), &child).await;
    assert_eq!(reply.status, StatusCode::FORBIDDEN, "{reply:?}");
    let problem: Value = serde_json::from_slice(&reply.body).unwrap();
    assert_eq!(problem["field"], "direct", "{problem}");
    let reply = ask(&world.token, &direct()).await;
    assert_eq!(reply.status, StatusCode::FORBIDDEN, "the daemon's own run: {reply:?}");
    // The creator of a run with servers of its own knows their values already.
    let own = json!({ "servers": { "x": super::plain() }, "direct": true });
    operator.refused(&own.to_string(), StatusCode::BAD_REQUEST, "invalid").await;
    assert_eq!(operator.notes().len(), 1, "something was started");
    assert_eq!(operator.direct_events().await, Vec::<Value>::new());

    for role in ["runner", "admin"] {
        let reply = ask(&operator.service(role).await, &direct()).await;
        assert_eq!(reply.status, StatusCode::CREATED, "{role} {reply:?}");
        assert_eq!(reply.headers["cache-control"], "no-store");
        let begun = reply.json();
        let config = &begun["resolved_mcp_servers"]["library"]["config"];
        assert_eq!(config["API_TOKEN"], "secret", "{role}");
    }
    assert_eq!(operator.direct_events().await.len(), 2);
}

/// D2: the answer has an entry for each server by itself, which connects with its own content and
/// the token.
#[tokio::test(flavor = "multi_thread")]
async fn d2_the_entry_of_each_server_can_be_pasted_alone() {
    let world = World::operated(&json!({})).await;
    let operator = Operator(&world);
    operator.has_reader("secret").await;
    let begun = operator.begin(&request()).await;
    let entries = begun["mcpServersByAlias"].as_object().unwrap();
    assert_eq!(entries.keys().collect::<Vec<_>>(), ["library", "narthex"]);
    let entry = &entries["library"];
    assert_eq!(entry["type"], "http");
    let path = entry["url"].as_str().unwrap().strip_prefix(&format!("http://{}", world.address));
    assert_eq!(entry["headers"]["Authorization"], "Bearer ${NARTHEX_TOKEN}");
    let token = begun["token"].as_str().unwrap();
    let mut client = world.client_as(path.unwrap(), token);
    let said = crate::world::call("echo", json!({ "message": "x" }));
    let reply = client.modern(&crate::world::modern(1, "tools/call", said)).await;
    assert_eq!(reply.json()["result"]["content"][0]["text"], "x", "{reply:?}");
}

/// X-E105: a creation with an idempotency key that comes again gets the same run and token, and
/// makes no second one; values of direct mode are sent once all the same.
#[tokio::test(flavor = "multi_thread")]
async fn x_e105_a_run_is_created_once() {
    let world = World::operated(&json!({})).await;
    let operator = Operator(&world);
    operator.has_reader("canary-secret").await;
    let begin = async |request: Value, key: &str| {
        let client = operator.0.client_as(RUNS, ADMIN);
        client.whole("POST", &[("idempotency-key", key)], request.to_string()).await
    };
    let first = begin(request(), "k1").await;
    assert_eq!(first.status, StatusCode::CREATED, "{first:?}");
    let again = begin(request(), "k1").await;
    assert_eq!((again.status, again.json()), (first.status, first.json()));
    operator.works(again.json()["token"].as_str().unwrap()).await;
    let told = begin(direct(), "k2").await;
    assert!(told.messages.concat().contains("canary-secret"));
    let again = begin(direct(), "k2").await;
    assert_eq!(again.status, StatusCode::CONFLICT);
    let problem: Value = serde_json::from_slice(&again.body).unwrap();
    assert_eq!(problem["code"], "idempotency_not_kept");
    let place = format!("{RUNS}/{}", told.json()["run_id"].as_str().unwrap());
    assert_eq!(problem["location"], place);
    let runs = operator.get(RUNS).await;
    let created = runs["items"].as_array().unwrap().iter().filter(|run| run["is_local"] == false);
    assert_eq!(created.count(), 2, "{runs}");
}
