//! Introspection of access tokens by services and clients (RFC 7662).

use std::time::SystemTime;

use narthex_model::Secret;
use serde_json::json;

use super::{
    answer::{Answer, ErrorCode, OAuthError},
    credentials::{Credentials, read_form, token_in},
    grant::AccessRecord,
};

/// A question about a token.
#[derive(Debug, Clone)]
pub struct IntrospectionRequest {
    /// The sender of the question.
    pub asker: Asker,
    /// The token. The sender's hint about its kind is not needed.
    pub token: Secret,
}

/// The sender of a question, which has to prove itself (RFC 7662, 2.1).
#[derive(Debug, Clone)]
pub enum Asker {
    /// A service, by the token in the header `Authorization`, which the caller checks.
    Service,
    /// A client, by the same proofs as at the token endpoint: see [`Credentials::prove`].
    Client(Box<Credentials>),
}

impl IntrospectionRequest {
    /// The refusal of a bearer token that is not the one of a service.
    pub const NO_SERVICE: OAuthError = OAuthError::new(
        ErrorCode::InvalidToken,
        "the bearer token is not the one of a service or an operator",
    );

    /// The refusal of a client that keeps no secret: anyone could ask in its name.
    pub const PUBLIC: OAuthError = OAuthError::new(
        ErrorCode::InvalidClient,
        "only services, and clients with a secret or a key, ask about tokens",
    );

    /// Reads a request. A bearer token in the header is that of a service, whatever the form says
    /// of a client.
    ///
    /// # Errors
    /// `invalid_request` or `invalid_client`, by the first fault.
    pub fn read(
        authorization: Option<&str>,
        content_type: Option<&str>,
        body: &[u8],
    ) -> Result<Self, OAuthError> {
        let form = read_form(content_type, body)?;
        let scheme = authorization.and_then(|header| header.split(' ').next());
        let asker = match scheme.is_some_and(|scheme| scheme.eq_ignore_ascii_case("bearer")) {
            true => Asker::Service,
            false => Asker::Client(Box::new(Credentials::read(authorization, &form)?)),
        };
        let token = token_in(&form)?;
        Ok(Self { asker, token })
    }
}

/// Answers introspection (RFC 7662, 2.2). An access token that is unknown, expired or revoked is
/// inactive, as is everything that is no access token.
///
/// The caller passes `None` for a token that the sender of the question may not see, and for one
/// that opens nothing any more.
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
    use serde_json::Value;

    use super::*;
    use crate::server::{
        grant::{ACCESS_LIFE, NewAccess},
        sample::{CLIENT, door, grant, now, user},
    };

    fn body(answer: &Answer) -> Value {
        serde_json::from_str(answer.body.as_ref().unwrap().expose()).unwrap()
    }

    fn read(authorization: Option<&str>, form: &str) -> Result<IntrospectionRequest, OAuthError> {
        let content_type = Some("application/x-www-form-urlencoded");
        IntrospectionRequest::read(authorization, content_type, form.as_bytes())
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

    #[test]
    fn door_a13_a_question_names_its_sender_and_a_token() {
        let service = read(Some("Bearer nxs_1"), "token=nxa_1&client_id=a").unwrap();
        assert!(matches!(service.asker, Asker::Service), "{service:?}");
        assert_eq!(IntrospectionRequest::NO_SERVICE.answer().status, 401);
        assert_eq!(service.token.expose(), "nxa_1");
        assert!(!format!("{service:?}").contains("nxa_1"));
        let client = read(None, &format!("token=nxa_1&client_id={CLIENT}")).unwrap();
        assert!(matches!(client.asker, Asker::Client(_)), "{client:?}");
        for (authorization, form, code, status) in [
            (None, "token=nxa_1", ErrorCode::InvalidClient, 401),
            (Some("Basic ?"), "token=nxa_1", ErrorCode::InvalidClient, 401),
            (Some("Bearer nxs_1"), "", ErrorCode::InvalidRequest, 400),
            (Some("Bearer nxs_1"), "token=a&token=b", ErrorCode::InvalidRequest, 400),
        ] {
            let error = read(authorization, form).unwrap_err();
            assert_eq!((error.code, error.answer().status), (code, status), "{form}");
        }
    }
}
