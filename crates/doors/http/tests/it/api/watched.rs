//! Tests of watched runs through the whole door: watchers get operations, but never values.

use http::{Method, StatusCode};
use narthex_model::Role;
use serde_json::{Value, json};

use super::{
    built_in::{Run, agent_with_a_gated_tool},
    grants::gated,
    tenants::Tenants,
    world::Api,
};
use crate::world::{ADMIN, Answer, Stream, message, whole};

const HERE: &str = "/api/workspaces/default";
/// The canary in arguments and results. No watcher may receive it.
const CANARY: &str = "canary-4711-of-a-call";
/// The id of a run that never existed.
const NOBODY: &str = "run_000000000000";

impl Api {
    async fn as_whom(&self, token: &str, method: Method, path: &str, body: &str) -> Answer {
        let request = self.world.request(method, path);
        let request = request.header("authorization", &format!("Bearer {token}"));
        let request = request.header("content-type", "application/json");
        request.body(whole(body.to_owned())).send().await
    }

    async fn watch(&self, path: &str, token: &str) -> Stream {
        let request = self.world.request(Method::GET, path);
        let request = request.header("authorization", &format!("Bearer {token}"));
        let request = request.header("accept", "text/event-stream");
        Stream::of(request.open().await)
    }
}

async fn next(stream: &mut Stream) -> Value {
    message(&stream.next().await.expect("the stream goes on"))
}

/// A run of an API, with its id.
struct Begun<'a> {
    run: Run<'a>,
    id: String,
}

impl<'a> Begun<'a> {
    async fn of(api: &'a Api) -> Self {
        let asked = json!({ "type": "start_session", "agent_name": "writer" }).to_string();
        let made = api.send("POST", &format!("{HERE}/runs"), asked).await.succeeded();
        let text = |name: &str| made[name].as_str().unwrap().to_owned();
        let run = Run { api, token: text("token"), session: text("session_id") };
        Self { run, id: text("run_id") }
    }

    async fn list(&self, path: &str) {
        self.run.ask(path, "tools/list", json!({})).await;
    }
}

fn trace(run: &Begun<'_>) -> String {
    format!("{HERE}/runs/{}/trace", run.id)
}

/// A daemon with an agent that has one server, `demo`.
async fn daemon(place: &tempfile::TempDir) -> Api {
    let api = gated(place).await;
    agent_with_a_gated_tool(&api).await;
    api
}

/// R-M35: each call is reported with sizes and a duration, including lists. A refused call has the
/// kind of its error. No watcher receives the contents of calls.
#[tokio::test]
async fn r_m35_each_call_is_reported_once_without_its_contents() {
    let place = tempfile::tempdir().unwrap();
    let api = daemon(&place).await;
    let run = Begun::of(&api).await;
    let mut stream = api.watch(&trace(&run), ADMIN).await;
    let begin = next(&mut stream).await;
    assert_eq!((&begin["type"], &begin["run_id"]), (&json!("begin"), &json!(run.id)));
    assert_eq!((&begin["agent_name"], &begin["is_local"]), (&json!("writer"), &json!(false)));
    let pid = begin["pid"].as_u64().unwrap();
    let arguments = json!({ "message": CANARY });
    let called = json!({ "name": "mcp__demo__echo_again", "arguments": arguments });
    for (method, params) in [
        ("tools/list", json!({})),
        ("tools/call", called),
        ("tools/call", json!({ "name": "mcp__demo__echo", "arguments": arguments })),
    ] {
        run.run.ask("/mcp", method, params).await;
    }
    run.list("/mcp/demo").await;
    let told = [
        next(&mut stream).await,
        next(&mut stream).await,
        next(&mut stream).await,
        next(&mut stream).await,
    ];
    let size = arguments.to_string().len();
    let lines: Vec<_> = told
        .iter()
        .map(|one| {
            let word = |name: &str| one[name].as_str().unwrap_or("-").to_owned();
            assert_eq!((&one["type"], &one["source"]), (&json!("operation"), &json!("call")));
            assert!(one["duration_us"].is_u64() && one["after_us"].is_u64(), "{one}");
            (word("operation"), word("path"), one["size"].as_u64(), word("error"))
        })
        .collect();
    let path = |rest: &str| format!("/mnt/mcp/{pid}-{rest}");
    let sized = Some(size as u64);
    let expected = [
        ("Read", path("*/tools"), None, "-"),
        ("Write", path("*/tools/mcp__demo__echo_again"), sized, "tool_not_found"),
        ("Write", path("demo/tools/echo"), sized, "permission_required"),
        ("Read", path("demo/tools"), None, "-"),
    ];
    for (line, (operation, path, size, error)) in lines.iter().zip(expected) {
        let expected = (operation.to_owned(), path, size, error.to_owned());
        assert_eq!(*line, expected, "{told:?}");
    }
    assert!(told[0]["result"].as_u64().unwrap() > 100, "{}", told[0]);
    assert!(!json!(told).to_string().contains(CANARY), "{told:?}");
}

