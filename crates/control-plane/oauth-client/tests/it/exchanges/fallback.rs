//! Sign-ins of a person after an exchange was refused for good (C31).

use narthex_model::{ExchangeFallback, OAuth};
use narthex_oauth_client::{BrowserAnswer, SignInTarget};
use narthex_testkit::authorization::TOKEN_EXCHANGE;

use super::*;
use crate::world::REDIRECT;

/// The same entry with a sign-in after the exchange.
fn falling_back(auth: ServerAuth) -> ServerAuth {
    let ServerAuth::OAuth(oauth) = auth else { panic!("no OAuth") };
    let OAuth::AuthorizationCode(mut auth) = *oauth else { panic!("another mode") };
    auth.exchange.as_mut().unwrap().fallback = Some(ExchangeFallback::SignIn);
    person(auth)
}

/// An entry whose person signs in after the exchange, as a client that the server knows.
fn entry(world: &World, id_token: &str) -> ServerAuth {
    let redirect_uris = vec![REDIRECT.to_owned()];
    world.fixture.change(|settings| settings.clients[SERVER].redirect_uris = redirect_uris);
    falling_back(given(world, ExchangeKind::IdJag, Some(id_token.to_owned()), None))
}

#[tokio::test]
async fn oauth_c31_a_fallback_is_not_used_while_the_exchange_works() {
    let world = world();
    let server = world.server(entry(&world, &id_token(&world)));
    server.works().await;
    world.advance(1800);
    world.fixture.end_access_tokens();
    server.works().await;
    assert_eq!(counts(&world), [2, 2, 0]);
    assert!(world.fixture.asked_of(Endpoint::Authorize).is_empty());
}

#[tokio::test]
async fn oauth_c31_a_person_signs_in_after_an_exchange_that_was_refused_for_good() {
    let world = world();
    let old = id_token(&world);
    world.advance(3601);
    let server = world.server(entry(&world, &old));
    server.sign_in().await;
    server.works().await;
    assert_eq!(counts(&world), [0, 0, 0]);
    // The token of the sign-in is renewed as such, and another process takes it over.
    world.advance(3601);
    server.works().await;
    assert_eq!(counts(&world), [0, 0, 1]);
    let other = world.server_of(&world.process("two"), server.auth.clone());
    other.works().await;
    assert_eq!(counts(&world), [0, 0, 1]);
    // An entry without the fallback does not use it.
    let alone = given(&world, ExchangeKind::IdJag, Some(old), None);
    let fault = world.server_of(&world.process("three"), alone).call("whoami").await.unwrap_err();
    assert!(fault.to_string().contains("`auth.exchange`"), "{fault}");
}

#[tokio::test]
async fn oauth_c31_a_provider_that_denies_the_exchange_leads_to_the_sign_in() {
    let world = world();
    let server = world.server(entry(&world, &id_token(&world)));
    server.works().await;
    world.fixture.change(|settings| {
        settings.clients[IDP].grant_types.retain(|name| name != TOKEN_EXCHANGE);
    });
    world.fixture.end_access_tokens();
    server.sign_in().await;
    server.works().await;
    assert_eq!(counts(&world), [2, 1, 0]);
    // The provider allows it again: the token of the sign-in serves until it is gone.
    let grant_types = |settings: &mut Settings| {
        settings.clients[IDP].grant_types.push(TOKEN_EXCHANGE.to_owned());
    };
    world.fixture.change(grant_types);
    server.works().await;
    assert_eq!(counts(&world), [2, 1, 0]);
    world.fixture.end_all_tokens();
    server.works().await;
    assert_eq!(counts(&world), [3, 2, 1]);
}

#[tokio::test]
async fn oauth_c25_a_provider_that_cannot_answer_leads_to_no_sign_in() {
    let world = world();
    let server = world.server(entry(&world, &id_token(&world)));
    world.fixture.quirks(|quirks| {
        quirks.failing_token_requests = 1;
        quirks.token_failure = TokenFailure::Unavailable;
    });
    let fault = server.call("whoami").await.unwrap_err();
    assert!(matches!(fault, CredentialFault::Unavailable { .. }), "{fault:?}");
    server.works().await;
}

#[tokio::test]
async fn oauth_c31_the_exchange_is_tried_again_after_a_while() {
    let world = world();
    world.fixture.change(|settings| {
        settings.clients[IDP].grant_types.retain(|name| name != TOKEN_EXCHANGE);
    });
    let server = world.server(entry(&world, &id_token(&world)));
    server.address("whoami").await;
    world.fixture.change(|settings| {
        settings.clients[IDP].grant_types.push(TOKEN_EXCHANGE.to_owned());
    });
    server.address("whoami").await;
    world.advance(601);
    server.works().await;
    assert_eq!(counts(&world), [2, 1, 0]);
}

/// The server `orders` of the human, whose sign-in follows the exchange.
fn orders(driven: &Driven, world: &World) -> Server {
    let mut auth = auth(ExchangeKind::IdJag, ExchangeIdentity::Login("okta".to_owned()));
    auth.exchange.as_mut().unwrap().fallback = Some(ExchangeFallback::SignIn);
    driven.server_of(world, "orders", auth)
}

fn target(server: &Server) -> SignInTarget {
    let session = Some("hash".to_owned());
    let (key, alias) = (key_of("orders"), "orders".to_owned());
    SignInTarget { key, alias, session, ..server.target() }
}

#[tokio::test]
async fn oauth_c31_a_human_without_an_identity_connects_in_their_own_browser() {
    let world = world();
    let driven = Driven::new(&world, "one");
    let server = orders(&driven, &world);
    let fault = server.call("whoami").await.unwrap_err();
    let CredentialFault::NeedsConsent { why, .. } = &fault else { panic!("{fault:?}") };
    assert!(why.contains("must connect their account"), "{why}");
    let begun = server.sign_ins.begin(&target(&server), BeginAs::Reuse).await.unwrap();
    let uris = vec![begun.redirect_uri.to_string()];
    world.fixture.change(|settings| settings.clients[SERVER].redirect_uris = uris);
    // Meanwhile no address of another browser is given away.
    let CredentialFault::NeedsConsent { address, .. } = server.call("whoami").await.unwrap_err()
    else {
        panic!("another fault")
    };
    assert_eq!(address, None);
    let back = world.fixture.browse(begun.url.as_str()).unwrap();
    let (_, query) = back.split_once('?').unwrap();
    let name = SharedGrant::name_of("orders");
    let answer = BrowserAnswer { query, server: Some(&name), session: Some("hash") };
    server.sign_ins.finish(answer).await.unwrap();
    server.works().await;
    // The identity of a later sign-in to narthex waits for the end of the token.
    driven.sign_in(&world, Some(id_token(&world)), None).await;
    server.works().await;
    assert_eq!(counts(&world), [0, 0, 0]);
    server.sign_ins.sign_out(&key_of("orders")).await.unwrap();
    server.works().await;
    assert_eq!(counts(&world), [1, 1, 0]);
}

#[tokio::test]
async fn oauth_c31_a_sign_in_to_narthex_ends_the_wait_for_a_connection() {
    let world = world();
    let driven = Driven::new(&world, "one");
    let server = orders(&driven, &world);
    assert!(server.call("whoami").await.unwrap_err().needs_consent());
    server.sign_ins.begin(&target(&server), BeginAs::Reuse).await.unwrap();
    driven.sign_in(&world, Some(id_token(&world)), None).await;
    server.works().await;
    assert_eq!(counts(&world), [1, 1, 0]);
}
