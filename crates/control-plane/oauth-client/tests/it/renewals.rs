//! Renewals: when, by whom, and what follows from each class of failure (C23 to C26).

use std::time::Duration;

use narthex_model::{AuthorizationCodeAuth, ServerAuth};
use narthex_testkit::authorization::{
    AuthMethod, ClientSettings, Endpoint, Issuer, Quirks, Settings, TokenFailure,
};
use narthex_upstream::{AtHand, CredentialFault};
use tokio::task::JoinSet;

use crate::world::{REDIRECT, Server, World, key, parameter, person, preregistered};

/// Calls at the same time; all must succeed.
async fn all_work(server: &Server, number: usize) {
    let mut calls = JoinSet::new();
    for _ in 0..number {
        let server = server.clone();
        calls.spawn(async move { server.works().await });
    }
    while let Some(done) = calls.join_next().await {
        done.unwrap();
    }
}

/// E98, E158: all waiting calls share one request.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn oauth_c23_two_hundred_calls_over_an_ending_token_renew_once() {
    // With 10 s left the old token still serves; after its end all calls wait for one renewal.
    for passed in [3590, 3601] {
        let world = World::new();
        let server = world.server(ServerAuth::Unstated);
        server.sign_in().await;
        world.advance(passed);
        all_work(&server, 200).await;
        server.sign_ins.close().await;
        let counts = world.fixture.counts();
        assert_eq!((counts.refreshes, counts.refused_refreshes), (1, 0), "after {passed} s");
        assert_eq!((counts.calls, counts.families_revoked), (200, 0), "after {passed} s");
        let facts = world.store.grant(key()).await.unwrap().unwrap().facts;
        assert_eq!(facts.succeeded_at, Some(world.fixture.now_s()));
    }
}

#[tokio::test]
async fn oauth_c23_a_caller_that_stops_waiting_stops_nothing() {
    let world = World::new();
    let server = world.server(ServerAuth::Unstated);
    server.sign_in().await;
    world.advance(3601);
    let gate = world.fixture.hold(Endpoint::Token, narthex_testkit::authorization::Moment::After);
    tokio::select! {
        biased;
        _ = server.credential.obtain() => panic!("the gate is closed"),
        () = gate.until(1) => {}
    }
    gate.open();
    server.works().await;
    assert_eq!(world.fixture.counts().refreshes, 1);
}

/// X-E53: a token that a server refuses with 401 is renewed once.
#[tokio::test]
async fn oauth_c24_a_refused_token_is_renewed_once_for_the_same_request() {
    let world = World::new();
    let server = world.server(ServerAuth::Unstated);
    server.sign_in().await;
    world.fixture.end_access_tokens();
    server.works().await;
    assert_eq!(world.fixture.counts().refreshes, 1);
    world.fixture.quirks(|quirks| quirks.refuses_all_tokens = true);
    let address = server.address("whoami").await;
    assert_eq!(world.fixture.counts().refreshes, 2);
    assert_eq!(server.address("whoami").await, address);
    assert_eq!(world.fixture.counts().refreshes, 2);
}

#[tokio::test]
async fn oauth_c25_failures_of_the_server_keep_the_grant_and_the_old_token() {
    for failure in [
        TokenFailure::Unavailable,
        TokenFailure::Html,
        TokenFailure::HtmlAsSuccess,
        TokenFailure::BrokenJson,
        TokenFailure::Hangup,
    ] {
        let world = World::new();
        let server = world.server(ServerAuth::Unstated);
        server.sign_in().await;
        world.fixture.quirks(|quirks| {
            quirks.failing_token_requests = 1;
            quirks.token_failure = failure;
        });
        world.advance(3590);
        // The call does not wait for the renewal.
        server.works().await;
        world.fixture.wait(|asked| asked.field("refresh_token").is_some()).await;
        server.sign_ins.close().await;
        let facts = server.sign_ins.status(&key()).unwrap().facts;
        assert!(facts.failure.is_some() && facts.failed_at.is_some(), "{failure:?}: {facts:?}");
        assert!(world.store.grant(key()).await.unwrap().is_some(), "{failure:?}");
        server.works().await;
    }
}

