//! MCP clients that connect without a created run, at the daemon's HTTP door.

use std::time::{Duration, SystemTime};

use fs_err as fs;
use hyper::StatusCode;
use narthex_model::Timestamp;
use serde_json::{Value, json};

use super::{HOME, request};
use crate::{
    runs::{Operator, RUNS},
    support::Place,
    world::{ADMIN, Client, Reply, World, call, legacy, modern},
};

const CLIENTS: &str = "/api/workspaces/default/mcp-clients";

/// The registration of a client of the reader.
fn desktop() -> Value {
    json!({ "client": "desktop", "agent_name": "reader",
            "params": { "topic": "auth" }, "scope": { "context_id": "canary-scope" } })
}

impl Operator<'_> {
    async fn register(&self, document: &Value) -> Value {
        let reply = self.ask("POST", CLIENTS, &document.to_string()).await;
        assert_eq!(reply.status, StatusCode::CREATED, "{reply:?}");
        assert_eq!(reply.headers["cache-control"], "no-store");
        reply.json()
    }

    async fn client(&self, registered: &Value) -> Value {
        self.get(&format!("{CLIENTS}/{}", registered["id"].as_str().unwrap())).await
    }

    async fn revoke(&self, registered: &Value) -> Reply {
        let path = format!("{CLIENTS}/{}", registered["id"].as_str().unwrap());
        self.ask("DELETE", &path, "").await
    }

    /// Registers a client that expires soon, and returns its expiry. A slow machine takes longer to
    /// register it.
    async fn register_for_soon(&self) -> (SystemTime, Value) {
        let mut document = desktop();
        for seconds in 2.. {
            let end = SystemTime::now() + Duration::from_secs(seconds);
            document["expires_at"] = json!(Timestamp::new(end).to_string());
            let reply = self.ask("POST", CLIENTS, &document.to_string()).await;
            if reply.status == StatusCode::CREATED {
                // The written time has milliseconds.
                return (end - Duration::from_millis(1), reply.json());
            }
            assert!(
                String::from_utf8_lossy(&reply.body).contains("not a time in the future"),
                "{reply:?}"
            );
        }
        unreachable!("seconds do not end");
    }

    /// Number of active runs of agents.
    async fn living(&self) -> usize {
        let runs = self.get(&format!("{RUNS}?status=running")).await;
        runs["items"].as_array().unwrap().len() - 1
    }
}

fn token(registered: &Value) -> &str {
    registered["token"].as_str().unwrap()
}

/// I-M7: a client without a created run lists and calls tools with its token, in both eras; it
/// drives one run, which begins when it first comes. Its registration is in no answer and no file,
/// and its token opens nothing else.
#[tokio::test(flavor = "multi_thread")]
async fn i_m7_a_registered_client_connects_with_its_token() {
    let world = World::operated(&json!({})).await;
    let operator = Operator(&world);
    operator.has_reader("canary-secret").await;
    let made = operator.register(&desktop()).await;
    assert!(token(&made).starts_with("nxc_"), "{made}");
    let url = format!("http://{}/mcp", world.address);
    let entry = &made["mcpServers"]["narthex"];
    assert_eq!((&entry["url"], &made["client"]), (&json!(url), &json!("default/desktop")));
    assert_eq!(made["origins"], json!(["agent-produced"]));
    assert!(operator.notes().is_empty(), "nothing starts before it comes");
    assert_eq!(operator.living().await, 0);

    operator.works(token(&made)).await;
    let mut old = world.client_as("/mcp", token(&made));
    old.open_session(json!({})).await;
    let listed = old.post(&[], legacy(2, "tools/list", json!({})).to_string()).await.json();
    assert!(listed.to_string().contains("mcp__library__echo"), "{listed}");
    let said = call("mcp__library__echo", json!({ "message": "y" }));
    let reply = old.post(&[], legacy(3, "tools/call", said).to_string()).await;
    assert!(String::from_utf8_lossy(&reply.body).contains("\"y\""), "{reply:?}");
    let mut single = world.client_as("/mcp/library", token(&made));
    let reply = single.modern(&modern(1, "tools/list", json!({}))).await;
    assert_eq!(reply.status, StatusCode::OK, "{reply:?}");
    let mut absent = world.client_as("/mcp/nope", token(&made));
    let reply = absent.modern(&modern(1, "tools/list", json!({}))).await;
    assert_eq!(reply.status, StatusCode::NOT_FOUND);

    let seen = operator.client(&made).await;
    let run = seen["run_id"].as_str().unwrap();
    assert_eq!(operator.notes(), [format!("canary-secret canary-scope auth {run}")]);
    let begun = operator.get(&format!("{RUNS}/{run}")).await;
    assert_eq!((&begun["created_by"], &begun["agent_name"]), (&made["client"], &json!("reader")));
    for path in ["/api/status", "/api/tools", RUNS, CLIENTS, "/api/me", "/metrics", "/api/events"] {
        let reply = world.client_as(path, token(&made)).whole("GET", &[], "").await;
        assert_eq!(reply.status, StatusCode::FORBIDDEN, "{path}");
    }
    let reply = world.client_as(RUNS, token(&made));
    let reply = reply.whole("POST", &[], request().to_string()).await;
    assert_eq!(reply.status, StatusCode::FORBIDDEN, "a run of an agent may begin children here");

    let again = operator.ask("POST", CLIENTS, &desktop().to_string()).await;
    assert_eq!(again.status, StatusCode::CONFLICT, "its name is taken");
    let mut shown = vec![seen.to_string(), operator.get(CLIENTS).await.to_string()];
    let dir = world.stop().await;
    for file in ["store.db", "audit/audit.jsonl"] {
        let bytes = fs::read(dir.path().join(file)).unwrap();
        shown.push(String::from_utf8_lossy(&bytes).into_owned());
    }
    for canary in ["canary-scope", "canary-secret", token(&made)] {
        assert!(shown.iter().all(|text| !text.contains(canary)), "{canary}");
    }
}

