//! Questions of legacy servers to modern clients: the call waits, and its client calls again
//! (E184).

use std::time::Duration;

use narthex_audit::{Audit, AuditSettings};
use narthex_gateway::{Answering, Caller, Endpoint, GatewayOptions, Step};
use narthex_policy::RunPolicy;
use narthex_registry::config::Entry;
use narthex_testkit::{
    clock::SteppedClock,
    fixture::{Eras, Options, Quirk, Running},
};
use narthex_upstream::{ClearedSecret, CutReason};
use narthex_wire::Message;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::{
    fixture_process,
    own_servers::begin,
    scripted::{Scripts, is_alive},
    world::{SOON, World, finish, http_server, modern, transparent},
};

const DECLARED: &str = "io.modelcontextprotocol/clientCapabilities";

fn everything() -> Value {
    json!({"sampling": {}, "elicitation": {"form": {}, "url": {}}, "roots": {}})
}

/// A call of a client that declares these capabilities, in the first round.
fn first(name: &str, declared: &Value) -> Value {
    json!({"name": name, "arguments": {}, "_meta": {DECLARED: declared}})
}

/// The call of an earlier round again, with these answers.
fn again(first: &Value, asked: &Value, answers: Value) -> Value {
    let mut params = first.clone();
    params["requestState"] = asked["result"]["requestState"].clone();
    params["inputResponses"] = answers;
    params
}

fn call(id: u64, params: &Value) -> Message {
    modern(id, "tools/call", params.clone())
}

fn accepted(content: Value) -> Value {
    json!({"action": "accept", "content": content})
}

/// The keys of the questions, with the methods.
fn asked(answer: &Value) -> Vec<(String, String)> {
    assert_eq!(answer["result"]["resultType"], "input_required", "{answer}");
    let all = answer["result"]["inputRequests"].as_object().unwrap();
    let pair = |(key, one): (&String, &Value)| (key.clone(), text(&one["method"]));
    all.iter().map(pair).collect()
}

