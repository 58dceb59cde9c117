//! Stored copies: how they are counted and swept.

use std::collections::HashSet;
use std::os::unix::fs::PermissionsExt;

use narthex_model::{ErrorKind, WorkspaceId};
use narthex_shares::{ContentHash, Depot, Limits, Stop, Taken};

use crate::world::World;

fn hashes(taken: &Taken) -> HashSet<ContentHash> {
    taken.snapshot.files.iter().map(|file| file.hash).collect()
}

/// A content is stored once, and counts once.
#[test]
fn x_e95_equal_contents_are_stored_once() {
    let world = World::new();
    world.file("a", "1234");
    world.file("b", "1234");
    world.file("c", "56");
    let taken = world.take(".").unwrap();
    assert_eq!(taken.snapshot.total_size, 10);
    assert_eq!(world.depot.used(&world.workspace).unwrap(), 6);
    assert_eq!(hashes(&taken).len(), 2);
    let again = world.take("b").unwrap();
    assert_eq!(world.depot.used(&world.workspace).unwrap(), 6);
    assert_eq!(again.snapshot.files[0].size, 4);
}

/// A snapshot does not change when the file changes.
#[test]
fn x_e95_a_snapshot_does_not_change() {
    let world = World::new();
    world.file("a", "before");
    let taken = world.take("a").unwrap();
    world.file("a", "after");
    assert_eq!(world.contents(&taken.snapshot)["a"], b"before");
    fs_err::remove_file(world.project().join("a")).unwrap();
    assert_eq!(world.contents(&taken.snapshot)["a"], b"before");
}

#[test]
fn x_e95_a_workspace_stores_no_more_than_its_quota() {
    let world = World::new();
    world.file("a", "1234");
    world.file("b", "5678");
    let take =
        |path: &str| world.depot.take(&world.workspace, &world.folder(), path, 7, &Stop::default());
    let first = take("a").unwrap();
    let refused = take("b").unwrap_err();
    assert_eq!((refused.code(), refused.kind()), ("share_quota_exceeded", ErrorKind::Exhausted));
    assert!(
        refused.to_string().contains("stores 4 bytes of shares, and the limit is 7"),
        "{refused}"
    );
    assert_eq!(world.depot.used(&world.workspace).unwrap(), 4);
    // A second copy of stored content needs no more room.
    drop(take("a").unwrap());
    drop(first);
    let freed = world.depot.sweep(&world.workspace).unwrap().end(&HashSet::new()).unwrap();
    assert_eq!(freed, 4);
    assert_eq!(take("b").unwrap().snapshot.total_size, 4);
}

/// A sweep keeps contents that a share has, that are being stored, or that came back meanwhile.
#[test]
fn x_e95_a_sweep_removes_only_contents_without_a_share() {
    let world = World::new();
    for name in ["stored", "held", "back", "orphan"] {
        world.file(name, name);
    }
    let sizes = |taken: Taken| hashes(&taken);
    let stored = sizes(world.take("stored").unwrap());
    let held = world.take("held").unwrap();
    let back = sizes(world.take("back").unwrap());
    let orphan = sizes(world.take("orphan").unwrap());
    let sweep = world.depot.sweep(&world.workspace).unwrap();
    // Shared anew and stored after the caller asked the store: its answer does not name the copy.
    drop(world.take("back").unwrap());
    let late = {
        world.file("late", "late");
        sizes(world.take("late").unwrap())
    };
    assert_eq!(sweep.end(&stored).unwrap(), 6);
    let is_there = |hash: &ContentHash| world.depot.read(&world.workspace, *hash).is_ok();
    assert!(stored.iter().chain(&hashes(&held)).chain(&back).chain(&late).all(is_there));
    let gone = world.depot.read(&world.workspace, *orphan.iter().next().unwrap()).unwrap_err();
    assert_eq!(gone.code(), "file_not_found");
    assert_eq!(world.depot.used(&world.workspace).unwrap(), 18);
}

/// Stored copies are there after a restart, and count; unfinished ones are removed.
#[test]
fn x_e95_stored_copies_survive_a_restart() {
    let world = World::new();
    world.file("a", "1234");
    let hash = *hashes(&world.take("a").unwrap()).iter().next().unwrap();
    let place = world.dir.path().join("depot");
    fs_err::write(place.join("temporary/half"), "12").unwrap();
    fs_err::write(place.join("workspaces/default/no-hash"), "12").unwrap();
    let World { dir: _dir, depot, workspace } = world;
    drop(depot);
    let depot = Depot::open(&place, Limits::default()).unwrap();
    assert_eq!(depot.used(&workspace).unwrap(), 4);
    assert!(depot.read(&workspace, hash).is_ok());
    assert!(!place.join("temporary/half").exists());
    let sweep = depot.sweep(&workspace).unwrap();
    assert_eq!(sweep.end(&HashSet::new()).unwrap(), 4);
}

/// X-E97: a copy is found in its own workspace alone, with any known hash.
#[test]
fn x_e97_a_copy_is_found_only_in_its_workspace() {
    let world = World::new();
    world.file("a", "1234");
    let taken = world.take("a").unwrap();
    let other = WorkspaceId::new("other").unwrap();
    let hash = taken.snapshot.files[0].hash;
    assert_eq!(world.depot.read(&other, hash).unwrap_err().code(), "file_not_found");
    assert_eq!(ContentHash::parse(&hash.to_string()), Some(hash));
    for none in ["", "../default/x", &hash.to_string()[1..], &hash.to_string().to_uppercase()] {
        assert_eq!(ContentHash::parse(none).filter(|one| one.to_string() != none), None, "{none}");
    }
}

#[test]
fn x_e95_a_deleted_workspace_leaves_nothing() {
    let world = World::new();
    world.file("a", "1234");
    let taken = world.take("a").unwrap();
    world.depot.forget(&world.workspace).unwrap();
    let hash = taken.snapshot.files[0].hash;
    assert_eq!(world.depot.read(&world.workspace, hash).unwrap_err().code(), "file_not_found");
    assert!(!world.dir.path().join("depot/workspaces/default").exists());
    drop(taken);
    // A new one of that name begins with nothing.
    assert_eq!(world.depot.used(&world.workspace).unwrap(), 0);
    assert!(world.take("a").is_ok());
    world.depot.forget(&world.workspace).unwrap();
    world.depot.forget(&world.workspace).unwrap();
}

#[test]
fn x_e95_copies_are_readable_only_for_their_owner() {
    let world = World::new();
    world.file("a", "1234");
    let taken = world.take("a").unwrap();
    let place = world.dir.path().join("depot");
    let mode = |path: &str| place.join(path).metadata().unwrap().permissions().mode() & 0o777;
    let hash = taken.snapshot.files[0].hash;
    assert_eq!(mode(&format!("workspaces/default/{hash}")), 0o600);
    for folder in [".", "temporary", "workspaces", "workspaces/default"] {
        assert_eq!(mode(folder), 0o700, "{folder}");
    }
}
