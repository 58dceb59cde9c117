//! Questions in answers of a server of 2026-07-28, asked of clients of older revisions.

use std::{sync::Arc, time::Duration};

use narthex_audit::{Audit, AuditSettings};
use narthex_gateway::{Answering, Caller, Endpoint, GatewayOptions, Session, Step};
use narthex_model::Secret;
use narthex_registry::config::Entry;
use narthex_testkit::fixture::Eras;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::{
    fixture_process,
    scripted::Scripts,
    world::{SOON, World, finish, initialize, legacy, modern, parse, transparent},
};

fn all() -> Value {
    json!({"sampling": {}, "elicitation": {}, "roots": {"listChanged": true}})
}

fn value(payload: narthex_wire::Payload) -> Value {
    serde_json::from_slice(&payload.into_bytes()).unwrap()
}

/// The answer of a client with all capabilities.
fn reply(question: &Value) -> Value {
    match question["method"].as_str().unwrap() {
        "sampling/createMessage" => json!({"role": "assistant", "model": "m",
            "content": {"type": "text", "text": "blue"}}),
        "roots/list" => json!({"roots": [{"uri": "file:///home/ada"}]}),
        _ => json!({"action": "accept", "content": {"name": "ada", "username": "ada",
            "email": "a@b.c", "ok": true, "color": "red", "text": "t"}}),
    }
}

/// A client and its session at one endpoint.
struct Client<'w> {
    world: &'w World,
    caller: Caller,
    prefix: &'static str,
}

impl<'w> Client<'w> {
    async fn at(world: &'w World, endpoint: Endpoint, revision: &str, can: Value) -> Self {
        let request = initialize(revision, can);
        let (answering, session) = world.gateway.initialize(&world.run, &endpoint, &request).await;
        finish(answering).await;
        let prefix = if endpoint == Endpoint::Aggregated { "mcp__one__" } else { "" };
        Self { world, caller: Caller::new(world.run.clone(), endpoint, session), prefix }
    }

    /// Opens a client's session at the endpoint of the server `one`.
    async fn new(world: &'w World, can: Value) -> Self {
        Self::at(world, transparent("one"), "2025-11-25", can).await
    }

    fn session(&self) -> &Arc<Session> {
        self.caller.session.as_ref().unwrap()
    }

    async fn call(&self, id: u64, tool: &str) -> Answering {
        let arguments = json!({"prompt": "p", "message": "m"});
        let call = json!({"name": format!("{}{tool}", self.prefix), "arguments": arguments});
        self.world.gateway.call(&self.caller, legacy(id, "tools/call", call)).await
    }

    async fn respond(&self, question: &Value, member: &str, said: Value) {
        let response = json!({"jsonrpc": "2.0", "id": question["id"], member: said});
        self.world.gateway.respond(self.session(), parse(&response)).await;
    }

    /// Answers all questions of a call as they come; returns the questions, and the answer.
    async fn finish(&self, answering: Answering) -> (Vec<Value>, Value) {
        self.finish_with(answering, reply).await
    }

    async fn finish_with(
        &self,
        mut answering: Answering,
        reply: impl Fn(&Value) -> Value,
    ) -> (Vec<Value>, Value) {
        let mut asked = Vec::new();
        loop {
            match next(&mut answering).await {
                Step::Message(payload) => {
                    let message = value(payload);
                    if message.get("id").is_some() {
                        self.respond(&message, "result", reply(&message)).await;
                    }
                    asked.push(message);
                }
                Step::Break { .. } => {}
                Step::Answer(answer) => return (asked, value(answer.payload)),
            }
        }
    }

    async fn cancel(&self, id: u64) {
        let params = json!({"requestId": id});
        let cancelled =
            json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params});
        self.world.gateway.notify(&self.caller, parse(&cancelled)).await;
    }
}

async fn next(answering: &mut Answering) -> Step {
    timeout(SOON, answering.next()).await.expect("nothing comes").expect("an answer")
}

