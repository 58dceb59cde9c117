//! Tests of tools that are called by POST: the body is the arguments, the answer is the result.

use http::{Method, StatusCode};
use narthex_testkit::{
    fixture::Eras,
    peer::{self, Peer},
};
use serde_json::{Value, json};

use crate::{
    api::world::Api,
    world::{Answer, CONTRACT, World, until},
};

const ECHO: &str = "/mcp/fixture/tools/echo";

async fn call(world: &World, path: &str, body: &str) -> Answer {
    world.post(path, body.to_owned()).header("accept", "application/json").send().await
}

fn error(answer: &Answer) -> Value {
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text());
    let result = answer.json();
    assert_eq!(result["isError"], true, "{result}");
    result["structuredContent"]["error"].clone()
}

/// X-M53, S14: the result equals that of the same call over MCP, whatever era the server speaks.
#[tokio::test]
async fn s14_a_posted_tool_call_answers_as_over_mcp() {
    for eras in [Eras::Legacy, Eras::Modern] {
        let world = World::with(eras, |_options| {}).await;
        let answer = call(&world, ECHO, r#"{"message":"x"}"#).await;
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.text());
        assert_eq!(answer.headers["content-type"], "application/json");
        let params = json!({ "name": "echo", "arguments": { "message": "x" } });
        let over_mcp = world.modern("/mcp/fixture", "tools/call", params);
        let over_mcp = over_mcp.header("accept", "application/json").send().await.json();
        assert_eq!(answer.json(), over_mcp["result"]);
    }
}