/// R-M35: a watcher that names servers receives only their operations. The end of the run ends the
/// stream.
#[tokio::test]
async fn r_m35_a_watcher_can_pick_servers_and_gets_the_end_of_the_run() {
    let place = tempfile::tempdir().unwrap();
    let api = daemon(&place).await;
    let run = Begun::of(&api).await;
    let mut stream = api.watch(&format!("{}?alias=narthex", trace(&run)), ADMIN).await;
    assert_eq!(next(&mut stream).await["type"], "begin");
    run.list("/mcp/demo").await;
    run.list("/mcp/narthex").await;
    assert!(next(&mut stream).await["path"].as_str().unwrap().ends_with("-narthex/tools"));
    let ended = api.ask("DELETE", &format!("{HERE}/runs/{}", run.id)).send().await;
    assert_eq!(ended.status, StatusCode::NO_CONTENT, "{}", ended.text());
    assert_eq!(next(&mut stream).await, json!({ "type": "end", "status": "ended" }));
    assert!(stream.next().await.is_none());
    let late = api.as_whom(ADMIN, Method::GET, &trace(&run), "").await;
    assert!(late.problem(StatusCode::CONFLICT, "conflict").contains("has ended (ended)"));
    let unfit = format!("{}?alias=No", trace(&run));
    let unfit = api.as_whom(ADMIN, Method::GET, &unfit, "").await;
    unfit.problem(StatusCode::UNPROCESSABLE_ENTITY, "invalid");
}

