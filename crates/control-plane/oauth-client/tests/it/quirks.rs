//! Sign-ins, calls and renewals at servers that differ from the specifications (Q1 to Q21).

use narthex_model::{AuthorizationCodeAuth, OAuthPkce, OAuthResource, ServerAuth};
use narthex_oauth_client::SignInError;
use narthex_testkit::authorization::{
    AuthMethod, CallbackIss, ClientSettings, Endpoint, ExpiresIn, Issuer, Quirks, Settings,
    WrongResource,
};

use crate::world::{REDIRECT, World, parameter, person, preregistered};

/// Signs in, calls, and calls again after the token has ended.
async fn all_works(name: &str, world: &World, auth: ServerAuth) {
    let server = world.server(auth);
    let finished = server.sign_in().await;
    server.works().await;
    assert!(finished.facts.can_renew, "{name} has no refresh token");
    world.advance(3601);
    server.works().await;
    assert!(world.fixture.counts().refreshes > 0, "{name} is not refreshed");
    assert_eq!(world.fixture.counts().families_revoked, 0, "{name}");
}

macro_rules! quirk {
    ($($field:ident: $value:expr),+ $(,)?) => {
        (stringify!($($field),+), Quirks { $($field: $value,)+ ..Quirks::default() })
    };
}

#[tokio::test]
async fn oauth_q1_to_q3_metadata_is_found_wherever_servers_have_it() {
    for (name, quirks) in [
        quirk!(issuer_trailing_slash: true),
        quirk!(metadata_trailing_slash: true),
        quirk!(metadata_only_at_root: true),
        quirk!(metadata_only_at_root: true, challenge_without_metadata: true),
        quirk!(html_at_well_known: true),
        quirk!(html_at_well_known: true, challenge_without_metadata: true),
        quirk!(resource_metadata_appended: true),
        quirk!(miss_status: Some(401), metadata_only_at_root: true),
        quirk!(wrong_resource: Some(WrongResource::Parent)),
        quirk!(redirects: vec![Endpoint::ResourceMetadata, Endpoint::ServerMetadata]),
    ] {
        all_works(name, &World::quirky(quirks), person(AuthorizationCodeAuth::default())).await;
    }
}

#[tokio::test]
async fn oauth_c2_each_form_of_a_refusal_leads_to_a_sign_in() {
    for (name, quirks) in [
        quirk!(several_challenges: true),
        quirk!(no_bearer_challenge: true),
        quirk!(no_challenge: true),
        quirk!(challenge_without_metadata: true),
        quirk!(challenge_without_scope: true),
    ] {
        all_works(name, &World::quirky(quirks), ServerAuth::Unstated).await;
    }
}

#[tokio::test]
async fn oauth_c13_q8_and_q9_registrations_adapt_to_the_server() {
    for (name, quirks) in [
        quirk!(dcr_refuses_scope: true),
        quirk!(dcr_refuses_application_type: Some("native".to_owned())),
        quirk!(dcr_answers_200: true),
        quirk!(dcr_forces_method: Some(AuthMethod::Post)),
        quirk!(odd_client_ids: true),
        quirk!(loopback_ports_matter: true),
    ] {
        all_works(name, &World::quirky(quirks), ServerAuth::Unstated).await;
    }
    let quirks = Quirks { returns_secret_for_none: true, ..Quirks::default() };
    let auth_methods = vec!["none".to_owned()];
    let settings = Settings { auth_methods, ..Settings::with(quirks) };
    all_works("returns_secret_for_none", &World::with(settings), ServerAuth::Unstated).await;
    let only = Some("Known Client".to_owned());
    let world = World::quirky(Quirks { dcr_only_named: only.clone(), ..Quirks::default() });
    let named = AuthorizationCodeAuth { client_name: only, ..AuthorizationCodeAuth::default() };
    all_works("dcr_only_named", &world, person(named)).await;
}

#[tokio::test]
async fn oauth_q9_the_redirect_uri_is_the_one_that_the_server_takes() {
    for (quirks, redirect) in [
        (
            Quirks { dcr_refuses_loopback: true, ..Quirks::default() },
            "https://n.example/oauth/callback/linear",
        ),
        (Quirks { dcr_refuses_without_loopback: true, ..Quirks::default() }, REDIRECT),
    ] {
        let world = World::quirky(quirks);
        let mut options = world.options("one");
        options.redirect_base.public = url::Url::parse("https://n.example").ok();
        let sign_ins = narthex_oauth_client::SignIns::new(options);
        let server = world.server_of(&sign_ins, ServerAuth::Unstated);
        let address = server.address("whoami").await;
        assert_eq!(parameter(&address, "redirect_uri").as_deref(), Some(redirect));
        server.browse(&address).await.unwrap();
        server.works().await;
    }
}

#[tokio::test]
async fn oauth_q6_and_q15_to_q17_answers_for_tokens_are_read_in_all_forms() {
    for (name, quirks) in [
        quirk!(form_encoded_answers: true),
        quirk!(scope_missing: true),
        quirk!(token_type_missing: true),
        quirk!(token_type_lower_case: true),
        quirk!(expires_in: ExpiresIn::Text),
        quirk!(expires_in: ExpiresIn::Zero),
        quirk!(expires_in: ExpiresIn::Null),
        quirk!(expires_in: ExpiresIn::Missing),
        quirk!(expires_in: ExpiresIn::Junk),
        quirk!(expires_in: ExpiresIn::Missing, jwt_access_tokens: true),
        quirk!(errors_with_200: true),
        quirk!(never_rotates: true),
        quirk!(rotates_with_grace: Some(1000)),
        quirk!(ignores_resource: true),
        quirk!(resource_needed_on_refresh: true),
        quirk!(scope_refused_on_refresh: true),
    ] {
        all_works(name, &World::quirky(quirks), ServerAuth::Unstated).await;
    }
}

