//! Ways out of a run's folder, each of which is closed.

use std::os::unix::net::UnixListener;

use narthex_model::ErrorKind;
use narthex_shares::{Stop, Why};
use rustix::fs::{CWD, FileType, Mode, makedev, mknodat};

use crate::world::{CANARY, INSIDE, World};

fn world() -> World {
    let world = World::new();
    world.file("inside.txt", INSIDE);
    world.file("sub/deep.txt", INSIDE);
    world.file("../project-evil/x", CANARY);
    let outside = world.dir.path().join("outside");
    world.link("out", "../outside/x");
    world.link("out_absolute", outside.join("x"));
    world.link("out_folder", "../outside");
    world.link("sub/out_twice", "../out_folder");
    world.link("parent", "..");
    world.link("out_and_in", "../project/inside.txt");
    world.link("root", "/proc/self/root");
    world.link("descriptor", "/proc/self/fd/0");
    world.link("device", "/dev/null");
    world.link("loop", "loop");
    world.link("nowhere", "none");
    world.link("within", "inside.txt");
    world.link("sub/up", "../inside.txt");
    mknodat(CWD, world.project().join("pipe"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    drop(UnixListener::bind(world.project().join("socket")).unwrap());
    world
}

/// X-E94, S29: files outside are not shared, by no spelling and by no link.
#[test]
fn x_e94_no_path_leads_out_of_the_folder() {
    let world = world();
    let absolute = world.project().join("inside.txt").to_str().unwrap().to_owned();
    let outside = "path_outside_folder";
    let cases = [
        ("inside.txt", Ok("inside.txt")),
        ("./sub//deep.txt", Ok("deep.txt")),
        ("within", Ok("within")),
        ("sub/up", Ok("up")),
        ("", Err(outside)),
        ("..", Err(outside)),
        ("../outside/x", Err(outside)),
        ("../project-evil/x", Err(outside)),
        ("sub/../../outside/x", Err(outside)),
        ("sub/../inside.txt", Err(outside)),
        ("/etc/passwd", Err(outside)),
        (&absolute, Err(outside)),
        ("//inside.txt", Err(outside)),
        ("inside.txt\0", Err(outside)),
        ("in\nside", Err(outside)),
        ("out", Err(outside)),
        ("out_absolute", Err(outside)),
        ("out_folder", Err(outside)),
        ("out_folder/x", Err(outside)),
        ("sub/out_twice/x", Err(outside)),
        ("parent", Err(outside)),
        ("parent/outside/x", Err(outside)),
        ("out_and_in", Err(outside)),
        ("root/etc/passwd", Err(outside)),
        ("descriptor", Err(outside)),
        ("device", Err(outside)),
        ("loop", Err(outside)),
        ("nowhere", Err("file_not_found")),
        ("none", Err("file_not_found")),
        ("inside.txt/x", Err("file_not_found")),
        ("%2e%2e/outside/x", Err("file_not_found")),
        ("..\\outside\\x", Err("file_not_found")),
        ("pipe", Err("not_a_file")),
        ("socket", Err("not_a_file")),
    ];
    for (path, expected) in cases {
        match (world.take(path), expected) {
            (Ok(taken), Ok(name)) => {
                let contents = world.contents(&taken.snapshot);
                assert_eq!(contents[name], INSIDE.as_bytes(), "{path}");
                assert_eq!(contents.len(), 1, "{path}");
            }
            (Err(error), Err(code)) => {
                assert_eq!(error.code(), code, "{path}: {error}");
                assert!(
                    !error.to_string().contains(world.dir.path().to_str().unwrap())
                        || path == absolute,
                    "{error}"
                );
            }
            (Ok(taken), Err(_)) => panic!("{path}: {:?}", taken.snapshot),
            (Err(error), Ok(_)) => panic!("{path}: {error}"),
        }
    }
    let (name, path) = ("x".repeat(300), "x/".repeat(3000));
    assert_eq!(world.take(&name).unwrap_err().code(), "file_not_found");
    assert_eq!(world.take(&path).unwrap_err().code(), "path_outside_folder");
}

/// A device is not read, however it came into the folder. Only root can put one there.
#[test]
fn x_e94_a_device_in_the_folder_is_no_file() {
    let world = World::new();
    let zero = world.project().join("zero");
    let made = mknodat(CWD, zero, FileType::CharacterDevice, Mode::RUSR, makedev(1, 5));
    if made.is_err() {
        println!("SKIPPED: this user makes no devices");
        return;
    }
    let error = world.take("zero").unwrap_err();
    // On systems without devices, the kernel refuses earlier.
    assert!(["not_a_file", "file_unreadable"].contains(&error.code()), "{error}");
    assert_eq!(error.kind(), ErrorKind::Invalid);
}

/// X-E95: a folder is shared without parts that lead out of it, and the share lists the missing
/// parts.
#[test]
fn x_e95_a_shared_folder_lists_its_skipped_parts() {
    let world = world();
    for hidden in [".git/config", ".env", "node_modules/x", "sub/__pycache__/x", "bad\nname"] {
        world.file(hidden, CANARY);
    }
    let taken = world.take(".").unwrap();
    let contents = world.contents(&taken.snapshot);
    let expected = ["inside.txt", "sub/deep.txt"];
    assert_eq!(contents.keys().collect::<Vec<_>>(), expected);
    assert!(contents.values().all(|content| content == INSIDE.as_bytes()));
    let skipped = taken.snapshot.skipped.iter().map(|one| (one.path.as_str(), one.why));
    let mut skipped: Vec<_> = skipped.collect();
    skipped.sort_by_key(|(path, _)| *path);
    let mut links = vec![
        "descriptor",
        "device",
        "loop",
        "nowhere",
        "out",
        "out_absolute",
        "out_and_in",
        "out_folder",
        "parent",
        "root",
        "sub/out_twice",
        "sub/up",
        "within",
    ]
    .into_iter()
    .map(|path| (path, Why::Link))
    .collect::<Vec<_>>();
    links.extend([
        (".env", Why::Hidden),
        (".git", Why::Hidden),
        ("bad\u{fffd}name", Why::Name),
        ("node_modules", Why::MadeAgain),
        ("pipe", Why::NotAFile),
        ("socket", Why::NotAFile),
        ("sub/__pycache__", Why::MadeAgain),
    ]);
    links.sort_by_key(|(path, _)| *path);
    assert_eq!(skipped, links);
    assert_eq!(taken.snapshot.skipped_count, links.len());
}

/// The opened folder stays the same when its name leads elsewhere.
#[test]
fn x_e94_an_opened_folder_is_still_used_after_its_path_is_replaced() {
    let world = World::new();
    world.file("x", INSIDE);
    let folder = world.folder();
    fs_err::rename(world.project(), world.dir.path().join("moved")).unwrap();
    let outside = world.dir.path().join("outside");
    std::os::unix::fs::symlink(outside, world.project()).unwrap();
    let taken =
        world.depot.take(&world.workspace, &folder, "x", u64::MAX, &Stop::default()).unwrap();
    assert_eq!(world.contents(&taken.snapshot)["x"], INSIDE.as_bytes());
}
