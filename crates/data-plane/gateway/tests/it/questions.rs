//! Questions of servers to clients, and messages that servers send by themselves (legacy pairs).

use std::time::Duration;

use narthex_gateway::{Answering, Caller, Endpoint, GatewayOptions, Step};
use narthex_policy::RunPolicy;
use narthex_registry::config::Entry;
use narthex_testkit::{
    clock::SteppedClock,
    fixture::{Eras, Options, Running},
};
use serde_json::{Value, json};
use tokio::{
    sync::mpsc::error::TryRecvError,
    time::{Instant, timeout},
};

use super::{
    fixture_process,
    scripted::Scripts,
    world::{SOON, World, finish, http_server, legacy, modern, parse, transparent},
};

async fn answer_questions(world: &World, caller: &Caller, name: &str, reply: &Value) -> Value {
    let params = json!({"name": name, "arguments": {"prompt": "p", "message": "m"}});
    let mut answering = world.gateway.call(caller, legacy(5, "tools/call", params)).await;
    let session = caller.session.as_ref().unwrap();
    let mut asked = 0;
    loop {
        match answering.next().await.expect("an answer") {
            Step::Message(payload) => {
                let message: Value = serde_json::from_slice(&payload.into_bytes()).unwrap();
                if let Some(id) = message.get("id") {
                    asked += 1;
                    let response = json!({"jsonrpc": "2.0", "id": id, "result": reply});
                    world.gateway.respond(session, parse(&response)).await;
                }
            }
            Step::Break { .. } => {}
            Step::Answer(answer) => {
                assert_eq!(asked, 1);
                return serde_json::from_slice(&answer.payload.into_bytes()).unwrap();
            }
        }
    }
}

/// D12: issue point 5: sampling and elicitation pass in both directions between legacy peers, also
/// where the server speaks both eras.
#[tokio::test]
async fn legacy_servers_ask_legacy_clients() {
    for eras in [Eras::Legacy, Eras::Both] {
        let world = World::with(&[("one", eras)]).await;
        for (endpoint, prefix) in [(transparent("one"), ""), (Endpoint::Aggregated, "mcp__one__")] {
            let capabilities = json!({"sampling": {}, "elicitation": {}, "roots": {}});
            let session = world.session(&endpoint, capabilities).await;
            let caller = Caller::new(world.run.clone(), endpoint, Some(session));
            let sampled = json!({"role": "assistant", "model": "m",
                "content": {"type": "text", "text": "blue"}});
            let name = format!("{prefix}test_sampling");
            let answer = answer_questions(&world, &caller, &name, &sampled).await;
            assert!(answer.to_string().contains("blue"), "{eras:?} {answer}");
            let elicited =
                json!({"action": "accept", "content": {"username": "ada", "email": "a@b.c"}});
            let name = format!("{prefix}test_elicitation");
            let answer = answer_questions(&world, &caller, &name, &elicited).await;
            assert!(answer.to_string().contains("ada"), "{eras:?} {answer}");
        }
        world.gateway.drain().await;
    }
}

/// Issue point 5: a program asks a client without a stream of its session on the stream of the
/// call, as long as no other call is open. A client with a stream gets the question there.
#[tokio::test]
async fn a_program_asks_on_the_stream_of_the_only_call() {
    let server = Entry::Server(fixture_process::server("one", "legacy"));
    let world = World::with_processes(vec![server], 4).await;
    let endpoint = transparent("one");
    let session = world.session(&endpoint, json!({"sampling": {}})).await;
    let caller = Caller::new(world.run.clone(), endpoint, Some(session.clone()));
    let sampled = json!({"role": "assistant", "model": "m",
        "content": {"type": "text", "text": "blue"}});
    let asked = answer_questions(&world, &caller, "test_sampling", &sampled);
    let answer = timeout(SOON, asked).await.unwrap();
    assert!(answer.to_string().contains("blue"), "{answer}");
    let mut outbox = session.take_outbox().unwrap();
    let none = outbox.try_recv().unwrap_err();
    assert_eq!(none, TryRecvError::Empty, "the question was asked once");
    let params = json!({"name": "test_sampling", "arguments": {"prompt": "p"}});
    let answering = world.gateway.call(&caller, legacy(6, "tools/call", params)).await;
    let method = timeout(SOON, method_of_next(&mut outbox)).await.unwrap();
    assert_eq!(method, "sampling/createMessage");
    drop(answering);
    world.gateway.drain().await;
}

