//! Tests of legacy requests: sessions, their binding to a run and an endpoint, and batches.

use std::time::Duration;

use http::{Method, StatusCode};
use narthex_policy::RunPolicy;
use narthex_testkit::{
    fixture::Eras,
    messages::{self, Era},
};
use narthex_wire::SseEvent;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::world::{SOON, World, initialize, message, tool_call, until};

const LIST: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;

fn list() -> Value {
    serde_json::from_str(LIST).unwrap()
}

#[tokio::test]
async fn initialize_opens_a_session_that_takes_calls() {
    let world = World::with_fixture().await;
    for (path, tool) in
        [("/mcp", "mcp__fixture__test_simple_text"), ("/mcp/fixture", "test_simple_text")]
    {
        let session = world.session(path, "2025-06-18").await;
        let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        let accepted = world.legacy(path, &session, &initialized).send().await;
        assert_eq!((accepted.status, accepted.body.len()), (StatusCode::ACCEPTED, 0));
        let called = world.legacy(path, &session, &tool_call(5, tool, json!({}))).send().await;
        assert_eq!((called.status, &called.json()["id"]), (StatusCode::OK, &json!(5)));
        assert!(called.json()["result"]["content"][0]["text"].is_string(), "{}", called.text());
        let response = json!({"jsonrpc": "2.0", "id": "unasked", "result": {}});
        let accepted = world.legacy(path, &session, &response).send().await;
        assert_eq!(accepted.status, StatusCode::ACCEPTED);
    }
}

/// S19: a session can be used only by its own run, at its own endpoint, while it is active.
#[tokio::test]
async fn s19_sessions_are_bound_to_run_and_endpoint() {
    let world = World::with_fixture().await;
    let session = world.session("/mcp", "2025-11-25").await;
    let other = format!("Bearer {}", world.other_run(RunPolicy::AllAttached));
    let get = |path, id: &str| {
        world
            .request(Method::GET, path)
            .header("accept", "text/event-stream")
            .header("mcp-protocol-version", "2025-11-25")
            .header("mcp-session-id", id)
    };
    let delete = |path, id: &str| {
        let request = world.request(Method::DELETE, path).header("mcp-session-id", id);
        request.header("mcp-protocol-version", "2025-11-25")
    };
    let forged = format!("{session}x");
    let stolen = || {
        vec![
            world.legacy("/mcp", &session, &list()).header("authorization", &other),
            get("/mcp", &session).header("authorization", &other),
            delete("/mcp", &session).header("authorization", &other),
            world.legacy("/mcp/fixture", &session, &list()),
            get("/mcp/fixture", &session),
            delete("/mcp/fixture", &session),
            world.legacy("/mcp", &forged, &list()),
            get("/mcp", &forged),
            delete("/mcp", &forged),
        ]
    };
    for request in stolen() {
        let what = format!("{:?}", request.request);
        let answer = request.send().await;
        // The code is the one of the official SDKs, since some clients check it.
        assert_eq!((answer.status, answer.code()), (StatusCode::NOT_FOUND, -32001), "{what}");
    }
    assert_eq!(world.legacy("/mcp", &session, &list()).send().await.status, StatusCode::OK);
    for unnamed in [world.post("/mcp", LIST), get("/mcp", ""), delete("/mcp", "")] {
        assert_eq!(unnamed.send().await.status, StatusCode::BAD_REQUEST);
    }
    assert_eq!(delete("/mcp", &session).send().await.status, StatusCode::NO_CONTENT);
    for ended in [world.legacy("/mcp", &session, &list()), get("/mcp", &session)] {
        assert_eq!(ended.send().await.status, StatusCode::NOT_FOUND);
    }
    assert_eq!(delete("/mcp", &session).send().await.status, StatusCode::NOT_FOUND);
}

/// S19: session ids cannot be guessed, and do not repeat.
#[tokio::test]
async fn s19_session_ids_are_random() {
    let world = World::empty();
    let mut seen = std::collections::HashSet::new();
    for _ in 0..100 {
        let id = world.session("/mcp", "2025-11-25").await;
        assert!(id.len() >= 24 && id.bytes().all(|byte| byte.is_ascii_graphic()), "{id}");
        assert!(seen.insert(id));
    }
}