/// I-M2: a registered client lists the same as a run that an operator has created for the same
/// agent.
#[tokio::test(flavor = "multi_thread")]
async fn i_m2_a_client_lists_the_same_tools_as_a_run_of_its_agent() {
    let world = World::operated(&json!({})).await;
    let operator = Operator(&world);
    operator.has_reader("secret").await;
    let (begun, made) = (operator.begin(&request()).await, operator.register(&desktop()).await);
    let listed = async |token: &str| {
        let mut client = world.client_as("/mcp", token);
        let reply = client.modern(&modern(1, "tools/list", json!({}))).await;
        reply.json()["result"]["tools"].clone()
    };
    let tools = listed(token(&begun)).await;
    assert!(tools.to_string().contains("mcp__library__echo"), "{tools}");
    assert_eq!(listed(token(&made)).await, tools);
}

/// I-M7: many first calls at once begin one run. One that has ended is followed by the next of the
/// same session, and a session that has ended by another; an MCP session of an earlier run is gone,
/// so that the client begins anew.
#[tokio::test(flavor = "multi_thread")]
async fn many_first_calls_of_a_client_create_one_run() {
    let world = World::operated(&json!({})).await;
    let operator = Operator(&world);
    operator.has_reader("secret").await;
    let made = operator.register(&desktop()).await;
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..50 {
        let mut client = world.client_as("/mcp", token(&made));
        let said = call("mcp__library__echo", json!({ "message": "x" }));
        calls.spawn(async move { client.modern(&modern(1, "tools/call", said)).await });
    }
    for reply in calls.join_all().await {
        assert_eq!(reply.json()["result"]["content"][0]["text"], "x", "{reply:?}");
    }
    assert_eq!((operator.living().await, operator.notes().len()), (1, 1));
    let first = operator.client(&made).await;

    let mut old = world.client_as("/mcp", token(&made));
    old.open_session(json!({})).await;
    let path = format!("{RUNS}/{}", first["run_id"].as_str().unwrap());
    assert_eq!(operator.ask("DELETE", &path, "").await.status, StatusCode::NO_CONTENT);
    let reply = old.post(&[], legacy(2, "tools/list", json!({})).to_string()).await;
    assert_eq!(reply.status, StatusCode::NOT_FOUND, "{reply:?}");
    operator.works(token(&made)).await;
    let second = operator.client(&made).await;
    assert_eq!(second["session_id"], first["session_id"]);
    assert_ne!(second["run_id"], first["run_id"]);
    assert_eq!(operator.living().await, 1);

    let path = format!("{HOME}/sessions/{}", first["session_id"].as_str().unwrap());
    assert_eq!(operator.ask("DELETE", &path, "").await.status, StatusCode::NO_CONTENT);
    operator.works(token(&made)).await;
    let third = operator.client(&made).await;
    assert_ne!(third["session_id"], first["session_id"]);
    assert_eq!(operator.living().await, 1);
}

