//! Subscribers of the snapshots, and the updates that they get.

use narthex_model::ServerState;
use narthex_registry::config::Entry;

use crate::world::{in_time, program, shell, start, until_state};

/// E65, E68: the present state at once, then every transition, counted from 0.
#[tokio::test]
async fn e68_every_transition_is_one_snapshot() {
    let registry = start([]);
    let mut subscription = registry.subscribe();
    let first = subscription.try_next().unwrap();
    assert_eq!((first.seq, first.snapshot.servers.len()), (0, 0));
    assert!(subscription.try_next().is_none());
    in_time(registry.add_server(Entry::Server(shell("x")))).await.unwrap();
    in_time(registry.add_server(Entry::Server(program("y", "no-such-program", &[]))))
        .await
        .unwrap();
    let mut states = Vec::new();
    for seq in 1.. {
        let Some(update) = subscription.try_next() else { break };
        assert_eq!(update.seq, seq);
        assert!(update.snapshot.seq > first.snapshot.seq);
        for row in &update.snapshot.servers {
            let state = (row.name.clone(), row.state);
            if !states.contains(&state) {
                states.push(state);
            }
        }
    }
    let expected = [
        ("x", ServerState::Connecting),
        ("x", ServerState::Ready),
        ("y", ServerState::Connecting),
        ("y", ServerState::Error),
    ];
    let expected = expected.map(|(name, state)| (name.to_owned(), state));
    assert_eq!(states, expected);
    registry.close().await;
}

/// E65: a late subscriber gets the present state, as number 0.
#[tokio::test]
async fn e65_a_late_subscriber_gets_the_present_state_at_once() {
    let registry = start([shell("x")]);
    until_state(&registry, "x", ServerState::Ready).await;
    let mut late = registry.subscribe();
    let update = late.try_next().unwrap();
    assert_eq!(update.seq, 0);
    assert!(update.snapshot.get("x").unwrap().is_ready());
    registry.disable("x").unwrap();
    assert_eq!(late.try_next().unwrap().seq, 1);
    registry.close().await;
}

/// E66, E67: a subscriber that never reads delays no other, and learns how many updates it missed.
#[tokio::test]
async fn e66_a_subscriber_that_never_reads_delays_no_other_subscriber() {
    let registry = start([shell("x")]);
    until_state(&registry, "x", ServerState::Ready).await;
    let mut sleeper = registry.subscribe();
    let mut awake = registry.subscribe();
    assert_eq!(awake.try_next().unwrap().seq, 0);
    let mut heard = 0;
    for _ in 0..1000 {
        registry.disable("x").unwrap();
        drop(registry.enable("y").unwrap_err());
        registry.remove_server("x").unwrap();
        let mut off = shell("x");
        off.is_disabled = true;
        in_time(registry.add_server(Entry::Server(off))).await.unwrap();
        while let Some(update) = awake.try_next() {
            heard = update.seq;
        }
    }
    assert!(heard >= 2000, "{heard}");
    assert_eq!(sleeper.try_next().unwrap().seq, 0, "the first is kept");
    let next = sleeper.try_next().unwrap().seq;
    assert!(next > 1 && next < heard, "{next}");
    drop(sleeper);
    registry.close().await;
}

/// E69: closing sends one snapshot without rows, and no further one.
#[tokio::test]
async fn e69_closing_sends_one_empty_snapshot() {
    let registry = start([shell("x"), shell("y")]);
    until_state(&registry, "x", ServerState::Ready).await;
    let mut subscription = registry.subscribe();
    assert!(!subscription.try_next().unwrap().snapshot.servers.is_empty());
    in_time(registry.close()).await;
    let mut last = None;
    while let Some(update) = in_time(subscription.next()).await {
        assert!(last.is_none(), "only one without rows");
        last = update.snapshot.servers.is_empty().then_some(update.seq);
    }
    assert!(last.is_some());
    in_time(registry.close()).await;
    assert!(in_time(subscription.next()).await.is_none());
}
