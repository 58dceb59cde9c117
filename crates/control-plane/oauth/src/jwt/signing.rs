//! Signing with own private keys.

use base64::{
    Engine,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};
use jsonwebtoken::{Algorithm, AlgorithmFamily, EncodingKey, Header, crypto::JwtSigner, encode};
use narthex_model::Secret;
use ring::signature::{KeyPair, RsaPublicKeyComponents};
use serde_json::{Value, json};

use super::ring_provider::{self, RingSigner};

/// A private key cannot be used. The key is not shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum KeyFault {
    /// The text has no block between `-----BEGIN` and `-----END`.
    #[error("the private key is no PEM text: it must begin with `-----BEGIN PRIVATE KEY-----`")]
    NotPem,
    /// The block is another kind of object.
    #[error(
        "the PEM text is no private key in PKCS #8; convert it with \
         `openssl pkcs8 -topk8 -nocrypt -in KEY.pem`"
    )]
    NotPkcs8,
    /// The key is encrypted.
    #[error(
        "the private key is encrypted; decrypt it with \
         `openssl pkcs8 -topk8 -nocrypt -in KEY.pem`, and store the result as a secret"
    )]
    Encrypted,
    /// The key is for no supported algorithm.
    #[error("the private key is neither RSA of 2048 to 4096 bits nor EC on the curve P-256")]
    Unsupported,
}

/// A token cannot be signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SigningFault {
    /// The client has no private key.
    #[error("there is no private key")]
    NoKey,
    /// The operating system gives no random bytes.
    #[error("the operating system gives no random bytes")]
    NoRandomness,
    /// The key signs nothing.
    #[error("the private key cannot be used")]
    Refused,
}

/// A private key that signs tokens with RS256 or ES256.
#[derive(Debug, Clone)]
pub struct SigningKey {
    algorithm: Algorithm,
    id: Option<String>,
    key: EncodingKey,
    public: Value,
}

impl SigningKey {
    /// Reads a private key in PEM. `id` is its name in the published set of keys (`kid`).
    ///
    /// # Errors
    /// When the text is no unencrypted RSA or P-256 key.
    pub fn from_pem(pem: &Secret, id: Option<String>) -> Result<Self, KeyFault> {
        let (label, der) = pem_block(pem.expose()).ok_or(KeyFault::NotPem)?;
        match label {
            "PRIVATE KEY" | "RSA PRIVATE KEY" => {}
            "ENCRYPTED PRIVATE KEY" => return Err(KeyFault::Encrypted),
            _ => return Err(KeyFault::NotPkcs8),
        }
        let signer = RingSigner::read(&der).ok_or(KeyFault::Unsupported)?;
        let key = match signer.family() {
            AlgorithmFamily::Rsa => EncodingKey::from_rsa_der(&der),
            _ => EncodingKey::from_ec_der(&der),
        };
        let (algorithm, public) = (signer.algorithm(), public_jwk(&signer));
        Ok(Self { algorithm, id, key, public })
    }

    /// The name of the algorithm, which the type of the key decides.
    #[must_use]
    pub fn algorithm(&self) -> &'static str {
        match self.algorithm.family() {
            AlgorithmFamily::Rsa => "RS256",
            _ => "ES256",
        }
    }

    /// Signs claims. `typ` is the token's type, such as `JWT`.
    ///
    /// # Errors
    /// When the operating system gives no random bytes.
    pub fn sign(&self, typ: &str, claims: &Value) -> Result<Secret, SigningFault> {
        ring_provider::install();
        let mut header = Header::new(self.algorithm);
        header.typ = Some(typ.to_owned());
        header.kid.clone_from(&self.id);
        let token = encode(&header, claims, &self.key);
        token.map(Secret::new).map_err(|_error| SigningFault::Refused)
    }

    /// The public key as a JSON web key (RFC 7517), to be published at a `jwks_uri`.
    #[must_use]
    pub fn public_jwk(&self) -> Value {
        let mut jwk = self.public.clone();
        if let Some(id) = &self.id {
            jwk["kid"] = id.as_str().into();
        }
        jwk
    }
}

