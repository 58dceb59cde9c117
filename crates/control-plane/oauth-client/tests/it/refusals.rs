//! Servers at which a sign-in is refused: the reason names the remedy, and nothing is sent.

use narthex_model::{AuthorizationCodeAuth, ServerAuth};
use narthex_oauth_client::SignInError;
use narthex_testkit::authorization::{Endpoint, Moment, Quirks, WrongResource};
use narthex_upstream::CredentialFault;
use tokio::{task::JoinSet, time::Instant};

use crate::world::{World, person};

async fn refused(quirks: Quirks) -> (World, CredentialFault) {
    let world = World::quirky(quirks);
    let server = world.server(person(AuthorizationCodeAuth::default()));
    let fault = server.call("whoami").await.unwrap_err();
    // A second call does not ask all over again.
    let asked = world.fixture.asked_of(Endpoint::ServerMetadata).len();
    assert_eq!(server.call("whoami").await.unwrap_err().to_string(), fault.to_string());
    if matches!(fault, CredentialFault::Unusable { .. }) {
        assert_eq!(world.fixture.asked_of(Endpoint::ServerMetadata).len(), asked);
    }
    assert!(world.fixture.asked_of(Endpoint::Token).is_empty());
    (world, fault)
}

#[tokio::test]
async fn oauth_c4_c7_q8_settings_that_mend_a_refusal_are_named() {
    let none = Quirks::default;
    for (quirks, named) in [
        (Quirks { no_dcr: true, ..none() }, "auth.client.clientId"),
        (Quirks { dcr_refuses: Some(403), ..none() }, "auth.clientName"),
        (Quirks { no_s256_advertised: true, ..none() }, "auth.pkce"),
        (Quirks { wrong_issuer_in_metadata: true, ..none() }, "auth.authorizationServer"),
        (Quirks { no_resource_metadata: true, ..none() }, "auth.authorizationServer"),
        (
            Quirks { wrong_resource: Some(WrongResource::OtherOrigin), ..none() },
            "could receive tokens of that one",
        ),
        (
            Quirks { wrong_resource: Some(WrongResource::OtherPath), ..none() },
            "could receive tokens of that one",
        ),
        (
            Quirks {
                dcr_forces_redirects: Some(vec!["https://evil.example/x".to_owned()]),
                ..none()
            },
            "auth.client.clientId",
        ),
    ] {
        let (_world, fault) = refused(quirks).await;
        let CredentialFault::Unusable { why } = &fault else { panic!("{fault:?}") };
        assert!(why.contains(named), "{why}");
    }
}

/// X-E36, X-E39.
#[tokio::test]
async fn oauth_c9_answers_beyond_the_limits_are_no_answers() {
    let none = Quirks::default;
    for quirks in [
        Quirks { oversized: vec![Endpoint::ResourceMetadata], ..none() },
        Quirks { unavailable: vec![Endpoint::ServerMetadata], ..none() },
        Quirks { redirects_to_itself: vec![Endpoint::ServerMetadata], ..none() },
        Quirks { unavailable: vec![Endpoint::Registration], ..none() },
    ] {
        let (_world, fault) = refused(quirks).await;
        assert!(matches!(fault, CredentialFault::Unavailable { .. }), "{fault:?}");
    }
}

/// X-E36, X-E44: a document has 5 s, and a request for tokens 10 s.
#[tokio::test]
async fn oauth_c9_an_answer_that_never_comes_is_waited_for_within_limits() {
    for (endpoint, limit) in [(Endpoint::ResourceMetadata, 5), (Endpoint::Token, 10)] {
        let world = World::new();
        let server = world.server(person(AuthorizationCodeAuth::default()));
        if endpoint == Endpoint::Token {
            server.sign_in().await;
            world.advance(3601);
        }
        let gate = world.fixture.hold(endpoint, Moment::Before);
        let begun = Instant::now();
        let mut calls = JoinSet::new();
        calls.spawn(async move { server.call("whoami").await });
        gate.until(1).await;
        // From here on, the time passes with the next deadline alone.
        tokio::time::pause();
        let fault = calls.join_next().await.unwrap().unwrap().unwrap_err();
        let waited = begun.elapsed().as_secs();
        tokio::time::resume();
        assert!(matches!(fault, CredentialFault::Unavailable { .. }), "{fault:?}");
        // A busy machine may take its time before that.
        assert!((limit..limit + 5).contains(&waited), "{endpoint:?}: {waited} s");
        gate.open();
    }
}

/// S16.
#[tokio::test]
async fn oauth_c28_a_redirect_of_the_token_endpoint_is_not_followed() {
    let quirks = Quirks { redirects: vec![Endpoint::Token], ..Quirks::default() };
    let world = World::quirky(quirks);
    let server = world.server(ServerAuth::Unstated);
    let address = server.address("whoami").await;
    let error = server.browse(&address).await.unwrap_err();
    assert!(matches!(error, SignInError::Token { .. }), "{error}");
    let elsewhere = world.fixture.asked().into_iter();
    let elsewhere = elsewhere.filter(|asked| asked.origin == world.fixture.elsewhere);
    assert_eq!(elsewhere.count(), 0);
}

#[tokio::test]
async fn an_unstated_server_without_oauth_keeps_its_refusal() {
    let world = World::quirky(Quirks { no_resource_metadata: true, ..Quirks::default() });
    let server = world.server(ServerAuth::Unstated);
    for _ in 0..2 {
        let fault = server.call("whoami").await.unwrap_err();
        assert_eq!(fault, CredentialFault::Rejected { status: 401 });
    }
    assert!(server.sign_ins.status(&crate::world::key()).is_none());
}

#[tokio::test]
async fn e107_a_person_who_declines_can_try_again() {
    let world =
        World::quirky(Quirks { denies: Some("access_denied".to_owned()), ..Quirks::default() });
    let server = world.server(ServerAuth::Unstated);
    let address = server.address("whoami").await;
    let error = server.browse(&address).await.unwrap_err().to_string();
    assert!(error.contains("access_denied") && !error.contains("refused"), "{error}");
    world.fixture.quirks(|quirks| quirks.denies = None);
    server.sign_in().await;
    server.works().await;
}

#[tokio::test]
async fn e104_an_answer_with_another_state_ends_no_attempt() {
    let world = World::quirky(Quirks { wrong_state_in_callback: true, ..Quirks::default() });
    let server = world.server(ServerAuth::Unstated);
    let address = server.address("whoami").await;
    let error = server.browse(&address).await.unwrap_err();
    assert!(matches!(error, SignInError::NoAttempt { .. }), "{error}");
    world.fixture.quirks(|quirks| quirks.wrong_state_in_callback = false);
    server.browse(&address).await.unwrap();
    server.works().await;
}

#[tokio::test]
async fn settings_that_cannot_be_used_are_named_without_a_request() {
    let world = World::new();
    let auth = AuthorizationCodeAuth {
        authorization_server: Some("ftp://as.example".to_owned()),
        ..AuthorizationCodeAuth::default()
    };
    let server = world.server(person(auth));
    let fault = server.call("whoami").await.unwrap_err();
    let CredentialFault::Unusable { why } = &fault else { panic!("{fault:?}") };
    assert!(why.contains("auth.authorizationServer"), "{why}");
    assert!(world.fixture.asked().is_empty());
}
