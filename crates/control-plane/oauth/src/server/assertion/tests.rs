//! Assertions that give access, and each reason why one gives none.

use narthex_model::Secret;
use narthex_testkit::authorization::Signer;
use serde_json::{Value, json};

use super::*;
use crate::{
    jwt::Algorithms,
    server::{
        door::DoorPath,
        outcome::ASSERTION_USED,
        sample::{CLIENT, confidential_client, door, public_client, user},
        signer::{NOW, now, published, signed, with},
    },
};

const ISSUER: &str = "https://id.example";

fn claims() -> Value {
    json!({
        "iss": ISSUER,
        "sub": "u1",
        "aud": door().issuer(),
        "client_id": CLIENT,
        "resource": door().aggregated(),
        "jti": "j1",
        "exp": NOW + 300,
        "iat": NOW,
        "scope": "mcp other",
    })
}

fn check_as(
    typ: &str,
    claims: &Value,
    resource: Option<&Resource>,
) -> Result<CheckedAssertion, JwtFault> {
    let signer = Signer::ed25519("k1");
    let issuer = TrustedIssuer { issuer: ISSUER.to_owned(), algorithms: Algorithms::default() };
    let keys = published(&signer);
    let by = AssertionIssuer { issuer: &issuer, keys: &keys };
    let (client, _) = confidential_client();
    check_assertion(signed(&signer, typ, claims), by, &client, &door(), resource, now())
}

fn check(claims: &Value) -> Result<CheckedAssertion, JwtFault> {
    check_as("oauth-id-jag+jwt", claims, None)
}

fn redeem(asked: Option<&str>, way: AssertionWay) -> Outcome {
    let (client, _) = confidential_client();
    let asserted = Account { user: user(1), workspace: "default".to_owned(), agent: None };
    let supported = Scopes::read("mcp mcp.write").unwrap();
    let request = AssertionRequest {
        assertion: Secret::new("a.b.c"),
        way,
        scopes: asked.map(|scopes| Scopes::read(scopes).unwrap()),
        resource: None,
    };
    let rules = IssueRules { client: &client, scopes: &supported };
    check(&claims()).unwrap().redeem(&request, rules, asserted, now())
}

fn body(outcome: &Outcome) -> Value {
    serde_json::from_str(outcome.answer().body.unwrap().expose()).unwrap()
}

#[test]
fn door_a11_a_good_assertion_names_person_and_id() {
    let found = check(&claims()).unwrap();
    assert_eq!((&*found.issuer, &*found.subject, &*found.jti), (ISSUER, "u1", "j1"));
    assert_eq!(found.resource, door().aggregated());
    let last = Duration::from_hours(1) + LEEWAY + LEEWAY;
    assert!(found.forget_jti_at > StoredTime::of(now() + last));
    assert!(check_as("application/OAuth-ID-JAG+jwt", &claims(), None).is_ok());
    assert!(check(&with(&claims(), "jti", json!("j".repeat(255)))).is_ok());
    assert!(check(&with(&claims(), "exp", json!(NOW + 3600))).is_ok(), "an hour");
}

#[test]
fn door_a11_a_wrong_assertion_is_refused() {
    let table = [
        ("iss", json!("https://id.example/"), JwtFault::WrongIssuer),
        ("aud", json!("https://narthex.example/"), JwtFault::WrongAudience),
        ("aud", json!([door().issuer(), "https://evil.example"]), JwtFault::WrongAudience),
        ("aud", Value::Null, JwtFault::WrongAudience),
        ("client_id", json!("dcr-other"), JwtFault::WrongClient),
        ("client_id", Value::Null, JwtFault::BadClaim("client_id")),
        ("resource", json!("https://evil.example/mcp"), JwtFault::WrongResource),
        (
            "resource",
            json!(["https://evil.example/mcp", door().aggregated()]),
            JwtFault::WrongResource,
        ),
        ("resource", Value::Null, JwtFault::WrongResource),
        ("jti", Value::Null, JwtFault::BadClaim("jti")),
        ("jti", json!(""), JwtFault::BadClaim("jti")),
        ("jti", json!("j".repeat(256)), JwtFault::BadClaim("jti")),
        ("sub", Value::Null, JwtFault::BadClaim("sub")),
        ("iat", Value::Null, JwtFault::BadClaim("iat")),
        ("exp", json!(NOW - 60), JwtFault::Expired),
        ("exp", json!(NOW + 3601), JwtFault::TooLong),
        ("nbf", json!(NOW + 61), JwtFault::TooEarly),
        ("scope", json!(7), JwtFault::BadClaim("scope")),
    ];
    for (name, value, error) in table {
        let found = check(&with(&claims(), name, value.clone()));
        assert_eq!(found, Err(error), "{name}: {value}");
        let answer = OAuthError::from(error).answer();
        assert_eq!(answer.status, 400);
    }
    for typ in ["JWT", "at+jwt", "id-jag+jwt"] {
        assert_eq!(check_as(typ, &claims(), None), Err(JwtFault::WrongType), "{typ}");
    }
}

#[test]
fn door_a11_the_named_resource_is_one_of_the_assertion() {
    let git = door().resource(&DoorPath::parse("/mcp/git").unwrap());
    let typ = "oauth-id-jag+jwt";
    assert_eq!(check_as(typ, &claims(), Some(&git)), Err(JwtFault::WrongResource));
    let two = with(&claims(), "resource", json!([door().aggregated(), git]));
    assert_eq!(check_as(typ, &two, None), Err(JwtFault::WrongResource), "which one?");
    assert_eq!(check_as(typ, &two, Some(&git)).unwrap().resource, git);
}

#[test]
fn door_a11_clients_keep_a_secret() {
    assert_eq!(admit_assertions_of(&confidential_client().0), Ok(()));
    let error = admit_assertions_of(&public_client()).unwrap_err();
    assert_eq!(error.code, ErrorCode::UnauthorizedClient);
}

#[test]
fn door_a11_an_assertion_gives_one_access_token() {
    let outcome = redeem(None, AssertionWay::JwtBearer);
    let found = body(&outcome);
    assert_eq!((found.get("refresh_token"), found.get("issued_token_type")), (None, None));
    let Outcome::Issue(issue) = outcome else { panic!("{outcome:?}") };
    assert!(issue.family.is_none() && issue.code.is_none());
    assert!(issue.access.hash.opens_for(found["access_token"].as_str().unwrap()));
    let grant = &issue.access.grant;
    assert_eq!((&grant.user, grant.scopes.to_string()), (&user(1), "mcp".to_owned()));
    // The caller stores the id together with the token, or answers with a refusal.
    let forget_at = check(&claims()).unwrap().forget_jti_at;
    let used = UsedAssertion { issuer: ISSUER.to_owned(), jti: "j1".to_owned(), forget_at };
    assert_eq!(issue.assertion, Some(used));
    assert_eq!(ASSERTION_USED.code, ErrorCode::InvalidGrant);
}

#[test]
fn door_a11_scopes_are_those_of_all() {
    assert_eq!(body(&redeem(Some("mcp"), AssertionWay::JwtBearer))["scope"], "mcp");
    let more = redeem(Some("mcp.write"), AssertionWay::JwtBearer);
    assert_eq!(body(&more)["error"], "invalid_scope", "the assertion does not have it");
    assert!(matches!(more, Outcome::Refuse(_)), "the assertion stays unused: {more:?}");
}

#[test]
fn door_a11_the_answer_to_an_exchange_names_the_type() {
    let found = body(&redeem(None, AssertionWay::TokenExchange));
    assert_eq!(found["issued_token_type"], ACCESS_TOKEN);
}
