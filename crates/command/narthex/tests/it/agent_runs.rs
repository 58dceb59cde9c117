//! Runs of agents of the catalog, through the whole program.

mod audit_contents;
mod budget;
mod built_in;
mod children;
mod clearing_and_disabling;
mod clients;
mod confined;
mod consent;
mod definitions;
mod direct;
mod env;
mod events;
mod examples;
mod folders;
mod freezing;
mod resuming;
mod resuming_without_servers;
mod shapes;
mod sockets;
mod suspending;

use fs_err as fs;
use hyper::StatusCode;
use serde_json::{Value, json};

use crate::{
    runs::{Operator, RUNS},
    support::{fixture, fixture_entry},
    world::{Reply, World, call, modern},
};

const HOME: &str = "/api/workspaces/default";

/// A program that notes its configuration from its environment, and then is the fixture.
fn noting_server(world: &World) -> Value {
    let script = format!(
        "echo \"$$ $API_TOKEN $CONTEXT $TOPIC $RUN\" >> '{}'; exec '{}' --stdio",
        world.path("notes").display(),
        fixture().display()
    );
    json!({
        "id": "notes", "type": "stdio", "command": "sh", "args": ["-c", script],
        "config_schema": {
            "API_TOKEN": { "type": "string", "required": true, "sensitive": true },
            "CONTEXT": { "type": "string", "required": true },
            "TOPIC": { "type": "string" },
            "RUN": { "type": "string", "internal": true },
        },
        "default_config": { "RUN": "${runtime.run_id}" },
    })
}

/// A server of a run's own.
fn plain() -> Value {
    fixture_entry()
}

fn reader() -> Value {
    json!({
        "name": "reader",
        "params_schema": { "topic": { "type": "string", "required": true } },
        "mcpServers": { "library": { "ref": "notes", "config": {
            "API_TOKEN": "${LIBRARY_TOKEN}",
            "CONTEXT": "${scope.context_id}",
            "TOPIC": "${params.topic}",
        } } },
    })
}

/// The request for a run of the reader.
fn request() -> Value {
    json!({
        "type": "start_session", "agent_name": "reader", "prompt": "canary-prompt",
        "params": { "topic": "auth" }, "scope": { "context_id": "canary-scope" },
    })
}

impl Operator<'_> {
    async fn put(&self, path: &str, body: &Value) {
        let reply = self.ask("PUT", &format!("{HOME}/{path}"), &body.to_string()).await;
        assert!(reply.status.is_success(), "{reply:?}");
    }

    /// The catalog with the reader and its server, whose secret has this value.
    async fn has_reader(&self, secret: &str) {
        self.put("secrets/LIBRARY_TOKEN", &json!({ "value": secret })).await;
        self.put("mcp-servers/notes", &noting_server(self.0)).await;
        self.put("agents/reader", &reader()).await;
    }

    /// The lines that the programs got so far, without their process ids.
    fn notes(&self) -> Vec<String> {
        let text = fs::read_to_string(self.0.path("notes")).unwrap_or_default();
        text.lines().map(|line| line.split_once(' ').unwrap().1.to_owned()).collect()
    }

    async fn echoes(&self, token: &str) -> Reply {
        let mut client = self.0.client_as("/mcp", token);
        let said = call("mcp__library__echo", json!({ "message": "x" }));
        client.modern(&modern(1, "tools/call", said)).await
    }

    async fn works(&self, token: &str) {
        let reply = self.echoes(token).await;
        assert_eq!(reply.json()["result"]["content"][0]["text"], "x", "{reply:?}");
    }
}

