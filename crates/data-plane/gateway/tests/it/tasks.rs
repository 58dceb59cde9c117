//! Tasks at the aggregated endpoint, of both eras.

use std::sync::Arc;

use narthex_gateway::{
    Answering, Caller, Endpoint, GatewayOptions, RunToken, RunView, Session, Step,
};
use narthex_policy::RunPolicy;
use narthex_registry::config::Entry;
use narthex_testkit::fixture::Eras;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::{
    scripted::Scripts,
    world::{SOON, World, finish, hastened, legacy, modern, parse, transparent},
};

pub(super) fn declared() -> Value {
    json!({"io.modelcontextprotocol/clientCapabilities":
        {"elicitation": {}, "extensions": {"io.modelcontextprotocol/tasks": {}}}})
}

fn listen(ids: &[&str]) -> narthex_wire::Message {
    let wanted = json!({"taskIds": ids});
    modern(9, "subscriptions/listen", json!({"notifications": wanted, "_meta": declared()}))
}

async fn next(answering: &mut Answering) -> Value {
    let step = timeout(SOON, answering.next()).await.expect("nothing comes");
    let Some(Step::Message(payload)) = step else { panic!("{step:?}") };
    let message: Value = serde_json::from_slice(&payload.into_bytes()).unwrap();
    let meta = &message["params"]["_meta"];
    assert_eq!(meta["io.modelcontextprotocol/subscriptionId"], 9, "{message}");
    message
}

/// The next state of a task that has this status.
async fn next_state(answering: &mut Answering, status: &str) -> Value {
    loop {
        let mut message = next(answering).await;
        assert_eq!(message["method"], "notifications/tasks", "{message}");
        if message["params"]["status"] == status {
            return message["params"].take();
        }
    }
}

fn another_run() -> Arc<RunView> {
    Arc::new(RunView::new(&RunToken::generate().unwrap(), RunPolicy::AllAttached))
}

pub(super) async fn start(world: &World, caller: &Caller, name: &str, arguments: Value) -> String {
    let params = json!({"name": name, "arguments": arguments, "_meta": declared()});
    let started = world.call(caller, modern(1, "tools/call", params)).await;
    assert_eq!(started["result"]["resultType"], "task", "{started}");
    started["result"]["taskId"].as_str().unwrap().to_owned()
}

/// SEP-2663: one stream at the aggregated endpoint reports tasks of several servers, each in the
/// server's words and under the client's own subscription.
#[tokio::test]
async fn modern_task_states_are_pushed_at_the_aggregated_endpoint() {
    let world = World::with(&[("one", Eras::Modern), ("two", Eras::Both)]).await;
    let caller = world.modern_caller(Endpoint::Aggregated);
    let file = json!({"filename": "a.txt"});
    let one = start(&world, &caller, "mcp__one__confirm_delete", file).await;
    // The task lasts long enough to be followed even on a busy machine.
    let two = start(&world, &caller, "mcp__two__slow_compute", json!({"seconds": 15})).await;
    let mut listening = world.gateway.call(&caller, listen(&[&one, &two, "absent", &one])).await;
    let first = next(&mut listening).await;
    assert_eq!(first["method"], "notifications/subscriptions/acknowledged", "{first}");
    assert_eq!(first["params"]["notifications"], json!({"taskIds": [one, two]}), "{first}");
    let answers = json!({"confirm": {"action": "accept", "content": {"confirm": true}}});
    let params = json!({"taskId": one, "inputResponses": answers, "_meta": declared()});
    let updated = world.call(&caller, modern(2, "tasks/update", params)).await;
    assert_eq!(updated["result"]["resultType"], "complete", "{updated}");
    // A server may send the same status twice.
    let mut open = vec![one, two];
    let ending = async {
        while !open.is_empty() {
            let state = next_state(&mut listening, "completed").await;
            assert!(state["result"]["content"].is_array(), "{state}");
            open.retain(|id| state["taskId"] != **id);
        }
    };
    hastened(ending).await;
    drop(listening);
    world.gateway.drain().await;
}

