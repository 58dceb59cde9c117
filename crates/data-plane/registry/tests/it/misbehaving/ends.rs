//! Ends of children that ignore the request to end, of mounts, and of the registry itself.

use std::{sync::Arc, time::Duration};

use narthex_model::{ServerDefinition, ServerState};
use narthex_registry::{
    MountOptions, MountSet, Mountable, Registry, ServerEvent, ServerResult, config::Entry,
};
use narthex_testkit::clock::SteppedClock;
use narthex_upstream::Ended;
use serde_json::json;

use crate::{
    unruly::{Mark, ask, zombies},
    world::{in_time, start, until, until_state},
};

async fn mount(registry: &Registry, servers: Vec<ServerDefinition>) -> MountSet {
    let mountable = |one| Mountable::new(Arc::new(one));
    let options = MountOptions { timeout: Duration::from_secs(60), ..MountOptions::default() };
    let set = servers.into_iter().map(mountable).collect();
    in_time(registry.mount(set, &options)).await.unwrap()
}

/// R-M17: a child leads its own process group, so that Ctrl-C at the terminal does not reach it.
#[tokio::test]
async fn r_m17_a_child_leads_its_own_process_group() {
    let registry = start([crate::unruly::unruly("x", "")]);
    let row = until_state(&registry, "x", ServerState::Ready).await;
    let process = row.link.as_ref().unwrap().process_id().unwrap();
    let process = rustix::process::Pid::from_raw(process.cast_signed()).unwrap();
    let group = rustix::process::getpgid(Some(process)).unwrap();
    assert_eq!(group, process);
    assert_ne!(group, rustix::process::getpgrp());
    in_time(registry.close()).await;
}

/// R-M19, R-E6, R-E7, R-M22, R-E31, A-14: a child that ignores SIGTERM is killed with its
/// grandchildren; servers that are unmounted after it end all the same, and no other caller waits
/// for it.
#[tokio::test]
async fn r_m19_a_child_that_ignores_sigterm_is_killed_without_delaying_others() {
    let (deaf, polite, other) = (Mark::new(), Mark::new(), Mark::new());
    let registry = start([]);
    let mut events = registry.events();
    let servers = vec![deaf.server("deaf", "ignores-term,child"), polite.server("polite", "child")];
    let mounted = mount(&registry, servers).await;
    let link = mounted.get("deaf").unwrap().found().link.clone().unwrap();
    ask(&link, "breed", json!({})).await.unwrap();
    assert_eq!((deaf.alive().len(), polite.alive().len()), (3, 2));
    let unmounting = registry.tasks().spawn(mounted.unmount());
    in_time(link.closed().cancelled()).await;
    // The child that ignores SIGTERM has 6 seconds, and a server is mounted and unmounted
    // meanwhile. On a busy machine that may take as long: the clock is slower by then.
    let clock = SteppedClock::by(Duration::from_micros(50));
    let quick = mount(&registry, vec![other.server("other", "")]).await;
    assert_eq!(quick.unmount().await[0].ended, Some(Ended::Gracefully));
    assert_eq!(other.alive().len(), 0);
    assert!(!unmounting.is_finished() && !deaf.alive().is_empty(), "R-E6");
    drop(clock);
    let unmounted = in_time(unmounting).await.unwrap();
    let ends: Vec<_> = unmounted.iter().map(|one| one.ended).collect();
    assert_eq!(ends, [Some(Ended::Killed), Some(Ended::Gracefully)], "R-E7");
    assert_eq!((deaf.alive().len(), polite.alive().len()), (0, 0));
    let told = events.try_recv().unwrap();
    assert!(matches!(&told, ServerEvent::Killed { alias } if alias.as_str() == "deaf"), "{told:?}");
    in_time(registry.close()).await;
}

/// R-M20: many calls that close the registry close it once.
#[tokio::test]
async fn r_m20_closing_many_times_at_once_is_closing_once() {
    let mark = Mark::new();
    let registry = start([mark.server("x", ""), mark.server("y", "silent")]);
    let row = until_state(&registry, "x", ServerState::Ready).await;
    let link = row.link.clone().unwrap();
    let mut closing = tokio::task::JoinSet::new();
    for number in 0..8 {
        let (registry, link) = (registry.clone(), link.clone());
        closing.spawn(async move {
            if number % 2 == 0 {
                registry.close().await;
            } else {
                assert_eq!(link.stop().await, Ended::Gracefully);
            }
        });
    }
    for done in in_time(closing.join_all()).await {
        assert_eq!(done, ());
    }
    assert_eq!((mark.alive().len(), zombies()), (0, 0));
}

