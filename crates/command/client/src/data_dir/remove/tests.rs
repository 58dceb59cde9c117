//! Tests of the removal of data directories.

use super::*;

/// A place for a data directory, and its path, which does not exist yet.
fn place() -> (tempfile::TempDir, PathBuf) {
    let home = tempfile::tempdir().unwrap();
    let path = fs::canonicalize(home.path()).unwrap().join("data");
    (home, path)
}

/// Puts something under each name that narthex uses.
fn fill(path: &Path) {
    for name in FOLDERS.into_iter().chain(MORE_FOLDERS) {
        fs::create_dir(path.join(name)).unwrap();
        fs::write(path.join(name).join("inner"), "x").unwrap();
    }
    let unfinished = UNFINISHED.map(|name| format!("{name}a1B2c3"));
    let files = FILES.into_iter().chain(MORE_FILES).filter(|name| *name != MARKER);
    for name in files.chain(unfinished.iter().map(String::as_str)) {
        fs::write(path.join(name), "x").unwrap();
    }
}

/// A store as an earlier version has left it, in a directory that it has made.
fn earlier(path: &Path) -> DataDir {
    let mut header = SQLITE.to_vec();
    header.resize(APPLICATION.0, 0);
    header.extend_from_slice(APPLICATION.1);
    header.resize(4096, 0);
    fs::create_dir(path).unwrap();
    fs::write(path.join(STORE), header).unwrap();
    fs::write(path.join("client.token"), "x").unwrap();
    DataDir::open(path).unwrap()
}

#[track_caller]
fn refused(data: &DataDir, named: &[&str]) {
    let before: Vec<_> = data.entries().unwrap().into_iter().map(|entry| entry.path).collect();
    let failure = data.remove().unwrap_err();
    assert_eq!(failure.kind.as_str(), "conflict");
    for name in named {
        let path = data.path().join(name).display().to_string();
        assert!(failure.message.contains(&path), "{name}: {failure}");
    }
    let after: Vec<_> = data.entries().unwrap().into_iter().map(|entry| entry.path).collect();
    assert_eq!(before, after);
}

#[test]
fn own_files_go_and_foreign_ones_stay() {
    let (_home, path) = place();
    let data = DataDir::open(&path).unwrap();
    fill(&path);
    fs::write(path.join("mine.txt"), "x").unwrap();
    // A folder with the name of a file.
    fs::remove_file(path.join("mount.log")).unwrap();
    fs::create_dir(path.join("mount.log")).unwrap();
    let planned = data.removal(true).unwrap();
    let removal = data.remove().unwrap();
    assert_eq!(removal, planned);
    let left: Vec<_> = removal.left.into_iter().map(|left| left.path).collect();
    assert_eq!(left, ["mine.txt", "mount.log"].map(|name| path.join(name)));
    fs::remove_file(path.join("mine.txt")).unwrap();
    fs::remove_dir(path.join("mount.log")).unwrap();
    assert_eq!(data.remove().unwrap().deleted, std::slice::from_ref(&path));
    assert!(!path.exists());
    // There is nothing to remove any more.
    assert_eq!(data.remove().unwrap(), Removal::default());
}

/// Names of narthex's in the folder of a project, whether a daemon has run there or not.
#[test]
fn a_folder_that_narthex_has_not_made_keeps_all() {
    let (_home, path) = place();
    for folder in ["setup", "shares/assets"] {
        fs::create_dir_all(path.join(folder)).unwrap();
    }
    for file in ["store.db", "master.key", "main.py", "shares/assets/logo.svg"] {
        fs::write(path.join(file), "x").unwrap();
    }
    let data = DataDir::open(&path).unwrap();
    assert!(!path.join(MARKER).exists());
    refused(&data, &["setup", "shares", "store.db", "master.key"]);
    drop(data.lock().unwrap());
    refused(&data, &["setup", "shares", "store.db", "master.key"]);
    assert!(!data.remove().unwrap_err().message.contains("main.py"));
}

#[test]
fn a_folder_without_a_name_of_narthex_is_left_and_unchanged() {
    let (_home, path) = place();
    fs::create_dir(&path).unwrap();
    fs::write(path.join("main.py"), "x").unwrap();
    let removal = DataDir::at(&path).remove().unwrap();
    assert_eq!((removal.deleted.len(), removal.left.len()), (0, 1));
    assert_eq!(fs::read_dir(&path).unwrap().count(), 1);
}

