//! Access tokens of a company's own issuer (RFC 9068).

use std::time::SystemTime;

use super::door::Resource;
use crate::{
    jwt::{Algorithms, Jwt, JwtFault, Keys},
    scopes::Scopes,
};

/// Types of the header that an access token may have. It may also have none.
const TYPES: [&str; 2] = ["at+jwt", "jwt"];

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
}

impl TrustedIssuer {
    /// Checks an access token for a resource: type, signature, issuer, audience and times, with a
    /// leeway of 60 seconds.
    ///
    /// # Errors
    /// When a check fails. After [`JwtFault::UnknownKey`] the caller asks its
    /// [`KeyCache`](super::KeyCache) for another fetch.
    pub fn check(
        &self,
        token: Jwt,
        keys: &Keys,
        resource: &Resource,
        now: SystemTime,
    ) -> Result<ForeignAccess, JwtFault> {
        // An ID token or an assertion of the same issuer is no access token.
        if token.typ().is_some_and(|typ| !TYPES.contains(&&*typ)) {
            return Err(JwtFault::WrongType);
        }
        let claims = token.verified(&self.issuer, keys, &self.algorithms, now)?;
        if !claims.texts("aud")?.contains(&resource.as_str()) {
            return Err(JwtFault::WrongAudience);
        }
        let client = claims.optional("client_id")?.or(claims.optional("azp")?);
        // Some issuers write `scp`, as a text or as a list.
        let scopes = [claims.texts("scope")?, claims.texts("scp")?].concat().join(" ");
        Ok(ForeignAccess {
            issuer: self.issuer.clone(),
            subject: claims.subject()?.to_owned(),
            client_id: client.map(str::to_owned),
            scopes: Scopes::read(&scopes).map_err(|_error| JwtFault::BadClaim("scope"))?,
        })
    }
}

#[cfg(test)]
mod tests;
