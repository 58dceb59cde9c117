//! The ID token of a provider's answer: its issuer, its audience and its signature.

use std::{
    collections::BTreeMap,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use jsonwebtoken::{
    Algorithm, AlgorithmFamily, DecodingKey, Header, Validation, decode, decode_header,
    errors::ErrorKind,
    jwk::{AlgorithmParameters, EllipticCurve, Jwk, PublicKeyUse},
};
use narthex_model::Secret;
use serde::Deserialize;
use serde_json::Value;

use super::{Attempt, OidcError, ring_provider};
use crate::TokenHash;

/// Largest difference between two clocks.
const LEEWAY: Duration = Duration::from_secs(60);
/// The longest subject, by OpenID Connect Core 2.
const SUBJECT_MAX: usize = 255;
/// Algorithms that prove a signature with a public key. `none` and shared secrets are not among
/// them.
const ALGORITHMS: [Algorithm; 9] = [
    Algorithm::RS256,
    Algorithm::RS384,
    Algorithm::RS512,
    Algorithm::PS256,
    Algorithm::PS384,
    Algorithm::PS512,
    Algorithm::ES256,
    Algorithm::ES384,
    Algorithm::EdDSA,
];

/// A provider's public keys.
#[derive(Debug, Clone)]
pub struct Keys(Vec<Jwk>);

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
        #[derive(Deserialize)]
        struct Set {
            keys: Vec<Value>,
        }
        let set: Set = serde_json::from_slice(body)
            .map_err(|_error| OidcError::BadAnswer("its keys cannot be read"))?;
        let keys = set.keys.into_iter().filter_map(|key| serde_json::from_value(key).ok());
        Ok(Self(keys.collect()))
    }

    /// The one key that a token can be signed with.
    fn find(&self, header: &Header) -> Result<&Jwk, OidcError> {
        let is_named = |key: &&Jwk| match &header.kid {
            Some(kid) => key.common.key_id.as_ref() == Some(kid),
            None => true,
        };
        let mut fitting = self.0.iter().filter(is_named).filter(|key| fits(key, header.alg));
        match (fitting.next(), fitting.next()) {
            (Some(key), None) => Ok(key),
            (None, _) => Err(OidcError::UnknownKey),
            (Some(_), Some(_)) => Err(OidcError::BadToken("several keys could have signed it")),
        }
    }
}

/// True if a key is for signatures by an algorithm.
fn fits(key: &Jwk, algorithm: Algorithm) -> bool {
    let is_for_signing = match &key.common.public_key_use {
        None | Some(PublicKeyUse::Signature) => true,
        Some(PublicKeyUse::Encryption | PublicKeyUse::Other(_)) => false,
    };
    let named = key.common.key_algorithm.map(|named| named.to_string());
    let is_of_algorithm = named.is_none_or(|named| named == format!("{algorithm:?}"));
    let is_of_family = match (&key.algorithm, algorithm.family()) {
        (AlgorithmParameters::RSA(_), AlgorithmFamily::Rsa) => true,
        (AlgorithmParameters::EllipticCurve(curve), AlgorithmFamily::Ec) => matches!(
            (&curve.curve, algorithm),
            (EllipticCurve::P256, Algorithm::ES256) | (EllipticCurve::P384, Algorithm::ES384)
        ),
        (AlgorithmParameters::OctetKeyPair(pair), AlgorithmFamily::Ed) => {
            pair.curve == EllipticCurve::Ed25519
        }
        _ => false,
    };
    is_for_signing && is_of_algorithm && is_of_family
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
        let claims = self.verified(id_token, keys)?;
        let read: Claims = serde_json::from_value(Value::Object(claims.clone()))
            .map_err(|_error| OidcError::BadToken("it lacks a required claim"))?;
        self.check(&read, now)?;
        Ok(Identity {
            issuer: self.client.issuer_text.clone(),
            subject: read.sub,
            claims: claims.into_iter().collect(),
        })
    }

    /// The claims of a token that the provider has made for this client, at any time.
    fn verified(
        &self,
        id_token: &Secret,
        keys: &Keys,
    ) -> Result<serde_json::Map<String, Value>, OidcError> {
        ring_provider::install();
        let header = decode_header(id_token.expose())
            .map_err(|_error| OidcError::BadToken("it is not a signed token"))?;
        if !ALGORITHMS.contains(&header.alg) {
            return Err(OidcError::BadToken("it is not signed with a public key"));
        }
        let key = DecodingKey::from_jwk(keys.find(&header)?)
            .map_err(|_error| OidcError::BadToken("its key cannot be read"))?;
        let mut wanted = Validation::new(header.alg);
        wanted.set_audience(&[&self.client.client_id]);
        wanted.set_issuer(&[&self.client.issuer_text]);
        wanted.set_required_spec_claims(&["exp", "iss", "aud", "sub"]);
        // The expiry is checked below, with the caller's time.
        wanted.validate_exp = false;
        let token = decode(id_token.expose(), &key, &wanted).map_err(|error| {
            OidcError::BadToken(match error.kind() {
                ErrorKind::InvalidIssuer => "it has another issuer",
                ErrorKind::InvalidAudience => "it is for another client",
                ErrorKind::MissingRequiredClaim(_) => "it lacks a required claim",
                ErrorKind::InvalidSignature => "its signature is wrong",
                _ => "it cannot be checked",
            })
        })?;
        Ok(token.claims)
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
