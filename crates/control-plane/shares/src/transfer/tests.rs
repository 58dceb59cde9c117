//! Places that files are copied to, and files that are not copied.

use std::os::unix::fs::symlink;
use std::path::PathBuf;

use fs_err as fs;
use tempfile::TempDir;

use super::*;
use crate::{Limits, Stop};

struct World {
    dir: TempDir,
    from: Folder,
    to: Folder,
    stop: Stop,
}

impl World {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        for name in ["from/out/deep", "to", "temporary", "outside"] {
            fs::create_dir_all(dir.path().join(name)).unwrap();
        }
        fs::write(dir.path().join("from/out/a.txt"), "a").unwrap();
        fs::write(dir.path().join("from/out/deep/b.txt"), "bb").unwrap();
        let open = |name: &str| Folder::open(&dir.path().join(name)).unwrap();
        let (from, to) = (open("from"), open("to"));
        Self { dir, from, to, stop: Stop::default() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn put(&self, path: &str, is_emptied: bool) -> Result<Transferred, ShareError> {
        let to = Destination { folder: &self.to, path, is_emptied, keeps_paths: false };
        self.all(&["out"], to)
    }

    fn all(&self, paths: &[&str], to: Destination<'_>) -> Result<Transferred, ShareError> {
        let (limits, temporary) = (&Limits::default(), &*self.path("temporary"));
        transfer(&self.from, paths, to, Copying { limits, temporary, stop: &self.stop })
    }

    fn names(&self, path: &str) -> Vec<String> {
        let entries = fs::read_dir(self.path(path)).unwrap();
        let name = |entry: io::Result<fs::DirEntry>| entry.unwrap().file_name();
        let mut names: Vec<_> = entries.map(|entry| name(entry).into_string().unwrap()).collect();
        names.sort_unstable();
        names
    }
}

#[test]
fn a_transfer_replaces_existing_files() {
    let world = World::new();
    let done = world.put("in/here", false).unwrap();
    assert_eq!(done, Transferred { files: 2, bytes: 3, skipped: 0 });
    let read = |name: &str| fs::read_to_string(world.path(name)).unwrap();
    assert_eq!(read("to/in/here/a.txt"), "a");
    assert_eq!(read("to/in/here/deep/b.txt"), "bb");
    fs::write(world.path("to/in/here/a.txt"), "changed").unwrap();
    fs::write(world.path("to/in/here/old.txt"), "old").unwrap();
    world.put("in/here", false).unwrap();
    assert_eq!(read("to/in/here/a.txt"), "a");
    assert_eq!(read("to/in/here/old.txt"), "old");
    world.put("in/here", true).unwrap();
    assert_eq!(world.names("to/in/here"), ["a.txt", "deep"]);
    assert_eq!(world.names("temporary"), [""; 0], "nothing is left");
    assert_eq!(world.names("to"), ["in"], "nothing is left");
}

/// S29, X-M3: nothing is written, or removed, through a link or outside.
#[test]
fn s29_a_transfer_writes_nothing_outside_of_its_folder() {
    let world = World::new();
    fs::write(world.path("outside/a.txt"), "theirs").unwrap();
    symlink(world.path("outside"), world.path("to/link")).unwrap();
    fs::create_dir(world.path("to/real")).unwrap();
    symlink(world.path("outside"), world.path("to/real/deep")).unwrap();
    symlink(world.path("outside/a.txt"), world.path("to/real/a.txt")).unwrap();
    for path in ["..", "/etc", "a/../../b", "", "link", "link/x"] {
        for is_emptied in [false, true] {
            let refused = world.put(path, is_emptied).unwrap_err();
            assert_eq!(refused.code(), "path_outside_folder", "{path}: {refused}");
        }
    }
    let refused = world.put("real", false).unwrap_err();
    assert!(
        matches!(&refused, ShareError::Outside { path } if path == "real/deep/b.txt"),
        "{refused}"
    );
    let is_link = |name: &str| fs::symlink_metadata(world.path(name)).unwrap().is_symlink();
    assert!(is_link("to/real/a.txt"), "nothing is done by halves");
    let to = Destination { folder: &world.to, path: "real", is_emptied: false, keeps_paths: false };
    world.all(&["out/a.txt"], to).unwrap();
    assert!(!is_link("to/real/a.txt"));
    world.put("real", true).unwrap();
    assert_eq!(world.names("outside"), ["a.txt"]);
    assert_eq!(fs::read_to_string(world.path("outside/a.txt")).unwrap(), "theirs");
    assert_eq!(fs::read_to_string(world.path("to/real/deep/b.txt")).unwrap(), "bb");
    assert_eq!(world.names("to"), ["link", "real"]);
}

#[test]
fn the_whole_folder_takes_more_and_is_not_emptied() {
    let world = World::new();
    fs::create_dir_all(world.path("to/x/y/z")).unwrap();
    let refused = world.put(".", true).unwrap_err();
    assert!(matches!(refused, ShareError::Path { .. }), "{refused}");
    world.put(".", false).unwrap();
    assert_eq!(world.names("to"), ["a.txt", "deep", "x"]);
}

#[test]
fn several_paths_are_transferred_together_or_not_at_all() {
    let world = World::new();
    let to =
        |is_emptied| Destination { folder: &world.to, path: "here", is_emptied, keeps_paths: true };
    world.all(&["out/a.txt", "out/deep", "out"], to(false)).unwrap();
    for name in ["to/here/out/a.txt", "to/here/out/deep/b.txt"] {
        assert!(world.path(name).exists(), "{name}");
    }
    let refused = world.all(&["out/deep", "out/nothing"], to(true)).unwrap_err();
    assert!(
        matches!(&refused, ShareError::NotFound { path } if path == "out/nothing"),
        "{refused}"
    );
    assert!(world.path("to/here/out/a.txt").exists(), "it was emptied for nothing");
    world.all(&["."], to(true)).unwrap();
    assert!(world.path("to/here/out/deep/b.txt").exists());
}

#[test]
fn a_folder_in_the_place_of_a_file_is_not_replaced() {
    let world = World::new();
    fs::create_dir_all(world.path("to/in/deep/b.txt")).unwrap();
    let refused = world.put("in", false);
    assert!(matches!(refused, Err(ShareError::NotAFile { .. })), "{refused:?}");
    assert_eq!(world.names("to/in"), ["deep"], "nothing is done by halves");
    assert_eq!(world.names("to"), ["in"]);
}

/// X-E95: files that shares pass over are not handed on either, under any name, and are counted.
#[test]
fn x_e95_hidden_files_are_skipped_and_counted_by_a_transfer() {
    let world = World::new();
    for name in [".env", "out/.git/config", "out/node_modules/x.js", "out/__pycache__/y"] {
        let path = world.path(&format!("from/{name}"));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "secret").unwrap();
    }
    let done = world.put("in", false).unwrap();
    assert_eq!(done, Transferred { files: 2, bytes: 3, skipped: 3 });
    assert_eq!(world.names("to/in"), ["a.txt", "deep"]);
    let to = |path| Destination { folder: &world.to, path, is_emptied: true, keeps_paths: true };
    let named = [".env", "out/.git", "./out/node_modules/x.js", "out/a.txt"];
    let done = world.all(&named, to("named")).unwrap();
    assert_eq!(done, Transferred { files: 1, bytes: 1, skipped: 3 });
    let refused = world.all(&["out/.git/config"], to("named")).unwrap_err();
    assert_eq!(refused.code(), "hidden_path");
    assert_eq!(world.names("to/named/out"), ["a.txt"]);
    for path in [".git/hooks", "a/.ssh", "node_modules"] {
        assert_eq!(world.put(path, false).unwrap_err().code(), "hidden_path", "{path}");
    }
}

