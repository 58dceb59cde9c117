//! Tests of legacy streams: event ids, resuming after a disconnection, and the stream of messages
//! outside of calls.

use http::{Method, StatusCode};
use narthex_policy::RunPolicy;
use narthex_testkit::{fixture::Eras, messages::Era};
use narthex_wire::SseEvent;
use serde_json::json;

use crate::world::{Builder, SOON, Stream, World, message, tool_call};

const PATH: &str = "/mcp/fixture";

fn get<'w>(world: &'w World, session: &str, last: &str) -> Builder<'w> {
    world
        .request(Method::GET, PATH)
        .header("accept", "text/event-stream")
        .header("mcp-session-id", session)
        .header("last-event-id", last)
}

fn id(event: &SseEvent) -> &str {
    std::str::from_utf8(event.id.as_deref().unwrap()).unwrap()
}

#[tokio::test]
async fn events_of_a_streamed_call_have_ids_and_a_first_empty_event_in_new_revisions() {
    let world = World::with_fixture().await;
    for (revision, first) in [("2025-11-25", 1), ("2025-06-18", 0), ("2025-03-26", 0)] {
        let session = world.session(PATH, revision).await;
        let call = tool_call(4, "progress", json!({"count": 2}));
        let events = world.legacy(PATH, &session, &call).events().await;
        assert_eq!(events.len(), first + 3, "{revision}");
        assert!(events[..first].iter().all(|event| event.has_data && event.data.is_empty()));
        let ids: std::collections::HashSet<_> = events.iter().map(id).collect();
        assert_eq!(ids.len(), events.len());
        assert_eq!(message(events.last().unwrap())["id"], 4);
    }
}

/// A broken connection does not end a legacy call: its client can resume the stream.
#[tokio::test]
async fn s19_a_disconnected_stream_resumes_after_the_last_event() {
    let world = World::with_fixture().await;
    let session = world.session(PATH, "2025-11-25").await;
    let call = tool_call(4, "progress", json!({"count": 5, "pause_ms": 10}));
    let mut stream = Stream::of(world.legacy(PATH, &session, &call).open().await);
    let primed = stream.next().await.unwrap();
    let first = stream.next().await.unwrap();
    assert_eq!(message(&first)["params"]["progress"], 1);
    drop(stream);
    let rest = get(&world, &session, id(&first)).events().await;
    assert_eq!(rest.len(), 5);
    assert_eq!(message(&rest[0])["params"]["progress"], 2);
    assert_eq!(message(&rest[4])["id"], 4);
    let all = get(&world, &session, id(&primed)).events().await;
    assert_eq!(all.len(), 6, "what has ended is kept for a while");
    assert_eq!(get(&world, &session, id(&rest[4])).events().await.len(), 0);
    assert_eq!(world.fixture.as_ref().unwrap().fixture.counts().cancelled, 0);
}

/// S19, D26: an event id leads to a stream of its own session only.
#[tokio::test]
async fn s19_event_ids_of_other_sessions_are_refused() {
    let world = World::with_fixture().await;
    let session = world.session(PATH, "2025-11-25").await;
    let call = tool_call(4, "progress", json!({"count": 1}));
    let events = world.legacy(PATH, &session, &call).events().await;
    let event = id(&events[0]).to_owned();
    let other = world.session(PATH, "2025-11-25").await;
    let refused = get(&world, &other, &event).send().await;
    assert_eq!(refused.status, StatusCode::BAD_REQUEST);
    let token = format!("Bearer {}", world.other_run(RunPolicy::AllAttached));
    let stolen = get(&world, &session, &event).header("authorization", &token).send().await;
    assert_eq!(stolen.status, StatusCode::NOT_FOUND);
    let (stream, number) = event.rsplit_once('-').unwrap();
    assert_eq!(number, "0");
    for bad in [
        "x".to_owned(),
        "0".to_owned(),
        format!("{stream}-99"),
        format!("{stream}--1"),
        format!("{stream}-"),
        format!("x{event}"),
        "n0-0000000000000000-0".to_owned(),
    ] {
        let answer = get(&world, &session, &bad).send().await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{bad}");
    }
}