/// S18: a task of another run is answered like a task that never existed. A client without the
/// capability for tasks gets an error that names it.
#[tokio::test]
async fn s18_tasks_of_other_runs_cannot_be_followed() {
    let mut world = World::with(&[("one", Eras::Modern)]).await;
    let caller = world.modern_caller(Endpoint::Aggregated);
    let task =
        start(&world, &caller, "mcp__one__confirm_delete", json!({"filename": "a.txt"})).await;
    let wanted = json!({"notifications": {"taskIds": [task]}});
    let undeclared = world.call(&caller, modern(9, "subscriptions/listen", wanted)).await;
    assert_eq!(undeclared["error"]["code"], -32021, "{undeclared}");
    world.run = another_run();
    let other = world.modern_caller(Endpoint::Aggregated);
    for name in [task.as_str(), "absent"] {
        let mut listening = world.gateway.call(&other, listen(&[name])).await;
        assert_eq!(next(&mut listening).await["params"]["notifications"], json!({}));
    }
    world.gateway.drain().await;
}

/// A modern server all of whose tasks are called `t1`. The first process reports that they work.
/// Later processes report that they are done, and only when asked.
pub(super) const MODERN: [&str; 3] = [
    r#"task='"taskId":"t1","createdAt":"2026-01-01T00:00:00Z","ttlMs":null'
    [ -e "$PIDS" ] && now=completed || now=working"#,
    r#"case $line in
    *'"method":"server/discover"'*) answer '{"resultType":"complete","ttlMs":0,
        "cacheScope":"private","supportedVersions":["2026-07-28"],"capabilities":{"tools":{},
        "extensions":{"io.modelcontextprotocol/tasks":{}}}}' | tr -d '\n'; echo; continue ;;
    *'"method":"tools/call"'*)
        answer "{\"resultType\":\"task\",$task,\"status\":\"working\"}"; continue ;;
    *'"method":"tasks/get"'*) answer "{\"resultType\":\"complete\",$task,
        \"status\":\"$now\",\"statusMessage\":\"$0\"}" | tr -d '\n'; echo; continue ;;
    *'"method":"subscriptions/listen"'*)
      tag="\"_meta\":{\"io.modelcontextprotocol/subscriptionId\":$id}"
      method=notifications/subscriptions/acknowledged
      echo "{\"jsonrpc\":\"2.0\",\"method\":\"$method\",\"params\":{\"notifications\":{},$tag}}"
      case $line in *'"taskIds":["t1"]'*'"io.modelcontextprotocol/tasks":{}'*)
        if [ $now = working ]; then
          echo "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tasks\",
            \"params\":{$task,\"status\":\"working\",$tag}}" | tr -d '\n'; echo
        fi ;;
      esac
      continue ;;
    esac"#,
    "",
];

/// E74: a follower of a task also gets its status after its server was lost, and changes from
/// meanwhile.
#[tokio::test]
async fn e74_followed_tasks_outlive_a_connection() {
    let scripts = Scripts::new();
    let entries = vec![scripts.entry("one", MODERN)];
    let world = World::settled(entries, GatewayOptions::default()).await;
    let caller = world.modern_caller(Endpoint::Aggregated);
    let task = start(&world, &caller, "mcp__one__act", json!({})).await;
    let mut listening = world.gateway.call(&caller, listen(&[&task])).await;
    let first = next(&mut listening).await;
    assert_eq!(first["params"]["notifications"], json!({"taskIds": ["t1"]}), "{first}");
    next_state(&mut listening, "working").await;
    super::following::kill(scripts.started("one")[0]);
    let state = next_state(&mut listening, "completed").await;
    assert_eq!(state["taskId"], "t1", "{state}");
    assert_eq!(state.get("resultType"), None, "{state}");
    drop(listening);
    world.gateway.drain().await;
}