/// X-M3: a copy that is stopped before it is put in place leaves all as it was.
#[test]
fn a_stopped_copy_changes_no_file() {
    let mut world = World::new();
    world.put("in", false).unwrap();
    fs::write(world.path("to/in/a.txt"), "before").unwrap();
    world.stop = Stop::default();
    assert!(world.stop.stop());
    for is_emptied in [false, true] {
        assert_eq!(world.put("in", is_emptied).unwrap_err().code(), "copy_timed_out");
    }
    assert_eq!(fs::read_to_string(world.path("to/in/a.txt")).unwrap(), "before");
    assert_eq!((world.names("to"), world.names("temporary").len()), (vec!["in".to_owned()], 0));
    let stage = Stage::new(&world.to, ".stage").unwrap();
    let (limits, temporary) = (&Limits::default(), &*world.path("temporary"));
    let copying = Copying { limits, temporary, stop: &world.stop };
    let late = stage.replace("in", copying).unwrap_err();
    assert!(matches!(late, ShareError::Stopped), "the last moment counts, too: {late}");
    let late = stage.merge(&[], copying).unwrap_err();
    assert!(matches!(late, ShareError::Stopped), "{late}");
    assert_eq!(fs::read_to_string(world.path("to/in/a.txt")).unwrap(), "before");
}

