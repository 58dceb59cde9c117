//! The values of an OpenID provider: its metadata, keys, redirects and tokens.

use std::{
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use narthex_login::oidc::{Attempt, Callback, Client, Keys, Metadata};
use narthex_model::Secret;
use ring::{
    rand::SystemRandom,
    signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair},
};
use serde_json::{Value, json};
use url::Url;

pub(crate) const ISSUER: &str = "https://id.example/tenant";
pub(crate) const CLIENT: &str = "narthex";
pub(crate) const REDIRECT: &str = "https://narthex.example/signin/oidc/corp/callback";

/// The time in all these tests.
pub(crate) fn now() -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(2_000_000_000)
}

pub(crate) fn client() -> Client {
    Client::new(ISSUER, CLIENT, Some(Secret::new("s&cret"))).unwrap()
}

pub(crate) fn metadata() -> Value {
    json!({
        "issuer": ISSUER,
        "authorization_endpoint": format!("{ISSUER}/auth?tenant=1"),
        "token_endpoint": "https://tokens.example/token",
        "jwks_uri": format!("{ISSUER}/keys"),
        "response_types_supported": ["code", "id_token"],
        "authorization_response_iss_parameter_supported": true,
    })
}

/// A sign-in under way, with the address that the browser is sent to.
pub(crate) struct Begun {
    pub(crate) attempt: Attempt,
    pub(crate) url: Url,
}

impl Begun {
    pub(crate) fn new() -> Self {
        Self::with(&metadata())
    }

    pub(crate) fn with(metadata: &Value) -> Self {
        let client = client();
        let metadata = Metadata::read(&client, metadata.to_string().as_bytes()).unwrap();
        let (url, attempt) =
            Attempt::begin(Arc::new(client), Arc::new(metadata), REDIRECT.to_owned()).unwrap();
        Self { attempt, url }
    }

    /// A parameter that the provider gets.
    pub(crate) fn sent(&self, name: &str) -> String {
        let mut found = self.url.query_pairs().filter(|(key, _)| key == name);
        let (_, value) = found.next().unwrap_or_else(|| panic!("no {name} in {}", self.url));
        assert!(found.next().is_none(), "{name} comes twice");
        value.into_owned()
    }

    /// The redirect back, with these parameters after the state.
    pub(crate) fn callback(&self, rest: &str) -> Callback {
        Callback::read(&format!("state={}{rest}", self.sent("state"))).unwrap()
    }

    /// The claims of a good token.
    pub(crate) fn claims(&self) -> Value {
        json!({
            "iss": ISSUER,
            "sub": "248289761001",
            "aud": CLIENT,
            "exp": 2_000_000_300,
            "iat": 2_000_000_000,
            "nonce": self.sent("nonce"),
            "email": "ada@Corp.Example",
            "email_verified": true,
            "name": "Ada",
            "groups": ["staff", "platform"],
        })
    }
}

/// A provider's key.
pub(crate) enum Signer {
    Es256(EcdsaKeyPair),
    Ed25519(Ed25519KeyPair),
}

impl Signer {
    pub(crate) fn es256() -> Self {
        let (method, random) = (&ECDSA_P256_SHA256_FIXED_SIGNING, SystemRandom::new());
        let made = EcdsaKeyPair::generate_pkcs8(method, &random).unwrap();
        Self::Es256(EcdsaKeyPair::from_pkcs8(method, made.as_ref(), &random).unwrap())
    }

    pub(crate) fn ed25519() -> Self {
        let made = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
        Self::Ed25519(Ed25519KeyPair::from_pkcs8(made.as_ref()).unwrap())
    }

    fn algorithm(&self) -> &'static str {
        match self {
            Self::Es256(_) => "ES256",
            Self::Ed25519(_) => "EdDSA",
        }
    }

    pub(crate) fn jwk(&self, kid: &str) -> Value {
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

    pub(crate) fn keys(&self) -> Keys {
        keys(&[self.jwk("k1")])
    }

    /// A token of these claims.
    pub(crate) fn sign(&self, claims: &Value) -> Secret {
        self.sign_as(&json!({"alg": self.algorithm(), "kid": "k1"}), claims)
    }

    pub(crate) fn sign_as(&self, header: &Value, claims: &Value) -> Secret {
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let signed = format!("{}.{}", part(header), part(claims));
        let signature = match self {
            Self::Es256(key) => {
                let made = key.sign(&SystemRandom::new(), signed.as_bytes()).unwrap();
                URL_SAFE_NO_PAD.encode(made)
            }
            Self::Ed25519(key) => URL_SAFE_NO_PAD.encode(key.sign(signed.as_bytes())),
        };
        Secret::new(format!("{signed}.{signature}"))
    }
}

pub(crate) fn keys(keys: &[Value]) -> Keys {
    Keys::read(json!({ "keys": keys }).to_string().as_bytes()).unwrap()
}
