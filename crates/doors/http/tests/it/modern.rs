//! Tests of modern requests: their required parts, and their answers.

use std::time::Duration;

use http::{Method, StatusCode};
use http_body_util::BodyExt;
use narthex_testkit::{fixture::Eras, messages::Era};
use serde_json::{Value, json};

use crate::world::{Stream, World, message, stamped, until};

const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES_KEY: &str = "io.modelcontextprotocol/clientCapabilities";

fn text_call() -> Value {
    json!({"name": "test_simple_text", "arguments": {}})
}

#[tokio::test]
async fn a_small_call_is_answered_with_one_json_body() {
    let world = World::with_fixture().await;
    let answer = world.modern("/mcp/fixture", "tools/call", text_call()).send().await;
    assert_eq!(
        (answer.status, &answer.headers["content-type"]),
        (StatusCode::OK, &"application/json".parse().unwrap())
    );
    assert_eq!(answer.length, Some(answer.body.len() as u64));
    assert_eq!(answer.json()["id"], 1);
    assert_eq!(answer.json()["result"]["resultType"], "complete");
    let params = json!({"name": "mcp__fixture__test_simple_text", "arguments": {}});
    let aggregated = world.modern("/mcp", "tools/call", params).send().await;
    assert_eq!(aggregated.json()["result"]["content"], answer.json()["result"]["content"]);
}

/// S13: every header that contradicts the body is refused, and nothing is forwarded.
#[tokio::test]
async fn s13_headers_that_disagree_with_the_body_are_refused() {
    let world = World::with_fixture().await;
    let call = || world.modern("/mcp/fixture", "tools/call", text_call());
    let table = [
        ("mcp-method", "tools/list"),
        ("mcp-method", "Tools/call"),
        ("mcp-method", ""),
        ("mcp-name", "test_error_handling"),
        ("mcp-name", "TEST_SIMPLE_TEXT"),
        ("mcp-name", "=?base64?!?="),
        ("mcp-name", ""),
        ("mcp-protocol-version", "2025-11-25"),
        ("mcp-protocol-version", "2099-01-01"),
        ("mcp-protocol-version", ""),
    ];
    for (name, value) in table {
        let answer = call().header(name, value).send().await;
        assert_eq!((answer.status.as_u16(), answer.code()), (400, -32020), "{name}: {value}");
        assert_eq!(answer.json()["id"], 1);
    }
    for name in ["mcp-method", "mcp-name", "mcp-protocol-version"] {
        let mut twice = call();
        let value = twice.request.headers()[name].clone();
        twice.request.headers_mut().append(name, value);
        let answer = twice.send().await;
        assert_eq!((answer.status.as_u16(), answer.code()), (400, -32020), "{name} twice");
    }
    assert_eq!(world.fixture.as_ref().unwrap().fixture.counts().calls, 0);
}

/// S13: arguments that are repeated in headers are checked too, by the tool's schema.
#[tokio::test]
async fn s13_mirrored_arguments_are_checked() {
    for eras in [Eras::Both, Eras::Legacy, Eras::Modern] {
        let world = World::with(eras, |_options| {}).await;
        mirrored_arguments_are_checked(&world).await;
    }
}

async fn mirrored_arguments_are_checked(world: &World) {
    let tools = world.modern("/mcp/fixture", "tools/list", json!({})).send().await.json();
    let tools = tools["result"]["tools"].as_array().unwrap().clone();
    let tool = tools.iter().find(|tool| tool["name"] == "test_custom_headers").unwrap();
    let properties = tool["inputSchema"]["properties"].as_object().unwrap();
    let (argument, schema) = properties
        .iter()
        .find(|(_, schema)| schema["x-mcp-header"].is_string() && schema["type"] == "string")
        .unwrap();
    let header = format!("mcp-param-{}", schema["x-mcp-header"].as_str().unwrap()).to_lowercase();
    let header: &'static str = header.leak();
    let params = json!({"name": "test_custom_headers", "arguments": {argument: "x"}});
    let call = || world.modern("/mcp/fixture", "tools/call", params.clone());
    assert_eq!(call().header(header, "x").send().await.status, StatusCode::OK);
    for value in ["", "y"] {
        let answer = call().header(header, value).send().await;
        assert_eq!((answer.status.as_u16(), answer.code()), (400, -32020), "{value}");
    }
}

