//! Scopes: the choice of the first ones, and consents to further ones (C19, C22).

use narthex_model::{AuthorizationCodeAuth, ServerAuth};
use narthex_testkit::authorization::{Quirks, Settings};
use narthex_upstream::CredentialFault;

use crate::world::{World, parameter, person};

#[tokio::test]
async fn oauth_c19_the_scopes_of_the_settings_join_those_of_the_challenge() {
    let world = World::new();
    let auth = AuthorizationCodeAuth {
        scopes: std::iter::once("admin".to_owned()).collect(),
        ..AuthorizationCodeAuth::default()
    };
    let server = world.server(person(auth));
    let address = server.address("whoami").await;
    assert_eq!(parameter(&address, "scope").as_deref(), Some("admin mcp"));
}

#[tokio::test]
async fn oauth_c19_offline_access_is_asked_for_where_it_is_listed() {
    let quirks = Quirks { offline_access_needed: true, ..Quirks::default() };
    let mut settings = Settings::with(quirks);
    settings.scopes.push("offline_access".to_owned());
    let world = World::with(settings);
    let server = world.server(ServerAuth::Unstated);
    assert!(server.sign_in().await.facts.can_renew);
}

#[tokio::test]
async fn oauth_c22_a_refusal_for_want_of_scopes_asks_a_person_for_all_of_them() {
    let world = World::quirky(Quirks { challenge_names_missing_only: true, ..Quirks::default() });
    let server = world.server(ServerAuth::Unstated);
    server.sign_in().await;
    let fault = server.call("admin").await.unwrap_err();
    let CredentialFault::NeedsConsent { address: Some(address), scopes, why } = fault else {
        panic!("{fault:?}")
    };
    assert_eq!(parameter(&address, "scope").as_deref(), Some("admin mcp"));
    assert!(scopes.contains(&"admin".to_owned()) && why.contains("admin"), "{why}");
    // Other calls go on meanwhile, and the same call names the same address.
    server.works().await;
    assert_eq!(server.address("admin").await, address);
    let mut changes = server.sign_ins.changes();
    server.browse(&address).await.unwrap();
    assert!(changes.try_recv().is_ok());
    assert!(server.call("admin").await.is_ok());
    assert_eq!(world.fixture.counts().registrations, 1);
}

#[tokio::test]
async fn oauth_c22_consents_that_bring_nothing_are_limited() {
    let quirks = Quirks { grants_only: Some(vec!["mcp".to_owned()]), ..Quirks::default() };
    let world = World::quirky(quirks);
    let server = world.server(ServerAuth::Unstated);
    server.sign_in().await;
    for _ in 0..3 {
        let address = server.address("admin").await;
        server.browse(&address).await.unwrap();
    }
    let fault = server.call("admin").await.unwrap_err();
    assert_eq!(fault, CredentialFault::Rejected { status: 403 });
    // Other operations are not limited.
    server.works().await;
    assert_eq!(world.fixture.counts().codes, 4);
}

#[tokio::test]
async fn oauth_c22_tokens_are_renewed_while_a_person_is_asked_for_further_scopes() {
    let world = World::with(Settings { access_lives_s: 300, ..Settings::default() });
    let server = world.server(ServerAuth::Unstated);
    server.sign_in().await;
    let address = server.address("admin").await;
    world.advance(301);
    server.works().await;
    assert_eq!(world.fixture.counts().refreshes, 1);
    world.fixture.end_access_tokens();
    server.works().await;
    assert_eq!(world.fixture.counts().refreshes, 2);
    assert_eq!(server.address("admin").await, address);
    server.browse(&address).await.unwrap();
    assert!(server.call("admin").await.is_ok());
}
