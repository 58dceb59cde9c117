//! Tests of writing: links, modes, changes of others, and folders that refuse.

use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;

use super::*;
use crate::moment::tests::report_as_failed;

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

fn mode(path: &Path) -> u32 {
    fs_err::metadata(path).unwrap().mode() & 0o7777
}

fn set_mode(path: &Path, mode: u32) {
    fs_err::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// Names in a folder.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs_err::read_dir(folder).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_known_file_is_replaced_and_keeps_its_mode() {
    let folder = folder();
    let path = folder.path().join("mcp.json");
    fs_err::write(&path, "old").unwrap();
    set_mode(&path, 0o640);
    write_if_unchanged(&path, Some(b"old"), b"new").unwrap();
    assert_eq!(fs_err::read(&path).unwrap(), b"new");
    assert_eq!(mode(&path), 0o640);
    assert_eq!(names(folder.path()), ["mcp.json"]);
}

#[test]
fn a_new_file_is_private() {
    let folder = folder();
    let path = folder.path().join("mcp.json");
    write_if_unchanged(&path, None, b"new").unwrap();
    assert_eq!((read(&path).unwrap().unwrap(), mode(&path)), (b"new".to_vec(), 0o600));
}

#[test]
fn a_file_that_others_changed_is_left() {
    let folder = folder();
    let path = folder.path().join("mcp.json");
    let refused = |expected: Option<&[u8]>| {
        let error = write_if_unchanged(&path, expected, b"new").unwrap_err();
        assert!(matches!(&error, FileError::Changed { path: named } if *named == path), "{error}");
        assert!(error.to_string().contains("mcp.json"), "{error}");
    };
    refused(Some(b"old"));
    assert_eq!(names(folder.path()), [""; 0]);
    fs_err::write(&path, "other").unwrap();
    refused(Some(b"old"));
    refused(None);
    assert_eq!(fs_err::read(&path).unwrap(), b"other");
    assert_eq!(names(folder.path()), ["mcp.json"]);
}

#[test]
fn only_a_known_file_is_removed() {
    let folder = folder();
    let path = folder.path().join("mcp.json");
    fs_err::write(&path, "other").unwrap();
    let error = remove_if_unchanged(&path, b"new").unwrap_err();
    assert!(matches!(error, FileError::Changed { .. }), "{error}");
    remove_if_unchanged(&path, b"other").unwrap();
    assert_eq!(names(folder.path()), [""; 0]);
}

/// Another program creates the file between the check and the rename.
#[test]
fn a_file_that_appears_late_is_not_replaced() {
    let folder = folder();
    let path = folder.path().join("mcp.json");
    let file = prepare(&path, None, b"new", None).unwrap();
    fs_err::write(&path, "other").unwrap();
    assert!(file.persist_noclobber(&path).is_err());
    assert_eq!(fs_err::read(&path).unwrap(), b"other");
}

/// Until the rename, the old content stands under the name, and the new content elsewhere.
#[test]
fn a_stop_before_the_rename_leaves_the_old_content() {
    let folder = folder();
    let path = folder.path().join("mcp.json");
    fs_err::write(&path, "old").unwrap();
    let file = prepare(&path, None, b"new", None).unwrap();
    assert_eq!(fs_err::read(&path).unwrap(), b"old");
    assert_eq!(fs_err::read(file.path()).unwrap(), b"new");
    drop(file);
    assert_eq!(names(folder.path()), ["mcp.json"]);
}

