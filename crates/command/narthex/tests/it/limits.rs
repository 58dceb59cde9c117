//! Limits of traffic (O100) through the whole program: over every door, for agents and workspaces
//! of the catalog, and over a restart.

use hyper::StatusCode;
use serde_json::{Value, json};

use crate::{
    runs::Operator,
    support::{Place, fixture, fixture_entry},
    world::{Reply, World, call, legacy, modern},
};

const HOME: &str = "/api/workspaces/default";

fn say() -> Value {
    call("mcp__notes__echo", json!({ "message": "x" }))
}

fn is_done(answer: &Value) -> bool {
    answer["result"]["content"][0]["text"] == "x"
}

/// The owner and the kind of the limit that refused a call (D16).
fn refused(answer: &Value) -> (String, String) {
    let error = &answer["result"]["structuredContent"]["error"];
    assert_eq!(error["kind"], "limit_exceeded", "{answer}");
    assert!(error["details"]["retry_after_ms"].is_u64(), "{answer}");
    let text = |name: &str| error["details"][name].as_str().unwrap().to_owned();
    (text("scope"), text("limit"))
}

fn of(scope: &str, limit: &str) -> (String, String) {
    (scope.to_owned(), limit.to_owned())
}

impl Operator<'_> {
    async fn stores(&self, path: &str, body: &Value) -> Reply {
        self.ask("PUT", &format!("{HOME}/{path}"), &body.to_string()).await
    }

    async fn has_stored(&self, path: &str, body: &Value) {
        let reply = self.stores(path, body).await;
        assert!(reply.status.is_success(), "{reply:?}");
    }

    /// A server and an agent that has it, with these limits.
    async fn has_limited_reader(&self, of_server: &Value, of_agent: &Value) {
        let server = json!({
            "type": "stdio", "command": fixture(), "args": ["--stdio"], "limits": of_server,
        });
        self.has_stored("mcp-servers/notes", &server).await;
        let agent = json!({ "mcpServers": { "notes": { "ref": "notes" } }, "limits": of_agent });
        self.has_stored("agents/reader", &agent).await;
    }

    async fn limited_reader(&self) -> String {
        let asked = json!({ "type": "start_session", "agent_name": "reader" });
        self.begin(&asked).await["token"].as_str().unwrap().to_owned()
    }

    async fn says(&self, token: &str) -> Value {
        self.0.client_as("/mcp", token).modern(&modern(1, "tools/call", say())).await.json()
    }

    /// Today's calls and the limits of one thing.
    async fn used(&self, kind: &str, name: &str) -> Option<(u64, Value)> {
        let usage = self.get(&format!("{HOME}/usage")).await;
        let items = usage["items"].as_array().unwrap();
        let item = items.iter().find(|one| one["kind"] == kind && one["name"] == name)?;
        Some((item["calls_today"].as_u64().unwrap(), item["limits"].clone()))
    }
}

/// O100: a server of the local configuration is limited over HTTP in both eras and over the socket,
/// by one count; a request that is no tool call is answered by 429 with `Retry-After`.
#[tokio::test(flavor = "multi_thread")]
async fn o100_calls_over_http_and_the_socket_share_one_count() {
    let mut entry = fixture_entry();
    entry["limits"] = json!({ "calls_per_day": 3 });
    let world = World::operated(&json!({ "notes": entry })).await;
    let mut http = world.client("/mcp");
    assert!(is_done(&http.modern(&modern(1, "tools/call", say())).await.json()));
    let mut session = world.legacy("/mcp", json!({})).await;
    let message = legacy(2, "tools/call", say()).to_string();
    assert!(is_done(&session.post(&[], message.clone()).await.json()));
    let mut socket = world.socket("mcp").await;
    assert!(is_done(&socket.ask(&modern(3, "tools/call", say())).await));

    let daily = of("server", "daily");
    let reply = http.modern(&modern(4, "tools/call", say())).await;
    assert_eq!((reply.status, refused(&reply.json())), (StatusCode::OK, daily.clone()));
    assert_eq!(refused(&session.post(&[], message).await.json()), daily);
    assert_eq!(refused(&socket.ask(&modern(5, "tools/call", say())).await), daily);
    let read = modern(6, "resources/read", json!({ "uri": "test://static-text" }));
    let reply = world.client("/mcp/notes").modern(&read).await;
    assert_eq!(reply.status, StatusCode::TOO_MANY_REQUESTS, "{reply:?}");
    let wait: u64 = reply.headers["retry-after"].to_str().unwrap().parse().unwrap();
    assert!((40_000..=43_200).contains(&wait), "{wait} s until midnight");
    assert_eq!(reply.json()["error"]["data"]["details"]["limit"], "daily");

    let operator = Operator(&world);
    let limits = json!({ "calls_per_day": 3 });
    assert_eq!(operator.used("local_server", "notes").await, Some((3, limits)));
    assert_eq!(operator.used("workspace", "default").await, Some((3, json!({}))));
    let records = world.audit().await;
    let is_limited = |one: &&Value| one["outcome"] == "limit_exceeded" && one["server"] == "notes";
    assert_eq!(records.iter().filter(is_limited).count(), 4, "{records:#?}");
}

