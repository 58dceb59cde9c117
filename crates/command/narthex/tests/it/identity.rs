//! Identity: tokens that go nowhere, sessions and tasks of others, calls that never cross.

use std::process::Stdio;

use narthex_testkit::fixture::{Eras, Options, Running};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::{
    recorder::{Era, Recorder, Reply},
    support::Place,
    template,
    world::{Client, Reply as Answer, World, call, http_entry, initialize, legacy, modern},
};

async fn fixture(eras: Eras) -> Running {
    Running::http(Options { eras, ..Options::default() }).await.unwrap()
}

/// S16, S27: the client's token reaches no server, log, record or answer, whatever happens.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s16_the_token_of_a_client_reaches_no_server_log_or_record() {
    let servers = [Recorder::start(Era::Legacy).await, Recorder::start(Era::Modern).await];
    let entries = json!({"old": http_entry(&servers[0].url), "new": http_entry(&servers[1].url),
        "gone": http_entry("http://127.0.0.1:9/mcp")});
    let place = Place::with(&entries);
    let log =
        std::fs::File::options().create_new(true).append(true).open(place.path("log")).unwrap();
    let words = ["up", "--config", "mcp.json", "--listen", "127.0.0.1:0"];
    let mut daemon = place.start_with(&words, |command| {
        command.env("NARTHEX_LOG", "trace").stderr(Stdio::from(log));
    });
    let listening = daemon.event("listening");
    daemon.event("ready");
    let token = fs_err::read_to_string(place.path("data/client.token")).unwrap().trim().to_owned();
    let url: http::Uri = listening["url"].as_str().unwrap().parse().unwrap();
    let address = url.authority().unwrap().as_str().parse().unwrap();
    let done = format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{"content":[]}}}}"#, template::ID);
    let mut answers = Vec::new();
    for reply in
        [Reply::Json(done), Reply::Status(401), Reply::Status(500), Reply::Json("{".into())]
    {
        servers.iter().for_each(|server| server.answer_with(reply.clone()));
        for path in ["/mcp/old", "/mcp/new", "/mcp", "/mcp/gone"] {
            let mut client = Client::new(address, path, &token);
            answers.extend(everything(&mut client, &token).await);
        }
    }
    daemon.signal("TERM");
    daemon.event("stopped");
    daemon.wait();
    let log = fs_err::read_to_string(place.path("log")).unwrap();
    assert!(log.contains("TRACE") || log.contains("DEBUG"), "{log}");
    let mut places = vec![("log", log)];
    places.push(("audit", fs_err::read_to_string(place.path("data/audit/audit.jsonl")).unwrap()));
    places.extend(answers.iter().map(|answer| ("answer", format!("{answer:?}"))));
    for server in &servers {
        let all = server.all();
        assert!(all.len() > 8, "{}", all.len());
        places
            .extend(all.iter().map(|got| ("server", format!("{:?} {:?}", got.headers, got.body))));
    }
    for (name, text) in places {
        assert!(!text.contains(&token), "the token is in the {name}: {text}");
    }
}

/// Calls of every kind, with the token also where some clients put it by mistake.
async fn everything(client: &mut Client, token: &str) -> Vec<Answer> {
    let mut answers = Vec::new();
    for name in ["t", "mcp__old__t", "mcp__new__t", "h"] {
        let request = modern(1, "tools/call", call(name, json!({})));
        let mut headers = crate::world::modern_headers("tools/call", Some(name));
        headers.extend([("x-api-key", token), ("cookie", token), ("mcp-param-other", token)]);
        headers.push(("proxy-authorization", token));
        answers.push(client.post(&headers, request.to_string()).await);
        answers.push(client.post(&[], "{").await);
    }
    let opened = client.post(&[], initialize(json!({})).to_string()).await;
    client.session = opened.headers.get("mcp-session-id").map(|id| id.to_str().unwrap().to_owned());
    answers.push(opened);
    for name in ["t", "mcp__old__t", "mcp__new__t"] {
        let request = legacy(1, "tools/call", call(name, json!({})));
        answers.push(client.post(&[("x-token", token)], request.to_string()).await);
    }
    answers
}