/// D10, I-M7: after a restart a client resumes the run that it had.
#[tokio::test(flavor = "multi_thread")]
async fn d10_a_client_resumes_its_run_after_a_restart() {
    let world = World::operated(&json!({})).await;
    let operator = Operator(&world);
    operator.has_reader("secret").await;
    let made = operator.register(&desktop()).await;
    operator.works(token(&made)).await;
    let before = operator.client(&made).await;
    let world = World::operated_in(world.stop().await).await;
    let operator = Operator(&world);
    operator.works(token(&made)).await;
    assert_eq!(operator.client(&made).await, before);
    assert_eq!(operator.living().await, 1);
}

/// I-M7: a client that is revoked comes in no more, its stream and its run end, and its name is
/// free again. One whose time is over comes in no more, either.
#[tokio::test(flavor = "multi_thread")]
async fn a_revoked_client_cannot_connect() {
    let world = World::operated(&json!({})).await;
    let operator = Operator(&world);
    operator.has_reader("secret").await;
    let made = operator.register(&desktop()).await;
    let mut old = world.client_as("/mcp", token(&made));
    old.open_session(json!({})).await;
    let mut stream = old.listen().await;
    let session = operator.client(&made).await["session_id"].as_str().unwrap().to_owned();
    assert_eq!(operator.revoke(&made).await.status, StatusCode::NO_CONTENT);
    while stream.next().await.is_some() {}
    assert_eq!(operator.echoes(token(&made)).await.status, StatusCode::UNAUTHORIZED);
    assert_eq!(operator.revoke(&made).await.status, StatusCode::NOT_FOUND);
    assert_eq!(operator.get(&format!("{HOME}/sessions/{session}")).await["status"], "ended");
    assert_eq!(
        (operator.living().await, &operator.client(&made).await["is_live"]),
        (0, &json!(false))
    );

    let (end, short) = operator.register_for_soon().await;
    while operator.echoes(token(&short)).await.status != StatusCode::UNAUTHORIZED {}
    assert!(SystemTime::now() >= end, "it was let in until its time was over");
    assert_eq!(operator.client(&short).await["is_live"], false);
}

/// A client says if it may come in, and why not: without its agent its run is active to its end,
/// and it begins no further one.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_without_an_active_agent_gets_no_new_run() {
    let world = World::operated(&json!({})).await;
    let operator = Operator(&world);
    operator.has_reader("secret").await;
    let made = operator.register(&desktop()).await;
    let standing = async || {
        let client = operator.client(&made).await;
        (client["is_live"] == true, client["closed_because"].clone())
    };
    assert_eq!(standing().await, (true, Value::Null));
    operator.works(token(&made)).await;
    let mut agent = super::reader();
    agent["active"] = json!(false);
    operator.put("agents/reader", &agent).await;
    assert_eq!(standing().await, (true, json!("agent_inactive")));
    let deleted = operator.ask("DELETE", &format!("{HOME}/agents/reader"), "").await;
    assert!(deleted.status.is_success(), "{deleted:?}");
    assert_eq!(standing().await, (true, json!("agent_deleted")));
    operator.works(token(&made)).await;
    let run = operator.client(&made).await["run_id"].as_str().unwrap().to_owned();
    operator.ask("DELETE", &format!("{RUNS}/{run}"), "").await;
    assert_eq!(standing().await, (false, json!("agent_deleted")));
    assert_eq!(operator.echoes(token(&made)).await.status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(operator.revoke(&made).await.status, StatusCode::NO_CONTENT);
    assert_eq!(standing().await, (false, json!("revoked")));
}