/// O100: the same over standard input and output.
#[test]
fn o100_calls_over_stdio_are_limited() {
    let mut entry = fixture_entry();
    entry["limits"] = json!({ "calls_per_minute": 1, "burst": 1 });
    let place = Place::with(&json!({ "notes": entry }));
    let _daemon = place.up();
    let calls = [modern(1, "tools/call", say()), modern(2, "tools/call", say())];
    let done = place.feed(&["connect"], &calls).succeeded();
    let answers = done.lines();
    assert_eq!(answers.len(), 2, "{done:?}");
    let (done, limited): (Vec<_>, Vec<_>) = answers.iter().partition(|answer| is_done(answer));
    assert_eq!((done.len(), refused(limited[0])), (1, of("server", "rate")));
}

/// O100: a call by files is one, also where its arguments are words.
#[test]
fn o100_a_call_by_files_counts_once() {
    let mut entry = fixture_entry();
    entry["limits"] = json!({ "calls_per_minute": 1, "burst": 1 });
    let place = Place::with(&json!({ "notes": entry }));
    let _daemon = place.up();
    let call = ["vfs", "call", "0-notes/tools/echo", "message=hello"];
    let done = place.run(call).succeeded().json();
    assert_eq!(done["content"][0]["text"], "hello");
    place.run(call).failed(1, &["[RESOURCE_EXHAUSTED]"]);
}

/// O100: limits of an agent apply to all of its runs, change during runs, and outlive the daemon
/// together with the counts. So do limits of a workspace.
#[tokio::test(flavor = "multi_thread")]
async fn o100_quotas_outlive_a_restart_and_change_under_runs() {
    let world = World::operated(&json!({})).await;
    let operator = Operator(&world);
    operator
        .has_limited_reader(&json!({ "calls_per_day": 100 }), &json!({ "calls_per_day": 2 }))
        .await;
    let (one, other) = (operator.limited_reader().await, operator.limited_reader().await);
    assert!(is_done(&operator.says(&one).await));
    assert!(is_done(&operator.says(&other).await));
    assert_eq!(refused(&operator.says(&one).await), of("agent", "daily"));
    let dir = world.stop().await;

    let world = World::operated_in(dir).await;
    let operator = Operator(&world);
    assert_eq!(refused(&operator.says(&other).await), of("agent", "daily"));
    operator
        .has_stored(
            "agents/reader",
            &json!({
                "mcpServers": { "notes": { "ref": "notes" } }, "limits": { "calls_per_day": 3 },
            }),
        )
        .await;
    assert!(is_done(&operator.says(&one).await), "the run that was there has the new limit");
    assert_eq!(refused(&operator.says(&other).await), of("agent", "daily"));
    let limits = json!({ "calls_per_day": 3 });
    assert_eq!(operator.used("agent", "reader").await, Some((3, limits)));
    let limits = json!({ "calls_per_day": 100 });
    assert_eq!(operator.used("server", "notes").await, Some((3, limits)));

    // The same if the agent comes in a document with other objects.
    let reader = json!({ "name": "reader", "mcpServers": { "notes": { "ref": "notes" } } });
    let import = json!({ "version": 1, "agents": [reader] }).to_string();
    let imported = operator.ask("POST", &format!("{HOME}/import"), &import).await;
    assert!(imported.status.is_success(), "{imported:?}");
    operator.has_stored("limits", &json!({ "calls_per_day": 4 })).await;
    assert!(is_done(&operator.says(&one).await));
    assert_eq!(refused(&operator.says(&one).await), of("workspace", "daily"));
    let dir = world.stop().await;
    let world = World::operated_in(dir).await;
    let operator = Operator(&world);
    assert_eq!(operator.get(&format!("{HOME}/limits")).await, json!({ "calls_per_day": 4 }));
    assert_eq!(refused(&operator.says(&one).await), of("workspace", "daily"));
    world.app.drain().await;
}