/// The key of the only question.
fn only(answer: &Value) -> String {
    let all = asked(answer);
    assert_eq!(all.len(), 1, "{answer}");
    all[0].0.clone()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// Worlds over one legacy server, one for each transport.
async fn worlds() -> Vec<World> {
    let process = Entry::Server(fixture_process::server("one", "legacy"));
    let over_stdio = World::settled(vec![process], GatewayOptions::default()).await;
    vec![World::with(&[("one", Eras::Legacy)]).await, over_stdio]
}

fn endpoints() -> [(Endpoint, &'static str); 2] {
    [(transparent("one"), ""), (Endpoint::Aggregated, "mcp__one__")]
}

/// A world over one legacy server over HTTP, and its modern caller.
async fn one() -> (World, Caller) {
    let world = World::with(&[("one", Eras::Legacy)]).await;
    let caller = world.modern_caller(transparent("one"));
    (world, caller)
}

/// E184: a legacy server asks a modern client during a call. The client gets the question in a
/// result, and the call continues with the answer.
#[tokio::test]
async fn e184_a_legacy_server_asks_a_modern_client() {
    for world in worlds().await {
        for (endpoint, prefix) in endpoints() {
            let caller = world.modern_caller(endpoint);
            let name = format!("{prefix}test_input_required_result_elicitation");
            let params = first(&name, &json!({"elicitation": {}}));
            let answer = world.call(&caller, call(1, &params)).await;
            let key = only(&answer);
            let request = &answer["result"]["inputRequests"][&key];
            assert_eq!(request["method"], "elicitation/create", "{answer}");
            assert_eq!(request["params"]["message"], "What is your name?", "{answer}");
            let reply = json!({key: accepted(json!({"name": "Ada"}))});
            let answer = world.call(&caller, call(2, &again(&params, &answer, reply))).await;
            assert_eq!(answer["id"], 2);
            assert_eq!(answer["result"]["resultType"], "complete", "{answer}");
            assert_eq!(answer["result"]["content"][0]["text"], "Hello, Ada!", "{answer}");
        }
        world.gateway.drain().await;
    }
}

/// E184: questions that a server asks at the same time are in one result, and later questions in
/// the next. The gateway asks again for answers that the client leaves out.
#[tokio::test]
async fn e184_concurrent_questions_are_in_one_result_and_later_questions_in_the_next() {
    for world in worlds().await {
        let caller = world.modern_caller(transparent("one"));
        let params = first("test_input_required_result_multiple_inputs", &everything());
        // A slow clock: the process of a server may pause between its questions.
        let clock = SteppedClock::by(Duration::from_micros(20));
        let answer = world.call(&caller, call(1, &params)).await;
        drop(clock);
        let all = asked(&answer);
        assert_eq!(all.len(), 3, "{answer}");
        let key = |method: &str| all.iter().find(|(_, one)| one == method).unwrap().0.clone();
        let reply = json!({
            key("elicitation/create"): accepted(json!({"name": "Ada"})),
            key("sampling/createMessage"): {"role": "assistant", "model": "m",
                "content": {"type": "text", "text": "hi"}},
        });
        let answer = world.call(&caller, call(2, &again(&params, &answer, reply))).await;
        assert_eq!(asked(&answer), [(key("roots/list"), "roots/list".to_owned())]);
        let reply = json!({key("roots/list"): {"roots": [{"uri": "file:///a"}]}, "other": {}});
        let answer = world.call(&caller, call(3, &again(&params, &answer, reply))).await;
        let said = text(&answer["result"]["content"][0]["text"]);
        assert!(said.starts_with("Ada, ") && said.contains("file:///a"), "{answer}");

        let params = first("test_input_required_result_multi_round", &everything());
        let answer = world.call(&caller, call(4, &params)).await;
        let reply = json!({only(&answer): accepted(json!({"name": "Ada"}))});
        let answer = world.call(&caller, call(5, &again(&params, &answer, reply))).await;
        let reply = json!({only(&answer): accepted(json!({"color": "red"}))});
        let answer = world.call(&caller, call(6, &again(&params, &answer, reply))).await;
        assert_eq!(answer["result"]["content"][0]["text"], "Ada likes red", "{answer}");
        world.gateway.drain().await;
    }
}

/// E184: a prompt may ask, too, and so may calls at the same time: each call has its own connection
/// if a question does not identify its call.
#[tokio::test]
async fn e184_concurrent_calls_get_separate_questions() {
    for world in worlds().await {
        let caller = world.modern_caller(transparent("one"));
        let params = first("test_input_required_result_prompt", &everything());
        let get = |id| world.call(&caller, modern(id, "prompts/get", params.clone()));
        let answers = tokio::join!(get(1), get(2), get(3));
        let answers = [answers.0, answers.1, answers.2];
        for (answer, name) in answers.iter().zip(["one", "two", "three"]) {
            let reply = json!({only(answer): accepted(json!({"context": name}))});
            let params = again(&params, answer, reply);
            let answer = world.call(&caller, modern(9, "prompts/get", params)).await;
            assert!(answer["result"]["messages"].to_string().contains(name), "{answer}");
        }
        world.gateway.drain().await;
    }
}

/// E184: the server gets a decline; an undeclared question is refused at once, and a request that
/// declares nothing opens no further session.
#[tokio::test]
async fn e184_undeclared_questions_are_refused() {
    let (world, caller) = one().await;
    let counts = || world.fixtures[0].fixture.counts();
    let before = counts().initializes;
    let params = first("test_elicitation_sep1034_defaults", &json!({}));
    let answer = world.call(&caller, call(1, &params)).await;
    assert!(answer["error"]["message"].to_string().contains("elicitation"), "{answer}");
    assert_eq!(counts().initializes, before);
    let params = first("test_input_required_result_capabilities", &json!({"sampling": {}}));
    let answer = world.call(&caller, call(2, &params)).await;
    let reply = json!({only(&answer): {"role": "assistant", "model": "m",
        "content": {"type": "text", "text": "x"}}});
    let answer = world.call(&caller, call(3, &again(&params, &answer, reply))).await;
    assert_eq!(answer["result"]["content"][0]["text"], "Thank you", "{answer}");
    assert_eq!(counts().initializes, before + 1);
    let params = first("test_elicitation_sep1034_defaults", &json!({"elicitation": {}}));
    for id in 4..7 {
        let answer = world.call(&caller, call(id, &params)).await;
        let reply = json!({only(&answer): {"action": "decline"}});
        let answer = world.call(&caller, call(id, &again(&params, &answer, reply))).await;
        assert!(answer.to_string().contains("action=decline"), "{answer}");
    }
    assert_eq!(counts().initializes, before + 2, "one link for each set of capabilities");
    world.gateway.drain().await;
}

/// E184, S26: a state is valid once, for its run and for the call that it was given for. A refused
/// retry sends nothing, and changes nothing for the waiting call.
#[tokio::test]
async fn e184_a_request_state_is_valid_once_and_only_for_its_call_and_run() {
    let (mut world, caller) = one().await;
    let params = first("test_input_required_result_elicitation", &everything());
    let answer = world.call(&caller, call(1, &params)).await;
    let reply = json!({only(&answer): accepted(json!({"name": "Ada"}))});
    let proper = again(&params, &answer, reply.clone());
    let calls = world.fixtures[0].fixture.counts().calls;
    let owner = world.run.clone();
    let refused = async |world: &World, params: Value, method: &str| {
        let caller = world.modern_caller(transparent("one"));
        let answer = world.call(&caller, modern(2, method, params)).await;
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
        text(&answer["error"]["message"])
    };
    let mut altered = proper.clone();
    altered["arguments"] = json!({"x": 1});
    assert!(refused(&world, altered, "tools/call").await.contains("other arguments"));
    let mut renamed = proper.clone();
    renamed["name"] = json!("test_input_required_result_multi_round");
    refused(&world, renamed.clone(), "tools/call").await;
    renamed["name"] = json!("test_input_required_result_prompt");
    refused(&world, renamed, "prompts/get").await;
    let mut tampered = proper.clone();
    tampered["requestState"] = json!(format!("{}A", text(&proper["requestState"])));
    refused(&world, tampered, "tools/call").await;
    let mut odd = proper.clone();
    odd["inputResponses"] = json!({only(&answer): 7});
    assert!(refused(&world, odd, "tools/call").await.contains("must be an object"));
    world.run_as(RunPolicy::AllAttached);
    refused(&world, proper.clone(), "tools/call").await;
    world.run = owner;
    let answer = world.call(&caller, call(3, &proper)).await;
    assert_eq!(answer["result"]["content"][0]["text"], "Hello, Ada!", "{answer}");
    assert!(refused(&world, proper, "tools/call").await.contains("is not open any more"));
    assert_eq!(world.fixtures[0].fixture.counts().calls, calls);
    world.gateway.drain().await;
}

/// Waits until the server got the cancellation of a call, after the answer to its question.
async fn given_up(fixture: &Running) {
    let waiting = async {
        loop {
            let arrived = fixture.fixture.arrived();
            if arrived.iter().any(|one| one.method == "notifications/cancelled") {
                return;
            }
            tokio::task::yield_now().await;
        }
    };
    timeout(SOON, waiting).await.expect("the server is not told");
}

/// Waits until no call waits.
async fn none_parked(world: &World) {
    let ending = async {
        while parked(world) {
            tokio::task::yield_now().await;
        }
    };
    timeout(SOON, ending).await.expect("a call is left");
}

/// A world with a legacy server that records its messages.
async fn noting() -> (World, Caller) {
    let options = Options { eras: Eras::Legacy, records_messages: true, ..Options::default() };
    let world = World::of([("one", options)]).await;
    let caller = world.modern_caller(transparent("one"));
    (world, caller)
}

/// The first call of a server `one` that is a script.
struct Scripted {
    scripts: Scripts,
    world: World,
    caller: Caller,
    params: Value,
    answer: Value,
}

/// Calls a server that runs this script with each line, as a client with these capabilities.
async fn scripted(script: &str, declared: &Value) -> Scripted {
    let scripts = Scripts::new();
    let entries = vec![scripts.entry("one", ["", script, ""])];
    let world = World::settled(entries, GatewayOptions::default()).await;
    let caller = world.modern_caller(transparent("one"));
    let params = first("act", declared);
    let answer = world.call(&caller, call(1, &params)).await;
    Scripted { scripts, world, caller, params, answer }
}

fn parked(world: &World) -> bool {
    let metrics = world.gateway.metrics().render();
    assert!(metrics.contains("narthex_calls_parked "), "{metrics}");
    !metrics.contains("narthex_calls_parked 0")
}

/// E184: a call waits for its client as long as the setting allows, and not longer. Then its server
/// gets a cancellation, and the retry is refused.
#[tokio::test]
async fn e184_a_parked_call_is_cancelled_after_its_time_limit() {
    let (world, caller) = noting().await;
    let params = first("test_input_required_result_elicitation", &everything());
    let answer = world.call(&caller, call(1, &params)).await;
    let reply = json!({only(&answer): accepted(json!({"name": "Ada"}))});
    assert!(parked(&world));
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(590)).await;
    assert!(parked(&world));
    tokio::time::advance(Duration::from_secs(11)).await;
    tokio::time::resume();
    let answer = world.call(&caller, call(2, &again(&params, &answer, reply))).await;
    assert!(text(&answer["error"]["message"]).contains("is not open any more"), "{answer}");
    given_up(&world.fixtures[0]).await;
    none_parked(&world).await;
    world.gateway.drain().await;
}

/// E184: the end of a run, and of the gateway, ends waiting calls.
#[tokio::test]
async fn e184_a_parked_call_ends_with_its_run_or_the_gateway() {
    for is_run in [true, false] {
        let (world, caller) = noting().await;
        let params = first("test_input_required_result_elicitation", &everything());
        only(&world.call(&caller, call(1, &params)).await);
        match is_run {
            true => drop(world.gateway.end_run(world.run.id).await),
            false => world.gateway.drain().await,
        }
        given_up(&world.fixtures[0]).await;
        none_parked(&world).await;
        world.gateway.drain().await;
    }
}

fn cleared() -> ClearedSecret {
    ClearedSecret { workspace: "team".into(), name: "KEY".into(), is_set_again: false }
}

/// E184, D10: a server that is disabled, a secret that is cleared, and the end of a run end a
/// waiting call at once. The refusal of the call's retry names that reason. The server, which has
/// not got the client's answer, gets a cancellation.
#[tokio::test]
async fn e184_disabling_a_server_or_clearing_a_secret_ends_parked_calls() {
    for why in ["server_disabled", "secret_cleared", "run"] {
        let options = Options { eras: Eras::Legacy, records_messages: true, ..Options::default() };
        let fixture = Running::http(options).await.unwrap();
        let definition = || http_server("one", &fixture.url);
        let is_own = why == "secret_cleared";
        let rows = if is_own { vec![] } else { vec![Entry::Server(definition())] };
        let world = World::settled(rows, GatewayOptions::default()).await;
        let own = if is_own { vec![definition()] } else { vec![] };
        let (run, _token) = begin(&world, RunPolicy::AllAttached, own).await;
        let caller = world.seen_by(&run).modern_caller(transparent("one"));
        let params = first("test_input_required_result_elicitation", &everything());
        let answer = world.call(&caller, call(1, &params)).await;
        let reply = json!({only(&answer): accepted(json!({"name": "Ada"}))});
        assert!(parked(&world), "{why}");
        let registry = world.gateway.registry();
        match why {
            "server_disabled" => registry.disable("one").unwrap(),
            "secret_cleared" => registry.cut(&CutReason::SecretCleared(cleared()), |_| true),
            _ => drop(world.gateway.end_run(run.id).await.unwrap()),
        }
        none_parked(&world).await;
        let refused = world.call(&caller, call(2, &again(&params, &answer, reply))).await;
        let shown = refused.to_string();
        assert!(!shown.contains("Ada") && !shown.contains("inputRequests"), "{why}: {refused}");
        match why {
            "run" => assert!(refused["error"]["code"].is_i64(), "{refused}"),
            kind => {
                let error = &refused["result"]["structuredContent"]["error"];
                assert_eq!(error["kind"], kind, "{refused}");
            }
        }
        match why {
            "run" => given_up(&fixture).await,
            // The shared session ends, and that of the call.
            _ => sessions_end(&fixture, 2).await,
        }
        assert_eq!(fixture.fixture.counts().calls, 1, "{why}");
        timeout(SOON, world.gateway.drain()).await.expect("a call is left");
    }
}

/// Waits until the gateway has ended this number of sessions at the server.
async fn sessions_end(fixture: &Running, count: u64) {
    let ending = async {
        while fixture.fixture.counts().sessions_deleted < count {
            tokio::task::yield_now().await;
        }
    };
    timeout(SOON, ending).await.expect("the session stays");
}

/// E184: a process for calls with questions ends with its run.
#[tokio::test]
async fn e184_processes_for_questions_end_with_their_run() {
    const ASKS: &str = r#"case $line in
      *'"method":"tools/call"'*) call=$id
        echo '{"jsonrpc":"2.0","id":"q","method":"roots/list"}'; continue ;;
      *'"id":"q"'*) id=$call; answer '{"content":[]}'; continue ;;
    esac"#;
    let Scripted { scripts, world, caller, params, answer } =
        scripted(ASKS, &json!({"roots": {}})).await;
    assert_eq!(scripts.started("one").len(), 2, "the shared one, and one for questions");
    let key = only(&answer);
    let mut other = params.clone();
    other["_meta"] = json!({DECLARED: {"sampling": {}}});
    let refused = world.call(&caller, call(2, &other)).await;
    assert!(refused["result"]["content"].is_array(), "what is not declared is refused: {refused}");
    let answer = world.call(&caller, call(3, &again(&params, &answer, json!({key: {}})))).await;
    assert!(answer["result"]["content"].is_array(), "{answer}");
    let started = scripts.started("one");
    world.gateway.end_run(world.run.id).await.unwrap();
    let ending = async {
        while started[1..].iter().any(|pid| is_alive(*pid)) {
            tokio::task::yield_now().await;
        }
    };
    timeout(SOON, ending).await.expect("a process is left");
    assert!(is_alive(started[0]), "the shared one is others', too");
    world.gateway.drain().await;
}

