//! Servers that speak both eras. The gateway finds that out by trying once.
#![expect(clippy::excessive_nesting, reason = "each pair of eras by each transport")]

use std::time::Duration;

use narthex_gateway::{Caller, Endpoint, GatewayOptions, Step};
use narthex_policy::RunPolicy;
use narthex_registry::config::Entry;
use narthex_testkit::{
    clock::SteppedClock,
    fixture::{Eras, Options, Quirk, Running},
};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::{
    fixture_process,
    scripted::Scripts,
    world::{SOON, World, http_server, legacy, modern, parse, transparent},
};

/// All capabilities of a legacy client that can be asked.
fn all_capabilities() -> Value {
    json!({"sampling": {}, "elicitation": {}, "roots": {"listChanged": true}})
}

/// Worlds with a server of both eras that lists only 2026-07-28: over HTTP, and over stdio.
async fn worlds() -> [(&'static str, World); 2] {
    let over_stdio = vec![Entry::Server(fixture_process::server("one", "both"))];
    [
        ("http", World::with(&[("one", Eras::Both)]).await),
        ("stdio", World::settled(over_stdio, GatewayOptions::default()).await),
    ]
}

fn value(payload: narthex_wire::Payload) -> Value {
    serde_json::from_slice(&payload.into_bytes()).unwrap()
}

/// Calls a tool, and gives `reply` to each question that reaches the client in any way. Returns all
/// messages that the client got, the answer last.
async fn converse(world: &World, caller: &Caller, call: Value, reply: &Value) -> Vec<Value> {
    let session = caller.session.as_ref().unwrap();
    let mut outbox = session.take_outbox().unwrap();
    let mut answering = world.gateway.call(caller, legacy(5, "tools/call", call)).await;
    let mut got = Vec::new();
    loop {
        let message = tokio::select! {
            biased;
            Some(payload) = outbox.recv() => value(payload),
            step = answering.next() => match step.expect("an answer") {
                Step::Message(payload) => value(payload),
                Step::Break { .. } => continue,
                Step::Answer(answer) => {
                    got.push(value(answer.payload));
                    return got;
                }
            },
        };
        if let Some(id) = message.get("id") {
            let response = json!({"jsonrpc": "2.0", "id": id, "result": reply});
            world.gateway.respond(session, parse(&response)).await;
        }
        got.push(message);
    }
}

/// D12, D31: the gateway reaches a server of both eras in the client's era, whatever versions the
/// server lists. So the server can ask a legacy client, over HTTP and stdio, at both kinds of
/// endpoint.
#[tokio::test]
async fn d12_a_server_of_both_eras_asks_a_legacy_client() {
    let sampled = json!({"role": "assistant", "model": "m",
        "content": {"type": "text", "text": "blue"}});
    let elicited = json!({"action": "accept", "content": {"username": "ada", "email": "a@b.c"}});
    for (what, world) in worlds().await {
        for (endpoint, prefix) in [(transparent("one"), ""), (Endpoint::Aggregated, "mcp__one__")] {
            for (tool, reply, wanted) in
                [("test_sampling", &sampled, "blue"), ("test_elicitation", &elicited, "ada")]
            {
                let session = world.session(&endpoint, all_capabilities()).await;
                let caller = Caller::new(world.run.clone(), endpoint.clone(), Some(session));
                let call = json!({"name": format!("{prefix}{tool}"),
                    "arguments": {"prompt": "p", "message": "m"}});
                let talking = converse(&world, &caller, call, reply);
                let got = timeout(SOON, talking).await.expect("it is not answered");
                let asked = got.iter().filter(|message| message.get("id").is_some()).count();
                assert_eq!(asked, 2, "{what} {tool}: one question and the answer: {got:?}");
                assert!(got.last().unwrap().to_string().contains(wanted), "{what}: {got:?}");
            }
        }
        world.gateway.drain().await;
    }
}

/// D12, D31: log messages of a server of both eras reach a legacy client, over HTTP and stdio.
#[tokio::test]
async fn d12_a_server_of_both_eras_logs_for_a_legacy_client() {
    for (what, world) in worlds().await {
        let session = world.session(&transparent("one"), all_capabilities()).await;
        let caller = Caller::new(world.run.clone(), transparent("one"), Some(session));
        let set =
            world.call(&caller, legacy(1, "logging/setLevel", json!({"level": "info"}))).await;
        assert_eq!(set["result"], json!({}), "{what}");
        let call = json!({"name": "test_tool_with_logging", "arguments": {}});
        let got = timeout(SOON, converse(&world, &caller, call, &Value::Null)).await;
        let got = got.expect("it is not answered");
        let logs = got.iter().filter(|message| message["method"] == "notifications/message");
        assert!(logs.count() > 0, "{what}: {got:?}");
        world.gateway.drain().await;
    }
}

/// D12, D31: the gateway tries once if a server answers `initialize`, however many clients come at
/// once. A server that refuses serves all clients in its own era.
#[tokio::test]
async fn d12_a_server_that_refuses_the_handshake_is_tried_once() {
    let world = World::with(&[("one", Eras::Modern)]).await;
    let call = async |endpoint: Endpoint, capabilities: Value| {
        let prefix = if endpoint == Endpoint::Aggregated { "mcp__one__" } else { "" };
        let session = world.session(&endpoint, capabilities).await;
        let caller = Caller::new(world.run.clone(), endpoint, Some(session));
        let params = json!({"name": format!("{prefix}echo"), "arguments": {"message": "hello"}});
        let answer = world.call(&caller, legacy(3, "tools/call", params)).await;
        assert!(answer["result"].to_string().contains("hello"), "{answer}");
    };
    let refused = || world.fixtures[0].fixture.counts().initializes_refused;
    assert_eq!(refused(), 0, "no caller has needed a legacy link yet");
    tokio::join!(
        call(transparent("one"), all_capabilities()),
        call(transparent("one"), json!({})),
        call(Endpoint::Aggregated, all_capabilities()),
        call(Endpoint::Aggregated, json!({})),
    );
    assert_eq!(refused(), 1);
    call(transparent("one"), all_capabilities()).await;
    assert_eq!(refused(), 1, "it was tried again");
    let caller = world.modern_caller(transparent("one"));
    let params = json!({"name": "echo", "arguments": {"message": "hello"}});
    world.call(&caller, modern(1, "tools/call", params)).await;
    assert_eq!(refused(), 1, "a modern client has no need of it");
    world.gateway.drain().await;
}

/// D12, D31: the dialect that the gateway has learnt holds for the definition. It holds for no
/// other definition, and not after a person has connected the server anew.
#[tokio::test]
async fn d12_the_era_of_a_server_is_remembered_for_its_definition() {
    let options = Options { eras: Eras::Modern, ..Options::default() };
    let fixture = Running::http(options).await.unwrap();
    let servers = || vec![Entry::Server(http_server("one", &fixture.url))];
    let world = World::settled(servers(), GatewayOptions::default()).await;
    let refused = || fixture.fixture.counts().initializes_refused;
    let open = async || drop(world.session(&transparent("one"), all_capabilities()).await);
    open().await;
    assert_eq!(refused(), 1);
    let registry = world.gateway.registry();
    registry.apply(servers().into_iter().map(Into::into).collect()).unwrap();
    open().await;
    assert_eq!(refused(), 1, "the definition is the same");
    registry.reconnect("one").await.unwrap();
    open().await;
    assert_eq!(refused(), 2, "the server may be another by now");
    let mut changed = http_server("one", &fixture.url);
    changed.timeout = Some(SOON);
    registry.apply(vec![Entry::Server(changed).into()]).unwrap();
    open().await;
    assert_eq!(refused(), 3, "the definition is another");
    world.gateway.drain().await;
}

/// The messages before the answer, and the answer, of a modern call.
async fn heard(world: &World, caller: &Caller, call: narthex_wire::Message) -> Vec<Value> {
    let mut answering = world.gateway.call(caller, call).await;
    let mut got = Vec::new();
    loop {
        match timeout(SOON, answering.next()).await.expect("too late").expect("an answer") {
            Step::Message(payload) => got.push(value(payload)),
            Step::Break { .. } => {}
            Step::Answer(answer) => {
                got.push(value(answer.payload));
                return got;
            }
        }
    }
}

/// E171: a modern client that names a level gets the log messages of servers of either era, over
/// HTTP and stdio, before the answer. A client that names no level gets none.
#[tokio::test]
async fn log_messages_reach_a_modern_client_that_names_a_level() {
    for eras in ["legacy", "modern"] {
        let over_stdio = vec![Entry::Server(fixture_process::server("one", eras))];
        let over_http = World::with(&[("one", eras.parse().unwrap())]).await;
        let over_stdio = World::settled(over_stdio, GatewayOptions::default()).await;
        for (what, world) in [("http", over_http), ("stdio", over_stdio)] {
            let caller = world.modern_caller(transparent("one"));
            for (level, wanted) in [(None, 0), (Some("error"), 1), (Some("debug"), 2)] {
                let mut call = json!({"name": "test_logging_tool", "arguments": {}});
                if let Some(level) = level {
                    call["_meta"] = json!({"io.modelcontextprotocol/logLevel": level});
                }
                let got = heard(&world, &caller, modern(1, "tools/call", call)).await;
                let logs: Vec<_> = got[..got.len() - 1].iter().map(|log| &log["method"]).collect();
                assert_eq!(logs, vec!["notifications/message"; wanted], "{eras} {what} {level:?}");
            }
            world.gateway.drain().await;
        }
    }
}

/// E171: a log message on the own stream of a legacy server over HTTP reaches the modern call that
/// names a level and is the only open call there. It reaches no call while several are open.
#[tokio::test]
async fn e171_a_log_on_the_servers_stream_reaches_the_only_open_call() {
    let quirks = vec![Quirk::SpeakAside];
    let options = Options { eras: Eras::Legacy, quirks, ..Options::default() };
    let mut world = World::of([("one", options)]).await;
    let caller = world.modern_caller(transparent("one"));
    let call = |level: Option<&str>| {
        let mut call = json!({"name": "test_tool_with_logging", "arguments": {}});
        if let Some(level) = level {
            call["_meta"] = json!({"io.modelcontextprotocol/logLevel": level});
        }
        modern(1, "tools/call", call)
    };
    for (level, wanted) in [(Some("info"), 3), (Some("error"), 0), (None, 0)] {
        // The last log message arrives at the same time as the answer. The answer waits for the
        // message, but not long.
        let clock = SteppedClock::by(Duration::from_micros(500));
        let got = heard(&world, &caller, call(level)).await;
        drop(clock);
        let logs: Vec<_> = got[..got.len() - 1].iter().map(|log| &log["method"]).collect();
        assert_eq!(logs, vec!["notifications/message"; wanted], "{level:?}");
    }
    world.run_as(RunPolicy::AllAttached);
    let other = world.modern_caller(transparent("one"));
    let sleep = modern(2, "tools/call", json!({"name": "sleep", "arguments": {"ms": 600_000}}));
    let open = world.gateway.call(&other, sleep).await;
    let got = heard(&world, &caller, call(Some("info"))).await;
    assert_eq!(got.len(), 1, "it may be about the call of another run: {got:?}");
    drop(open);
    world.gateway.drain().await;
}

/// E171: a legacy client's level reaches a server of 2026-07-28, whose log messages reach the
/// client.
#[tokio::test]
async fn log_messages_of_a_modern_server_reach_a_legacy_client() {
    let over_stdio = vec![Entry::Server(fixture_process::server("one", "modern"))];
    let over_stdio = World::settled(over_stdio, GatewayOptions::default()).await;
    let over_http = World::with(&[("one", Eras::Modern)]).await;
    for (what, world) in [("http", over_http), ("stdio", over_stdio)] {
        let session = world.session(&transparent("one"), json!({})).await;
        let caller = Caller::new(world.run.clone(), transparent("one"), Some(session));
        let level = json!({"level": "error"});
        let set = world.call(&caller, legacy(1, "logging/setLevel", level)).await;
        assert_eq!(set["result"], json!({}), "{what}");
        let call = json!({"name": "test_logging_tool", "arguments": {}});
        let got = timeout(SOON, converse(&world, &caller, call, &Value::Null)).await.unwrap();
        let logs: Vec<_> = got.iter().filter_map(|log| log["params"]["level"].as_str()).collect();
        assert_eq!(logs, ["error"], "{what}: {got:?}");
        world.gateway.drain().await;
    }
}

/// A server that does not declare logging in its handshake.
const SILENT: [&str; 3] = [
    "",
    r#"case $line in *'"method":"initialize"'*)
      answer '{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},
        "serverInfo":{"name":"s","version":"1"}}' | tr -d '\n'; echo
      continue ;;
    esac"#,
    "",
];

