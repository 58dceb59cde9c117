//! Readiness: the servers that `/readyz` waits for, and those that it does not.

use http::{Method, StatusCode};
use narthex_registry::{Declared, config::Entry};
use narthex_testkit::fixture::{Options, Running};

use crate::world::{Answer, World, fixture_at, registry, until};

async fn ready(world: &World, query: &str) -> Answer {
    world.request(Method::GET, &format!("/readyz{query}")).send().await
}

/// A server whose definitions are compared with those that are pinned, however many there are,
/// keeps no daemon from being ready: its row is `connecting` meanwhile.
#[tokio::test]
async fn a_daemon_is_ready_while_a_server_connects() {
    let fixture = Running::http(Options { records_messages: true, ..Options::default() });
    let fixture = fixture.await.unwrap();
    let Entry::Server(mut pinned) = fixture_at(&fixture.url) else { panic!() };
    pinned.pins_definitions = true;
    let registry = registry();
    registry.apply(vec![Declared::from(Entry::Server(pinned))]).unwrap();
    // No code compares anything here, so that the server waits for that when it has listed all.
    let world = World::of(registry, |_options| {});
    until(|| fixture.fixture.arrived().iter().any(|message| message.method == "tools/list")).await;
    let snapshot = world.gateway.registry().snapshot();
    assert!(!snapshot.is_settled(), "{:?}", snapshot.servers[0]);
    let answer = ready(&world, "").await;
    assert_eq!((answer.status, answer.text()), (StatusCode::OK, "ok\n"));
    let told = ready(&world, "?verbose").await;
    assert_eq!(told.status, StatusCode::OK);
    assert!(told.text().starts_with("[-] fixture connecting, "), "{}", told.text());
    // A daemon that ends takes no new requests.
    world.options.closing.cancel();
    let answer = ready(&world, "").await;
    let ending = (StatusCode::SERVICE_UNAVAILABLE, "the daemon is stopping\n");
    assert_eq!((answer.status, answer.text()), ending);
    let told = ready(&world, "?verbose").await;
    assert!(told.text().ends_with(ending.1) && told.text().starts_with("[-]"), "{}", told.text());
}