/// E184: lists do not depend on the capabilities of a modern request. A tool that a legacy server
/// lists only to clients that can be asked questions is called at the server's own endpoint; a
/// legacy client that can be asked sees it.
#[tokio::test]
async fn e184_lists_do_not_depend_on_the_capabilities_of_a_modern_request() {
    const LISTS: &str = r#"case $line in
      *'"method":"initialize"'*) case $line in *'"roots":'*) more=',{"name":"more",
        "inputSchema":{"type":"object"}}' ;; esac ;;
      *'"method":"tools/list"'*)
        answer '{"tools":[{"name":"act","inputSchema":{"type":"object"}}'"$more"']}'; continue ;;
      *'"name":"more"'*) answer '{"content":[{"type":"text","text":"more"}]}'; continue ;;
    esac"#;
    let scripts = Scripts::new();
    let lists = LISTS.replace(",\n        ", ",");
    let entries = vec![scripts.entry("one", ["", &lists, ""])];
    let world = World::settled(entries, GatewayOptions::default()).await;
    let names = |answer: &Value| -> Vec<String> {
        answer["result"]["tools"].as_array().unwrap().iter().map(|one| text(&one["name"])).collect()
    };
    let caller = world.modern_caller(transparent("one"));
    for declared in [json!({}), json!({"roots": {}})] {
        let params = json!({"_meta": {DECLARED: declared}});
        let answer = world.call(&caller, modern(1, "tools/list", params)).await;
        assert_eq!(names(&answer), ["act"], "{answer}");
    }
    let answer = world.call(&caller, call(2, &first("more", &json!({"roots": {}})))).await;
    assert_eq!(answer["result"]["content"][0]["text"], "more", "{answer}");
    let session = world.session(&transparent("one"), json!({"roots": {}})).await;
    let legacy = Caller::new(world.run.clone(), transparent("one"), Some(session));
    let answer = world.ask(&legacy, "tools/list", json!({})).await;
    assert_eq!(names(&answer), ["act", "more"], "{answer}");
    world.gateway.drain().await;
}

