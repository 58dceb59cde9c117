//! Sign-ins of humans for themselves: each has a grant of their own, and begins in their own
//! browser.

use std::{collections::BTreeMap, sync::Arc};

use narthex_model::{
    Alias, AuthorizationCodeAuth, HttpTarget, PrincipalId, ServerAuth, ServerId, SharedGrant,
    WorkspaceId,
};
use narthex_oauth_client::{
    BeginAs, BrowserAnswer, SignInError, SignInTarget, SignIns, store::GrantKey,
};
use narthex_testkit::authorization::Endpoint;
use narthex_upstream::{
    AtHand, CredentialFault, CredentialQuery, CredentialSource, Credentials, Holder,
};
use url::Url;

use crate::world::{World, person};

const ADA: &str = "prn_00000000000000aa";
const BOB: &str = "prn_00000000000000bb";

fn grant() -> SharedGrant {
    let (workspace, id) = (WorkspaceId::new("team").unwrap(), ServerId::new("mail").unwrap());
    SharedGrant::of_catalog(&workspace, &id)
}

fn auth() -> ServerAuth {
    person(AuthorizationCodeAuth { grant: Some(grant()), ..AuthorizationCodeAuth::default() })
}

fn key(user: &str) -> GrantKey {
    GrantKey {
        workspace: "team".to_owned(),
        server: "catalog/mail".to_owned(),
        user: Some(user.to_owned()),
    }
}

/// The credential of a run of this human, in which the server has this alias.
fn credential(world: &World, sign_ins: &SignIns, user: &str, alias: &str) -> Arc<dyn Credentials> {
    let target = HttpTarget {
        url: world.fixture.url.clone(),
        is_sse: false,
        headers: BTreeMap::new(),
        auth: auth(),
    };
    let holder = Holder { workspace: "team".to_owned(), user: user.to_owned() };
    let alias = Alias::new(alias).unwrap();
    let query = CredentialQuery { alias: &alias, target: &target, holder: Some(&holder) };
    CredentialSource::credentials(sign_ins, query).unwrap()
}

fn target(world: &World, user: &str, session: Option<&str>) -> SignInTarget {
    SignInTarget {
        key: key(user),
        alias: "mail".to_owned(),
        url: Url::parse(&world.fixture.url).unwrap(),
        auth: auth(),
        session: session.map(str::to_owned),
    }
}

/// The query of the answer to the sign-in of a human.
async fn answer(world: &World, sign_ins: &SignIns, user: &str) -> String {
    let begun = sign_ins.begin(&target(world, user, Some(user)), BeginAs::Reuse).await.unwrap();
    let back = world.fixture.browse(begun.url.as_str()).unwrap();
    back.split_once('?').unwrap().1.to_owned()
}

/// The answer at the address of the server, in the browser of a login session.
fn brought<'a>(query: &'a str, session: Option<&'a str>) -> BrowserAnswer<'a> {
    BrowserAnswer { query, server: Some("catalog/mail"), session }
}

fn header(credential: &Arc<dyn Credentials>) -> Option<String> {
    match credential.at_hand() {
        AtHand::Ready(header) => header.map(|header| header.to_str().unwrap().to_owned()),
        AtHand::Ask => None,
    }
}

/// C27, X-M14: each human has a grant of their own, under any alias, and none that another has.
#[tokio::test]
async fn oauth_c27_each_human_has_their_own_grant() {
    let world = World::new();
    let sign_ins = world.process("one");
    let of_ada = credential(&world, &sign_ins, ADA, "mail");
    let elsewhere = credential(&world, &sign_ins, ADA, "post");
    let of_bob = credential(&world, &sign_ins, BOB, "mail");
    let query = answer(&world, &sign_ins, ADA).await;
    let finished = sign_ins.finish(brought(&query, Some(ADA))).await.unwrap();
    assert_eq!(finished.key, key(ADA));
    for one in [&of_ada, &elsewhere] {
        assert!(one.obtain().await.unwrap().is_some());
    }
    assert_eq!(header(&of_ada), header(&elsewhere));
    assert!(matches!(of_bob.obtain().await, Err(CredentialFault::NeedsConsent { .. })));
    let query = answer(&world, &sign_ins, BOB).await;
    sign_ins.finish(brought(&query, Some(BOB))).await.unwrap();
    assert!(of_bob.obtain().await.unwrap().is_some());
    assert_ne!(header(&of_ada), header(&of_bob));
    sign_ins.sign_out(&key(ADA)).await.unwrap();
    assert!(of_ada.obtain().await.is_err());
    assert!(of_bob.obtain().await.unwrap().is_some());
}