/// R-M21, E69, R-E7: closing the registry ends configured and mounted servers, side by side.
#[tokio::test]
async fn r_m21_closing_the_registry_ends_all_mounts() {
    let mark = Mark::new();
    let configured = (0..3).map(|number| mark.server(&format!("deaf{number}"), "ignores-term"));
    let registry = start(configured);
    until(&registry, |snapshot| snapshot.is_settled()).await;
    let mounted = mount(&registry, vec![mark.server("mounted", ""), mark.server("kept", "")]).await;
    assert_eq!(mark.alive().len(), 5);
    let before = tokio::time::Instant::now();
    in_time(registry.close()).await;
    assert!(before.elapsed() < Duration::from_secs(12), "side by side: {:?}", before.elapsed());
    assert_eq!((mark.alive().len(), zombies()), (0, 0));
    assert!(mounted.get("kept").unwrap().found().link.as_ref().unwrap().closed().is_cancelled());
}

/// R-M15, R-E5, R-M14: a row that is connected anew takes nothing from a mount that shares its
/// connection.
#[tokio::test]
async fn r_m15_a_reconnected_row_leaves_mounts_their_connection() {
    let mark = Mark::new();
    let registry = start([mark.server("x", "")]);
    let row = until_state(&registry, "x", ServerState::Ready).await;
    let mounted = mount(&registry, vec![mark.server("x", "")]).await;
    assert_eq!(Some(mounted.get("x").unwrap().id()), row.connection);
    assert!(in_time(registry.reconnect("x")).await.unwrap().is_ready());
    let link = mounted.get("x").unwrap().found().link.clone().unwrap();
    assert_eq!(ask(&link, "echo", json!({"text": "still"})).await.unwrap(), "still");
    assert_eq!(mark.alive().len(), 2);
    assert_eq!(mounted.unmount().await[0].ended, Some(Ended::Gracefully));
    assert_eq!(mark.alive().len(), 1);
    let again = mount(&registry, vec![mark.server("x", "")]).await;
    assert_eq!(Some(again.get("x").unwrap().id()), registry.get("x").unwrap().connection);
    assert_eq!(mark.alive().len(), 1);
    in_time(registry.close()).await;
}

/// E7: a server that is registered for one task is invisible to all others, and ends with the task.
#[tokio::test]
async fn e7_a_server_of_one_task_has_no_row_and_ends_with_the_task() {
    let mark = Mark::new();
    let registry = start([]);
    let mut subscription = registry.subscribe();
    assert!(subscription.try_next().is_some());
    let mounted = mount(&registry, vec![mark.server("x", "")]).await;
    let link = mounted.get("x").unwrap().found().link.clone().unwrap();
    assert_eq!(ask(&link, "echo", json!({"text": "mine"})).await.unwrap(), "mine");
    assert!(registry.list().is_empty() && registry.get("x").is_none());
    assert!(subscription.try_next().is_none());
    drop(mounted);
    mark.until(0).await;
    in_time(registry.close()).await;
}

/// R-E3, R-M12: a mount that fails leaves neither a process nor any state that a later one could
/// find.
#[tokio::test]
async fn r_e3_a_failed_mount_leaves_nothing() {
    let notes = tempfile::tempdir().unwrap();
    let mark = Mark::new();
    let registry = start([]);
    let server = || mark.server("x", &format!("fails=1,notes={}", notes.path().display()));
    let mountable = Mountable::new(Arc::new(server()));
    let patient = MountOptions { timeout: Duration::from_secs(60), ..MountOptions::default() };
    let failed = in_time(registry.mount(vec![mountable], &patient)).await.unwrap_err();
    assert!(failed.to_string().contains("exit code 3"), "{failed}");
    assert_eq!((mark.alive().len(), zombies()), (0, 0));
    let mounted = mount(&registry, vec![server()]).await;
    assert_eq!(mounted.get("x").unwrap().count(), 1);
    in_time(registry.close()).await;
}

