//! Attacks on exchanges: receivers of the identity, tokens of another provider, and entries whose
//! author wants the tokens of others.

use narthex_model::OAuthResource;
use narthex_oauth_client::SignInTarget;
use narthex_testkit::authorization::coded;

use super::*;

/// The origins that were sent a text.
fn receivers(world: &World, text: &str) -> Vec<String> {
    let asked = world.fixture.asked();
    let has_it = asked.iter().filter(|asked| {
        let sent = asked.text();
        sent.contains(text) || sent.contains(&coded(text))
    });
    let mut origins: Vec<_> = has_it.map(|asked| asked.origin.clone()).collect();
    origins.dedup();
    origins
}

/// The origin of an issuer.
fn origin(world: &World, issuer: usize) -> String {
    Url::parse(&world.fixture.issuer(issuer)).unwrap().origin().ascii_serialization()
}

fn of_okta(kind: ExchangeKind) -> AuthorizationCodeAuth {
    auth(kind, ExchangeIdentity::Login("okta".to_owned()))
}

/// S16, S20: the identity goes to the provider alone, and the assertion to its audience alone.
#[tokio::test]
async fn s20_the_identity_reaches_the_provider_alone() {
    let world = world();
    let driven = Driven::new(&world, "one");
    let (id_token, refresh) = (id_token(&world), refresh_token(&world, "openid"));
    driven.sign_in(&world, Some(id_token.clone()), Some(refresh.clone())).await;
    let server = driven.server(&world, "orders");
    server.works().await;
    world.advance(3601);
    server.works().await;
    assert_eq!(receivers(&world, &id_token), [origin(&world, IDP)]);
    assert_eq!(receivers(&world, &refresh), [origin(&world, IDP)]);
    for redeemed in asked(&world, "jwt-bearer") {
        let assertion = redeemed.field("assertion").unwrap();
        assert_eq!(receivers(&world, &assertion), [origin(&world, SERVER)]);
    }
}

/// S18: the identity of one human is not used for another one.
#[tokio::test]
async fn s18_the_identity_of_another_human_does_not_count() {
    let world = world();
    let driven = Driven::new(&world, "one");
    driven.sign_in(&world, Some(id_token(&world)), None).await;
    let row = world.store.grant(LoginIdentity::key("okta", HUMAN)).await.unwrap().unwrap();
    assert!(driven.sign_ins.forget_identities(HUMAN).await.unwrap());
    let other = LoginIdentity::key("okta", "prn_8899aabbccddeeff");
    world.store.put_grant(other, row.value, row.facts).await.unwrap();
    let fault = driven.server(&world, "orders").call("whoami").await.unwrap_err();
    assert!(fault.needs_consent(), "{fault:?}");
    assert_eq!(counts(&world), [0, 0, 0]);
}

/// S20: a token serves no more after the entry names another provider.
#[tokio::test]
async fn s20_a_changed_provider_ends_the_use_of_a_token() {
    let world = world();
    let driven = Driven::new(&world, "one");
    driven.sign_in(&world, Some(id_token(&world)), None).await;
    driven.server(&world, "orders").works().await;
    let entra = auth(ExchangeKind::IdJag, ExchangeIdentity::Login("entra".to_owned()));
    let fault = driven.server_of(&world, "orders", entra).call("whoami").await.unwrap_err();
    assert!(fault.to_string().contains("[signin.oidc.entra]"), "{fault}");
    assert_eq!(counts(&world), [1, 1, 0]);
}

/// S16: the identity goes nowhere after the human has signed out.
#[tokio::test]
async fn s16_no_exchange_follows_a_sign_out() {
    let world = world();
    let driven = Driven::new(&world, "one");
    driven.sign_in(&world, Some(id_token(&world)), None).await;
    let server = driven.server(&world, "orders");
    server.works().await;
    driven.sign_ins.forget_identities(HUMAN).await.unwrap();
    world.fixture.end_access_tokens();
    assert!(server.call("whoami").await.unwrap_err().needs_consent());
    assert_eq!(counts(&world), [1, 1, 0]);
}

/// C32: the author of an entry cannot have tokens of the provider sent to a server that the
/// operator has not listed, whatever their audience is.
#[tokio::test]
async fn s16_an_entry_sends_tokens_of_the_provider_to_listed_servers_alone() {
    let world = world();
    let here = Url::parse(&world.fixture.url).unwrap().origin().ascii_serialization();
    for (number, servers) in
        [None, Some(Vec::new()), Some(vec!["https://a.example".to_owned()])].into_iter().enumerate()
    {
        let driven = Driven::at(&world, &format!("p{number}"), Okta { servers });
        driven.sign_in(&world, Some(id_token(&world)), None).await;
        let server = driven.server_of(&world, "orders", of_okta(ExchangeKind::Token));
        let fault = server.call("whoami").await.unwrap_err();
        assert!(matches!(fault, CredentialFault::Unusable { .. }), "{fault:?}");
        assert!(fault.to_string().contains("`exchange_servers`"), "{fault}");
        let target = SignInTarget { key: key_of("orders"), ..server.target() };
        let error = server.sign_ins.prepare(&target).await.unwrap_err();
        assert!(matches!(error, SignInError::NotListed { .. }), "{error}");
    }
    assert_eq!(counts(&world), [0, 0, 0]);
    let driven = Driven::at(&world, "listed", Okta { servers: Some(vec![here]) });
    driven.server_of(&world, "orders", of_okta(ExchangeKind::Token)).works().await;
    assert_eq!(counts(&world), [1, 0, 0]);
}

/// C31: without a list, an assertion leads to a token for the server itself alone. With one, it
/// leads to tokens for listed servers.
#[tokio::test]
async fn s16_an_entry_gets_no_token_for_the_resource_of_another_server() {
    let world = world();
    let driven = Driven::new(&world, "one");
    driven.sign_in(&world, Some(id_token(&world)), None).await;
    let pay = OAuthResource::Url("https://pay.example/mcp".to_owned());
    for resource in [pay, OAuthResource::Omit] {
        let auth =
            AuthorizationCodeAuth { resource: Some(resource), ..of_okta(ExchangeKind::IdJag) };
        let fault = driven.server_of(&world, "orders", auth).call("whoami").await.unwrap_err();
        assert!(fault.to_string().contains("`exchange_servers`"), "{fault}");
    }
    let unlisted = Driven::at(&world, "two", Okta { servers: Some(Vec::new()) });
    let fault = unlisted.server(&world, "orders").call("whoami").await.unwrap_err();
    assert!(fault.to_string().contains("`exchange_servers`"), "{fault}");
    assert_eq!(counts(&world), [0, 0, 0]);
}