/// O24, O25, O72, O73, R-M30, O20, O81, O82, O91, X-M8, X-M11: a run of an agent has its servers,
/// configured by parameters, scope and secrets; the answer has all that its client needs.
#[tokio::test(flavor = "multi_thread")]
async fn o24_a_run_of_an_agent_has_its_servers() {
    let world = World::operated(&json!({})).await;
    let operator = Operator(&world);
    operator.has_reader("canary-secret").await;
    let begun = operator.begin(&request()).await;
    let id = begun["run_id"].as_str().unwrap();
    assert!(id.starts_with("run_") && id.len() == 16, "{begun}");
    assert!(begun["session_id"].as_str().unwrap().starts_with("ses_"), "{begun}");
    assert_eq!((&begun["pid"], &begun["status"]), (&json!(1), &json!("running")));
    assert_eq!((&begun["agent_name"], &begun["created_by"]), (&json!("reader"), &json!("admin")));
    assert_eq!(operator.notes(), [format!("canary-secret canary-scope auth {id}")]);
    let token = begun["token"].as_str().unwrap();
    let base = format!("http://{}/mcp", world.address);
    let endpoints =
        json!({ "library": format!("{base}/library"), "narthex": format!("{base}/narthex") });
    assert_eq!(begun["endpoints"]["servers"], endpoints);
    // The token is in the answer once; entries name the variable that clients fill in.
    assert_eq!(begun.to_string().matches(token).count(), 1, "{begun}");
    assert_eq!(
        begun["mcpServers"]["narthex"]["headers"]["Authorization"],
        "Bearer ${NARTHEX_TOKEN}"
    );
    operator.works(token).await;

    // O20, O81, O82: neither scope nor secret nor prompt is in any answer, record or file.
    let session = begun["session_id"].as_str().unwrap();
    let mut shown = vec![begun.to_string()];
    for path in ["runs", &format!("runs/{id}"), "sessions", &format!("sessions/{session}")] {
        shown.push(operator.get(&format!("{HOME}/{path}")).await.to_string());
    }
    let session = operator.get(&format!("{HOME}/sessions/{session}")).await;
    assert_eq!((&session["pids"], &session["status"]), (&json!([1]), &json!("running")));
    let dir = world.stop().await;
    for file in ["store.db", "audit/audit.jsonl"] {
        let bytes = fs::read(dir.path().join(file)).unwrap();
        shown.push(String::from_utf8_lossy(&bytes).into_owned());
    }
    for canary in ["canary-scope", "canary-secret", "canary-prompt"] {
        assert!(shown.iter().all(|text| !text.contains(canary)), "{canary}");
    }
}

/// O16, O18, O60, O61, O85, D9, O51, O89, X-M42, X-E113, X-E114: a run that is refused leaves
/// nothing, and the answer says all that is wrong, also for readers that know one error only.
#[tokio::test(flavor = "multi_thread")]
async fn o60_a_refused_run_leaves_nothing() {
    let world = World::operated(&json!({})).await;
    let operator = Operator(&world);
    operator.has_reader("secret").await;
    let bad = StatusCode::BAD_REQUEST;
    let refused = async |change: Value| {
        let mut document = request();
        for (key, value) in change.as_object().unwrap() {
            document[key] = value.clone();
        }
        operator.refused(&document.to_string(), bad, "invalid").await
    };
    let problem = refused(json!({ "scope": {} })).await;
    assert_eq!(problem["code"], "missing_required_mcp_config", "{problem}");
    assert_eq!(problem["server_name"], "library");
    assert_eq!(problem["missing_fields"], json!(["CONTEXT"]));
    assert!(problem["error"].as_str().unwrap().contains("scope.context_id"), "{problem}");
    let problem = refused(json!({ "scope": {}, "params": { "other": 1 } })).await;
    let codes: Vec<_> =
        problem["errors"].as_array().unwrap().iter().map(|fault| &fault["code"]).collect();
    assert!(codes.contains(&&json!("params_invalid")), "{problem}");
    assert!(codes.contains(&&json!("missing_required_mcp_config")), "{problem}");
    let mut document = request();
    document["agent_name"] = json!("nosuch");
    let document = document.to_string();
    let problem = operator.refused(&document, StatusCode::NOT_FOUND, "not_found").await;
    assert_eq!(problem["code"], "agent_not_found");
    for change in [
        json!({ "expires_in": 0 }),
        json!({ "expires_in": 2_592_001 }),
        json!({ "session_id": "mine" }),
        json!({ "parent_run_id": "run_0a1b2c3d4e5f" }),
        json!({ "servers": {} }),
        json!({ "unknown": 1 }),
    ] {
        refused(change).await;
    }
    let cleared = operator.ask("DELETE", &format!("{HOME}/secrets/LIBRARY_TOKEN"), "").await;
    assert_eq!(cleared.status, StatusCode::OK);
    // X-M42: the message names agent, server, field and secret.
    let problem = refused(json!({})).await;
    let text = problem["errors"].to_string();
    for word in ["reader", "library", "API_TOKEN", "LIBRARY_TOKEN"] {
        assert!(text.contains(word), "{word} {problem}");
    }
    operator.put("agents/reader", &json!({ "name": "reader", "active": false })).await;
    assert_eq!(refused(json!({})).await["code"], "agent_inactive");
    assert!(operator.notes().is_empty(), "something was started");
    operator.has_none().await;
    assert_eq!(operator.get(&format!("{HOME}/sessions")).await["items"], json!([]));
}

