//! Tests of a run's files over HTTP: each request is one operation.

use http::{Method, StatusCode};
use narthex_testkit::fixture::{Eras, Options, Running};
use serde_json::{Value, json};

use crate::world::{Answer, World, until};

const ROOT: &str = "/vfs/mnt/mcp";
const ECHO: &str = "/vfs/mnt/mcp/0-fixture/tools/echo";

async fn get(world: &World, path: &str) -> Answer {
    world.request(Method::GET, path).send().await
}

async fn post(world: &World, path: &str, body: &str) -> Answer {
    world.post(path, body.to_owned()).send().await
}

fn names(listed: &Answer) -> Vec<String> {
    assert_eq!(listed.status, StatusCode::OK, "{}", listed.text());
    let entries = listed.json()["entries"].clone();
    let name = |entry: &Value| entry["name"].as_str().map(str::to_owned);
    entries.as_array().unwrap().iter().filter_map(name).collect()
}

/// The failure in a problem; its text for people has the same code.
fn failed(answer: &Answer, status: StatusCode, code: &str) -> Value {
    let problem = answer.json();
    assert_eq!(answer.status, status, "{problem}");
    assert_eq!(problem["code"], code, "{problem}");
    assert!(problem["detail"].as_str().unwrap().starts_with(&format!("[{code}] ")), "{problem}");
    assert_eq!(problem["failure"]["code"], code);
    problem["failure"].clone()
}

#[tokio::test]
async fn r_g1_directories_are_listed_and_stat_describes_paths() {
    let world = World::with_fixture().await;
    let root = get(&world, ROOT).await;
    assert_eq!(names(&root), ["0-fixture", "0-narthex"]);
    assert_eq!((&root.json()["pid"], &root.json()["synonyms"]), (&json!(0), &json!([])));
    let mount = get(&world, "/vfs/mnt/mcp/0-fixture/").await;
    assert_eq!(names(&mount), ["tools", "resources", "prompts", "ctl"]);
    let tools = names(&get(&world, "/vfs/mnt/mcp/0-fixture/tools").await);
    for name in ["echo", "echo.schema.json", "echo.md"] {
        assert!(tools.iter().any(|tool| tool == name), "{tools:?}");
    }
    let stat = get(&world, &format!("{ECHO}?op=stat")).await.json();
    assert_eq!((&stat["is_directory"], &stat["is_writable"]), (&json!(false), &json!(true)));
    assert_eq!(
        (&stat["name"], &stat["device"]),
        (&json!("/tools/echo"), &json!("/mnt/mcp/0-fixture"))
    );
}

/// S29: a folder learns if a different server is behind a mount's name. Without a change, the
/// number stays the same.
#[tokio::test]
async fn s29_a_different_server_of_the_same_name_has_a_new_number() {
    let world = World::with_fixture().await;
    let numbers = async || {
        let root = get(&world, &format!("{ROOT}?op=mounts")).await;
        let entries = root.json()["entries"].as_array().unwrap().clone();
        entries.iter().map(|entry| entry["server"].as_u64().unwrap()).collect::<Vec<_>>()
    };
    let first = numbers().await;
    assert_eq!(first.len(), 2);
    assert!(first[0] != first[1] && first[0] < 1 << 53, "{first:?}");
    assert_eq!(numbers().await, first);
    let other = Running::http(Options::default()).await.unwrap();
    world.move_fixture(&other.url);
    let next = numbers().await;
    assert!(next[0] > first[0] && next[1] == first[1], "{first:?} {next:?}");
}

