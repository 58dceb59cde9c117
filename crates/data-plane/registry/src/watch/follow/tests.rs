//! Tests of waiting, with a paused clock.

use std::path::Path;

use narthex_model::Provenance;
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

use super::*;
use crate::watch::{
    LayerOptions,
    content::{Origin, Source},
};

const QUIET: Duration = Duration::from_millis(200);

/// E121: each event starts the quiet time anew.
#[tokio::test(start_paused = true)]
async fn e121_each_event_restarts_the_quiet_time() {
    let wake = Notify::new();
    let began = Instant::now();
    let events = async {
        for _ in 0..5 {
            tokio::time::sleep(QUIET / 2).await;
            wake.notify_one();
        }
    };
    tokio::join!(events, settle(&wake, QUIET));
    assert_eq!(began.elapsed(), QUIET / 2 * 5 + QUIET);
}

/// E121: a file that is never quiet is read all the same.
#[tokio::test(start_paused = true)]
async fn e121_a_file_that_is_never_quiet_is_read_after_a_limit() {
    let wake = Notify::new();
    let began = Instant::now();
    let events = async {
        loop {
            tokio::time::sleep(QUIET / 2).await;
            wake.notify_one();
        }
    };
    tokio::select! {
        () = events => {}
        () = settle(&wake, QUIET) => {}
    }
    assert_eq!(began.elapsed(), QUIET * RESTLESS_FACTOR);
}

fn shared(file: &Path) -> Arc<Shared> {
    let options = LayerOptions::new(Path::new("/"), Arc::new(|_| None));
    let sources = vec![Source::new(file, Origin::Settings)];
    Arc::new(Shared::new(options, TaskTracker::new(), sources))
}

/// E10: polling finds changes that the system cannot report, and the state gives the reason.
#[tokio::test(start_paused = true)]
async fn a_file_that_cannot_be_watched_is_polled() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("settings.json");
    let shared = shared(&file);
    let wake = Arc::new(Notify::new());
    let sight = SystemEvents::with(wake.clone(), |_| {
        Err(notify::Error::new(notify::ErrorKind::MaxFilesWatch))
    });
    let follower = Follower::with(shared.clone(), 0, wake, Some(sight));
    let _task = AbortOnDropHandle::new(shared.tasks.spawn(follower.run()));
    shared.wait_until_loaded().await;
    let Some(Watching::Polling { reason }) = shared.current().files[0].watching.clone() else {
        panic!("{:?}", shared.current())
    };
    assert!(reason.contains("max_user_watches"), "{reason}");
    fs_err::write(&file, r#"{"mcp":{"servers":{"a":{"transport":"stdio","command":"true"}}}}"#)
        .unwrap();
    let mut states = shared.states();
    let state = states.wait_for(|state| !state.declared.is_empty()).await.unwrap();
    assert_eq!(state.declared[0].name(), "a");
    assert_eq!(state.declared[0].provenance, Provenance::Settings);
}

/// E124, under polling too: a missing file counts once it stayed away for the quiet time.
#[tokio::test(start_paused = true)]
async fn e124_a_missing_file_counts_after_a_second_check() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("settings.json");
    let text = r#"{"mcp":{"servers":{"a":{"transport":"stdio","command":"true"}}}}"#;
    fs_err::write(&file, text).unwrap();
    let shared = shared(&file);
    shared.examine_now(0).await;
    fs_err::remove_file(&file).unwrap();
    assert_eq!(shared.examine(0, true).await, Examined::InDoubt);
    assert!(shared.current().files[0].is_present);
    let mut follower = Follower::with(shared.clone(), 0, Arc::new(Notify::new()), None);
    let began = Instant::now();
    follower.examine().await;
    assert_eq!(began.elapsed(), QUIET);
    assert!(shared.current().declared.is_empty());
}

/// E124: a file that returns within the quiet time does not count as missing.
#[tokio::test(start_paused = true)]
async fn e124_a_file_that_returns_within_the_quiet_time_is_not_missing() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("settings.json");
    let text = r#"{"mcp":{"servers":{"a":{"transport":"stdio","command":"true"}}}}"#;
    fs_err::write(&file, text).unwrap();
    let shared = shared(&file);
    shared.examine_now(0).await;
    let before = shared.current();
    fs_err::remove_file(&file).unwrap();
    let wake = Arc::new(Notify::new());
    let mut follower = Follower::with(shared.clone(), 0, wake.clone(), None);
    let save = async {
        // Half of the quiet time: the first reading, and its doubt, are over by then.
        tokio::time::sleep(QUIET / 2).await;
        fs_err::write(&file, text).unwrap();
        wake.notify_one();
    };
    tokio::join!(save, follower.examine());
    let after = shared.current();
    assert_eq!((after.files[0].is_present, after.revision), (true, before.revision));
    assert_eq!(after.declared, before.declared);
}
