//! Outcomes of the token endpoint: what the caller stores, and the answer to the client.

use std::time::SystemTime;

use serde_json::{Value, json};

use super::{
    answer::{Answer, OAuthError},
    code::CodeRecord,
    family::Family,
    grant::{ACCESS_LIFE, AccessRecord, NewAccess},
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
    /// The answer.
    pub answer: Answer,
}

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

/// Answers introspection by a service (RFC 7662, 2.2). An access token that is unknown, expired or
/// revoked is inactive, as is everything that is no access token.
///
/// The caller lets services in alone, and passes `None` for a token whose family has ended.
#[must_use]
pub fn introspection(record: Option<&AccessRecord>, issuer: &str, now: SystemTime) -> Answer {
    let Some(record) = record.filter(|record| record.is_valid(now)) else {
        return Answer::json(200, &json!({"active": false}));
    };
    let body = json!({
        "active": true,
        "iss": issuer,
        "sub": record.grant.user,
        "aud": record.grant.resource,
        "client_id": record.grant.client_id,
        "scope": record.grant.scopes.to_string(),
        "token_type": "Bearer",
        "iat": record.issued_at,
        "exp": record.expires_at,
    });
    Answer::json(200, &body)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::sample::{door, grant, now, user};

    fn body(answer: &Answer) -> Value {
        serde_json::from_str(answer.body.as_ref().unwrap().expose()).unwrap()
    }

    #[test]
    fn door_a13_services_look_into_access_tokens() {
        let record = NewAccess::generate(grant(), None, now()).unwrap().record;
        let found = body(&introspection(Some(&record), door().issuer(), now()));
        let wanted = json!({
            "active": true,
            "iss": "https://narthex.example",
            "sub": user(1).as_str(),
            "aud": "https://narthex.example/mcp",
            "client_id": "dcr-app",
            "scope": "mcp mcp.write offline_access",
            "token_type": "Bearer",
            "iat": 2_000_000_000,
            "exp": 2_000_003_600,
        });
        assert_eq!(found, wanted);
    }

    #[test]
    fn door_a13_other_tokens_are_inactive() {
        let record = NewAccess::generate(grant(), None, now()).unwrap().record;
        for (record, now) in [(None, now()), (Some(&record), now() + ACCESS_LIFE)] {
            let answer = introspection(record, door().issuer(), now);
            assert_eq!((answer.status, body(&answer)), (200, json!({"active": false})));
        }
    }
}
