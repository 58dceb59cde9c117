//! Open calls and the connection on which they began.

use std::time::Duration;

use narthex_model::{ApiKeyAuth, Secret, ServerAuth, ServerState, Target};
use narthex_registry::{Declared, RegistryOptions, config::Entry};
use narthex_testkit::clock::SteppedClock;
use narthex_upstream::{Asking, CutReason, LinkError};

use super::{Slow, call, call_in_background};
use crate::world::{http, identity, in_time, shell, start, until, until_state};

fn slow(server: &Slow, seconds: u64) -> narthex_model::ServerDefinition {
    let mut definition = http("x", &server.peer.url);
    definition.timeout = Some(Duration::from_secs(seconds));
    definition
}

/// E41, E50: a call ends on the connection on which it began; the next call uses the new
/// connection.
#[tokio::test]
async fn e41_a_changed_server_finishes_its_calls_on_the_old_connection() {
    let server = Slow::start().await;
    let registry = start([slow(&server, 60)]);
    let before = until_state(&registry, "x", ServerState::Ready).await;
    let old = before.link.clone().unwrap();
    let calling = call_in_background(old.enter().unwrap());
    server.called().await;
    // E50: the timeout alone is a change.
    let changed = registry.add_server(Entry::Server(slow(&server, 61)));
    assert!(in_time(changed).await.unwrap().is_ready());
    let after = registry.get("x").unwrap();
    assert_ne!(after.connection, before.connection);
    assert!(old.enter().is_none(), "no call begins on the old one");
    assert!(!old.closed().is_cancelled(), "and it lives as long as the open one");
    assert!(after.link.as_ref().unwrap().enter().is_some());
    server.answer();
    assert!(in_time(calling).await.unwrap().is_ok());
    in_time(old.closed().cancelled()).await;
    in_time(registry.close()).await;
}

/// E40, E3, E38: a removed server gets no further call, and ends when its open calls have.
#[tokio::test]
async fn e40_a_removed_server_finishes_its_calls() {
    let server = Slow::start().await;
    let registry = start([slow(&server, 60)]);
    let row = until_state(&registry, "x", ServerState::Ready).await;
    let link = row.link.clone().unwrap();
    let calling = call_in_background(link.enter().unwrap());
    server.called().await;
    assert!(registry.remove_server("x").unwrap());
    assert!(registry.get("x").is_none());
    until(&registry, |snapshot| snapshot.servers.is_empty()).await;
    server.answer();
    assert!(in_time(calling).await.unwrap().is_ok());
    in_time(link.closed().cancelled()).await;
    assert!(link.enter().is_none());
    in_time(registry.close()).await;
}

/// D5, D10, E37: switching a server off ends its open calls at once.
#[tokio::test]
async fn d10_switching_a_server_off_ends_its_calls() {
    let server = Slow::start().await;
    let registry = start([slow(&server, 60)]);
    let row = until_state(&registry, "x", ServerState::Ready).await;
    let calling = call_in_background(row.link.as_ref().unwrap().enter().unwrap());
    server.called().await;
    registry.disable("x").unwrap();
    let ended = in_time(calling).await.unwrap();
    assert!(matches!(ended, Err(LinkError::Cut(CutReason::SwitchedOff))), "{ended:?}");
    assert_eq!(registry.get("x").unwrap().state, ServerState::Disabled);
    in_time(registry.close()).await;
}

