//! Outcomes of the token endpoint: what the caller stores, and the answer to the client.

use serde_json::{Value, json};

use super::{
    answer::{Answer, ErrorCode, OAuthError},
    code::CodeRecord,
    family::Family,
    grant::{ACCESS_LIFE, AccessRecord, NewAccess},
    time::StoredTime,
    token::{FamilyId, Token},
};
use crate::scopes::Scopes;

/// The outcome of a request for tokens. The caller stores what it contains before it sends the
/// answer.
#[derive(Debug)]
pub enum Outcome {
    /// Tokens are issued.
    Issue(Box<Issue>),
    /// A refresh token that was just used gives an access token, and no new refresh token. The
    /// family stays as it is.
    GraceAccessOnly {
        /// The access token, to be stored.
        access: Box<AccessRecord>,
        /// The answer.
        answer: Answer,
    },
    /// A code or refresh token was used again, so that a thief may have one: the caller revokes the
    /// family with all its tokens, and audits this.
    ReuseRevokesFamily {
        /// The family.
        family: FamilyId,
        /// The error for the client.
        error: OAuthError,
    },
    /// A code was tried with a wrong proof: the caller stores it as spent.
    SpendCode {
        /// The code, to be stored.
        code: Box<CodeRecord>,
        /// The error for the client.
        error: OAuthError,
    },
    /// The request is refused, and nothing changes.
    Refuse(OAuthError),
}

/// Issued tokens.
#[derive(Debug)]
pub struct Issue {
    /// The access token, to be stored.
    pub access: AccessRecord,
    /// The family, to be stored: a new one, or the next generation of a known one. `None` if there
    /// is no refresh token.
    pub family: Option<Family>,
    /// The used code, to be stored if it was still unused; else the caller issues nothing, reads
    /// the code, and decides again.
    pub code: Option<CodeRecord>,
    /// The used assertion, to be stored in the same step as the token if it was still unused; else
    /// the caller issues nothing, and answers with [`ASSERTION_USED`].
    pub assertion: Option<UsedAssertion>,
    /// The answer.
    pub answer: Answer,
}

/// The id of an assertion that gives a token, so that it gives none again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsedAssertion {
    /// The identity provider.
    pub issuer: String,
    /// The id, unique for the issuer.
    pub jti: String,
    /// Time from which the caller may forget the id, since the assertion has expired.
    pub forget_at: StoredTime,
}

/// The refusal of an assertion that has given a token before.
pub const ASSERTION_USED: OAuthError =
    OAuthError::new(ErrorCode::InvalidGrant, "the assertion was used before");

impl Outcome {
    /// The answer to the client.
    #[must_use]
    pub fn answer(&self) -> Answer {
        match self {
            Self::Issue(issue) => issue.answer.clone(),
            Self::GraceAccessOnly { answer, .. } => answer.clone(),
            Self::ReuseRevokesFamily { error, .. }
            | Self::SpendCode { error, .. }
            | Self::Refuse(error) => error.answer(),
        }
    }
}

/// The answer with tokens (RFC 6749, 5.1). It always names the scopes, which may be fewer than the
/// client asked for.
pub(super) fn token_answer(access: &NewAccess, refresh: Option<&Token>) -> Value {
    let scopes: &Scopes = &access.record.grant.scopes;
    let mut body = json!({
        "access_token": access.token.expose(),
        "token_type": "Bearer",
        "expires_in": ACCESS_LIFE.as_secs(),
        "scope": scopes.to_string(),
    });
    if let Some(refresh) = refresh {
        body["refresh_token"] = json!(refresh.expose());
    }
    body
}