fn public_jwk(signer: &RingSigner) -> Value {
    let encode = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
    match signer {
        RingSigner::Rsa(key) => {
            let RsaPublicKeyComponents::<Vec<u8>> { n, e } = key.public().into();
            json!({"kty": "RSA", "alg": "RS256", "use": "sig", "n": encode(&n), "e": encode(&e)})
        }
        RingSigner::P256(key) => {
            // An uncompressed point: a tag, then both coordinates.
            let (x, y) = key.public_key().as_ref()[1..].split_at(32);
            let (x, y) = (encode(x), encode(y));
            json!({"kty": "EC", "crv": "P-256", "alg": "ES256", "use": "sig", "x": x, "y": y})
        }
    }
}

/// The label and the bytes of the first block of a PEM text.
fn pem_block(text: &str) -> Option<(&str, Vec<u8>)> {
    let (_, rest) = text.split_once("-----BEGIN ")?;
    let (label, rest) = rest.split_once("-----")?;
    let (body, _) = rest.split_once("-----END ")?;
    // Headers of old encrypted keys have a colon, which fails the decoding.
    let body: String = body.split_ascii_whitespace().collect();
    STANDARD.decode(body).ok().map(|der| (label, der))
}

#[cfg(test)]
mod tests {
    use ring::{
        rand::SystemRandom,
        signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair},
    };

    use super::*;
    use crate::jwt::{self, Expected, JwtFault, Keys};

    /// An RSA key that was made for these tests and is used nowhere else.
    const RSA: &str = include_str!("test-key.pem");

    fn pem(label: &str, der: &[u8]) -> Secret {
        let body = STANDARD.encode(der);
        Secret::new(format!("-----BEGIN {label}-----\n{body}\n-----END {label}-----\n"))
    }

    fn p256() -> Secret {
        let (method, random) = (&ECDSA_P256_SHA256_FIXED_SIGNING, SystemRandom::new());
        pem("PRIVATE KEY", EcdsaKeyPair::generate_pkcs8(method, &random).unwrap().as_ref())
    }

    #[test]
    fn tokens_of_both_kinds_of_keys_are_verified_by_the_published_key() {
        for pem in [p256(), Secret::new(RSA)] {
            let key = SigningKey::from_pem(&pem, Some("k1".to_owned())).unwrap();
            let claims = json!({"iss": "i", "aud": ["a"], "sub": "s", "exp": 7});
            let token = key.sign("JWT", &claims).unwrap();
            let keys = Keys::read(json!({"keys": [key.public_jwk()]}).to_string().as_bytes());
            let keys = keys.unwrap();
            let verify = |issuer, audience| keys.verify(&token, Expected { issuer, audience });
            assert_eq!(Value::Object(verify("i", "a").unwrap()), claims);
            assert_eq!(verify("j", "a"), Err(JwtFault::WrongIssuer));
            assert_eq!(verify("i", "b"), Err(JwtFault::WrongAudience));
            let none = Keys::read(b"{\"keys\":[]}").unwrap();
            let unknown = none.verify(&token, Expected { issuer: "i", audience: "a" });
            assert_eq!(unknown, Err(JwtFault::UnknownKey));
            assert_eq!(jwt::unverified_expiry(token.expose()), Some(7));
            let shown = format!("{key:?}");
            let secret = pem.expose().lines().nth(1).unwrap();
            assert!(!shown.contains(&secret[..20]), "{shown}");
        }
    }

    #[test]
    fn other_private_keys_are_refused_with_the_remedy() {
        let read = |pem: &Secret| SigningKey::from_pem(pem, None).unwrap_err();
        assert_eq!(read(&Secret::new("")), KeyFault::NotPem);
        assert_eq!(read(&Secret::new("-----BEGIN PRIVATE KEY-----\n!")), KeyFault::NotPem);
        assert_eq!(read(&pem("ENCRYPTED PRIVATE KEY", b"x")), KeyFault::Encrypted);
        let other = read(&pem("EC PRIVATE KEY", b"x"));
        assert!(other.to_string().contains("openssl pkcs8 -topk8"), "{other}");
        assert_eq!(read(&pem("PRIVATE KEY", b"x")), KeyFault::Unsupported);
    }
}