/// O100, D9: limits that are wrong are refused when they are stored, with every fault and its
/// place, and nothing is stored; those of a workspace that is not there are not there.
#[tokio::test(flavor = "multi_thread")]
async fn o100_wrong_limits_are_refused_when_stored() {
    let world = World::operated(&json!({})).await;
    let operator = Operator(&world);
    let wrong = json!({ "calls_per_second": 1, "calls_per_minute": 1, "concurrent_calls": 0 });
    let server = json!({ "type": "http", "url": "https://example.com/mcp", "limits": wrong });
    for (path, body, prefix) in [
        ("mcp-servers/notes", server, "limits."),
        ("agents/reader", json!({ "limits": wrong }), "limits."),
        ("limits", wrong.clone(), ""),
    ] {
        let reply = operator.stores(path, &body).await;
        assert_eq!(reply.status, StatusCode::UNPROCESSABLE_ENTITY, "{path} {reply:?}");
        let problem: Value = serde_json::from_slice(&reply.body).unwrap();
        let errors = problem["errors"].as_array().unwrap();
        let fields: Vec<_> = errors.iter().map(|one| one["field"].as_str().unwrap()).collect();
        let expected = ["concurrent_calls", "calls_per_minute"].map(|key| format!("{prefix}{key}"));
        assert_eq!(fields, expected, "{path}");
    }
    assert_eq!(operator.get(&format!("{HOME}/limits")).await, json!({}));
    assert_eq!(operator.used("agent", "reader").await, None);
    for path in ["limits", "usage"] {
        let reply = operator.ask("GET", &format!("/api/workspaces/other/{path}"), "").await;
        assert_eq!(reply.status, StatusCode::NOT_FOUND, "{reply:?}");
        let token = world.token.clone();
        let client = world.client_as(&format!("{HOME}/{path}"), &token);
        assert_eq!(client.whole("GET", &[], "").await.status, StatusCode::FORBIDDEN, "{path}");
    }
    world.app.drain().await;
}

/// O100: limits on the command line.
#[test]
fn o100_limits_on_the_command_line() {
    let place = Place::with(&json!({ "notes": fixture_entry() }));
    let _daemon = place.up();
    let words = ["limits", "set", "--calls-per-minute", "600", "--burst", "5"];
    let done = place.run(words).succeeded();
    assert_eq!(done.stdout.trim(), "600 a minute in bursts of 5");
    let limits = place.run(["limits", "get", "--json"]).succeeded().json()["data"].clone();
    assert_eq!(limits, json!({ "calls_per_minute": 600, "burst": 5 }));
    let done = place.feed(&["connect"], &[modern(1, "tools/call", say())]).succeeded();
    assert!(is_done(&done.lines()[0]), "{done:?}");
    let usage = place.run(["usage", "--json"]).succeeded().json();
    let items = usage["data"]["items"].as_array().unwrap();
    let workspace = items.iter().find(|one| one["kind"] == "workspace").unwrap();
    assert_eq!((&workspace["name"], &workspace["limits"]), (&json!("default"), &limits));
    let shown = place.run(["usage"]).succeeded().stdout;
    assert!(shown.contains("600 a minute in bursts of 5"), "{shown}");
    let done = place.run(["limits", "set"]).succeeded();
    assert_eq!(done.stdout.trim(), "nothing is limited");
    place.run(["limits", "set", "--burst", "5"]).failed(1, &["burst", "no"]);
    place.run(["limits", "get", "--workspace", "other"]).failed(1, &["other"]);
}

/// O34: commands read all pages of a list.
#[test]
fn o34_commands_read_every_page() {
    let entry = json!({ "transport": "http", "url": "http://127.0.0.1:1/", "disabled": true,
        "limits": { "calls_per_day": 3 } });
    let names: Vec<_> = (0..103).map(|number| format!("s{number:03}")).collect();
    let servers: serde_json::Map<_, _> =
        names.iter().map(|name| (name.clone(), entry.clone())).collect();
    let place = Place::with(&Value::Object(servers));
    let _daemon = place.up();
    let named = |list: &Value, member: &str| -> Vec<String> {
        let list = list.as_array().unwrap().iter();
        list.map(|one| one[member].as_str().unwrap().to_owned()).collect()
    };
    let json = |words: &[&str]| place.run(words).succeeded().json();
    assert_eq!(named(&json(&["status", "--json"])["data"]["servers"], "alias"), names);
    assert_eq!(named(&json(&["mcp", "list", "--json"])["data"]["mounts"], "name"), names);
    let usage = json(&["usage", "--json"])["data"].clone();
    let expected = names.iter().map(String::as_str).chain(["default"]);
    assert_eq!(named(&usage["items"], "name"), expected.collect::<Vec<_>>());
    assert!(usage["resets_in_ms"].is_u64(), "{usage}");
    place.run(["mcp", "reconnect", "nope"]).failed(1, &["nope", "s000", "s102"]);
}
