//! Changes of files are seen, on a real file system.

use std::os::unix::fs::symlink;

use narthex_registry::watch::{LayersState, WatchMode, Watching};

use super::*;

/// E10, E125: a file that is replaced in one step is seen each time.
#[tokio::test]
async fn e125_a_hundred_atomic_replacements_are_all_seen() {
    let world = World::new();
    fs_err::write(world.project(), project("a", "start")).unwrap();
    let (_files, mut events) = world.follow().await;
    for round in 0..100 {
        replace(&world.project(), &project("a", &round.to_string()));
        assert_eq!(changed(next(&mut events).await), [format!("a={round}")]);
    }
}

/// E10: a file that is written in place is seen as well, and so is the settings file (E11).
#[tokio::test]
async fn e10_writes_in_place_are_seen_in_both_files() {
    let world = World::new();
    let (_files, mut events) = world.follow().await;
    fs_err::write(world.project(), project("a", "1")).unwrap();
    assert_eq!(changed(next(&mut events).await), ["a=1"]);
    fs_err::write(world.settings(), settings("g", "2")).unwrap();
    assert_eq!(changed(next(&mut events).await), ["g=2", "a=1"]);
    fs_err::write(world.project(), project("g", "3")).unwrap();
    assert_eq!(changed(next(&mut events).await), ["g!", "g=3"]);
    fs_err::write(world.project(), r#"{"servers": {}}"#).unwrap();
    assert_eq!(changed(next(&mut events).await), ["g=2"]);
}

/// E121: many writes in a row are one event, with the last content.
#[tokio::test]
async fn e121_many_writes_in_a_row_cause_one_event() {
    let mut world = World::new();
    world.options.debounce = Duration::from_millis(200);
    let (files, mut events) = world.follow().await;
    in_time(files.states().wait_for(|state| state.files[1].reads == 2)).await.unwrap();
    // No other task runs on this thread until the last file is written.
    for round in 0..50 {
        fs_err::write(world.project(), project("a", &round.to_string())).unwrap();
    }
    assert_eq!(changed(next(&mut events).await), ["a=49"]);
    fs_err::write(world.project(), project("a", "end")).unwrap();
    assert_eq!(changed(next(&mut events).await), ["a=end"]);
}

/// E43: a save that changes nothing is read and is no event.
#[tokio::test]
async fn e43_a_save_of_the_same_content_is_no_event() {
    let world = World::new();
    fs_err::write(world.project(), project("a", "1")).unwrap();
    let (files, mut events) = world.follow().await;
    let mut states = files.states();
    // Once by the load, once by the start.
    in_time(states.wait_for(|state| state.files[1].reads == 2)).await.unwrap();
    replace(&world.project(), &project("a", "1"));
    in_time(states.wait_for(|state| state.files[1].reads > 2)).await.unwrap();
    // The same entries in another form cause no event either.
    fs_err::write(world.project(), project("a", "1").replace(' ', "\n")).unwrap();
    let reads = files.current().files[1].reads;
    in_time(states.wait_for(|state| state.files[1].reads > reads)).await.unwrap();
    replace(&world.project(), &project("a", "2"));
    assert_eq!(changed(next(&mut events).await), ["a=2"]);
}

/// E123: a missing file is no error, and neither is a missing folder; both are seen when they come.
#[tokio::test]
async fn e123_a_file_in_a_new_folder_is_found_when_created() {
    let mut world = World::new();
    let folder = world.path("later/and/deeper");
    world.follow_project_at(folder.join("mcp.json"));
    let (files, mut events) = world.follow().await;
    assert!(files.current().files.iter().all(|file| file.error.is_none() && !file.is_present));
    fs_err::create_dir_all(&folder).unwrap();
    fs_err::write(folder.join("mcp.json"), project("a", "1")).unwrap();
    assert_eq!(changed(next(&mut events).await), ["a=1"]);
    replace(&folder.join("mcp.json"), &project("a", "2"));
    assert_eq!(changed(next(&mut events).await), ["a=2"]);
}

/// E124: a deleted file is an empty layer; a file that is created anew counts again.
#[tokio::test]
async fn e124_a_deleted_file_is_an_empty_layer_until_recreated() {
    let world = World::new();
    fs_err::write(world.project(), project("a", "1")).unwrap();
    let (files, mut events) = world.follow().await;
    for round in 0..5 {
        fs_err::remove_file(world.project()).unwrap();
        let gone = next(&mut events).await;
        let LayersEvent::Gone { file } = gone else { panic!("{gone:?}") };
        assert_eq!(*file, world.project());
        assert_eq!(changed(next(&mut events).await), [""; 0]);
        let file = files.current().files[1].clone();
        assert!(!file.is_present && file.gone_since.is_some(), "{file:?}");
        fs_err::write(world.project(), project("a", &round.to_string())).unwrap();
        assert_eq!(changed(next(&mut events).await), [format!("a={round}")]);
        assert_eq!(files.current().files[1].gone_since, None);
    }
}

/// E118, E124: a file with a fault that is deleted is gone, and not good again.
#[tokio::test]
async fn e124_a_deleted_broken_file_counts_as_deleted() {
    let world = World::new();
    fs_err::write(world.project(), "{").unwrap();
    let (files, mut events) = world.follow().await;
    fs_err::remove_file(world.project()).unwrap();
    let gone = next(&mut events).await;
    assert!(matches!(gone, LayersEvent::Gone { .. }), "{gone:?}");
    let file = files.current().files[1].clone();
    assert!(file.error.is_none() && file.refused_since.is_none(), "{file:?}");
    fs_err::write(world.project(), project("a", "1")).unwrap();
    assert_eq!(changed(next(&mut events).await), ["a=1"]);
}

/// E124: the loss of a file that declared nothing makes no server unavailable, and is not reported.
#[tokio::test]
async fn e124_a_deleted_file_without_servers_is_not_reported() {
    let world = World::new();
    fs_err::write(world.settings(), settings("g", "1")).unwrap();
    let (files, mut events) = world.follow().await;
    fs_err::write(world.settings(), "{}\n").unwrap();
    assert_eq!(changed(next(&mut events).await), [""; 0]);
    fs_err::remove_file(world.settings()).unwrap();
    let mut states = files.states();
    let is_absent = |state: &Arc<LayersState>| !state.files[0].is_present;
    let state = in_time(states.wait_for(is_absent)).await.unwrap().clone();
    assert_eq!(state.files[0].gone_since, None);
    fs_err::write(world.settings(), settings("g", "2")).unwrap();
    assert_eq!(changed(next(&mut events).await), ["g=2"]);
    fs_err::remove_file(world.settings()).unwrap();
    assert!(matches!(next(&mut events).await, LayersEvent::Gone { .. }));
    assert!(files.current().files[0].gone_since.is_some());
}

/// E124: a save that removes the file before it writes it anew never empties the set.
#[tokio::test]
async fn e124_a_save_by_removing_and_writing_never_empties_the_set() {
    let mut world = World::new();
    world.options.debounce = Duration::from_millis(200);
    fs_err::write(world.project(), project("a", "start")).unwrap();
    let (_files, mut events) = world.follow().await;
    for round in 0..10 {
        let backup = world.path("mcp.json~");
        fs_err::rename(world.project(), &backup).unwrap();
        fs_err::write(world.project(), project("a", &round.to_string())).unwrap();
        fs_err::remove_file(backup).unwrap();
        assert_eq!(changed(next(&mut events).await), [format!("a={round}")]);
    }
}

/// E125: a folder whose content depends on one link, as clusters mount it, is exchanged in one
/// step.
#[tokio::test]
async fn e125_the_exchange_of_a_link_on_the_way_is_seen() {
    let mut world = World::new();
    let mount = world.path("mount");
    fs_err::create_dir(&mount).unwrap();
    let publish = |version: u32| {
        let folder = mount.join(format!("..v{version}"));
        fs_err::create_dir(&folder).unwrap();
        fs_err::write(folder.join("mcp.json"), project("a", &version.to_string())).unwrap();
        let link = mount.join("..data_new");
        symlink(format!("..v{version}"), &link).unwrap();
        fs_err::rename(link, mount.join("..data")).unwrap();
        if version > 0 {
            fs_err::remove_dir_all(mount.join(format!("..v{}", version - 1))).unwrap();
        }
    };
    publish(0);
    symlink("..data/mcp.json", mount.join("mcp.json")).unwrap();
    world.follow_project_at(mount.join("mcp.json"));
    let (files, mut events) = world.follow().await;
    assert_eq!(short(&files.current().declared), ["a=0"]);
    for version in 1..20 {
        publish(version);
        assert_eq!(changed(next(&mut events).await), [format!("a={version}")]);
    }
}

/// E125: if the file is a link, narthex follows the target of the link.
#[tokio::test]
async fn e125_the_target_of_a_link_is_followed() {
    let world = World::new();
    fs_err::create_dir(world.path("dotfiles")).unwrap();
    let target = world.path("dotfiles/mcp.json");
    fs_err::write(&target, project("a", "1")).unwrap();
    symlink(&target, world.project()).unwrap();
    let (_files, mut events) = world.follow().await;
    replace(&target, &project("a", "2"));
    assert_eq!(changed(next(&mut events).await), ["a=2"]);
    fs_err::write(&target, project("a", "3")).unwrap();
    assert_eq!(changed(next(&mut events).await), ["a=3"]);
}

/// E125: the folder itself can be exchanged, and is watched at its new place.
#[tokio::test]
async fn e125_a_folder_that_is_exchanged_is_seen() {
    let mut world = World::new();
    let folder = world.path("repo");
    fs_err::create_dir(&folder).unwrap();
    fs_err::write(folder.join("mcp.json"), project("a", "old")).unwrap();
    world.follow_project_at(folder.join("mcp.json"));
    let (_files, mut events) = world.follow().await;
    for round in 0..5 {
        let new = world.path("new");
        fs_err::create_dir(&new).unwrap();
        fs_err::write(new.join("mcp.json"), project("a", &format!("new{round}"))).unwrap();
        fs_err::rename(&folder, world.path(&format!("old{round}"))).unwrap();
        fs_err::rename(new, &folder).unwrap();
        assert_eq!(changed(next(&mut events).await), [format!("a=new{round}")]);
        fs_err::write(folder.join("mcp.json"), project("a", &round.to_string())).unwrap();
        assert_eq!(changed(next(&mut events).await), [format!("a={round}")]);
    }
}

/// E118: a text that stops in the middle is reported, and the last good set stays in effect.
#[tokio::test]
async fn e118_a_half_written_file_keeps_the_last_good_set() {
    let world = World::new();
    let good = project("a", "1");
    fs_err::write(world.project(), &good).unwrap();
    let (files, mut events) = world.follow().await;
    fs_err::write(world.project(), &good[..good.len() / 2]).unwrap();
    let told = failed(next(&mut events).await);
    assert!(told.contains("mcp.json: line 1") && told.contains("ends too early"), "{told}");
    assert_eq!(short(&files.current().declared), ["a=1"]);
    assert!(files.current().files[1].error.is_some());
    // The other layer works without this file.
    fs_err::write(world.settings(), settings("g", "2")).unwrap();
    assert_eq!(changed(next(&mut events).await), ["g=2", "a=1"]);
    fs_err::write(world.project(), &good).unwrap();
    let recovered = next(&mut events).await;
    assert!(matches!(recovered, LayersEvent::Recovered { .. }), "{recovered:?}");
    fs_err::write(world.project(), project("a", "3")).unwrap();
    assert_eq!(changed(next(&mut events).await), ["g=2", "a=3"]);
}

/// E118: an endless or too long text, and a special file, are refused as at a start.
#[tokio::test]
async fn e118_pipes_and_endless_files_are_refused_at_once() {
    let world = World::new();
    fs_err::write(world.project(), project("a", "1")).unwrap();
    let (files, mut events) = world.follow().await;
    let exchange = |make: &dyn Fn(&Path)| {
        let new = world.path("new");
        make(&new);
        fs_err::rename(new, world.project()).unwrap();
    };
    exchange(&|path| {
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mkfifoat(rustix::fs::CWD, path, mode).unwrap();
    });
    let told = failed(next(&mut events).await);
    assert!(told.contains("cannot be read"), "{told}");
    exchange(&|path| fs_err::write(path, " ".repeat(5 << 20)).unwrap());
    let told = failed(next(&mut events).await);
    assert!(told.contains("longer than"), "{told}");
    exchange(&|path| symlink("/dev/zero", path).unwrap());
    let told = failed(next(&mut events).await);
    assert!(told.contains("cannot be read"), "{told}");
    assert_eq!(short(&files.current().declared), ["a=1"]);
}

/// E16, E117, E120: a bad entry is a row, in the settings as in the project.
#[tokio::test]
async fn e120_bad_entries_are_rows() {
    let world = World::new();
    let (_files, mut events) = world.follow().await;
    fs_err::write(world.settings(), r#"{ "mcp": { "servers": { "bad": 7 } }, "other": 1 }"#)
        .unwrap();
    let LayersEvent::Changed { declared, warnings } = next(&mut events).await else {
        panic!("a faulty entry is news")
    };
    assert_eq!((short(&declared), warnings.len()), (vec!["bad?".to_owned()], 0), "{warnings:?}");
    assert_eq!(declared[0].provenance, narthex_model::Provenance::Settings);
    fs_err::write(world.project(), r#"{ "servers": { "bad": 7 } }"#).unwrap();
    assert_eq!(changed(next(&mut events).await), ["bad!", "bad?"]);
}

/// If the system reports no events, polling finds the same changes.
#[tokio::test(start_paused = true)]
async fn e10_polling_finds_the_same_changes_as_events() {
    let mut world = World::new();
    world.options.mode = WatchMode::Polling;
    world.options.debounce = Duration::from_millis(200);
    let (files, mut events) = world.follow().await;
    let mut states = files.states();
    let is_polled = |state: &Arc<LayersState>| {
        state.files.iter().all(|file| matches!(file.watching, Some(Watching::Polling { .. })))
    };
    states.wait_for(is_polled).await.unwrap();
    for round in 0..10 {
        replace(&world.project(), &project("a", &round.to_string()));
        let event = events.next().await.unwrap();
        assert_eq!(changed(event), [format!("a={round}")]);
    }
    fs_err::write(world.project(), "{").unwrap();
    assert!(failed(events.next().await.unwrap()).contains("ends too early"));
    fs_err::remove_file(world.project()).unwrap();
    assert!(matches!(events.next().await.unwrap(), LayersEvent::Gone { .. }));
    assert_eq!(changed(events.next().await.unwrap()), [""; 0]);
}

/// No file is polled where the system reports events.
#[tokio::test]
async fn e10_events_are_the_rule() {
    let world = World::new();
    let (files, _events) = world.follow().await;
    let mut states = files.states();
    let is_watched = |state: &Arc<LayersState>| {
        state.files.iter().all(|file| file.watching == Some(Watching::Events))
    };
    in_time(states.wait_for(is_watched)).await.unwrap();
}
