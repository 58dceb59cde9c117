//! The stop ladder, which leaves nothing behind.

use std::time::Duration;

use narthex_supervisor::{ExitInfo, Process, ProcessState};
use tokio_util::task::TaskTracker;

use crate::support::{
    DEAF, DEAF_LEAVER, LEAVER, POLITE, drain, in_time, members, read_all, shell, start,
};

const SIGTERM: i32 = 15;
const SIGKILL: i32 = 9;
const SHORT: Duration = Duration::from_millis(100);

#[tokio::test]
async fn a_polite_child_ends_by_sigterm() {
    let tracker = TaskTracker::new();
    let (process, _io) = start(shell(POLITE), &tracker).await;
    assert_eq!(process.state(), ProcessState::Running);
    let exit = in_time(process.stop()).await;
    assert_eq!(exit, ExitInfo { code: None, signal: Some(SIGTERM), forced: false });
    assert_eq!(process.state(), ProcessState::Exited(exit));
    assert_eq!(members(process.id()), 0);
}

/// R-M19.
#[tokio::test]
async fn a_deaf_child_and_grandchild_are_killed_after_the_grace() {
    let tracker = TaskTracker::new();
    let mut spec = shell(DEAF);
    spec.stop_grace = SHORT;
    let (process, _io) = start(spec, &tracker).await;
    assert_eq!(members(process.id()), 2);
    let exit = in_time(process.stop()).await;
    assert_eq!(exit, ExitInfo { code: None, signal: Some(SIGKILL), forced: true });
    assert_eq!(members(process.id()), 0);
}

/// D22.
#[tokio::test]
async fn processes_left_behind_by_the_leader_are_stopped() {
    let tracker = TaskTracker::new();
    let (process, _io) = start(shell(LEAVER), &tracker).await;
    let exit = in_time(process.exited()).await;
    assert_eq!(exit, ExitInfo { code: Some(3), signal: None, forced: false });
    assert_eq!(members(process.id()), 0);
}

#[tokio::test]
async fn processes_left_behind_that_ignore_sigterm_are_killed() {
    let tracker = TaskTracker::new();
    let mut spec = shell(DEAF_LEAVER);
    spec.stop_grace = SHORT;
    let (process, _io) = start(spec, &tracker).await;
    let exit = in_time(process.exited()).await;
    assert_eq!(exit, ExitInfo { code: Some(3), signal: None, forced: true });
    assert_eq!(members(process.id()), 0);
}

/// R-M20.
#[tokio::test]
async fn concurrent_stops_share_one_sequence_of_signals() {
    let tracker = TaskTracker::new();
    let script = "trap 'echo asked; exit 7' TERM; echo ready; while :; do sleep 1000 & wait; done";
    let (process, mut io) = start(shell(script), &tracker).await;
    let other = process.clone();
    let (first, second, watched) =
        in_time(async { tokio::join!(process.stop(), other.stop(), process.exited()) }).await;
    assert_eq!((first, second), (watched, watched));
    assert_eq!(watched.code, Some(7));
    assert_eq!(in_time(process.stop()).await, watched);
    assert_eq!(read_all(&mut io).await, "asked\n");
}

#[tokio::test]
async fn the_exit_of_a_child_is_reported_to_several_waiters() {
    let tracker = TaskTracker::new();
    let (process, io) = Process::spawn(shell("cat; exit 5"), &tracker).await.unwrap();
    let (first, second) = (process.exited(), process.exited());
    drop(io.stdin);
    let (first, second) = in_time(async { tokio::join!(first, second) }).await;
    assert_eq!(first, ExitInfo { code: Some(5), signal: None, forced: false });
    assert_eq!(first, second);
}

#[tokio::test]
async fn kill_now_takes_the_whole_group() {
    let tracker = TaskTracker::new();
    let (process, _io) = start(shell(DEAF), &tracker).await;
    process.kill_now();
    let exit = in_time(process.exited()).await;
    assert_eq!(exit, ExitInfo { code: None, signal: Some(SIGKILL), forced: true });
    assert_eq!(members(process.id()), 0);
    process.kill_now();
}

#[tokio::test]
async fn a_stop_is_completed_after_its_caller_is_dropped() {
    let tracker = TaskTracker::new();
    let script = "trap 'echo asked; exit 0' TERM; echo ready; while :; do sleep 1000 & wait; done";
    let (process, mut io) = start(shell(script), &tracker).await;
    let (exited, id) = (process.exited(), process.id());
    tokio::select! {
        biased;
        _exit = process.stop() => unreachable!("the actor had no turn yet"),
        () = std::future::ready(()) => {}
    }
    drop(process);
    assert_eq!(in_time(exited).await.code, Some(0));
    assert_eq!(read_all(&mut io).await, "asked\n");
    assert_eq!(members(id), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_starts_and_stops_leave_no_process() {
    let tracker = TaskTracker::new();
    let mut groups = Vec::new();
    for cycle in 0..200 {
        let mut spec = shell(if cycle % 10 == 0 { DEAF } else { POLITE });
        spec.stop_grace = Duration::from_millis(10);
        let (process, _io) = start(spec, &tracker).await;
        groups.push(process.id());
        in_time(process.stop()).await;
    }
    drain(&tracker).await;
    let left: usize = groups.into_iter().map(members).sum();
    assert_eq!(left, 0);
}
