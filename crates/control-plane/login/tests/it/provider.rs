//! The values of an OpenID provider: its metadata, keys, redirects and tokens.

use std::{
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use narthex_login::oidc::{Attempt, Callback, Client, Keys, Metadata};
use narthex_model::Secret;
use narthex_testkit::authorization::Signer;
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
        Self::of(client(), metadata)
    }

    pub(crate) fn of(client: Client, metadata: &Value) -> Self {
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

/// The published keys of a provider that has this one.
pub(crate) fn published(signer: &Signer) -> Keys {
    keys(&[signer.jwk()])
}

/// A token of these claims, without a type.
pub(crate) fn signed(signer: &Signer, claims: &Value) -> Secret {
    signed_as(signer, &json!({"alg": signer.algorithm(), "kid": "k1"}), claims)
}

/// A token of this header with these claims.
pub(crate) fn signed_as(signer: &Signer, header: &Value, claims: &Value) -> Secret {
    Secret::new(signer.sign_as(header, claims))
}

pub(crate) fn keys(keys: &[Value]) -> Keys {
    Keys::read(json!({ "keys": keys }).to_string().as_bytes()).unwrap()
}
