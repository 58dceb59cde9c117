//! Assertions by which clients prove themselves with a private key (RFC 7523, 2.2 and 3).

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::{
    answer::{ErrorCode, OAuthError},
    assertion::jti_of,
    client::Client,
    credentials::Credentials,
    door::Door,
    time::StoredTime,
};
use crate::jwt::{Algorithms, JwtFault, Keys, LEEWAY};

/// Types of the header that an assertion may have. It may also have none.
const TYPES: [&str; 2] = ["client-authentication+jwt", "jwt"];
/// Longest time until the expiry of an assertion.
const LIFE_MAX: Duration = Duration::from_hours(1);

/// An assertion whose content is good. It may have been used before: see [`prove`](Self::prove).
#[derive(Debug, Clone, PartialEq)]
pub struct CheckedProof<'c> {
    /// The id of the assertion, unique for the client.
    pub jti: String,
    /// Time from which the caller may forget the id, since the assertion has expired.
    pub forget_jti_at: StoredTime,
    client: &'c Client,
}

/// The use of an assertion's id, as the caller's store knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JtiUse {
    /// The id was stored just now, and was not there before.
    First,
    /// The id was there already.
    Again,
}

/// The assertion of a client is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the client's assertion is refused: {0}")]
pub struct ProofFault(pub JwtFault);

impl Credentials {
    /// Checks the assertion of a client with keys: signature, issuer, subject, audience, times and
    /// id. Its audience is the issuer of this server alone, so that no other server can use it.
    ///
    /// `keys` are those of the client's [`ClientProof::Keys`](super::ClientProof::Keys).
    ///
    /// # Errors
    /// When a check fails. After [`JwtFault::UnknownKey`] the caller asks its
    /// [`KeyCache`](super::KeyCache) for a fetch. `From` makes the error for the client.
    pub fn check_assertion<'c>(
        &self,
        client: &'c Client,
        keys: &Keys,
        door: &Door,
        now: SystemTime,
    ) -> Result<CheckedProof<'c>, ProofFault> {
        self.checked(client, keys, door, now).map_err(ProofFault)
    }

    fn checked<'c>(
        &self,
        client: &'c Client,
        keys: &Keys,
        door: &Door,
        now: SystemTime,
    ) -> Result<CheckedProof<'c>, JwtFault> {
        let assertion = self.assertion().cloned().ok_or(JwtFault::Malformed)?;
        if client.id != *self.client_id() {
            return Err(JwtFault::WrongClient);
        }
        if assertion.typ().is_some_and(|typ| !TYPES.contains(&&*typ)) {
            return Err(JwtFault::WrongType);
        }
        let id = client.id.as_str();
        let claims = assertion.verified(id, keys, &Algorithms::default(), now)?;
        if claims.required("sub")? != id {
            return Err(JwtFault::WrongClient);
        }
        if claims.texts("aud")? != [door.issuer()] {
            return Err(JwtFault::WrongAudience);
        }
        let expiry = claims.time("exp")?.ok_or(JwtFault::BadClaim("exp"))?;
        let latest = now.duration_since(UNIX_EPOCH).unwrap_or_default() + LIFE_MAX + LEEWAY;
        if expiry > latest.as_secs_f64() {
            return Err(JwtFault::TooLong);
        }
        let jti = jti_of(&claims)?;
        // It ends before this, with the leeway of the check.
        let forget_jti_at = StoredTime::of(now).plus(LIFE_MAX + LEEWAY + LEEWAY);
        Ok(CheckedProof { jti, forget_jti_at, client })
    }
}

impl<'c> CheckedProof<'c> {
    /// The proved client, if its assertion is used for the first time.
    ///
    /// # Errors
    /// `invalid_client` for a second use.
    pub fn prove(self, jti_use: JtiUse) -> Result<&'c Client, OAuthError> {
        let text = "the client_assertion was used before";
        match jti_use {
            JtiUse::First => Ok(self.client),
            JtiUse::Again => Err(OAuthError::new(ErrorCode::InvalidClient, text)),
        }
    }
}

impl From<ProofFault> for OAuthError {
    fn from(ProofFault(fault): ProofFault) -> Self {
        let text = match fault {
            JwtFault::Malformed => "the client_assertion is missing, or is no signed JWT",
            JwtFault::Expired => "the client_assertion has expired",
            JwtFault::TooEarly => "the client_assertion is not valid yet",
            JwtFault::TooLong => "the client_assertion is valid for more than an hour",
            JwtFault::WrongAudience => "the client_assertion must have this issuer as its only aud",
            JwtFault::BadClaim(_) => "the client_assertion has a missing or malformed claim",
            JwtFault::WrongType
            | JwtFault::WrongIssuer
            | JwtFault::WrongClient
            | JwtFault::WrongResource => "the client_assertion is not about this client",
            JwtFault::ForbiddenAlgorithm
            | JwtFault::NotKeys
            | JwtFault::UnknownKey
            | JwtFault::AmbiguousKey
            | JwtFault::BadSignature => "the signature of the client_assertion cannot be verified",
        };
        Self::new(ErrorCode::InvalidClient, text)
    }
}

#[cfg(test)]
mod tests;