/// The next message, which is a question.
async fn question(answering: &mut Answering) -> Value {
    let Step::Message(payload) = next(answering).await else { panic!("it is answered") };
    let message = value(payload);
    assert!(message.get("id").is_some(), "no question: {message}");
    message
}

fn error(answer: &Value) -> &Value {
    &answer["result"]["structuredContent"]["error"]
}

/// A part of a script that makes the script a server of 2026-07-28 that notes all calls.
const MODERN: &str = r#"case $line in
    *'"method":"server/discover"'*) answer '{"resultType":"complete","ttlMs":0,
      "cacheScope":"private","supportedVersions":["2026-07-28"],
      "capabilities":{"tools":{}}}' | tr -d '\n'; echo; continue ;;
    *'"method":"initialize"'*)
      printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}\n' "$id"
      continue ;;
    *'"method":"tools/call"'*) echo "$line" >> "$PIDS.said" ;;
    esac
    ask() { answer '{"resultType":"input_required","inputRequests":{"q":'"$1"'}}'; }"#;

/// A server that asks the question that its tool is named for, and ignores capabilities.
const ASKS: &str = r#"case $line in
    *'"method":"tools/list"'*) answer '{"resultType":"complete","ttlMs":0,
      "cacheScope":"private","tools":[{"name":"act","inputSchema":{"type":"object"}},
      {"name":"roots","inputSchema":{"type":"object"}},
      {"name":"sample","inputSchema":{"type":"object"}},
      {"name":"tools","inputSchema":{"type":"object"}},
      {"name":"form","inputSchema":{"type":"object"}},
      {"name":"url","inputSchema":{"type":"object"}},
      {"name":"odd","inputSchema":{"type":"object"}},
      {"name":"two","inputSchema":{"type":"object"}},
      {"name":"leave","inputSchema":{"type":"object"}}]}' | tr -d '\n'; echo; continue ;;
    *'"method":"tools/call"'*'"name":"roots"'*) ask '{"method":"roots/list"}'; continue ;;
    *'"method":"tools/call"'*'"name":"sample"'*)
      ask '{"method":"sampling/createMessage","params":{"messages":[],"maxTokens":1}}'; continue ;;
    *'"method":"tools/call"'*'"name":"tools"'*)
      ask '{"method":"sampling/createMessage","params":{"messages":[],"tools":[]}}'; continue ;;
    *'"method":"tools/call"'*'"name":"form"'*'"inputResponses"'*)
      answer '{"resultType":"complete","content":[{"type":"text","text":"thank you"}]}'
      continue ;;
    *'"method":"tools/call"'*'"name":"form"'*)
      ask '{"method":"elicitation/create","params":{"mode":"form","message":"'"$SECRET"'",
        "_meta":{"io.modelcontextprotocol/logLevel":"info","vendor":1}}}' | tr -d '\n'; echo
      continue ;;
    *'"method":"tools/call"'*'"name":"url"'*'"inputResponses"'*)
      answer '{"resultType":"complete","content":[]}'; continue ;;
    *'"method":"tools/call"'*'"name":"url"'*)
      ask '{"method":"elicitation/create","params":{"mode":"url","message":"m","url":"http://u"}}'
      continue ;;
    *'"method":"tools/call"'*'"name":"odd"'*) ask '{"method":"tools/list"}'; continue ;;
    *'"method":"tools/call"'*'"name":"two"'*)
      answer '{"resultType":"input_required","inputRequests":
        {"q":{"method":"roots/list"},"q":{"method":"roots/list"}}}' | tr -d '\n'; echo; continue ;;
    *'"method":"tools/call"'*'"name":"leave"'*)
      ask '{"method":"roots/list"}'; read -r line < "$PIDS.leave"; exit 0 ;;
    esac"#;

/// A server that asks in a way that two programs may read differently, and for `fine` as vendors
/// do.
const AMBIGUOUS: &str = r#"case $line in
    *'"method":"tools/call"'*'"what":"fine"'*)
      ask '{"method":"elicitation/create","params":{"message":"m","acme":{"Mode":1}}}'; continue ;;
    *'"method":"tools/call"'*)
      ask '{"method":"elicitation/create","params":{"mode":"form","Mode":"url"}}'; continue ;;
    esac"#;

