//! Decisions of the token endpoint about codes and refresh tokens.

use std::time::SystemTime;

use super::{
    answer::{Answer, ErrorCode, OAuthError},
    client::Client,
    code::{CodeRecord, CodeState},
    door::Resource,
    family::{Family, NewRefresh, Standing},
    grant::{Grant, NewAccess},
    outcome::{Issue, Outcome, token_answer},
    time::StoredTime,
    token::Token,
    token_request::{CodeRequest, RefreshRequest},
};
use crate::scopes::{OFFLINE_ACCESS, Scopes};

fn dead(description: &'static str) -> OAuthError {
    OAuthError::new(ErrorCode::InvalidGrant, description)
}

/// Decides about a code (RFC 6749, 4.1.3). `client` is proved; `record` is the record of the code's
/// hash, if there is one.
///
/// The code is bound to client, redirect URI, challenge and resource, valid for a minute, and once:
/// a second use revokes what the first gave, and a wrong proof spends the code.
#[must_use]
pub fn redeem_code(
    request: &CodeRequest,
    client: &Client,
    record: Option<&CodeRecord>,
    now: SystemTime,
) -> Outcome {
    let unknown = dead("the code is unknown or was used");
    let Some(record) = record.filter(|record| record.hash.opens_for(request.code.expose())) else {
        return Outcome::Refuse(unknown);
    };
    if record.grant.client_id != client.id {
        return Outcome::Refuse(unknown);
    }
    match &record.state {
        CodeState::Unused => {}
        CodeState::Spent => return Outcome::Refuse(unknown),
        CodeState::Used(family) => {
            let error = dead("the code was used before");
            return Outcome::ReuseRevokesFamily { family: family.clone(), error };
        }
    }
    if StoredTime::of(now) >= record.expires_at {
        return Outcome::Refuse(dead("the code has expired"));
    }
    match checked(request, record) {
        Err(error) => Outcome::SpendCode { code: Box::new(record.after(CodeState::Spent)), error },
        Ok(()) => first_tokens(client, record, now).unwrap_or_else(Outcome::Refuse),
    }
}

/// Checks all that a code is bound to besides its client.
fn checked(request: &CodeRequest, record: &CodeRecord) -> Result<(), OAuthError> {
    if !record.challenge.opens_for(request.verifier.expose()) {
        return Err(dead("the code_verifier does not fit the code_challenge"));
    }
    let is_same = |uri: &String| uri == record.redirect_uri.as_str();
    if !request.redirect_uri.as_ref().is_none_or(is_same) {
        return Err(dead("the redirect_uri differs from that of the authorization request"));
    }
    check_resource(request.resource.as_ref(), &record.grant)
}

fn check_resource(named: Option<&Resource>, grant: &Grant) -> Result<(), OAuthError> {
    match named.is_none_or(|named| *named == grant.resource) {
        true => Ok(()),
        false => {
            let text = "the resource differs from that of the authorization request";
            Err(OAuthError::new(ErrorCode::InvalidTarget, text))
        }
    }
}

/// The tokens for a code. Refresh tokens are given with and without `offline_access`, since most
/// clients do not ask for it.
fn first_tokens(
    client: &Client,
    record: &CodeRecord,
    now: SystemTime,
) -> Result<Outcome, OAuthError> {
    let grant = record.grant.clone();
    let NewRefresh { family, token } = Family::begin(grant.clone(), client.is_public(), now)?;
    let access = NewAccess::generate(grant, Some(family.id.clone()), now)?;
    let code = Some(record.after(CodeState::Used(family.id.clone())));
    Ok(issue(access, Some(family), Some(&token), code))
}

fn issue(
    access: NewAccess,
    family: Option<Family>,
    refresh: Option<&Token>,
    code: Option<CodeRecord>,
) -> Outcome {
    let answer = Answer::json(200, &token_answer(&access, refresh));
    Outcome::Issue(Box::new(Issue { access: access.record, family, code, assertion: None, answer }))
}

/// Decides about a refresh token (RFC 6749, 6; OAuth 2.1, 4.3). `client` is proved; `family` is the
/// family that the token names, if there is one.
///
/// A public client gets a new refresh token at each use. The one that was just used gives access
/// tokens for 30 seconds; after that, its use revokes the family. A client with a secret keeps its
/// refresh token. Scopes can become fewer for the new access token, and the resource stays.
#[must_use]
pub fn refresh(
    request: &RefreshRequest,
    client: &Client,
    family: Option<&Family>,
    now: SystemTime,
) -> Outcome {
    let ended = dead("the refresh token is unknown, has expired or was revoked");
    let Some(family) = family.filter(|family| family.grant.client_id == client.id) else {
        return Outcome::Refuse(ended);
    };
    let standing = family.standing(request.token.expose(), now);
    match standing {
        Standing::Ended => return Outcome::Refuse(ended),
        Standing::Used => {
            let error = dead("the refresh token was used before");
            return Outcome::ReuseRevokesFamily { family: family.id.clone(), error };
        }
        Standing::Current | Standing::JustUsed => {}
    }
    let decided = narrowed(request, &family.grant).and_then(|grant| match standing {
        Standing::Current => next_tokens(family, grant, now),
        Standing::JustUsed | Standing::Used | Standing::Ended => grace(family, grant, now),
    });
    decided.unwrap_or_else(Outcome::Refuse)
}

/// The rights of the new access token, which are at most those that the human gave.
fn narrowed(request: &RefreshRequest, grant: &Grant) -> Result<Grant, OAuthError> {
    check_resource(request.resource.as_ref(), grant)?;
    let Some(asked) = &request.scopes else { return Ok(grant.clone()) };
    let scopes = grant.scopes.common(asked);
    // Clients that got no `offline_access` ask for it here all the same.
    let wanted: Scopes = asked.clone().without(OFFLINE_ACCESS);
    if !grant.scopes.contains_all(&wanted) || scopes.is_empty() {
        let text = "the scope is more than was granted";
        return Err(OAuthError::new(ErrorCode::InvalidScope, text));
    }
    Ok(Grant { scopes, ..grant.clone() })
}

fn next_tokens(family: &Family, grant: Grant, now: SystemTime) -> Result<Outcome, OAuthError> {
    let access = NewAccess::generate(grant, Some(family.id.clone()), now)?;
    if !family.is_rotating {
        return Ok(issue(access, Some(family.prolonged(now)), None, None));
    }
    let NewRefresh { family, token } = family.rotated(now)?;
    Ok(issue(access, Some(family), Some(&token), None))
}

fn grace(family: &Family, grant: Grant, now: SystemTime) -> Result<Outcome, OAuthError> {
    let access = NewAccess::generate(grant, Some(family.id.clone()), now)?;
    let answer = Answer::json(200, &token_answer(&access, None));
    Ok(Outcome::GraceAccessOnly { access: Box::new(access.record), answer })
}

#[cfg(test)]
mod tests;
