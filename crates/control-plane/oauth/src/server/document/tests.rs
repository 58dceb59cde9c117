//! Documents of clients: good ones, wrong ones, and copies that outlive their host.

use std::time::UNIX_EPOCH;

use serde_json::json;

use super::*;

const ID: &str = "https://app.example/client.json";

fn now() -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(2_000_000_000)
}

fn id() -> ClientId {
    ClientId::parse(ID).unwrap()
}

fn document() -> Value {
    json!({
        "client_id": ID,
        "client_name": "App\u{202e}",
        "client_uri": "https://app.example/about",
        "logo_uri": "https://evil.example/logo.svg",
        "redirect_uris": ["http://localhost/callback", "https://app.example/cb", "x://unknown"],
        "grant_types": ["authorization_code", "refresh_token"],
        "token_endpoint_auth_method": "none",
    })
}

fn answer(body: &[u8]) -> FetchedDocument<'_> {
    FetchedDocument {
        status: 200,
        content_type: Some("application/json; charset=utf-8"),
        cache_control: None,
        age: None,
        body,
    }
}

fn read(document: &Value) -> Result<CachedDocument, DocumentError> {
    answer(document.to_string().as_bytes()).read(&id(), &RedirectRules::default(), now())
}

#[test]
fn door_a3_a_good_document_describes_its_client() {
    let client = read(&document()).unwrap().client;
    assert_eq!((client.id.as_str(), client.name.as_str()), (ID, "App"));
    assert_eq!(client.verified_host().as_deref(), Some("app.example"));
    assert_eq!(client.link.as_deref(), Some("https://app.example/about"));
    assert!(client.is_public());
    let uris: Vec<_> = client.redirect_uris.iter().map(|uri| uri.as_str()).collect();
    assert_eq!(uris, ["http://localhost/callback", "https://app.example/cb"]);
    assert!(client.redirect_uri("http://localhost:51234/callback").is_some());
    assert!(client.redirect_uri("x://unknown").is_none());
}

#[test]
fn door_a3_a8_a_document_names_the_keys_of_its_client() {
    let mut document = document();
    document["token_endpoint_auth_method"] = json!("private_key_jwt");
    document["jwks_uri"] = json!("https://app.example/keys");
    let client = read(&document).unwrap().client;
    let keys = ClientKeys::At("https://app.example/keys".to_owned());
    assert_eq!(client.proof, ClientProof::Keys(keys));
    document["client_secret"] = json!("s");
    assert_eq!(read(&document), Err(DocumentError::Proof));
}

#[test]
fn door_a3_a_wrong_document_is_refused() {
    use DocumentError::{BadField, NoCodeGrant, NoRedirectUri, OtherClient, Proof};
    let table = [
        ("client_id", json!("https://app.example/client.json/"), OtherClient),
        ("client_id", json!("https://evil.example/client.json"), OtherClient),
        ("client_id", Value::Null, OtherClient),
        ("client_secret", json!("s"), Proof),
        ("client_secret_expires_at", json!(0), Proof),
        ("token_endpoint_auth_method", json!("client_secret_basic"), Proof),
        ("token_endpoint_auth_method", json!("private_key_jwt"), Proof),
        ("grant_types", json!(["client_credentials"]), NoCodeGrant),
        ("redirect_uris", Value::Null, NoRedirectUri),
        ("redirect_uris", json!([]), NoRedirectUri),
        ("redirect_uris", json!(["javascript:alert(1)"]), NoRedirectUri),
        ("redirect_uris", json!("https://app.example/cb"), BadField("redirect_uris")),
        ("redirect_uris", json!([1]), BadField("redirect_uris")),
        ("client_name", json!(["a"]), BadField("client_name")),
        ("scope", json!("a\"b"), BadField("scope")),
    ];
    for (name, value, error) in table {
        let mut document = document();
        document[name] = value.clone();
        assert_eq!(read(&document), Err(error), "{name}: {value}");
    }
}