/// E184: when the server withdraws a question or ends, nothing is left of the call.
#[tokio::test]
async fn e184_a_parked_call_ends_with_its_server() {
    const ASKS: &str = r#"case $line in *'"method":"tools/call"'*)
        echo '{"jsonrpc":"2.0","id":"q","method":"roots/list"}'; continue ;; esac"#;
    let Scripted { scripts, world, caller, params, answer } =
        scripted(ASKS, &json!({"roots": {}})).await;
    let pid = scripts.started("one")[1].to_string();
    let killed = std::process::Command::new("kill").args(["-9", &pid]).status();
    assert!(killed.unwrap().success());
    none_parked(&world).await;
    let reply = json!({only(&answer): {"roots": []}});
    let answer = world.call(&caller, call(2, &again(&params, &answer, reply))).await;
    assert!(text(&answer["error"]["message"]).contains("is not open any more"), "{answer}");
    world.gateway.drain().await;
}

/// The next message of a call, which is no answer.
async fn message(answering: &mut Answering) -> Value {
    match answering.next().await {
        Some(Step::Message(payload)) => serde_json::from_slice(&payload.into_bytes()).unwrap(),
        other => panic!("{other:?}"),
    }
}

/// E184: progress reaches the open request, before the question and after it.
#[tokio::test]
async fn e184_progress_is_sent_to_the_open_request_before_and_after_a_question() {
    let (world, caller) = one().await;
    let mut params = first("test_streaming_elicitation", &everything());
    params["_meta"]["progressToken"] = json!("first");
    let mut answering = world.gateway.call(&caller, call(1, &params)).await;
    assert_eq!(message(&mut answering).await["params"]["progressToken"], "first");
    let asked = finish(answering).await;
    let reply = json!({only(&asked): accepted(json!({"name": "Ada"}))});
    let mut params = again(&params, &asked, reply);
    params["_meta"]["progressToken"] = json!(2);
    let mut answering = world.gateway.call(&caller, call(2, &params)).await;
    assert_eq!(message(&mut answering).await["params"]["progressToken"], 2);
    let answer = finish(answering).await;
    assert!(answer.to_string().contains("Thank you"), "{answer}");
    world.gateway.drain().await;
}

