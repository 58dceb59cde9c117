//! Calls to children whose configuration changes meanwhile (E40, E41, D10).

use narthex_model::ServerState;
use narthex_registry::config::Entry;
use narthex_upstream::{CutReason, LinkError};
use serde_json::json;

use crate::{
    unruly::{Mark, ask, ask_in_background},
    world::{in_time, start, until_state, with_env},
};

/// A file that lets a waiting call continue.
struct Gate(tempfile::TempDir);

impl Gate {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn arguments(&self) -> serde_json::Value {
        json!({"until": self.0.path().join("open")})
    }

    fn open(&self) {
        fs_err::write(self.0.path().join("open"), "").unwrap();
    }
}

/// E40: the child of a removed server runs until its call has ended, and not longer.
#[tokio::test]
async fn e40_a_removed_child_ends_only_after_its_calls() {
    let (mark, gate) = (Mark::new(), Gate::new());
    let registry = start([mark.server("x", "")]);
    let row = until_state(&registry, "x", ServerState::Ready).await;
    let link = row.link.clone().unwrap();
    let calling = ask_in_background(&link, "hold", gate.arguments());
    // The child has read the call when it answers the next one.
    ask(&link, "echo", json!({"text": "x"})).await.unwrap();
    assert!(registry.remove_server("x").unwrap());
    assert!(link.enter().is_none(), "no call begins, also for who holds an older snapshot");
    assert_eq!(mark.alive().len(), 1);
    assert!(!link.closed().is_cancelled());
    gate.open();
    assert_eq!(in_time(calling).await.unwrap().unwrap(), "held");
    in_time(link.closed().cancelled()).await;
    mark.until(0).await;
    in_time(registry.close()).await;
}

/// E41: a replaced child finishes its call while its successor gets the next one.
#[tokio::test]
async fn e41_a_replaced_child_finishes_its_calls_while_the_new_child_runs() {
    let (mark, gate) = (Mark::new(), Gate::new());
    let registry = start([mark.server("x", "")]);
    let row = until_state(&registry, "x", ServerState::Ready).await;
    let old = row.link.clone().unwrap();
    let calling = ask_in_background(&old, "hold", gate.arguments());
    ask(&old, "echo", json!({"text": "x"})).await.unwrap();
    let changed = with_env(mark.server("x", ""), "NEW", "1");
    assert!(in_time(registry.add_server(Entry::Server(changed))).await.unwrap().is_ready());
    let new = registry.get("x").unwrap().link.clone().unwrap();
    assert_eq!(mark.alive().len(), 2);
    let told = ask(&new, "environment", json!({})).await.unwrap();
    assert!(told.contains(r#""NEW":"1""#), "{told}");
    gate.open();
    assert_eq!(in_time(calling).await.unwrap().unwrap(), "held");
    mark.until(1).await;
    in_time(registry.close()).await;
}

/// D10, E37: switching off ends the child although a call is open.
#[tokio::test]
async fn d10_switching_a_child_off_ends_its_open_call() {
    let (mark, gate) = (Mark::new(), Gate::new());
    let registry = start([mark.server("x", "")]);
    let row = until_state(&registry, "x", ServerState::Ready).await;
    let link = row.link.clone().unwrap();
    let calling = ask_in_background(&link, "hold", gate.arguments());
    registry.disable("x").unwrap();
    assert!(link.enter().is_none());
    let ended = in_time(calling).await.unwrap();
    assert!(matches!(ended, Err(LinkError::Cut(CutReason::SwitchedOff))), "{ended:?}");
    mark.until(0).await;
    assert!(in_time(registry.enable("x").unwrap().result()).await.is_ready());
    assert_eq!(mark.alive().len(), 1);
    in_time(registry.close()).await;
}

/// E41: in every snapshot, the link of a row that is ready takes calls: a caller that is refused by
/// an older one finds another row.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn e41_no_snapshot_shows_a_link_that_takes_no_calls() {
    let registry = start([crate::unruly::unruly("x", "")]);
    until_state(&registry, "x", ServerState::Ready).await;
    let watched = registry.clone();
    let stop = std::sync::Arc::<std::sync::atomic::AtomicBool>::default();
    let watching = {
        let stop = stop.clone();
        tokio::task::spawn_blocking(move || {
            let mut looks = 0_u64;
            while !stop.load(std::sync::atomic::Ordering::Acquire) {
                let row = watched.snapshot().get("x").cloned().unwrap();
                let refused = row.link.as_ref().is_some_and(|link| link.enter().is_none());
                let now = watched.snapshot().get("x").cloned().unwrap();
                let is_same = std::sync::Arc::ptr_eq(&row, &now);
                assert!(!(refused && is_same && row.is_ready()), "{row:?}");
                looks += 1;
            }
            looks
        })
    };
    for number in 0..40 {
        match number % 3 {
            0 => drop(in_time(registry.reconnect("x")).await.unwrap()),
            1 => {
                registry.disable("x").unwrap();
                in_time(registry.enable("x").unwrap().result()).await;
            }
            _ => {
                let changed = with_env(crate::unruly::unruly("x", ""), "N", &number.to_string());
                in_time(registry.add_server(Entry::Server(changed))).await.unwrap();
            }
        }
    }
    stop.store(true, std::sync::atomic::Ordering::Release);
    assert!(in_time(watching).await.unwrap() > 100);
    in_time(registry.close()).await;
}