#[test]
fn a_directory_of_an_earlier_version_goes_if_all_in_it_is_known() {
    let (_home, path) = place();
    let data = earlier(&path);
    assert!(!path.join(MARKER).exists());
    let session = format!("folders/team/{}", SessionId::new([7; SessionId::BYTES]));
    for inner in ["audit/audit-01", "shares/workspaces", "executors/runs", &session] {
        fs::create_dir_all(path.join(inner)).unwrap();
    }
    for foreign in ["shares/mine", "folders/team/mine", "audit/mine", "mine"] {
        fs::create_dir(path.join(foreign)).unwrap();
        refused(&data, &["store.db", "shares"]);
        fs::remove_dir(path.join(foreign)).unwrap();
    }
    // Another program's store.
    let text = fs::read(path.join(STORE)).unwrap();
    fs::write(path.join(STORE), &text[..APPLICATION.0]).unwrap();
    refused(&data, &["store.db"]);
    fs::write(path.join(STORE), &text).unwrap();
    assert!(data.remove().unwrap().left.is_empty());
    assert!(!path.exists());
}

#[test]
fn the_copies_of_a_set_up_stay_until_they_are_deleted_by_hand() {
    let (_home, path) = place();
    let data = DataDir::open(&path).unwrap();
    fill(&path);
    let setup = path.join(SETUP);
    fs::create_dir(setup.join("backups")).unwrap();
    fs::write(setup.join("backups/0001"), "x").unwrap();
    assert!(data.removal(false).unwrap().left.is_empty());
    for _ in ["at first", "again"] {
        let removal = data.remove().unwrap();
        let [left] = &removal.left[..] else { panic!("{removal:?}") };
        assert_eq!(left.path, setup);
        assert!(left.reason.contains(&format!("`rm -r {}`", setup.display())), "{left:?}");
        assert!(setup.join("backups/0001").exists() && !path.join("audit").exists());
    }
    fs::remove_dir_all(&setup).unwrap();
    assert!(data.remove().unwrap().left.is_empty());
    assert!(!path.exists());
}

#[test]
fn a_link_and_its_directory_go_together() {
    let (home, path) = place();
    let data = DataDir::open(&path).unwrap();
    fill(&path);
    let link = home.path().join("link");
    std::os::unix::fs::symlink(&path, &link).unwrap();
    let linked = DataDir::at(&link);
    assert_eq!(linked.remove().unwrap().deleted.last(), Some(&link));
    assert!(!path.exists() && !link.is_symlink());
    // A removal that was killed before its last step.
    std::os::unix::fs::symlink(&path, &link).unwrap();
    assert_eq!(linked.remove().unwrap().deleted, std::slice::from_ref(&link));
    assert!(!link.is_symlink());
    assert_eq!(data.remove().unwrap(), Removal::default());
}

#[test]
fn the_directory_of_a_daemon_stays() {
    let (_home, path) = place();
    let data = DataDir::open(&path).unwrap();
    let _lock = data.lock().unwrap();
    let failure = data.remove().unwrap_err();
    assert!(failure.message.contains("is the daemon of"), "{failure}");
    assert!(path.join(LOCK).exists() && path.join(MARKER).exists());
}

/// A daemon that starts during a removal gets no lock, whatever the removal has deleted by then.
#[test]
fn no_daemon_starts_during_a_removal() {
    let (_home, path) = place();
    let data = DataDir::open(&path).unwrap();
    let removal = data.locked_file(std::thread::yield_now).unwrap();
    let late = narthex_private::open_or_create(&path.join(LOCK)).unwrap();
    let failure = data.lock().unwrap_err();
    assert!(failure.message.contains("another process is the daemon of"), "{failure}");
    // A daemon that has opened the file before the removal ends.
    fs::remove_dir_all(&path).unwrap();
    drop(removal);
    late.file().try_lock().unwrap();
    assert!(!narthex_private::is_at(&late, &path.join(LOCK)).unwrap());
    data.lock().unwrap_err();
    assert!(!path.exists());
}

#[test]
fn a_removal_that_was_killed_is_finished() {
    let (_home, path) = place();
    fs::create_dir(&path).unwrap();
    fs::write(path.join(LOCK), "").unwrap();
    let data = DataDir::at(&path);
    assert_eq!(data.remove().unwrap().deleted.last(), Some(&path));
    assert!(!path.exists());
}
