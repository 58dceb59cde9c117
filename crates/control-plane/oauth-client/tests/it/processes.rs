//! Several processes over one store (C16, C23).

use std::fmt;

use narthex_model::ServerAuth;
use narthex_oauth_client::store::{LeaseOutcome, TokenStore};
use narthex_testkit::authorization::{Endpoint, Moment, TokenFailure};
use narthex_upstream::{AtHand, CredentialFault};
use tokio::task::JoinSet;

use crate::world::{Server, World, key};

fn two(world: &World) -> [Server; 2] {
    ["one", "two"].map(|owner| world.server_of(&world.process(owner), ServerAuth::Unstated))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn oauth_c23_two_processes_renew_once_and_both_go_on() {
    for round in 0..5 {
        let world = World::new();
        let servers = two(&world);
        servers[0].sign_in().await;
        for server in &servers {
            server.works().await;
        }
        world.advance(3601);
        let mut calls = JoinSet::new();
        for server in servers.iter().cycle().take(60) {
            let server = server.clone();
            calls.spawn(async move { server.works().await });
        }
        while let Some(done) = calls.join_next().await {
            done.unwrap();
        }
        let counts = world.fixture.counts();
        assert_eq!((counts.refreshes, counts.refused_refreshes), (1, 0), "round {round}");
        assert_eq!(counts.families_revoked, 0, "round {round}");
    }
}

/// E154.
#[tokio::test]
async fn oauth_c16_any_process_can_finish_and_the_other_learns_of_it() {
    let world = World::new();
    let [one, two] = two(&world);
    let address = one.address("whoami").await;
    two.browse(&address).await.unwrap();
    two.works().await;
    // The other one looks at the store when it is asked again.
    world.advance(1);
    one.works().await;
    assert_eq!(world.fixture.counts().exchanged_codes, 1);
}

#[tokio::test]
async fn oauth_c16_a_grant_of_another_process_is_found_before_a_person_is_asked() {
    let world = World::new();
    let [one, two] = two(&world);
    one.address("whoami").await;
    world.advance(601);
    two.sign_in().await;
    world.advance(1);
    one.works().await;
    let counts = world.fixture.counts();
    assert_eq!((counts.codes, counts.exchanged_codes), (1, 1));
}

/// C25: a process shows the failure of another one that renews the same grant.
#[tokio::test]
async fn oauth_c25_a_failure_elsewhere_is_shown_and_the_token_stays() {
    let world = World::new();
    let [one, two] = two(&world);
    one.sign_in().await;
    two.works().await;
    world.fixture.quirks(|quirks| {
        quirks.failing_token_requests = 1;
        quirks.token_failure = TokenFailure::Unavailable;
    });
    world.advance(3601);
    one.call("whoami").await.unwrap_err();
    two.sign_ins.changed_elsewhere(&key());
    turns().await;
    let facts = two.sign_ins.status(&key()).unwrap().facts;
    assert_eq!(facts.failed_at, Some(world.fixture.now_s()));
    assert!(world.store.grant(key()).await.unwrap().is_some());
}

/// C16: the address of an attempt that another process has ended is shown no longer, and a new one
/// is opened once no tokens can follow.
#[tokio::test]
async fn oauth_c16_an_attempt_that_ended_elsewhere_is_shown_no_longer() {
    let world = World::new();
    let [one, two] = two(&world);
    let address = one.address("whoami").await;
    let mut changes = one.sign_ins.changes();
    let pending = || one.sign_ins.status(&key()).and_then(|status| status.pending);
    one.sign_ins.see_ended_attempts().await.unwrap();
    assert_eq!(pending().map(String::from), Some(address.clone()), "it is open");
    let back = world.fixture.browse(&address).unwrap();
    two.bring(&back.replace("code=", "code=not-")).await.unwrap_err();
    one.sign_ins.see_ended_attempts().await.unwrap();
    assert_eq!(pending(), None);
    one.sign_ins.see_ended_attempts().await.unwrap();
    assert!(changes.try_recv().is_err(), "its tokens may be on their way");
    world.advance(60);
    one.sign_ins.see_ended_attempts().await.unwrap();
    assert_eq!(changes.try_recv().unwrap(), key());
    assert_ne!(one.address("whoami").await, address);
    one.sign_ins.see_ended_attempts().await.unwrap();
    assert!(changes.try_recv().is_err() && pending().is_some());
}

/// C16: the process of a failed answer opens another attempt after a while, and one that has
/// tokens by then opens none.
#[tokio::test]
async fn oauth_c16_a_failed_answer_is_followed_by_another_attempt() {
    for has_tokens in [false, true] {
        let world = World::new();
        let [one, two] = two(&world);
        let address = one.address("whoami").await;
        let back = world.fixture.browse(&address).unwrap();
        one.bring(&back.replace("code=", "code=not-")).await.unwrap_err();
        if has_tokens {
            two.sign_in().await;
            world.advance(1);
            one.works().await;
        }
        let mut changes = one.sign_ins.changes();
        one.sign_ins.see_ended_attempts().await.unwrap();
        assert!(changes.try_recv().is_err(), "a program that waits sees the end first");
        world.advance(60);
        one.sign_ins.see_ended_attempts().await.unwrap();
        assert_eq!(changes.try_recv().is_ok(), !has_tokens);
    }
}

/// C29: a grant that another process removes is forgotten at once, also while a renewal is on its
/// way, and the end of the renewal does not bring it back.
#[tokio::test]
async fn oauth_c29_a_removed_grant_is_forgotten_during_a_renewal() {
    let world = World::new();
    let server = world.server(ServerAuth::Unstated);
    server.sign_in().await;
    let mut changes = server.sign_ins.changes();
    world.advance(3590);
    let gate = world.fixture.hold(Endpoint::Token, Moment::After);
    assert!(matches!(server.credential.at_hand(), AtHand::Ready(Some(_))));
    gate.until(1).await;
    assert!(world.store.drop_grant(key(), None).await.unwrap());
    server.sign_ins.changed_elsewhere(&key());
    assert_eq!(changes.recv().await.unwrap(), key());
    let has_token = || matches!(server.credential.at_hand(), AtHand::Ready(Some(_)));
    assert!(!has_token());
    gate.open();
    server.sign_ins.close().await;
    assert!(!has_token());
}

#[tokio::test]
async fn oauth_c23_a_process_waits_for_the_one_that_has_the_lease() {
    let world = World::new();
    let [one, two] = two(&world);
    one.sign_in().await;
    two.works().await;
    world.advance(3601);
    let gate = world.fixture.hold(Endpoint::Token, Moment::Before);
    let waiting = two.clone();
    let (mut first, mut second) = (JoinSet::new(), JoinSet::new());
    first.spawn(async move { one.works().await });
    gate.until(1).await;
    second.spawn(async move { waiting.works().await });
    tokio::select! {
        biased;
        _ = second.join_next() => panic!("the lease is another's"),
        () = turns() => {}
    }
    gate.open();
    first.join_next().await.unwrap().unwrap();
    second.join_next().await.unwrap().unwrap();
    assert_eq!(world.fixture.counts().refreshes, 1);
}

/// Gives other tasks many turns.
async fn turns() {
    for _ in 0..1000 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn oauth_c23_a_lease_that_is_never_ended_holds_nobody_for_long() {
    let world = World::new();
    let [one, two] = two(&world);
    one.sign_in().await;
    world.advance(3601);
    let lease = world.store.lease(key(), "ended".to_owned(), 200).await.unwrap();
    assert!(matches!(lease, LeaseOutcome::Taken(_)));
    two.works().await;
    assert_eq!(world.fixture.counts().refreshes, 1);
}

/// C29: a sign-out ends the pages that other processes have opened.
#[tokio::test]
async fn oauth_c29_a_sign_out_ends_the_attempts_of_all_processes() {
    let world = World::new();
    let [one, two] = two(&world);
    let address = one.address("whoami").await;
    two.sign_ins.sign_out(&key()).await.unwrap();
    one.sign_ins.see_ended_attempts().await.unwrap();
    assert!(one.sign_ins.status(&key()).is_none());
    one.browse(&address).await.unwrap_err();
    assert_eq!(world.fixture.counts().exchanged_codes, 0);
}

#[tokio::test]
async fn oauth_c29_a_sign_out_elsewhere_is_noticed() {
    let world = World::new();
    let [one, two] = two(&world);
    one.sign_in().await;
    two.works().await;
    one.sign_ins.sign_out(&key()).await.unwrap();
    let fault = two.call("whoami").await.unwrap_err();
    assert!(matches!(fault, CredentialFault::NeedsConsent { address: Some(_), .. }), "{fault:?}");
}

/// A seeded order of events: no refresh token is used twice, and after a sign-in
/// calls succeed.
#[tokio::test]
async fn oauth_c23_any_order_of_events_uses_no_refresh_token_twice() {
    for seed in 0..narthex_testkit::rounds(20) {
        let world = World::new();
        let servers = two(&world);
        let mut random = u64::try_from(seed).unwrap() * 2 + 1;
        for _ in 0..20 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695);
            let server = &servers[usize::from((random >> 40) & 1 == 1)];
            match (random >> 33) % 6 {
                0 => world.advance(1800),
                1 => world.advance(3601),
                2 => world.fixture.end_access_tokens(),
                3 => drop(server.sign_ins.sign_out(&key()).await.unwrap()),
                _ => {
                    world.advance(1);
                    call_or_sign_in(server, seed).await;
                }
            }
        }
        let counts = world.fixture.counts();
        assert_eq!(counts.families_revoked, 0, "seed {seed}: {counts:?}");
    }
}

/// Calls the server; signs in first if the call asks for it.
async fn call_or_sign_in(server: &Server, seed: impl fmt::Display) {
    match server.call("whoami").await {
        Ok(_) => {}
        Err(CredentialFault::NeedsConsent { address: Some(address), .. }) => {
            server.browse(&address).await.unwrap();
            server.works().await;
        }
        Err(fault) => panic!("seed {seed}: {fault:?}"),
    }
}

/// The store of the tests is the one that embedders get.
#[tokio::test]
async fn the_rows_of_a_grant_say_what_it_is() {
    let world = World::new();
    let server = world.server(ServerAuth::Unstated);
    let finished = server.sign_in().await;
    let store: &dyn TokenStore = &*world.store;
    let rows = store.grants("w".to_owned(), None).await.unwrap();
    assert_eq!(rows, [(key(), finished.facts.clone())]);
    assert_eq!(finished.facts.issuer, world.fixture.issuer(0));
    assert_eq!(finished.facts.scopes, "mcp");
    assert_eq!(finished.facts.expires_at, Some(world.fixture.now_s() + 3600));
}