/// E79: tasks of two servers with one id stay apart. The later task has another id at the
/// aggregated endpoint, in every message, and its own id at the server's endpoint.
#[tokio::test]
async fn e79_an_equal_task_id_of_a_second_server_is_replaced() {
    let scripts = Scripts::new();
    let entries = vec![scripts.entry("one", MODERN), scripts.entry("two", MODERN)];
    let world = World::settled(entries, GatewayOptions::default()).await;
    let caller = world.modern_caller(Endpoint::Aggregated);
    let one = start(&world, &caller, "mcp__one__act", json!({})).await;
    let two = start(&world, &caller, "mcp__two__act", json!({})).await;
    assert_eq!([&one[..], &two], ["t1", "mcp__two__t1"]);
    for (id, server) in [(&one, "one"), (&two, "two")] {
        let params = json!({"taskId": id, "_meta": declared()});
        let got = world.call(&caller, modern(3, "tasks/get", params)).await;
        assert_eq!(got["result"]["statusMessage"], server, "{got}");
        assert_eq!(got["result"]["taskId"], **id, "{got}");
    }
    let mut listening = world.gateway.call(&caller, listen(&[&two])).await;
    assert_eq!(next(&mut listening).await["params"]["notifications"], json!({"taskIds": [two]}));
    assert_eq!(next_state(&mut listening, "working").await["taskId"], two);
    let own = world.modern_caller(transparent("two"));
    let params = json!({"taskId": "t1", "_meta": declared()});
    let got = world.call(&own, modern(3, "tasks/get", params)).await;
    assert_eq!(got["result"]["taskId"], "t1", "{got}");
    drop(listening);
    world.gateway.drain().await;
}

/// A legacy server with tasks, all with the id `t1`. It also lists tasks of other callers, on
/// further pages. It puts its name into every text.
pub(super) const LEGACY: [&str; 3] = [
    r#"rest='"status":"working","ttl":null,"createdAt":"2026-01-01T00:00:00Z"'
    related='"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t1"}}'
    status() { printf '{"jsonrpc":"2.0","method":"notifications/tasks/status",'
      printf '"params":{"taskId":"%s",%s,"statusMessage":"%s"}}\n' "$1" "$rest" "$2"; }"#,
    r#"case $line in
    *'"method":"initialize"'*)
      capabilities='"tools":{},"tasks":{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}}'
      answer '{"protocolVersion":"2025-11-25","capabilities":{'"$capabilities"'},
        "serverInfo":{"name":"s","version":"1"}}' | tr -d '\n'; echo; continue ;;
    *'"method":"tools/call"'*'"task":{'*)
      answer '{"task":{"taskId":"t1",'"$rest"'}}'; continue ;;
    *'"method":"tools/call"'*) status t9 foreign; status t1 "$0"; answer '{"content":[]}'
      continue ;;
    *'"method":"tasks/get"'*'"taskId":"t1"'*)
      answer '{"taskId":"t1",'"$rest"',"statusMessage":"'"$0"'"}'; continue ;;
    *'"method":"tasks/cancel"'*'"taskId":"t1"'*)
      answer '{"taskId":"t1","status":"cancelled","statusMessage":"'"$0"'"}'; continue ;;
    *'"method":"tasks/result"'*'"taskId":"t1"'*)
      printf '{"jsonrpc":"2.0","id":"q","method":"elicitation/create",'
      printf '"params":{"message":"m",%s}}\n' "$related"; result=$id; continue ;;
    *'"id":"q"'*'"taskId":"t1"'*) id=$result
      answer '{"content":[{"type":"text","text":"'"$0"'"}],'"$related"'}'; continue ;;
    *'"method":"tasks/list"'*'"cursor":"c1"'*)
      answer '{"tasks":[{"taskId":"t8",'"$rest"'}],"nextCursor":"c2"}'; continue ;;
    *'"method":"tasks/list"'*'"cursor":"c2"'*)
      answer '{"tasks":[{"taskId":"t1",'"$rest"',"statusMessage":"'"$0"'"}]}'; continue ;;
    *'"method":"tasks/list"'*)
      answer '{"tasks":[{"taskId":"t9",'"$rest"'}],"nextCursor":"c1"}'; continue ;;
    *'"method":"tasks/'*) echo "{\"jsonrpc\":\"2.0\",\"id\":$id,
      \"error\":{\"code\":-32602,\"message\":\"no\"}}" | tr -d '\n'; echo; continue ;;
    esac"#,
    "",
];