/// C25, E27: the owner and subscribers learn of each failed renewal when it happens, and of a grant
/// that has ended by both of its hooks.
#[tokio::test]
async fn oauth_c25_a_failed_renewal_is_reported_when_it_happens() {
    let world = World::new();
    let server = world.server(ServerAuth::Unstated);
    server.sign_in().await;
    let mut failures = server.sign_ins.failures();
    world.fixture.quirks(|quirks| {
        quirks.failing_token_requests = 1;
        quirks.token_failure = TokenFailure::Unavailable;
    });
    world.advance(3601);
    server.call("whoami").await.unwrap_err();
    let (of, facts) = failures.try_recv().unwrap();
    assert_eq!((of, facts.failed_at), (key(), Some(world.fixture.now_s())));
    assert!(facts.failure.is_some());
    assert_eq!(*world.recorder.failed.lock().unwrap(), [facts]);
    world.advance(60);
    server.works().await;
    assert!(failures.try_recv().is_err(), "a renewal in time is no failure");
    world.fixture.end_all_tokens();
    server.address("whoami").await;
    let (_, facts) = failures.try_recv().unwrap();
    assert!(facts.failure.unwrap().contains("invalid_grant"));
    assert_eq!(world.recorder.tokens.lock().unwrap().last(), Some(&None));
    assert_eq!(world.recorder.failed.lock().unwrap().len(), 2);
}

#[tokio::test]
async fn oauth_c25_after_the_end_of_the_token_calls_are_told_when_to_come_back() {
    let world = World::new();
    let server = world.server(ServerAuth::Unstated);
    server.sign_in().await;
    world.fixture.quirks(|quirks| {
        quirks.failing_token_requests = 1;
        quirks.token_failure = TokenFailure::TooMany;
    });
    world.advance(3601);
    let fault = server.call("whoami").await.unwrap_err();
    let CredentialFault::Unavailable { retry_after, .. } = &fault else { panic!("{fault:?}") };
    assert_eq!(retry_after.unwrap().as_secs(), 7);
    let asked = world.fixture.asked_of(Endpoint::Token).len();
    assert!(matches!(server.call("whoami").await, Err(CredentialFault::Unavailable { .. })));
    assert_eq!(world.fixture.asked_of(Endpoint::Token).len(), asked);
    world.advance(8);
    server.works().await;
    assert_eq!(server.sign_ins.status(&key()).unwrap().facts.failure, None);
}

#[tokio::test]
async fn oauth_c10_the_authorization_server_is_looked_for_after_a_failure_alone() {
    let world = World::new();
    let server = world.server(ServerAuth::Unstated);
    server.sign_in().await;
    world.fixture.forget_asked();
    world.advance(3601);
    server.works().await;
    world.fixture.quirks(|quirks| quirks.failing_token_requests = 1);
    world.advance(3601);
    server.call("whoami").await.unwrap_err();
    assert_eq!(world.fixture.asked_of(Endpoint::ServerMetadata).len(), 0);
    world.advance(60);
    server.works().await;
    assert_eq!(world.fixture.asked_of(Endpoint::ServerMetadata).len(), 1);
    assert_eq!(world.fixture.counts().refreshes, 2);
}

#[tokio::test]
async fn e101_a_revoked_grant_is_dropped_and_a_person_is_asked() {
    for errors_with_200 in [false, true] {
        let world = World::quirky(Quirks { errors_with_200, ..Quirks::default() });
        let server = world.server(ServerAuth::Unstated);
        server.sign_in().await;
        world.fixture.end_all_tokens();
        let address = server.address("whoami").await;
        assert!(world.store.grant(key()).await.unwrap().is_none());
        assert_eq!(world.recorder.tokens.lock().unwrap().last(), Some(&None));
        assert_eq!(world.fixture.counts().registrations, 1);
        server.browse(&address).await.unwrap();
        server.works().await;
    }
}

#[tokio::test]
async fn oauth_c25_and_q17_a_forgotten_client_is_registered_anew() {
    let world = World::new();
    let server = world.server(ServerAuth::Unstated);
    server.sign_in().await;
    world.fixture.forget_clients();
    world.advance(3601);
    let address = server.address("whoami").await;
    assert_eq!(parameter(&address, "client_id").as_deref(), Some("client-2"));
    server.browse(&address).await.unwrap();
    server.works().await;
}

#[tokio::test]
async fn oauth_c25_a_refused_client_of_the_settings_is_an_error_and_stays() {
    let clients = vec![ClientSettings {
        redirect_uris: vec![REDIRECT.to_owned()],
        ..ClientSettings::confidential("known", "s3cret", AuthMethod::Basic)
    }];
    let world = World::with(Settings { clients, ..Settings::default() });
    let server = world.server(preregistered("known", Some("s3cret")));
    server.sign_in().await;
    world.fixture.change(|settings| settings.clients.clear());
    world.advance(3601);
    let fault = server.call("whoami").await.unwrap_err();
    let CredentialFault::Unusable { why } = &fault else { panic!("{fault:?}") };
    assert!(why.contains("invalid_client") && !why.contains("s3cret"), "{why}");
    assert!(world.store.grant(key()).await.unwrap().is_some());
}

