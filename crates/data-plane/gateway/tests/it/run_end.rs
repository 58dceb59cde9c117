//! The end of a run: its open calls and streams, and its own servers.

use narthex_gateway::{Answer, Caller, Endpoint, GatewayOptions, Step};
use narthex_policy::RunPolicy;
use narthex_testkit::fixture::Eras;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::{
    own_servers::begin,
    scripted::{Scripts, is_alive},
    world::{SOON, World, finish, initialize, legacy, modern, transparent},
};

/// A server that answers a call when the test writes to the pipe; `$2` is its path.
fn waits(pipe: &std::path::Path) -> [String; 3] {
    let each = format!(
        r#"case $line in *'"method":"tools/call"'*)
          echo called >> "$PIDS.calls"; read -r _ < '{}' ;; esac"#,
        pipe.display()
    );
    [String::new(), each, String::new()]
}

async fn gone(pids: Vec<u32>) {
    assert!(!pids.is_empty());
    let waiting = async {
        while pids.iter().any(|pid| is_alive(*pid)) {
            tokio::task::yield_now().await;
        }
    };
    timeout(SOON, waiting).await.unwrap_or_else(|_late| panic!("{pids:?} are left"));
}

async fn called(scripts: &Scripts, name: &str) {
    let waiting = async {
        while !scripts.has_noted(&format!("{name}.calls")) {
            tokio::task::yield_now().await;
        }
    };
    timeout(SOON, waiting).await.expect("the call does not arrive");
}

/// E7, D5, A-14: at the end of a run its token opens nothing, and its sessions and streams end. Its
/// child processes have ended, and none of its state is stored. Other runs keep working.
#[tokio::test]
async fn e7_the_end_of_a_run_ends_its_token_sessions_streams_and_servers() {
    let scripts = Scripts::new();
    let entries = vec![scripts.entry("all", ["", "", ""])];
    let world = World::settled(entries, GatewayOptions::default()).await;
    let own = vec![scripts.server("mine", ["", "", ""])];
    let (run, token) = begin(&world, RunPolicy::AllAttached, own).await;
    let seen = world.seen_by(&run);
    let mut sessions = Vec::new();
    for endpoint in [Endpoint::Aggregated, transparent("mine"), transparent("all")] {
        for capabilities in [json!({}), json!({"sampling": {}})] {
            let session = seen.session(&endpoint, capabilities).await;
            let caller = Caller::new(run.clone(), endpoint.clone(), Some(session.clone()));
            seen.ask(&caller, "tools/list", json!({})).await;
            seen.ask(&caller, "resources/subscribe", json!({"uri": "test://a"})).await;
            sessions.push(session);
        }
    }
    let filter = json!({"notifications": {"resourceSubscriptions": ["test://a"]}});
    let mut streams = Vec::new();
    for endpoint in [Endpoint::Aggregated, transparent("mine"), transparent("all")] {
        let caller = seen.modern_caller(endpoint);
        let request = modern(1, "subscriptions/listen", filter.clone());
        let mut listening = world.gateway.call(&caller, request).await;
        assert!(matches!(listening.next().await, Some(Step::Message(_))));
        streams.push(listening);
    }
    assert_eq!(world.gateway.sessions_of(run.id), sessions.len());
    let other = world.session(&Endpoint::Aggregated, json!({})).await;
    let shared = scripts.started("all")[0];

    let ended = timeout(SOON, world.gateway.end_run(run.id)).await.expect("it does not end");
    assert_eq!(ended.unwrap().id, run.id);
    assert!(world.gateway.end_run(run.id).await.is_none());
    assert!(run.has_ended() && world.gateway.runs().identify(token.expose()).is_none());
    assert_eq!(world.gateway.sessions_of(run.id), 0);
    for session in sessions {
        assert!(session.closed().is_cancelled());
    }
    for mut stream in streams {
        let end = timeout(SOON, finish_of(&mut stream)).await.expect("a stream stays");
        assert!(end["result"].is_object(), "{end}");
    }
    gone(scripts.started("mine")).await;
    gone(scripts.started("all").into_iter().filter(|pid| *pid != shared).collect()).await;
    // A caller that still holds the run sees no servers in it, and can begin nothing.
    assert!(world.gateway.snapshot(&run).servers.is_empty());
    let (answering, session) = world
        .gateway
        .initialize(&run, &Endpoint::Aggregated, &initialize("2025-11-25", json!({})))
        .await;
    drop(answering);
    assert!(session.is_none());
    let answer = seen.ask(&seen.modern_caller(transparent("mine")), "tools/list", json!({})).await;
    assert!(answer["error"].is_object(), "{answer}");
    assert!(is_alive(shared) && !other.closed().is_cancelled());
    let caller = Caller::new(world.run.clone(), Endpoint::Aggregated, Some(other));
    let answer = world.ask(&caller, "tools/call", json!({"name": "mcp__all__act"})).await;
    assert!(answer["result"].is_object(), "{answer}");
    world.gateway.drain().await;
}

async fn finish_of(answering: &mut narthex_gateway::Answering) -> Value {
    loop {
        match answering.next().await.expect("an answer") {
            Step::Answer(Answer { payload, .. }) => {
                return serde_json::from_slice(&payload.into_bytes()).unwrap();
            }
            Step::Message(_) | Step::Break { .. } => {}
        }
    }
}