/// E184: a question on the server's own stream belongs to the only open call. Once several calls
/// were open, each call has a link of its own.
#[tokio::test]
async fn e184_a_question_on_the_servers_stream_belongs_to_the_only_open_call() {
    let quirks = vec![Quirk::SpeakAside];
    let options = Options { eras: Eras::Legacy, quirks, ..Options::default() };
    let world = World::of([("one", options)]).await;
    let caller = world.modern_caller(transparent("one"));
    let name = "test_input_required_result_elicitation";
    let params = first(name, &everything());
    let waiting = world.call(&caller, call(1, &params)).await;
    only(&waiting);
    let refused = world.call(&caller, call(2, &params)).await;
    assert!(refused["error"].is_object(), "it may be the question of either: {refused}");
    for id in 3..5 {
        let answer = world.call(&caller, call(id, &params)).await;
        let reply = json!({only(&answer): accepted(json!({"name": "Eve"}))});
        let answer = world.call(&caller, call(id, &again(&params, &answer, reply))).await;
        assert_eq!(answer["result"]["content"][0]["text"], "Hello, Eve!", "{answer}");
    }
    let reply = json!({only(&waiting): accepted(json!({"name": "Ada"}))});
    let answer = world.call(&caller, call(6, &again(&params, &waiting, reply))).await;
    assert_eq!(answer["result"]["content"][0]["text"], "Hello, Ada!", "{answer}");
    world.gateway.drain().await;
}