/// A legacy server that asks in such a way, and answers with the client's answer.
const LEGACY_AMBIGUOUS: &str = r#"ask() {
      echo '{"jsonrpc":"2.0","id":"q1","method":"elicitation/create","params":'"$1"'}'; }
    case $line in
    *'"method":"tools/call"'*'"what":"case"'*) call=$id
      ask '{"message":"m","Mode":"url"}'; continue ;;
    *'"method":"tools/call"'*) call=$id; ask '{"message":"m","message":"n"}'; continue ;;
    *'"q1"'*'"error"'*) heard=${line#*'"message":"'}; heard=${heard%%'"'*}
      id=$call; answer '{"content":[{"type":"text","text":"'"$heard"'"}]}'; continue ;;
    esac"#;

/// A server that asks for another round at each call.
const NEVER_ENOUGH: &str = r#"case $line in
    *'"method":"tools/call"'*) ask '{"method":"roots/list"}'; continue ;;
    esac"#;

/// A gateway over a script of 2026-07-28 that is called `one`.
async fn scripted(scripts: &Scripts, does: &str) -> World {
    let does = format!("{MODERN}\n{does}");
    let entries = vec![scripts.entry("one", ["", &does, ""])];
    World::settled(entries, GatewayOptions::default()).await
}

/// Worlds with a server of 2026-07-28, over HTTP and over stdio.
async fn worlds() -> [(&'static str, World); 2] {
    let over_stdio = vec![Entry::Server(fixture_process::server("one", "modern"))];
    [
        ("http", World::with(&[("one", Eras::Modern)]).await),
        ("stdio", World::settled(over_stdio, GatewayOptions::default()).await),
    ]
}

/// E174: every kind of question reaches a legacy client as a separate request, over HTTP and stdio,
/// at both kinds of endpoint. The client's answers reach the server, with the state.
#[tokio::test]
async fn e174_a_modern_server_asks_a_legacy_client() {
    for (what, world) in worlds().await {
        for endpoint in [transparent("one"), Endpoint::Aggregated] {
            let client = Client::at(&world, endpoint, "2025-11-25", all()).await;
            for (number, (tool, questions, wanted)) in [
                ("test_sampling", &["sampling/createMessage"][..], "LLM response: blue"),
                ("test_elicitation", &["elicitation/create"], r#""username":"ada""#),
                ("test_input_required_result_list_roots", &["roots/list"], "file:///home/ada"),
                ("test_input_required_result_request_state", &["elicitation/create"], "state-ok"),
                (
                    "test_input_required_result_multi_round",
                    &["elicitation/create", "elicitation/create"],
                    "ada likes red",
                ),
            ]
            .into_iter()
            .enumerate()
            {
                let call = client.call(number as u64, tool).await;
                let (asked, answer) = client.finish(call).await;
                let methods: Vec<_> = asked.iter().map(|one| one["method"].clone()).collect();
                assert_eq!(methods, questions, "{what} {tool}: {answer}");
                let text = answer["result"]["content"][0]["text"].as_str();
                assert!(text.is_some_and(|text| text.contains(wanted)), "{what} {tool}: {answer}");
                assert_eq!(answer["id"], number, "{answer}");
                assert!(answer["result"].get("resultType").is_none(), "{answer}");
            }
        }
        world.gateway.drain().await;
    }
}

/// E174: prompts ask, too, also by the gateway's tool for prompts.
#[tokio::test]
async fn e174_a_prompt_asks_a_legacy_client() {
    let world = World::with(&[("one", Eras::Modern)]).await;
    for (endpoint, prefix) in [(transparent("one"), ""), (Endpoint::Aggregated, "mcp__one__")] {
        let client = Client::at(&world, endpoint, "2025-06-18", all()).await;
        let params = json!({"name": format!("{prefix}test_input_required_result_prompt"),
            "arguments": {}});
        let call = world.gateway.call(&client.caller, legacy(1, "prompts/get", params)).await;
        let (asked, answer) = client.finish(call).await;
        assert_eq!(asked.len(), 1, "{asked:?}");
        assert!(answer["result"]["messages"].is_array(), "{answer}");
    }
    let client = Client::at(&world, Endpoint::Aggregated, "2025-11-25", all()).await;
    let own = json!({"name": "mcp__one__get_prompt",
        "arguments": {"name": "test_input_required_result_prompt"}});
    let call = world.gateway.call(&client.caller, legacy(2, "tools/call", own)).await;
    let (asked, answer) = client.finish(call).await;
    assert_eq!(asked.len(), 1, "{asked:?}");
    assert!(answer["result"]["content"].is_array(), "{answer}");
    assert_ne!(answer["result"]["isError"], true, "{answer}");
    world.gateway.drain().await;
}

/// E174: the questions of one answer are open at the same time, and their answers may come in any
/// order. An answer from another session with the same id does not count, nor does a second answer.
#[tokio::test]
async fn e174_questions_of_one_answer_are_open_at_the_same_time() {
    let world = World::with(&[("one", Eras::Modern)]).await;
    let client = Client::new(&world, all()).await;
    let other = Client::new(&world, all()).await;
    let mut call = client.call(1, "test_input_required_result_multiple_inputs").await;
    let mut asked = Vec::new();
    for _ in 0..3 {
        asked.push(question(&mut call).await);
    }
    let ids: std::collections::HashSet<_> = asked.iter().map(|one| one["id"].as_u64()).collect();
    assert_eq!(ids.len(), 3, "{asked:?}");
    asked.reverse();
    for question in &asked {
        other.respond(question, "result", json!({"roots": [], "content": {}})).await;
    }
    let wrong = json!({"id": 9_999_999});
    client.respond(&wrong, "result", json!({})).await;
    for question in &asked {
        client.respond(question, "result", reply(question)).await;
        client.respond(question, "result", json!({"roots": [], "content": {}})).await;
    }
    let (more, answer) = client.finish(call).await;
    assert!(more.is_empty(), "{more:?}");
    let text = answer["result"]["content"][0]["text"].as_str().unwrap();
    assert_eq!(text, r#"ada, "blue", [{"uri":"file:///home/ada"}]"#, "{answer}");
    world.gateway.drain().await;
}

/// E175: a modern server gets the capabilities that a session's client has declared, and no more.
#[tokio::test]
async fn e175_a_modern_server_gets_only_the_declared_capabilities_of_the_client() {
    let scripts = Scripts::new();
    let world = scripted(&scripts, ASKS).await;
    let told = |capabilities: &str| {
        let member = format!(r#""io.modelcontextprotocol/clientCapabilities":{capabilities}"#);
        let said = scripts.said("one");
        let last = said.lines().last().unwrap().to_owned();
        assert!(last.contains(&member), "{member} {last}");
    };
    let form_and_url = json!({"elicitation": {"form": {}, "url": {}}, "tasks": {"list": {}},
        "experimental": {"a": {}}});
    let table = [
        ("2025-11-25", json!({}), "{}"),
        ("2025-11-25", json!({"sampling": {"tools": {}}}), r#"{"sampling":{"tools":{}}}"#),
        ("2025-11-25", json!({"roots": {"listChanged": true}}), r#"{"roots":{}}"#),
        ("2025-11-25", form_and_url.clone(), r#"{"elicitation":{"form":{},"url":{}}}"#),
        ("2025-06-18", form_and_url, r#"{"elicitation":{"form":{}}}"#),
    ];
    for (revision, can, wanted) in table {
        let client = Client::at(&world, transparent("one"), revision, can).await;
        let call = client.call(1, "act").await;
        finish(call).await;
        told(wanted);
    }
    world.gateway.drain().await;
}

/// E175: a client gets no question for undeclared capabilities, whatever the server does: the call
/// fails, and the error names the question.
#[tokio::test]
async fn e175_an_undeclared_question_fails_the_call() {
    let scripts = Scripts::new();
    let world = scripted(&scripts, ASKS).await;
    let client = Client::new(&world, json!({"sampling": {}, "elicitation": {"url": {}}})).await;
    for (tool, capability) in
        [("roots", "roots"), ("tools", "sampling.tools"), ("form", "elicitation.form")]
    {
        let (asked, answer) = client.finish(client.call(1, tool).await).await;
        assert!(asked.is_empty(), "{tool}: {asked:?}");
        let error = error(&answer);
        assert_eq!(error["kind"], "server_error", "{tool}: {answer}");
        assert_eq!(error["details"]["capability"], capability, "{answer}");
        assert_eq!(error["details"]["question"], "q", "{answer}");
    }
    let old = json!({"elicitation": {"form": {}, "url": {}}});
    let old = Client::at(&world, transparent("one"), "2025-06-18", old).await;
    let (_, answer) = old.finish(old.call(1, "url").await).await;
    assert_eq!(error(&answer)["details"]["capability"], "elicitation.url", "{answer}");
    let nothing = Client::new(&world, json!({})).await;
    let (asked, answer) = nothing.finish(nothing.call(1, "sample").await).await;
    assert!(asked.is_empty(), "{asked:?}");
    assert_eq!(error(&answer)["details"]["capability"], "sampling", "{answer}");
    for tool in ["odd", "two"] {
        let (asked, answer) = client.finish(client.call(1, tool).await).await;
        assert!(asked.is_empty(), "{tool}: {asked:?}");
        assert_eq!(error(&answer)["kind"], "server_error", "{tool}: {answer}");
    }
    assert_eq!(scripts.said("one").lines().count(), 7, "a call was made again");
    world.gateway.drain().await;
}

/// S12: an ambiguous question does not reach a client of the server's own era, either. A legacy
/// server gets an error at once.
#[tokio::test]
async fn s12_an_ambiguous_question_reaches_no_client_of_the_servers_era() {
    let scripts = Scripts::new();
    let world = scripted(&scripts, AMBIGUOUS).await;
    let caller = world.modern_caller(transparent("one"));
    let call = async |what: &str| {
        let can = json!({"io.modelcontextprotocol/clientCapabilities": all()});
        let params = json!({"name": "act", "arguments": {"what": what}, "_meta": can});
        world.call(&caller, modern(1, "tools/call", params)).await
    };
    let answer = call("case").await;
    assert_eq!(error(&answer)["kind"], "server_error", "{answer}");
    let why = error(&answer)["message"].as_str().unwrap();
    assert!(why.contains("is ambiguous") && why.contains("`Mode`"), "{why}");
    let answer = call("fine").await;
    assert_eq!(answer["result"]["inputRequests"]["q"]["params"]["acme"]["Mode"], 1, "{answer}");
    world.gateway.drain().await;

    let entries = vec![scripts.entry("two", ["", LEGACY_AMBIGUOUS, ""])];
    let world = World::settled(entries, GatewayOptions::default()).await;
    let client = Client::at(&world, transparent("two"), "2025-11-25", all()).await;
    for (what, heard) in [("case", "is ambiguous"), ("twice", "request is unusable")] {
        let call = json!({"name": "act", "arguments": {"what": what}});
        let call = world.gateway.call(&client.caller, legacy(1, "tools/call", call)).await;
        let (asked, answer) = client.finish(call).await;
        assert!(asked.is_empty(), "{asked:?}");
        let text = answer["result"]["content"][0]["text"].as_str();
        assert!(text.is_some_and(|text| text.contains(heard)), "{what}: {answer}");
    }
    world.gateway.drain().await;
}

/// E176: a question has the form of the client's revision.
#[tokio::test]
async fn e176_a_question_has_the_form_of_the_clients_revision() {
    let scripts = Scripts::new();
    let world = scripted(&scripts, ASKS).await;
    let can = json!({"elicitation": {"form": {}, "url": {}}});
    for (revision, mode) in [("2025-11-25", json!("form")), ("2025-06-18", Value::Null)] {
        let client = Client::at(&world, transparent("one"), revision, can.clone()).await;
        let (asked, answer) = client.finish(client.call(1, "form").await).await;
        assert_eq!(answer["result"]["content"][0]["text"], "thank you", "{answer}");
        assert_eq!(asked[0]["params"]["mode"], mode, "{asked:?}");
        assert_eq!(asked[0]["params"]["_meta"], json!({"vendor": 1}), "{asked:?}");
    }
    let client = Client::at(&world, transparent("one"), "2025-11-25", can).await;
    let mut pages = std::collections::HashSet::new();
    for id in 0..2 {
        let (asked, _) = client.finish(client.call(id, "url").await).await;
        let page = asked[0]["params"]["elicitationId"].as_str().expect("no id of the page");
        assert!(page.len() > 16 && pages.insert(page.to_owned()), "{asked:?}");
    }
    world.gateway.drain().await;
}

/// E177: an error of the client is the word for "no choice" where a user was to be asked. Elsewhere
/// the error ends the call, and names the question. The gateway withdraws other questions.
#[tokio::test]
async fn e177_an_error_of_the_client_cancels_an_elicitation_or_fails_the_call() {
    let world = World::with(&[("one", Eras::Modern)]).await;
    let client = Client::new(&world, all()).await;
    let refusal = json!({"code": -1, "message": "the user says no"});

    let mut call = client.call(1, "test_input_required_result_elicitation").await;
    let asked = question(&mut call).await;
    client.respond(&asked, "error", refusal.clone()).await;
    let (_, answer) = client.finish(call).await;
    assert_eq!(answer["result"]["content"][0]["text"], "Hello, (cancel)!", "{answer}");

    let mut call = client.call(2, "test_input_required_result_multiple_inputs").await;
    let mut asked = Vec::new();
    for _ in 0..3 {
        asked.push(question(&mut call).await);
    }
    let is_of = |method: &'static str| move |one: &&Value| one["method"] == method;
    let sampling = asked.iter().find(is_of("sampling/createMessage")).unwrap();
    client.respond(sampling, "error", refusal).await;
    let (said, answer) = client.finish(call).await;
    let error = error(&answer);
    assert_eq!(error["kind"], "server_error", "{answer}");
    let details = json!({"question": "greeting", "method": "sampling/createMessage", "code": -1});
    assert_eq!(error["details"], details, "{answer}");
    assert!(error["message"].as_str().unwrap().contains("the user says no"), "{answer}");
    let open: Vec<_> = asked.iter().filter(|one| one["id"] != sampling["id"]).collect();
    let taken_back: Vec<_> = said.iter().map(|one| &one["params"]["requestId"]).collect();
    assert_eq!(taken_back, open.iter().map(|one| &one["id"]).collect::<Vec<_>>(), "{said:?}");
    assert!(said.iter().all(|one| one["method"] == "notifications/cancelled"), "{said:?}");

    let mut call = client.call(3, "test_input_required_result_list_roots").await;
    let asked = question(&mut call).await;
    client.respond(&asked, "result", json!(["no object"])).await;
    let (_, answer) = client.finish(call).await;
    assert_eq!(self::error(&answer)["kind"], "server_error", "{answer}");
    world.gateway.drain().await;
}

/// E178: questions end with their call, no matter which side ends the call. The client is notified,
/// a late answer reaches no server, and no question keeps a place.
#[tokio::test]
async fn e178_questions_are_cancelled_when_their_call_ends() {
    let scripts = Scripts::new();
    let world = scripted(&scripts, ASKS).await;
    let client = Client::new(&world, all()).await;
    let mut outbox = client.session().take_outbox().unwrap();
    // These are more questions than may be open at one time.
    for id in 0..70 {
        let mut call = client.call(id, "form").await;
        let asked = question(&mut call).await;
        let taken_back = if id % 2 == 0 {
            client.cancel(id).await;
            let Step::Message(payload) = next(&mut call).await else { panic!("it is answered") };
            assert!(call.next().await.is_none(), "a call that was taken back is answered");
            payload
        } else {
            drop(call);
            timeout(SOON, outbox.recv()).await.expect("nothing comes").unwrap()
        };
        let taken_back = value(taken_back);
        assert_eq!(taken_back["method"], "notifications/cancelled", "{taken_back}");
        assert_eq!(taken_back["params"]["requestId"], asked["id"], "{taken_back}");
        client.respond(&asked, "result", reply(&asked)).await;
    }
    assert_eq!(scripts.said("one").lines().count(), 70, "a call was made again");

    let mut call = client.call(100, "form").await;
    question(&mut call).await;
    world.gateway.end_session(client.session()).await;
    let (_, answer) = client.finish(call).await;
    assert_eq!(answer["error"]["code"], -32001, "{answer}");
    world.gateway.drain().await;
}

/// E178: a server that is lost while its question is open fails the call at once.
#[tokio::test]
async fn e178_the_question_of_a_lost_server_is_cancelled_and_its_call_fails() {
    let scripts = Scripts::new();
    let leave = scripts.pipe("one.leave");
    let world = scripted(&scripts, ASKS).await;
    let client = Client::new(&world, all()).await;
    let mut call = client.call(1, "leave").await;
    let asked = question(&mut call).await;
    tokio::task::spawn_blocking(move || fs_err::write(leave, "now\n").unwrap()).await.unwrap();
    let Step::Message(payload) = next(&mut call).await else { panic!("it is answered") };
    assert_eq!(value(payload)["params"]["requestId"], asked["id"]);
    let answer = finish(call).await;
    assert_eq!(error(&answer)["kind"], "transport_error", "{answer}");
    world.gateway.drain().await;
}

/// E174: a call has ten further rounds, each under a new id and with the answers of the last round
/// alone. The gateway sends no state that the server did not give. A client sends neither by
/// itself.
#[tokio::test]
async fn e174_a_call_has_at_most_ten_further_rounds() {
    let scripts = Scripts::new();
    let world = scripted(&scripts, NEVER_ENOUGH).await;
    let client = Client::new(&world, all()).await;
    let call = json!({"name": "act", "requestState": "mine", "inputResponses": {"q": {"my": 1}}});
    let call = world.gateway.call(&client.caller, legacy(1, "tools/call", call)).await;
    let number = std::cell::Cell::new(0);
    let reply = |_: &Value| {
        number.set(number.get() + 1);
        json!({"roots": [], "number": number.get()})
    };
    let (asked, answer) = client.finish_with(call, reply).await;
    assert_eq!(asked.len(), 10, "{asked:?}");
    assert_eq!(error(&answer)["kind"], "server_error", "{answer}");
    let said = scripts.said("one");
    let calls: Vec<Value> = said.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(calls.len(), 11, "{said}");
    let ids: std::collections::HashSet<_> = calls.iter().map(|call| call["id"].as_u64()).collect();
    assert_eq!(ids.len(), 11, "{said}");
    for (number, call) in calls.iter().enumerate() {
        let brought = match number {
            0 => Value::Null,
            number => json!({"q": {"roots": [], "number": number}}),
        };
        assert_eq!(call["params"]["inputResponses"], brought, "{call}");
        assert_eq!(call["params"]["requestState"], Value::Null, "{call}");
    }
    world.gateway.drain().await;
}

/// E179: the time for which a person is asked does not count into the call's time. That time is
/// limited, and the error names the party that did not answer.
#[tokio::test]
async fn e179_time_of_an_open_question_does_not_count_into_the_calls_timeout() {
    let scripts = Scripts::new();
    let mut server = scripts.server("one", ["", &format!("{MODERN}\n{ASKS}"), ""]);
    server.timeout = Some(SOON);
    let entries = vec![Entry::Server(server)];
    let world = World::settled(entries, GatewayOptions::default()).await;
    let client = Client::new(&world, all()).await;
    let mut call = client.call(1, "form").await;
    let asked = question(&mut call).await;
    tokio::time::pause();
    let waited = timeout(Duration::from_secs(300), call.next()).await;
    assert!(waited.is_err(), "{waited:?}");
    tokio::time::resume();
    client.respond(&asked, "result", reply(&asked)).await;
    let (_, answer) = client.finish(call).await;
    assert_eq!(answer["result"]["content"][0]["text"], "thank you", "{answer}");

    let mut call = client.call(2, "form").await;
    let asked = question(&mut call).await;
    tokio::time::pause();
    let step = call.next().await.unwrap();
    tokio::time::resume();
    let Step::Message(payload) = step else { panic!("{step:?}") };
    assert_eq!(value(payload)["params"]["requestId"], asked["id"]);
    let answer = finish(call).await;
    let error = error(&answer);
    assert_eq!(error["kind"], "timeout", "{answer}");
    assert!(error["message"].as_str().unwrap().contains("the client did not answer"), "{answer}");
    world.gateway.drain().await;
}

/// E174, S27: a call is one event of the audit, however many rounds it has, and no secret of its
/// server is in a question.
#[tokio::test]
async fn e174_a_call_is_recorded_once_and_its_questions_have_no_secrets() {
    const SECRET: &str = "hunter2-of-the-server";
    let (scripts, dir) = (Scripts::new(), tempfile::tempdir().unwrap());
    let audit = Audit::open(dir.path(), &AuditSettings::default()).unwrap();
    let first = format!("SECRET={SECRET}");
    let mut server = scripts.server("one", [&first, &format!("{MODERN}\n{ASKS}"), ""]);
    server.filled_in.push(Secret::new(SECRET));
    let entries = vec![Entry::Server(server)];
    let world = World::recorded(entries, GatewayOptions::default(), None, audit.clone());
    world.gateway.registry().wait_until(SOON, |snapshot| snapshot.is_settled()).await;
    let client = Client::new(&world, all()).await;
    let (asked, answer) = client.finish(client.call(1, "form").await).await;
    assert_eq!(answer["result"]["content"][0]["text"], "thank you", "{answer}");
    let message = asked[0]["params"]["message"].as_str().unwrap();
    assert!(!message.is_empty() && !message.contains(SECRET), "{asked:?}");
    world.gateway.drain().await;
    audit.flush().await;
    let text = fs_err::read_to_string(dir.path().join("audit.jsonl")).unwrap();
    let calls: Vec<Value> = text
        .lines()
        .filter(|line| line.contains(r#""tools/call""#))
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(calls.len(), 1, "{text}");
    assert_eq!((&calls[0]["outcome"], &calls[0]["details"]["rounds"]), (&json!("ok"), &json!(1)));
}

/// E174: the questions that wait for a client are limited, and one more fails its call alone.
#[tokio::test]
async fn e174_questions_to_one_client_are_limited() {
    let scripts = Scripts::new();
    let world = scripted(&scripts, ASKS).await;
    let client = Client::new(&world, all()).await;
    let mut open = Vec::new();
    for id in 0..64 {
        let mut call = client.call(id, "form").await;
        let asked = question(&mut call).await;
        open.push((call, asked));
    }
    let (asked, answer) = client.finish(client.call(100, "form").await).await;
    assert!(asked.is_empty(), "{asked:?}");
    assert_eq!(error(&answer)["kind"], "limit_exceeded", "{answer}");
    let (call, asked) = open.pop().unwrap();
    client.respond(&asked, "result", reply(&asked)).await;
    let (_, answer) = client.finish(call).await;
    assert_eq!(answer["result"]["content"][0]["text"], "thank you", "{answer}");
    let (asked, _) = client.finish(client.call(101, "form").await).await;
    assert_eq!(asked.len(), 1, "the place is not free");
    drop(open);
    world.gateway.drain().await;
}
