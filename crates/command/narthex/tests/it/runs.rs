//! Runs with servers of their own (E7), through the whole program and the command line.

use fs_err as fs;
use hyper::StatusCode;
use serde_json::{Value, json};

use crate::{
    support::{Place, fixture, fixture_entry},
    world::{ADMIN, Client, Reply, World, call, initialize, legacy, modern},
};

/// The fixture as a program that first notes its process id.
pub(crate) fn noting(pids: &std::path::Path) -> Value {
    let script = format!("echo $$ >> '{}'; exec '{}' --stdio", pids.display(), fixture().display());
    json!({ "transport": "stdio", "command": "sh", "args": ["-c", script] })
}

pub(crate) fn started(pids: &std::path::Path) -> Vec<u32> {
    let text = fs::read_to_string(pids).unwrap_or_default();
    text.lines().map(|line| line.parse().unwrap()).collect()
}

pub(crate) fn is_alive(pid: u32) -> bool {
    let state = fs::read_to_string(format!("/proc/{pid}/stat"));
    state.is_ok_and(|text| !text.contains(") Z "))
}

fn missing() -> Value {
    json!({ "transport": "stdio", "command": "no-such-program" })
}

/// The runs of the workspace `default`, which always exists.
pub(crate) const RUNS: &str = "/api/workspaces/default/runs";

pub(crate) struct Operator<'w>(pub(crate) &'w World);

impl Operator<'_> {
    pub(crate) async fn ask(&self, method: &str, path: &str, body: &str) -> Reply {
        let client = self.0.client_as(path, ADMIN);
        let headers: &[_] = if method == "POST" || body.is_empty() {
            &[]
        } else {
            &[("content-type", "application/json")]
        };
        client.whole(method, headers, body.to_owned()).await
    }

    pub(crate) async fn begin(&self, document: &Value) -> Value {
        self.begin_as(ADMIN, document).await
    }

    /// Begins a run as the holder of this token.
    pub(crate) async fn begin_as(&self, token: &str, document: &Value) -> Value {
        let client = self.0.client_as(RUNS, token);
        let reply = client.whole("POST", &[], document.to_string()).await;
        assert_eq!(reply.status, StatusCode::CREATED, "{reply:?}");
        assert_eq!(reply.headers["cache-control"], "no-store");
        let begun = reply.json();
        let place = reply.headers["location"].to_str().unwrap();
        assert_eq!(place, format!("{RUNS}/{}", begun["run_id"].as_str().unwrap()));
        begun
    }

    pub(crate) async fn get(&self, path: &str) -> Value {
        let reply = self.ask("GET", path, "").await;
        assert_eq!(reply.status, StatusCode::OK, "{reply:?}");
        reply.json()
    }

    pub(crate) async fn refused(&self, document: &str, status: StatusCode, kind: &str) -> Value {
        let reply = self.ask("POST", RUNS, document).await;
        assert_eq!(reply.status, status, "{document} {reply:?}");
        assert_eq!(reply.headers["content-type"], "application/problem+json");
        let problem: Value = serde_json::from_slice(&reply.body).unwrap();
        assert_eq!(problem["kind"], kind, "{problem}");
        problem
    }

    /// No run but the one of the process is there.
    pub(crate) async fn has_none(&self) {
        let runs = self.get(&format!("{RUNS}?status=running")).await;
        let runs = runs["items"].as_array().unwrap();
        assert_eq!(runs.len(), 1, "{runs:?}");
        assert_eq!(runs[0]["is_local"], true);
    }
}