/// A client that is disabled ends as a revoked one does, and begins anew once it is enabled again.
#[tokio::test(flavor = "multi_thread")]
async fn disabling_a_client_ends_its_run() {
    let world = World::operated(&json!({})).await;
    let operator = Operator(&world);
    operator.has_reader("secret").await;
    let made = operator.register(&desktop()).await;
    let mut old = world.client_as("/mcp", token(&made));
    old.open_session(json!({})).await;
    let mut stream = old.listen().await;
    let session = operator.client(&made).await["session_id"].clone();
    let set = async |is_disabled: bool| {
        let path = "/api/principals/default%2Fdesktop";
        let change = json!({ "is_disabled": is_disabled }).to_string();
        let changed = operator.ask("PATCH", path, &change).await;
        assert_eq!(changed.status, StatusCode::OK, "{changed:?}");
    };
    set(true).await;
    while stream.next().await.is_some() {}
    assert_eq!(operator.echoes(token(&made)).await.status, StatusCode::UNAUTHORIZED);
    let path = format!("{HOME}/sessions/{}", session.as_str().unwrap());
    assert_eq!(
        (operator.living().await, &operator.get(&path).await["status"]),
        (0, &json!("ended"))
    );
    set(false).await;
    operator.works(token(&made)).await;
    assert_ne!(operator.client(&made).await["session_id"], session);
    assert_eq!(operator.living().await, 1);
}

