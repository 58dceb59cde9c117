//! The end: every server stops, whatever it was doing, and no process is left.

use std::sync::Arc;

use narthex_model::{Alias, ServerState};
use narthex_registry::OpenError;
use narthex_registry::Registry;
use narthex_testkit::fixture::{Eras, Options, Quirk, Running};
use narthex_upstream::Link;
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, BufReader},
    net::unix::pipe,
    sync::mpsc,
};

use crate::world::{
    http, identity, in_time, program, row, shell, shell_script, start, until, until_state,
};

fn is_alive(process_id: u32) -> bool {
    std::path::Path::new(&format!("/proc/{process_id}")).exists()
}

/// E69: closing the registry stops every server, and leaves no child.
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

/// E69: closing waits for no server, whatever the server is busy with.
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
async fn e129_separate_links_are_opened_and_refused_after_closing() {
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
    let refused = in_time(Box::pin(opening)).await.unwrap_err();
    assert!(matches!(refused, OpenError::Unknown(_)), "{refused:?}");
}

/// Opens a link from a runtime that ends as soon as the link is open.
async fn open_elsewhere(registry: &Registry, alias: &str) -> Result<Arc<Link>, OpenError> {
    let (registry, alias) = (registry.clone(), Alias::new(alias).unwrap());
    let elsewhere = tokio::task::spawn_blocking(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let (events, _received) = mpsc::channel(8);
        let opening = registry.open_link(&alias, identity(), None, events);
        runtime.block_on(in_time(Box::pin(opening)))
    });
    elsewhere.await.unwrap()
}

#[tokio::test]
async fn e129_a_link_outlives_the_runtime_of_its_opener() {
    let server = Running::http(Options { eras: Eras::Legacy, ..Options::default() }).await.unwrap();
    let registry = start([shell("child"), http("remote", &server.url)]);
    until(&registry, |snapshot| snapshot.servers.iter().all(|row| row.is_ready())).await;
    for name in ["child", "remote"] {
        let link = open_elsewhere(&registry, name).await.unwrap();
        for _ in 0..2 {
            in_time(link.ping()).await.unwrap();
        }
        assert!(!link.closed().is_cancelled(), "{name}");
        link.stop().await;
    }
    in_time(registry.close()).await;
}

/// E69: a caller who gives up, and even its runtime, leaves no child.
#[tokio::test]
async fn s31_an_abandoned_attempt_to_open_a_link_leaves_no_child() {
    let folder = tempfile::tempdir().unwrap();
    let fifo = folder.path().join("fifo");
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    // The second start writes one word and is silent. Each living process holds the pipe open.
    let script = format!(
        "if mkdir {}; then {}; else exec 3> {}; echo up >&3; sleep 1000; fi",
        folder.path().join("started").display(),
        shell_script(),
        fifo.display()
    );
    let registry = start([program("x", "sh", &["-c", &script])]);
    until_state(&registry, "x", ServerState::Ready).await;
    let file = tokio::task::spawn_blocking(move || fs_err::File::open(fifo).unwrap());
    let (events, _received) = mpsc::channel(8);
    let x = Alias::new("x").unwrap();
    let mut opening = Box::pin(registry.open_link(&x, identity(), None, events));
    let hearing = async {
        let (file, _path) = in_time(file).await.unwrap().into_parts();
        let mut pipe = BufReader::new(pipe::Receiver::from_file(file).unwrap());
        assert_eq!(in_time(pipe.read_line(&mut String::new())).await.unwrap(), 3);
        pipe
    };
    let mut pipe = tokio::select! {
        _ = &mut opening => panic!("the server is silent"),
        pipe = hearing => pipe,
    };
    drop(opening);
    assert_eq!(in_time(pipe.read_to_end(&mut Vec::new())).await.unwrap(), 0);
    in_time(registry.close()).await;
}