/// People and clients add a slash to the endpoints, which has no effect.
#[tokio::test]
async fn a_slash_behind_an_endpoint_changes_nothing() {
    let world = World::with_fixture().await;
    for (with, without) in [("/mcp/", "/mcp"), ("/mcp/fixture/", "/mcp/fixture")] {
        let session = world.session(with, "2025-11-25").await;
        for path in [with, without] {
            let answer = world.legacy(path, &session, &list()).send().await;
            assert_eq!(answer.status, StatusCode::OK, "{path} {}", answer.text());
        }
    }
    for absent in ["/mcp//", "/mcp/fixture//", "/mcp/fixture/tools/"] {
        let answer = world.post(absent, initialize("2025-11-25")).send().await;
        assert_eq!(answer.status, StatusCode::NOT_FOUND, "{absent}");
    }
}

/// The events of the response to a body with one call, of id 7, which sleeps until its client
/// cancels it. Returns after the server has received the cancellation.
async fn events_of_cancelled(quiet: Duration, revision: &str, body: &Value) -> Vec<SseEvent> {
    let world = World::with(Eras::Legacy, |options| options.quiet = quiet).await;
    let session = world.session("/mcp/fixture", revision).await;
    let counts = || world.fixture.as_ref().unwrap().fixture.counts();
    let call = world.legacy("/mcp/fixture", &session, body).events();
    let cancel = async {
        until(|| counts().calls == 1).await;
        let params = json!({ "requestId": 7 });
        let cancelled = messages::message(Era::Legacy, None, "notifications/cancelled", params);
        world.legacy("/mcp/fixture", &session, &cancelled).send().await
    };
    let both = Box::pin(async { tokio::join!(call, cancel) });
    let (events, accepted) = timeout(SOON, both).await.expect("the response does not end");
    assert_eq!(accepted.status, StatusCode::ACCEPTED);
    until(|| counts().cancelled == 1).await;
    events
}

fn sleep() -> Value {
    tool_call(7, "sleep", json!({"ms": 600_000}))
}

/// The response to a cancelled call ends without an answer, whether it has become a stream by then
/// or not.
#[tokio::test]
async fn the_response_to_a_cancelled_call_ends() {
    for quiet in [Duration::from_secs(600), Duration::ZERO] {
        let events = events_of_cancelled(quiet, "2025-11-25", &sleep()).await;
        assert!(events.iter().all(|event| event.data.is_empty()), "{events:?}");
    }
}

/// The same for a batch whose calls are all cancelled.
#[tokio::test]
async fn the_response_to_a_cancelled_batch_ends() {
    let quiet = Duration::from_secs(600);
    let events = events_of_cancelled(quiet, "2025-03-26", &json!([sleep()])).await;
    assert!(events.is_empty(), "{events:?}");
}