/// D12: a client that declared no capability gets no question, and the call ends all the same.
#[tokio::test]
async fn d12_clients_without_capabilities_are_not_asked() {
    let world = World::with(&[("one", Eras::Legacy)]).await;
    let caller = world.legacy_caller(transparent("one")).await;
    let params = json!({"name": "test_sampling", "arguments": {"prompt": "p"}});
    let mut answering = world.gateway.call(&caller, legacy(5, "tools/call", params)).await;
    while let Some(step) = answering.next().await {
        if let Step::Message(payload) = &step {
            let message: Value = serde_json::from_slice(&payload.clone().into_bytes()).unwrap();
            assert!(message.get("id").is_none(), "{message}");
        }
    }
    world.gateway.drain().await;
}

/// The id of the question that a call's server asks.
async fn question_of(answering: &mut Answering) -> Value {
    loop {
        match answering.next().await {
            Some(Step::Message(payload)) => {
                let message: Value = serde_json::from_slice(&payload.into_bytes()).unwrap();
                if let Some(id) = message.get("id") {
                    return id.clone();
                }
            }
            other => panic!("no question but {other:?}"),
        }
    }
}

/// S31: a run whose clients leave questions unanswered can use only its part of the waiting
/// questions. Its other clients get no more questions, but clients of another run do. An answer
/// frees a place.
#[tokio::test]
async fn s31_one_run_cannot_take_all_places_for_questions() {
    let fixture = Running::http(Options { eras: Eras::Legacy, ..Options::default() }).await;
    let fixture = fixture.unwrap();
    let entries = vec![Entry::Server(http_server("one", &fixture.url))];
    let options = GatewayOptions { questions_max: 8, ..GatewayOptions::default() };
    let mut world = World::settled(entries, options).await;
    let asking = |id| {
        legacy(id, "tools/call", json!({"name": "test_sampling", "arguments": {"prompt": "p"}}))
    };
    let client = async |world: &World| {
        let session = world.session(&transparent("one"), json!({"sampling": {}})).await;
        Caller::new(world.run.clone(), transparent("one"), Some(session))
    };
    let first = client(&world).await;
    let mut open = Vec::new();
    for id in 1..=4 {
        let mut answering = world.gateway.call(&first, asking(id)).await;
        let question = question_of(&mut answering).await;
        open.push((answering, question));
    }
    let second = client(&world).await;
    let refused = finish(world.gateway.call(&second, asking(5)).await).await;
    assert!(refused.to_string().contains("too many requests"), "{refused}");
    let run = world.run.clone();
    world.run_as(RunPolicy::AllAttached);
    let other = client(&world).await;
    let mut answering = world.gateway.call(&other, asking(1)).await;
    question_of(&mut answering).await;
    world.run = run;
    let (_, question) = &open[0];
    let reply = json!({"role": "assistant", "model": "m",
        "content": {"type": "text", "text": "blue"}});
    let response = json!({"jsonrpc": "2.0", "id": question, "result": reply});
    world.gateway.respond(first.session.as_ref().unwrap(), parse(&response)).await;
    let mut answering = world.gateway.call(&second, asking(6)).await;
    question_of(&mut answering).await;
    world.gateway.drain().await;
}

/// D12, E44: a question ends with its call. Other calls do not wait for the answer to the question,
/// and the question takes no place from others.
#[tokio::test]
async fn d12_a_question_ends_with_its_call() {
    let fixture = Running::http(Options { eras: Eras::Legacy, ..Options::default() }).await;
    let fixture = fixture.unwrap();
    let limit = Duration::from_secs(50);
    let mut server = http_server("one", &fixture.url);
    server.timeout = Some(limit);
    let world = World::settled(vec![Entry::Server(server)], GatewayOptions::default()).await;
    let session = world.session(&transparent("one"), json!({"sampling": {}})).await;
    let caller = Caller::new(world.run.clone(), transparent("one"), Some(session.clone()));
    let ask = |id| {
        legacy(
            id,
            "tools/call",
            json!({"name": "test_sampling",
        "arguments": {"prompt": "p"}}),
        )
    };
    // These are more questions than may be open at one time.
    for id in 100..170 {
        let mut answering = world.gateway.call(&caller, ask(id)).await;
        question_of(&mut answering).await;
        let params = json!({"requestId": id});
        let method = "notifications/cancelled";
        let cancelled = json!({"jsonrpc": "2.0", "method": method, "params": params});
        world.gateway.notify(&caller, parse(&cancelled)).await;
        assert!(answering.next().await.is_none());
    }
    let sleep = json!({"name": "sleep", "arguments": {"ms": 600_000}});
    // The clock jumps to the end of the call, also if its server does not have the call yet.
    tokio::time::pause();
    let answer = timeout(SOON, world.call(&caller, legacy(1, "tools/call", sleep))).await;
    tokio::time::resume();
    let answer = answer.expect("waits for questions of other calls");
    assert_eq!(answer["result"]["structuredContent"]["error"]["kind"], "timeout", "{answer}");
    // The call waits for its own question longer than its server may be silent.
    let mut answering = world.gateway.call(&caller, ask(2)).await;
    let id = question_of(&mut answering).await;
    tokio::time::pause();
    assert!(timeout(3 * limit, answering.next()).await.is_err());
    tokio::time::resume();
    let sampled = json!({"role": "assistant", "model": "m",
        "content": {"type": "text", "text": "blue"}});
    let response = json!({"jsonrpc": "2.0", "id": id, "result": sampled});
    world.gateway.respond(&session, parse(&response)).await;
    assert!(finish(answering).await.to_string().contains("blue"));
    world.gateway.drain().await;
}