#[tokio::test]
async fn an_unknown_version_is_answered_with_the_supported_versions() {
    let world = World::empty();
    let bodies = [
        json!({"jsonrpc": "2.0", "id": 7, "method": "tools/list"}),
        json!({"jsonrpc": "2.0", "id": 7, "method": "tools/list",
            "params": {"_meta": {VERSION_KEY: "2099-01-01", CAPABILITIES_KEY: {}}}}),
    ];
    for body in bodies {
        let answer = world
            .post("/mcp", body.to_string())
            .header("mcp-protocol-version", "2099-01-01")
            .header("mcp-method", "tools/list")
            .send()
            .await;
        assert_eq!((answer.status.as_u16(), answer.code()), (400, -32022));
        let error = &answer.json()["error"];
        assert_eq!(error["data"]["requested"], "2099-01-01");
        assert_eq!(error["data"]["supported"], json!(["2026-07-28"]));
    }
}

/// D2: an error names as supported the versions of `server/discover` at the endpoint. None of them
/// is refused there, whatever version the server behind it speaks.
#[tokio::test]
async fn versions_named_as_supported_are_accepted() {
    for eras in [Eras::Both, Eras::Legacy, Eras::Modern] {
        let world = World::with(eras, |_options| {}).await;
        for path in ["/mcp", "/mcp/fixture"] {
            let list = async |version: &str| {
                let mut body = stamped("tools/list", json!({}));
                body["params"]["_meta"][VERSION_KEY] = json!(version);
                let request = world.post(path, body.to_string());
                let request = request.header("mcp-protocol-version", version);
                request.header("mcp-method", "tools/list").send().await
            };
            let refused = list("2099-01-01").await.json();
            let supported = refused["error"]["data"]["supported"].as_array().unwrap().clone();
            let found = world.modern(path, "server/discover", json!({})).send().await.json();
            assert_eq!(found["result"]["supportedVersions"], json!(supported), "{found}");
            assert!(!supported.is_empty());
            for version in supported {
                let answer = list(version.as_str().unwrap()).await;
                assert_eq!(answer.status, StatusCode::OK, "{}", answer.text());
            }
            assert_eq!(list("2025-11-25").await.code(), -32022);
        }
    }
}

#[tokio::test]
async fn requests_without_required_members_of_meta_are_refused() {
    let world = World::empty();
    let table = [
        json!({}),
        json!({VERSION_KEY: "2026-07-28"}),
        json!({VERSION_KEY: "2026-07-28", CAPABILITIES_KEY: null}),
        json!({VERSION_KEY: "2026-07-28", CAPABILITIES_KEY: []}),
        json!({VERSION_KEY: 20260728, CAPABILITIES_KEY: {}}),
        json!({CAPABILITIES_KEY: {}}),
    ];
    for meta in table {
        let body = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/list",
            "params": {"_meta": meta}});
        let answer = world
            .post("/mcp", body.to_string())
            .header("mcp-protocol-version", "2026-07-28")
            .header("mcp-method", "tools/list")
            .send()
            .await;
        assert_eq!((answer.status.as_u16(), answer.code()), (400, -32602), "{body}");
        assert_eq!(answer.json()["id"], 7);
    }
}

#[tokio::test]
async fn notifications_are_accepted_and_responses_are_not() {
    let world = World::empty();
    let send = |body: Value| {
        world.post("/mcp", body.to_string()).header("mcp-protocol-version", "2026-07-28").send()
    };
    let notification = json!({"jsonrpc": "2.0", "method": "notifications/cancelled",
        "params": {"requestId": 1}});
    let accepted = send(notification).await;
    assert_eq!((accepted.status, accepted.body.len()), (StatusCode::ACCEPTED, 0));
    for response in [
        json!({"jsonrpc": "2.0", "id": 1, "result": {}}),
        json!({"jsonrpc": "2.0", "id": 1, "error": {"code": 1, "message": "x"}}),
    ] {
        assert_eq!(send(response).await.status, StatusCode::BAD_REQUEST);
    }
}

#[tokio::test]
async fn removed_methods_are_not_found() {
    let world = World::with_fixture().await;
    for method in ["initialize", "ping", "logging/setLevel", "resources/subscribe"] {
        let answer = world.modern("/mcp/fixture", method, json!({})).send().await;
        assert_eq!((answer.status.as_u16(), answer.code()), (404, -32601), "{method}");
    }
}