/// Compares a stranger's answer for an existing object with the answer for an absent one.
fn assert_same(foreign: &Answer, absent: &Answer, what: &str) {
    assert_eq!(foreign.status, absent.status, "{what}");
    assert_eq!(foreign.body, absent.body, "{what}");
    let names = |answer: &Answer| answer.headers.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(foreign), names(absent), "{what}");
}

/// Asks in another run's session, and in a session that never existed.
async fn is_absent(stranger: impl Fn() -> Client, method: &str, session: &str) {
    let body = match method {
        "POST" => legacy(1, "tools/call", call("echo", json!({}))).to_string(),
        _ => String::new(),
    };
    let never = format!("n0-{}", "A".repeat(session.len() - 3));
    let foreign = stranger().in_session(session).whole(method, &[], body.clone()).await;
    let absent = stranger().in_session(&never).whole(method, &[], body).await;
    assert_eq!(foreign.status, 404, "{method}");
    assert_same(&foreign, &absent, method);
}

/// S18, S19: a session of another run, or of another endpoint, is answered like a session that
/// never existed.
#[tokio::test]
async fn s19_foreign_sessions_are_answered_like_unknown_sessions() {
    let fixture = fixture(Eras::Legacy).await;
    let world = World::over(&json!({ "one": http_entry(&fixture.url) })).await;
    let other = world.other_run(&["one"]);
    for (path, elsewhere) in [("/mcp/one", "/mcp"), ("/mcp", "/mcp/one")] {
        let session = world.legacy(path, json!({})).await.session.unwrap();
        let calls = fixture.fixture.counts().calls;
        for (path, token) in [(path, &other), (elsewhere, &other), (elsewhere, &world.token)] {
            for method in ["POST", "GET", "DELETE"] {
                is_absent(|| world.client_as(path, token), method, &session).await;
            }
        }
        assert_eq!(fixture.fixture.counts().calls, calls);
        let mut own = world.client(path).in_session(&session);
        let list = own.post(&[], legacy(2, "tools/list", json!({})).to_string()).await;
        assert!(list.json()["result"]["tools"].is_array(), "{list:?}");
    }
    world.app.drain().await;
}

/// S19: events of another session, also of another run's, are answered like events that never
/// existed.
#[tokio::test]
async fn s19_streams_of_foreign_sessions_are_not_replayed() {
    let fixture = fixture(Eras::Legacy).await;
    let world = World::over(&json!({ "one": http_entry(&fixture.url) })).await;
    let mut owner = world.legacy("/mcp/one", json!({})).await;
    let params = json!({"name": "progress", "arguments": {"count": 3},
        "_meta": {"progressToken": "secret-token"}});
    let reply = owner.post(&[], legacy(1, "tools/call", params).to_string()).await;
    assert_eq!(reply.messages.len(), 4);
    let text = String::from_utf8(reply.body.to_vec()).unwrap();
    let ids: Vec<_> = text.lines().filter_map(|line| line.strip_prefix("id: ")).collect();
    assert!(ids.len() >= 4, "{text}");
    let mut never = ids[0].to_owned();
    let changed = if never.pop() == Some('0') { '1' } else { '0' };
    let never = format!("{}{changed}", never.replace(|c: char| c.is_ascii_lowercase(), "q"));
    let stranger = world.other_run(&["one"]);
    let mut strange = world.client_as("/mcp/one", &stranger);
    strange.open_session(json!({})).await;
    for mut client in [world.legacy("/mcp/one", json!({})).await, strange] {
        let absent = client.whole("GET", &[("last-event-id", &never)], String::new()).await;
        assert!(absent.status.is_client_error(), "{absent:?}");
        for id in &ids {
            let foreign = client.whole("GET", &[("last-event-id", id)], String::new()).await;
            assert_same(&foreign, &absent, id);
        }
        // And with the owner's session instead of one's own.
        client.session = owner.session.clone().filter(|_| !client.has_token(&world.token));
        if client.session.is_some() {
            let foreign = client.whole("GET", &[("last-event-id", ids[0])], String::new()).await;
            assert_eq!(foreign.status, 404);
        }
    }
    let mut stream = owner.open("GET", &[("last-event-id", ids[0])], "").await;
    assert!(stream.next().await.unwrap().contains("secret-token"));
    world.app.drain().await;
}

