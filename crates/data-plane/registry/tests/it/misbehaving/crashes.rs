//! Children that die: the events, the number of retries, and the cost of retries.

use std::{sync::Arc, time::Duration};

use narthex_model::{CallErrorKind, ServerState};
use narthex_registry::{Registry, ServerEvent, ServerRow};
use serde_json::json;
use tokio::{sync::broadcast::error::TryRecvError, time::Instant};

use crate::{
    unruly::{Mark, ask, zombies},
    world::{in_time, message, start, until, until_state},
};

fn kill(process: u32) {
    let process = rustix::process::Pid::from_raw(process.cast_signed()).unwrap();
    rustix::process::kill_process(process, rustix::process::Signal::KILL).unwrap();
}

fn child(row: &ServerRow) -> u32 {
    row.link.as_ref().unwrap().process_id().unwrap()
}

async fn back(registry: &Registry, name: &str, reconnects: u64) -> Arc<ServerRow> {
    let is_back = |row: &Arc<ServerRow>| row.is_ready() && row.reconnects == reconnects;
    let snapshot = until(registry, |snapshot| snapshot.get(name).is_some_and(is_back)).await;
    snapshot.get(name).unwrap().clone()
}

/// R-E40, R-E41, R-E42, R-D7: a loss is reported once, a return once, and health not at all.
#[tokio::test]
async fn r_e40_r_e41_a_loss_and_a_return_are_reported_once_each() {
    let mark = Mark::new();
    let registry = start([mark.server("x", "")]);
    let mut events = registry.events();
    let row = until_state(&registry, "x", ServerState::Ready).await;
    ask(row.link.as_ref().unwrap(), "echo", json!({})).await.unwrap();
    let none = events.try_recv().unwrap_err();
    assert_eq!(none, TryRecvError::Empty, "R-E42: a healthy server causes none");
    kill(child(&row));
    back(&registry, "x", 1).await;
    let ServerEvent::Lost { alias, reason } = events.try_recv().unwrap() else { panic!("lost") };
    assert_eq!(alias.as_str(), "x");
    assert!(reason.contains("signal 9"), "{reason}");
    let returned = events.try_recv().unwrap();
    let attempt = 1;
    assert_eq!(returned, ServerEvent::Reconnected { alias, reconnects: 1, attempt });
    assert_eq!(events.try_recv().unwrap_err(), TryRecvError::Empty);
    in_time(registry.close()).await;
}

/// R-M28, R-E14: a crashed child whose next start fails as well is tried again after a longer
/// pause, shakes hands anew, and lists anew.
#[tokio::test]
async fn r_e14_a_child_is_tried_again_after_growing_pauses() {
    let notes = tempfile::tempdir().unwrap();
    let mark = Mark::new();
    let registry = start([mark.server("x", &format!("notes={}", notes.path().display()))]);
    let before = until_state(&registry, "x", ServerState::Ready).await;
    kill(child(&before));
    let lost = Instant::now();
    until(&registry, |snapshot| snapshot.get("x").unwrap().attempt == 1).await;
    // The first try ends at once: the folder for the child's note is missing for a while.
    fs_err::remove_dir_all(notes.path()).unwrap();
    until(&registry, |snapshot| snapshot.get("x").unwrap().attempt == 2).await;
    assert!(lost.elapsed().as_millis() >= 1000, "{:?}", lost.elapsed());
    fs_err::create_dir(notes.path()).unwrap();
    let after = back(&registry, "x", 1).await;
    assert!(lost.elapsed().as_millis() >= 3000, "{:?}", lost.elapsed());
    assert!(after.inventory_version > before.inventory_version);
    assert_eq!(mark.alive(), [child(&after)]);
    in_time(registry.close()).await;
}

/// R-E15, R-M28: after the last attempt there is no further one, and a caller that wants the server
/// gets that answer at once.
#[tokio::test]
async fn r_e15_a_child_is_not_restarted_after_its_last_attempt() {
    let notes = tempfile::tempdir().unwrap();
    let folder = notes.path().join("folder");
    fs_err::create_dir(&folder).unwrap();
    let mark = Mark::new();
    let registry = start([mark.server("x", &format!("notes={}", folder.display()))]);
    let row = until_state(&registry, "x", ServerState::Ready).await;
    fs_err::remove_dir_all(&folder).unwrap();
    kill(child(&row));
    let row = until_state(&registry, "x", ServerState::Error).await;
    assert_eq!(row.error.as_ref().unwrap().kind, CallErrorKind::TransportError);
    assert!(message(&row).contains("gave up after 3 attempts"), "{}", message(&row));
    fs_err::create_dir(&folder).unwrap();
    // Timers alone move the clock, however slow the machine is.
    tokio::time::pause();
    let before = Instant::now();
    assert!(registry.enter(&row, crate::world::DEADLINE).await.is_none());
    assert_eq!(before.elapsed(), Duration::ZERO);
    tokio::time::resume();
    assert_eq!((mark.alive().len(), fs_err::read_dir(&folder).unwrap().count()), (0, 0));
    assert!(in_time(registry.reconnect("x")).await.unwrap().is_ready(), "E35");
    in_time(registry.close()).await;
}

fn resident_kib() -> u64 {
    let status = fs_err::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// Kills the child `times` times, and waits for each new start.
async fn crash(registry: Registry, name: String, times: usize) {
    for _ in 0..times {
        let row = registry.get(&name).unwrap();
        let lost = row.link.clone().unwrap();
        kill(child(&row));
        drop(row);
        in_time(lost.closed().cancelled()).await;
        drop(lost);
        let result = in_time(registry.reconnect(&name)).await.unwrap();
        assert!(result.is_ready(), "{result:?}");
    }
}

/// S31, E133: a thousand crashes and restarts leave no process, no zombie and no memory.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn e133_a_thousand_crashes_leave_no_process_and_no_memory() {
    let mark = Mark::new();
    let names: Vec<_> = (0..4).map(|number| format!("x{number}")).collect();
    let registry = start(names.iter().map(|name| mark.server(name, "")));
    until(&registry, |snapshot| snapshot.is_settled()).await;
    let mut after_warm_up = 0;
    for round in 0..10 {
        let mut crashing = tokio::task::JoinSet::new();
        for name in &names {
            crashing.spawn(crash(registry.clone(), name.clone(), 25));
        }
        while let Some(done) = crashing.join_next().await {
            done.unwrap();
        }
        mark.until(names.len()).await;
        if round == 2 {
            after_warm_up = resident_kib();
        }
    }
    assert_eq!(zombies(), 0);
    let grown = resident_kib().saturating_sub(after_warm_up);
    assert!(grown < 16 * 1024, "700 restarts have left {grown} KiB");
    in_time(registry.close()).await;
    assert_eq!((mark.alive().len(), zombies()), (0, 0));
}
