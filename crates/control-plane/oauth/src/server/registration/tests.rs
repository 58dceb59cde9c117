//! Registrations as real clients send them, and the ones that are refused.

use std::time::{Duration, UNIX_EPOCH};

use super::*;

fn register_with(document: &Value, counts: RegistrationCounts) -> Result<Registered, OAuthError> {
    let rules = RegistrationRules {
        redirects: &RedirectRules::default(),
        scopes: &Scopes::read("mcp").unwrap(),
        limits: RegistrationLimits::default(),
    };
    let now = UNIX_EPOCH + Duration::from_secs(2_000_000_000);
    register(document.to_string().as_bytes(), &rules, counts, now)
}

fn register_one(document: &Value) -> Result<Registered, OAuthError> {
    register_with(document, RegistrationCounts::default())
}

fn body(registered: &Registered) -> Value {
    serde_json::from_str(registered.answer.body.as_ref().unwrap().expose()).unwrap()
}

fn document() -> Value {
    json!({
        "client_name": "Claude Code (my \u{202e}server)",
        "redirect_uris": ["http://localhost:3118/callback"],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": "none",
        "scope": "mcp admin offline_access",
        "some_new_field": {"a": 1},
    })
}

#[test]
fn door_a4_q21_the_answer_repeats_what_was_sent() {
    let registered = register_one(&document()).unwrap();
    let answer = body(&registered);
    assert_eq!(registered.answer.status, 201);
    for name in ["client_name", "redirect_uris", "grant_types", "response_types"] {
        assert_eq!(answer[name], document()[name], "{name}");
    }
    assert_eq!(answer["token_endpoint_auth_method"], "none");
    assert_eq!(answer["client_id_issued_at"], 2_000_000_000);
    assert_eq!(answer["scope"], "mcp offline_access", "the answer says what is left");
    assert_eq!(answer.get("some_new_field"), None);
    assert_eq!(answer.get("client_secret"), None);
    let client = registered.client;
    assert_eq!(client.name.as_str(), "Claude Code (my server)");
    assert_eq!(answer["client_id"], client.id.as_str());
    assert!(client.is_public() && client.verified_host().is_none());
}

#[test]
fn door_a4_the_secret_is_in_the_answer_alone() {
    for method in [Value::Null, json!("client_secret_basic"), json!("client_secret_post")] {
        let mut sent = document();
        sent["token_endpoint_auth_method"] = method;
        let registered = register_one(&sent).unwrap();
        let answer = body(&registered);
        let secret = answer["client_secret"].as_str().unwrap();
        assert_eq!(answer["client_secret_expires_at"], 0);
        let ClientProof::Secret(hash) = &registered.client.proof else { panic!("a secret") };
        assert!(hash.opens_for(secret));
        let stored = serde_json::to_string(&registered.client).unwrap();
        assert!(!stored.contains(secret) && !format!("{registered:?}").contains(secret));
    }
}

#[test]
fn door_a4_little_is_enough() {
    let registered = register_one(&json!({"redirect_uris": ["https://a.example/cb"]})).unwrap();
    let answer = body(&registered);
    assert_eq!(answer["grant_types"], json!(["authorization_code"]));
    assert_eq!(answer.get("scope"), None);
    assert_eq!(registered.client.scopes, None);
    assert_eq!(registered.client.name.as_str(), "unnamed client");
}

#[test]
fn door_a4_q23_editors_register() {
    let vscode = json!({
        "client_name": "Visual Studio Code",
        "client_uri": "https://code.visualstudio.com",
        "grant_types": [
            "authorization_code", "refresh_token", "urn:ietf:params:oauth:grant-type:device_code",
        ],
        "response_types": ["code"],
        "redirect_uris": [
            "https://insiders.vscode.dev/redirect", "https://vscode.dev/redirect",
            "http://127.0.0.1/", "http://127.0.0.1:33418/",
        ],
        "token_endpoint_auth_method": "none",
        "application_type": "native",
    });
    let answer = body(&register_one(&vscode).unwrap());
    assert_eq!(answer["redirect_uris"], vscode["redirect_uris"]);
    assert_eq!(answer["grant_types"], json!(["authorization_code", "refresh_token"]));
    let cursor = json!({
        "redirect_uris": ["cursor://anysphere.cursor-mcp/oauth/callback"],
        "application_type": "web",
        "token_endpoint_auth_method": "none",
    });
    let registered = register_one(&cursor).unwrap();
    assert_eq!(registered.client.application_type.as_deref(), Some("web"));
    assert_eq!(body(&registered)["application_type"], "web");
}

