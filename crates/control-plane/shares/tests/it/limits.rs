//! Limits of one share.

use narthex_shares::{Limits, ShareKind, Stop, Why};

use crate::world::{INSIDE, World};

const SMALL: Limits = Limits { file_bytes: 10, share_bytes: 25, files: 4, names: 12, depth: 2 };

fn code(world: &World, path: &str) -> &'static str {
    world.take(path).unwrap_err().code()
}

/// X-E95: alone, a large file is an error; in a folder it is passed over and listed.
#[test]
fn x_e95_large_files() {
    let world = World::with(SMALL);
    world.file("most", [7; 10]);
    world.file("more", [7; 11]);
    assert_eq!(world.take("most").unwrap().snapshot.total_size, 10);
    assert_eq!(code(&world, "more"), "file_too_large");
    let taken = world.take(".").unwrap();
    assert_eq!(taken.snapshot.files.len(), 1);
    assert_eq!(taken.snapshot.skipped[0].path, "more");
    assert_eq!(taken.snapshot.skipped[0].why, Why::TooLarge);
    assert_eq!(Limits::default().file_bytes, 52_428_800);
    assert_eq!(Limits::default().share_bytes, 209_715_200);
}

/// X-E95: a share that is too large as a whole is refused, and leaves nothing.
#[test]
fn x_e95_large_shares() {
    let world = World::with(SMALL);
    for (name, size) in [("a", 10), ("b", 10), ("c", 5)] {
        world.file(name, vec![name.as_bytes()[0]; size]);
    }
    assert_eq!(world.take(".").unwrap().snapshot.total_size, 25);
    world.file("d", "d");
    let other = narthex_model::WorkspaceId::new("other").unwrap();
    let refused =
        world.depot.take(&other, &world.folder(), ".", u64::MAX, &Stop::default()).unwrap_err();
    assert_eq!(refused.code(), "share_too_large");
    assert_eq!(world.depot.used(&other).unwrap(), 0);
    let temporary = world.dir.path().join("depot/temporary");
    assert_eq!(fs_err::read_dir(temporary).unwrap().count(), 0);
}

#[test]
fn x_e95_many_files_and_many_names() {
    let world = World::with(SMALL);
    for name in ["a", "b", "c", "d"] {
        world.file(name, "");
    }
    assert_eq!(world.take(".").unwrap().snapshot.files.len(), 4);
    world.file("e", "");
    assert_eq!(code(&world, "."), "too_many_files");
    for index in 0..13 {
        world.file(&format!("many/.{index}"), "");
    }
    assert_eq!(code(&world, "many"), "too_many_files");
    fs_err::remove_file(world.project().join("many/.0")).unwrap();
    assert_eq!(code(&world, "many"), "nothing_to_share");
}

#[test]
fn x_e95_deep_folders() {
    let world = World::with(SMALL);
    world.file("a/b/x", INSIDE);
    world.file("a/b/c/x", INSIDE);
    let taken = world.take(".").unwrap();
    assert_eq!(taken.snapshot.files[0].path, "a/b/x");
    assert_eq!(taken.snapshot.files.len(), 1);
    let skipped = &taken.snapshot.skipped[0];
    assert_eq!((skipped.path.as_str(), skipped.why), ("a/b/c", Why::TooDeep));
}

/// X-E96: the kind of a share, and the file to begin with.
#[test]
fn x_e96_kinds_and_beginnings() {
    let world = World::new();
    world.file("site/index.html", "<p>");
    world.file("site/style.css", "p{}");
    world.file("one/plot.png", "png");
    world.file("mixed/a.png", "png");
    world.file("mixed/b.csv", "a,b");
    let cases = [
        ("site", ShareKind::Site, Some("index.html")),
        ("site/index.html", ShareKind::Site, Some("index.html")),
        ("one", ShareKind::Image, Some("plot.png")),
        ("mixed", ShareKind::File, None),
        ("mixed/b.csv", ShareKind::Csv, Some("b.csv")),
    ];
    for (path, kind, entry_point) in cases {
        let taken = world.take(path).unwrap();
        assert_eq!(taken.snapshot.kind, kind, "{path}");
        assert_eq!(taken.snapshot.entry_point.as_deref(), entry_point, "{path}");
        assert_eq!(taken.snapshot.name, path.rsplit('/').next().unwrap());
    }
    assert_eq!(
        world.take("mixed/b.csv").unwrap().snapshot.files[0].content_type,
        "text/csv; charset=utf-8"
    );
}