/// I-D2, S18: a client whose run could not begin is not registered; origins are bound at
/// registration; a client of one workspace is not there in another, and has no roles in its own.
#[tokio::test(flavor = "multi_thread")]
async fn i_d2_a_client_whose_run_could_not_be_created_is_not_registered() {
    let world = World::operated(&json!({})).await;
    let operator = Operator(&world);
    operator.has_reader("secret").await;
    let refused = async |change: Value| {
        let mut document = desktop();
        for (key, value) in change.as_object().unwrap() {
            document[key] = value.clone();
        }
        let reply = operator.ask("POST", CLIENTS, &document.to_string()).await;
        assert!(reply.status.is_client_error(), "{change} {reply:?}");
    };
    refused(json!({ "agent_name": "nosuch" })).await;
    refused(json!({ "params": { "topic": 1 } })).await;
    refused(json!({ "params": {} })).await;
    refused(json!({ "scope": {} })).await;
    refused(json!({ "origins": ["authored"] })).await;
    refused(json!({ "client": "Not A Name" })).await;
    refused(json!({ "expires_at": "2020-01-01T00:00:00Z" })).await;
    refused(json!({ "prompt": "x" })).await;
    assert_eq!(operator.get(CLIENTS).await["items"], json!([]));
    assert!(operator.notes().is_empty(), "something was started");
    let mut both = desktop();
    both["origins"] = json!(["imported", "agent-produced"]);
    let made = operator.register(&both).await;
    assert_eq!(made["origins"], json!(["agent-produced", "imported"]));

    let team = json!({ "id": "team" }).to_string();
    assert_eq!(operator.ask("POST", "/api/workspaces", &team).await.status, StatusCode::CREATED);
    let path = format!("/api/workspaces/team/mcp-clients/{}", made["id"].as_str().unwrap());
    for method in ["GET", "DELETE"] {
        assert_eq!(operator.ask(method, &path, "").await.status, StatusCode::NOT_FOUND);
    }
    let roles = json!({ "roles": ["admin"] }).to_string();
    let path = format!("{HOME}/members/default%2Fdesktop");
    assert_eq!(operator.ask("PUT", &path, &roles).await.status, StatusCode::CONFLICT);
    let service = json!({ "service": "desktop", "roles": ["admin"] }).to_string();
    let reply = operator.ask("POST", &format!("{HOME}/service-tokens"), &service).await;
    assert_eq!(reply.status, StatusCode::CONFLICT, "{reply:?}");
    operator.works(token(&made)).await;
    let disabled = operator
        .ask("PATCH", "/api/principals/default%2Fdesktop", r#"{"is_disabled": true}"#)
        .await;
    assert_eq!(disabled.status, StatusCode::OK, "{disabled:?}");
    assert_eq!(operator.echoes(token(&made)).await.status, StatusCode::UNAUTHORIZED);
    assert_ne!(token(&made), ADMIN);
    // Under the name of who may not come in no client is registered anew.
    assert_eq!(operator.revoke(&made).await.status, StatusCode::NO_CONTENT);
    let again = operator.ask("POST", CLIENTS, &desktop().to_string()).await;
    assert_eq!(again.status, StatusCode::CONFLICT, "{again:?}");
    assert!(String::from_utf8_lossy(&again.body).contains("--undo"), "{again:?}");
    // A time as help texts write it.
    let mut other = desktop();
    (other["client"], other["expires_at"]) = (json!("other"), json!("2100-01-31T12:00:00Z"));
    assert_eq!(operator.register(&other).await["expires_at"], "2100-01-31T12:00:00.000Z");
}

/// The example of `docs/guides/registered-clients.md`, from the command line; the audit has each
/// act with its actor.
#[tokio::test(flavor = "multi_thread")]
async fn the_examples_of_the_page_of_clients_work() {
    let place = Place::with(&json!({}));
    let daemon = place.start(&["up", "--config", "mcp.json", "--listen", "127.0.0.1:0"]);
    let url = daemon.event("listening")["url"].as_str().unwrap().to_owned();
    daemon.event("ready");
    place.write("agent.json", r#"{"name": "reader"}"#);
    place.run(["agents", "apply", "-f", "agent.json"]).succeeded();
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/guides/registered-clients.md");
    let page = fs::read_to_string(page).unwrap();
    let shown = "narthex clients register desktop --agent reader";
    assert!(page.contains(shown), "{page}");
    let done = place.run(shown.split(' ').skip(1)).succeeded();
    let pasted: Value = serde_json::from_str(&done.stdout).unwrap();
    let entry = &pasted["mcpServers"]["narthex"];
    assert!(entry["url"].as_str().unwrap().starts_with(url.trim_end_matches('/')), "{entry}");
    let bearer = entry["headers"]["Authorization"].as_str().unwrap();
    assert!(bearer.starts_with("Bearer nxc_"), "{bearer}");
    let listed = place.run(["clients", "list", "--json"]).succeeded().json();
    let id = listed["data"]["items"][0]["id"].as_str().unwrap().to_owned();
    assert!(done.stderr.contains(&id), "{}", done.stderr);
    let table = place.run(["clients", "list"]).succeeded().stdout;
    assert!(table.contains("default/desktop") && table.contains("reader"), "{table}");
    let one = place.run(["clients", "show", &id, "--json"]).succeeded().json();
    assert_eq!(one["data"]["is_live"], true);
    let told = place.run(["clients", "show", &id]).succeeded().stdout;
    assert!(told.lines().any(|line| line == "  origins  agent-produced"), "{told}");
    assert!(told.lines().any(|line| line == "  run      -"), "{told}");
    place.write("run.json", r#"{"params": {"topic": "x"}}"#);
    place
        .run(["clients", "register", "other", "--agent", "nosuch", "--with", "run.json"])
        .failed(1, &["not_found", "nosuch"]);
    let address = url.trim_start_matches("http://").trim_end_matches('/').parse().unwrap();
    let token = bearer.trim_start_matches("Bearer ");
    let mut client = Client::new(address, "/mcp", token);
    let reply = client.modern(&modern(1, "tools/list", json!({}))).await;
    assert_eq!(reply.status, StatusCode::OK, "{reply:?}");
    let reply = Client::new(address, RUNS, token).whole("GET", &[], "").await;
    assert_eq!(reply.status, StatusCode::FORBIDDEN, "{reply:?}");
    place.run(["clients", "revoke", &id]).succeeded();
    let audit = place.run(["audit", "list", "--json"]).succeeded().json();
    let audit = audit["data"]["items"].as_array().unwrap();
    let of = |kind: &str| audit.iter().find(|event| event["kind"] == kind).unwrap();
    assert_eq!(of("client.registered")["resource"]["id"], *id);
    assert_eq!(of("client.revoked")["resource"]["id"], *id);
    let actor = json!({ "id": "default/desktop", "kind": "client" });
    assert_eq!(of("session.run.created")["actor"], actor);
    assert_eq!(of("access.denied")["actor"], actor);
    place.run(["clients", "revoke", &id]).failed(1, &["not_found"]);
    place.run(["clients", "register", "second", "--agent", "reader"]).succeeded();
    let deleted = place.run(["agents", "delete", "reader", "--json"]).succeeded();
    let second = deleted.json()["data"]["clients"][0].as_str().unwrap().to_owned();
    let warning = format!("the client {second} cannot create runs any more");
    assert!(deleted.stderr.contains(&warning), "{deleted:?}");
    let table = place.run(["clients", "list"]).succeeded().stdout;
    assert!(table.contains("no: agent deleted") && table.contains("no: revoked"), "{table}");
}