/// S18: an object of one workspace is not there in another.
#[tokio::test(flavor = "multi_thread")]
async fn s18_runs_belong_to_their_workspace() {
    let world = World::operated(&json!({})).await;
    let operator = Operator(&world);
    operator.has_reader("secret").await;
    let begun = operator.begin(&request()).await;
    let (run, session) = (begun["run_id"].as_str().unwrap(), begun["session_id"].as_str().unwrap());
    let other = "/api/workspaces/team";
    for path in [
        format!("{other}/runs"),
        format!("{other}/runs/{run}"),
        format!("{other}/sessions"),
        format!("{other}/sessions/{session}"),
    ] {
        assert_eq!(operator.ask("GET", &path, "").await.status, StatusCode::NOT_FOUND, "{path}");
    }
    for path in [format!("{other}/runs/{run}"), format!("{other}/sessions/{session}")] {
        assert_eq!(operator.ask("DELETE", &path, "").await.status, StatusCode::NOT_FOUND);
    }
    let reply = operator.ask("POST", &format!("{other}/runs"), &request().to_string()).await;
    assert_eq!(reply.status, StatusCode::NOT_FOUND);
    operator.works(begun["token"].as_str().unwrap()).await;
}

/// Pages of runs follow their numbers; only those are in it that were asked for.
#[tokio::test(flavor = "multi_thread")]
async fn runs_are_listed_page_by_page() {
    let world = World::operated(&json!({})).await;
    let operator = Operator(&world);
    operator.put("agents/empty", &json!({ "name": "empty" })).await;
    let mut ids = Vec::new();
    for _ in 0..4 {
        let begun = operator.begin(&json!({ "agent_name": "empty" })).await;
        ids.push(begun["run_id"].as_str().unwrap().to_owned());
    }
    let reply = operator.ask("DELETE", &format!("{RUNS}/{}", ids[1]), "").await;
    assert_eq!(reply.status, StatusCode::NO_CONTENT);
    let of = |page: &Value| -> Vec<String> {
        let items = page["items"].as_array().unwrap().iter();
        items.map(|run| run["run_id"].as_str().unwrap().to_owned()).collect()
    };
    let first = operator.get(&format!("{RUNS}?limit=2")).await;
    assert_eq!((of(&first).len(), &first["items"][0]["is_local"]), (3, &json!(true)));
    let next = first["next"].as_str().unwrap();
    let second = operator.get(&format!("{RUNS}?limit=2&after={next}")).await;
    assert_eq!((of(&second), &second["next"]), (ids[2..].to_vec(), &Value::Null));
    let ended = operator.get(&format!("{RUNS}?status=ended")).await;
    assert_eq!(of(&ended), [ids[1].clone()]);
    let running = operator.get(&format!("{RUNS}?status=running")).await;
    assert_eq!(of(&running)[1..], [ids[0].clone(), ids[2].clone(), ids[3].clone()]);
    for bad in ["status=dead", "after=x", "session=x", "limit=0", "what=1"] {
        let reply = operator.ask("GET", &format!("{RUNS}?{bad}"), "").await;
        assert_eq!(reply.status, StatusCode::UNPROCESSABLE_ENTITY, "{bad}");
    }
}
