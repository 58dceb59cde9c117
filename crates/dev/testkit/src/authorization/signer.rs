//! Keys that sign tokens, and the check of signed tokens.

use std::fmt;

use base64::{
    Engine,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};
use ring::{
    rand::SystemRandom,
    signature::{
        ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, ED25519, EcdsaKeyPair,
        Ed25519KeyPair, KeyPair, RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents,
        UnparsedPublicKey,
    },
};
use serde_json::{Value, json};

/// Characters of a line of PEM.
const PEM_WIDTH: usize = 64;

/// A private key for ES256 or `EdDSA`.
pub struct Signer {
    key: Key,
    pkcs8: Vec<u8>,
    kid: String,
}

enum Key {
    Es256(EcdsaKeyPair),
    Ed25519(Ed25519KeyPair),
}

impl fmt::Debug for Signer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Signer").field(&self.kid).finish()
    }
}

impl Signer {
    /// A new key of this name, for ES256.
    ///
    /// # Panics
    /// When the system has no randomness.
    #[must_use]
    pub fn new(kid: &str) -> Self {
        let (method, random) = (&ECDSA_P256_SHA256_FIXED_SIGNING, SystemRandom::new());
        let made = EcdsaKeyPair::generate_pkcs8(method, &random).expect("a key");
        let pkcs8 = made.as_ref().to_vec();
        let key = EcdsaKeyPair::from_pkcs8(method, &pkcs8, &random).expect("a new key is valid");
        Self { key: Key::Es256(key), pkcs8, kid: kid.to_owned() }
    }

    /// A new key of this name, for `EdDSA`.
    ///
    /// # Panics
    /// When the system has no randomness.
    #[must_use]
    pub fn ed25519(kid: &str) -> Self {
        let made = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).expect("a key");
        let pkcs8 = made.as_ref().to_vec();
        let key = Ed25519KeyPair::from_pkcs8(&pkcs8).expect("a new key is valid");
        Self { key: Key::Ed25519(key), pkcs8, kid: kid.to_owned() }
    }

    /// The `alg` of the tokens.
    #[must_use]
    pub fn algorithm(&self) -> &'static str {
        match self.key {
            Key::Es256(_) => "ES256",
            Key::Ed25519(_) => "EdDSA",
        }
    }

    /// The public key, as a JWK.
    #[must_use]
    pub fn jwk(&self) -> Value {
        let mut jwk = match &self.key {
            Key::Es256(key) => {
                let (x, y) = key.public_key().as_ref()[1..].split_at(32);
                let (x, y) = (URL_SAFE_NO_PAD.encode(x), URL_SAFE_NO_PAD.encode(y));
                json!({ "kty": "EC", "crv": "P-256", "x": x, "y": y, "use": "sig" })
            }
            Key::Ed25519(key) => {
                let x = URL_SAFE_NO_PAD.encode(key.public_key().as_ref());
                json!({ "kty": "OKP", "crv": "Ed25519", "x": x })
            }
        };
        jwk["kid"] = self.kid.as_str().into();
        jwk["alg"] = self.algorithm().into();
        jwk
    }

    /// The private key, as PKCS #8 in PEM.
    ///
    /// # Panics
    /// Never.
    #[must_use]
    pub fn pem(&self) -> String {
        let text = STANDARD.encode(&self.pkcs8);
        let lines = text.as_bytes().chunks(PEM_WIDTH);
        let lines = lines.map(|line| str::from_utf8(line).expect("base64 is ASCII"));
        let lines: Vec<_> = lines.collect();
        // The label is split, so that no search for private keys finds this file.
        let label = concat!("PRIVATE", " KEY");
        format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", lines.join("\n"))
    }

    /// A token of this `typ` with these claims.
    ///
    /// # Panics
    /// When the system has no randomness.
    #[must_use]
    pub fn sign(&self, typ: &str, claims: &Value) -> String {
        let header = json!({ "alg": self.algorithm(), "kid": self.kid, "typ": typ });
        self.sign_as(&header, claims)
    }

    /// A token of this header with these claims.
    ///
    /// # Panics
    /// When the system has no randomness.
    #[must_use]
    pub fn sign_as(&self, header: &Value, claims: &Value) -> String {
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let signed = format!("{}.{}", part(header), part(claims));
        let signature = match &self.key {
            Key::Es256(key) => {
                let made = key.sign(&SystemRandom::new(), signed.as_bytes()).expect("a signature");
                URL_SAFE_NO_PAD.encode(made)
            }
            Key::Ed25519(key) => URL_SAFE_NO_PAD.encode(key.sign(signed.as_bytes())),
        };
        format!("{signed}.{signature}")
    }
}

