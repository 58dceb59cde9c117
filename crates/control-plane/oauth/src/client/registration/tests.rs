//! Registrations, from servers that take the first request to those that take none.

use std::time::Duration;

use narthex_model::{ErrorKind, Secret};
use serde_json::{Value, json};
use url::Url;

use super::{
    ClientProfile, RegisteredClient, Registering, RegistrationError, RegistrationStep, variants,
};
use crate::{
    client::{AuthMethod, JsonRequest, Reply},
    metadata::ServerMetadata,
    scopes::Scopes,
};

const NOW: u64 = 2_000_000_000;
const PUBLIC: &str = "https://narthex.example/oauth/callback/x";
const LOOPBACK: &str = "http://127.0.0.1:4711/oauth/callback/x";

fn url(text: &str) -> Url {
    Url::parse(text).unwrap()
}

fn begin(redirects: &[&str], scopes: &str, methods: &[&str]) -> (Registering, JsonRequest) {
    let methods: Vec<_> = methods.iter().map(|method| (*method).to_owned()).collect();
    let metadata = ServerMetadata {
        issuer: "https://as.example".to_owned(),
        token_endpoint_auth_methods_supported: Some(methods),
        ..ServerMetadata::default()
    };
    let profile = ClientProfile {
        name: "narthex".to_owned(),
        uri: None,
        redirect_uris: redirects.iter().map(|uri| url(uri)).collect(),
        is_for_devices: false,
    };
    let endpoint = url("https://as.example/register");
    Registering::begin(&endpoint, &metadata, &profile, &Scopes::parse(scopes)).unwrap()
}

fn answer(registering: &mut Registering, status: u16, body: &str) -> RegistrationStep {
    registering.answer(&Reply::of(status, body.as_bytes()), NOW)
}

fn retried(step: RegistrationStep) -> Value {
    match step {
        RegistrationStep::Retry(request) => request.body,
        other => panic!("{other:?}"),
    }
}

fn registered(status: u16, body: &Value, methods: &[&str]) -> RegisteredClient {
    let (mut registering, _) = begin(&[PUBLIC], "", methods);
    match answer(&mut registering, status, &body.to_string()) {
        RegistrationStep::Registered(client) => *client,
        other => panic!("{other:?}"),
    }
}

fn failed(step: RegistrationStep) -> RegistrationError {
    match step {
        RegistrationStep::Failed(error) => error,
        other => panic!("{other:?}"),
    }
}

/// E95; X-E41: a client without a secret is registered, too.
#[test]
fn oauth_c13_the_request_says_all_that_a_server_needs() {
    let (_, request) = begin(&[PUBLIC], "b a", &["none"]);
    assert_eq!(request.url.as_str(), "https://as.example/register");
    let web = json!({
        "client_name": "narthex",
        "application_type": "web",
        "redirect_uris": [PUBLIC],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": "none",
        "scope": "a b",
    });
    assert_eq!(request.body, web);
    let (_, request) = begin(&[LOOPBACK], "", &[]);
    assert_eq!(request.body["application_type"], "native");
    assert_eq!(request.body["token_endpoint_auth_method"], "client_secret_basic");
    assert!(request.body.get("scope").is_none());
}

#[test]
fn oauth_a_client_for_devices_asks_for_their_grant() {
    let metadata =
        ServerMetadata { issuer: "https://as.example".to_owned(), ..ServerMetadata::default() };
    let profile = ClientProfile {
        name: "narthex".to_owned(),
        uri: None,
        redirect_uris: vec![url(LOOPBACK)],
        is_for_devices: true,
    };
    let endpoint = url("https://as.example/register");
    let begun = Registering::begin(&endpoint, &metadata, &profile, &Scopes::default());
    let (_, request) = begun.unwrap();
    let grants = json!([
        "urn:ietf:params:oauth:grant-type:device_code",
        "authorization_code",
        "refresh_token"
    ]);
    assert_eq!(request.body["grant_types"], grants);
}

#[test]
fn oauth_q12_a_client_asks_for_refresh_tokens() {
    let (_, request) = begin(&[PUBLIC], "", &[]);
    assert!(request.body["grant_types"].as_array().unwrap().contains(&json!("refresh_token")));
}

#[test]
fn oauth_c13_and_q9_refused_requests_are_varied_and_then_reported() {
    let (mut registering, first) = begin(&[PUBLIC, LOOPBACK], "a", &["none"]);
    assert_eq!(first.body["application_type"], "web");
    let refusal = "{\"error\":\"invalid_redirect_uri\",\"error_description\":\"<script>\"}";
    let second = retried(answer(&mut registering, 400, refusal));
    assert_eq!((&second["application_type"], &second["scope"]), (&json!("native"), &json!("a")));
    let third = retried(answer(&mut registering, 422, "no"));
    assert_eq!((&third["application_type"], third.get("scope")), (&json!("web"), None));
    let fourth = retried(answer(&mut registering, 200, refusal));
    assert_eq!(fourth["redirect_uris"], json!([LOOPBACK]));
    assert_eq!((&fourth["application_type"], &fourth["scope"]), (&json!("native"), &json!("a")));
    let error = failed(answer(&mut registering, 400, refusal));
    assert_eq!(
        error.to_string(),
        "the authorization server does not register narthex: https://as.example/register answers \
         400 (invalid_redirect_uri); register a client there by hand with the redirect URI \
         https://narthex.example/oauth/callback/x, and set auth.client.clientId"
    );
    assert_eq!(error.kind(), ErrorKind::Invalid);
}

