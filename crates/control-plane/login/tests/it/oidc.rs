//! The authorization code flow: requests, accepted answers and refused ones.

use std::time::Duration;

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use narthex_login::oidc::{
    Admission, Callback, Claim, Client, Identity, Keys, Metadata, OidcError,
};
use narthex_model::{ErrorKind, Secret};
use narthex_testkit::{addresses::INSIDE, authorization::Signer};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use url::form_urlencoded;

use crate::provider::{
    Begun, CLIENT, ISSUER, REDIRECT, client, keys, metadata, now, published, signed, signed_as,
};

fn identify(begun: &Begun, token: &Secret, keys: &Keys) -> Result<Identity, OidcError> {
    begun.attempt.identify(token, keys, now())
}

/// The form of a token request, by name.
fn field(form: &Secret, name: &str) -> Option<String> {
    let mut all = form_urlencoded::parse(form.expose().as_bytes());
    all.find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
}

#[test]
fn a_sign_in_asks_with_state_nonce_and_pkce_and_redeems_the_code() {
    let (begun, other) = (Begun::new(), Begun::new());
    assert!(begun.url.as_str().starts_with("https://id.example/tenant/auth?tenant=1&"));
    assert_eq!(begun.sent("response_type"), "code");
    assert_eq!(begun.sent("client_id"), CLIENT);
    assert_eq!(begun.sent("redirect_uri"), REDIRECT);
    assert_eq!(begun.sent("scope"), "openid email profile");
    assert_eq!(begun.sent("code_challenge_method"), "S256");
    for name in ["state", "nonce", "code_challenge"] {
        assert_ne!(begun.sent(name), other.sent(name), "{name}");
    }
    assert!(!format!("{:?}", begun.attempt).contains(&begun.sent("state")));

    let callback = begun.callback("&code=c%2B1&iss=https://id.example/tenant&session_state=x");
    let request = begun.attempt.redeem(&callback).unwrap();
    assert_eq!(request.url.as_str(), "https://tokens.example/token");
    let basic = request.authorization.unwrap();
    assert_eq!(basic.expose(), "Basic bmFydGhleDpzJTI2Y3JldA==");
    assert_eq!(field(&request.form, "code").as_deref(), Some("c+1"));
    assert_eq!(field(&request.form, "redirect_uri").as_deref(), Some(REDIRECT));
    assert_eq!(field(&request.form, "client_secret"), None);
    let verifier = field(&request.form, "code_verifier").unwrap();
    let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(verifier));
    assert_eq!(challenge, begun.sent("code_challenge"));
}

