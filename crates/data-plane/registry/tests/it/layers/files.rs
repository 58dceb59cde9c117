//! Loading, approving, starting and stopping.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use narthex_registry::{
    config::{Entry, Env, LoadContext, parse_list},
    watch::LayersState,
};

use super::*;

/// E8: without being named, a project's file is not read.
#[tokio::test]
async fn e8_the_project_file_is_read_only_on_demand() {
    let mut world = World::new();
    world.options.project = None;
    fs_err::write(world.project(), project("a", "1")).unwrap();
    fs_err::write(world.settings(), settings("g", "2")).unwrap();
    let state = world.files().load().await;
    assert_eq!(short(&state.declared), ["g=2"]);
    assert_eq!(state.files.len(), 1);
}

/// E122: the load returns the content at the start, and that is no event.
#[tokio::test]
async fn e122_the_first_load_is_no_event() {
    let world = World::new();
    fs_err::write(world.project(), project("a", "1")).unwrap();
    let files = world.files();
    let mut events = files.subscribe();
    let state = files.load().await;
    assert_eq!(short(&state.declared), ["a=1"]);
    assert!(state.files[1].is_present && state.files[1].last_read.is_some());
    files.start().await;
    replace(&world.project(), &project("a", "2"));
    assert_eq!(changed(next(&mut events).await), ["a=2"]);
}

/// E122: without a load, the start loads the same state, and that is no event either.
#[tokio::test]
async fn e122_a_start_without_a_load_is_no_event() {
    let world = World::new();
    fs_err::write(world.project(), project("a", "1")).unwrap();
    let files = world.files();
    let mut events = files.subscribe();
    files.start().await;
    assert_eq!(short(&files.current().declared), ["a=1"]);
    replace(&world.project(), &project("a", "2"));
    assert_eq!(changed(next(&mut events).await), ["a=2"]);
}

/// E130: a fault at the first load is reported in the state, and the rest loads.
#[tokio::test]
async fn e130_a_load_never_fails() {
    let world = World::new();
    fs_err::write(world.project(), "{").unwrap();
    fs_err::write(world.settings(), settings("g", "2")).unwrap();
    let (files, mut events) = world.follow().await;
    let state = files.current();
    assert_eq!(short(&state.declared), ["g=2"]);
    let told = state.files[1].error.as_ref().unwrap().to_string();
    assert!(told.contains("mcp.json: line 1"), "{told}");
    fs_err::write(world.project(), project("a", "1")).unwrap();
    assert!(matches!(next(&mut events).await, LayersEvent::Recovered { .. }));
    assert_eq!(changed(next(&mut events).await), ["g=2", "a=1"]);
}

/// Changes between the load and the start are not lost.
#[tokio::test]
async fn e125_a_change_before_the_start_is_seen() {
    let world = World::new();
    fs_err::write(world.project(), project("a", "1")).unwrap();
    let files = world.files();
    files.load().await;
    let mut events = files.subscribe();
    fs_err::write(world.project(), project("a", "2")).unwrap();
    files.start().await;
    assert_eq!(changed(next(&mut events).await), ["a=2"]);
}

/// D27: a content that is not approved does not count, and the last good one stays in effect.
#[tokio::test]
async fn d27_a_content_that_is_not_approved_does_not_count() {
    let world = World::new();
    let bad = project("evil", "1");
    world.refused.lock().unwrap().push((bad.clone(), "not trusted yet".to_owned()));
    fs_err::write(world.project(), project("a", "1")).unwrap();
    let (files, mut events) = world.follow().await;
    replace(&world.project(), &bad);
    let told = failed(next(&mut events).await);
    assert!(told.ends_with("mcp.json: not trusted yet"), "{told}");
    assert_eq!(short(&files.current().declared), ["a=1"]);
    // Approved afterwards, the same content counts at the next reading.
    world.refused.lock().unwrap().clear();
    assert_eq!(short(&files.load().await.declared), ["evil=1"]);
    assert!(matches!(next(&mut events).await, LayersEvent::Recovered { .. }));
    assert_eq!(changed(next(&mut events).await), ["evil=1"]);
}

/// D27: a file that was named needs no approval of its content; so it does not count while other
/// users may write it, at the start and later.
#[tokio::test]
async fn d27_a_named_file_that_other_users_may_write_does_not_count() {
    let world = World::new();
    let set = |mode| {
        let mode = std::os::unix::fs::PermissionsExt::from_mode(mode);
        fs_err::set_permissions(world.project(), mode).unwrap();
    };
    fs_err::write(world.project(), project("evil", "1")).unwrap();
    set(0o666);
    let (files, mut events) = world.follow().await;
    let told = files.current().files[1].error.as_ref().unwrap().to_string();
    assert!(told.contains("chmod go-w") && told.contains("mcp.json"), "{told}");
    assert!(files.current().declared.is_empty());
    set(0o644);
    assert_eq!(short(&files.load().await.declared), ["evil=1"]);
    assert!(matches!(next(&mut events).await, LayersEvent::Recovered { .. }));
    assert_eq!(changed(next(&mut events).await), ["evil=1"]);
}