/// S18: tasks of another run are answered like tasks that never existed.
#[tokio::test]
async fn s18_foreign_tasks_are_answered_like_unknown_tasks() {
    let fixture = fixture(Eras::Modern).await;
    let world = World::over(&json!({ "one": http_entry(&fixture.url) })).await;
    let other = world.other_run(&["one"]);
    for (path, prefix) in [("/mcp/one", ""), ("/mcp", "mcp__one__")] {
        let with_tasks = json!({"extensions": {"io.modelcontextprotocol/tasks": {}}});
        let ask = |token: String, method: &'static str, params: Value| {
            let mut request = modern(1, method, params);
            request["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] =
                with_tasks.clone();
            let mut client = world.client_as(path, &token);
            async move { client.modern(&request).await }
        };
        let arguments = json!({"seconds": 600, "label": "mine"});
        let params = call(&format!("{prefix}slow_compute"), arguments);
        let started = ask(world.token.clone(), "tools/call", params).await.json();
        let id =
            started["result"]["taskId"].as_str().or(started["result"]["task"]["taskId"].as_str());
        let id = id.unwrap_or_else(|| panic!("{started}"));
        let never = format!("{}x", &id[..id.len() - 1]);
        for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
            let params = |id: &str| json!({"taskId": id, "inputResponses": {}});
            let foreign = ask(other.clone(), method, params(id)).await;
            let absent = ask(other.clone(), method, params(&never)).await;
            assert_eq!(foreign.code(), Some(-32602), "{path} {method} {foreign:?}");
            let shown = String::from_utf8(foreign.body.to_vec()).unwrap().replace(id, &never);
            assert_eq!(shown.as_bytes(), absent.body, "{path} {method}");
        }
        let own = ask(world.token.clone(), "tasks/get", json!({ "taskId": id })).await.json();
        assert!(own["result"].is_object(), "{own}");
        ask(world.token.clone(), "tasks/cancel", json!({ "taskId": id })).await;
    }
    world.app.drain().await;
}

const CLIENTS: u64 = 64;
const CALLS: u64 = 200;

/// Calls in turn, under ids that every other client uses too; each answer must be the own one.
async fn call_often(mut client: Client, name: &'static str, number: u64, is_legacy: bool) {
    for id in 0..CALLS {
        let mine = format!("{number}/{id}");
        let params = call(name, json!({ "message": mine }));
        let answer = match is_legacy {
            true => client.post(&[], legacy(id, "tools/call", params).to_string()).await,
            false => client.modern(&modern(id, "tools/call", params)).await,
        };
        let answer = answer.json();
        assert_eq!(answer["id"], id, "{answer}");
        assert_eq!(answer["result"]["content"][0]["text"], mine, "{answer}");
    }
}

async fn never_cross(eras: Eras, is_legacy: bool) {
    let fixture = fixture(eras).await;
    let world = World::over(&json!({ "one": http_entry(&fixture.url) })).await;
    let mut clients = JoinSet::new();
    for number in 0..CLIENTS {
        let (path, name) =
            if number % 2 == 0 { ("/mcp/one", "echo") } else { ("/mcp", "mcp__one__echo") };
        let mut client = world.client(path);
        if is_legacy {
            client.open_session(json!({})).await;
        }
        clients.spawn(call_often(client, name, number, is_legacy));
    }
    while let Some(ended) = clients.join_next().await {
        ended.unwrap();
    }
    assert_eq!(fixture.fixture.counts().calls, CLIENTS * CALLS);
    let records = world.audit().await;
    let calls = records.iter().filter(|record| record["method"] == "tools/call");
    assert_eq!(calls.count() as u64, CLIENTS * CALLS);
}

/// S19: 64 legacy clients with equal ids, half of them at each kind of endpoint.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s19_calls_of_legacy_clients_with_equal_ids_never_cross() {
    never_cross(Eras::Legacy, true).await;
}

/// S19: the same for modern clients.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s19_calls_of_modern_clients_with_equal_ids_never_cross() {
    never_cross(Eras::Modern, false).await;
}