/// C31: only a client that keeps identities asks for a refresh token, and takes one.
#[test]
fn oauth_c31_a_refresh_token_is_taken_only_where_the_identity_is_kept() {
    let answer = br#"{"id_token":"i","refresh_token":"s3cret-r","access_token":"a"}"#;
    let plain = Begun::new();
    assert_eq!(plain.attempt.refresh_token(answer), None);
    let kept = Begun::of(client().keeping_identity(true), &metadata());
    assert_eq!(kept.sent("scope"), "openid email profile offline_access");
    assert_eq!(kept.attempt.refresh_token(answer).unwrap().expose(), "s3cret-r");
    assert_eq!(kept.attempt.refresh_token(br#"{"id_token":"i"}"#), None);
    assert_eq!(kept.attempt.token_endpoint().as_str(), "https://tokens.example/token");
    assert_eq!(kept.attempt.auth_methods(), None);
}

#[test]
fn a_provider_may_require_the_client_secret_in_the_body() {
    let mut document = metadata();
    document["token_endpoint_auth_methods_supported"] = json!(["client_secret_post"]);
    document["authorization_response_iss_parameter_supported"] = json!(false);
    let begun = Begun::with(&document);
    let request = begun.attempt.redeem(&begun.callback("&code=c")).unwrap();
    assert!(request.authorization.is_none());
    assert_eq!(field(&request.form, "client_id").as_deref(), Some(CLIENT));
    assert_eq!(field(&request.form, "client_secret").as_deref(), Some("s&cret"));
}

/// S20: an answer of another provider, or to another sign-in, is not taken.
#[test]
fn s20_answers_are_not_mixed_up() {
    let (begun, other) = (Begun::new(), Begun::new());
    let redeem = |callback: &Callback| begun.attempt.redeem(callback).unwrap_err();
    let wrong = [
        redeem(&other.callback("&code=c&iss=https://id.example/tenant")),
        redeem(&begun.callback("&code=c&iss=https://evil.example")),
        redeem(&begun.callback("&code=c&iss=https://id.example/tenant/")),
        redeem(&begun.callback("&code=c")),
        redeem(&begun.callback("&iss=https://id.example/tenant")),
        redeem(&Callback::read("code=c&iss=https://id.example/tenant").unwrap()),
    ];
    for error in wrong {
        assert!(matches!(error, OidcError::WrongAnswer(_)), "{error:?}");
        assert_eq!(error.kind(), ErrorKind::Unauthenticated);
    }
    for twice in ["state=a&state=b", "code=a&code=a", "iss=a&iss=b", "error=a&error=b"] {
        assert!(matches!(Callback::read(twice), Err(OidcError::WrongAnswer(_))), "{twice}");
    }
    let mut foreign = metadata();
    foreign["issuer"] = json!("https://evil.example");
    let read = Metadata::read(&client(), foreign.to_string().as_bytes());
    assert!(matches!(read, Err(OidcError::BadMetadata(_))));
}

#[test]
fn a_refusal_is_reported_without_the_text_of_the_provider() {
    let begun = Begun::new();
    let told = |rest: &str| {
        let rest = format!("&iss=https://id.example/tenant&{rest}");
        begun.attempt.redeem(&begun.callback(&rest)).unwrap_err().to_string()
    };
    let refusal = told("error=access_denied&error_description=<script>");
    assert_eq!(refusal, "the provider did not sign you in (access_denied)");
    assert_eq!(told("error=<b>x</b>"), "the provider did not sign you in (unknown error)");
}

#[test]
fn a_valid_token_identifies_the_person() {
    for signer in [Signer::new("k1"), Signer::ed25519("k1")] {
        let begun = Begun::new();
        let answer = json!({ "id_token": signed(&signer, &begun.claims()).expose() });
        let token = begun.attempt.id_token(answer.to_string().as_bytes()).unwrap();
        let identity = identify(&begun, &token, &published(&signer)).unwrap();
        assert_eq!((identity.issuer.as_str(), identity.subject.as_str()), (ISSUER, "248289761001"));
        assert_eq!(identity.verified_email(), Some("ada@Corp.Example"));
        assert_eq!(identity.name(), "Ada");
    }
}

#[test]
fn a_token_of_wrong_claims_is_refused() {
    let signer = Signer::new("k1");
    let begun = Begun::new();
    let table = [
        ("iss", json!("https://evil.example"), "it has another issuer"),
        ("iss", json!("https://id.example/tenant/"), "it has another issuer"),
        ("aud", json!("stranger"), "it is for another client"),
        ("aud", json!([]), "it is for another client"),
        ("aud", json!(["narthex", "stranger"]), "it was issued to another client"),
        ("azp", json!("stranger"), "it was issued to another client"),
        ("nonce", json!("another"), "it belongs to another sign-in"),
        ("nonce", Value::Null, "it belongs to another sign-in"),
        ("exp", json!(1_999_999_940), "it has expired"),
        ("exp", Value::Null, ""),
        ("exp", json!("2100-01-01"), ""),
        ("iat", json!(2_000_000_061), "its time is in the future"),
        ("nbf", json!(2_000_000_061), "its time is in the future"),
        ("sub", json!(""), "its subject is empty or too long"),
        ("sub", json!("x".repeat(256)), "its subject is empty or too long"),
        ("sub", Value::Null, ""),
    ];
    for (claim, value, why) in table {
        let mut claims = begun.claims();
        claims[claim] = value.clone();
        let error = identify(&begun, &signed(&signer, &claims), &published(&signer)).unwrap_err();
        assert!(error.to_string().contains(why), "{claim} {value}: {error}");
        assert_eq!(error.kind(), ErrorKind::Unauthenticated);
    }
    let mut claims = begun.claims();
    claims["aud"] = json!(["narthex", "stranger"]);
    claims["azp"] = json!("narthex");
    claims["exp"] = json!(1_999_999_941);
    claims["iat"] = json!(2_000_000_060);
    identify(&begun, &signed(&signer, &claims), &published(&signer)).unwrap();
}

#[test]
fn a_token_expires() {
    let (signer, begun) = (Signer::new("k1"), Begun::new());
    let token = signed(&signer, &begun.claims());
    let at = |seconds| {
        let time = now() + Duration::from_secs(seconds);
        begun.attempt.identify(&token, &published(&signer), time)
    };
    assert!(at(359).is_ok());
    assert!(matches!(at(360), Err(OidcError::BadToken("it has expired"))));
}

#[test]
fn only_the_provider_s_key_signs() {
    let (signer, other, begun) = (Signer::new("k1"), Signer::new("k1"), Begun::new());
    let claims = begun.claims();
    let forged = identify(&begun, &signed(&other, &claims), &published(&signer)).unwrap_err();
    assert!(matches!(forged, OidcError::BadToken("its signature is wrong")), "{forged:?}");
    let unknown = signed_as(&signer, &json!({"alg": "ES256", "kid": "k2"}), &claims);
    let unknown = identify(&begun, &unknown, &published(&signer)).unwrap_err();
    assert!(matches!(unknown, OidcError::UnknownKey), "{unknown:?}");
    // Choosing one of two keys would be a guess.
    let unnamed = signed_as(&signer, &json!({"alg": "ES256"}), &claims);
    identify(&begun, &unnamed, &published(&signer)).unwrap();
    let mut second = other.jwk();
    second["kid"] = json!("k2");
    let two = keys(&[signer.jwk(), second]);
    let guessed = identify(&begun, &unnamed, &two).unwrap_err();
    assert!(
        matches!(guessed, OidcError::BadToken("several keys could have signed it")),
        "{guessed:?}"
    );
    identify(&begun, &signed(&signer, &claims), &two).unwrap();
    let mut for_encryption = signer.jwk();
    for_encryption["use"] = json!("enc");
    let wrong_use = identify(&begun, &signed(&signer, &claims), &keys(&[for_encryption]));
    assert!(matches!(wrong_use, Err(OidcError::UnknownKey)));
}

/// Tokens without a signature, or that were signed with public data.
#[test]
fn tokens_without_a_public_key_are_refused() {
    let (signer, begun) = (Signer::new("k1"), Begun::new());
    let claims = begun.claims();
    let (no_token, forbidden, no_key) = (
        "the provider's ID token is refused: it is not a signed token",
        "the provider's ID token is refused: it is signed by an algorithm that is not allowed",
        "the provider's ID token is signed with a key that the provider does not publish",
    );
    for (algorithm, reason) in [
        ("none", forbidden),
        ("None", forbidden),
        ("HS256", forbidden),
        ("HS512", forbidden),
        ("RS256", no_key),
        ("ES384", no_key),
        ("EdDSA", no_key),
        ("ES512", forbidden),
    ] {
        let header = json!({"alg": algorithm, "kid": "k1"});
        let token = signed_as(&signer, &header, &claims);
        let error = identify(&begun, &token, &published(&signer)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unauthenticated, "{algorithm}: {error:?}");
        assert_eq!(error.to_string(), reason, "{algorithm}");
    }
    let good = signed(&signer, &claims);
    let unsigned = good.expose().rsplit_once('.').unwrap().0.to_owned();
    let wrong = "the provider's ID token is refused: its signature is wrong";
    for (text, reason) in [
        ("", no_token),
        (".", no_token),
        ("..", no_token),
        ("a.b.c", no_token),
        (&unsigned, no_token),
        (&format!("{unsigned}."), wrong),
    ] {
        let error = identify(&begun, &Secret::new(text), &published(&signer)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unauthenticated, "{text}: {error:?}");
        assert_eq!(error.to_string(), reason, "{text}");
    }
    // A key in the token's own header is not the provider's.
    let other = Signer::new("k1");
    let header = json!({"alg": "ES256", "jwk": other.jwk()});
    let own_key =
        identify(&begun, &signed_as(&other, &header, &claims), &published(&signer)).unwrap_err();
    assert!(matches!(own_key, OidcError::BadToken("its signature is wrong")), "{own_key:?}");
}

/// S9: a provider names public addresses, or its own host.
#[test]
fn s9_a_provider_with_internal_addresses_is_refused() {
    for name in ["authorization_endpoint", "token_endpoint", "jwks_uri"] {
        for address in [
            "http://tokens.example/token",
            "https://127.0.0.1/token",
            "https://[::1]/token",
            "https://169.254.169.254/latest",
            "https://localhost/token",
            "https://x.localhost/token",
            "https://intranet/token",
            "https://user@tokens.example/",
            "https://tokens.example/#x",
            "file:///etc/passwd",
            "token",
        ]
        .into_iter()
        .chain(INSIDE)
        {
            let mut document = metadata();
            document[name] = json!(address);
            let read = Metadata::read(&client(), document.to_string().as_bytes());
            assert!(matches!(read, Err(OidcError::BadMetadata(_))), "{name} {address}");
        }
    }
    let inside = Client::new("http://127.0.0.1:9000", "c", None).unwrap();
    let document = metadata().to_string().replace(ISSUER, "http://127.0.0.1:9000");
    let document = document.replace("https://tokens.example", "http://127.0.0.1:9001");
    Metadata::read(&inside, document.as_bytes()).unwrap();
}

#[test]
fn issuers_are_addresses_that_can_be_trusted() {
    for good in ["https://id.example", "https://id.example/a/b", "http://127.0.0.1:1/", ISSUER] {
        Client::new(good, "c", None).unwrap();
    }
    let wrong =
        ["", "id.example", "http://id.example", "https://id.example?x", "https://a@b.example"];
    for wrong in wrong {
        assert!(matches!(Client::new(wrong, "c", None), Err(OidcError::BadIssuer)), "{wrong}");
    }
    let url = |issuer| Client::new(issuer, "c", None).unwrap().metadata_url().to_string();
    let path = ".well-known/openid-configuration";
    assert_eq!(url("https://id.example"), format!("https://id.example/{path}"));
    assert_eq!(url("https://id.example/a/"), format!("https://id.example/a/{path}"));
}

/// By default no person is admitted.
#[test]
fn a_person_is_admitted_by_email_domain_or_claim() {
    let (signer, begun) = (Signer::new("k1"), Begun::new());
    let identity = |change: &dyn Fn(&mut Value)| {
        let mut claims = begun.claims();
        change(&mut claims);
        identify(&begun, &signed(&signer, &claims), &published(&signer)).unwrap()
    };
    let ada = identity(&|_claims| {});
    assert!(!Admission::default().admits(&ada));
    let domain =
        |domain: &str| Admission { email_domains: vec![domain.to_owned()], ..Admission::default() };
    assert!(domain("corp.example").admits(&ada));
    assert!(!domain("example").admits(&ada) && !domain("evilcorp.example").admits(&ada));
    for unverified in [json!(false), json!("true"), Value::Null] {
        let claims = |claims: &mut Value| claims["email_verified"] = unverified.clone();
        assert!(!domain("corp.example").admits(&identity(&claims)), "{unverified}");
    }
    let claim = |name: &str, value: &str| Admission {
        claims: vec![Claim { name: name.to_owned(), value: value.to_owned() }],
        ..Admission::default()
    };
    assert!(claim("groups", "platform").admits(&ada) && claim("name", "Ada").admits(&ada));
    assert!(!claim("groups", "plat").admits(&ada) && !claim("roles", "platform").admits(&ada));
}
