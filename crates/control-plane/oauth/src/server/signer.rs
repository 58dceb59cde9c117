//! A foreign issuer for tests: the set of its keys, and the tokens that it signs.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use narthex_testkit::authorization::Signer;
use serde_json::{Value, json};

use crate::jwt::{Jwt, Keys};

/// The time in all these tests.
pub(super) const NOW: u64 = 2_000_000_000;

pub(super) fn now() -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(NOW)
}

/// The published keys of an issuer that has this one.
pub(super) fn published(signer: &Signer) -> Keys {
    key_set(&[signer.jwk()])
}

/// A token of these claims and this type.
pub(super) fn signed(signer: &Signer, typ: &str, claims: &Value) -> Jwt {
    Jwt::parse(&signer.sign(typ, claims)).unwrap()
}

pub(super) fn key_set(keys: &[Value]) -> Keys {
    Keys::read(json!({ "keys": keys }).to_string().as_bytes()).unwrap()
}

/// The claims with one replaced, or removed by `null`.
pub(super) fn with(claims: &Value, name: &str, value: Value) -> Value {
    let mut claims = claims.clone();
    match value {
        Value::Null => drop(claims.as_object_mut().unwrap().remove(name)),
        value => claims[name] = value,
    }
    claims
}
