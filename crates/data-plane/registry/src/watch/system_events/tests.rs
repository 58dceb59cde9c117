//! Events that wake, and the errors where the system cannot report changes.

use std::io;

use notify::event::{CreateKind, Flag, MetadataKind, ModifyKind, RemoveKind, RenameMode};

use super::*;

fn event(kind: EventKind, path: &str) -> notify::Result<Event> {
    Ok(Event::new(kind).add_path(path.into()))
}

/// E43: changes beside the file, and reading the file, are no reason to read it again.
#[test]
fn e43_only_changes_on_the_path_of_the_file_cause_a_reading() {
    let names = HashSet::from(["/repo".into(), "/repo/mcp.json".into()]);
    let wakes = |event: &notify::Result<Event>| is_of_interest(event, &names);
    for kind in [
        EventKind::Create(CreateKind::File),
        EventKind::Modify(ModifyKind::Name(RenameMode::To)),
        EventKind::Modify(ModifyKind::Metadata(MetadataKind::Any)),
        EventKind::Remove(RemoveKind::File),
        EventKind::Access(AccessKind::Close(AccessMode::Write)),
    ] {
        assert!(wakes(&event(kind, "/repo/mcp.json")), "{kind:?}");
        assert!(!wakes(&event(kind, "/repo/other.json")), "{kind:?}");
    }
    assert!(wakes(&event(EventKind::Remove(RemoveKind::Folder), "/repo")));
    let read = EventKind::Access(AccessKind::Open(AccessMode::Any));
    assert!(!wakes(&event(read, "/repo/mcp.json")));
    assert!(wakes(&Ok(Event::new(EventKind::Other).set_flag(Flag::Rescan))));
    assert!(wakes(&Err(notify::Error::generic("lost"))));
}

/// E10: the error of a full or forbidden watch names its remedy.
#[test]
fn a_refused_file_watch_is_reported_with_its_remedy() {
    let refused = |make: MakeWatcher| {
        let folder = tempfile::tempdir().unwrap();
        let mut sight = SystemEvents::with(Arc::new(Notify::new()), make);
        sight.refresh(&[folder.path().join("mcp.json")]).unwrap_err()
    };
    let told = refused(|_| Err(notify::Error::new(notify::ErrorKind::MaxFilesWatch)));
    assert!(told.contains("max_user_watches"), "{told}");
    let told = refused(|_| Err(notify::Error::io(io::Error::from_raw_os_error(EMFILE))));
    assert!(told.contains("max_user_instances"), "{told}");
    let told = refused(|_| Err(notify::Error::io(io::ErrorKind::PermissionDenied.into())));
    assert!(told.contains("list the folder"), "{told}");
}

/// E10: narthex recognizes file systems on which other machines change files without an event.
#[cfg(target_os = "linux")]
#[test]
fn file_systems_without_events_are_recognized() {
    assert_eq!(remote_name(0x6969), Some("NFS"));
    assert_eq!(remote_name(0x6573_5546), Some("FUSE"));
    for local in [0xEF53, 0x0102_1994, 0x794C_7630, 0x9123_683E, 0x5846_5342] {
        assert_eq!(remote_name(local), None, "{local:x}");
    }
}