/// E171: a level can be set only where logging is declared.
#[tokio::test]
async fn a_level_is_refused_where_logging_is_not_declared() {
    let scripts = Scripts::new();
    for (entry, is_declared) in
        [(scripts.entry("one", SILENT), false), (scripts.entry("one", ["", "", ""]), true)]
    {
        let world = World::settled(vec![entry], GatewayOptions::default()).await;
        for endpoint in [transparent("one"), Endpoint::Aggregated] {
            let request = super::world::initialize("2025-11-25", json!({}));
            let (answering, session) =
                world.gateway.initialize(&world.run, &endpoint, &request).await;
            let told = super::world::finish(answering).await;
            let logging = &told["result"]["capabilities"]["logging"];
            assert_eq!(logging.is_object(), is_declared, "{endpoint:?} {told}");
            let caller = Caller::new(world.run.clone(), endpoint.clone(), session);
            let level = json!({"level": "info"});
            let answer = world.call(&caller, legacy(1, "logging/setLevel", level)).await;
            let code = (!is_declared).then_some(-32601);
            assert_eq!(answer["error"]["code"].as_i64(), code, "{endpoint:?} {answer}");
        }
        world.gateway.drain().await;
    }
}

/// A server of 2026-07-28 that wants further rounds and asks nothing.
const ROUNDS: [&str; 3] = [
    "",
    r#"case $line in
    *'"method":"server/discover"'*) answer '{"resultType":"complete","ttlMs":0,
      "cacheScope":"private","supportedVersions":["2026-07-28"],
      "capabilities":{"tools":{}}}' | tr -d '\n'; echo; continue ;;
    *'"method":"tools/call"'*'for ever'*)
      echo >> "$PIDS.rounds"
      answer '{"resultType":"input_required","requestState":"again"}'; continue ;;
    *'"method":"tools/call"'*'"requestState":"t\u0077o"'*)
      answer '{"resultType":"complete","content":[{"type":"text","text":"after two"}]}'; continue ;;
    *'"method":"tools/call"'*'"requestState":"one"'*)
      answer '{"resultType":"input_required","requestState":"t\u0077o","inputRequests":{}}'
      continue ;;
    *'"method":"tools/call"'*)
      answer '{"resultType":"input_required","requestState":"one"}'; continue ;;
    esac"#,
    "",
];