/// R-E42: a server that no caller uses is stopped, stays listed, and starts with the next call.
#[tokio::test]
async fn d12_an_idle_server_sleeps_until_the_next_call() {
    let options = RegistryOptions {
        idle_stop: Some(Duration::from_millis(1)),
        ..RegistryOptions::new(identity(), narthex_supervisor::BaseEnvironment::from_process())
    };
    let registry = narthex_registry::Registry::new(options).unwrap();
    let _applied = registry.apply(vec![Declared::from(Entry::Server(shell("x")))]).unwrap();
    let mut changes = registry.changes();
    let asleep = in_time(async {
        loop {
            changes.borrow_and_update();
            let row = registry.get("x").unwrap();
            if row.is_asleep {
                return row;
            }
            changes.changed().await.unwrap();
        }
    })
    .await;
    assert_eq!(asleep.state, ServerState::Ready, "it can be called");
    assert!(asleep.link.is_none() && asleep.facts.is_some());
    let first = in_time(registry.enter(&asleep, Duration::from_secs(60))).await.unwrap();
    in_time(first.ask(Asking::Tools, b"")).await.unwrap();
    let awake = registry.get("x").unwrap();
    assert!(!awake.is_asleep && awake.link.is_some(), "in use, it stays");
    assert_eq!(awake.reconnects, 0, "R-E42: it was not lost");
    drop(first);
    in_time(registry.close()).await;
}

/// R-E12, R-E13, R-M29, R-D7: narthex checks a server without calls for long before the next call,
/// and finds out that a dead server is dead.
#[tokio::test]
async fn r_e13_a_server_without_calls_for_30_seconds_is_checked_first() {
    // The server reads, and answers nothing after its lists.
    let script = crate::world::shell_script().replace("*'\"id\"'*)", "*list*)");
    let registry = start([crate::world::program("x", "sh", &["-c", &script]), shell("y")]);
    until(&registry, |snapshot| snapshot.servers.iter().all(|row| row.is_ready())).await;
    let link = |name: &str| registry.get(name).unwrap().link.clone().unwrap();
    assert!(!link("x").needs_check(), "it has just answered");
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(31)).await;
    tokio::time::resume();
    assert!(link("y").needs_check());
    // A busy machine may be slower than the limit of a check, so the clock moves very slowly.
    let clock = SteppedClock::by(Duration::from_micros(50));
    in_time(link("y").check()).await.unwrap();
    drop(clock);
    assert!(!link("y").needs_check(), "it has answered");
    let silent = link("x");
    let in_use = [silent.enter().unwrap(), silent.enter().unwrap()];
    assert!(!silent.needs_check(), "it may be busy for another caller");
    drop(in_use);
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(31)).await;
    tokio::time::resume();
    let found_out = in_time(silent.check()).await;
    assert!(matches!(&found_out, Err(LinkError::Closed(why)) if why.contains("ping")));
    assert!(matches!(call(&silent).await, Err(LinkError::Closed(_))), "R-E12: fails fast");
    in_time(registry.close()).await;
}

/// E23, E158: the next call uses a changed key, and no further request uses the old key.
#[tokio::test]
async fn e23_a_changed_key_is_used_at_once() {
    let server = Slow::start().await;
    let with_key = |key: &str| {
        let mut definition = slow(&server, 60);
        if let Target::Http(target) = &mut definition.target {
            let (header_name, value_prefix) = ("X-Key".to_owned(), "Key ".to_owned());
            let key = Some(Secret::new(key));
            target.auth = ServerAuth::ApiKey(ApiKeyAuth { header_name, value_prefix, key });
        }
        definition
    };
    let registry = start([with_key("one")]);
    let before = until_state(&registry, "x", ServerState::Ready).await;
    let changed = registry.add_server(Entry::Server(with_key("two")));
    assert!(in_time(changed).await.unwrap().is_ready());
    let after = registry.get("x").unwrap();
    assert_ne!(after.connection, before.connection);
    let calling = call_in_background(after.link.as_ref().unwrap().enter().unwrap());
    server.called().await;
    server.answer();
    in_time(calling).await.unwrap().unwrap();
    let calls = server.peer.seen();
    let calls = calls.iter().filter(|seen| seen.rpc() == "tools/call");
    let keys: Vec<_> = calls.map(|seen| seen.header("x-key").unwrap().to_owned()).collect();
    assert_eq!(keys, ["Key two"]);
    // The same key again does not change the connection.
    in_time(registry.add_server(Entry::Server(with_key("two")))).await.unwrap();
    assert_eq!(registry.get("x").unwrap().connection, after.connection);
    in_time(registry.close()).await;
}