/// D27: an approval by another program is noticed in the file of approvals.
#[tokio::test]
async fn d27_an_approval_that_comes_later_is_seen() {
    let mut world = World::new();
    let text = project("a", "1");
    world.refused.lock().unwrap().push((text.clone(), "not trusted yet".to_owned()));
    let approvals = world.path("trust.json");
    world.options.project.as_mut().unwrap().approvals = Some(approvals.clone());
    fs_err::write(world.project(), text).unwrap();
    let (files, mut events) = world.follow().await;
    assert!(files.current().declared.is_empty());
    world.refused.lock().unwrap().clear();
    replace(&approvals, "{}");
    assert!(matches!(next(&mut events).await, LayersEvent::Recovered { .. }));
    assert_eq!(changed(next(&mut events).await), ["a=1"]);
}

/// D27: the approved text is parsed, even if the file changes in between.
#[tokio::test]
async fn d27_the_text_is_read_once() {
    let mut world = World::new();
    let path = world.project();
    fs_err::write(&path, project("good", "1")).unwrap();
    let approve: Approve = Arc::new(move |_, text| {
        if !text.windows(4).any(|part| part == b"good") {
            return Err(Refused { reason: "not trusted yet".to_owned() });
        }
        fs_err::write(&path, project("evil", "2")).unwrap();
        Ok(())
    });
    world.options.project.as_mut().unwrap().approve = approve;
    let state = world.files().load().await;
    assert_eq!(short(&state.declared), ["good=1"]);
}

/// An approver that waits with each text until the test lets it continue.
fn slow(world: &mut World) -> (Receiver<()>, SyncSender<()>) {
    let (asked, asks) = sync_channel(16);
    let (go, goes) = sync_channel(16);
    let goes = Mutex::new(goes);
    world.options.project.as_mut().unwrap().approve = Arc::new(move |_, _| {
        asked.send(()).unwrap();
        goes.lock().unwrap().recv().unwrap();
        Ok(())
    });
    (asks, go)
}

/// Waits for the call of the approver, on a thread that may block.
async fn asked(asks: Receiver<()>) -> Receiver<()> {
    let wait = tokio::task::spawn_blocking(move || {
        asks.recv().unwrap();
        asks
    });
    in_time(wait).await.unwrap()
}

/// E127: a stop does not wait for a slow read, and the late result is dropped.
#[tokio::test]
async fn e127_a_stop_during_a_slow_read_leaves_nothing_running() {
    let mut world = World::new();
    let (asks, go) = slow(&mut world);
    let files = world.files();
    files.load().await;
    let mut events = files.subscribe();
    files.start().await;
    fs_err::write(world.project(), project("a", "1")).unwrap();
    let asks = asked(asks).await;
    in_time(files.stop()).await;
    go.send(()).unwrap();
    world.tasks.close();
    in_time(world.tasks.wait()).await;
    assert!(files.current().declared.is_empty());
    assert!(files.current().files.iter().all(|file| file.watching.is_none()));
    // A later start finds the content, as the first event.
    files.start().await;
    let _asks = asked(asks).await;
    go.send(()).unwrap();
    assert_eq!(changed(next(&mut events).await), ["a=1"]);
}

/// E127: a stop does not wait for a start whose first read is slow, either.
#[tokio::test]
async fn e127_a_stop_during_a_slow_start_ends_both() {
    let mut world = World::new();
    let (asks, go) = slow(&mut world);
    fs_err::write(world.project(), project("a", "1")).unwrap();
    let files = Arc::new(world.files());
    let starting = world.tasks.spawn({
        let files = files.clone();
        async move { files.start().await }
    });
    let _asks = asked(asks).await;
    in_time(files.stop()).await;
    in_time(starting).await.unwrap();
    go.send(()).unwrap();
    world.tasks.close();
    in_time(world.tasks.wait()).await;
    assert!(files.current().declared.is_empty());
}

/// E126: a stop ends the following, again and again, and a start begins it anew.
#[tokio::test]
async fn e126_start_and_stop_can_be_repeated() {
    let world = World::new();
    let (files, mut events) = world.follow().await;
    for round in 0..5 {
        in_time(files.stop()).await;
        in_time(files.stop()).await;
        fs_err::write(world.project(), project("a", &round.to_string())).unwrap();
        assert_ne!(short(&files.current().declared), [format!("a={round}")]);
        files.start().await;
        files.start().await;
        assert_eq!(changed(next(&mut events).await), [format!("a={round}")]);
    }
    drop(files);
    assert!(in_time(events.next()).await.is_none());
    world.tasks.close();
    in_time(world.tasks.wait()).await;
}

/// A file system that does not answer is reported, and a late content counts.
#[tokio::test]
async fn e118_a_stalled_read_is_reported_and_its_late_content_counts() {
    let mut world = World::new();
    let (asks, go) = slow(&mut world);
    // The time is enough for the other readings on a busy machine.
    world.options.read_deadline = Duration::from_secs(3);
    let (files, mut events) = world.follow().await;
    fs_err::write(world.project(), project("a", "1")).unwrap();
    let told = failed(next(&mut events).await);
    assert!(told.contains("mcp.json: reading takes more than 3 s"), "{told}");
    // The other file is not delayed, and an extra reading returns.
    fs_err::write(world.settings(), settings("g", "2")).unwrap();
    assert_eq!(changed(next(&mut events).await), ["g=2"]);
    in_time(files.load()).await;
    let _asks = asked(asks).await;
    go.send(()).unwrap();
    assert!(matches!(next(&mut events).await, LayersEvent::Recovered { .. }));
    assert_eq!(changed(next(&mut events).await), ["g=2", "a=1"]);
}