/// X-E43: only the browser of the human finishes their sign-in, and only there it begins. Without a
/// grant no request is sent, not even one without a token.
#[tokio::test]
async fn x_e43_a_sign_in_of_a_human_belongs_to_their_browser() {
    let world = World::new();
    let sign_ins = world.process("one");
    let of_ada = credential(&world, &sign_ins, ADA, "mail");
    let Err(CredentialFault::NeedsConsent { address: None, .. }) = of_ada.obtain().await else {
        panic!("a request would be no human's")
    };
    assert!(world.fixture.asked().is_empty(), "no attempt begins by a call");
    let begun = sign_ins.begin(&target(&world, ADA, None), BeginAs::Reuse).await;
    assert!(matches!(begun, Err(SignInError::NoSession { .. })), "{begun:?}");
    for browser in [Some(BOB), None] {
        let query = answer(&world, &sign_ins, ADA).await;
        let ended = sign_ins.finish(brought(&query, browser)).await.unwrap_err();
        assert!(!ended.is_proved, "another browser learns nothing");
        assert!(of_ada.obtain().await.is_err());
    }
    assert_eq!(world.fixture.asked_of(Endpoint::Token).len(), 0);
    world.fixture.quirks(|quirks| quirks.denies = Some("access_denied".to_owned()));
    let query = answer(&world, &sign_ins, ADA).await;
    let ended = sign_ins.finish(brought(&query, Some(ADA))).await.unwrap_err();
    assert!(ended.is_proved, "the human can go back");
    assert_eq!(ended.key.as_deref(), Some(&key(ADA)));
    let again = sign_ins.finish(brought(&query, Some(ADA))).await.unwrap_err();
    assert!(!again.is_proved, "an answer counts once");
    let local = PrincipalId::local_admin();
    assert!(!key(local.as_str()).needs_own_browser());
}

/// X-M13: what a sign-in needs is found and registered before it, once for all humans.
#[tokio::test]
async fn x_m13_a_server_is_prepared_for_all_humans() {
    let world = World::new();
    let sign_ins = world.process("one");
    let mut of_all = target(&world, ADA, None);
    of_all.key.user = None;
    sign_ins.prepare(&of_all).await.unwrap();
    assert_eq!(world.fixture.counts().registrations, 1);
    for user in [ADA, BOB] {
        let query = answer(&world, &sign_ins, user).await;
        sign_ins.finish(brought(&query, Some(user))).await.unwrap();
    }
    assert_eq!(world.fixture.counts().registrations, 1);
    world.fixture.quirks(|quirks| quirks.no_resource_metadata = true);
    assert!(sign_ins.prepare(&of_all).await.is_err());
}

/// X-M13, C3: the metadata may have an address that only a refusal names: at the save, and when a
/// human connects.
#[tokio::test]
async fn oauth_c3_metadata_that_only_a_refusal_names_is_found_without_a_refused_call() {
    let world = World::new();
    world.fixture.quirks(|quirks| quirks.resource_metadata_elsewhere = true);
    let sign_ins = world.process("one");
    let mut of_all = target(&world, ADA, None);
    of_all.key.user = None;
    let prepared = sign_ins.prepare(&of_all).await.unwrap();
    assert!(!prepared.is_open);
    let query = answer(&world, &sign_ins, ADA).await;
    sign_ins.finish(brought(&query, Some(ADA))).await.unwrap();
    world.fixture.quirks(|quirks| quirks.challenge_without_metadata = true);
    assert!(sign_ins.prepare(&of_all).await.is_err(), "no one names its address");
}

/// X-M13: a server that answers without a sign-in is named as one: with a warning if it has an
/// authorization server, and else as a fault.
#[tokio::test]
async fn x_m13_a_server_that_answers_without_a_sign_in_is_named() {
    let world = World::new();
    world.fixture.quirks(|quirks| quirks.handshake_is_open = true);
    let sign_ins = world.process("one");
    let mut of_all = target(&world, ADA, None);
    of_all.key.user = None;
    assert!(sign_ins.prepare(&of_all).await.unwrap().is_open);
    world.fixture.quirks(|quirks| quirks.no_resource_metadata = true);
    let error = sign_ins.prepare(&of_all).await.unwrap_err();
    assert!(matches!(error, SignInError::NotAsked { .. }), "{error}");
    assert!(error.to_string().contains("`auth.mode` to \"none\""), "{error}");
}
