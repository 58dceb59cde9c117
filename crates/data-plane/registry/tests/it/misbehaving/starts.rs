//! Starts that hang, fail, are noisy or slow, and the environment of a child.

use std::time::Duration;

use narthex_model::{CallErrorKind, ServerState, Target};
use narthex_registry::{Declared, Registry, RegistryOptions, config::Entry};
use narthex_supervisor::BaseEnvironment;
use narthex_upstream::Deadlines;
use serde_json::{Value, json};

use crate::{
    unruly::{Mark, ask, zombies},
    world::{DEADLINE, identity, in_time, message, row, start, until, until_state, with_env},
};

/// A deadline that is meant to be too short.
const SHORT: Duration = Duration::from_millis(400);

/// A registry with a short deadline for lists, and the deadline `connect` for the handshake.
fn impatient(connect: Duration) -> Registry {
    let deadlines = Deadlines { probe: connect, connect, list: SHORT, ..Deadlines::default() };
    Registry::new(RegistryOptions {
        deadlines,
        ..RegistryOptions::new(identity(), BaseEnvironment::from_process())
    })
    .unwrap()
}

/// E75: a child that writes nothing, a child that does not even read, and a child that does not
/// list are given up, each with its reason, and none of them is left.
#[tokio::test]
async fn e75_children_that_hang_at_the_start_are_ended_with_a_reason() {
    let mark = Mark::new();
    // The handshake of the last child is complete, however long that takes on a busy machine.
    let groups = [
        (SHORT, &[("silent", "silent"), ("deaf", "deaf")][..]),
        (DEADLINE, &[("hung", "deaf-after=initialize")][..]),
    ];
    for (connect, servers) in groups {
        let registry = impatient(connect);
        let set = servers.iter().map(|(name, words)| Entry::Server(mark.server(name, words)));
        in_time(registry.apply_config(set.map(Declared::from).collect())).await.unwrap();
        let snapshot = registry.snapshot();
        for (name, _) in servers {
            let error = row(&snapshot, name).error.clone().unwrap();
            assert_eq!(error.kind, CallErrorKind::Timeout, "{name}: {error:?}");
            assert!(*name != "hung" || message(row(&snapshot, name)).contains("listing"));
        }
        mark.until(0).await;
        in_time(registry.close()).await;
    }
    assert_eq!(zombies(), 0);
}

/// E133: a failed start is an error with the child's last words; a retry that works is ready.
#[tokio::test]
async fn e133_a_child_that_failed_to_start_is_ready_after_a_successful_retry() {
    let notes = tempfile::tempdir().unwrap();
    let mark = Mark::new();
    let server = || mark.server("x", &format!("fails=2,notes={}", notes.path().display()));
    let registry = start([server()]);
    let failed = until_state(&registry, "x", ServerState::Error).await;
    let text = message(&failed);
    assert!(text.contains("exit code 3") && text.contains("not yet"), "{text}");
    assert!(!in_time(registry.add_server(Entry::Server(server()))).await.unwrap().is_ready());
    assert!(in_time(registry.add_server(Entry::Server(server()))).await.unwrap().is_ready());
    let starts = fs_err::read_dir(notes.path()).unwrap().count();
    assert_eq!(starts, 3, "one for each attempt");
    assert_eq!(mark.alive().len(), 1);
    in_time(registry.close()).await;
}

/// R-E9: lines that are no messages, before and between messages, have no effect.
#[tokio::test]
async fn r_e9_garbage_on_stdout_disturbs_no_call() {
    let registry = start([crate::unruly::unruly("x", "garbage")]);
    let row = until_state(&registry, "x", ServerState::Ready).await;
    let link = row.link.as_ref().unwrap();
    for number in 0..10 {
        let text = number.to_string();
        assert_eq!(ask(link, "echo", json!({ "text": text })).await.unwrap(), text);
    }
    in_time(registry.close()).await;
}