#[test]
fn links_are_followed_and_stay() {
    let folder = folder();
    let (real, link) = (folder.path().join("real"), folder.path().join("link"));
    let far = folder.path().join("dotfiles");
    fs_err::create_dir_all(&far).unwrap();
    symlink("dotfiles/mcp.json", &link).unwrap();
    symlink("link", &real).unwrap();
    write_if_unchanged(&real, None, b"one").unwrap();
    write_if_unchanged(&real, Some(b"one"), b"two").unwrap();
    assert!(fs_err::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(fs_err::read(far.join("mcp.json")).unwrap(), b"two");
    assert_eq!(names(&far), ["mcp.json"]);
    let circle = folder.path().join("circle");
    symlink("circle", &circle).unwrap();
    let error = write_if_unchanged(&circle, None, b"x").unwrap_err();
    assert!(matches!(error, FileError::Links { .. }), "{error}");
}

#[test]
fn folders_and_missing_folders_are_refused() {
    let folder = folder();
    let error = write_if_unchanged(folder.path(), None, b"x").unwrap_err();
    assert!(matches!(error, FileError::NoFile { .. }), "{error}");
    let error = write_if_unchanged(&folder.path().join("none/file"), None, b"x").unwrap_err();
    assert!(matches!(error, FileError::Io { .. }), "{error}");
    assert!(error.to_string().contains("none/file"), "{error}");
}

/// A pipe without a writer would be waited for, and a device has no end.
#[test]
fn only_regular_files_are_read() {
    let folder = folder();
    let path = |name: &str| folder.path().join(name);
    let (fifo, link, socket) = (path("fifo"), path("link"), path("socket"));
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    symlink("fifo", &link).unwrap();
    let _listener = UnixListener::bind(&socket).unwrap();
    let zero = PathBuf::from("/dev/zero");
    for other in [&fifo, &link, &socket, &zero, &folder.path().to_owned()] {
        let error = read(other).unwrap_err();
        assert!(matches!(&error, FileError::NoFile { path } if path == other), "{error}");
        assert!(error.to_string().ends_with("is not a regular file; move it away"), "{error}");
    }
    let error = remove_if_unchanged(&link, b"").unwrap_err();
    assert!(matches!(error, FileError::NoFile { .. }), "{error}");
    assert_eq!(names(folder.path()), ["fifo", "link", "socket"]);
    fs_err::write(path("mcp.json"), "old").unwrap();
    symlink("mcp.json", path("other")).unwrap();
    assert_eq!(read(&path("other")).unwrap().unwrap(), b"old");
    assert_eq!(read(&path("none")).unwrap(), None);
}

/// A file has its new content, also if its folder cannot be made to last.
#[test]
fn a_folder_that_cannot_be_synced_is_written() {
    let folder = folder();
    let (path, copies) = (folder.path().join("mcp.json"), folder.path().join("copies"));
    report_as_failed(Some(Change::Sync));
    write_if_unchanged(&path, None, b"one").unwrap();
    write_if_unchanged(&path, Some(b"one"), b"two").unwrap();
    let copy = backup(&path, &copies).unwrap().unwrap();
    assert_eq!(fs_err::read(&copy).unwrap(), b"two");
    replace_private(&path, b"three").unwrap();
    assert_eq!(fs_err::read(&path).unwrap(), b"three");
    remove_if_unchanged(&path, b"three").unwrap();
    assert_eq!(names(folder.path()), ["copies"]);
}

/// A folder that may be written and not be read, except by root.
#[test]
fn a_folder_that_cannot_be_listed_is_written() {
    let folder = folder();
    let path = folder.path().join("mcp.json");
    fs_err::write(&path, "old").unwrap();
    set_mode(folder.path(), 0o300);
    let result = write_if_unchanged(&path, Some(b"old"), b"new");
    set_mode(folder.path(), 0o700);
    result.unwrap();
    assert_eq!(fs_err::read(&path).unwrap(), b"new");
    assert_eq!(names(folder.path()), ["mcp.json"]);
}

/// A rename that is reported as failed may be made.
#[test]
fn a_failed_rename_has_a_kind_of_its_own() {
    let folder = folder();
    let path = folder.path().join("mcp.json");
    report_as_failed(Some(Change::Rename));
    let error = write_if_unchanged(&path, None, b"new").unwrap_err();
    assert!(matches!(error, FileError::Rename { .. }), "{error}");
    assert_eq!(names(folder.path()), ["mcp.json"]);
}

/// Root may write everywhere, so the test has a part for each kind of user.
#[test]
fn a_read_only_folder_leaves_the_old_content() {
    let folder = folder();
    let path = folder.path().join("mcp.json");
    fs_err::write(&path, "old").unwrap();
    set_mode(folder.path(), 0o500);
    let result = write_if_unchanged(&path, Some(b"old"), b"new");
    set_mode(folder.path(), 0o700);
    if rustix::process::geteuid().is_root() {
        result.unwrap();
        return;
    }
    assert!(matches!(result, Err(FileError::Io { .. })));
    set_mode(&path, 0o400);
    let result = write_if_unchanged(&path, Some(b"old"), b"new");
    assert!(matches!(result, Err(FileError::ReadOnly { .. })));
    assert_eq!(fs_err::read(&path).unwrap(), b"old");
}

/// A file that has a second name would stay as it is under that one.
#[test]
fn a_file_with_other_hard_links_is_left() {
    let folder = folder();
    let (path, other) = (folder.path().join("my mcp.json"), folder.path().join("dotfiles.json"));
    fs_err::write(&path, "old").unwrap();
    fs_err::hard_link(&path, &other).unwrap();
    let error = write_if_unchanged(&path, Some(b"old"), b"new").unwrap_err();
    assert!(matches!(error, FileError::HardLinks { count: 2, .. }), "{error}");
    assert_eq!(fs_err::read(&path).unwrap(), b"old");
    assert_eq!(names(folder.path()), ["dotfiles.json", "my mcp.json"]);
    // The printed command is a remedy.
    let command = error.to_string();
    let command = command.split('`').nth(3).unwrap();
    let done = std::process::Command::new("sh").args(["-c", command]).status().unwrap();
    assert!(done.success(), "{command}");
    write_if_unchanged(&path, Some(b"old"), b"new").unwrap();
    assert_eq!(fs_err::read(&other).unwrap(), b"old");
}

#[test]
fn the_remedy_for_a_read_only_file_names_it() {
    let error = FileError::ReadOnly { path: PathBuf::from("/a b/mcp.json") };
    assert!(error.to_string().contains("`chmod u+w '/a b/mcp.json'`"), "{error}");
}

/// Only root can give files away.
#[test]
fn the_owner_is_kept() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let folder = folder();
    let path = folder.path().join("mcp.json");
    fs_err::write(&path, "old").unwrap();
    std::os::unix::fs::chown(&path, Some(12), Some(34)).unwrap();
    write_if_unchanged(&path, Some(b"old"), b"new").unwrap();
    let metadata = fs_err::metadata(&path).unwrap();
    assert_eq!((metadata.uid(), metadata.gid()), (12, 34));
}

#[test]
fn a_backup_is_made_once() {
    let folder = folder();
    let (path, copies) = (folder.path().join("mcp.json"), folder.path().join("a/b"));
    assert_eq!(backup(&path, &copies).unwrap(), None);
    fs_err::write(&path, "first").unwrap();
    let copy = backup(&path, &copies).unwrap().unwrap();
    fs_err::write(&path, "second").unwrap();
    assert_eq!(backup(&path, &copies).unwrap().unwrap(), copy);
    assert_eq!(fs_err::read(&copy).unwrap(), b"first");
    assert_eq!((mode(&copy), mode(&copies)), (0o600, 0o700));
    assert!(copy.to_str().unwrap().ends_with("%mcp.json"), "{copy:?}");
    let long = "x".repeat(300);
    assert_eq!(copy_name(Path::new(&format!("/{long}/a"))).len(), NAME_MAX);
}
