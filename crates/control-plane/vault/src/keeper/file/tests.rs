//! Modes of the file that let other users in, and rests of interrupted writes.

use std::os::unix::fs::{PermissionsExt, symlink};

use tempfile::TempDir;

use super::*;

fn place() -> (TempDir, KeyFile) {
    let dir = tempfile::tempdir().unwrap();
    let file = KeyFile::new(dir.path().join("master.key"));
    (dir, file)
}

fn set_mode(file: &KeyFile, mode: u32) {
    fs::set_permissions(&file.path, PermissionsExt::from_mode(mode)).unwrap();
}

fn names(dir: &TempDir) -> Vec<String> {
    let entries = fs::read_dir(dir.path()).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

/// X-M27: made on demand, for its owner alone, and the same from then on.
#[test]
fn x_m27_the_first_key_is_created_once() {
    let (dir, file) = place();
    assert_eq!(file.load().unwrap(), None);
    let made = file.create().unwrap();
    assert_eq!(file.load().unwrap(), Some(made.clone()));
    assert_eq!(file.create().unwrap(), made);
    let mode = fs::metadata(&file.path).unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o600);
    assert_eq!(names(&dir), ["master.key"]);
    assert!(file.is_ours());
    assert_eq!(file.place(), format!("the key file {}", file.path.display()));
    let absent = format!("the key file {} does not exist; copy `master.key` ", file.path.display());
    assert!(file.absent().starts_with(&absent), "{}", file.absent());
}

/// The file is written beside itself, so that renaming moves no data.
#[test]
fn the_folder_of_a_key_file_may_be_the_current_one() {
    for (path, folder) in [("master.key", "."), ("data/master.key", "data"), ("/x/y", "/x")] {
        assert_eq!(KeyFile::new(path).folder(), Path::new(folder), "{path}");
    }
}

/// X-M27.
#[test]
fn concurrent_creations_of_the_key_file_give_one_key() {
    let (dir, file) = place();
    let rings: Vec<_> = std::thread::scope(|scope| {
        let making: Vec<_> = (0..8).map(|_| scope.spawn(|| file.create().unwrap())).collect();
        making.into_iter().map(|one| one.join().unwrap()).collect()
    });
    assert!(rings.iter().all(|ring| *ring == rings[0]));
    assert_eq!(names(&dir), ["master.key"]);
}

/// X-M27.
#[test]
fn a_replaced_key_ring_is_complete_and_private() {
    let (dir, file) = place();
    let first = file.create().unwrap();
    let both = first.with(MasterKey::generate().unwrap()).unwrap();
    file.replace(&both).unwrap();
    assert_eq!(file.load().unwrap(), Some(both));
    let mode = fs::metadata(&file.path).unwrap().permissions().mode();
    assert_eq!((mode & 0o7777, names(&dir)), (0o600, vec!["master.key".to_owned()]));
}

#[test]
fn the_largest_key_ring_fits_into_a_key_file() {
    let (_dir, file) = place();
    let mut ring = file.create().unwrap();
    while let Ok(larger) = ring.with(MasterKey::generate().unwrap()) {
        ring = larger;
    }
    assert_eq!(ring.older().count(), 15);
    file.replace(&ring).unwrap();
    assert_eq!(file.load().unwrap(), Some(ring));
}

/// X-M27: a process that was killed between writing and renaming leaves keys behind.
#[test]
fn unfinished_key_files_of_a_killed_process_are_removed() {
    let (dir, file) = place();
    let ring = file.create().unwrap();
    let left = file.write_beside(&ring).unwrap();
    let (_file, path) = left.keep().unwrap();
    assert!(path.exists());
    fs::write(dir.path().join("store.db"), "other").unwrap();
    assert_eq!(file.load().unwrap(), Some(ring));
    let mut left = names(&dir);
    left.sort();
    assert_eq!(left, ["master.key", "store.db"]);
}

/// S27: another user who may read or write the key has the secrets, whatever the owner may do.
#[test]
fn s27_every_mode_with_rights_for_other_users_is_refused() {
    let (_dir, file) = place();
    let ring = file.create().unwrap();
    for mode in 0..=0o777 {
        // Modes without a right for the owner are another matter, and root may read all.
        let mode = mode | 0o400;
        set_mode(&file, mode);
        match file.load() {
            Ok(loaded) => {
                assert_eq!(mode & 0o077, 0, "{mode:o}");
                assert_eq!(loaded, Some(ring.clone()));
            }
            Err(error) => {
                assert_ne!(mode & 0o077, 0, "{mode:o}");
                assert_eq!(error.kind(), narthex_model::ErrorKind::Denied);
                let text = error.to_string();
                assert!(text.contains(&format!("{mode:04o}")), "{text}");
                assert!(text.contains("chmod 600") && text.contains("rotate-key"), "{text}");
            }
        }
    }
}

#[test]
fn s27_the_file_of_another_user_is_refused_whatever_its_mode() {
    let path = Path::new("/x/master.key");
    for mode in [0o400, 0o600, 0o644] {
        let error = is_private(path, false, mode).unwrap_err();
        assert!(matches!(error, KeeperError::OtherUser(_)), "{error:?}");
        assert!(error.to_string().contains("/x/master.key"), "{error}");
    }
    // A file that really belongs to another user, if this user may make one.
    let (_dir, file) = place();
    file.create().unwrap();
    let given = std::os::unix::fs::chown(&file.path, Some(65_534), None);
    assert_eq!(given.is_ok(), rustix::process::geteuid().is_root());
    if given.is_ok() {
        assert!(matches!(file.load(), Err(KeeperError::OtherUser(_))));
    }
}

/// A link is not followed, wherever it leads.
#[test]
fn links_are_refused() {
    let (dir, file) = place();
    file.create().unwrap();
    let link = KeyFile::new(dir.path().join("link"));
    symlink(&file.path, &link.path).unwrap();
    let error = link.load().unwrap_err();
    assert!(matches!(error, KeeperError::NoFile(_)), "{error}");
    let remedy = format!("`mv -n '{0}' '{0}.old'`", link.path.display());
    assert!(error.to_string().contains(&remedy), "{error}");
    let error = link.create().unwrap_err();
    assert!(matches!(error, KeeperError::NoFile(_)), "{error}");
    assert!(file.load().unwrap().is_some());
}

/// S15: a file without a key is not filled: it may belong to another program.
#[test]
fn s15_a_file_without_a_key_is_refused_and_not_changed() {
    let (_dir, file) = place();
    file.create().unwrap();
    for text in ["", "# nothing\n", "hunter2", &"0".repeat(64), "\u{0}\u{1}"] {
        fs::write(&file.path, text).unwrap();
        let error = file.load().unwrap_err();
        assert!(matches!(error, KeeperError::Content { .. }), "{text:?}: {error:?}");
        let told = error.to_string();
        assert!(told.contains("master.key") && !told.contains("hunter2"), "{told}");
        assert_eq!(fs::read_to_string(&file.path).unwrap(), text);
    }
    fs::write(&file.path, [0xff, 0xfe]).unwrap();
    assert!(matches!(file.load(), Err(KeeperError::File { .. })));
    fs::remove_file(&file.path).unwrap();
    fs::create_dir(&file.path).unwrap();
    assert!(matches!(file.load(), Err(KeeperError::NoFile(_))));
    let nowhere = KeyFile::new("/no-such-folder/master.key");
    assert_eq!(nowhere.load().unwrap(), None);
    assert_eq!(nowhere.create().unwrap_err().kind(), narthex_model::ErrorKind::NotFound);
}