/// E172: for a legacy client, the gateway retries a result that gives only a state. It sends the
/// state unchanged, and stops after some rounds. A modern client makes its rounds itself.
#[tokio::test]
async fn a_state_without_questions_is_retried_for_a_legacy_client() {
    let scripts = Scripts::new();
    let entries = vec![scripts.entry("one", ROUNDS)];
    let world = World::settled(entries, GatewayOptions::default()).await;
    for (endpoint, prefix) in [(transparent("one"), ""), (Endpoint::Aggregated, "mcp__one__")] {
        let call =
            |arguments: Value| json!({"name": format!("{prefix}act"), "arguments": arguments});
        let caller = world.legacy_caller(endpoint.clone()).await;
        let answer = world.call(&caller, legacy(1, "tools/call", call(json!({})))).await;
        assert_eq!(answer["result"]["content"][0]["text"], "after two", "{answer}");
        assert!(answer["result"].get("resultType").is_none(), "{answer}");
        let caller = world.modern_caller(endpoint);
        let answer = world.call(&caller, modern(1, "tools/call", call(json!({})))).await;
        assert_eq!(answer["result"]["resultType"], "input_required", "{answer}");
    }
    let caller = world.legacy_caller(transparent("one")).await;
    let call = json!({"name": "act", "arguments": {"how": "for ever"}});
    let answer = world.call(&caller, legacy(1, "tools/call", call)).await;
    assert_eq!(answer["result"]["structuredContent"]["error"]["kind"], "server_error", "{answer}");
    assert_eq!(scripts.lines("one.rounds"), 11, "one call and ten further rounds");
    world.gateway.drain().await;
}