#[tokio::test]
async fn modern_clients_have_no_get_no_delete_and_no_session() {
    let world = World::with_fixture().await;
    for method in [Method::GET, Method::DELETE, Method::PUT] {
        for session in ["", "n0-unknown"] {
            let answer = world
                .request(method.clone(), "/mcp")
                .header("mcp-protocol-version", "2026-07-28")
                .header("mcp-session-id", session)
                .send()
                .await;
            assert_eq!(answer.status, StatusCode::METHOD_NOT_ALLOWED, "{method} {session}");
            assert!(answer.headers.contains_key("allow"));
        }
    }
    let answer = world
        .modern("/mcp/fixture", "tools/call", text_call())
        .header("mcp-session-id", "n0-unknown")
        .send()
        .await;
    assert_eq!(answer.status, StatusCode::OK);
    assert!(!answer.headers.contains_key("mcp-session-id"));
}

fn progress_call(count: u64, pause_ms: u64) -> Value {
    let arguments = json!({"count": count, "pause_ms": pause_ms});
    json!({"name": "progress", "arguments": arguments, "_meta": {"progressToken": "p"}})
}

/// E85: progress comes before the answer, on a stream whose events have no ids.
#[tokio::test]
async fn progress_comes_before_the_answer_on_a_stream_without_ids() {
    let world = World::with_fixture().await;
    let events = world.modern("/mcp/fixture", "tools/call", progress_call(3, 0)).events().await;
    assert_eq!(events.len(), 4);
    for (index, event) in events.iter().enumerate() {
        assert_eq!((&event.id, event.retry_ms), (&None, None));
        let message = message(event);
        match index {
            3 => assert_eq!(message["id"], 1),
            _ => assert_eq!(message["params"]["progressToken"], "p"),
        }
    }
}

#[tokio::test]
async fn a_client_that_accepts_no_stream_gets_only_the_answer() {
    let world = World::with_fixture().await;
    let call = world.modern("/mcp/fixture", "tools/call", progress_call(3, 0));
    let answer = call.header("accept", "application/json").send().await;
    assert_eq!(answer.json()["id"], 1);
}

/// A quiet call becomes a stream, so that programs in between see signs of life.
#[tokio::test]
async fn a_quiet_call_becomes_a_stream_with_signs_of_life() {
    let (world, _server, mut calls) = World::with_held_tool(Era::Modern, |options| {
        options.quiet = Duration::from_millis(20);
        options.keep_alive = Duration::from_millis(20);
    })
    .await;
    let params = json!({"name": "act", "arguments": {}});
    let answer = world.modern("/mcp/fixture", "tools/call", params).open().await;
    assert_eq!(answer.headers()["content-type"], "text/event-stream");
    let mut body = answer.into_body();
    // The call is answered only after more than one sign of life.
    for _ in 0..2 {
        let sign = body.frame().await.unwrap().unwrap().into_data().unwrap();
        assert_eq!(sign, ":\n\n");
    }
    let answered = async { calls.recv().await.unwrap().answer().await };
    let (rest, ()) = tokio::join!(body.collect(), answered);
    let rest = String::from_utf8(rest.unwrap().to_bytes().to_vec()).unwrap();
    let (_, last) = rest.split_once("data: ").unwrap();
    assert_eq!(serde_json::from_str::<Value>(last).unwrap()["id"], 1);
}

/// E84: a modern client cancels a call by closing its stream.
#[tokio::test]
async fn closing_the_stream_cancels_the_call() {
    let world = World::with_fixture().await;
    let call = world.modern("/mcp/fixture", "tools/call", progress_call(1000, 20));
    let mut stream = Stream::of(call.open().await);
    assert!(stream.next().await.is_some());
    drop(stream);
    let params = json!({"name": "sleep", "arguments": {"ms": 60_000}});
    let waiting = world.modern("/mcp/fixture", "tools/call", params).open();
    let cancelled = || world.fixture.as_ref().unwrap().fixture.counts().cancelled;
    let calls = || world.fixture.as_ref().unwrap().fixture.counts().calls;
    tokio::select! {
        _ = waiting => panic!("nothing answers so soon"),
        () = until(|| calls() == 2) => {}
    }
    until(|| cancelled() == 2).await;
}

#[tokio::test]
async fn s14_the_body_decides_the_era_of_a_request_and_not_the_header() {
    let world = World::empty();
    let body = stamped("tools/list", json!({})).to_string();
    let answer = world.post("/mcp", body).header("mcp-protocol-version", "2025-06-18").send().await;
    assert_eq!(answer.code(), -32020);
}