/// E45: a call that waits for a person's answer ends. For a modern client the question is the
/// answer to its request. A legacy client's question waits for ten minutes, and then its call gets
/// an answer.
#[tokio::test]
async fn e45_a_call_with_an_unanswered_question_ends_after_ten_minutes() {
    let world = World::with(&[("one", Eras::Legacy)]).await;
    let mut params = json!({"name": "test_sampling", "arguments": {"prompt": "p"}});
    let session = world.session(&transparent("one"), json!({"sampling": {}})).await;
    let caller = Caller::new(world.run.clone(), transparent("one"), Some(session));
    let call = legacy(1, "tools/call", params.clone());
    let mut answering = world.gateway.call(&caller, call).await;
    question_of(&mut answering).await;
    let clock = SteppedClock::by(Duration::from_secs(1));
    let asked = Instant::now();
    let answer = timeout(Duration::from_secs(720), finish(answering)).await;
    let waited = asked.elapsed();
    drop(clock);
    let answer = answer.expect("the question has a limit of time");
    assert!(waited >= Duration::from_secs(590), "{waited:?}: {answer}");

    params["_meta"] = json!({"io.modelcontextprotocol/clientCapabilities": {"sampling": {}}});
    let caller = world.modern_caller(transparent("one"));
    let answer = world.ask(&caller, "tools/call", params).await;
    assert_eq!(answer["result"]["resultType"], "input_required", "{answer}");
    world.gateway.drain().await;
}

/// A server that asks, withdraws a question that it never asked, and then withdraws its own. The
/// call stays open.
const TAKES_BACK: [&str; 3] = [
    "",
    r#"case $line in *'"method":"tools/call"'*)
      echo '{"jsonrpc":"2.0","id":"q7","method":"sampling/createMessage","params":{}}'
      echo '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":99}}'
      echo '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"q7"}}'
      continue ;;
    esac"#,
    "",
];

/// D12: when a server withdraws its question, the client gets a notification with the id that it
/// knows.
#[tokio::test]
async fn d12_a_question_is_cancelled_under_the_id_that_the_client_knows() {
    let scripts = Scripts::new();
    let entries = vec![scripts.entry("one", TAKES_BACK)];
    let world = World::settled(entries, GatewayOptions::default()).await;
    let session = world.session(&transparent("one"), json!({"sampling": {}})).await;
    let mut outbox = session.take_outbox().unwrap();
    let caller = Caller::new(world.run.clone(), transparent("one"), Some(session));
    let call = legacy(5, "tools/call", json!({"name": "act", "arguments": {}}));
    let answering = world.gateway.call(&caller, call).await;
    let mut next = async || {
        let payload = timeout(SOON, outbox.recv()).await.expect("nothing comes").unwrap();
        serde_json::from_slice::<Value>(&payload.into_bytes()).unwrap()
    };
    let question = next().await;
    assert_eq!(question["method"], "sampling/createMessage", "{question}");
    let taken_back = next().await;
    assert_eq!(taken_back["method"], "notifications/cancelled", "{taken_back}");
    assert_eq!(taken_back["params"]["requestId"], question["id"], "{taken_back}");
    assert_ne!(question["id"], "q7");
    drop(answering);
    world.gateway.drain().await;
}

async fn method_of_next(outbox: &mut tokio::sync::mpsc::Receiver<narthex_wire::Payload>) -> String {
    let payload = outbox.recv().await.unwrap();
    let message: Value = serde_json::from_slice(&payload.into_bytes()).unwrap();
    message["method"].as_str().unwrap().to_owned()
}

