//! Tests of session events through the whole door: their order, their end, resuming, and who may
//! read them.

use http::StatusCode;
use narthex_model::Role;
use serde_json::{Value, json};

use super::{
    grants::gated,
    tenants::{self, Tenants},
    world::Api,
};
use crate::world::{ADMIN, Answer, Stream, message};

const HERE: &str = "/api/workspaces/default";

/// A new run with a session, as its creator sees it.
async fn begun(api: &Api) -> Value {
    let asked = json!({ "tools": ["one"] }).to_string();
    api.send("POST", &format!("{HERE}/runs"), asked).await.succeeded()
}

fn text<'v>(value: &'v Value, name: &str) -> &'v str {
    value[name].as_str().unwrap()
}

/// A path below a run's session.
fn under(run: &Value, rest: &str) -> String {
    format!("{HERE}/sessions/{}/{rest}", text(run, "session_id"))
}

impl Api {
    async fn say(&self, run: &Value, body: Value) -> Answer {
        self.send("POST", &under(run, "messages"), body.to_string()).await
    }

    async fn stream(&self, path: &str, token: &str, last: Option<&str>) -> Stream {
        let request = self.world.request(http::Method::GET, path);
        let request = request.header("authorization", &format!("Bearer {token}"));
        let request = request.header("accept", "text/event-stream");
        let request = match last {
            Some(last) => request.header("last-event-id", last),
            None => request,
        };
        Stream::of(request.open().await)
    }

    async fn decide(&self, id: &str, how: &str, body: &str) {
        let path = format!("{HERE}/grant-requests/{id}/{how}");
        self.send("POST", &path, body.to_owned()).await.succeeded();
    }

    async fn end_session(&self, run: &Value) {
        let path = format!("{HERE}/sessions/{}", text(run, "session_id"));
        let ended = self.ask("DELETE", &path).send().await;
        assert_eq!(ended.status, StatusCode::NO_CONTENT, "{}", ended.text());
    }
}

/// The id and the content of the next event.
async fn next(stream: &mut Stream) -> Option<(Option<String>, Value)> {
    let event = stream.next().await?;
    let id = event.id.as_ref().map(|id| String::from_utf8(id.to_vec()).unwrap());
    Some((id, message(&event)))
}

/// All remaining events of a stream, by id and type.
async fn rest(stream: &mut Stream) -> Vec<(String, String)> {
    let mut all = Vec::new();
    while let Some((id, event)) = next(stream).await {
        all.push((id.unwrap_or_default(), text(&event, "type").to_owned()));
    }
    all
}

fn typed(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected.iter().map(|(id, kind)| ((*id).to_owned(), (*kind).to_owned())).collect()
}

