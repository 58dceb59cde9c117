//! Tests of the data directory: its checks, its lock, and the daemon's state.

use narthex_private::is_at;

use super::*;

fn data() -> (tempfile::TempDir, DataDir) {
    let dir = tempfile::tempdir().unwrap();
    let data = DataDir::open(dir.path()).unwrap();
    (dir, data)
}

/// D4: data in the data folder is not written through a link that leads out of it.
#[test]
fn d4_a_link_in_place_of_an_inner_folder_is_refused() {
    let outside = tempfile::tempdir().unwrap();
    for name in FOLDERS {
        let (dir, _) = data();
        let inner = dir.path().join(name);
        std::os::unix::fs::symlink(outside.path(), &inner).unwrap();
        let failure = DataDir::open(dir.path()).unwrap_err();
        let inner = fs::canonicalize(dir.path()).unwrap().join(name);
        assert!(failure.message.contains(&format!("`rm '{}'`", inner.display())), "{failure}");
        fs::remove_file(&inner).unwrap();
        fs::create_dir(&inner).unwrap();
        DataDir::open(dir.path()).unwrap();
    }
}

/// D4, S9: no file of the data folder is opened through a link, nor one of another user.
#[test]
fn d4_a_link_in_place_of_an_inner_file_is_refused() {
    let outside = tempfile::NamedTempFile::new().unwrap();
    for name in FILES.into_iter().chain(["audit/audit-01.jsonl"]) {
        let (dir, _) = data();
        let inner = fs::canonicalize(dir.path()).unwrap().join(name);
        fs::create_dir_all(inner.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(outside.path(), &inner).unwrap();
        let failure = DataDir::open(dir.path()).unwrap_err();
        let remedy = format!("`mv '{0}' '{0}.old'`", inner.display());
        assert!(failure.message.contains(&remedy), "{failure}");
        fs::rename(&inner, inner.with_extension("old")).unwrap();
        if name.contains('/') {
            // The whole folder is looked at.
            fs::remove_file(inner.with_extension("old")).unwrap();
        }
        DataDir::open(dir.path()).unwrap();
        if rustix::process::geteuid().is_root() {
            fs::write(&inner, "").unwrap();
            std::os::unix::fs::chown(&inner, Some(65_534), None).unwrap();
            let failure = DataDir::open(dir.path()).unwrap_err();
            assert!(failure.message.contains("65534"), "{failure}");
        }
    }
}

/// A check for a daemon does not keep a daemon from starting.
#[test]
fn a_check_for_a_daemon_does_not_block_a_starting_daemon() {
    let (_dir, data) = data();
    drop(data.lock().unwrap());
    let asking = fs::File::open(data.lock_file()).unwrap();
    asking.file().lock_shared().unwrap();
    let mut pauses = 0;
    let lock = data.lock_with(|| {
        pauses += 1;
        asking.file().unlock().unwrap();
    });
    assert!(lock.is_ok(), "{lock:?}");
    assert_eq!(pauses, 1);
    assert!(data.is_locked().unwrap());
    let other = data.lock().unwrap_err();
    assert_eq!(other.kind.as_str(), "conflict");
    drop(lock);
    assert!(!data.is_locked().unwrap());
}

/// A lock of a file that a removal has deleted meanwhile keeps no other daemon away, so it is
/// not taken.
#[test]
fn a_deleted_lock_file_is_not_taken_for_the_lock() {
    let (_dir, data) = data();
    let removal = data.lock().unwrap();
    let waiting = narthex_private::open_or_create(&data.lock_file()).unwrap();
    fs::remove_file(data.lock_file()).unwrap();
    drop(removal);
    assert!(!is_at(&waiting, &data.lock_file()).unwrap());
    let next = data.lock().unwrap();
    assert!(is_at(&next.file, &data.lock_file()).unwrap());
    assert!(!is_at(&waiting, &data.lock_file()).unwrap());
}

/// The same with a file that is deleted between its opening and its lock.
#[test]
fn a_starting_daemon_locks_the_file_that_the_path_names() {
    let (_dir, data) = data();
    let asking = fs::File::open({
        drop(data.lock().unwrap());
        data.lock_file()
    });
    let asking = asking.unwrap();
    asking.file().lock_shared().unwrap();
    // The starting daemon waits, while the file goes and another one takes its place.
    let lock = data.lock_with(|| {
        fs::remove_file(data.lock_file()).unwrap();
        fs::write(data.lock_file(), "").unwrap();
        asking.file().unlock().unwrap();
    });
    assert!(is_at(&lock.unwrap().file, &data.lock_file()).unwrap());
}

/// D4: at the address of a killed daemon any program may listen by the time that the next one
/// starts, and no token is sent there.
#[test]
fn d4_no_token_is_sent_to_the_address_of_a_killed_daemon() {
    let (_dir, data) = data();
    let lock = data.lock().unwrap();
    let state = DaemonState {
        pid: std::process::id(),
        url: "http://127.0.0.1:1".to_owned(),
        config: "mcp.json".into(),
        ..DaemonState::default()
    };
    data.publish(&state).unwrap();
    assert_eq!(data.running().unwrap().as_ref(), Some(&state));
    drop(lock);
    assert_eq!(data.running().unwrap(), None);
    let _next = data.lock().unwrap();
    assert_eq!(data.holder().unwrap(), Some(std::process::id()));
    assert_eq!(data.running().unwrap(), None);
}

#[test]
fn a_refused_write_names_the_data_directory_and_its_remedy() {
    let (_dir, data) = data();
    let failed = |kind: io::ErrorKind| {
        let error = io::Error::new(kind, "failed to open file `daemon.log`");
        data.unwritable(PrivateError::Io(error)).message
    };
    for kind in [io::ErrorKind::PermissionDenied, io::ErrorKind::ReadOnlyFilesystem] {
        let expected = format!(
            "cannot write in the data directory {}: failed to open file `daemon.log`; make it \
             writable for this user, or name another directory with --data",
            data.path().display()
        );
        assert_eq!(failed(kind), expected);
    }
    assert_eq!(failed(io::ErrorKind::StorageFull), "failed to open file `daemon.log`");
}

/// A check says what opening says, and makes nothing.
#[test]
fn a_check_of_a_directory_refuses_as_its_opening_does() {
    let (dir, _) = data();
    DataDir::check(dir.path()).unwrap();
    let absent = dir.path().join("absent");
    DataDir::check(&absent).unwrap();
    assert!(!absent.exists());
    std::os::unix::fs::symlink("/", dir.path().join("audit")).unwrap();
    let opened = DataDir::open(dir.path()).unwrap_err();
    assert_eq!(DataDir::check(dir.path()).unwrap_err().message, opened.message);
}

#[test]
fn an_unreadable_lock_file_is_not_treated_as_free() {
    let (_dir, data) = data();
    // A link in a circle: root cannot read it either.
    std::os::unix::fs::symlink("daemon.lock", data.lock_file()).unwrap();
    let failure = data.is_locked().unwrap_err();
    assert!(failure.message.contains("daemon.lock") && failure.message.contains("--data"));
    for failed in [data.running().map(drop), data.holder().map(drop)] {
        assert_eq!(failed.unwrap_err().message, failure.message);
    }
}