#[tokio::test]
async fn oauth_q17_a_client_secret_that_has_ended_leads_to_a_new_registration() {
    let world = World::quirky(Quirks { secret_lives_s: Some(100), ..Quirks::default() });
    let server = world.server(ServerAuth::Unstated);
    server.address("whoami").await;
    world.advance(700);
    let address = server.address("whoami").await;
    assert_eq!(parameter(&address, "client_id").as_deref(), Some("client-2"));
}

#[tokio::test]
async fn oauth_q17_a_client_of_yesterday_is_registered_anew_before_a_person_is_sent_there() {
    let world = World::quirky(Quirks { purged_clients: Some(3600), ..Quirks::default() });
    let server = world.server(ServerAuth::Unstated);
    server.address("whoami").await;
    world.advance(25 * 3600);
    let address = server.address("whoami").await;
    assert_eq!(parameter(&address, "client_id").as_deref(), Some("client-2"));
    server.browse(&address).await.unwrap();
    server.works().await;
    // Purged, and refused by the token endpoint.
    world.advance(3601);
    let address = server.address("whoami").await;
    assert_eq!(parameter(&address, "client_id").as_deref(), Some("client-3"));
}

#[tokio::test]
async fn oauth_c21_another_issuer_gets_no_client_and_no_token_of_the_first() {
    let issuers = vec![Issuer::at(1, ""), Issuer::at(2, "")];
    let world = World::with(Settings { issuers, ..Settings::default() });
    let server = world.server(ServerAuth::Unstated);
    server.sign_in().await;
    world.fixture.change(|settings| settings.advertised = vec![1]);
    world.fixture.end_access_tokens();
    world.fixture.forget_asked();
    let address = server.address("whoami").await;
    assert!(address.starts_with(&world.fixture.issuer(1)), "{address}");
    assert!(world.fixture.asked_of(Endpoint::Token).is_empty());
    assert!(world.store.grant(key()).await.unwrap().is_none());
    server.browse(&address).await.unwrap();
    server.works().await;
    assert_eq!(world.fixture.counts().registrations, 2);
}

#[tokio::test]
async fn oauth_c21_a_client_of_the_settings_does_not_move_in_silence() {
    let issuers = vec![Issuer::at(1, ""), Issuer::at(2, "")];
    let clients = vec![ClientSettings::public("known", &[REDIRECT])];
    let world = World::with(Settings { issuers, clients, ..Settings::default() });
    let server = world.server(preregistered("known", None));
    server.sign_in().await;
    world.fixture.change(|settings| settings.advertised = vec![1]);
    world.fixture.end_access_tokens();
    let fault = server.call("whoami").await.unwrap_err();
    let CredentialFault::Unusable { why } = &fault else { panic!("{fault:?}") };
    assert!(why.contains("narthex mcp sign-out linear"), "{why}");
}

#[tokio::test]
async fn e30_a_token_that_is_due_is_sent_while_its_renewal_runs() {
    let world = World::new();
    let server = world.server(ServerAuth::Unstated);
    server.sign_in().await;
    world.advance(3590);
    let gate = world.fixture.hold(Endpoint::Token, narthex_testkit::authorization::Moment::Before);
    let AtHand::Ready(Some(before)) = server.credential.at_hand() else { panic!("no token") };
    gate.until(1).await;
    let AtHand::Ready(Some(meanwhile)) = server.credential.at_hand() else { panic!("no token") };
    assert_eq!(before, meanwhile);
    gate.open();
    server.sign_ins.close().await;
    let AtHand::Ready(Some(after)) = server.credential.at_hand() else { panic!("no token") };
    assert_ne!(before, after);
}

/// E156.
#[tokio::test]
async fn oauth_c26_an_idle_grant_is_renewed_if_its_entry_says_so() {
    for keep_alive in [false, true] {
        let world = World::new();
        let auth = AuthorizationCodeAuth { keep_alive, ..AuthorizationCodeAuth::default() };
        let server = world.server(person(auth));
        server.sign_in().await;
        world.advance(25 * 3600);
        tokio::task::yield_now().await;
        tokio::time::pause();
        tokio::time::advance(Duration::from_secs(3601)).await;
        tokio::time::resume();
        if keep_alive {
            world.fixture.wait(|asked| asked.field("refresh_token").is_some()).await;
        }
        server.sign_ins.close().await;
        assert_eq!(world.fixture.counts().refreshes, usize::from(keep_alive));
    }
}