/// E44: the time for which a call waits for its client does not count into the call's time.
#[tokio::test]
async fn e44_time_of_a_parked_call_does_not_count_into_its_timeout() {
    let fixture = Running::http(Options { eras: Eras::Legacy, ..Options::default() }).await;
    let fixture = fixture.unwrap();
    let mut server = http_server("one", &fixture.url);
    server.timeout = Some(Duration::from_secs(20));
    let world = World::settled(vec![Entry::Server(server)], GatewayOptions::default()).await;
    let caller = world.modern_caller(transparent("one"));
    let params = first("test_input_required_result_elicitation", &everything());
    let answer = world.call(&caller, call(1, &params)).await;
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(300)).await;
    tokio::time::resume();
    let reply = json!({only(&answer): accepted(json!({"name": "Ada"}))});
    let answer = world.call(&caller, call(2, &again(&params, &answer, reply))).await;
    assert_eq!(answer["result"]["content"][0]["text"], "Hello, Ada!", "{answer}");
    world.gateway.drain().await;
}

/// A server that wants the user to visit a URL before it answers.
const LEADS: &str = r#"case $line in *'"method":"tools/call"'*)
  if [ -e "$PIDS.visited" ]; then answer '{"content":[{"type":"text","text":"in"}]}'; continue; fi
  : > "$PIDS.visited"
  printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32042,"message":"sign in","data":{"elicitations":[{"mode":"url","elicitationId":"e1","url":"https://a.test/","message":"Sign in"}]}}}\n' "$id"
  continue ;; esac"#;

