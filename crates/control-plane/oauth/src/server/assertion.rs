//! Assertions of identity providers about their people (ID-JAG: Identity Assertion JWT
//! Authorization Grant), which give access without a page.

use std::time::{Duration, SystemTime};

use super::{
    account::{Account, IssueRules},
    answer::{Answer, ErrorCode, OAuthError},
    client::Client,
    door::{Door, Resource},
    grant::{Grant, NewAccess},
    issuer::TrustedIssuer,
    outcome::{Issue, Outcome, UsedAssertion, token_answer},
    time::StoredTime,
    token_request::{AssertionRequest, AssertionWay},
};
use crate::{
    jwt::{Claims, Jwt, JwtFault, Keys, LEEWAY},
    scopes::Scopes,
    urns::ACCESS_TOKEN,
};

/// The type of an assertion, in its header.
const TYPE: &str = "oauth-id-jag+jwt";
/// Longest time between issue and expiry of an assertion.
const LIFE_MAX: Duration = Duration::from_hours(1);
/// The longest id of an assertion, in bytes.
const JTI_MAX: usize = 255;

/// The issuer of an assertion, with the keys that the caller fetched.
#[derive(Debug, Clone, Copy)]
pub struct AssertionIssuer<'i> {
    /// The issuer, which the caller finds in its list by [`Jwt::claimed_issuer`].
    pub issuer: &'i TrustedIssuer,
    /// Its keys.
    pub keys: &'i Keys,
}

/// An assertion whose content is good. It may have been used before: see
/// [`UsedAssertion`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckedAssertion {
    /// The identity provider.
    pub issuer: String,
    /// The provider's permanent id of the person, by which the caller finds the user.
    pub subject: String,
    /// The id of the assertion, unique for the issuer.
    pub jti: String,
    /// Time from which the caller may forget the id, since the assertion has expired.
    pub forget_jti_at: StoredTime,
    /// The resource of the assertion.
    pub resource: Resource,
    /// The scopes of the assertion; `None` if it does not limit them.
    scopes: Option<Scopes>,
}

/// Checks an assertion for a client that proved itself by a secret (ID-JAG, 4.4): type, signature,
/// issuer, audience, resource, client, times and id.
///
/// `resource` is the resource that the request names. It has to be one of the assertion, and is
/// needed if the assertion has several.
///
/// # Errors
/// When a check fails. After [`JwtFault::UnknownKey`] the caller asks its
/// [`KeyCache`](super::KeyCache) for a fetch. `From` makes the error for
/// the client.
pub fn check_assertion(
    assertion: Jwt,
    by: AssertionIssuer<'_>,
    client: &Client,
    door: &Door,
    resource: Option<&Resource>,
    now: SystemTime,
) -> Result<CheckedAssertion, JwtFault> {
    if assertion.typ().as_deref() != Some(TYPE) {
        return Err(JwtFault::WrongType);
    }
    let TrustedIssuer { issuer, algorithms } = by.issuer;
    let claims = assertion.verified(issuer, by.keys, algorithms, now)?;
    // An assertion for several servers could be used by one of them at another.
    if claims.texts("aud")? != [door.issuer()] {
        return Err(JwtFault::WrongAudience);
    }
    if claims.required("client_id")? != client.id.as_str() {
        return Err(JwtFault::WrongClient);
    }
    let scopes = claims.optional("scope")?.map(Scopes::read).transpose();
    Ok(CheckedAssertion {
        issuer: issuer.clone(),
        subject: claims.subject()?.to_owned(),
        jti: jti_of(&claims)?,
        forget_jti_at: forget_at(&claims, now)?,
        resource: resource_of(&claims, door, resource)?,
        scopes: scopes.map_err(|_error| JwtFault::BadClaim("scope"))?,
    })
}

/// The id of an assertion, by which a second use is found.
pub(super) fn jti_of(claims: &Claims) -> Result<String, JwtFault> {
    let jti = claims.required("jti")?;
    if jti.len() > JTI_MAX { Err(JwtFault::BadClaim("jti")) } else { Ok(jti.to_owned()) }
}

/// Time from which an assertion has expired for good.
fn forget_at(claims: &Claims, now: SystemTime) -> Result<StoredTime, JwtFault> {
    let time = |name| claims.time(name)?.ok_or(JwtFault::BadClaim(name));
    let life = time("exp")? - time("iat")?;
    if life > LIFE_MAX.as_secs_f64() {
        return Err(JwtFault::TooLong);
    }
    // It was issued at most one leeway in the future, so it ends before this.
    Ok(StoredTime::of(now).plus(LIFE_MAX + LEEWAY + LEEWAY + Duration::from_secs(1)))
}