/// R-O2, R-O13, R-M1: a write is a call of the tool, and a list is the server's own list, in any
/// era.
#[tokio::test]
async fn r_o2_a_write_to_a_tool_calls_the_tool_and_reads_give_lists_and_resources() {
    for eras in [Eras::Legacy, Eras::Modern] {
        let world = World::with(eras, |_options| {}).await;
        let called = post(&world, ECHO, r#"{"message":"x"}"#).await;
        assert_eq!(called.status, StatusCode::OK, "{}", called.text());
        assert_eq!(called.json()["content"][0]["text"], "x");
        let direct = "/mcp/fixture/tools/echo";
        let direct = post(&world, direct, r#"{"message":"x"}"#).await;
        assert_eq!(called.text(), direct.text(), "both are one way");
        let list = get(&world, "/vfs/mnt/mcp/0-fixture/tools?op=read").await.json();
        assert!(list["tools"].as_array().is_some_and(|tools| tools.len() > 3), "{list}");
        let schema = get(&world, &format!("{ECHO}.schema.json")).await.json();
        assert_eq!(schema["required"], json!(["message"]));
        let told = get(&world, &format!("{ECHO}.md")).await;
        assert_eq!(told.headers["content-type"], "text/markdown; charset=utf-8");
        assert!(told.text().starts_with("# echo\n"), "{}", told.text());
        let resource = "/vfs/mnt/mcp/0-fixture/resources/test://static-text";
        let resource = get(&world, resource).await.json();
        assert_eq!(resource["contents"][0]["uri"], "test://static-text", "{resource}");
        let status = get(&world, "/vfs/mnt/mcp/0-fixture/ctl/status").await.json();
        assert_eq!((&status["server"], &status["state"]), (&json!("fixture"), &json!("ready")));
    }
}

/// R-O12: a tool's own error is a result. An error of the gateway is a failure of its kind.
#[tokio::test]
async fn r_o12_a_tools_own_error_is_a_result_and_a_refusal_is_a_failure() {
    let world = World::with_fixture().await;
    let own = post(&world, "/vfs/mnt/mcp/0-fixture/tools/fail", "{}").await;
    assert_eq!((own.status, &own.json()["isError"]), (StatusCode::OK, &json!(true)));
    let absent = post(&world, "/vfs/mnt/mcp/0-fixture/tools/absent", "{}").await;
    let failure = failed(&absent, StatusCode::NOT_FOUND, "NOT_FOUND");
    assert_eq!(failure["kind"], "tool_not_found");
    let last = get(&world, "/vfs/mnt/mcp/0-fixture/ctl/error").await.json();
    assert_eq!(last["kind"], "tool_not_found", "{last}");
    let resource = get(&world, "/vfs/mnt/mcp/0-fixture/resources/test://absent").await;
    failed(&resource, StatusCode::NOT_FOUND, "NOT_FOUND");
    let prompt = get(&world, "/vfs/mnt/mcp/0-fixture/prompts/absent").await;
    failed(&prompt, StatusCode::NOT_FOUND, "NOT_FOUND");
}

/// R-O3, R-O8: an invalid request reaches no server.
#[tokio::test]
async fn r_o8_an_invalid_file_operation_reaches_no_server() {
    let world = World::with_fixture().await;
    let bad = StatusCode::BAD_REQUEST;
    failed(&get(&world, ECHO).await, bad, "INVALID");
    for body in ["", "[]", "no JSON", r#"{"a":1}{"b":2}"#] {
        failed(&post(&world, ECHO, body).await, bad, "INVALID");
    }
    failed(&post(&world, "/vfs/mnt/mcp/0-fixture/tools", "{}").await, bad, "INVALID");
    failed(&post(&world, "/vfs/mnt/mcp", "{}").await, bad, "IS_DIRECTORY");
    get(&world, &format!("{ECHO}?op=remove"))
        .await
        .problem(StatusCode::UNPROCESSABLE_ENTITY, "invalid");
    let typed = world.post(ECHO, "{}").header("content-type", "text/plain").send().await;
    typed.problem(StatusCode::UNSUPPORTED_MEDIA_TYPE, "invalid");
    let long = json!({ "message": "x".repeat(crate::world::MESSAGE_MAX) }).to_string();
    post(&world, ECHO, &long).await.problem(StatusCode::PAYLOAD_TOO_LARGE, "exhausted");
    assert_eq!(world.fixture.as_ref().unwrap().fixture.counts().calls, 0);
}

/// D5, R-G4: a file of another run is answered like one that does not exist, and only runs have
/// files.
#[tokio::test]
async fn d5_files_of_other_runs_are_absent() {
    let world = World::with_fixture().await;
    for path in [
        "/vfs/mnt/mcp/1-fixture/tools",
        "/vfs/mnt/mcp/0-other",
        "/vfs/mnt/mcp/0-fixture/other",
        "/vfs/etc/passwd",
        "/vfs/mnt/mcp/../../etc/passwd",
        "/vfs/mnt/mcp/0-fixture/%2e%2e/%2e%2e/%2e%2e/etc/passwd",
    ] {
        failed(&get(&world, path).await, StatusCode::NOT_FOUND, "NOT_FOUND");
    }
    let none = world.request(Method::GET, ROOT).header("authorization", "").send().await;
    none.problem(StatusCode::UNAUTHORIZED, "unauthenticated");
    let admin = format!("Bearer {}", crate::world::ADMIN);
    let admin = world.request(Method::GET, ROOT).header("authorization", &admin).send().await;
    admin.problem(StatusCode::FORBIDDEN, "denied");
    let answer = world.request(Method::DELETE, ROOT).send().await;
    assert_eq!(answer.status, StatusCode::METHOD_NOT_ALLOWED);
    assert_eq!(answer.headers["allow"], "GET, POST");
}

/// R-O11: a client that disconnects cancels its call, and leaves no open descriptor.
#[tokio::test]
async fn r_o11_a_client_that_disconnects_cancels_its_call() {
    let world = World::with_fixture().await;
    let path = "/vfs/mnt/mcp/0-fixture/tools/sleep";
    let counts = || world.fixture.as_ref().unwrap().fixture.counts();
    for done in 1..=3 {
        let waiting = world.post(path, r#"{"ms":60000}"#).open();
        tokio::select! {
            _ = waiting => panic!("nothing answers so soon"),
            () = until(|| counts().calls == done) => {}
        }
        until(|| counts().cancelled == done).await;
    }
}