/// A client that disconnects before the first event has not cancelled its call either.
#[tokio::test]
async fn a_legacy_call_runs_to_its_end_without_its_client() {
    let (world, server, mut calls) = World::with_held_tool(Era::Legacy, |_options| {}).await;
    let session = world.session(PATH, "2025-11-25").await;
    let call = tool_call(4, "act", json!({}));
    let waiting = world.legacy(PATH, &session, &call).open();
    let held = tokio::select! {
        _ = waiting => panic!("nothing answers so soon"),
        held = calls.recv() => held.unwrap(),
    };
    // A cancelled call would free its id at once; one that continues still uses it.
    let again = world.legacy(PATH, &session, &call).send().await;
    assert_eq!(again.code(), -32600, "{}", again.text());
    held.answer().await;
    let done = async {
        loop {
            let quick = tool_call(4, "quick", json!({}));
            let answer = world.legacy(PATH, &session, &quick).send().await;
            if answer.json()["result"].is_object() {
                return;
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(SOON, done).await.unwrap();
    assert!(server.seen().iter().all(|seen| seen.rpc() != "notifications/cancelled"));
}

/// If the server ends its stream and asks to be polled, the door does the same towards its client.
#[tokio::test]
async fn a_break_of_the_server_lets_the_client_poll() {
    let world = World::with(Eras::Legacy, |_options| {}).await;
    let session = world.session(PATH, "2025-11-25").await;
    let call = tool_call(4, "test_reconnection", json!({}));
    let events = world.legacy(PATH, &session, &call).events().await;
    let last = events.last().unwrap();
    assert!(last.retry_ms.is_some() && last.data.is_empty(), "{last:?}");
    let rest = get(&world, &session, id(last)).events().await;
    assert_eq!(message(rest.last().unwrap())["id"], 4);
}

/// Clients of older revisions would read the end of a stream as the end of the call.
#[tokio::test]
async fn clients_of_older_revisions_see_no_break() {
    let world = World::with(Eras::Legacy, |_options| {}).await;
    let session = world.session(PATH, "2025-06-18").await;
    let call = tool_call(4, "test_reconnection", json!({}));
    let answer = world.legacy(PATH, &session, &call).send().await;
    assert!(answer.text().contains("\"id\":4") && !answer.text().contains("retry:"));
}

/// The stream of messages outside calls: stored without a reader, read by the newest reader.
#[tokio::test]
async fn messages_outside_of_calls_are_stored_until_a_reader_connects() {
    let world = World::with_fixture().await;
    let session = world.session(PATH, "2025-11-25").await;
    let change = |id| tool_call(id, "test_trigger_tool_change", json!({}));
    let changed = async |id| {
        let body = change(id);
        let answer = world.legacy(PATH, &session, &body).send().await;
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.text());
    };
    changed(1).await;
    let mut first = Stream::of(get(&world, &session, "").open().await);
    let primed = first.next().await.unwrap();
    assert!(primed.has_data && primed.data.is_empty());
    let event = first.next().await.unwrap();
    assert_eq!(message(&event)["method"], "notifications/tools/list_changed");
    let mut second = Stream::of(get(&world, &session, "").open().await);
    assert!(first.next().await.is_none(), "the newer reader replaces the older");
    assert!(second.next().await.unwrap().data.is_empty());
    changed(2).await;
    let later = second.next().await.unwrap();
    assert_eq!(message(&later)["method"], "notifications/tools/list_changed");
    let mut resumed = Stream::of(get(&world, &session, id(&event)).open().await);
    assert_eq!(resumed.next().await.unwrap().id, later.id);
    let delete = world.request(Method::DELETE, PATH).header("mcp-session-id", &session);
    assert_eq!(delete.send().await.status, StatusCode::NO_CONTENT);
    assert!(resumed.next().await.is_none(), "ends with its session");
}

#[tokio::test]
async fn open_streams_end_when_the_daemon_shuts_down() {
    let world = World::with_fixture().await;
    let session = world.session(PATH, "2025-06-18").await;
    let mut stream = Stream::of(get(&world, &session, "").open().await);
    world.options.closing.cancel();
    assert!(stream.next().await.is_none());
}

/// Opens a session of a client that declares elicitation, sampling and roots.
async fn session_to_ask(world: &World, path: &str) -> String {
    let params = json!({"protocolVersion": "2025-11-25",
        "clientInfo": {"name": "t", "version": "1"},
        "capabilities": {"elicitation": {}, "sampling": {}, "roots": {}}});
    let request = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
    let answer = world.post(path, request.to_string()).send().await;
    answer.headers["mcp-session-id"].to_str().unwrap().to_owned()
}

/// The next `count` messages of a stream.
async fn messages(stream: &mut Stream, count: usize) -> Vec<serde_json::Value> {
    let mut found = Vec::new();
    while found.len() < count {
        let event = stream.next().await.expect("the stream ends");
        if !event.data.is_empty() {
            found.push(message(&event));
        }
    }
    found
}

fn reply(question: &serde_json::Value) -> serde_json::Value {
    let result = match question["method"].as_str().unwrap() {
        "roots/list" => json!({"roots": []}),
        "elicitation/create" => json!({"action": "accept", "content": {"name": "ada"}}),
        _ => json!({"role": "assistant", "model": "m", "content": {"type": "text", "text": "hi"}}),
    };
    json!({"jsonrpc": "2.0", "id": question["id"], "result": result})
}

/// E174, S19: the questions of a server of 2026-07-28 are in the stream of the waiting call, all at
/// once, at both endpoints. Only the call's own session can answer them, and a broken connection
/// changes nothing.
#[tokio::test]
async fn e174_questions_of_a_modern_server_are_in_the_stream_of_a_legacy_call() {
    let world = World::with(Eras::Modern, |_options| {}).await;
    for (path, prefix) in [("/mcp", "mcp__fixture__"), (PATH, "")] {
        let session = session_to_ask(&world, path).await;
        let other = session_to_ask(&world, path).await;
        let name = format!("{prefix}test_input_required_result_multiple_inputs");
        let call = tool_call(4, &name, json!({}));
        let mut stream = Stream::of(world.legacy(path, &session, &call).open().await);
        let primed = stream.next().await.unwrap();
        let asked = messages(&mut stream, 3).await;
        drop(stream);
        for question in &asked {
            let said = world.legacy(path, &other, &reply(question)).send().await;
            assert_eq!(said.status, StatusCode::ACCEPTED);
        }
        for question in &asked {
            let said = world.legacy(path, &session, &reply(question)).send().await;
            assert_eq!(said.status, StatusCode::ACCEPTED);
        }
        let again = world
            .request(Method::GET, path)
            .header("accept", "text/event-stream")
            .header("mcp-session-id", &session)
            .header("last-event-id", id(&primed));
        let mut again = Stream::of(again.open().await);
        let all = messages(&mut again, 4).await;
        assert_eq!(all[..3], asked);
        let text = all[3]["result"]["content"][0]["text"].as_str().unwrap();
        assert!(text.starts_with("ada"), "{all:?}");
    }
}

/// E178: if a client cancels its call, the call's questions are cancelled in its stream.
#[tokio::test]
async fn e178_a_cancelled_call_cancels_its_questions() {
    let world = World::with(Eras::Modern, |_options| {}).await;
    let session = session_to_ask(&world, PATH).await;
    let call = tool_call(4, "test_input_required_result_elicitation", json!({}));
    let mut stream = Stream::of(world.legacy(PATH, &session, &call).open().await);
    let asked = messages(&mut stream, 1).await;
    let cancelled = json!({"jsonrpc": "2.0", "method": "notifications/cancelled",
        "params": {"requestId": 4}});
    world.legacy(PATH, &session, &cancelled).send().await;
    let taken_back = messages(&mut stream, 1).await.remove(0);
    assert_eq!(taken_back["method"], "notifications/cancelled", "{taken_back}");
    assert_eq!(taken_back["params"]["requestId"], asked[0]["id"], "{taken_back}");
    assert!(stream.next().await.is_none(), "a call that was taken back is answered");
}

/// S31: a run that fills its streams loses only its own oldest events. A resume after a dropped
/// event is answered as for an event that never existed. A client of another run can still resume.
#[tokio::test]
async fn s31_a_run_that_fills_its_streams_loses_only_its_own_events() {
    let mut world = World::with_options(|options| options.replay.total_bytes = 40_000).await;
    // Makes a call whose answer comes as a stream, and returns the id of the event before the
    // answer.
    let stream = async |world: &World, session: &str, number: u64| {
        let call = tool_call(number, "blob", json!({ "bytes": 3000 }));
        let request = world.legacy(PATH, session, &call);
        let request = request.header("accept", "text/event-stream, application/json");
        let events = request.events().await;
        assert_eq!((events.len(), &message(&events[1])["id"]), (2, &json!(number)));
        id(&events[0]).to_owned()
    };
    let other = world.session(PATH, "2025-11-25").await;
    let kept = stream(&world, &other, 1).await;
    let first = world.token.clone();
    world.token = world.other_run(RunPolicy::AllAttached);
    let flood = world.session(PATH, "2025-11-25").await;
    let mut streams = Vec::new();
    for number in 1..=15 {
        streams.push(stream(&world, &flood, number).await);
    }
    let gone = get(&world, &flood, &streams[0]).send().await;
    assert_eq!(gone.status, StatusCode::BAD_REQUEST, "{}", gone.text());
    assert!(
        gone.text().contains("this session does not have this event, or not any more"),
        "{}",
        gone.text()
    );
    let newest = get(&world, &flood, streams.last().unwrap()).events().await;
    assert_eq!(message(newest.last().unwrap())["id"], 15);
    world.token = first;
    let rest = get(&world, &other, &kept).events().await;
    assert_eq!(message(rest.last().unwrap())["id"], 1, "another run has its part");
}