async fn two_legacy_servers() -> (World, Scripts) {
    let scripts = Scripts::new();
    let entries = vec![scripts.entry("one", LEGACY), scripts.entry("two", LEGACY)];
    (World::settled(entries, GatewayOptions::default()).await, scripts)
}

async fn caller(world: &World, endpoint: Endpoint, capabilities: Value) -> Caller {
    let session = world.session(&endpoint, capabilities).await;
    Caller::new(world.run.clone(), endpoint, Some(session))
}

/// Starts a task at each server; the ids differ, though the servers gave the same id.
async fn start_both(world: &World, caller: &Caller) -> [String; 2] {
    let mut ids = Vec::new();
    for name in ["mcp__one__act", "mcp__two__act"] {
        let params = json!({"name": name, "arguments": {}, "task": {"ttl": 60_000}});
        let started = world.call(caller, legacy(1, "tools/call", params)).await;
        let task = &started["result"]["task"];
        assert_eq!(task["status"], "working", "{started}");
        ids.push(task["taskId"].as_str().unwrap_or_else(|| panic!("{started}")).to_owned());
    }
    ids.try_into().unwrap()
}

/// 2025-11-25: the aggregated endpoint declares tasks to clients that know them, if a server has
/// tasks.
#[tokio::test]
async fn legacy_tasks_are_declared_at_the_aggregated_endpoint() {
    let (world, _scripts) = two_legacy_servers().await;
    let without = World::with(&[("plain", Eras::Legacy)]).await;
    for (world, revision, has_tasks) in [
        (&world, "2025-11-25", true),
        (&world, "2025-06-18", false),
        (&without, "2025-11-25", false),
    ] {
        let request = super::world::initialize(revision, json!({}));
        let opening = world.gateway.initialize(&world.run, &Endpoint::Aggregated, &request);
        let answer = finish(opening.await.0).await;
        let tasks = &answer["result"]["capabilities"]["tasks"];
        let all = json!({"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}});
        assert_eq!(*tasks, if has_tasks { all } else { Value::Null }, "{revision} {answer}");
    }
    world.gateway.drain().await;
    without.gateway.drain().await;
}

/// 2025-11-25, E79: a request about a task reaches its server under the server's own id, and its
/// answer reaches the client under the client's id. This holds on links that several share and on a
/// client's own.
#[tokio::test]
async fn e79_legacy_tasks_are_routed_to_their_servers() {
    for capabilities in [json!({}), json!({"elicitation": {}})] {
        let (world, _scripts) = two_legacy_servers().await;
        let caller = caller(&world, Endpoint::Aggregated, capabilities).await;
        let ids = start_both(&world, &caller).await;
        assert_eq!(ids, ["t1", "mcp__two__t1"]);
        for (id, server) in ids.iter().zip(["one", "two"]) {
            for (method, status) in [("tasks/get", "working"), ("tasks/cancel", "cancelled")] {
                let request = legacy(2, method, json!({"taskId": id}));
                let got = world.call(&caller, request).await;
                assert_eq!(got["result"]["statusMessage"], server, "{got}");
                assert_eq!(got["result"]["taskId"], **id, "{got}");
                assert_eq!(got["result"]["status"], status, "{got}");
            }
        }
        let absent = world.call(&caller, legacy(3, "tasks/get", json!({"taskId": "t9"}))).await;
        assert_eq!(absent["error"]["code"], -32602, "{absent}");
        world.gateway.drain().await;
    }
}

/// 2025-11-25: a client waits for the result of a task. The server's questions meanwhile name the
/// task as the client knows it, in both directions.
#[tokio::test]
async fn a_legacy_task_asks_its_client_before_its_result() {
    let (world, _scripts) = two_legacy_servers().await;
    let caller = caller(&world, Endpoint::Aggregated, json!({"elicitation": {}})).await;
    let session = caller.session.clone().unwrap();
    let [_, two] = start_both(&world, &caller).await;
    let mut outbox = session.take_outbox().unwrap();
    let request = legacy(4, "tasks/result", json!({"taskId": two}));
    let answering = world.gateway.call(&caller, request).await;
    let answered = async {
        let question = loop {
            let payload = outbox.recv().await.unwrap();
            let message: Value = serde_json::from_slice(&payload.into_bytes()).unwrap();
            if message["method"] == "elicitation/create" {
                break message;
            }
        };
        let related = question["params"]["_meta"].clone();
        assert_eq!(related["io.modelcontextprotocol/related-task"]["taskId"], two, "{question}");
        let result = json!({"action": "accept", "content": {}, "_meta": related});
        let response = json!({"jsonrpc": "2.0", "id": question["id"], "result": result});
        world.gateway.respond(&session, parse(&response)).await;
    };
    let both = async { tokio::join!(finish(answering), answered).0 };
    let answer = timeout(SOON, both).await.expect("no result");
    assert_eq!(answer["result"]["content"][0]["text"], "two", "{answer}");
    let related = &answer["result"]["_meta"]["io.modelcontextprotocol/related-task"];
    assert_eq!(related["taskId"], two, "{answer}");
    world.gateway.drain().await;
}

/// E44, 2025-11-25: a server answers `tasks/result` when the task has ended, which may take
/// longer than a call.
#[tokio::test]
async fn e44_a_request_for_the_result_of_a_task_may_exceed_the_timeout_of_a_call() {
    let scripts = Scripts::new();
    let gate = scripts.pipe("gate");
    let waits = format!(
        r#"case $line in *'"method":"tasks/result"'*) read -r _ < {}
          answer '{{"content":[]}}'; continue ;; esac
        {}"#,
        gate.display(),
        LEGACY[1]
    );
    let mut server = scripts.server("one", [LEGACY[0], &waits, ""]);
    server.timeout = Some(SOON);
    let world = World::settled(vec![Entry::Server(server)], GatewayOptions::default()).await;
    let caller = caller(&world, Endpoint::Aggregated, json!({})).await;
    let params = json!({"name": "mcp__one__act", "arguments": {}, "task": {}});
    let started = world.call(&caller, legacy(1, "tools/call", params)).await;
    assert_eq!(started["result"]["task"]["taskId"], "t1", "{started}");
    let request = legacy(4, "tasks/result", json!({"taskId": "t1"}));
    let mut answering = world.gateway.call(&caller, request).await;
    tokio::time::pause();
    let early = timeout(3 * SOON, answering.next()).await;
    tokio::time::resume();
    assert!(early.is_err(), "{early:?}");
    let opening = tokio::task::spawn_blocking(move || fs_err::write(gate, "\n"));
    let answer = timeout(SOON, finish(answering)).await.expect("no result");
    assert_eq!(answer["result"]["content"], json!([]), "{answer}");
    opening.await.unwrap().unwrap();
    world.gateway.drain().await;
}

/// S18: lists show the run's own tasks, page by page over all servers, whatever the servers list.
#[tokio::test]
async fn s18_lists_of_tasks_show_only_tasks_of_the_run() {
    let (mut world, _scripts) = two_legacy_servers().await;
    let endpoint = Endpoint::Aggregated;
    let first = caller(&world, endpoint.clone(), json!({})).await;
    let ids = start_both(&world, &first).await;
    let list = |cursor: Option<&Value>| {
        let params = cursor.map_or(json!({}), |cursor| json!({"cursor": cursor}));
        legacy(5, "tasks/list", params)
    };
    let listed = world.call(&first, list(None)).await;
    let tasks = listed["result"]["tasks"].as_array().unwrap_or_else(|| panic!("{listed}"));
    let seen: Vec<_> = tasks.iter().map(|task| (&task["taskId"], &task["statusMessage"])).collect();
    let [one, two] = [json!(ids[0]), json!(ids[1])];
    assert_eq!(seen, [(&one, &json!("one")), (&two, &json!("two"))], "{listed}");
    assert!(!listed.to_string().contains("t9"), "{listed}");
    let bad = world.call(&first, list(Some(&json!("p1")))).await;
    assert_eq!(bad["error"]["code"], -32602, "{bad}");
    // At the server's own endpoint, pages are those of the server, without tasks of unknown
    // callers.
    let own = caller(&world, transparent("one"), json!({})).await;
    let (mut seen, mut cursor) = (Vec::new(), None);
    loop {
        let listed = world.call(&own, list(cursor.as_ref())).await["result"].take();
        seen.extend(listed["tasks"].as_array().unwrap().iter().map(|task| task["taskId"].clone()));
        cursor = listed.get("nextCursor").cloned();
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!(seen, ["t1"]);
    world.run = another_run();
    for endpoint in [endpoint, transparent("one")] {
        let other = caller(&world, endpoint, json!({})).await;
        let listed = world.call(&other, list(None)).await;
        assert_eq!(listed["result"]["tasks"], json!([]), "{listed}");
    }
    world.gateway.drain().await;
}

async fn next_status(session: &Session, outbox: &mut Outbox) -> Value {
    let waiting = async {
        loop {
            let payload = outbox.recv().await.unwrap();
            let mut message: Value = serde_json::from_slice(&payload.into_bytes()).unwrap();
            if message["method"] == "notifications/tasks/status" {
                return message["params"].take();
            }
        }
    };
    let told = timeout(SOON, waiting).await;
    told.unwrap_or_else(|_late| panic!("{} heard of no task", session.id))
}

type Outbox = tokio::sync::mpsc::Receiver<narthex_wire::Payload>;

/// S18, 2025-11-25: a server's report on a task reaches only the sessions of its run, under the id
/// that they know.
#[tokio::test]
async fn s18_states_of_legacy_tasks_reach_their_run() {
    for capabilities in [json!({}), json!({"sampling": {}})] {
        let (mut world, _scripts) = two_legacy_servers().await;
        let aggregated = caller(&world, Endpoint::Aggregated, capabilities.clone()).await;
        let session = aggregated.session.clone().unwrap();
        let mut outbox = session.take_outbox().unwrap();
        start_both(&world, &aggregated).await;
        let run = std::mem::replace(&mut world.run, another_run());
        let other = caller(&world, transparent("two"), json!({})).await;
        let mut others = other.session.as_ref().unwrap().take_outbox().unwrap();
        world.run = run;
        // At this call the server reports the task, and a task of no caller.
        let tell = || legacy(6, "tools/call", json!({"name": "mcp__two__act", "arguments": {}}));
        world.call(&aggregated, tell()).await;
        let mut told = next_status(&session, &mut outbox).await;
        if told["statusMessage"] == "foreign" {
            // On a link of the client's own a task may be reported before it is known.
            assert_eq!(capabilities, json!({"sampling": {}}));
            told = next_status(&session, &mut outbox).await;
        }
        assert_eq!(told["taskId"], "mcp__two__t1", "{told}");
        assert_eq!(told["statusMessage"], "two", "{told}");
        while let Ok(payload) = others.try_recv() {
            let text = String::from_utf8(payload.into_bytes().to_vec()).unwrap();
            assert!(!text.contains("tasks/status"), "{text}");
        }
        world.gateway.drain().await;
    }
}
