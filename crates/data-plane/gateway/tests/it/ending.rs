//! The end of sessions and of the gateway, with servers that end slowly.

use std::time::Duration;

use narthex_gateway::{Caller, Endpoint, GatewayOptions};
use narthex_testkit::fixture::Eras;
use serde_json::json;
use tokio::time::timeout;

use super::{
    scripted::{Scripts, is_alive},
    world::{SOON, World, finish, initialize, legacy, transparent},
};

/// A server that runs on after the end of its input, and needs a while after SIGTERM.
const SLOW_TO_END: [&str; 3] = ["trap 'sleep 3; exit 0' TERM", "", "while :; do sleep 0.1; done"];
/// Number of sessions; each has a child of its own.
const SESSIONS: usize = 8;
/// Less than that many children take one after another, more than side by side.
const SIDE_BY_SIDE: Duration = Duration::from_secs(20);

/// S31, E69, A-14: the end stops the children of all sessions side by side, and leaves none.
#[tokio::test]
async fn s31_drain_stops_the_child_processes_of_all_sessions_at_the_same_time() {
    let scripts = Scripts::new();
    let entries = vec![scripts.entry("slow", SLOW_TO_END)];
    let world = World::settled(entries, GatewayOptions::default()).await;
    for _ in 0..SESSIONS {
        let session = world.session(&Endpoint::Aggregated, json!({"sampling": {}})).await;
        let caller = Caller::new(world.run.clone(), Endpoint::Aggregated, Some(session));
        world.call(&caller, legacy(1, "tools/list", json!({}))).await;
    }
    let children = scripts.started("slow");
    assert_eq!(children.len(), SESSIONS + 1);
    timeout(SIDE_BY_SIDE, world.gateway.drain()).await.expect("one after another");
    assert_eq!(world.gateway.sessions_open(), 0);
    assert!(!children.into_iter().any(is_alive));
}

/// S31, E69: a session that is refused, or fails to open, keeps no place and opens no server.
#[tokio::test]
async fn s31_a_refused_session_takes_no_place_and_opens_no_server() {
    let scripts = Scripts::new();
    let entries = vec![scripts.entry("one", ["", "", ""])];
    let options = GatewayOptions { sessions_max: 1, ..GatewayOptions::default() };
    let world = World::settled(entries, options).await;
    // The revision differs from the shared link's, so that the session's own link is opened at
    // once.
    let request = initialize("2025-06-18", json!({"sampling": {}}));
    let open = async |name: &str| {
        let endpoint = transparent(name);
        let (answering, session) = world.gateway.initialize(&world.run, &endpoint, &request).await;
        (finish(answering).await, session)
    };
    let (answer, session) = open("six").await;
    assert!(session.is_none(), "{answer}");
    let (answer, session) = open("one").await;
    let session = session.unwrap_or_else(|| panic!("{answer}"));
    assert_eq!(scripts.started("one").len(), 2);
    for _ in 0..3 {
        let (answer, refused) = open("one").await;
        assert!(refused.is_none());
        assert_eq!(answer["error"]["code"], -31429, "{answer}");
    }
    assert_eq!(scripts.started("one").len(), 2);
    world.gateway.end_session(&session).await;
    assert!(open("one").await.1.is_some());
    timeout(SOON, world.gateway.drain()).await.expect("the end does not come");
    assert!(!scripts.started("one").into_iter().any(is_alive));
}

/// E40, D5: a call that is open at a server's own endpoint gets its answer although the server is
/// removed meanwhile. Then the session there ends.
#[tokio::test]
async fn e40_a_removed_server_answers_open_calls_at_its_transparent_endpoint() {
    let world = World::with(&[("fix", Eras::Legacy)]).await;
    let session = world.session(&transparent("fix"), json!({})).await;
    let caller = Caller::new(world.run.clone(), transparent("fix"), Some(session.clone()));
    let request = legacy(2, "tools/call", json!({"name": "sleep", "arguments": {"ms": 300}}));
    let fixture = &world.fixtures[0].fixture;
    let removing = async {
        while fixture.counts().calls == 0 {
            tokio::task::yield_now().await;
        }
        assert!(world.gateway.registry().remove_server("fix").unwrap());
    };
    let (answer, ()) = tokio::join!(world.call(&caller, request), removing);
    assert!(answer["result"]["content"].is_array(), "{answer}");
    timeout(SOON, session.closed().cancelled()).await.expect("the session stays");
    timeout(SOON, world.gateway.drain()).await.expect("the end does not come");
}
