//! Any tree of files, folders and links is shared as far as it is its own.

use std::collections::BTreeMap;
use std::path::Path;

use proptest::prelude::*;

use crate::world::World;

const NAMES: [&str; 7] = ["a", "b.png", "index.html", ".c", "node_modules", "ä", "a b"];
const TARGETS: [&str; 6] = ["a", "b.png", "..", "../../outside", "/etc/passwd", "../outside/x"];

#[derive(Debug, Clone)]
enum Thing {
    File(Vec<u8>),
    Folder,
    Link(&'static str),
}

fn things() -> impl Strategy<Value = Vec<(Vec<&'static str>, Thing)>> {
    let path = prop::collection::vec(prop::sample::select(&NAMES[..]), 1..4);
    let thing = prop_oneof![
        3 => prop::collection::vec(any::<u8>(), 0..40).prop_map(Thing::File),
        1 => Just(Thing::Folder),
        2 => prop::sample::select(&TARGETS[..]).prop_map(Thing::Link),
    ];
    prop::collection::vec((path, thing), 1..20)
}

/// Makes a file or folder, unless another one is in the way.
fn make(world: &World, path: &[&str], thing: &Thing) {
    let mut at = world.project();
    for part in &path[..path.len() - 1] {
        at.push(part);
        // A link on the way could lead out of the world.
        if at.is_symlink() || fs_err::create_dir(&at).is_err() && !at.is_dir() {
            return;
        }
    }
    at.push(path[path.len() - 1]);
    if at.symlink_metadata().is_ok() {
        return;
    }
    match thing {
        Thing::File(content) => fs_err::write(at, content).unwrap(),
        Thing::Folder => fs_err::create_dir(at).unwrap(),
        Thing::Link(to) => std::os::unix::fs::symlink(to, at).unwrap(),
    }
}

/// Finds the expected files in another way: by names and the kinds of entries.
fn expected(folder: &Path, at: &str, all: &mut BTreeMap<String, Vec<u8>>) {
    for entry in fs_err::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        if name.starts_with('.') || name == "node_modules" {
            continue;
        }
        let path = format!("{at}{name}");
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            expected(&entry.path(), &format!("{path}/"), all);
        } else if kind.is_file() {
            all.insert(path, fs_err::read(entry.path()).unwrap());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn x_e94_x_e95_exactly_the_folders_own_files_are_shared(things in things()) {
        let world = World::new();
        for (path, thing) in &things {
            make(&world, path, thing);
        }
        let mut all = BTreeMap::new();
        expected(&world.project(), "", &mut all);
        match world.take(".") {
            Ok(taken) => {
                prop_assert_eq!(&world.contents(&taken.snapshot), &all);
                let total: usize = all.values().map(Vec::len).sum();
                prop_assert_eq!(taken.snapshot.total_size, total as u64);
                let paths: Vec<_> = taken.snapshot.files.iter().map(|file| &file.path).collect();
                prop_assert!(paths.is_sorted());
                let used = world.depot.used(&world.workspace).unwrap();
                prop_assert!(used <= total as u64);
            }
            Err(error) => {
                prop_assert_eq!(error.code(), "nothing_to_share");
                prop_assert!(all.is_empty());
            }
        }
    }
}
