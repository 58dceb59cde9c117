//! Clients that get tokens without a person (E24, E97 to E100).

use narthex_model::{ClientCredentialsAuth, ClientProof, OAuth, Secret, SecretMethod, ServerAuth};
use narthex_oauth_client::{BeginAs, SignInError};
use narthex_testkit::authorization::{
    AuthMethod, ClientSettings, Endpoint, ExpiresIn, Quirks, Settings, Signer, TokenFailure,
};
use narthex_upstream::{AtHand, CredentialFault};
use tokio::task::JoinSet;

use crate::world::{Server, World};

fn world(method: AuthMethod, change: impl FnOnce(&mut Settings)) -> World {
    let clients = vec![ClientSettings::confidential("robot", "s3cret", method)];
    let mut settings = Settings { clients, ..Settings::default() };
    change(&mut settings);
    World::with(settings)
}

fn machine(world: &World, proof: ClientProof, has_token_url: bool) -> ServerAuth {
    let token_url = format!("{}/token", world.fixture.issuer(0));
    ServerAuth::OAuth(Box::new(OAuth::ClientCredentials(ClientCredentialsAuth {
        token_url: has_token_url.then_some(token_url),
        client_id: "robot".to_owned(),
        proof,
        scopes: std::iter::once("mcp".to_owned()).collect(),
        audience: None,
        // Without discovery the settings name the resource.
        resource: has_token_url.then(|| world.fixture.url.clone()),
        authorization_server: None,
        auth_error: None,
        grant: None,
    })))
}

fn secret(method: Option<SecretMethod>) -> ClientProof {
    ClientProof::Secret { secret: Secret::new("s3cret"), method }
}

/// A call with the token of a client succeeds.
async fn works(server: &Server) {
    let body = server.call("whoami").await.unwrap();
    assert_eq!(body["result"]["structuredContent"]["client"], "robot", "{body}");
}

#[tokio::test]
async fn e24_and_c30_a_token_is_had_with_and_without_a_token_url() {
    for (method, pinned) in [
        (AuthMethod::Post, Some(SecretMethod::Post)),
        (AuthMethod::Basic, Some(SecretMethod::Basic)),
    ] {
        for has_token_url in [true, false] {
            let world = world(method, |_| {});
            let server = world.server(machine(&world, secret(pinned), has_token_url));
            works(&server).await;
            works(&server).await;
            let asked = world.fixture.asked_of(Endpoint::Token);
            assert_eq!(asked.len(), 1, "the token is used again (E97)");
            assert_eq!(asked[0].field("resource").as_deref(), Some(world.fixture.url.as_str()));
            assert_eq!(asked[0].field("scope").as_deref(), Some("mcp"));
            let looked = world.fixture.asked_of(Endpoint::ResourceMetadata).len();
            assert_eq!(looked > 0, !has_token_url);
        }
    }
}

#[tokio::test]
async fn e97_a_secret_goes_into_the_form_of_a_token_url() {
    let world = world(AuthMethod::Post, |_| {});
    let server = world.server(machine(&world, secret(None), true));
    works(&server).await;
    // Until 30 s before its end the token is used again.
    world.advance(3569);
    works(&server).await;
    assert_eq!(world.fixture.counts().access_tokens, 1);
    world.advance(2);
    works(&server).await;
    server.sign_ins.close().await;
    assert_eq!(world.fixture.counts().access_tokens, 2);
}

#[tokio::test]
async fn e97_a_missing_lifetime_is_five_minutes() {
    let quirks = Quirks { expires_in: ExpiresIn::Missing, ..Quirks::default() };
    let world = world(AuthMethod::Post, |settings| settings.quirks = quirks);
    let server = world.server(machine(&world, secret(None), true));
    works(&server).await;
    world.advance(265);
    works(&server).await;
    assert_eq!(world.fixture.counts().access_tokens, 1);
    world.advance(10);
    works(&server).await;
    server.sign_ins.close().await;
    assert_eq!(world.fixture.counts().access_tokens, 2);
}