/// A server that answers each call with the error code that the call's arguments name.
const CODES: [&str; 3] = [
    "",
    r#"case $line in *'"method":"tools/call"'*)
      code=${line#*'"code":'}; code=${code%%[,\}]*}
      printf '{"jsonrpc":"2.0","id":%s,"error":{"code":%s,"message":"m"}}\n' "$id" "$code"
      continue ;;
    esac"#,
    "",
];

/// The status of an answer follows the code that the client gets, not the code from the server of
/// the other era.
#[tokio::test]
async fn a_status_is_chosen_after_the_code_is_translated() {
    let scripts = Scripts::new();
    let entries = vec![scripts.entry("one", CODES)];
    let world = World::settled(entries, GatewayOptions::default()).await;
    let caller = world.modern_caller(transparent("one"));
    for (code, shown, status) in [
        (-32020, -32603, 200),
        (-32021, -32603, 200),
        (-32022, -32603, 200),
        (-32002, -32602, 200),
        (-32601, -32601, 404),
        (-32050, -32603, 200),
        (7, 7, 200),
    ] {
        let call = json!({"name": "act", "arguments": {"code": code}});
        let mut answering = world.gateway.call(&caller, modern(1, "tools/call", call)).await;
        let Some(Step::Answer(answer)) = answering.next().await else { panic!("no answer") };
        let told = answer.status;
        let answer = value(answer.payload);
        assert_eq!((answer["error"]["code"].as_i64(), told), (Some(shown), status), "{answer}");
        let own = &answer["error"]["data"]["details"]["code"];
        let is_kept = own.as_i64() == Some(code);
        assert_eq!(is_kept, shown == -32603, "E48: the server's own code is not lost: {answer}");
    }
    world.gateway.drain().await;
}

/// A server that asks at each call, and answers with the client's answer.
const ASKS: [&str; 3] = [
    "",
    r#"case $line in
    *'"method":"tools/call"'*) call=$id
      echo '{"jsonrpc":"2.0","id":"q1","method":"elicitation/create","params":{}}'; continue ;;
    *'"q1"'*'"error"'*) heard=${line#*'"message":"'}; heard=${heard%%'"'*}
      id=$call; answer '{"content":[{"type":"text","text":"'"$heard"'"}]}'
      continue ;;
    esac"#,
    "",
];