/// A tool's messages before its answer are left out. A failed call gives a result, too.
#[tokio::test]
async fn a_posted_tool_call_has_one_answer() {
    let world = World::with_fixture().await;
    let path = "/mcp/fixture/tools/progress";
    let answer = call(&world, path, r#"{"count":3,"pause_ms":0}"#).await;
    assert!(answer.json()["content"].is_array(), "{}", answer.text());
    let failed = call(&world, "/mcp/fixture/tools/fail", "{}").await;
    assert_eq!((failed.status, &failed.json()["isError"]), (StatusCode::OK, &json!(true)));
    let path = "/mcp/fixture/tools/absent";
    assert_eq!(error(&call(&world, path, "{}").await)["kind"], "tool_not_found");
    // The tool's name is one segment, even with encoded slashes.
    let answer = call(&world, "/mcp/fixture/tools/a%2Fb%20%E2%82%AC%22", "{}").await;
    let error = error(&answer);
    assert_eq!(error["message"], "there is no tool `a/b \u{20ac}\"`", "{error}");
}

/// S8, S12: a body that is no object of arguments is refused with the reason, and reaches no
/// server.
#[tokio::test]
async fn s12_a_posted_tool_call_takes_only_one_object_as_arguments() {
    let world = World::with_fixture().await;
    let bad = StatusCode::BAD_REQUEST;
    for (body, told) in [
        ("", "not JSON"),
        ("[]", "not an object"),
        (r#""x""#, "not an object"),
        (r#"{"message":"x"},"name":"sleep""#, "not JSON"),
        (r#"{"message":"x"}}"#, "not JSON"),
        (r#"{"message":"x",}"#, "not JSON"),
    ] {
        let answer = call(&world, ECHO, body).await;
        answer.problem(bad, "invalid");
        assert!(answer.json()["detail"].as_str().unwrap().contains(told), "{}", answer.text());
    }
    call(&world, &format!("{ECHO}?message=x"), "{}").await.problem(bad, "invalid");
    call(&world, "/mcp/fixture/tools/%FF", "{}").await.problem(bad, "invalid");
    let typed = world.post(ECHO, "{}").header("content-type", "text/plain").send().await;
    typed.problem(StatusCode::UNSUPPORTED_MEDIA_TYPE, "invalid");
    let picky = world.post(ECHO, "{}").header("accept", "text/html").send().await;
    picky.problem(StatusCode::NOT_ACCEPTABLE, "invalid");
    let long = json!({ "message": "x".repeat(crate::world::MESSAGE_MAX) }).to_string();
    call(&world, ECHO, &long).await.problem(StatusCode::PAYLOAD_TOO_LARGE, "exhausted");
    assert_eq!(world.fixture.as_ref().unwrap().fixture.counts().calls, 0);
}

/// D4, D5: only a run's token is accepted, and only for the run's own servers. Another run's server
/// is absent.
#[tokio::test]
async fn d5_a_run_posts_only_to_tools_of_its_servers() {
    let world = World::with_fixture().await;
    call(&world, "/mcp/other/tools/echo", "{}").await.problem(StatusCode::NOT_FOUND, "not_found");
    let none = world.post(ECHO, "{}").header("authorization", "").send().await;
    none.problem(StatusCode::UNAUTHORIZED, "unauthenticated");
    let admin = format!("Bearer {}", crate::world::ADMIN);
    let admin = world.post(ECHO, "{}").header("authorization", &admin).send().await;
    admin.problem(StatusCode::FORBIDDEN, "denied");
    for method in [Method::GET, Method::DELETE, Method::PUT] {
        let answer = world.request(method, ECHO).send().await;
        assert_eq!(answer.status, StatusCode::METHOD_NOT_ALLOWED);
        assert_eq!(answer.headers["allow"], "POST");
    }
}

/// A client that disconnects cancels its call.
#[tokio::test]
async fn a_client_that_disconnects_cancels_its_posted_call() {
    let world = World::with_fixture().await;
    let waiting = world.post("/mcp/fixture/tools/sleep", r#"{"ms":60000}"#).open();
    let counts = || world.fixture.as_ref().unwrap().fixture.counts();
    tokio::select! {
        _ = waiting => panic!("nothing answers so soon"),
        () = until(|| counts().calls == 1) => {}
    }
    until(|| counts().cancelled == 1).await;
}

/// D16: a call whose server does not answer in time gives a result of the kind `timeout`, by POST
/// as over MCP. The server is informed that the call was cancelled.
#[tokio::test]
async fn d16_a_posted_call_past_its_timeout_is_a_result() {
    let server = json!({ "one": { "transport": "http", "url": "URL", "timeoutMs": 200 } });
    let api = Api::over(&server).await;
    let path = "/mcp/one/tools/sleep";
    let answer = call(&api.world, path, r#"{"ms":60000}"#).await;
    let failed = error(&answer);
    assert_eq!(failed["kind"], "timeout", "{failed}");
    let params = json!({ "name": "sleep", "arguments": { "ms": 60000 } });
    let over_mcp = api.world.modern("/mcp/one", "tools/call", params);
    let over_mcp = over_mcp.header("accept", "application/json").send().await.json();
    assert_eq!(answer.json(), over_mcp["result"]);
}

/// D24: an error of JSON-RPC by which a server answers a call is a problem with its code and data.
/// The document has both, as each test of the door compares an answer with it.
#[tokio::test]
async fn d24_an_error_of_the_server_is_a_problem_with_its_code_and_data() {
    let peer = Peer::modern(|seen| match seen.rpc() {
        "tools/list" => {
            let tool = json!({ "name": "act", "inputSchema": { "type": "object" } });
            Some(peer::result(
                seen,
                &json!({ "tools": [tool], "ttlMs": 0, "cacheScope": "private" }),
            ))
        }
        "tools/call" => {
            let error = json!({ "code": -32055, "message": "no paper", "data": { "tray": 2 } });
            let body = json!({ "jsonrpc": "2.0", "id": seen.body["id"], "error": error });
            Some(peer::text(200, "application/json", body.to_string()))
        }
        _ => None,
    });
    let peer = peer.await;
    let api = Api::over(&json!({ "one": { "transport": "http", "url": peer.url } })).await;
    let problem = call(&api.world, "/mcp/one/tools/act", "{}").await;
    assert_eq!(problem.headers["content-type"], "application/problem+json", "{}", problem.text());
    let problem = problem.json();
    assert_eq!((&problem["code"], &problem["detail"]), (&json!(-32055), &json!("no paper")));
    assert_eq!(problem["data"], json!({ "tray": 2 }), "{problem}");
    // A problem of another operation has no such code.
    let other = CONTRACT.fits("#/components/schemas/Problem", problem.clone());
    assert!(other.is_err(), "{problem}");
    CONTRACT.fits("#/components/schemas/ToolCallProblem", problem).unwrap();
}