/// Folders that a killed daemon has left are removed. Folders of a running copy stay, and so do
/// folders that narthex has not made.
#[test]
fn leftovers_of_killed_copies_are_removed() {
    let world = World::new();
    for name in [".narthex-incoming-1-0/deep/er", ".narthex-replaced-99-7", ".narthex-incoming-x"] {
        fs::create_dir_all(world.path("to").join(name)).unwrap();
    }
    fs::write(world.path("to/.narthex-incoming-1-0/deep/a.txt"), "half").unwrap();
    fs::write(world.path("to/.narthex-incoming-5-5"), "a file").unwrap();
    symlink(world.path("outside"), world.path("to/.narthex-incoming-6-6")).unwrap();
    fs::write(world.path("outside/kept"), "").unwrap();
    let used = Stage::new(&world.to, INCOMING).unwrap();
    assert_eq!(world.to.remove_leftovers().unwrap(), 2);
    let left = [&*used.name, ".narthex-incoming-5-5", ".narthex-incoming-6-6"];
    let mut left: Vec<_> = left.into_iter().chain([".narthex-incoming-x"]).collect();
    left.sort_unstable();
    assert_eq!(world.names("to"), left);
    assert_eq!(world.names("outside"), ["kept"]);
    // Its process is gone.
    let name = used.name.clone();
    drop(used);
    assert_eq!(world.to.remove_leftovers().unwrap(), 1);
    assert!(!world.names("to").contains(&name));
}

/// Many copies into one folder during searches for leftovers there: each is whole.
#[test]
fn copies_are_whole_while_leftovers_are_removed() {
    let world = World::new();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..5000 {
                world.to.remove_leftovers().unwrap();
            }
        });
        for number in 0..200 {
            let done = world.put("in/here", number % 2 == 0).unwrap();
            assert_eq!(done, Transferred { files: 2, bytes: 3, skipped: 0 });
            assert_eq!(world.names("to/in/here"), ["a.txt", "deep"]);
        }
    });
    assert_eq!(world.names("to"), ["in"]);
}

/// A folder that is replaced is there at any time, so that a daemon that is killed leaves the old
/// one or the new one.
#[test]
fn a_folder_that_is_replaced_is_never_missing() {
    let world = World::new();
    for name in ["one", "two"] {
        fs::create_dir(world.path("to").join(name)).unwrap();
    }
    if !exchange((world.to.fd(), "one"), (world.to.fd(), "two"), "one").unwrap() {
        // This file system cannot do it.
        return;
    }
    let is_done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_done.load(Ordering::Relaxed) {
                assert!(world.path("to/one").is_dir(), "it is missing");
            }
        });
        for _ in 0..200 {
            world.put("one", true).unwrap();
        }
        is_done.store(true, Ordering::Relaxed);
    });
    assert_eq!(world.names("to/one"), ["a.txt", "deep"]);
    assert_eq!(world.names("to"), ["one", "two"]);
}
