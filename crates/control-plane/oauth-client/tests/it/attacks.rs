//! Attacks on sign-ins: mixed up servers, tokens of another address, and answers that come again.

use std::collections::BTreeSet;

use narthex_model::{AuthorizationCodeAuth, ServerAuth};
use narthex_oauth_client::{BeginAs, BrowserAnswer, SignInError};
use narthex_testkit::authorization::AuthorizationFixture;
use narthex_upstream::{AtHand, CredentialFault};
use tokio::task::JoinSet;

use crate::world::{Server, World, credential, key, person};

/// The tokens that a server and its authorization server were sent.
fn bearers(fixture: &AuthorizationFixture) -> BTreeSet<String> {
    fixture.asked().iter().filter_map(|asked| asked.bearer().map(str::to_owned)).collect()
}

/// The server of another world, under the name and in the process of this one.
fn elsewhere(server: &Server, other: &World) -> Server {
    let auth = ServerAuth::Unstated;
    Server {
        fixture: other.fixture.clone(),
        credential: credential(&server.sign_ins, &other.fixture.url, &auth),
        sign_ins: server.sign_ins.clone(),
        auth,
    }
}

fn has_no_attempt(error: &SignInError) -> bool {
    matches!(error, SignInError::NoAttempt { .. })
}

/// S16, S20: the address of an entry changes, or two entries have one grant. A late request of the
/// old link, such as its DELETE, has no token of the new server.
#[tokio::test]
async fn s20_a_token_for_one_address_goes_to_no_other_of_its_grant() {
    let (old, new) = (World::new(), World::new());
    let before = old.server(ServerAuth::Unstated);
    before.sign_in().await;
    before.works().await;
    let after = elsewhere(&before, &new);
    let address = after.address("whoami").await;
    assert_eq!(bearers(&new.fixture), BTreeSet::new());
    // The old link still ends with its own token.
    assert!(matches!(before.credential.at_hand(), AtHand::Ready(Some(_))));
    after.browse(&address).await.unwrap();
    after.works().await;
    assert!(matches!(before.credential.at_hand(), AtHand::Ready(None)));
    assert!(matches!(before.call("whoami").await, Err(CredentialFault::NeedsConsent { .. })));
    old.advance(1);
    assert!(before.call("whoami").await.is_err());
    after.works().await;
    let (at_old, at_new) = (bearers(&old.fixture), bearers(&new.fixture));
    assert!(!at_old.is_empty() && !at_new.is_empty());
    assert!(at_old.is_disjoint(&at_new), "{at_old:?} {at_new:?}");
}

/// S20: a sign-in that a person began before the address of the entry changed.
#[tokio::test]
async fn s20_an_attempt_ends_with_the_address_of_its_entry() {
    let (old, new) = (World::new(), World::new());
    let before = old.server(ServerAuth::Unstated);
    let address = before.address("whoami").await;
    let back = old.fixture.browse(&address).unwrap();
    let after = elsewhere(&before, &new);
    drop(before);
    // A credential that no link uses is dropped when another is asked for.
    let keeps_alive =
        AuthorizationCodeAuth { keep_alive: true, ..AuthorizationCodeAuth::default() };
    drop(credential(&after.sign_ins, &new.fixture.url, &person(keeps_alive)));
    let error = after.bring(&back).await.unwrap_err();
    assert!(has_no_attempt(&error), "{error}");
    assert_eq!(old.fixture.counts().exchanged_codes, 0);
    after.sign_in().await;
    after.works().await;
    assert_eq!(bearers(&old.fixture), BTreeSet::new());
}

/// S20, RFC 9700, 4.4: a dishonest authorization server sends the browser on to an honest one, with
/// the state of its own attempt. The code comes to the address of the honest one's server.
#[tokio::test]
async fn s20_a_mixed_up_answer_at_the_address_of_another_server_gives_no_code_away() {
    let world = World::new();
    let server = world.server(ServerAuth::Unstated);
    for other in [Some("honest"), None] {
        let begun = server.sign_ins.begin(&server.target(), BeginAs::Reuse).await.unwrap();
        let back = world.fixture.browse(begun.url.as_str()).unwrap();
        let (_, query) = back.split_once('?').unwrap();
        let answer = BrowserAnswer { query, server: other, session: None };
        let ended = server.sign_ins.finish(answer).await.unwrap_err();
        assert!(has_no_attempt(&ended.error), "{ended:?}");
        assert!(!ended.is_proved);
        // The attempt is over.
        let error = server.bring(&back).await.unwrap_err();
        assert!(has_no_attempt(&error), "{error}");
    }
    assert_eq!(world.fixture.counts().exchanged_codes, 0);
    server.sign_in().await;
    server.works().await;
}

/// S20: entries of one grant that differ in their settings use one refresh token, once.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn s20_oauth_c23_two_entries_of_one_grant_renew_once() {
    let world = World::new();
    let one = world.server(ServerAuth::Unstated);
    one.sign_in().await;
    let keeps_alive =
        AuthorizationCodeAuth { keep_alive: true, ..AuthorizationCodeAuth::default() };
    let two = world.server_of(&one.sign_ins, person(keeps_alive));
    for server in [&one, &two] {
        server.works().await;
    }
    world.advance(3601);
    let mut calls = JoinSet::new();
    for server in [&one, &two].into_iter().cycle().take(40) {
        let server = server.clone();
        calls.spawn(async move { server.works().await });
    }
    while let Some(done) = calls.join_next().await {
        done.unwrap();
    }
    let counts = world.fixture.counts();
    assert_eq!((counts.refreshes, counts.refused_refreshes), (1, 0));
    assert_eq!(counts.families_revoked, 0);
    let status = one.sign_ins.status(&key()).unwrap();
    assert!(status.facts.can_renew);
    one.sign_ins.sign_out(&key()).await.unwrap();
    for server in [&one, &two] {
        assert!(matches!(server.credential.at_hand(), AtHand::Ready(None)));
    }
}

/// C29: a page that was opened before a sign-out.
#[tokio::test]
async fn oauth_c29_an_open_page_signs_no_human_in_after_a_sign_out() {
    let world = World::new();
    let server = world.server(ServerAuth::Unstated);
    let address = server.address("whoami").await;
    server.sign_ins.sign_out(&key()).await.unwrap();
    let error = server.browse(&address).await.unwrap_err();
    assert!(has_no_attempt(&error), "{error}");
    assert_eq!(world.fixture.counts().exchanged_codes, 0);
}
