//! A foreign issuer for tests: its key, and the tokens that it signs.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use ring::{
    rand::SystemRandom,
    signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair},
};
use serde_json::{Value, json};

use crate::jwt::{Jwt, Keys};

/// The time in all these tests.
pub(super) const NOW: u64 = 2_000_000_000;

pub(super) fn now() -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(NOW)
}

/// An issuer's key.
pub(super) enum Signer {
    Es256(EcdsaKeyPair),
    Ed25519(Ed25519KeyPair),
}

impl Signer {
    pub(super) fn es256() -> Self {
        let (method, random) = (&ECDSA_P256_SHA256_FIXED_SIGNING, SystemRandom::new());
        let made = EcdsaKeyPair::generate_pkcs8(method, &random).unwrap();
        Self::Es256(EcdsaKeyPair::from_pkcs8(method, made.as_ref(), &random).unwrap())
    }

    pub(super) fn ed25519() -> Self {
        let made = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
        Self::Ed25519(Ed25519KeyPair::from_pkcs8(made.as_ref()).unwrap())
    }

    fn algorithm(&self) -> &'static str {
        match self {
            Self::Es256(_) => "ES256",
            Self::Ed25519(_) => "EdDSA",
        }
    }

    pub(super) fn jwk(&self, kid: &str) -> Value {
        let encode = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        match self {
            Self::Es256(key) => {
                let (x, y) = key.public_key().as_ref()[1..].split_at(32);
                let (x, y) = (encode(x), encode(y));
                json!({"kty": "EC", "crv": "P-256", "x": x, "y": y, "kid": kid, "use": "sig"})
            }
            Self::Ed25519(key) => {
                let x = encode(key.public_key().as_ref());
                json!({"kty": "OKP", "crv": "Ed25519", "x": x, "kid": kid, "alg": "EdDSA"})
            }
        }
    }

    /// The key as a set, under the id `k1`.
    pub(super) fn keys(&self) -> Keys {
        key_set(&[self.jwk("k1")])
    }

    /// A token of these claims and this type.
    pub(super) fn sign(&self, typ: &str, claims: &Value) -> Jwt {
        let header = json!({"alg": self.algorithm(), "kid": "k1", "typ": typ});
        Jwt::parse(&self.sign_as(&header, claims)).unwrap()
    }

    /// The text of a token with any header.
    pub(super) fn sign_as(&self, header: &Value, claims: &Value) -> String {
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let signed = format!("{}.{}", part(header), part(claims));
        let signature = match self {
            Self::Es256(key) => {
                let made = key.sign(&SystemRandom::new(), signed.as_bytes()).unwrap();
                URL_SAFE_NO_PAD.encode(made)
            }
            Self::Ed25519(key) => URL_SAFE_NO_PAD.encode(key.sign(signed.as_bytes())),
        };
        format!("{signed}.{signature}")
    }
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