/// S18: a run can watch only itself, and runs of other workspaces are absent.
#[tokio::test]
async fn s18_a_caller_cannot_watch_runs_that_the_caller_may_not_see() {
    let place = tempfile::tempdir().unwrap();
    let api = daemon(&place).await;
    let (own, other) = (Begun::of(&api).await, Begun::of(&api).await);
    let mut stream = api.watch(&trace(&own), &own.run.token).await;
    assert_eq!(next(&mut stream).await["run_id"], json!(own.id));
    let absent = format!("{HERE}/runs/{NOBODY}/trace");
    let absent = api.as_whom(&own.run.token, Method::GET, &absent, "").await;
    let foreign = api.as_whom(&own.run.token, Method::GET, &trace(&other), "").await;
    let told = foreign.problem(StatusCode::NOT_FOUND, "not_found");
    let shown = absent.problem(StatusCode::NOT_FOUND, "not_found");
    assert_eq!(told.replace(&other.id, "X"), shown.replace(NOBODY, "X"));
    other.list("/mcp/demo").await;
    own.list("/mcp/demo").await;
    let pid = next(&mut stream).await["path"].as_str().unwrap().to_owned();
    assert!(pid.starts_with("/mnt/mcp/1-demo"), "{pid}");

    let tenants = Tenants::with(&["team", "rival"]).await;
    tenants.api.send("POST", "/api/workspaces/team/agents", r#"{"name": "a"}"#).await.succeeded();
    let made = r#"{"agent_name": "a"}"#;
    let made = tenants.api.send("POST", "/api/workspaces/team/runs", made).await.succeeded();
    let run = made["run_id"].as_str().unwrap();
    let chief = tenants.token("rival", Role::Admin);
    for (workspace, what) in [("team", "workspace"), ("rival", "run")] {
        let path = format!("/api/workspaces/{workspace}/runs/{run}/trace");
        let hidden = tenants.send(chief, "GET", &path, "").await;
        let told = hidden.problem(StatusCode::NOT_FOUND, "not_found");
        assert!(told.contains(&format!("no {what}")), "{told}");
    }
    let top = tenants.send(chief, "GET", "/api/workspaces/team/top", "").await;
    top.problem(StatusCode::NOT_FOUND, "not_found");
    let author = tenants.token("team", Role::Author);
    let path = format!("/api/workspaces/team/runs/{run}/trace");
    let refused = tenants.send(author, "GET", &path, "").await;
    refused.problem(StatusCode::FORBIDDEN, "denied");
}

/// R-M35: operations on a run's files are reported, and so are the calls that they cause.
#[tokio::test]
async fn r_m35_file_operations_are_reported_with_the_calls_behind_them() {
    let place = tempfile::tempdir().unwrap();
    let api = daemon(&place).await;
    let run = Begun::of(&api).await;
    let files = api.as_whom(&run.run.token, Method::GET, "/vfs/mnt/mcp", "").await.succeeded();
    let file = format!("/mnt/mcp/{}-demo/tools", files["pid"]);
    let mut stream = api.watch(&trace(&run), ADMIN).await;
    assert_eq!(next(&mut stream).await["type"], "begin");
    let read = api.as_whom(&run.run.token, Method::GET, &format!("/vfs{file}?op=read"), "").await;
    assert_eq!(read.status, StatusCode::OK, "{}", read.text());
    let mut told = Vec::new();
    while told.last().is_none_or(|last: &Value| last["operation"] != "Close") {
        told.push(next(&mut stream).await);
    }
    let of = |source: &str| {
        let all = told.iter().filter(|one| one["source"] == source);
        all.map(|one| (one["operation"].as_str().unwrap(), one["is_inner"].as_bool().unwrap()))
            .collect::<Vec<_>>()
    };
    let done = ["Open", "Read", "Close"].map(|operation| (operation, false));
    assert_eq!(of("file"), done, "{told:?}");
    assert_eq!(of("call"), [("Read", true)], "{told:?}");
    assert!(told.iter().all(|one| one["path"] == *file), "{told:?}");
}

/// R-M35: a refusal by the folder itself is reported as a failure. The folder's own requests are
/// not reported as the run's operations.
#[tokio::test]
async fn r_m35_refusals_of_a_folder_are_reported_and_its_own_requests_are_not() {
    let place = tempfile::tempdir().unwrap();
    let api = daemon(&place).await;
    let run = Begun::of(&api).await;
    let ask = async |method, path: &str, body: &str| {
        api.as_whom(&run.run.token, method, &format!("/vfs/mnt/mcp{path}"), body).await
    };
    let mounts = ask(Method::GET, "?op=mounts", "").await.succeeded();
    let listed = ask(Method::GET, "?op=list", "").await.succeeded();
    let names = |listed: &Value| {
        let entries = listed["entries"].as_array().unwrap().iter();
        entries.map(|entry| entry["name"].clone()).collect::<Vec<_>>()
    };
    assert_eq!((names(&mounts), &mounts["pid"]), (names(&listed), &listed["pid"]));
    let file = format!("/{}-demo/tools/absent", mounts["pid"]);
    let mut stream = api.watch(&trace(&run), ADMIN).await;
    assert_eq!(next(&mut stream).await["type"], "begin");
    ask(Method::GET, "?op=mounts", "").await.succeeded();
    let report = r#"{"operation":"Write","code":"INVALID","size":7,"duration_us":90}"#;
    let told = format!("{file}?op=failed");
    assert_eq!(ask(Method::POST, &told, report).await.status, StatusCode::ACCEPTED);
    let line = next(&mut stream).await;
    assert_eq!(
        (&line["operation"], &line["error"]),
        (&json!("Write"), &json!("INVALID")),
        "{line}"
    );
    assert_eq!((&line["path"], &line["size"]), (&json!(format!("/mnt/mcp{file}")), &json!(7)));
    assert_eq!((&line["source"], &line["duration_us"]), (&json!("file"), &json!(90)));
    for body in ["[]", "{}", &report.replace("INVALID", "canary"), &report.replace("Write", "x")] {
        ask(Method::POST, &told, body).await.problem(StatusCode::BAD_REQUEST, "invalid");
    }
    let none = ask(Method::GET, &format!("{file}?op=mounts"), "").await;
    none.problem(StatusCode::BAD_REQUEST, "invalid");
    let elsewhere = api.as_whom(&run.run.token, Method::POST, "/vfs/etc?op=failed", report).await;
    assert_eq!(elsewhere.status, StatusCode::NOT_FOUND, "{}", elsewhere.text());
}

/// A run can be watched only over a stream, and a caller without one is refused. `top` is also
/// available as a document.
#[tokio::test]
async fn a_run_is_watched_only_over_an_event_stream() {
    let place = tempfile::tempdir().unwrap();
    let api = daemon(&place).await;
    let run = Begun::of(&api).await;
    let none = api.as_whom(ADMIN, Method::GET, &trace(&run), "").await;
    none.problem(StatusCode::NOT_ACCEPTABLE, "invalid");
    let once = api.as_whom(ADMIN, Method::GET, &format!("{HERE}/top"), "").await.succeeded();
    assert_eq!((once["runs"].as_array().unwrap().len(), &once["interval_ms"]), (1, &Value::Null));
}

/// `top`: runs with their activity; the first document has no counts yet.
#[tokio::test]
async fn top_counts_calls_and_errors_of_each_run() {
    let place = tempfile::tempdir().unwrap();
    let api = daemon(&place).await;
    let (busy, idle) = (Begun::of(&api).await, Begun::of(&api).await);
    let mut stream = api.watch(&format!("{HERE}/top"), ADMIN).await;
    let first = next(&mut stream).await;
    assert_eq!(first["interval_ms"], Value::Null);
    assert_eq!(first["runs"].as_array().unwrap().len(), 2, "{first}");
    assert_eq!(first["runs"][0]["calls"], Value::Null);
    for _ in 0..3 {
        busy.list("/mcp/demo").await;
    }
    busy.run.echo().await;
    let (mut calls, mut errors) = (0, 0);
    while calls < 4 {
        let document = next(&mut stream).await;
        let of = |run: &Begun<'_>| {
            let runs = document["runs"].as_array().unwrap();
            runs.iter().find(|one| one["run_id"] == json!(run.id)).unwrap().clone()
        };
        let (row, other) = (of(&busy), of(&idle));
        calls += row["calls"].as_u64().unwrap();
        errors += row["errors"].as_u64().unwrap();
        assert_eq!((&other["calls"], &other["p50_us"]), (&json!(0), &Value::Null));
        assert_eq!(row["p50_us"].is_null(), row["calls"] == 0, "{row}");
        assert_eq!(row["servers"][0]["alias"], "demo");
        assert_eq!((&row["servers"][0]["state"], &row["open_calls"]), (&json!("ready"), &json!(0)));
    }
    assert_eq!((calls, errors), (4, 1));
    let unfit = api.as_whom(ADMIN, Method::GET, &format!("{HERE}/top?interval=61"), "").await;
    unfit.problem(StatusCode::UNPROCESSABLE_ENTITY, "invalid");
}
