//! The end of sessions and of the gateway, with servers that are slow to go.

use std::time::Duration;

use narthex_gateway::{Caller, Endpoint, GatewayOptions};
use serde_json::json;
use tokio::time::timeout;

use super::{
    scripted::{Scripts, is_alive},
    world::{World, legacy},
};

/// Goes on after the end of its input, and needs a while after SIGTERM.
const SLOW_TO_END: [&str; 3] = ["trap 'sleep 3; exit 0' TERM", "", "while :; do sleep 0.1; done"];
/// Sessions, each with a child of its own.
const SESSIONS: usize = 8;
/// Less than that many children take one after another, more than side by side.
const SIDE_BY_SIDE: Duration = Duration::from_secs(20);

/// S31: the end stops the children of all sessions side by side, and leaves none.
#[tokio::test]
async fn s31_drain_stops_the_children_of_all_sessions_side_by_side() {
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