/// E185: a legacy server's error −32042 leads a modern client to the URL, and the client's retry
/// repeats the call. A client that cannot be led there gets an error that names the missing
/// capability.
#[tokio::test]
async fn e185_a_url_error_of_a_legacy_server_becomes_a_url_question() {
    let Scripted { scripts, world, caller, params, answer } =
        scripted(LEADS, &json!({"elicitation": {"url": {}}})).await;
    let key = only(&answer);
    assert_eq!(
        answer["result"]["inputRequests"][&key],
        json!({"method": "elicitation/create",
            "params": {"mode": "url", "url": "https://a.test/", "message": "Sign in"}}),
    );
    let retry = again(&params, &answer, json!({key: {"action": "accept"}}));
    let mut altered = retry.clone();
    altered["arguments"] = json!({"x": 1});
    let refused = world.call(&caller, call(2, &altered)).await;
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    let answer = world.call(&caller, call(3, &retry)).await;
    assert_eq!(answer["result"]["content"][0]["text"], "in", "{answer}");

    let entries = vec![scripts.entry("two", ["", LEADS, ""])];
    let world = World::settled(entries, GatewayOptions::default()).await;
    let caller = world.modern_caller(transparent("two"));
    let answer = world.call(&caller, call(1, &first("act", &json!({"elicitation": {}})))).await;
    assert_eq!(answer["error"]["code"], -32021, "{answer}");
    let required = &answer["error"]["data"]["requiredCapabilities"];
    assert_eq!(*required, json!({"elicitation": {"url": {}}}), "{answer}");
    world.gateway.drain().await;
}

/// E184: a call that waited is one event of the audit.
#[tokio::test]
async fn e184_a_parked_call_is_recorded_as_one_event() {
    let dir = tempfile::tempdir().unwrap();
    let audit = Audit::open(dir.path(), &AuditSettings::default()).unwrap();
    let fixture = Running::http(Options { eras: Eras::Legacy, ..Options::default() }).await;
    let fixture = fixture.unwrap();
    let entries = vec![Entry::Server(http_server("one", &fixture.url))];
    let world = World::recorded(entries, GatewayOptions::default(), None, audit);
    world.gateway.registry().wait_until(SOON, |snapshot| snapshot.is_settled()).await;
    let caller = world.modern_caller(transparent("one"));
    let params = first("test_input_required_result_elicitation", &everything());
    let answer = world.call(&caller, call(1, &params)).await;
    let reply = json!({only(&answer): accepted(json!({"name": "Ada"}))});
    world.call(&caller, call(2, &again(&params, &answer, reply))).await;
    world.gateway.audit().flush().await;
    let text = fs_err::read_to_string(dir.path().join("audit.jsonl")).unwrap();
    let calls: Vec<_> = text.lines().filter(|line| line.contains("tools/call")).collect();
    assert_eq!(calls.len(), 1, "{calls:?}");
    assert!(calls[0].contains(r#""ok""#), "{calls:?}");
    world.gateway.drain().await;
}