#[test]
fn door_a3_pages_and_errors_are_no_documents() {
    let body = document().to_string();
    let rules = RedirectRules::default();
    let read = |answer: FetchedDocument<'_>| answer.read(&id(), &rules, now()).unwrap_err();
    for status in [204, 301, 404, 500] {
        let answer = FetchedDocument { status, ..answer(body.as_bytes()) };
        assert_eq!(read(answer), DocumentError::Status(status));
    }
    for content_type in [None, Some("text/html"), Some("text/json"), Some("application/jsonx")] {
        let answer = FetchedDocument { content_type, ..answer(body.as_bytes()) };
        assert_eq!(read(answer), DocumentError::NotJson, "{content_type:?}");
    }
    let large = format!("{body}{}", " ".repeat(FETCH.bytes));
    for body in ["<html>", "", "[]", &large] {
        assert_eq!(read(answer(body.as_bytes())), DocumentError::NotJson);
    }
    let content_type = Some("application/client-metadata+json");
    let named = FetchedDocument { content_type, ..answer(body.as_bytes()) };
    assert!(named.read(&id(), &rules, now()).is_ok());
}

#[test]
fn door_a3_the_settings_can_name_the_hosts() {
    assert_eq!(DocumentHosts::All.admit(&id()).unwrap().as_str(), ID);
    let only = |name: &str| DocumentHosts::Only(vec![name.to_owned()]).admit(&id());
    assert!(
        only("app.example").is_ok() && only(".app.example").is_ok() && only(".example").is_ok()
    );
    for name in ["example", "pp.example", "other.example", ".pp.example", "app.example."] {
        assert_eq!(only(name), Err(DocumentError::HostNotAllowed), "{name}");
    }
    let registered = ClientId::parse("dcr-1").unwrap();
    assert_eq!(DocumentHosts::All.admit(&registered), Err(DocumentError::NoAddress));
}

#[test]
fn door_a3_the_headers_set_the_life_between_minutes_and_a_day() {
    let life = |cache_control, age| FetchedDocument { cache_control, age, ..answer(b"") }.life();
    let seconds = Duration::from_secs;
    for (control, age, wanted) in [
        (None, None, LIFE_MIN),
        (Some("max-age=3600"), None, seconds(3600)),
        (Some("public, MAX-AGE=3600, s-maxage=7200"), None, seconds(7200)),
        (Some("max-age=3600"), Some("600"), seconds(3000)),
        (Some("max-age=3600"), Some("6000"), LIFE_MIN),
        (Some("max-age=10"), None, LIFE_MIN),
        (Some("max-age=99999999"), None, LIFE_MAX),
        (Some("no-store, max-age=3600"), None, LIFE_MIN),
        (Some("no-cache"), None, LIFE_MIN),
        (Some("max-age=soon"), Some("x"), LIFE_MIN),
    ] {
        assert_eq!(life(control, age), wanted, "{control:?} {age:?}");
    }
    let document = read(&document()).unwrap();
    assert!(!document.is_old(now() + LIFE_MIN - seconds(1)) && document.is_old(now() + LIFE_MIN));
}

#[test]
fn door_a3_the_last_good_copy_serves_running_logins() {
    let good = read(&document()).unwrap();
    assert!(good.client_for(DocumentUse::NewConsent).is_some());
    let late = now() + LIFE_MIN;
    let kept = good.clone().after_failure(late);
    assert!(!kept.is_old(late) && kept.is_old(late + LIFE_MIN), "it is looked for again");
    assert_eq!(kept.client_for(DocumentUse::RunningLogin), Some(&good.client));
    assert_eq!(kept.client_for(DocumentUse::NewConsent), None);
    let body = document().to_string();
    let again = answer(body.as_bytes()).read(&id(), &RedirectRules::default(), late).unwrap();
    let renewed = kept.after_success(again);
    assert_eq!(renewed.client.created_at, good.client.created_at);
    assert!(renewed.client_for(DocumentUse::NewConsent).is_some());
    let text = serde_json::to_string(&renewed).unwrap();
    assert_eq!(serde_json::from_str::<CachedDocument>(&text).unwrap(), renewed);
}