/// The resource of an assertion, all of whose resources are of this door.
fn resource_of(
    claims: &Claims,
    door: &Door,
    named: Option<&Resource>,
) -> Result<Resource, JwtFault> {
    let texts = claims.texts("resource")?;
    let all = texts.iter().map(|text| door.named(text)).collect::<Result<Vec<_>, _>>();
    let all = all.map_err(|_error| JwtFault::WrongResource)?;
    match (named, &*all) {
        (Some(named), all) if all.contains(named) => Ok(named.clone()),
        (None, [one]) => Ok(one.clone()),
        (Some(_) | None, _) => Err(JwtFault::WrongResource),
    }
}

/// Checks that a client may use assertions: one that keeps a secret, so that a stolen assertion is
/// of no use to others.
///
/// # Errors
/// `unauthorized_client` for a public client.
pub fn admit_assertions_of(client: &Client) -> Result<(), OAuthError> {
    match client.is_public() {
        false => Ok(()),
        true => {
            let text = "assertions are taken from clients with a secret alone";
            Err(OAuthError::new(ErrorCode::UnauthorizedClient, text))
        }
    }
}

impl CheckedAssertion {
    /// The scopes of the assertion; `None` if it does not limit them.
    #[must_use]
    pub fn scopes(&self) -> Option<&Scopes> {
        self.scopes.as_ref()
    }

    /// Gives an access token for the assertion, and no refresh token: the client brings the next
    /// assertion (ID-JAG, 4.4.1).
    ///
    /// The caller uses the assertion up in the step that stores the token, so that a request that
    /// fails leaves the assertion unused. The scopes are those that the client may get, of the
    /// assertion and of the request. The answer to a token exchange also names the type of the
    /// token (RFC 8693, 2.2.1).
    #[must_use]
    pub fn redeem(
        self,
        request: &AssertionRequest,
        rules: IssueRules<'_>,
        account: Account,
        now: SystemTime,
    ) -> Outcome {
        let Self { issuer, subject: _, jti, forget_jti_at: forget_at, resource, scopes } = self;
        let limits = [scopes.as_ref(), request.scopes.as_ref()];
        let Account { user, workspace, agent } = account;
        let issued = rules.given(limits).and_then(|scopes| {
            let client_id = rules.client.id.clone();
            let grant = Grant { client_id, user, workspace, agent, resource, scopes };
            NewAccess::generate(grant, None, now)
        });
        match issued {
            Err(error) => Outcome::Refuse(error),
            Ok(access) => {
                let mut body = token_answer(&access, None);
                if request.way == AssertionWay::TokenExchange {
                    body["issued_token_type"] = ACCESS_TOKEN.into();
                }
                let answer = Answer::json(200, &body);
                let assertion = Some(UsedAssertion { issuer, jti, forget_at });
                let access = access.record;
                Outcome::Issue(Box::new(Issue {
                    access,
                    family: None,
                    code: None,
                    assertion,
                    answer,
                }))
            }
        }
    }
}

impl From<JwtFault> for OAuthError {
    /// The error for a client whose assertion is refused.
    fn from(error: JwtFault) -> Self {
        let (code, text) = match error {
            JwtFault::WrongResource => {
                (ErrorCode::InvalidTarget, "the assertion is for another resource")
            }
            JwtFault::Malformed => (ErrorCode::InvalidGrant, "the assertion is no signed JWT"),
            JwtFault::WrongType => (ErrorCode::InvalidGrant, "the assertion is of another type"),
            JwtFault::WrongIssuer => {
                (ErrorCode::InvalidGrant, "the issuer of the assertion is not trusted here")
            }
            JwtFault::WrongAudience => {
                (ErrorCode::InvalidGrant, "the assertion is for another server")
            }
            JwtFault::WrongClient => {
                (ErrorCode::InvalidGrant, "the assertion was issued to another client")
            }
            JwtFault::Expired => (ErrorCode::InvalidGrant, "the assertion has expired"),
            JwtFault::TooEarly => (ErrorCode::InvalidGrant, "the assertion is not valid yet"),
            JwtFault::TooLong => {
                (ErrorCode::InvalidGrant, "the assertion is valid for more than an hour")
            }
            JwtFault::BadClaim(_) => {
                (ErrorCode::InvalidGrant, "the assertion has a missing or malformed claim")
            }
            JwtFault::ForbiddenAlgorithm => {
                (ErrorCode::InvalidGrant, "the algorithm of the assertion is not allowed")
            }
            JwtFault::NotKeys
            | JwtFault::UnknownKey
            | JwtFault::AmbiguousKey
            | JwtFault::BadSignature => {
                (ErrorCode::InvalidGrant, "the signature of the assertion cannot be verified")
            }
        };
        Self::new(code, text)
    }
}

#[cfg(test)]
mod tests;