#[test]
fn door_a4_wrong_registrations_are_refused() {
    use ErrorCode::{InvalidClientMetadata, InvalidRedirectUri};
    let many: Vec<_> = (0..=REDIRECTS_MAX).map(|n| format!("https://a.example/{n}")).collect();
    let table = [
        ("redirect_uris", Value::Null, InvalidRedirectUri),
        ("redirect_uris", json!([]), InvalidRedirectUri),
        ("redirect_uris", json!(["https://a.example/cb", "data:x"]), InvalidRedirectUri),
        ("redirect_uris", json!(["https://a.example/cb#x"]), InvalidRedirectUri),
        ("redirect_uris", json!(["http://a.example/cb"]), InvalidRedirectUri),
        ("redirect_uris", json!(many), InvalidRedirectUri),
        ("redirect_uris", json!("https://a.example/cb"), InvalidClientMetadata),
        ("redirect_uris", json!([1]), InvalidClientMetadata),
        ("grant_types", json!(["client_credentials"]), InvalidClientMetadata),
        ("response_types", json!(["token"]), InvalidClientMetadata),
        ("token_endpoint_auth_method", json!("private_key_jwt"), InvalidClientMetadata),
        ("token_endpoint_auth_method", json!("tls_client_auth"), InvalidClientMetadata),
        ("scope", json!("a\"b"), InvalidClientMetadata),
        ("client_name", json!({"en": "a"}), InvalidClientMetadata),
    ];
    for (name, value, code) in table {
        let mut sent = document();
        sent[name] = value.clone();
        let error = register_one(&sent).unwrap_err();
        assert_eq!(error.code, code, "{name}: {value}");
        assert_eq!(error.answer().status, 400);
    }
    for text in ["", "[]", "{", "\"a\""] {
        let rules = RegistrationRules {
            redirects: &RedirectRules::default(),
            scopes: &Scopes::default(),
            limits: RegistrationLimits::default(),
        };
        let counts = RegistrationCounts::default();
        let error = register(text.as_bytes(), &rules, counts, UNIX_EPOCH).unwrap_err();
        assert_eq!(error.code, InvalidClientMetadata, "{text}");
    }
    let large = json!({"redirect_uris": ["a".repeat(REGISTRATION_MAX)]});
    assert_eq!(register_one(&large).unwrap_err().code, InvalidClientMetadata);
}

#[test]
fn door_a4_a8_a_client_registers_its_keys_and_gets_no_secret() {
    let mut sent = document();
    sent["token_endpoint_auth_method"] = json!("private_key_jwt");
    sent["jwks_uri"] = json!("https://app.example/keys");
    let registered = register_one(&sent).unwrap();
    let answer = body(&registered);
    assert_eq!(answer["token_endpoint_auth_method"], "private_key_jwt");
    assert_eq!(answer["jwks_uri"], "https://app.example/keys");
    assert_eq!(answer.get("client_secret"), None);
    assert!(!registered.client.is_public());
    let ClientProof::Keys(keys) = registered.client.proof else { panic!("keys") };
    assert_eq!(keys, ClientKeys::At("https://app.example/keys".to_owned()));
    sent["jwks_uri"] = json!("http://app.example/keys");
    assert_eq!(register_one(&sent).unwrap_err().code, ErrorCode::InvalidClientMetadata);
}

#[test]
fn door_a4_registrations_are_bounded() {
    let RegistrationLimits { clients, hourly, hourly_from_one } = RegistrationLimits::default();
    let none = RegistrationCounts::default();
    for counts in [
        RegistrationCounts { clients, ..none },
        RegistrationCounts { in_last_hour: hourly, ..none },
        RegistrationCounts { in_last_hour_from_it: hourly_from_one, ..none },
    ] {
        let error = register_with(&document(), counts).unwrap_err();
        assert_eq!(error.answer().status, 429, "{counts:?}");
    }
    let most = RegistrationCounts { clients: clients - 1, ..none };
    assert!(register_with(&document(), most).is_ok());
}
