//! Tokens of a foreign issuer: good ones, and each way in which one can be bad.

use narthex_testkit::authorization::Signer;
use serde_json::{Value, json};

use super::super::{
    door::Door,
    signer::{NOW, key_set, now, published, signed, with},
};
use super::*;
use crate::jwt::UnknownAlgorithm;

const ISSUER: &str = "https://id.example/tenant";

fn resource() -> Resource {
    Door::new("https://narthex.example").unwrap().aggregated()
}

fn issuer() -> TrustedIssuer {
    TrustedIssuer { issuer: ISSUER.to_owned(), algorithms: Algorithms::default() }
}

fn claims() -> Value {
    json!({
        "iss": ISSUER,
        "sub": "u1",
        "aud": ["https://other.example", resource().as_str()],
        "exp": NOW + 300,
        "iat": NOW,
        "client_id": "desk",
        "scope": "mcp",
    })
}

fn check(signer: &Signer, typ: &str, claims: &Value) -> Result<ForeignAccess, JwtFault> {
    issuer().check(signed(signer, typ, claims), &published(signer), &resource(), now())
}

#[test]
fn door_r5_a_good_token_names_its_subject() {
    for signer in [Signer::new("k1"), Signer::ed25519("k1")] {
        for typ in ["at+jwt", "application/AT+JWT", "JWT"] {
            let access = check(&signer, typ, &claims()).unwrap();
            assert_eq!((&*access.subject, access.client_id.as_deref()), ("u1", Some("desk")));
            assert_eq!(access.scopes, Scopes::read("mcp").unwrap());
        }
    }
    let signer = Signer::new("k1");
    let untyped = signer.sign_as(&json!({"alg": "ES256"}), &claims());
    let untyped = Jwt::parse(&untyped).unwrap();
    assert!(issuer().check(untyped, &published(&signer), &resource(), now()).is_ok());
    let list = with(&with(&claims(), "scope", Value::Null), "scp", json!(["a", "b"]));
    assert_eq!(check(&signer, "JWT", &list).unwrap().scopes.to_string(), "a b");
}

#[test]
fn door_r5_a_token_with_a_wrong_claim_is_refused() {
    let signer = Signer::ed25519("k1");
    let table = [
        ("iss", json!("https://id.example/tenant/"), JwtFault::WrongIssuer),
        ("iss", Value::Null, JwtFault::WrongIssuer),
        ("aud", json!("https://narthex.example"), JwtFault::WrongAudience),
        ("aud", json!("https://narthex.example/mcp/"), JwtFault::WrongAudience),
        ("aud", Value::Null, JwtFault::WrongAudience),
        ("aud", json!([1]), JwtFault::BadClaim("aud")),
        ("exp", json!(NOW - 60), JwtFault::Expired),
        ("exp", Value::Null, JwtFault::BadClaim("exp")),
        ("exp", json!("later"), JwtFault::BadClaim("exp")),
        ("nbf", json!(NOW + 61), JwtFault::TooEarly),
        ("iat", json!(NOW + 61), JwtFault::TooEarly),
        ("sub", Value::Null, JwtFault::BadClaim("sub")),
        ("sub", json!(""), JwtFault::BadClaim("sub")),
        ("sub", json!("s".repeat(256)), JwtFault::BadClaim("sub")),
        ("scope", json!("a\"b"), JwtFault::BadClaim("scope")),
    ];
    for (name, value, error) in table {
        let claims = with(&claims(), name, value.clone());
        assert_eq!(check(&signer, "at+jwt", &claims), Err(error), "{name}: {value}");
    }
}

#[test]
fn door_r5_times_have_a_leeway_of_a_minute() {
    let signer = Signer::ed25519("k1");
    let claims = with(&with(&claims(), "exp", json!(NOW - 59)), "nbf", json!(NOW + 60));
    assert!(check(&signer, "at+jwt", &claims).is_ok());
}

#[test]
fn door_r5_other_tokens_of_the_issuer_are_no_access_tokens() {
    let signer = Signer::new("k1");
    for typ in ["oauth-id-jag+jwt", "dpop+jwt", "logout+jwt", ""] {
        assert_eq!(check(&signer, typ, &claims()), Err(JwtFault::WrongType), "{typ}");
    }
}