/// The refusal of a question that does not reach the client contains no false answer of the client.
#[tokio::test]
async fn a_refused_question_reports_the_true_reason_for_its_refusal() {
    let scripts = Scripts::new();
    let world = World::settled(vec![scripts.entry("one", ASKS)], GatewayOptions::default()).await;
    let caller = world.modern_caller(transparent("one"));
    for (declared, said) in [
        (json!({}), "no client can be asked on this connection"),
        (json!({"roots": {}}), "the client did not declare this capability"),
    ] {
        let declared = json!({"io.modelcontextprotocol/clientCapabilities": declared});
        let call = json!({"name": "act", "arguments": {}, "_meta": declared});
        let answer = world.call(&caller, modern(1, "tools/call", call)).await;
        let heard = answer["result"]["content"][0]["text"].as_str().unwrap();
        assert!(heard.contains(said), "{heard}");
    }
    world.gateway.drain().await;
}

/// A progress token is a string or an integer.
#[tokio::test]
async fn progress_tokens_that_are_no_string_or_integer_are_refused() {
    let world = World::with(&[("one", Eras::Both)]).await;
    for endpoint in [transparent("one"), Endpoint::Aggregated] {
        for caller in world.both_callers(&endpoint).await {
            let ask = async |token: Value| {
                world.ask(&caller, "tools/list", json!({"_meta": {"progressToken": token}})).await
            };
            for good in [json!("a"), json!(""), json!(7), json!(-7)] {
                assert!(ask(good.clone()).await["result"].is_object(), "{good}");
            }
            for bad in [json!(null), json!(1.5), json!(true), json!({}), json!([1])] {
                let answer = ask(bad.clone()).await;
                assert_eq!(answer["error"]["code"], -32602, "{bad} {answer}");
            }
        }
    }
    world.gateway.drain().await;
}

/// D2: `server/discover` names the revisions that a request may name, whatever the server lists.
#[tokio::test]
async fn discover_lists_the_revisions_that_a_request_may_name() {
    for eras in [Eras::Legacy, Eras::Modern, Eras::Both] {
        let world = World::with(&[("one", eras)]).await;
        for endpoint in [transparent("one"), Endpoint::Aggregated] {
            let caller = world.modern_caller(endpoint);
            let found = world.ask(&caller, "server/discover", json!({})).await;
            assert_eq!(found["result"]["supportedVersions"], json!(["2026-07-28"]), "{found}");
        }
        world.gateway.drain().await;
    }
}
