//! The ID token of a provider's answer: its issuer, its audience and its signature.

use std::{
    collections::BTreeMap,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use narthex_model::Secret;
use narthex_oauth::jwt::{self, Expected};
use serde::Deserialize;
use serde_json::Value;

use super::{Attempt, OidcError};
use crate::TokenHash;

/// Largest difference between two clocks.
const LEEWAY: Duration = Duration::from_secs(60);
/// The longest subject, by OpenID Connect Core 2.
const SUBJECT_MAX: usize = 255;

/// A provider's public keys.
#[derive(Debug, Clone)]
pub struct Keys(jwt::Keys);

/// The identity of a person at a provider.
#[derive(Debug, Clone, PartialEq)]
pub struct Identity {
    /// The provider.
    pub issuer: String,
    /// The provider's permanent id of the person.
    pub subject: String,
    /// All claims of the provider about the person.
    pub claims: BTreeMap<String, Value>,
}

#[derive(Deserialize)]
struct Claims {
    sub: String,
    exp: u64,
    iat: u64,
    #[serde(default)]
    nonce: Option<String>,
    #[serde(default)]
    azp: Option<String>,
    aud: Value,
    #[serde(default)]
    nbf: Option<u64>,
}

impl Keys {
    /// Reads the document at the metadata's `jwks_uri`. Keys of unknown kinds are left out.
    ///
    /// # Errors
    /// When the text is no set of keys.
    pub fn read(body: &[u8]) -> Result<Self, OidcError> {
        Ok(Self(jwt::Keys::read(body)?))
    }
}

impl Attempt {
    /// Returns the ID token in the answer of the token endpoint.
    ///
    /// # Errors
    /// When the answer has none.
    pub fn id_token(&self, answer: &[u8]) -> Result<Secret, OidcError> {
        #[derive(Deserialize)]
        struct Answer {
            id_token: String,
        }
        let answer: Answer = serde_json::from_slice(answer)
            .map_err(|_error| OidcError::BadAnswer("it has no ID token"))?;
        Ok(Secret::new(answer.id_token))
    }

    /// Returns the refresh token in the answer of the token endpoint, if narthex keeps the identity
    /// and the provider gives one.
    #[must_use]
    pub fn refresh_token(&self, answer: &[u8]) -> Option<Secret> {
        #[derive(Deserialize)]
        struct Answer {
            #[serde(default)]
            refresh_token: Option<String>,
        }
        let answer: Answer = serde_json::from_slice(answer).ok()?;
        answer.refresh_token.filter(|_| self.client.keeps_identity).map(Secret::new)
    }

    /// Checks an ID token: signature, issuer, audience, time and nonce.
    ///
    /// # Errors
    /// When a check fails. After [`OidcError::UnknownKey`] the caller should fetch the keys once
    /// more.
    pub fn identify(
        &self,
        id_token: &Secret,
        keys: &Keys,
        now: SystemTime,
    ) -> Result<Identity, OidcError> {
        let expected =
            Expected { issuer: &self.client.issuer_text, audience: &self.client.client_id };
        let claims = keys.0.verify(id_token, expected)?;
        let read: Claims = serde_json::from_value(Value::Object(claims.clone()))
            .map_err(|_error| OidcError::BadToken("it lacks a required claim"))?;
        self.check(&read, now)?;
        Ok(Identity {
            issuer: self.client.issuer_text.clone(),
            subject: read.sub,
            claims: claims.into_iter().collect(),
        })
    }

    fn check(&self, claims: &Claims, now: SystemTime) -> Result<(), OidcError> {
        let Claims { sub, exp, iat, nonce, azp, aud, nbf } = claims;
        let now = now.duration_since(UNIX_EPOCH).unwrap_or_default();
        let (late, early) = (now.saturating_sub(LEEWAY).as_secs(), (now + LEEWAY).as_secs());
        if *exp <= late {
            return Err(OidcError::BadToken("it has expired"));
        }
        if *iat > early || nbf.is_some_and(|from| from > early) {
            return Err(OidcError::BadToken("its time is in the future"));
        }
        let nonce = nonce.as_ref().map(|nonce| TokenHash::of(nonce));
        if nonce.as_ref() != Some(&self.nonce) {
            return Err(OidcError::BadToken("it belongs to another sign-in"));
        }
        let has_others = aud.as_array().is_some_and(|all| all.len() > 1);
        let is_ours = |azp: &String| *azp == self.client.client_id;
        if azp.as_ref().map_or(has_others, |azp| !is_ours(azp)) {
            return Err(OidcError::BadToken("it was issued to another client"));
        }
        if sub.is_empty() || sub.len() > SUBJECT_MAX || sub.contains('\0') {
            return Err(OidcError::BadToken("its subject is empty or too long"));
        }
        Ok(())
    }
}

impl Identity {
    /// The e-mail address, if the provider says that it is verified.
    #[must_use]
    pub fn verified_email(&self) -> Option<&str> {
        let is_verified = self.claims.get("email_verified") == Some(&Value::Bool(true));
        self.claims.get("email").and_then(Value::as_str).filter(|_| is_verified)
    }

    /// The person's name for display.
    #[must_use]
    pub fn name(&self) -> &str {
        let named = self.claims.get("name").and_then(Value::as_str).filter(|name| !name.is_empty());
        named.or_else(|| self.verified_email()).unwrap_or(&self.subject)
    }
}