/// E7: an open call of a modern client gets an answer when its run ends, whatever its server does.
/// The server ends, too, and nothing new begins meanwhile.
#[tokio::test]
async fn e7_an_open_call_of_a_modern_client_ends_with_its_run() {
    let scripts = Scripts::new();
    let pipe = scripts.pipe("gate");
    let world = World::settled(vec![], GatewayOptions::default()).await;
    let does = waits(&pipe);
    let mut own = scripts.server("mine", does.each_ref().map(String::as_str));
    own.timeout = Some(SOON * 5);
    let (run, _token) = begin(&world, RunPolicy::default(), vec![own]).await;
    let seen = world.seen_by(&run);
    let caller = seen.modern_caller(transparent("mine"));
    let call = || modern(3, "tools/call", json!({"name": "act", "arguments": {}}));
    let calling = async { finish(world.gateway.call(&caller, call()).await).await };
    let ending = async {
        called(&scripts, "mine").await;
        let ended = timeout(SOON, world.gateway.end_run(run.id)).await;
        assert!(ended.expect("it waits for the call").is_some());
    };
    let (answer, ()) = tokio::join!(timeout(SOON, calling), ending);
    let answer = answer.expect("the call goes on");
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(3), &json!(-31409)), "{answer}");
    assert!(answer["error"]["message"].as_str().unwrap().contains("has ended"), "{answer}");
    let late = finish(world.gateway.call(&caller, call()).await).await;
    assert!(late["result"]["isError"] == true || late["error"].is_object(), "{late}");
    gone(scripts.started("mine")).await;
    world.gateway.drain().await;
}

async fn until(is_so: impl Fn() -> bool) {
    let waiting = async {
        while !is_so() {
            tokio::task::yield_now().await;
        }
    };
    timeout(SOON, waiting).await.expect("the server does not hear of it");
}

/// E7: servers that all runs share get a cancellation of each request of an ended run, in each era,
/// and keep working for other runs.
#[tokio::test]
async fn e7_the_end_of_a_run_cancels_its_calls_at_shared_servers() {
    for eras in [Eras::Modern, Eras::Legacy] {
        let world = World::with(&[("all", eras)]).await;
        let counts = || world.fixtures[0].fixture.counts();
        let (run, _token) = begin(&world, RunPolicy::AllAttached, vec![]).await;
        let ms = u64::try_from(SOON.as_millis()).unwrap() * 2;
        let sleep = json!({"name": "mcp__all__sleep", "arguments": {"ms": ms}});
        let caller = world.seen_by(&run).modern_caller(Endpoint::Aggregated);
        let calling = world.ask(&caller, "tools/call", sleep);
        let ending = async {
            until(|| counts().calls == 1).await;
            world.gateway.end_run(run.id).await.unwrap();
        };
        let (answer, ()) = tokio::join!(timeout(SOON, calling), ending);
        let answer = answer.expect("the call goes on");
        assert_eq!(answer["error"]["code"], -31409, "{answer}");
        until(|| counts().cancelled == 1).await;
        let other = world.modern_caller(Endpoint::Aggregated);
        let echo = json!({"name": "mcp__all__echo", "arguments": {"message": "x"}});
        let answer = world.ask(&other, "tools/call", echo).await;
        assert_eq!(answer["result"]["content"][0]["text"], "x", "{answer}");
        world.gateway.drain().await;
    }
}

/// E7: when the run ends, an open call of a session gets the answer that the session has ended. The
/// server ends, too.
#[tokio::test]
async fn e7_an_open_call_of_a_session_ends_with_its_run() {
    let scripts = Scripts::new();
    let pipe = scripts.pipe("gate");
    let world = World::settled(vec![], GatewayOptions::default()).await;
    let does = waits(&pipe);
    let mut own = scripts.server("mine", does.each_ref().map(String::as_str));
    own.timeout = Some(SOON * 5);
    let (run, _token) = begin(&world, RunPolicy::default(), vec![own]).await;
    let caller = world.seen_by(&run).legacy_caller(Endpoint::Aggregated).await;
    let request = legacy(3, "tools/call", json!({"name": "mcp__mine__act", "arguments": {}}));
    let calling = async {
        let mut answering = world.gateway.call(&caller, request).await;
        answering.next().await
    };
    let ending = async {
        called(&scripts, "mine").await;
        timeout(SOON, world.gateway.end_run(run.id)).await.expect("it waits for the call")
    };
    let (step, ended) = tokio::join!(timeout(SOON, calling), ending);
    let Some(Step::Answer(answer)) = step.expect("the call goes on") else {
        panic!("its client waits for an answer");
    };
    let answer: Value = serde_json::from_slice(&answer.payload.into_bytes()).unwrap();
    assert_eq!((&answer["id"], answer["error"]["code"].as_i64()), (&json!(3), Some(-32001)));
    assert!(answer["error"]["message"].as_str().unwrap().contains("has ended"), "{answer}");
    assert!(ended.is_some());
    gone(scripts.started("mine")).await;
    world.gateway.drain().await;
}

/// S31: the end of the gateway ends the servers of all runs as well.
#[tokio::test]
async fn s31_the_end_of_the_gateway_ends_the_servers_of_runs() {
    let scripts = Scripts::new();
    let world = World::with(&[("all", Eras::Legacy)]).await;
    let mut runs = Vec::new();
    for _ in 0..3 {
        let own = vec![scripts.server("mine", ["", "", ""])];
        runs.push(begin(&world, RunPolicy::AllAttached, own).await);
    }
    assert_eq!(scripts.started("mine").len(), 3);
    assert_eq!(world.gateway.runs().all().len(), 4);
    timeout(SOON, world.gateway.drain()).await.expect("the end does not come");
    assert!(!scripts.started("mine").into_iter().any(is_alive));
}