/// Parameters that are null count as absent. An error has the id of its request if the id can be
/// read.
#[tokio::test]
async fn null_parameters_are_absent_and_errors_carry_the_id() {
    let world = World::with_fixture().await;
    let session = world.session("/mcp/fixture", "2025-11-25").await;
    let send = async |body: &str| {
        world.post("/mcp/fixture", body.to_owned()).header("mcp-session-id", &session).send().await
    };
    let listed = send(r#"{"jsonrpc":"2.0","id":2,"method":"tools/list","params":null}"#).await;
    assert!(listed.json()["result"]["tools"].is_array(), "{}", listed.text());
    let noted =
        send(r#"{"jsonrpc":"2.0","method":"notifications/initialized","params":null}"#).await;
    assert_eq!(noted.status, StatusCode::ACCEPTED, "{}", noted.text());
    for (body, id) in [
        (r#"{"jsonrpc":"2.0","id":3,"method":"tools/list","params":7}"#, json!(3)),
        (r#"{"jsonrpc":"2.0","id":"x","method":"tools/list","params":{"a":1,"a":1}}"#, json!("x")),
        (r#"{"jsonrpc":"2.0","id":3.0,"method":"ping"}"#, Value::Null),
        (r#"{"jsonrpc":"2.0","id":3,"method":"ping""#, Value::Null),
    ] {
        let answer = send(body).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{body}");
        assert_eq!(answer.json()["id"], id, "{body}");
    }
}

/// With a 404, clients would believe that their session has ended.
#[tokio::test]
async fn unknown_methods_in_a_session_are_answered_with_200() {
    let world = World::with_fixture().await;
    let session = world.session("/mcp/fixture", "2025-11-25").await;
    for method in ["no/such", "server/discover"] {
        let request = json!({"jsonrpc": "2.0", "id": 9, "method": method, "params": {}});
        let answer = world.legacy("/mcp/fixture", &session, &request).send().await;
        assert_eq!((answer.status, answer.code()), (StatusCode::OK, -32601), "{method}");
    }
}

#[tokio::test]
async fn the_version_header_must_be_a_known_one() {
    let world = World::empty();
    let session = world.session("/mcp", "2025-06-18").await;
    let send = |version: &str| {
        world.legacy("/mcp", &session, &list()).header("mcp-protocol-version", version).send()
    };
    for version in ["", "2025-06-18", "2025-03-26"] {
        assert_eq!(send(version).await.status, StatusCode::OK, "{version}");
    }
    for version in ["2025-06-19", "x"] {
        assert_eq!(send(version).await.status, StatusCode::BAD_REQUEST, "{version}");
        let get = world.request(Method::GET, "/mcp").header("mcp-session-id", &session);
        let get = get.header("mcp-protocol-version", version).send().await;
        assert_eq!(get.status, StatusCode::BAD_REQUEST, "{version}");
    }
}

#[tokio::test]
async fn a_handshake_may_propose_an_unknown_version() {
    let world = World::empty();
    let hello = world.post("/mcp", initialize("2099-01-01"));
    let answer = hello.header("mcp-protocol-version", "2099-01-01").send().await;
    assert_eq!(answer.json()["result"]["protocolVersion"], "2025-11-25");
}

fn ids(answer: &Value) -> Vec<u64> {
    let mut ids: Vec<_> =
        answer.as_array().unwrap().iter().map(|one| one["id"].as_u64().unwrap()).collect();
    ids.sort_unstable();
    ids
}

#[tokio::test]
async fn batches_are_split_only_in_revisions_with_batches() {
    let world = World::with_fixture().await;
    let session = world.session("/mcp/fixture", "2025-03-26").await;
    let send = |body: Value| async {
        let body = body;
        world.legacy("/mcp/fixture", &session, &body).send().await
    };
    let notification = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let call = |id| tool_call(id, "test_simple_text", json!({}));
    let answer = send(json!([call(1), notification, call(2), call(3)])).await;
    assert_eq!((answer.status, ids(&answer.json())), (StatusCode::OK, vec![1, 2, 3]));
    let accepted = send(json!([notification, notification])).await;
    assert_eq!((accepted.status, accepted.body.len()), (StatusCode::ACCEPTED, 0));
    let hello: Value = serde_json::from_str(&initialize("2025-03-26")).unwrap();
    let too_many = json!(vec![notification; 101]);
    for refused in
        [json!([]), json!([call(1), hello]), too_many, json!([call(1), {"jsonrpc": "1.0"}])]
    {
        let answer = send(refused).await;
        assert_eq!((answer.status.as_u16(), answer.code()), (400, -32600));
    }
    for revision in ["2024-11-05", "2025-06-18", "2025-11-25"] {
        let session = world.session("/mcp/fixture", revision).await;
        let body = json!([call(1)]);
        let answer = world.legacy("/mcp/fixture", &session, &body).send().await;
        assert_eq!((answer.status.as_u16(), answer.code()), (400, -32600), "{revision}");
    }
}

#[tokio::test]
async fn a_batch_with_progress_messages_becomes_a_stream() {
    let world = World::with_fixture().await;
    let session = world.session("/mcp/fixture", "2025-03-26").await;
    let progress = tool_call(1, "progress", json!({"count": 3}));
    let batch = json!([progress, tool_call(2, "test_simple_text", json!({}))]);
    let events = world.legacy("/mcp/fixture", &session, &batch).events().await;
    let messages: Vec<_> = events.iter().map(message).collect();
    let notified = messages.iter().filter(|message| message["method"].is_string()).count();
    let answers = messages.iter().filter(|message| message["result"].is_object());
    assert_eq!((notified, ids(&answers.cloned().collect())), (3, vec![1, 2]));
}
