//! Access tokens of a company's own issuer (RFC 9068).

use std::time::SystemTime;

use super::time::StoredTime;
use crate::{
    jwt::{Algorithms, Jwt, JwtFault, Keys, LEEWAY},
    scopes::Scopes,
};

/// Types of the header that an access token may have. It may also have none.
const TYPES: [&str; 2] = ["at+jwt", "jwt"];

/// Claims that name the client of a token, in the spellings of several issuers.
const CLIENT_CLAIMS: [&str; 4] = ["client_id", "azp", "cid", "appid"];

/// An issuer whose access tokens open the door.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrustedIssuer {
    /// The identifier, as it is written in the settings. It is compared letter by letter.
    pub issuer: String,
    /// The algorithms by which it signs.
    pub algorithms: Algorithms,
}

/// The checked content of an access token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForeignAccess {
    /// The issuer.
    pub issuer: String,
    /// The issuer's permanent id of the person or service.
    pub subject: String,
    /// The client that got the token, if the token names one.
    pub client_id: Option<String>,
    /// The scopes of the token.
    pub scopes: Scopes,
    /// Time from which the token is no longer valid, with the leeway.
    pub expires_at: StoredTime,
}

impl TrustedIssuer {
    /// Checks an access token: type, signature, issuer, audience and times, with a leeway of 60
    /// seconds. `audiences` are the names of the resource; the token has to have one of them.
    ///
    /// # Errors
    /// When a check fails. After [`JwtFault::UnknownKey`] the caller asks its
    /// [`KeyCache`](super::KeyCache) for another fetch.
    pub fn check(
        &self,
        token: Jwt,
        keys: &Keys,
        audiences: &[&str],
        now: SystemTime,
    ) -> Result<ForeignAccess, JwtFault> {
        // An ID token or an assertion of the same issuer is no access token.
        if token.typ().is_some_and(|typ| !TYPES.contains(&&*typ)) {
            return Err(JwtFault::WrongType);
        }
        let claims = token.verified(&self.issuer, keys, &self.algorithms, now)?;
        if !claims.texts("aud")?.iter().any(|audience| audiences.contains(audience)) {
            return Err(JwtFault::WrongAudience);
        }
        let mut client = None;
        for name in CLIENT_CLAIMS {
            client = client.or(claims.optional(name)?);
        }
        // Some issuers write `scp`, as a text or as a list.
        let scopes = [claims.texts("scope")?, claims.texts("scp")?].concat().join(" ");
        Ok(ForeignAccess {
            issuer: self.issuer.clone(),
            subject: claims.subject()?.to_owned(),
            client_id: client.map(str::to_owned),
            scopes: Scopes::read(&scopes).map_err(|_error| JwtFault::BadClaim("scope"))?,
            expires_at: StoredTime::default().plus(claims.expiry()?).plus(LEEWAY),
        })
    }
}

#[cfg(test)]
mod tests;