/// An approver that panics is reported as a bug, and narthex continues to follow the files.
#[tokio::test]
async fn d27_an_approver_that_panics_approves_nothing() {
    let mut world = World::new();
    world.options.project.as_mut().unwrap().approve = Arc::new(|_, text| {
        assert!(!text.windows(4).any(|part| part == b"evil"), "this approver panics");
        Ok(())
    });
    let (files, mut events) = world.follow().await;
    fs_err::write(world.project(), project("evil", "1")).unwrap();
    let told = failed(next(&mut events).await);
    assert!(told.contains("mcp.json: reading failed inside narthex"), "{told}");
    assert!(files.current().declared.is_empty());
    fs_err::write(world.project(), project("a", "1")).unwrap();
    assert!(matches!(next(&mut events).await, LayersEvent::Recovered { .. }));
    assert_eq!(changed(next(&mut events).await), ["a=1"]);
}

/// E124: an extra reading in the middle of a save removes no entry either.
#[tokio::test(start_paused = true)]
async fn e124_an_extra_reading_waits_for_the_end_of_a_save() {
    let world = World::new();
    fs_err::write(world.project(), project("a", "1")).unwrap();
    let files = world.files();
    files.load().await;
    fs_err::remove_file(world.project()).unwrap();
    let save = async {
        tokio::time::sleep(world.options.debounce / 2).await;
        fs_err::write(world.project(), project("a", "2")).unwrap();
    };
    let ((), state) = tokio::join!(save, files.load());
    assert_eq!(short(&state.declared), ["a=2"]);
    fs_err::remove_file(world.project()).unwrap();
    assert!(files.load().await.declared.is_empty());
}

fn list(text: &str) -> Vec<Entry> {
    let context = LoadContext {
        file: Path::new("code"),
        workspace_root: Path::new("/repo"),
        env: Env::Values(&|_| None),
    };
    parse_list(text.as_bytes(), &context).unwrap().entries
}

/// E13, E131: code replaces the global layer while the project stays.
#[tokio::test]
async fn e131_the_global_layer_can_be_replaced_by_code() {
    let world = World::new();
    fs_err::write(world.project(), project("a", "1")).unwrap();
    fs_err::write(world.settings(), settings("g", "2")).unwrap();
    let (files, mut events) = world.follow().await;
    let given = r#"[{"name": "a", "transport": "stdio", "command": "x"},
        {"name": "c", "transport": "stdio", "command": "x", "args": ["3"]}]"#;
    files.replace_global(list(given));
    assert_eq!(changed(next(&mut events).await), ["a!", "c=3", "a=1"]);
    let is_from_code = |state: &LayersState| state.declared[0].file.is_none();
    assert!(is_from_code(&files.current()) && !files.current().declared[0].is_editable());
    // The same set again causes no event, and from now on the settings file causes none either.
    files.replace_global(list(given));
    let mut states = files.states();
    let reads = files.current().files[0].reads;
    fs_err::write(world.settings(), settings("g", "4")).unwrap();
    in_time(states.wait_for(|state| state.files[0].reads > reads)).await.unwrap();
    files.replace_global(Vec::new());
    assert_eq!(changed(next(&mut events).await), ["a=1"]);
    in_time(files.stop()).await;
    files.replace_global(list(r#"[{"name": "d", "transport": "stdio", "command": "x"}]"#));
    assert_eq!(changed(next(&mut events).await), ["d=", "a=1"]);
}

/// E128: a listener that was slow gets the newest set, once.
#[tokio::test]
async fn e128_a_slow_listener_gets_the_newest_set() {
    let world = World::new();
    let files = world.files();
    files.load().await;
    let mut events = files.subscribe();
    for number in 0..5 {
        files.replace_global(list(&format!(
            r#"[{{"name": "n{number}", "transport": "stdio", "command": "x"}}]"#
        )));
    }
    assert_eq!(changed(next(&mut events).await), ["n4="]);
    drop(files);
    assert!(in_time(events.next()).await.is_none());
}

/// E147: no state and no event shows a secret.
#[tokio::test]
async fn e147_no_shown_state_contains_a_secret() {
    let world = World::new();
    let text = r#"{ "servers": { "a": { "transport": "stdio", "command": "true",
        "env": { "A_TOKEN": "${env:KEY}", "B_TOKEN": "literal-secret" } } } }"#;
    fs_err::write(world.project(), text).unwrap();
    let state = world.files().load().await;
    let shown = format!("{state:?}");
    assert_eq!(state.declared.len(), 1);
    assert!(!shown.contains("k-123") && !shown.contains("literal-secret"), "{shown}");
}
