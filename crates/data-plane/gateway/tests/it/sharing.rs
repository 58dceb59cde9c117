//! Resources that runs share, each within its part (S31). While one run takes all that it may have,
//! other runs work. An unused resource gives way.

use std::sync::Arc;

use narthex_gateway::{Caller, Endpoint, GatewayOptions, Session, Step};
use narthex_policy::RunPolicy;
use narthex_registry::config::Entry;
use narthex_testkit::fixture::{Options, Running};
use serde_json::{Value, json};

use super::{
    scripted::{Scripts, is_alive},
    world::{World, finish, http_server, initialize, legacy, modern, transparent},
};

async fn open(world: &World, endpoint: &Endpoint) -> (Value, Option<Arc<Session>>) {
    let request = initialize("2025-11-25", json!({}));
    let (answering, session) = world.gateway.initialize(&world.run, endpoint, &request).await;
    (finish(answering).await, session)
}

/// S31: one run cannot take the sessions of all runs.
#[tokio::test]
async fn s31_one_run_cannot_take_all_sessions() {
    let options = GatewayOptions { sessions_max: 20, ..GatewayOptions::default() };
    let mut world = World::settled(Vec::new(), options).await;
    let mut held = Vec::new();
    for _ in 0..10 {
        held.push(open(&world, &Endpoint::Aggregated).await.1.expect("a session"));
    }
    let (answer, refused) = open(&world, &Endpoint::Aggregated).await;
    assert!(refused.is_none());
    assert_eq!(answer["error"]["code"], -31429, "{answer}");
    let text = answer["error"]["message"].as_str().unwrap();
    assert!(text.contains("this run has 10 sessions"), "{text}");
    let first = world.run.clone();
    world.run_as(RunPolicy::AllAttached);
    let other = open(&world, &Endpoint::Aggregated).await.1.expect("another run's session");
    world.gateway.end_session(&other).await;
    // A session that ends frees its place.
    world.gateway.end_session(&held.pop().unwrap()).await;
    world.run = first;
    assert!(open(&world, &Endpoint::Aggregated).await.1.is_some());
    world.gateway.drain().await;
}

/// A client that servers can ask, which therefore has its own process.
async fn client(world: &World, name: &str) -> Caller {
    let endpoint = transparent(name);
    let session = world.session(&endpoint, json!({"elicitation": {}, "roots": {}})).await;
    Caller::new(world.run.clone(), endpoint, Some(session))
}

async fn acts(world: &World, caller: &Caller) -> Value {
    world.call(caller, legacy(1, "tools/call", json!({"name": "act", "arguments": {}}))).await
}

fn alive(scripts: &Scripts, name: &str) -> usize {
    scripts.started(name).into_iter().filter(|pid| is_alive(*pid)).count()
}

/// S31, D12: processes of clients that left without ending their session give way to other clients'
/// processes, the process that is idle for longest first. A process of a present client gives way
/// to none.
#[tokio::test]
async fn s31_processes_of_absent_clients_give_way_to_present_clients() {
    let scripts = Scripts::new();
    let world = World::with_processes(vec![scripts.entry("one", ["", "", ""])], 4).await;
    let there = client(&world, "one").await;
    let session = there.session.clone().unwrap();
    let attended = session.attend();
    assert!(acts(&world, &there).await["result"].is_object());
    let own = scripts.started("one")[1];
    let mut gone = Vec::new();
    for _ in 0..10 {
        let caller = client(&world, "one").await;
        let answer = acts(&world, &caller).await;
        assert!(answer["result"].is_object(), "{answer}");
        gone.push(caller);
    }
    assert!(alive(&scripts, "one") <= 4, "{:?}", scripts.started("one"));
    assert!(is_alive(own), "its client is there");
    // A client that returns gets another process.
    let answer = acts(&world, &gone[0]).await;
    assert!(answer["result"].is_object(), "{answer}");
    drop(attended);
    world.gateway.drain().await;
}

/// S31: one run cannot take all processes of a server, also not by clients that stay connected.
#[tokio::test]
async fn s31_one_run_cannot_take_all_processes_of_a_server() {
    let scripts = Scripts::new();
    let mut world = World::with_processes(vec![scripts.entry("one", ["", "", ""])], 8).await;
    let mut held = Vec::new();
    for _ in 0..4 {
        let caller = client(&world, "one").await;
        let attended = caller.session.as_ref().unwrap().attend();
        assert!(acts(&world, &caller).await["result"].is_object());
        held.push((caller, attended));
    }
    let fifth = client(&world, "one").await;
    let _attended = fifth.session.as_ref().unwrap().attend();
    let refused = acts(&world, &fifth).await;
    let error = &refused["result"]["structuredContent"]["error"];
    assert_eq!(error["kind"], "limit_exceeded", "{refused}");
    assert!(error["message"].as_str().unwrap().contains("this run has 4 processes"), "{error}");
    let first = world.run.clone();
    world.run_as(RunPolicy::AllAttached);
    let other = client(&world, "one").await;
    assert!(acts(&world, &other).await["result"].is_object());
    // The run's own client leaves: there is room.
    world.run = first;
    drop(held.pop());
    assert!(acts(&world, &fifth).await["result"].is_object());
    world.gateway.drain().await;
}

/// S31: one run cannot open all streams of changes, nor follow all resources.
#[tokio::test]
async fn s31_one_run_cannot_open_all_streams_of_changes() {
    let fixture = Running::http(Options::default()).await.unwrap();
    let entries = vec![Entry::Server(http_server("one", &fixture.url))];
    let options = GatewayOptions { followed_max: 40, ..GatewayOptions::default() };
    let mut world = World::settled(entries, options).await;
    let uris: Vec<_> = (0..4).map(|n| format!("test://{n}")).collect();
    let filter = json!({"notifications": {"resourceSubscriptions": uris}});
    for endpoint in [Endpoint::Aggregated, transparent("one")] {
        let listen = async |world: &World| {
            let caller = world.modern_caller(endpoint.clone());
            let request = modern(1, "subscriptions/listen", filter.clone());
            let mut listening = world.gateway.call(&caller, request).await;
            let step = listening.next().await.expect("an acknowledgement, or a refusal");
            (listening, step)
        };
        let mut open = Vec::new();
        for _ in 0..4 {
            let (listening, step) = listen(&world).await;
            assert!(matches!(step, Step::Message(_)), "{step:?}");
            open.push(listening);
        }
        let (_, refused) = listen(&world).await;
        let Step::Answer(answer) = refused else { panic!("{refused:?}") };
        assert_eq!(answer.status, 429);
        let text = String::from_utf8(answer.payload.into_bytes().to_vec()).unwrap();
        assert!(text.contains("this run has 20 change streams"), "{text}");
        let first = world.run.clone();
        world.run_as(RunPolicy::AllAttached);
        assert!(matches!(listen(&world).await.1, Step::Message(_)));
        world.run = first;
        // A closed stream frees its places.
        open.clear();
        assert!(matches!(listen(&world).await.1, Step::Message(_)));
    }
    world.gateway.drain().await;
}
