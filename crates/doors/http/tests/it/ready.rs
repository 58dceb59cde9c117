//! Tests of readiness: `/readyz` waits for no server.

use http::{Method, StatusCode};
use narthex_registry::{Declared, config::Entry};
use narthex_testkit::fixture::{Options, Running};

use crate::world::{Answer, World, fixture_at, registry, until};

async fn ready(world: &World, query: &str) -> Answer {
    world.request(Method::GET, &format!("/readyz{query}")).send().await
}

/// A server whose definitions are still being compared with pinned ones does not keep the daemon
/// from being ready. Meanwhile its row is `connecting`.
#[tokio::test]
async fn a_daemon_is_ready_while_a_server_connects() {
    let fixture = Running::http(Options { records_messages: true, ..Options::default() });
    let fixture = fixture.await.unwrap();
    let Entry::Server(mut pinned) = fixture_at(&fixture.url) else { panic!() };
    pinned.pins_definitions = true;
    let registry = registry();
    registry.apply(vec![Declared::from(Entry::Server(pinned))]).unwrap();
    // No code in this test compares definitions, so the server stays `connecting` after it has
    // listed them.
    let world = World::of(registry, |_options| {});
    until(|| fixture.fixture.arrived().iter().any(|message| message.method == "tools/list")).await;
    let snapshot = world.gateway.registry().snapshot();
    assert!(!snapshot.is_settled(), "{:?}", snapshot.servers[0]);
    let answer = ready(&world, "").await;
    assert_eq!((answer.status, answer.text()), (StatusCode::OK, "ok\n"));
    let told = ready(&world, "?verbose").await;
    assert_eq!(told.status, StatusCode::OK);
    assert!(told.text().starts_with("[-] fixture connecting, "), "{}", told.text());
    // A daemon that is stopping accepts no new requests.
    world.options.closing.cancel();
    let answer = ready(&world, "").await;
    let ending = (StatusCode::SERVICE_UNAVAILABLE, "the daemon is stopping\n");
    assert_eq!((answer.status, answer.text()), ending);
    let told = ready(&world, "?verbose").await;
    assert!(told.text().ends_with(ending.1) && told.text().starts_with("[-]"), "{}", told.text());
}