#[test]
fn door_r5_a_signature_is_by_an_allowed_algorithm_and_a_published_key() {
    let (signer, other) = (Signer::new("k1"), Signer::new("k1"));
    let check = |text: &str, keys: &Keys| {
        issuer().check(Jwt::parse(text).unwrap(), keys, &resource(), now()).unwrap_err()
    };
    let text = |header: Value| signer.sign_as(&header, &claims());
    let good = text(json!({"alg": "ES256", "kid": "k1"}));
    assert_eq!(check(&good, &published(&other)), JwtFault::BadSignature);
    let unknown = JwtFault::UnknownKey;
    assert_eq!(check(&good, &key_set(&[])), unknown);
    assert_eq!(check(&good, &key_set(&[renamed(&signer)])), unknown);
    assert_eq!(check(&text(json!({"alg": "RS256", "kid": "k1"})), &published(&signer)), unknown);
    for alg in ["none", "HS256", "ES512", "es256", ""] {
        let forbidden = check(&text(json!({"alg": alg, "kid": "k1"})), &published(&signer));
        assert_eq!(forbidden, JwtFault::ForbiddenAlgorithm, "{alg}");
    }
    let two = key_set(&[signer.jwk(), renamed(&other)]);
    assert_eq!(check(&text(json!({"alg": "ES256"})), &two), JwtFault::AmbiguousKey);
    let narrow = Algorithms::named(["EdDSA"]).unwrap();
    let narrow = TrustedIssuer { issuer: ISSUER.to_owned(), algorithms: narrow };
    let found = narrow.check(Jwt::parse(&good).unwrap(), &published(&signer), &resource(), now());
    assert_eq!(found, Err(JwtFault::ForbiddenAlgorithm));
    assert_eq!(Algorithms::named(["HS256"]), Err(UnknownAlgorithm));
}

#[test]
fn door_r5_a_changed_token_is_refused() {
    let signer = Signer::ed25519("k1");
    let text = signer.sign_as(&json!({"alg": "EdDSA", "kid": "k1"}), &claims());
    let forged = signer.sign_as(&json!({"alg": "EdDSA"}), &with(&claims(), "sub", json!("u2")));
    let parts = |text: &str| text.split('.').map(str::to_owned).collect::<Vec<_>>();
    let (good, forged) = (parts(&text), parts(&forged));
    let mixed = format!("{}.{}.{}", good[0], forged[1], good[2]);
    let mixed = Jwt::parse(&mixed).unwrap();
    let printed = format!("{mixed:?}");
    assert!(!printed.contains(&good[2]) && !printed.contains("u1") && !printed.contains("u2"));
    let found = issuer().check(mixed, &published(&signer), &resource(), now());
    assert_eq!(found, Err(JwtFault::BadSignature));
    let critical = signer.sign_as(&json!({"alg": "EdDSA", "crit": ["b64"]}), &claims());
    assert_eq!(Jwt::parse(&text).unwrap().kid(), Some("k1"));
    let of_length = |length: usize| {
        let rest = length - with_padding(&signer, 0).len();
        (with_padding(&signer, rest / 4 * 3), with_padding(&signer, rest / 4 * 3 + 3))
    };
    let (fits, long) = of_length(64 * 1024);
    assert!(fits.len() <= 64 * 1024 && Jwt::parse(&fits).is_ok());
    assert!(long.len() > 64 * 1024);
    for bad in ["", "a.b", "a.b.c", &good[..2].join("."), &format!("{text}.a"), &critical, &long] {
        assert_eq!(Jwt::parse(bad).unwrap_err(), JwtFault::Malformed, "{bad}");
    }
}

/// The public key under another name.
fn renamed(signer: &Signer) -> Value {
    with(&signer.jwk(), "kid", json!("k2"))
}

/// A token that is longer by this number of bytes in its claims.
fn with_padding(signer: &Signer, bytes: usize) -> String {
    let claims = with(&claims(), "padding", json!("x".repeat(bytes)));
    signer.sign_as(&json!({"alg": "EdDSA", "kid": "k1"}), &claims)
}