/// E132: the child's environment is its entry's and a few names, never the registry's own.
#[tokio::test]
async fn e132_a_child_gets_only_its_own_environment() {
    let folder = tempfile::tempdir().unwrap();
    let mark = Mark::new();
    let mut server = with_env(mark.server("x", ""), "OWN", "value");
    if let Target::Stdio(target) = &mut server.target {
        target.working_dir = Some(folder.path().to_path_buf());
    }
    let registry = start([server]);
    let row = until_state(&registry, "x", ServerState::Ready).await;
    let told = ask(row.link.as_ref().unwrap(), "environment", json!({})).await.unwrap();
    let told: Value = serde_json::from_str(&told).unwrap();
    assert_eq!(told["variables"]["OWN"], "value");
    let own_folder = fs_err::canonicalize(folder.path()).unwrap();
    assert_eq!(told["folder"], own_folder.to_str().unwrap());
    let names: Vec<_> = told["variables"].as_object().unwrap().keys().collect();
    assert!(std::env::vars_os().count() > names.len(), "there is something to be hidden");
    let may_see = ["PATH", "LANG", "HOME", "TMPDIR", "OWN", "npm_config_cache"];
    let may_see = |name: &str| {
        may_see.contains(&name)
            || name.starts_with("NARTHEX_")
            || name.ends_with("CACHE_DIR")
            || name.ends_with("CACHE_HOME")
    };
    assert!(names.iter().all(|name| may_see(name)), "{names:?}");
    in_time(registry.close()).await;
}

/// E73: 5,000 tools on pages of 64 are all there, in their order.
#[tokio::test]
async fn e73_five_thousand_tools_over_pages_are_all_listed() {
    let registry = start([crate::unruly::unruly("x", "tools=5000,page=64")]);
    let row = until_state(&registry, "x", ServerState::Ready).await;
    let own = row.inventory.tools.len() - 5000;
    for number in [0, 1, 2500, 4999] {
        let key = &row.inventory.tools[own + number].key;
        assert_eq!(key.as_ref(), format!("further_{number}"));
    }
    assert!(row.inventory.tool("further_4999").is_some());
    in_time(registry.close()).await;
}

/// E74: an announced change is seen at once; an unannounced one is seen when a caller has the lists
/// read anew.
#[tokio::test]
async fn e74_unannounced_changes_are_seen_when_the_lists_are_read_anew() {
    let registry = start([crate::unruly::unruly("x", "")]);
    let row = until_state(&registry, "x", ServerState::Ready).await;
    let link = row.link.clone().unwrap();
    let has_extra = |snapshot: &narthex_registry::Snapshot| {
        snapshot.get("x").unwrap().inventory.tool("extra").is_some()
    };
    ask(&link, "change", json!({"announce": true})).await.unwrap();
    until(&registry, has_extra).await;
    ask(&link, "change", json!({"announce": false})).await.unwrap();
    let stale = registry.get("x").unwrap();
    assert!(stale.inventory.tool("extra").is_some(), "the server has reported no change");
    in_time(registry.list_anew(&stale)).await;
    assert!(!has_extra(&registry.snapshot()));
    in_time(registry.close()).await;
}

/// E129, R-M9, R-E2: fifty servers start at the same time. None of them is ready before all have
/// started, since each waits for the others.
#[tokio::test]
async fn e129_fifty_slow_servers_start_at_the_same_time() {
    let notes = tempfile::tempdir().unwrap();
    let mark = Mark::new();
    let words = format!("together=50,slow=200,notes={}", notes.path().display());
    let servers = (0..50).map(|number| mark.server(&format!("x{number}"), &words));
    let registry = start(servers);
    let snapshot = until(&registry, |snapshot| snapshot.is_settled()).await;
    let failed: Vec<_> = snapshot.servers.iter().filter(|row| !row.is_ready()).collect();
    assert!(failed.is_empty(), "{failed:?}");
    assert_eq!(mark.alive().len(), 50);
    in_time(registry.close()).await;
    assert_eq!((mark.alive().len(), zombies()), (0, 0));
}

/// D30: a program that fails before it has read anything is started once for each attempt, since no
/// question can be the reason.
#[tokio::test]
async fn d30_a_program_that_fails_is_started_once_for_each_attempt() {
    let notes = tempfile::tempdir().unwrap();
    let note = notes.path().join("starts");
    let script = format!("echo started >> '{}'; echo 'no such module' >&2; exit 3", note.display());
    let registry = start([crate::world::program("x", "sh", &["-c", &script])]);
    let row = until_state(&registry, "x", ServerState::Error).await;
    assert!(message(&row).contains("no such module"), "{}", message(&row));
    assert_eq!(fs_err::read_to_string(&note).unwrap().lines().count(), 1);
    in_time(registry.close()).await;
}