/// D11: issue point 4, E74: sessions of both kinds of endpoint are notified of a changed list.
#[tokio::test]
async fn e74_list_changes_reach_sessions() {
    for eras in [Eras::Legacy, Eras::Modern] {
        for endpoint in [transparent("one"), Endpoint::Aggregated] {
            let world = World::with(&[("one", eras)]).await;
            let caller = world.legacy_caller(endpoint).await;
            let mut outbox = caller.session.as_ref().unwrap().take_outbox().unwrap();
            world.fixtures[0].fixture.toggle_dynamic_tool();
            while method_of_next(&mut outbox).await != "notifications/tools/list_changed" {}
            world.gateway.drain().await;
        }
    }
}

/// Issue point 5: updates of a subscription reach their subscriber, and end with it.
#[tokio::test]
async fn resource_updates_reach_subscribers_only() {
    let world = World::with(&[("one", Eras::Legacy)]).await;
    let subscriber = world.legacy_caller(Endpoint::Aggregated).await;
    let other = world.legacy_caller(Endpoint::Aggregated).await;
    let params = json!({"uri": "test://watched-resource"});
    let answer = world.call(&subscriber, legacy(1, "resources/subscribe", params)).await;
    assert_eq!(answer["result"], json!({}), "{answer}");
    let mut outbox = subscriber.session.as_ref().unwrap().take_outbox().unwrap();
    world.fixtures[0].fixture.touch_resource("test://watched-resource");
    let payload = outbox.recv().await.unwrap();
    let message: Value = serde_json::from_slice(&payload.into_bytes()).unwrap();
    assert_eq!(message["method"], "notifications/resources/updated", "{message}");
    let mut outbox = other.session.as_ref().unwrap().take_outbox().unwrap();
    assert_eq!(outbox.try_recv().unwrap_err(), TryRecvError::Empty);
    world.gateway.drain().await;
}

/// The next message on a stream, which must carry the id of its subscription.
async fn next_tagged(answering: &mut Answering) -> Value {
    let Some(Step::Message(payload)) = answering.next().await else { panic!("the stream ended") };
    let message: Value = serde_json::from_slice(&payload.into_bytes()).unwrap();
    let meta = &message["params"]["_meta"];
    assert_eq!(meta["io.modelcontextprotocol/subscriptionId"], 9, "{message}");
    message
}

/// D11: issue point 5: a modern client listens at both kinds of endpoint, to servers of both eras.
#[tokio::test]
async fn modern_clients_get_list_changes_at_both_endpoints() {
    for eras in [Eras::Legacy, Eras::Modern] {
        for endpoint in [transparent("one"), Endpoint::Aggregated] {
            let world = World::with(&[("one", eras)]).await;
            let caller = world.modern_caller(endpoint);
            let filter = json!({"notifications": {"toolsListChanged": true}});
            let request = modern(9, "subscriptions/listen", filter);
            let mut answering = world.gateway.call(&caller, request).await;
            let first = next_tagged(&mut answering).await;
            assert_eq!(first["method"], "notifications/subscriptions/acknowledged");
            world.fixtures[0].fixture.toggle_dynamic_tool();
            let second = next_tagged(&mut answering).await;
            assert_eq!(second["method"], "notifications/tools/list_changed");
            drop(answering);
            world.gateway.drain().await;
        }
    }
}

/// Protocol 2026-07-28, multi-round requests: state is sealed, tampering is refused.
#[tokio::test]
async fn request_states_are_sealed_and_tampered_states_are_refused() {
    let world = World::with(&[("one", Eras::Modern)]).await;
    for (endpoint, prefix) in [(transparent("one"), ""), (Endpoint::Aggregated, "mcp__one__")] {
        let caller = world.modern_caller(endpoint);
        let capabilities = json!({"io.modelcontextprotocol/clientCapabilities":
            {"elicitation": {}, "sampling": {}, "roots": {}}});
        let name = format!("{prefix}test_input_required_result_request_state");
        let params = json!({"name": name, "arguments": {}, "_meta": capabilities});
        let first = world.call(&caller, modern(1, "tools/call", params.clone())).await;
        assert_eq!(first["result"]["resultType"], "input_required", "{first}");
        let state = first["result"]["requestState"].as_str().unwrap().to_owned();
        let key = first["result"]["inputRequests"].as_object().unwrap().keys().next().unwrap();
        let mut again = params;
        let content = json!({"confirmed": true, "name": "x", "ok": true, "confirm": true});
        again["inputResponses"] = json!({key: {"action": "accept", "content": content}});
        again["requestState"] = json!(state);
        let second = world.call(&caller, modern(2, "tools/call", again.clone())).await;
        assert_eq!(second["result"]["resultType"], "complete", "{second}");
        again["requestState"] = json!(format!("{state}A"));
        let third = world.call(&caller, modern(3, "tools/call", again)).await;
        assert_eq!(third["error"]["code"], -32602, "{third}");
    }
    world.gateway.drain().await;
}