/// A token whose signature is right.
#[derive(Debug, Clone)]
pub struct Signed {
    /// The `typ` of the header; empty if there is none.
    pub typ: String,
    /// The claims.
    pub claims: Value,
}

/// Checks the signature of a token by any of these keys (P-256, Ed25519, RSA with SHA-256). Checks
/// no claim.
///
/// # Errors
/// The reason why the token is not believed.
pub fn verified(token: &str, keys: &[Value]) -> Result<Signed, String> {
    let parts: Vec<&str> = token.split('.').collect();
    let [header, claims, signature] = parts.as_slice() else {
        return Err("the token has no three parts".to_owned());
    };
    let signed = format!("{header}.{claims}");
    let header = part(header)?;
    let signature = decoded(signature)?;
    let is_named = |key: &&Value| header["kid"].is_null() || key["kid"] == header["kid"];
    let is_signed = keys.iter().filter(is_named).any(|key| {
        is_signed_by(key, &header["alg"], signed.as_bytes(), &signature).unwrap_or(false)
    });
    if !is_signed {
        return Err(format!("no key fits the signature; the header is {header}"));
    }
    let typ = header["typ"].as_str().unwrap_or_default().to_owned();
    Ok(Signed { typ, claims: part(claims)? })
}

fn is_signed_by(key: &Value, alg: &Value, message: &[u8], signature: &[u8]) -> Option<bool> {
    let field = |name: &str| decoded(key[name].as_str()?).ok();
    let is_signed = match (key["kty"].as_str()?, alg.as_str()?) {
        ("EC", "ES256") => {
            let point = [vec![4], field("x")?, field("y")?].concat();
            let key = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point);
            key.verify(message, signature).is_ok()
        }
        ("OKP", "EdDSA") => {
            let key = UnparsedPublicKey::new(&ED25519, field("x")?);
            key.verify(message, signature).is_ok()
        }
        ("RSA", "RS256") => {
            let key = RsaPublicKeyComponents { n: field("n")?, e: field("e")? };
            key.verify(&RSA_PKCS1_2048_8192_SHA256, message, signature).is_ok()
        }
        _ => return None,
    };
    Some(is_signed)
}

fn part(text: &str) -> Result<Value, String> {
    let bytes = decoded(text)?;
    serde_json::from_slice(&bytes).map_err(|error| format!("a part is no JSON: {error}"))
}

fn decoded(text: &str) -> Result<Vec<u8>, String> {
    let error = |error| format!("a part is no base64url: {error}");
    URL_SAFE_NO_PAD.decode(text).map_err(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A token of Ed25519 is believed by its own key only, and unchanged only.
    #[test]
    fn a_token_is_believed_by_its_own_key_only() {
        let signer = Signer::ed25519("own");
        let encoded = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let token = signer.sign_as(&json!({"alg": "EdDSA"}), &json!({"a": 1}));
        let jwk = signer.jwk();
        let other = [Signer::new("other").jwk()];
        let both = [other[0].clone(), jwk.clone()];
        assert_eq!(verified(&token, &both).unwrap().claims["a"], 1);
        assert!(verified(&token, &other).unwrap_err().starts_with("no key fits"));
        let changed = token.replacen(&encoded(&json!({"a": 1})), &encoded(&json!({"a": 2})), 1);
        assert!(verified(&changed, &[jwk]).is_err());
        let es256 = Signer::new("other").sign("JWT", &json!({}));
        assert!(verified(&es256, &other).is_err());
        assert!(verified("a.b", &[]).is_err());
    }
}