#[tokio::test]
async fn oauth_c30_a_client_proves_itself_with_a_key() {
    let signer = Signer::new("k1");
    let clients = vec![ClientSettings::with_keys("robot", vec![signer.jwk()])];
    let world = World::with(Settings { clients, ..Settings::default() });
    let pem = Secret::new(signer.pem());
    let proof = ClientProof::Key { pem, key_id: Some("k1".to_owned()), algorithm: None };
    let server = world.server(machine(&world, proof, false));
    works(&server).await;
    let asked = world.fixture.asked_of(Endpoint::Token);
    assert!(asked[0].field("client_assertion").is_some());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn e98_all_waiters_share_one_request_and_its_failure() {
    let world = world(AuthMethod::Post, |_| {});
    let server = world.server(machine(&world, secret(None), true));
    let mut calls = JoinSet::new();
    for _ in 0..50 {
        let server = server.clone();
        calls.spawn(async move { works(&server).await });
    }
    while let Some(done) = calls.join_next().await {
        done.unwrap();
    }
    assert_eq!(world.fixture.counts().access_tokens, 1);
}

#[tokio::test]
async fn e98_a_failure_frees_the_next_call_to_try_again() {
    let world = world(AuthMethod::Post, |settings| {
        settings.quirks.failing_token_requests = 1;
        settings.quirks.token_failure = TokenFailure::Unavailable;
    });
    let server = world.server(machine(&world, secret(None), true));
    let fault = server.call("whoami").await.unwrap_err();
    assert!(matches!(fault, CredentialFault::Unavailable { .. }), "{fault:?}");
    works(&server).await;
}

#[tokio::test]
async fn e99_a_token_with_a_short_life_is_used_again() {
    let world = world(AuthMethod::Post, |settings| settings.access_lives_s = 20);
    let server = world.server(machine(&world, secret(None), true));
    works(&server).await;
    world.advance(5);
    works(&server).await;
    assert_eq!(world.fixture.counts().access_tokens, 1);
}

#[tokio::test]
async fn e100_a_refused_token_is_exchanged_once() {
    let world = world(AuthMethod::Post, |_| {});
    let server = world.server(machine(&world, secret(None), true));
    works(&server).await;
    world.fixture.end_access_tokens();
    works(&server).await;
    assert_eq!(world.fixture.counts().access_tokens, 2);
    world.fixture.quirks(|quirks| quirks.refuses_all_tokens = true);
    let fault = server.call("whoami").await.unwrap_err();
    assert_eq!(fault, CredentialFault::Rejected { status: 401 });
    assert_eq!(world.fixture.counts().access_tokens, 3);
}

#[tokio::test]
async fn e97_a_wrong_secret_is_an_error_with_a_status_and_a_code() {
    let world = world(AuthMethod::Post, |_| {});
    let proof = ClientProof::Secret { secret: Secret::new("wr0ng"), method: None };
    let server = world.server(machine(&world, proof, true));
    let fault = server.call("whoami").await.unwrap_err();
    let CredentialFault::Unusable { why } = &fault else { panic!("{fault:?}") };
    assert!(why.contains("401") && why.contains("invalid_client"), "{why}");
    assert!(!why.contains("wr0ng"), "{why}");
}

#[tokio::test]
async fn a_stored_token_of_a_client_serves_after_a_restart_and_no_other_entry() {
    let world = world(AuthMethod::Post, |_| {});
    let auth = machine(&world, secret(None), true);
    works(&world.server(auth.clone())).await;
    works(&world.server_of(&world.process("two"), auth)).await;
    assert_eq!(world.fixture.counts().access_tokens, 1);
    // A person's sign-in of the same name does not use it.
    let person = world.server_of(&world.process("three"), ServerAuth::Unstated);
    assert!(person.credential.obtain().await.unwrap().is_none());
    assert!(matches!(person.credential.at_hand(), AtHand::Ready(None)));
}

/// C19: the server names a scope besides those of the settings.
#[tokio::test]
async fn oauth_c19_the_scopes_of_a_client_join_those_of_the_challenge() {
    let world = world(AuthMethod::Basic, |_| {});
    let mut auth = machine(&world, secret(None), false);
    if let ServerAuth::OAuth(oauth) = &mut auth
        && let OAuth::ClientCredentials(auth) = &mut **oauth
    {
        auth.scopes = std::iter::once("admin".to_owned()).collect();
    }
    let server = world.server(auth);
    works(&server).await;
    works(&server).await;
    let asked = world.fixture.asked_of(Endpoint::Token);
    assert_eq!(asked.len(), 1, "the token is used again");
    assert_eq!(asked[0].field("scope").as_deref(), Some("admin mcp"));
}

#[tokio::test]
async fn no_person_can_sign_in_for_a_client() {
    let world = world(AuthMethod::Post, |_| {});
    let server = world.server(machine(&world, secret(None), true));
    let error = server.sign_ins.begin(&server.target(), BeginAs::Reuse).await.unwrap_err();
    assert!(matches!(error, SignInError::NoPerson { .. }), "{error}");
}
