//! The fuzz target of paths: for any path of an agent, nothing outside its folder is shared.
//!
//! As a test it runs a bounded number of rounds; `cargo bolero test NAME` runs it for longer.

#![expect(
    clippy::tests_outside_test_module,
    reason = "this whole program is tests; clippy looks for the module of unit tests"
)]

use std::io::Read;
use std::os::unix::fs::symlink;

use narthex_model::{ErrorKind, WorkspaceId};
use narthex_shares::{Depot, Folder, Limits, Stop};
use narthex_testkit::rounds;

const ROUNDS: usize = 2000;
const CANARY: &str = "canary-4711";
/// Pieces of paths. Existing names come often, or hardly any path would lead anywhere.
const PIECES: [&str; 20] = [
    "a",
    "sub",
    "out",
    "up",
    "in",
    "root",
    "canary",
    "outside",
    "out",
    "sub",
    "in",
    "up",
    "out",
    "..",
    ".",
    "",
    "etc/passwd",
    "\0",
    "%2e",
    "\\",
];

/// X-E94, S29.
#[test]
fn x_e94_no_path_shares_a_file_outside_of_the_folder() {
    let dir = tempfile::tempdir().unwrap();
    let project = dir.path().join("project");
    fs_err::create_dir_all(project.join("sub")).unwrap();
    fs_err::create_dir(dir.path().join("outside")).unwrap();
    fs_err::write(dir.path().join("outside/canary"), CANARY).unwrap();
    fs_err::write(project.join("a"), "inside").unwrap();
    fs_err::write(project.join("sub/a"), "inside").unwrap();
    for (name, to) in [("out", "../outside"), ("up", ".."), ("in", "sub"), ("root", "/")] {
        symlink(to, project.join(name)).unwrap();
    }
    symlink("../../outside/canary", project.join("sub/out")).unwrap();
    symlink("../a", project.join("sub/in")).unwrap();
    let depot = Depot::open(&dir.path().join("depot"), Limits::default()).unwrap();
    let (workspace, folder) = (WorkspaceId::default(), Folder::open(&project).unwrap());
    let target = bolero::check!().with_iterations(rounds(ROUNDS));
    target.with_type::<([u8; 4], u8, String)>().for_each(|(pieces, count, tail)| {
        let pieces = pieces.iter().map(|piece| PIECES[usize::from(*piece) % PIECES.len()]);
        let pieces: Vec<_> = pieces.take(1 + usize::from(count % 4)).collect();
        let mut path = pieces.join("/");
        if *count >= 192 {
            path.push_str(tail);
        }
        match depot.take(&workspace, &folder, &path, u64::MAX, &Stop::default()) {
            Ok(taken) => {
                for file in &taken.snapshot.files {
                    let mut content = String::new();
                    let mut copy = depot.read(&workspace, file.hash).unwrap();
                    copy.read_to_string(&mut content).unwrap();
                    assert_eq!(content, "inside", "{path:?}: {file:?}");
                    assert!(!file.path.starts_with('/') && !file.path.contains(".."), "{file:?}");
                }
            }
            Err(error) => {
                let kinds = [ErrorKind::Invalid, ErrorKind::NotFound];
                assert!(kinds.contains(&error.kind()), "{path:?}: {error}");
            }
        }
    });
}