#[tokio::test]
async fn oauth_q13_the_scope_goes_with_a_refresh_where_it_is_needed() {
    let world = World::quirky(Quirks { scope_needed_on_refresh: true, ..Quirks::default() });
    let auth =
        AuthorizationCodeAuth { refresh_scope: Some(true), ..AuthorizationCodeAuth::default() };
    all_works("scope_needed_on_refresh", &world, person(auth)).await;
}

#[tokio::test]
async fn oauth_q4_the_resource_can_be_left_out() {
    let quirks = Quirks { refuses_resource_with_scope: true, ..Quirks::default() };
    let world = World::quirky(quirks);
    let omit = AuthorizationCodeAuth {
        resource: Some(OAuthResource::Omit),
        ..AuthorizationCodeAuth::default()
    };
    all_works("refuses_resource_with_scope", &world, person(omit)).await;
    for endpoint in [Endpoint::Authorize, Endpoint::Token] {
        for asked in world.fixture.asked_of(endpoint) {
            let sent = asked.query("resource").or_else(|| asked.field("resource"));
            assert_eq!(sent, None, "{endpoint:?}");
        }
    }
}

#[tokio::test]
async fn oauth_q5_servers_without_s256_are_refused_unless_it_is_assumed() {
    let quirks = Quirks { no_s256_advertised: true, ..Quirks::default() };
    let world = World::quirky(quirks);
    let server = world.server(ServerAuth::Unstated);
    let error = server.call("whoami").await.unwrap_err().to_string();
    assert!(error.contains("auth.pkce"), "{error}");
    let assume =
        AuthorizationCodeAuth { pkce: Some(OAuthPkce::Assume), ..AuthorizationCodeAuth::default() };
    all_works("no_s256_advertised", &world, person(assume)).await;
}

#[tokio::test]
async fn oauth_q6_a_provider_like_slack_works_with_a_client_of_the_settings() {
    let quirks = Quirks { slack_like: true, ..Quirks::default() };
    let mut settings = Settings::with(quirks);
    settings.clients = vec![ClientSettings {
        redirect_uris: vec![REDIRECT.to_owned()],
        ..ClientSettings::confidential("app", "s3cret", AuthMethod::Basic)
    }];
    let world = World::with(settings);
    all_works("slack_like", &world, preregistered("app", Some("s3cret"))).await;
}

#[tokio::test]
async fn oauth_q7_without_a_refresh_token_a_person_signs_in_again() {
    let world = World::quirky(Quirks { no_refresh_token: true, ..Quirks::default() });
    let server = world.server(ServerAuth::Unstated);
    assert!(!server.sign_in().await.facts.can_renew);
    world.advance(3601);
    server.sign_in().await;
    server.works().await;
    assert_eq!(world.fixture.counts().registrations, 1);
}

#[tokio::test]
async fn oauth_c6_a_server_of_2025_03_26_works_if_its_entry_says_so() {
    for no_server_metadata in [false, true] {
        let quirks = Quirks { no_resource_metadata: true, no_server_metadata, ..Quirks::default() };
        let mut settings = Settings::with(quirks);
        settings.issuers = vec![Issuer::at(0, "")];
        let world = World::with(settings);
        let legacy = AuthorizationCodeAuth {
            legacy: true,
            pkce: no_server_metadata.then_some(OAuthPkce::Assume),
            ..AuthorizationCodeAuth::default()
        };
        all_works("legacy", &world, person(legacy)).await;
    }
}

#[tokio::test]
async fn oauth_c5_the_authorization_server_can_be_set() {
    let world = World::quirky(Quirks { no_resource_metadata: true, ..Quirks::default() });
    let set = AuthorizationCodeAuth {
        authorization_server: Some(world.fixture.issuer(0)),
        ..AuthorizationCodeAuth::default()
    };
    all_works("authorization_server", &world, person(set)).await;
}

/// S20.
#[tokio::test]
async fn oauth_c17_answers_of_another_issuer_give_nothing() {
    for iss in CallbackIss::ALL {
        let world = World::quirky(Quirks { wrong_iss_in_callback: iss, ..Quirks::default() });
        let server = world.server(ServerAuth::Unstated);
        let address = server.address("whoami").await;
        let finished = server.browse(&address).await;
        let is_right = matches!(iss, CallbackIss::Supported | CallbackIss::NotAdvertised);
        assert_eq!(finished.is_ok(), is_right, "{iss:?}: {finished:?}");
        let exchanged = world.fixture.asked_of(Endpoint::Token).len();
        assert_eq!(exchanged, usize::from(is_right), "{iss:?}");
    }
}

#[tokio::test]
async fn oauth_q19_scopes_that_the_server_does_not_know_are_left_out_once() {
    let quirks =
        Quirks { unknown_scopes: true, challenge_without_scope: true, ..Quirks::default() };
    let world = World::quirky(quirks);
    let server = world.server(ServerAuth::Unstated);
    let address = server.address("whoami").await;
    assert_eq!(parameter(&address, "scope").as_deref(), Some("mcp mcp:unknown"));
    let error = server.browse(&address).await.unwrap_err();
    let next = error.goes_on_at().expect("the person is sent on").clone();
    assert!(matches!(error, SignInError::OtherScopes { .. }));
    assert_eq!(parameter(next.as_str(), "scope"), None);
    // Calls name the same address.
    assert_eq!(server.address("whoami").await, next.as_str());
    server.browse(next.as_str()).await.unwrap();
    server.works().await;
}