fn names(reply: &Reply) -> Vec<String> {
    let answer = reply.json();
    let tools = answer["result"]["tools"].as_array().unwrap_or_else(|| panic!("{answer}"));
    tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

fn has(names: &[String], name: &str) -> bool {
    names.iter().any(|one| one == name)
}

fn ping() -> Value {
    modern(1, "tools/list", json!({}))
}

/// Checks that no other run sees the server `mine` of the run that this token opens: neither its
/// endpoint, nor its tools, nor its row.
async fn is_hidden_from_others(world: &World, token: &str) {
    let seen_by_others = names(&world.client("/mcp").modern(&ping()).await);
    assert!(!seen_by_others.iter().any(|name| name.contains("mine")), "{seen_by_others:?}");
    let rows = async |path: &str, token: &str| {
        let reply = world.client_as(path, token).whole("GET", &[], "").await;
        (reply.status, String::from_utf8(reply.body.to_vec()).unwrap())
    };
    for path in ["/api/servers", "/api/status", "/api/tools"] {
        assert!(rows(path, token).await.1.contains("\"mine\""), "{path}");
        for other in [world.token.as_str(), ADMIN] {
            let (status, text) = rows(path, other).await;
            assert!(status.is_success() && !text.contains("\"mine\""), "{path} {text}");
        }
    }
    assert_eq!(rows("/api/servers/mine", token).await.0, StatusCode::OK);
    assert_eq!(rows("/api/servers/mine", ADMIN).await.0, StatusCode::NOT_FOUND);
    for name in ["mine", "nope"] {
        let mut other = world.client(&format!("/mcp/{name}"));
        assert_eq!(other.modern(&ping()).await.status, StatusCode::NOT_FOUND);
    }
}

/// E7, D4, R-M30, R-M31, X-M5, R-M1, R-M2, R-M3: a run is created with a server of its own, used at
/// both endpoints by clients of both eras, seen by no other run, and ended. The answer has all that
/// its clients need.
#[tokio::test(flavor = "multi_thread")]
async fn e7_a_run_is_created_used_and_ended() {
    let world = World::operated(&json!({ "all": fixture_entry() })).await;
    let operator = Operator(&world);
    let servers = json!({ "mine": fixture_entry() });
    let begun = operator.begin(&json!({ "servers": servers, "tools": ["all", "later"] })).await;
    let token = begun["token"].as_str().unwrap();
    let base = format!("http://{}/mcp", world.address);
    assert_eq!(begun["endpoints"]["aggregated"], base);
    assert_eq!(begun["endpoints"]["servers"]["mine"], format!("{base}/mine"));
    assert_eq!(begun["endpoints"]["servers"]["all"], format!("{base}/all"));
    assert_eq!(begun["mcpServers"]["narthex"]["url"], base);
    let header = &begun["mcpServers"]["narthex"]["headers"]["Authorization"];
    assert_eq!(*header, "Bearer ${NARTHEX_TOKEN}");
    assert_eq!(begun.to_string().matches(token).count(), 1, "{begun}");
    assert_eq!((&begun["tools"], &begun["missing"]), (&json!(["all", "later"]), &json!(["later"])));
    let own: Vec<_> = begun["servers"].as_array().unwrap().iter().collect();
    assert_eq!(
        (own.len(), &own[0]["alias"], &own[0]["state"]),
        (1, &json!("mine"), &json!("ready"))
    );

    let mut both = world.client_as("/mcp", token);
    let seen = names(&both.modern(&ping()).await);
    assert!(has(&seen, "mcp__mine__echo") && has(&seen, "mcp__all__echo"), "{seen:?}");
    both.open_session(json!({})).await;
    assert_eq!(names(&both.post(&[], legacy(1, "tools/list", json!({})).to_string()).await), seen);
    let mut own = world.client_as("/mcp/mine", token);
    let said = call("echo", json!({"message": "x"}));
    let reply = own.modern(&modern(2, "tools/call", said.clone())).await;
    assert_eq!(reply.json()["result"]["content"][0]["text"], "x", "{reply:?}");
    own.open_session(json!({})).await;
    let reply = own.post(&[], legacy(2, "tools/call", said).to_string()).await;
    assert_eq!(reply.json()["result"]["content"][0]["text"], "x", "{reply:?}");

    is_hidden_from_others(&world, token).await;

    // E20: the tools that it sees are recorded.
    let id = begun["run_id"].as_str().unwrap();
    let shown = operator.get(&format!("{RUNS}/{id}")).await;
    let recorded = shown["tool_set"]["tools"].as_array().unwrap();
    let recorded: Vec<_> = recorded.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(recorded, seen);
    assert_eq!(shown["tool_set"]["count"], seen.len());
    assert_eq!(shown["tool_set"]["digest"], begun["tool_set"]["digest"]);
    assert_eq!((&shown["mcp_sessions"], shown.get("token")), (&json!(2), None));

    let mut stream = both.listen().await;
    let reply = operator.ask("DELETE", &format!("{RUNS}/{id}"), "").await;
    assert_eq!(reply.status, StatusCode::NO_CONTENT);
    while stream.next().await.is_some() {}
    for path in ["/mcp", "/mcp/mine", "/mcp/all", "/api/servers"] {
        let reply = world.client_as(path, token).whole("GET", &[], "").await;
        assert_eq!(reply.status, StatusCode::UNAUTHORIZED, "{path}");
    }
    assert_eq!(operator.get(&format!("{RUNS}/{id}")).await["status"], "ended");
    let reply = operator.ask("DELETE", &format!("{RUNS}/{id}"), "").await;
    assert_eq!(reply.status, StatusCode::CONFLICT);
    operator.has_none().await;
}

/// E20: the record of tools is in the audit file, for created runs and for the local one.
#[tokio::test(flavor = "multi_thread")]
async fn e20_the_audit_file_records_the_tools_of_a_run() {
    let world = World::operated(&json!({ "all": fixture_entry() })).await;
    let operator = Operator(&world);
    let begun = operator.begin(&json!({ "servers": { "mine": fixture_entry() } })).await;
    let local = operator.get(RUNS).await["items"][0]["run_id"].take();
    world.app.drain().await;
    let text = world.audit_text();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |run: &Value| {
        let is_it = |line: &&Value| line["kind"] == "session.mcp.tools_seen" && line["run"] == *run;
        lines.iter().filter(is_it).collect::<Vec<_>>()
    };
    let own = of(&begun["run_id"]);
    assert_eq!(own[0]["details"]["digest"], begun["tool_set"]["digest"], "{text}");
    let names = |line: &Value| {
        let tools = line["details"]["tools"].as_array().unwrap().iter();
        tools.map(|tool| tool["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert!(has(&names(own[0]), "mcp__mine__echo"));
    assert!(!has(&names(own[0]), "mcp__all__echo"), "a run that asks for none has none (E17)");
    let shared = of(&local);
    assert!(shared.iter().any(|line| has(&names(line), "mcp__all__echo")), "{text}");
    assert!(!shared.iter().any(|line| has(&names(line), "mcp__mine__echo")), "{text}");
    assert!(!text.contains(begun["token"].as_str().unwrap()));
}

/// D17, O99: where a server does not start, there is no run, and no process is left; every server
/// that failed is named. One that is optional may fail.
#[tokio::test(flavor = "multi_thread")]
async fn d17_a_run_that_cannot_start_leaves_nothing() {
    let world = World::operated(&json!({})).await;
    let operator = Operator(&world);
    let dir = tempfile::tempdir().unwrap();
    let pids = dir.path().join("pids");
    let servers = json!({ "good": noting(&pids), "bad": missing(), "worse": missing() });
    let document = json!({ "servers": servers }).to_string();
    let status = StatusCode::SERVICE_UNAVAILABLE;
    let problem = operator.refused(&document, status, "unavailable").await;
    let failed: Vec<_> =
        problem["errors"].as_array().unwrap().iter().map(|fault| &fault["server"]).collect();
    assert_eq!(failed, ["bad", "worse"], "{problem}");
    assert_eq!(problem["errors"][0]["kind"], "transport_error");
    let text = problem["detail"].as_str().unwrap();
    assert!(text.contains("`bad`") && text.contains("`worse`"), "{text}");
    for pid in started(&pids) {
        assert!(!is_alive(pid), "{pid} is left");
    }
    operator.has_none().await;

    let mut optional = missing();
    optional["optional"] = json!(true);
    let document = json!({ "servers": { "good": noting(&pids), "bad": optional } });
    let begun = operator.begin(&document).await;
    let states: Vec<_> = begun["servers"].as_array().unwrap().iter().collect();
    assert_eq!((&states[0]["alias"], &states[0]["state"]), (&json!("good"), &json!("ready")));
    assert_eq!((&states[1]["alias"], &states[1]["state"]), (&json!("bad"), &json!("error")));
    assert_eq!(states[1]["error"]["kind"], "transport_error");
    let mut client = world.client_as("/mcp/bad", begun["token"].as_str().unwrap());
    assert_eq!(client.modern(&ping()).await.status, StatusCode::NOT_FOUND);
    let last = *started(&pids).last().unwrap();
    assert!(is_alive(last));
    let path = format!("{RUNS}/{}", begun["run_id"].as_str().unwrap());
    assert_eq!(operator.ask("DELETE", &path, "").await.status, StatusCode::NO_CONTENT);
    let gone = async {
        while is_alive(last) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(crate::world::SOON, gone).await.expect("a process is left");
}

/// D9: all faults of a document are reported at once, and only operators create runs.
#[tokio::test(flavor = "multi_thread")]
async fn d9_all_faults_of_a_run_document_are_reported_together() {
    let world = World::operated(&json!({ "all": fixture_entry() })).await;
    let operator = Operator(&world);
    let conflict = json!({ "servers": { "all": fixture_entry(), "other": fixture_entry() } });
    let problem = operator.refused(&conflict.to_string(), StatusCode::CONFLICT, "conflict").await;
    assert_eq!(problem["errors"].as_array().unwrap().len(), 1);
    assert_eq!(
        (&problem["errors"][0]["server"], &problem["errors"][0]["kind"]),
        (&json!("all"), &json!("conflict"))
    );
    let mut off = fixture_entry();
    off["disabled"] = json!(true);
    let mut unsure = fixture_entry();
    unsure["optional"] = json!("maybe");
    let faulty = json!({ "servers": {
        "all": fixture_entry(), "Bad Name": fixture_entry(), "none": {}, "off": off,
        "unsure": unsure, "env": { "transport": "stdio", "command": "${env:NOT_SET_ANYWHERE_7}" },
    } });
    let problem = operator.refused(&faulty.to_string(), StatusCode::BAD_REQUEST, "invalid").await;
    let mut named: Vec<_> = problem["errors"]
        .as_array()
        .unwrap()
        .iter()
        .map(|fault| fault["server"].as_str().unwrap())
        .collect();
    named.sort_unstable();
    assert_eq!(named, ["Bad Name", "all", "env", "none", "off", "unsure"], "{problem}");
    for document in [
        "",
        "7",
        "[]",
        "{}",
        "{",
        r#"{"servers": 7}"#,
        r#"{"servers": {}}"#,
        r#"{"tools": []}"#,
        r#"{"servers": {"a": 7}}"#,
        r#"{"tools": "all"}"#,
        r#"{"tools": ["Not A Name"]}"#,
        r#"{"tools": ["all"], "policy": 7}"#,
        r#"{"servers": {"a": {}, "a": {}}}"#,
        r#"{"servers": {"a": {"command": "x", "command": "y"}}}"#,
    ] {
        operator.refused(document, StatusCode::BAD_REQUEST, "invalid").await;
    }
    for path in ["nosuch", "run_0a1b2c3d4e5f", "AAAAAAAAAAAA"].map(|id| format!("{RUNS}/{id}")) {
        for method in ["GET", "DELETE"] {
            assert_eq!(operator.ask(method, &path, "").await.status, StatusCode::NOT_FOUND);
        }
    }
    let local = operator.get(RUNS).await["items"][0]["run_id"].take();
    let path = format!("{RUNS}/{}", local.as_str().unwrap());
    assert_eq!(operator.ask("DELETE", &path, "").await.status, StatusCode::CONFLICT);
    for (method, path) in [("GET", RUNS), ("POST", RUNS), ("DELETE", &path)] {
        let reply = world.client(path).whole(method, &[], r#"{"tools": ["all"]}"#).await;
        assert_eq!(reply.status, StatusCode::FORBIDDEN, "{method} {path}");
    }
    let of_agent = r#"{"agent_name": "reader"}"#;
    let reply = world.client(RUNS).whole("POST", &[], of_agent).await;
    assert_eq!(reply.status, StatusCode::FORBIDDEN, "the local run has no agent");
    operator.has_none().await;
    let listed = world.client("/mcp").modern(&ping()).await;
    assert!(has(&names(&listed), "mcp__all__echo"));
}

/// E7: two runs may have different servers of one alias; each reaches its own, also with sessions
/// that may be asked something.
#[tokio::test(flavor = "multi_thread")]
async fn e7_two_runs_have_different_servers_of_one_alias() {
    let world = World::operated(&json!({})).await;
    let operator = Operator(&world);
    let dir = tempfile::tempdir().unwrap();
    let mut clients: Vec<(Client, std::path::PathBuf)> = Vec::new();
    for name in ["one", "two"] {
        let pids = dir.path().join(name);
        let begun = operator.begin(&json!({ "servers": { "mine": noting(&pids) } })).await;
        let mut client = world.client_as("/mcp/mine", begun["token"].as_str().unwrap());
        let reply = client.post(&[], initialize(json!({ "sampling": {} })).to_string()).await;
        client.session = Some(reply.headers["mcp-session-id"].to_str().unwrap().to_owned());
        clients.push((client, pids));
    }
    for (index, (client, pids)) in clients.iter_mut().enumerate() {
        let text = format!("run {index}");
        let said = legacy(1, "tools/call", call("echo", json!({ "message": text })));
        let reply = client.post(&[], said.to_string()).await;
        assert_eq!(reply.json()["result"]["content"][0]["text"], text, "{reply:?}");
        // The shared link of the run, and the one of the session.
        assert_eq!(started(pids).len(), 2);
    }
    let sessions: Vec<_> = clients.iter().map(|(client, _)| client.session.clone()).collect();
    clients[0].0.session.clone_from(&sessions[1]);
    let reply = clients[0].0.post(&[], legacy(2, "tools/list", json!({})).to_string()).await;
    assert_eq!(reply.status, StatusCode::NOT_FOUND, "the session of another run");
    world.app.drain().await;
    for (_, pids) in clients {
        assert!(!started(&pids).into_iter().any(is_alive));
    }
}

/// E7: the command line creates, shows and ends runs, and names a remedy where it cannot.
#[test]
fn e7_the_command_line_creates_and_ends_runs() {
    let place = Place::new();
    place.run(["runs", "list"]).failed(1, &["no daemon runs", "narthex up"]);
    let document = json!({ "servers": { "mine": fixture_entry() } });
    place.write("task.json", &document.to_string());
    let _daemon = place.up();
    let begun = place.run(["runs", "create", "task.json", "--tools", "fixture", "--json"]);
    let begun = begun.succeeded().json()["data"].take();
    let (id, token) = (begun["run_id"].as_str().unwrap(), begun["token"].as_str().unwrap());
    assert!(token.starts_with("nxt_"), "{begun}");
    assert_eq!(begun["tools"], json!(["fixture"]));

    let done = place.feed(&["runs", "create", "-"], std::slice::from_ref(&document)).succeeded();
    assert!(done.stdout.contains("\"Authorization\": \"Bearer nxt_"), "{done:?}");
    assert!(done.stdout.contains("narthex runs end "), "{done:?}");
    let quiet = place.feed(&["runs", "create", "-", "--quiet"], &[document]).succeeded();
    let words: Vec<_> = quiet.stdout.split_whitespace().collect();
    assert!(words.len() == 2 && words[1].starts_with("nxt_"), "{quiet:?}");

    let listed = place.run(["runs", "list", "--quiet"]).succeeded().stdout;
    assert_eq!(listed.lines().count(), 4, "{listed}");
    let table = place.run(["runs", "list"]).succeeded().stdout;
    assert!(table.contains("(local)") && table.contains("mine"), "{table}");
    let shown = place.run(["runs", "show", id]).succeeded().stdout;
    assert!(shown.contains("mcp__mine__echo") && shown.contains("sha256:"), "{shown}");
    let shown = place.run(["runs", "show", id, "--json"]).succeeded().json();
    assert_eq!(shown["data"]["tool_set"]["digest"], begun["tool_set"]["digest"]);
    for done in [&table, &shown.to_string()] {
        assert!(!done.contains(token));
    }
    place.run(["runs", "end", id]).succeeded();
    place.run(["runs", "end", id]).failed(1, &["conflict", id, "ended already"]);
    let nosuch = "run_0a1b2c3d4e5f";
    place.run(["runs", "end", nosuch]).failed(1, &["not_found", nosuch, "narthex runs list"]);
    place.run(["runs", "end", words[0], "--quiet"]).succeeded();
    let local = listed.lines().next().unwrap();
    place.run(["runs", "end", local]).failed(1, &["conflict", "daemon stop"]);

    let near = place.run(["runs", "create", "--tools", "fixtur", "--json"]).succeeded();
    let told = "warning: there is no shared server `fixtur` yet; did you mean `fixture`?";
    assert!(near.stderr.contains(told), "{near:?}");
    place.run(["runs", "end", near.json()["data"]["run_id"].as_str().unwrap()]).succeeded();
    place.run(["runs", "create"]).failed(2, &["--tools"]);
    place.run(["runs", "create", "absent.json"]).failed(1, &["absent.json"]);
    place.write("bad.json", &json!({ "servers": { "x": missing() } }).to_string());
    place.run(["runs", "create", "bad.json"]).failed(1, &["unavailable", "`x`", "no-such-program"]);
    let failed = place.run(["runs", "create", "bad.json", "--json"]);
    assert_eq!(failed.code, Some(1));
    assert_eq!(failed.json()["error"]["details"]["errors"][0]["server"], "x");
}
