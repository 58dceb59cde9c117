//! Tests of messages to sessions: their runs read them, wait for them and acknowledge them, and
//! expired ones are dropped (X-E93).

use std::time::{Duration, SystemTime};

use http::{Method, StatusCode};
use narthex_model::{SessionId, Timestamp, WorkspaceId};
use narthex_store::{EventsOf, Store};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{
    built_in::{Run, with_tools},
    world::Api,
};
use crate::world::{Answer, initialize, tool_call, whole};

const HERE: &str = "/api/workspaces/default";

/// A daemon with `lead`, whose agent may start `reader`.
async fn daemon(place: &TempDir) -> (Api, Store) {
    let store = Store::open(&place.path().join("store.db")).await.unwrap();
    let keys = place.path().join("master.key");
    let api = Api::with_all(&json!({}), store.clone(), &keys).await;
    for (name, agent) in [
        ("reader", json!({})),
        ("lead", json!({ "agent_type": "orchestrator", "spawnable_agents": ["reader"] })),
    ] {
        let path = format!("{HERE}/agents/{name}");
        api.send("PUT", &path, with_tools(agent)).await.succeeded();
    }
    (api, store)
}

fn text(value: &Value, name: &str) -> String {
    value[name].as_str().unwrap_or_else(|| panic!("no {name} in {value}")).to_owned()
}

fn in_seconds(seconds: u64) -> String {
    Timestamp::new(SystemTime::now() + Duration::from_secs(seconds)).to_string()
}

impl Run<'_> {
    /// Sends a person's message to the run's agent.
    async fn hears(&self, body: Value) -> Answer {
        let path = format!("{HERE}/sessions/{}/messages", self.session);
        self.api.send("POST", &path, body.to_string()).await
    }

    async fn reads(&self, arguments: Value) -> Value {
        self.called("read_messages", arguments).await
    }

    async fn acknowledges(&self, session: &str, token: &str, body: &str) -> Answer {
        let path = format!("{HERE}/sessions/{session}/messages/acknowledgement");
        let request = self.api.world.request(Method::POST, &path);
        let request = request.header("authorization", &format!("Bearer {token}"));
        let request = request.header("content-type", "application/json");
        request.body(whole(body.to_owned())).send().await
    }

    fn stream_of(&self) -> EventsOf {
        let session = SessionId::parse(&self.session).unwrap();
        EventsOf { workspace: WorkspaceId::default(), session }
    }
}

/// Waits until messages are acknowledged up to this number.
async fn acknowledged(store: &Store, of: &EventsOf, seq: u64) {
    while store.inboxes().count(of, SystemTime::now()).await.unwrap().acknowledged != seq {
        tokio::task::yield_now().await;
    }
}

fn sequences(read: &Value) -> Vec<u64> {
    let messages = read["messages"].as_array().unwrap().iter();
    messages.map(|one| one["sequence"].as_u64().unwrap()).collect()
}

fn names(value: &Value) -> Vec<String> {
    let mut names: Vec<_> = value.as_object().unwrap().keys().cloned().collect();
    names.sort_unstable();
    names
}

