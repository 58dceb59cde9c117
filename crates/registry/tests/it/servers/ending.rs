//! The end: everything stops, whatever it was doing, and nothing is left.

use narthex_model::{Alias, ServerState};
use narthex_registry::OpenError;
use narthex_testkit::fixture::{Eras, Options, Quirk, Running};
use tokio::sync::mpsc;

use crate::world::{http, identity, in_time, program, row, shell, start, until, until_state};

fn is_alive(process_id: u32) -> bool {
    std::path::Path::new(&format!("/proc/{process_id}")).exists()
}

#[tokio::test]
async fn s31_close_stops_every_server_and_leaves_no_child() {
    let server = Running::http(Options { eras: Eras::Legacy, ..Options::default() }).await.unwrap();
    let registry = start([shell("child"), http("remote", &server.url)]);
    let snapshot = until(&registry, |snapshot| snapshot.is_settled()).await;
    let child = row(&snapshot, "child").link.as_ref().unwrap().process_id().unwrap();
    assert!(is_alive(child));
    drop(snapshot);
    in_time(registry.close()).await;
    assert!(!is_alive(child));
    assert_eq!(server.fixture.counts().sessions_deleted, 1);
    assert!(registry.snapshot().servers.is_empty());
    in_time(registry.close()).await;
}

/// Whatever a server is busy with.
#[tokio::test]
async fn s31_close_does_not_wait_for_servers_that_hang() {
    let with = |quirk| Options { quirks: vec![quirk], ..Options::default() };
    let shaking = Running::http(with(Quirk::HangInitialize)).await.unwrap();
    let listing = Running::http(with(Quirk::HangList)).await.unwrap();
    let registry = start([
        http("shaking", &shaking.url),
        http("listing", &listing.url),
        program("silent", "sh", &["-c", "trap '' TERM; echo up >&2; sleep 1000"]),
        program("flood", "sh", &["-c", "yes"]),
    ]);
    until(&registry, |snapshot| row(snapshot, "listing").activity == Some("listing")).await;
    in_time(registry.close()).await;
}

#[tokio::test]
async fn e129_links_of_ones_own_are_opened_apart_and_refused_after_the_end() {
    let server = Running::http(Options { eras: Eras::Legacy, ..Options::default() }).await.unwrap();
    let registry = start([http("x", &server.url)]);
    until_state(&registry, "x", ServerState::Ready).await;
    let (events, _received) = mpsc::channel(8);
    let x = Alias::new("x").unwrap();
    let opening = registry.open_link(&x, identity(), None, events.clone());
    let link = in_time(Box::pin(opening)).await.unwrap();
    assert_eq!(server.fixture.counts().initializes, 2);
    link.stop().await;
    drop(link);
    let unknown = Alias::new("y").unwrap();
    let opening = registry.open_link(&unknown, identity(), None, events.clone());
    assert!(matches!(in_time(Box::pin(opening)).await, Err(OpenError::Unknown(_))));
    in_time(registry.close()).await;
    let opening = registry.open_link(&x, identity(), None, events);
    assert!(in_time(Box::pin(opening)).await.is_err());
}
