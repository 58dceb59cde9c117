//! Children whose owner is gone: a dropped handle, a dropped future, a runtime, a dead daemon.

use std::io::Write;
use std::process::{Command, Stdio};

use narthex_supervisor::{Process, ProcessSpec};
use tokio_util::task::TaskTracker;

use crate::support::{DEAF, Witness, drain, in_time, members, shell, start, unshimmed};

/// Holds the witness's pipe, deaf to SIGTERM, with a grandchild that does the same.
fn witnessed(directory: &std::path::Path) -> ProcessSpec {
    let mut spec =
        shell("exec 3>witness; trap '' TERM; sleep 1000 & echo ready >&3; echo ready; wait");
    spec.working_dir = Some(directory.to_owned());
    spec
}

#[tokio::test]
async fn dropping_the_last_handle_kills_the_child() {
    let tracker = TaskTracker::new();
    let (process, _io) = start(shell(DEAF), &tracker).await;
    let (exited, id, clone) = (process.exited(), process.id(), process.clone());
    drop(process);
    assert_eq!(members(id), 2);
    drop(clone);
    assert!(in_time(exited).await.forced);
    assert_eq!(members(id), 0);
    drain(&tracker).await;
}

#[tokio::test]
async fn a_dropped_spawn_leaves_no_process() {
    let directory = tempfile::tempdir().unwrap();
    let witness = Witness::new(&directory.path().join("witness"));
    // Keeps the pipe from ending before the child opened it.
    let holder = fs_err::OpenOptions::new().write(true).open(directory.path().join("witness"));
    let tracker = TaskTracker::new();
    tokio::select! {
        biased;
        _started = Process::spawn(witnessed(directory.path()), &tracker) => unreachable!("fast"),
        () = std::future::ready(()) => {}
    }
    // The next child is started by the same thread, hence after the dropped one.
    let (next, _io) = start(shell("echo ready; exec sleep 1000"), &tracker).await;
    drop(holder);
    witness.all_gone().await;
    in_time(next.stop()).await;
}

#[test]
fn a_runtime_that_shuts_down_leaves_no_process() {
    let directory = tempfile::tempdir().unwrap();
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (first, second) = (runtime(), runtime());
    let (process, io, witness) = first.block_on(async {
        let mut witness = Witness::new(&directory.path().join("witness"));
        let started = start(witnessed(directory.path()), &TaskTracker::new()).await;
        assert_eq!(witness.line().await, "ready\n");
        (started.0, started.1, witness)
    });
    let group = process.id();
    let exited = process.exited();
    drop((io, witness));
    drop(first);
    assert!(second.block_on(in_time(exited)).forced);
    second.block_on(in_time(async {
        while members(group) > 0 {
            tokio::task::yield_now().await;
        }
    }));
}

/// D22, A-15.
#[tokio::test]
#[cfg(target_os = "linux")]
async fn the_children_of_a_killed_daemon_end() {
    let directory = tempfile::tempdir().unwrap();
    let mut witness = Witness::new(&directory.path().join("witness"));
    let mut daemon = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "drop_and_daemon::daemon_to_be_killed", "--ignored", "--nocapture"])
        .current_dir(directory.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    assert_eq!(witness.line().await, "ready\n");
    daemon.kill().unwrap();
    daemon.wait().unwrap();
    witness.all_gone().await;
}

#[tokio::test]
#[ignore = "the daemon of the_children_of_a_killed_daemon_end, run as its own process"]
async fn daemon_to_be_killed() {
    // With a shim, the child's descendants end as well: see `trees`.
    let mut spec = unshimmed("exec 3>witness; echo ready >&3; exec sleep 1000");
    spec.stop_grace = std::time::Duration::ZERO;
    let (_process, _io) = Process::spawn(spec, &TaskTracker::new()).await.unwrap();
    std::io::stdout().flush().unwrap();
    // Ends when its stdin does, should a person run it by hand.
    std::io::copy(&mut std::io::stdin(), &mut std::io::sink()).unwrap();
}