/// X-E83, X-E98, X-E99: acts of the platform in a session are reported in order, with the id of
/// each decided request. A stream resumes where it was disconnected, and ends with the session.
#[tokio::test]
async fn x_e83_events_of_a_session_are_reported_in_order() {
    let place = tempfile::tempdir().unwrap();
    let api = gated(&place).await;
    let run = begun(&api).await;
    let denied = api.asked_by(&run, "first").await;
    api.decide(&denied, "deny", r#"{"reason": "not now"}"#).await;
    let granted = api.asked_by(&run, "second").await;
    api.decide(&granted, "approve", "{}").await;
    api.end_session(&run).await;
    let page = api.get(&under(&run, "events")).await;
    let types = [
        "session.created",
        "agent.permission_request",
        "permission.denied",
        "agent.permission_request",
        "permission.granted",
        "session.ended",
    ];
    let items = page["items"].as_array().unwrap();
    let told: Vec<_> = items.iter().map(|event| text(event, "type")).collect();
    assert_eq!(told, types);
    let sequences: Vec<_> = items.iter().map(|event| event["sequence"].as_u64().unwrap()).collect();
    assert_eq!(sequences, [1, 2, 3, 4, 5, 6]);
    assert_eq!(
        (&page["oldest"], &page["last"], &page["next"]),
        (&json!(1), &json!(6), &Value::Null)
    );
    assert_eq!((&items[0]["run_id"], &items[0]["payload"]["pid"]), (&run["run_id"], &json!(1)));
    let by = json!({ "kind": "local_admin", "id": "admin" });
    assert_eq!(items[5]["payload"], json!({ "how": "ended", "by": by }));
    assert_eq!(items[1]["payload"]["justification"], "first");
    let decided = |at: usize| &items[at]["payload"];
    // The agent knows its requests by the ids that it chose.
    assert!((1..5).all(|at| decided(at)["request_id"] == "r1"), "{items:?}");
    assert_eq!(
        (&decided(2)["grant_request_id"], &decided(2)["reason"]),
        (&json!(denied), &json!("not now"))
    );
    assert_eq!(
        (&decided(4)["grant_request_id"], &decided(4)["status"]),
        (&json!(granted), &json!("approved"))
    );
    assert!(text(decided(4), "grant_id").starts_with("gra_"));
    let second = api.get(&under(&run, "events?after=2&limit=2")).await;
    assert_eq!((&second["items"], &second["next"]), (&json!(items[2..4]), &json!("4")));
    let some = api.get(&under(&run, "events?type=permission.granted,permission.denied")).await;
    assert_eq!(some["items"], json!([items[2], items[4]]));
    let mut whole = api.stream(&under(&run, "events"), ADMIN, None).await;
    for (at, item) in items.iter().enumerate() {
        assert_eq!(next(&mut whole).await, Some((Some((at + 1).to_string()), item.clone())));
    }
    assert_eq!(rest(&mut whole).await, typed(&[("", "stream.end")]));
    let mut cut = api.stream(&under(&run, "events?after=1"), ADMIN, Some("4")).await;
    let end = [("5", "permission.granted"), ("6", "session.ended"), ("", "stream.end")];
    assert_eq!(rest(&mut cut).await, typed(&end));
}

/// X-E93, X-E99: a person's message reaches each follower once under its id, with its author. The
/// audit records that it was sent, but not its text.
#[tokio::test]
async fn x_e93_a_message_is_delivered_once_and_names_its_author() {
    let place = tempfile::tempdir().unwrap();
    let api = gated(&place).await;
    let run = begun(&api).await;
    let mut stream = api.stream(&under(&run, "events"), ADMIN, None).await;
    assert_eq!(next(&mut stream).await.unwrap().1["type"], "session.created");
    let body = json!({ "text": "The second\none.", "request_id": "q1", "message_id": "m1" });
    let sent = api.say(&run, body.clone()).await;
    assert_eq!(sent.status, StatusCode::CREATED, "{}", sent.text());
    let event = sent.json();
    let by = json!({ "kind": "local_admin", "id": "admin" });
    // The turn belongs to the human at this machine.
    let said = json!({ "text": "The second\none.", "request_id": "q1", "by": by,
                       "user": "prn_0000000000000000" });
    assert_eq!((&event["payload"], &event["message_id"]), (&said, &json!("m1")));
    assert_eq!(next(&mut stream).await, Some((Some("2".to_owned()), event.clone())));
    let page = api.get(sent.headers["location"].to_str().unwrap()).await;
    assert_eq!(page["items"], json!([event]));
    assert_eq!(api.say(&run, body).await.json(), event);
    let other = api.say(&run, json!({ "text": "Another", "message_id": "m1" })).await;
    other.problem(StatusCode::CONFLICT, "conflict");
    let faulty = json!({ "text": " ", "message_id": "", "who": "me" });
    let problem = api.say(&run, faulty).await;
    problem.problem(StatusCode::UNPROCESSABLE_ENTITY, "invalid");
    assert_eq!(problem.json()["errors"].as_array().unwrap().len(), 3, "{}", problem.text());
    let longer = json!({ "text": "x".repeat(64 * 1024 + 1) });
    api.say(&run, longer).await.problem(StatusCode::UNPROCESSABLE_ENTITY, "invalid");
    api.say(&run, json!({ "text": "x" })).await.succeeded();
    assert_eq!(next(&mut stream).await.unwrap().0.as_deref(), Some("3"));
    let audit = api.get(&format!("{HERE}/audit?kind=session.message")).await;
    let noted = audit["items"].as_array().unwrap();
    assert!(noted.iter().all(|one| one["kind"] == "session.message.sent"), "{audit}");
    assert!(noted.len() >= 3 && !audit.to_string().contains("The second"), "{audit}");
    api.end_session(&run).await;
    assert_eq!(rest(&mut stream).await, typed(&[("4", "session.ended"), ("", "stream.end")]));
    let late = api.say(&run, json!({ "text": "Still there?" })).await;
    assert!(late.problem(StatusCode::CONFLICT, "conflict").contains("has ended"));
    let nobody = format!("{HERE}/sessions/ses_000000000000/messages");
    let unknown = api.send("POST", &nobody, r#"{"text": "x"}"#).await;
    unknown.problem(StatusCode::NOT_FOUND, "not_found");
}

/// S18: a run can read and follow only its own session. Other sessions of its workspace are absent
/// for it, and its stream ends with the run.
#[tokio::test]
async fn s18_a_run_sees_only_events_of_its_own_session() {
    let place = tempfile::tempdir().unwrap();
    let api = gated(&place).await;
    let (own, other) = (begun(&api).await, begun(&api).await);
    let token = text(&own, "token");
    let as_run = async |method: &str, path: &str, body: &str| {
        let request = api.world.request(method.parse().unwrap(), path);
        let request = request.header("authorization", &format!("Bearer {token}"));
        let request = request.header("content-type", "application/json");
        request.body(crate::world::whole(body.to_owned())).send().await
    };
    let page = as_run("GET", &under(&own, "events"), "").await.succeeded();
    assert_eq!(page["items"].as_array().unwrap().len(), 1);
    let foreign = as_run("GET", &under(&other, "events"), "").await;
    foreign.problem(StatusCode::NOT_FOUND, "not_found");
    let absent = as_run("GET", &format!("{HERE}/sessions/ses_000000000000/events"), "").await;
    let told = foreign.text().replace(text(&other, "session_id"), "ses_000000000000");
    assert_eq!((foreign.status, told.as_str()), (absent.status, absent.text()));
    for session in [&own, &other] {
        let said = as_run("POST", &under(session, "messages"), r#"{"text": "I am a human"}"#).await;
        said.problem(StatusCode::FORBIDDEN, "denied");
    }
    as_run("GET", &format!("{HERE}/events"), "").await.problem(StatusCode::FORBIDDEN, "denied");
    let elsewhere = under(&own, "events").replace("/default/", "/team/");
    as_run("GET", &elsewhere, "").await.problem(StatusCode::NOT_FOUND, "not_found");
    let mut stream = api.stream(&under(&own, "events"), token, None).await;
    assert_eq!(next(&mut stream).await.unwrap().1["type"], "session.created");
    api.say(&own, json!({ "text": "Go on" })).await.succeeded();
    assert_eq!(next(&mut stream).await.unwrap().1["payload"]["text"], "Go on");
    let path = format!("{HERE}/runs/{}", text(&own, "run_id"));
    assert_eq!(api.ask("DELETE", &path).send().await.status, StatusCode::NO_CONTENT);
    assert_eq!(next(&mut stream).await, None);
    assert_eq!(as_run("GET", &under(&own, "events"), "").await.status, StatusCode::UNAUTHORIZED);
}

/// Another daemon on the store, as after a kill, has every event in order, and continues the
/// stream.
#[tokio::test]
async fn another_daemon_continues_a_stream_at_the_last_event() {
    let tenants = Tenants::with(&["team"]).await;
    let at = |rest: &str| format!("/api/workspaces/team/{rest}");
    tenants.api.send("POST", &at("agents"), r#"{"name": "reader"}"#).await.succeeded();
    let asked = r#"{"agent_name": "reader"}"#;
    let run = tenants.api.send("POST", &at("runs"), asked).await.succeeded();
    let session = text(&run, "session_id").to_owned();
    let (events, messages) =
        (at(&format!("sessions/{session}/events")), at(&format!("sessions/{session}/messages")));
    let runner = tenants.token("team", Role::Runner);
    for number in 0..3 {
        let body = json!({ "text": number.to_string() }).to_string();
        tenants.send(runner, "POST", &messages, &body).await.succeeded();
    }
    let before = tenants.send(runner, "GET", &events, "").await.succeeded();
    let other = tenants::api(&tenants.place).await;
    assert_eq!(other.get(&events).await, before);
    let mut stream = other.stream(&events, ADMIN, Some("2")).await;
    let items = before["items"].as_array().unwrap();
    for item in &items[2..] {
        assert_eq!(next(&mut stream).await.unwrap().1, *item);
    }
    // The first daemon stores an event, and the second one finds it.
    tenants.send(runner, "POST", &messages, r#"{"text": "from afar"}"#).await.succeeded();
    let (id, event) = next(&mut stream).await.unwrap();
    assert_eq!((id.as_deref(), &event["payload"]["text"]), (Some("5"), &json!("from afar")));
    let asked = json!({ "type": "resume_session", "session_id": session }).to_string();
    let resumed = other.send("POST", &at("runs"), asked).await.succeeded();
    let (id, event) = next(&mut stream).await.unwrap();
    assert_eq!((id.as_deref(), &event["type"]), (Some("6"), &json!("session.resumed")));
    assert_eq!(event["run_id"], resumed["run_id"]);
}

/// A dashboard receives requests, sessions and decisions from now on, and resumes by their ids.
#[tokio::test]
async fn a_workspace_can_be_watched() {
    let place = tempfile::tempdir().unwrap();
    let api = gated(&place).await;
    begun(&api).await;
    let path = format!("{HERE}/events");
    let mut live = api.stream(&path, ADMIN, None).await;
    let begin = |id: &str| Some((Some(id.to_owned()), json!({ "type": "stream.begin" })));
    assert_eq!(next(&mut live).await, begin("1"));
    let run = begun(&api).await;
    api.say(&run, json!({ "text": "is for the agent" })).await.succeeded();
    let id = api.asked_by(&run, "please").await;
    api.decide(&id, "approve", "{}").await;
    api.end_session(&run).await;
    let told = [
        ("2", "session.created"),
        ("4", "agent.permission_request"),
        ("5", "permission.granted"),
        ("6", "session.ended"),
    ];
    for (id, kind) in told {
        let (found, event) = next(&mut live).await.unwrap();
        assert_eq!((found.as_deref(), text(&event, "type")), (Some(id), kind));
        assert_eq!(event["session_id"], run["session_id"]);
    }
    let mut resumed = api.stream(&path, ADMIN, Some("4")).await;
    assert_eq!(next(&mut resumed).await, begin("4"));
    assert_eq!(next(&mut resumed).await.unwrap().0.as_deref(), Some("5"));
    let mut all = api.stream(&format!("{path}?after=0&type=user.message"), ADMIN, None).await;
    assert_eq!(next(&mut all).await, begin("0"));
    assert_eq!(next(&mut all).await.unwrap().1["payload"]["text"], "is for the agent");
}

#[tokio::test]
async fn wrong_queries_and_event_ids_are_refused() {
    let place = tempfile::tempdir().unwrap();
    let api = gated(&place).await;
    let run = begun(&api).await;
    for query in ["after=x", "limit=0", "limit=5001", "type=agent.nothing", "session=1"] {
        let asked = api.ask("GET", &under(&run, &format!("events?{query}"))).send().await;
        asked.problem(StatusCode::UNPROCESSABLE_ENTITY, "invalid");
    }
    let request = api.ask("GET", &under(&run, "events")).header("accept", "text/event-stream");
    let wrong = request.header("last-event-id", "x").send().await;
    wrong.problem(StatusCode::BAD_REQUEST, "invalid");
    let nobody = format!("{HERE}/sessions/ses_000000000000/events");
    let request = api.ask("GET", &nobody).header("accept", "text/event-stream");
    request.send().await.problem(StatusCode::NOT_FOUND, "not_found");
}

/// The examples of `docs/reference/events.md` have the members of real requests and events.
#[tokio::test]
async fn the_examples_of_the_events_page_match_real_events() {
    let page =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/reference/events.md");
    let page = fs_err::read_to_string(page).unwrap();
    let blocks: Vec<Value> = page
        .split("```json\n")
        .skip(1)
        .map(|block| serde_json::from_str(block.split("```").next().unwrap()).unwrap())
        .collect();
    let [event, body] = &blocks[..] else { panic!("{blocks:?}") };
    let place = tempfile::tempdir().unwrap();
    let api = gated(&place).await;
    let run = begun(&api).await;
    let told = api.say(&run, body.clone()).await.succeeded();
    let names = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&told), names(event));
    assert_eq!(names(&told["payload"]), names(&event["payload"]));
    for kind in narthex_events::EventKind::ALL {
        assert!(page.contains(&format!("`{}`", kind.as_str())), "{kind:?}");
    }
}

/// X-E98: a position after the end of a stream is refused, since a reader would miss the events up
/// to it. The end itself is a valid position.
#[tokio::test]
async fn x_e98_a_position_after_the_last_event_is_refused() {
    let place = tempfile::tempdir().unwrap();
    let api = gated(&place).await;
    let run = begun(&api).await;
    let of_session = under(&run, "events");
    let of_workspace = format!("{HERE}/events");
    for path in [&of_session, &of_workspace] {
        for (query, last) in [("?after=2", None), ("", Some("2")), ("", Some("99999999999"))] {
            let request = api.ask("GET", &format!("{path}{query}"));
            let request = request.header("accept", "text/event-stream");
            let request = match last {
                Some(last) => request.header("last-event-id", last),
                None => request,
            };
            let told = request.send().await.problem(StatusCode::BAD_REQUEST, "invalid");
            assert!(told.contains("the last is 1") && told.contains("from 0"), "{told}");
        }
    }
    let mut stream = api.stream(&of_session, ADMIN, Some("1")).await;
    api.say(&run, json!({ "text": "hello" })).await.succeeded();
    let (id, event) = next(&mut stream).await.unwrap();
    assert_eq!((id.as_deref(), &event["type"]), (Some("2"), &json!("user.message")));
}
