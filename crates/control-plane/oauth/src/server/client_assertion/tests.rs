//! Proofs of clients with keys: good ones, and each way in which one can be bad.

use narthex_model::Secret;
use narthex_testkit::authorization::Signer;
use serde_json::{Value, json};

use super::*;
use crate::{
    client::{ClientIdentity, Form},
    jwt::SigningKey,
    server::{
        client::ClientProof,
        client_keys::ClientKeys,
        params::Params,
        sample::{CLIENT, door, public_client},
        signer::{NOW, now, with},
    },
    urns::JWT_BEARER_ASSERTION,
};

fn client(keys: &Value) -> Client {
    let keys = ClientKeys::read(Some(&json!({ "keys": [keys] })), None).unwrap();
    Client { proof: ClientProof::Keys(keys), ..public_client() }
}

fn keys_of(client: &Client) -> Keys {
    let ClientProof::Keys(keys) = &client.proof else { panic!("a client with keys") };
    keys.set().unwrap()
}

fn claims() -> Value {
    json!({
        "iss": CLIENT,
        "sub": CLIENT,
        "aud": door().issuer(),
        "jti": "j1",
        "iat": NOW,
        "exp": NOW + 60,
    })
}

fn form(assertion: &str) -> String {
    format!("client_assertion_type={JWT_BEARER_ASSERTION}&client_assertion={assertion}")
}

fn read(form: &str) -> Result<Credentials, OAuthError> {
    Credentials::read(None, &Params::parse(form.as_bytes()).unwrap())
}

#[test]
fn door_a8_the_client_side_of_narthex_proves_itself_here() {
    let pem = Secret::new(include_str!("../../jwt/test-key.pem"));
    let key = SigningKey::from_pem(&pem, Some("k1".to_owned())).unwrap();
    let client = client(&key.public_jwk());
    let mut form = Form::default();
    let identity = ClientIdentity::with_key(CLIENT, key.into());
    assert!(identity.prove(&mut form, door().issuer(), NOW).unwrap().is_none());
    let sent = form.finish();
    let credentials = read(sent.expose()).unwrap();
    assert_eq!(credentials.client_id(), &client.id);
    let refused = credentials.prove(Some(&client)).unwrap_err();
    assert_eq!(refused.code, ErrorCode::InvalidClient, "the assertion is not checked yet");
    let checked = credentials.check_assertion(&client, &keys_of(&client), &door(), now()).unwrap();
    assert!(checked.forget_jti_at > StoredTime::of(now()));
    assert_eq!(checked.clone().prove(JtiUse::First), Ok(&client));
    assert_eq!(checked.prove(JtiUse::Again).unwrap_err().code, ErrorCode::InvalidClient);
    assert!(!format!("{credentials:?}").contains("eyJ"), "no assertion is printed");
}

#[test]
fn door_a8_a_wrong_assertion_proves_nothing() {
    let signer = Signer::ed25519("k1");
    let client = client(&signer.jwk());
    let header = json!({"alg": "EdDSA", "kid": "k1"});
    let check = |header: &Value, claims: &Value| {
        let credentials =
            read(&format!("client_id={CLIENT}&{}", form(&signer.sign_as(header, claims))));
        let found = credentials.map_err(|error| error.code)?;
        let checked = found.check_assertion(&client, &keys_of(&client), &door(), now());
        Ok(checked.map(|checked| checked.jti).map_err(|ProofFault(fault)| fault))
    };
    assert_eq!(check(&header, &claims()), Ok(Ok("j1".to_owned())));
    assert!(check(&header, &with(&claims(), "exp", json!(NOW + 3600))).unwrap().is_ok());
    let token = format!("{}/token", door().issuer());
    let table = [
        ("sub", json!("dcr-other"), JwtFault::WrongClient),
        ("sub", Value::Null, JwtFault::BadClaim("sub")),
        ("iss", Value::Null, JwtFault::WrongIssuer),
        ("aud", json!(token), JwtFault::WrongAudience),
        ("aud", json!([door().issuer(), token]), JwtFault::WrongAudience),
        ("aud", Value::Null, JwtFault::WrongAudience),
        ("jti", Value::Null, JwtFault::BadClaim("jti")),
        ("jti", json!("j".repeat(256)), JwtFault::BadClaim("jti")),
        ("exp", json!(NOW - 60), JwtFault::Expired),
        ("exp", json!(NOW + 3661), JwtFault::TooLong),
        ("exp", Value::Null, JwtFault::BadClaim("exp")),
        ("nbf", json!(NOW + 61), JwtFault::TooEarly),
    ];
    for (name, value, fault) in table {
        let found = check(&header, &with(&claims(), name, value.clone()));
        assert_eq!(found, Ok(Err(fault)), "{name}: {value}");
        assert_eq!(OAuthError::from(ProofFault(fault)).answer().status, 401);
    }
    let other = with(&claims(), "iss", json!("dcr-other"));
    assert_eq!(check(&header, &other), Err(ErrorCode::InvalidClient), "two clients");
    let typed = json!({"alg": "EdDSA", "kid": "k1", "typ": "oauth-id-jag+jwt"});
    assert_eq!(check(&typed, &claims()), Ok(Err(JwtFault::WrongType)));
    let typed = json!({"alg": "EdDSA", "kid": "k1", "typ": "client-authentication+jwt"});
    assert!(check(&typed, &claims()).unwrap().is_ok());
    let none = json!({"alg": "none", "kid": "k1"});
    assert_eq!(check(&none, &claims()), Ok(Err(JwtFault::ForbiddenAlgorithm)));
}

#[test]
fn door_a8_an_assertion_is_signed_by_the_client_that_it_names() {
    let (signer, thief) = (Signer::ed25519("k1"), Signer::ed25519("k1"));
    let client = client(&signer.jwk());
    let text = thief.sign_as(&json!({"alg": "EdDSA", "kid": "k1"}), &claims());
    let credentials = read(&form(&text)).unwrap();
    let found = credentials.check_assertion(&client, &keys_of(&client), &door(), now());
    assert_eq!(found, Err(ProofFault(JwtFault::BadSignature)));
    let stranger = Client { id: super::super::ClientId::parse("dcr-other").unwrap(), ..client };
    let found = credentials.check_assertion(&stranger, &keys_of(&stranger), &door(), now());
    assert_eq!(found, Err(ProofFault(JwtFault::WrongClient)));
}

#[test]
fn door_a8_the_form_of_an_assertion_is_known_and_the_only_proof() {
    let text = Signer::ed25519("k1").sign_as(&json!({"alg": "EdDSA"}), &claims());
    let good = form(&text);
    assert!(read(&good).is_ok());
    for (form, code) in [
        (good.replace(JWT_BEARER_ASSERTION, "urn:x"), ErrorCode::InvalidClient),
        (format!("client_id={CLIENT}&client_assertion={text}"), ErrorCode::InvalidClient),
        (form("a.b.c"), ErrorCode::InvalidClient),
        (format!("{good}&client_secret=nxp_1"), ErrorCode::InvalidRequest),
        (format!("{good}&client_id=dcr-other"), ErrorCode::InvalidClient),
    ] {
        assert_eq!(read(&form).unwrap_err().code, code, "{form}");
    }
}