/// X-E93: `read_messages` returns the messages that were not acknowledged, the oldest first, with
/// their author. It returns a message again until it is acknowledged, by the tool or over the API.
#[tokio::test]
async fn x_e93_messages_are_read_until_they_are_acknowledged() {
    let place = tempfile::tempdir().unwrap();
    let (api, _) = daemon(&place).await;
    let run = Run::of(&api, "lead").await;
    let none = json!({ "ok": true, "messages": [], "next_seq": 0, "left_count": 0 });
    assert_eq!(run.reads(json!({})).await, none);
    let soon = in_seconds(3600);
    let first = json!({ "text": "one", "request_id": "q1", "message_id": "m1",
                        "expires_at": soon });
    run.hears(first.clone()).await.succeeded();
    run.called("emit_status", json!({ "status": "waiting" })).await;
    run.hears(json!({ "text": "two" })).await.succeeded();
    let read = run.reads(json!({ "limit": 1 })).await;
    assert_eq!((&read["left_count"], &read["next_seq"]), (&json!(1), &json!(2)), "{read}");
    // Clients that show their model only the text give it the same content.
    let result = run.call("read_messages", json!({ "limit": 1 })).await;
    let told: Value = serde_json::from_str(result["content"][1]["text"].as_str().unwrap()).unwrap();
    assert_eq!((&told, &result["structuredContent"]), (&read, &read));
    let message = &read["messages"][0];
    assert!(message["timestamp"].as_str().unwrap().ends_with('Z'), "{message}");
    let expected = json!({ "sequence": 2, "timestamp": message["timestamp"], "text": "one",
        "message_id": "m1", "user": "prn_0000000000000000", "request_id": "q1",
        "expires_at": soon });
    assert_eq!(*message, expected);
    let read = run.reads(json!({})).await;
    assert_eq!(sequences(&read), [2, 4]);
    assert_eq!(names(&read["messages"][1]), ["sequence", "text", "timestamp", "user"]);
    let read = run.reads(json!({ "acknowledge": 2 })).await;
    assert_eq!((sequences(&read), &read["left_count"]), (vec![4], &json!(0)));
    // A repeated message is the same message, which is acknowledged already.
    let again = run.hears(json!({ "text": "one", "request_id": "q1", "message_id": "m1" })).await;
    assert_eq!(again.succeeded()["sequence"], 2);
    let done = run.acknowledges(&run.session, &run.token, r#"{"sequence": 4}"#).await.succeeded();
    assert_eq!(done, json!({ "acknowledged": 4, "unread": 0 }));
    let read = run.reads(json!({})).await;
    assert_eq!((sequences(&read), &read["next_seq"]), (vec![], &json!(4)));
    let error = run.refused("read_messages", json!({ "acknowledge": 99 })).await;
    assert_eq!(
        (&error["kind"], &error["details"]["code"]),
        (&json!("invalid_arguments"), &json!("invalid"))
    );
    for wrong in [json!({ "wait_seconds": 61 }), json!({ "limit": 0 }), json!({ "acknowledge": 0 })]
    {
        let error = run.refused("read_messages", wrong).await;
        assert_eq!(error["details"]["code"], "invalid_arguments", "{error}");
    }
}

/// S18, X-E93: only a run can acknowledge messages: those of its own session, with its own token.
#[tokio::test]
async fn s18_a_run_acknowledges_only_messages_of_its_own_session() {
    let place = tempfile::tempdir().unwrap();
    let (api, _) = daemon(&place).await;
    let (run, other) = (Run::of(&api, "lead").await, Run::of(&api, "lead").await);
    other.hears(json!({ "text": "one" })).await.succeeded();
    let body = r#"{"sequence": 2}"#;
    let foreign = run.acknowledges(&other.session, &run.token, body).await;
    foreign.problem(StatusCode::NOT_FOUND, "not_found");
    let absent = run.acknowledges("ses_000000000000", &run.token, body).await;
    let told = foreign.text().replace(&other.session, "ses_000000000000");
    assert_eq!(told, absent.text());
    let operator = run.acknowledges(&other.session, crate::world::ADMIN, body).await;
    operator.problem(StatusCode::FORBIDDEN, "denied");
    assert_eq!(sequences(&other.reads(json!({})).await), [2]);
    let own = async |body: &str| other.acknowledges(&other.session, &other.token, body).await;
    for (body, field) in [("{}", "sequence"), (r#"{"sequence": "2"}"#, "sequence")] {
        let refused = own(body).await;
        refused.problem(StatusCode::BAD_REQUEST, "invalid");
        assert!(refused.text().contains(field), "{}", refused.text());
    }
    let refused = own(r#"{"sequence": 3}"#).await;
    let told = refused.problem(StatusCode::BAD_REQUEST, "invalid");
    assert!(told.contains("last event is 2"), "{told}");
    own(body).await.succeeded();
}

/// X-E93: a waiting call ends with the first message, with its client, with its run, or after the
/// time that it names.
#[tokio::test]
async fn x_e93_a_waiting_call_ends_with_the_first_message_or_its_run() {
    let place = tempfile::tempdir().unwrap();
    let (api, store) = daemon(&place).await;
    let run = Run::of(&api, "lead").await;
    let of = run.stream_of();
    let wait = |seq: u64| json!({ "acknowledge": seq, "wait_seconds": 60 });
    let (read, _) = tokio::join!(run.reads(wait(1)), async {
        acknowledged(&store, &of, 1).await;
        run.hears(json!({ "text": "one" })).await.succeeded()
    });
    assert_eq!(sequences(&read), [2]);
    let read = run.reads(json!({ "acknowledge": 2, "wait_seconds": 1 })).await;
    assert_eq!(sequences(&read), [0_u64; 0]);
    // A modern client disconnects: its call is cancelled, and acknowledges nothing more.
    run.hears(json!({ "text": "two" })).await.succeeded();
    tokio::select! {
        _ = run.reads(wait(3)) => panic!("there is no message"),
        () = acknowledged(&store, &of, 3) => {}
    }
    let end = async {
        run.hears(json!({ "text": "three" })).await.succeeded();
        let read = run.reads(json!({ "acknowledge": 4 })).await;
        assert_eq!(sequences(&read), [0_u64; 0]);
        run.called("emit_status", json!({ "status": "waiting" })).await;
        tokio::join!(run.call("read_messages", wait(5)), async {
            acknowledged(&store, &of, 5).await;
            let path = format!("{HERE}/sessions/{}", run.session);
            let ended = api.ask("DELETE", &path).send().await;
            assert_eq!(ended.status, StatusCode::NO_CONTENT);
        })
        .0
    };
    let ended = end.await;
    assert_eq!(ended["structuredContent"]["messages"], json!([]), "{ended}");
}

/// X-E93: of two waiting calls in a session, the newer one gets new messages. The older one is
/// answered with the messages that existed.
#[tokio::test]
async fn x_e93_a_newer_waiting_call_ends_the_older_waiting_call() {
    let place = tempfile::tempdir().unwrap();
    let (api, _store) = daemon(&place).await;
    let run = Run::of(&api, "lead").await;
    let wait = || Box::pin(run.reads(json!({ "wait_seconds": 60 })));
    let (mut one, mut other) = (wait(), wait());
    let (read, left) = tokio::select! {
        read = &mut one => (read, other),
        read = &mut other => (read, one),
    };
    assert_eq!(sequences(&read), [0_u64; 0]);
    let (read, _) =
        tokio::join!(left, async { run.hears(json!({ "text": "one" })).await.succeeded() });
    assert_eq!(sequences(&read), [2]);
}

/// X-E93: a client of an older revision cancels a waiting call.
#[tokio::test]
async fn a_legacy_client_cancels_a_call_that_waits_for_messages() {
    let place = tempfile::tempdir().unwrap();
    let (api, store) = daemon(&place).await;
    let run = Run::of(&api, "lead").await;
    let of = run.stream_of();
    let bearer = format!("Bearer {}", run.token);
    let begin = api.world.post("/mcp/narthex", initialize("2025-11-25"));
    let begun = begin.header("authorization", &bearer).send().await;
    let session = begun.headers["mcp-session-id"].to_str().unwrap().to_owned();
    let send = async |body: Value| {
        let request = api.world.legacy("/mcp/narthex", &session, &body);
        request.header("authorization", &bearer).send().await
    };
    let call = tool_call(7, "read_messages", json!({ "acknowledge": 1, "wait_seconds": 60 }));
    let (answer, told) = tokio::join!(send(call), async {
        acknowledged(&store, &of, 1).await;
        let params = json!({ "requestId": 7, "reason": "enough" });
        send(json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params }))
            .await
    });
    assert_eq!(told.status, StatusCode::ACCEPTED);
    assert!(!answer.text().contains("structuredContent"), "{}", answer.text());
}

/// X-E93: an agent sets the time until which its message may be read. A child does not get an
/// expired message, and the sender learns of that.
#[tokio::test]
async fn x_e93_agents_set_an_expiry_for_messages() {
    let place = tempfile::tempdir().unwrap();
    let (api, _) = daemon(&place).await;
    let lead = Run::of(&api, "lead").await;
    let asked = json!({ "child_agent_id": "reader" });
    let begun = lead.called("spawn_session", asked).await["session"].clone();
    let path = format!("{HERE}/runs/{}/claim", text(&begun, "run_id"));
    let claim = api.send("POST", &path, "{}").await.succeeded();
    let token = text(&claim["run"], "token");
    let child = Run { api: &api, token, session: text(&begun, "id") };
    assert_eq!(sequences(&child.reads(json!({})).await), [0_u64; 0]);
    let to = |words: &str, end: String| {
        json!({ "child_session_id": child.session, "text": words, "message_id": words,
                "expires_at": end })
    };
    let (soon, late) = (in_seconds(20), in_seconds(3600));
    let sent = lead.called("inject_message", to("soon", soon)).await["sequence"].clone();
    lead.called("inject_message", to("late", late.clone())).await;
    for wrong in [in_seconds(0), "tomorrow".to_owned()] {
        let error = lead.refused("inject_message", to("wrong", wrong.clone())).await;
        assert_eq!(error["details"]["errors"][0]["field"], "expires_at", "{error}");
        let asked = json!({ "summary": "x", "expires_at": &wrong });
        let error = child.refused("message_caller", asked).await;
        assert_eq!(error["details"]["errors"][0]["field"], "expires_at", "{error}");
        let refused = child.hears(json!({ "text": "x", "expires_at": &wrong })).await;
        refused.problem(StatusCode::UNPROCESSABLE_ENTITY, "invalid");
        assert!(refused.text().contains("expires_at"), "{}", refused.text());
    }
    let read = child.reads(json!({})).await;
    let shown = &read["messages"][1];
    assert_eq!(
        (&shown["from_session_id"], &shown["expires_at"]),
        (&json!(lead.session), &json!(late))
    );
    // This user has the turn by the message, as the event shows.
    assert_eq!(shown["user"], "prn_0000000000000000", "{shown}");
    let events = api.control.events().unwrap();
    events.deliver_due(SystemTime::now() + Duration::from_secs(21)).await.unwrap();
    let all = lead.events().await;
    let heard: Vec<_> =
        all.iter().filter(|one| one["type"] == "session.message_undelivered").collect();
    assert_eq!(heard.len(), 1, "{all:?}");
    let payload = &heard[0]["payload"];
    assert_eq!((&payload["reason"], &payload["sequence"]), (&json!("expired"), &sent));
    assert_eq!(
        (&payload["message_id"], &payload["session_id"]),
        (&json!("soon"), &json!(child.session))
    );
    child.called("message_caller", json!({ "summary": "42", "expires_at": late })).await;
    let read = lead.reads(json!({})).await;
    assert_eq!(read["messages"][0]["from_session_id"], child.session, "{read}");
    assert_eq!(read["messages"][0]["needs_response"], false);
}

/// X-M56, X-E83: the decision on a request is a message with a number, until it is acknowledged. A
/// waiting call receives it too.
#[tokio::test]
async fn x_m56_a_decision_is_a_message() {
    let place = tempfile::tempdir().unwrap();
    let (api, _) = daemon(&place).await;
    let run = Run::of(&api, "lead").await;
    let ask = async |id: &str| {
        let wanted = json!({ "request_id": id, "grant_type": "tool_scope", "scope": "once",
            "details": { "scope": format!("demo.{id}") }, "justification": "to write" });
        let asked = run.called("request_grant", wanted).await;
        text(&asked, "grant_request_id")
    };
    let decide = async |id: &str, how: &str, body: Value| {
        let path = format!("{HERE}/grant-requests/{id}/{how}");
        api.send("POST", &path, body.to_string()).await.succeeded();
    };
    let first = ask("one").await;
    let waiting = run.reads(json!({ "wait_seconds": 60 }));
    let (read, ()) =
        tokio::join!(waiting, decide(&first, "deny", json!({ "reason": "not today" })));
    let message = &read["messages"][0];
    assert_eq!(
        (&message["request_id"], &message["status"], &message["reason"]),
        (&json!("one"), &json!("denied"), &json!("not today")),
        "{read}"
    );
    assert_eq!(message["text"], "denied: not today; continue without it");
    run.hears(json!({ "text": "hello" })).await.succeeded();
    let second = ask("two").await;
    decide(&second, "approve", json!({})).await;
    let read = run.reads(json!({})).await;
    let ids: Vec<_> =
        read["messages"].as_array().unwrap().iter().map(|m| &m["request_id"]).collect();
    assert_eq!(ids, [&json!("one"), &Value::Null, &json!("two")], "{read}");
    assert_eq!(read["messages"][2]["status"], "approved");
    // A decision is left out if acknowledging it would acknowledge a message that was left out.
    let read = run.reads(json!({ "limit": 1 })).await;
    assert_eq!(sequences(&read).len(), 1, "{read}");
    run.hears(json!({ "text": "again" })).await.succeeded();
    let all = run.reads(json!({})).await;
    assert_eq!(sequences(&all).len(), 4, "{all}");
    let read = run.reads(json!({ "acknowledge": all["next_seq"] })).await;
    assert_eq!((sequences(&read), &read["left_count"]), (vec![], &json!(0)));
}
