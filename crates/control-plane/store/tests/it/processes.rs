//! Several processes with one store, and processes that are killed while they write.

use std::{
    collections::BTreeSet,
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, Command, Stdio},
    time::Duration,
};

use narthex_model::WorkspaceId;
use narthex_store::{OAuthFacts, OAuthGrantKey};

use crate::support::{Place, id, open_in};

/// Number of names per transaction.
const BATCH: u32 = 40;
/// Length of the leases of processes that are killed: longer than any test.
const LEASE: Duration = Duration::from_hours(1);

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

fn grant() -> OAuthGrantKey {
    OAuthGrantKey { workspace: id("default"), server: "docs".to_owned(), user: None }
}

/// C23: a process that is killed before, during or after the renewal of a grant leaves the old row
/// or the new one. Its lease ends by time, and no other renews before.
#[tokio::test]
async fn c23_a_killed_process_leaves_the_old_grant_or_the_new_one() {
    for place in Place::both() {
        let store = place.open().await;
        store.oauth_grants().put(&grant(), "0", &OAuthFacts::default()).await.unwrap();
        store.close().await;
        let mut renewed = 0;
        for round in 1..=6 {
            let mut child = start("renews_without_end", place.dir());
            let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
            // Each round is killed at another moment.
            let mut told = Vec::new();
            for _ in 0..10 * round + round {
                told.push(lines.next().expect("it renews without end").unwrap());
            }
            child.kill().unwrap();
            child.wait().unwrap();
            told.extend(lines.map(Result::unwrap));
            let numbers = told.iter().filter_map(|line| line.strip_prefix("renewed "));
            let last: Vec<u64> = numbers.map(|number| number.parse().unwrap()).collect();
            renewed = last.last().copied().unwrap_or(renewed);
            let store = place.open().await;
            let grants = store.oauth_grants();
            let row = grants.find(&grant()).await.unwrap().unwrap();
            let number: u64 = row.sealed.parse().unwrap();
            assert!([renewed, renewed + 1].contains(&number), "{number}, reported: {renewed}");
            renewed = number;
            if let Some((owner, until)) = &row.lease {
                let before = *until - Duration::from_millis(1);
                let held = grants.lease(&grant(), "other", before, LEASE).await.unwrap();
                assert_eq!(held.unwrap().lease.as_ref(), Some(&(owner.clone(), *until)));
                let free = grants.lease(&grant(), "other", *until, LEASE).await.unwrap();
                assert_eq!(free.unwrap().lease.unwrap().0, "other");
            }
            let next = (number + 1).to_string();
            let stored = grants.renew(&grant(), row.generation, &next, &row.facts).await.unwrap();
            assert_eq!(stored.unwrap().lease, None);
            renewed += 1;
            store.close().await;
        }
    }
}

#[tokio::test]
#[ignore = "the one that c23_a_killed_process_leaves_the_old_grant_or_the_new_one kills"]
async fn renews_without_end() {
    let store = open_in(Path::new(".")).await;
    let (grants, me) = (store.oauth_grants(), std::process::id().to_string());
    // In one piece, so that no half of a line is read.
    let tell = |line: String| std::io::stderr().write_all(format!("{line}\n").as_bytes()).unwrap();
    // The loop ends, should a person run the test by hand.
    for _ in 0..100_000 {
        let now = store.now().await.unwrap();
        let row = grants.lease(&grant(), &me, now, LEASE).await.unwrap().unwrap();
        assert_eq!(row.lease.map(|(owner, _)| owner).as_ref(), Some(&me));
        let number: u64 = row.sealed.parse().unwrap();
        tell(format!("leased {number}"));
        // Here the authorization server would be asked.
        tell(format!("asked {number}"));
        let next = (number + 1).to_string();
        let stored = grants.renew(&grant(), row.generation, &next, &row.facts).await.unwrap();
        assert!(stored.is_some());
        tell(format!("renewed {next}"));
    }
}