/// R-E4, R-M13, R-M14, R-M10: a caller that mounts a server during its mounting waits for the same
/// outcome, and no caller waits for the server of another.
#[tokio::test]
async fn r_e4_a_mount_in_progress_is_shared_and_delays_no_other_mount() {
    let notes = tempfile::tempdir().unwrap();
    let mark = Mark::new();
    let registry = start([]);
    // The server waits for a second start, which comes only when the test wants it.
    let slow = || mark.server("slow", &format!("together=2,notes={}", notes.path().display()));
    let mounting = || {
        let (own, server) = (registry.clone(), slow());
        registry.tasks().spawn(async move { mount(&own, vec![server]).await })
    };
    let (one, two) = (mounting(), mounting());
    let quick = mount(&registry, vec![mark.server("quick", "")]).await;
    assert_eq!(quick.get("quick").unwrap().found().state, ServerState::Ready, "R-M13");
    assert!(!one.is_finished() && !two.is_finished());
    fs_err::write(notes.path().join("second"), "").unwrap();
    let (one, two) = (in_time(one).await.unwrap(), in_time(two).await.unwrap());
    let ids = [one.get("slow").unwrap().id(), two.get("slow").unwrap().id()];
    assert_eq!(ids[0], ids[1]);
    assert_eq!((one.get("slow").unwrap().count(), mark.alive().len()), (2, 2));
    in_time(registry.close()).await;
}

/// R-E1: an alias occurs once in a set; the same server again in another set is one more reference.
#[tokio::test]
async fn r_e1_a_duplicate_alias_in_a_set_is_refused() {
    let mark = Mark::new();
    let registry = start([]);
    let mountable = || Mountable::new(Arc::new(mark.server("x", "")));
    let patient = MountOptions { timeout: Duration::from_secs(60), ..MountOptions::default() };
    let twice = in_time(registry.mount(vec![mountable(), mountable()], &patient)).await;
    assert!(twice.unwrap_err().to_string().contains("has this alias"));
    assert_eq!(mark.alive().len(), 0);
    in_time(registry.close()).await;
}

/// E51, E56: adding the same again while a child runs starts no second one.
#[tokio::test]
async fn e56_adding_the_same_child_again_starts_no_second_child() {
    let mark = Mark::new();
    let registry = start([mark.server("x", "")]);
    let first = until_state(&registry, "x", ServerState::Ready).await;
    for _ in 0..5 {
        let again = registry.add_server(Entry::Server(mark.server("x", "")));
        let result = in_time(again).await.unwrap();
        assert!(matches!(result, ServerResult::Ready { tool_count, .. } if tool_count > 10));
    }
    assert_eq!(registry.get("x").unwrap().connection, first.connection);
    assert_eq!(mark.alive().len(), 1);
    in_time(registry.close()).await;
}

/// R-M18: children of a registry do not outlive its process.
#[tokio::test]
async fn r_m18_children_die_with_a_daemon_that_is_killed() {
    let mark = Mark::new();
    // The daemon is this program again, and has one server.
    let mut daemon = tokio::process::Command::new(std::env::current_exe().unwrap());
    daemon.args(["--exact", "misbehaving::ends::daemon_to_be_killed", "--nocapture"]);
    let marked = mark.on(crate::world::program("daemon", "none", &[]));
    let narthex_model::Target::Stdio(target) = marked.target else { unreachable!("a program") };
    for (name, value) in &target.env {
        daemon.env("NARTHEX_DAEMON", value.expose()).env(name, value.expose());
    }
    let mut daemon = daemon.kill_on_drop(true).spawn().unwrap();
    mark.until(2).await;
    daemon.kill().await.unwrap();
    mark.until(0).await;
}

/// Not a test by itself: the test above starts it.
#[tokio::test]
async fn daemon_to_be_killed() {
    let Some(value) = std::env::var_os("NARTHEX_DAEMON") else { return };
    let child = crate::unruly::unruly("x", "ignores-term");
    let child = crate::world::with_env(child, "NARTHEX_TEST_MARK", value.to_str().unwrap());
    let registry = start([child]);
    until_state(&registry, "x", ServerState::Ready).await;
    std::future::pending::<()>().await;
}