#[test]
fn oauth_q9_the_registered_redirect_uri_is_named() {
    let (mut registering, _) = begin(&[PUBLIC, LOOPBACK], "", &["none"]);
    retried(answer(&mut registering, 400, ""));
    retried(answer(&mut registering, 400, ""));
    let step = answer(&mut registering, 201, "{\"client_id\":\"c\"}");
    let RegistrationStep::Registered(client) = step else { panic!("{step:?}") };
    assert_eq!(client.redirect_uri, LOOPBACK);
}

#[test]
fn oauth_q8_a_refusal_in_plain_text_is_readable() {
    let (mut registering, _) = begin(&[PUBLIC], "", &["none"]);
    retried(answer(&mut registering, 403, "Forbidden <b>client</b>"));
    let error = failed(answer(&mut registering, 403, "Forbidden <b>client</b>")).to_string();
    assert!(error.contains("answers 403 (no error code)") && !error.contains("<b>"), "{error}");
    assert!(error.contains("auth.clientName"), "{error}");
}

#[test]
fn oauth_c13_only_complaints_about_the_request_are_retried() {
    for status in [401, 404, 405] {
        let (mut registering, _) = begin(&[PUBLIC], "a", &["none"]);
        let error = failed(answer(&mut registering, status, "{}"));
        assert!(matches!(error, RegistrationError::Refused { .. }), "{status}");
    }
    let (mut registering, _) = begin(&[PUBLIC], "a", &["none"]);
    let error = failed(registering.answer(&Reply::Missing, NOW));
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    let retry_after = Some(Duration::from_secs(9));
    let reply = Reply::Answer { status: 429, body: b"", retry_after };
    let error = failed(registering.answer(&reply, NOW));
    assert!(matches!(error, RegistrationError::Unavailable { retry_after: Some(_), .. }));
}

#[test]
fn oauth_c14_the_answer_wins_over_the_request() {
    let body = json!({
        "client_id": "c",
        "client_secret": "s",
        "client_secret_expires_at": NOW + 10,
        "token_endpoint_auth_method": "client_secret_post",
        "redirect_uris": ["https://other.example", PUBLIC],
        "registration_access_token": "t",
        "registration_client_uri": "https://as.example/register/c",
    });
    for status in [200, 201] {
        let client = registered(status, &body, &["client_secret_basic"]);
        assert_eq!(client.client.method, AuthMethod::Post);
        assert_eq!(client.client.secret.as_ref().unwrap().expose(), "s");
        assert_eq!(
            (client.redirect_uri.as_str(), client.issuer.as_str()),
            (PUBLIC, "https://as.example")
        );
        assert!(!client.has_ended(NOW + 9) && client.has_ended(NOW + 10));
        assert_eq!(client.management_token.unwrap().expose(), "t");
    }
}

#[test]
fn oauth_c14_a_secret_without_an_end_lasts() {
    for never in [json!(0), json!("0"), json!(null), json!("soon")] {
        let body =
            json!({"client_id": "c", "client_secret": "s", "client_secret_expires_at": never});
        assert!(!registered(201, &body, &[]).has_ended(u64::MAX), "{never}");
    }
    let body = json!({"client_id": "c", "client_secret": "s", "client_secret_expires_at": "5"});
    assert!(registered(201, &body, &[]).has_ended(5));
}

#[test]
fn oauth_q8_a_returned_secret_is_used() {
    let body =
        json!({"client_id": "c", "client_secret": "s", "token_endpoint_auth_method": "none"});
    let client = registered(201, &body, &["none"]).client;
    assert_eq!(client.method, AuthMethod::Post);
    let public = registered(201, &json!({"client_id": "c"}), &["client_secret_basic"]).client;
    assert_eq!((public.method, public.secret), (AuthMethod::None, None));
}

#[test]
fn oauth_c14_answers_that_cannot_be_used_are_errors() {
    for (body, reason) in [
        ("", "it has no client id"),
        ("<html>", "it has no client id"),
        ("{\"client_id\":7}", "it has no client id"),
        (
            "{\"client_id\":\"c\",\"redirect_uris\":[\"https://evil.example\"]}",
            "the server has registered other redirect URIs",
        ),
    ] {
        let (mut registering, _) = begin(&[PUBLIC], "", &[]);
        let error = failed(answer(&mut registering, 201, body)).to_string();
        assert!(error.contains(reason), "{body}: {error}");
    }
}

#[test]
fn oauth_c14_a_stored_client_is_read_back_and_prints_no_secret() {
    let body = json!({
        "client_id": "c",
        "client_secret": "s3cret",
        "client_secret_expires_at": 7,
        "registration_access_token": "t0ken",
    });
    let client = registered(201, &body, &[]);
    let stored = client.to_stored();
    let read = RegisteredClient::from_stored(&stored).unwrap();
    assert_eq!(read.to_stored().expose(), stored.expose());
    assert_eq!(read.client.secret.as_ref().unwrap().expose(), "s3cret");
    assert_eq!((read.secret_expires_at, read.registered_at), (Some(7), NOW));
    let shown = format!("{client:?} {read:?} {stored:?}");
    assert!(!shown.contains("s3cret") && !shown.contains("t0ken"), "{shown}");
    assert!(RegisteredClient::from_stored(&Secret::new("{}")).is_err());
}

#[test]
fn each_variant_is_sent_once() {
    for (count, redirects, has_scope) in [
        (0, vec![], true),
        (2, vec![PUBLIC], false),
        (3, vec![PUBLIC], true),
        (4, vec![PUBLIC, LOOPBACK], true),
    ] {
        let redirects: Vec<_> = redirects.into_iter().map(url).collect();
        let all = variants(&redirects, has_scope);
        assert_eq!(all.len(), count);
        assert!(
            all.iter()
                .enumerate()
                .all(|(at, one)| all.iter().skip(at + 1).all(|other| other != one))
        );
    }
}
