//! Several processes with one store, and processes that are killed while they write.

use std::{
    collections::BTreeSet,
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, Command, Stdio},
};

use narthex_model::WorkspaceId;

use crate::support::{Place, id, open_in};

/// Number of names per transaction.
const BATCH: u32 = 40;

/// Starts one of the tests below as a separate process in the folder.
fn start(test: &str, dir: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &format!("processes::{test}"), "--ignored", "--nocapture"])
        .current_dir(dir)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

#[tokio::test]
async fn several_processes_use_one_new_store_at_the_same_time() {
    for place in Place::both() {
        let children: Vec<_> = (0..5).map(|_| start("some_writes", place.dir())).collect();
        let pids: Vec<_> = children.iter().map(Child::id).collect();
        let store = place.open().await;
        for child in children {
            let output = child.wait_with_output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        }
        let expected: BTreeSet<_> =
            pids.iter().flat_map(|pid| (0..20).map(move |n| format!("{pid}-{n}"))).collect();
        assert_eq!(store.server_flags().disabled(&id("default")).await.unwrap(), expected);
    }
}

#[tokio::test]
#[ignore = "one of several_processes_use_one_new_store_at_the_same_time, run as its own process"]
async fn some_writes() {
    let store = open_in(Path::new(".")).await;
    let me = std::process::id();
    for number in 0..20 {
        let name = format!("{me}-{number}");
        store.server_flags().set_disabled(&WorkspaceId::default(), &name, true).await.unwrap();
    }
    store.close().await;
}

/// Confirmed writes are there after the process was killed, and no transaction is there by halves.
#[tokio::test]
async fn a_killed_process_loses_no_confirmed_write() {
    for place in Place::both() {
        let mut told = BTreeSet::new();
        for round in 1..=5 {
            let mut child = start("writes_without_end", place.dir());
            let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
            // Each round is killed at another moment.
            for _ in 0..10 * round + round {
                told.insert(lines.next().expect("it writes without end").unwrap());
            }
            child.kill().unwrap();
            child.wait().unwrap();
            told.extend(lines.map(Result::unwrap));
            let store = place.open().await;
            let names = store.seeded_defaults().names(&id("default")).await.unwrap();
            let mut batches: BTreeSet<String> = BTreeSet::new();
            for name in &names {
                batches.insert(name.rsplit_once('-').unwrap().0.to_owned());
            }
            assert_eq!(names.len(), batches.len() * BATCH as usize);
            assert!(batches.is_superset(&told), "lost: {:?}", told.difference(&batches));
            assert!(batches.len() <= told.len() + round, "more than the last of each was stored");
            store.close().await;
        }
        if place.is_file() {
            assert_eq!(place.sql("PRAGMA integrity_check").await, ["ok"]);
            assert_eq!(place.sql("PRAGMA foreign_key_check").await, [""; 0]);
        }
    }
}

#[tokio::test]
#[ignore = "the one that a_killed_process_loses_nothing kills, run as its own process"]
async fn writes_without_end() {
    let store = open_in(Path::new(".")).await;
    let me = std::process::id();
    // The loop ends, should a person run the test by hand.
    for number in 0..100_000 {
        let names: Vec<_> = (0..BATCH).map(|n| format!("{me}:{number}-{n}")).collect();
        let names = names.iter().map(String::as_str);
        store.seeded_defaults().mark(&WorkspaceId::default(), names).await.unwrap();
        // In one piece, so that no half of a line is read.
        std::io::stderr().write_all(format!("{me}:{number}\n").as_bytes()).unwrap();
    }
}
