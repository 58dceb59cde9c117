//! Answers of the authorization server to programs, and the errors in them.

use narthex_model::Secret;
use serde_json::{Value, json};

/// Headers of every answer, which no cache may keep and any web page may read: browsers send no
/// cookies to these endpoints.
const HEADERS: [Header; 4] = [
    Header { name: "content-type", value: "application/json" },
    Header { name: "cache-control", value: "no-store" },
    Header { name: "pragma", value: "no-cache" },
    Header { name: "access-control-allow-origin", value: "*" },
];

/// An answer, ready to be sent. Its body may contain tokens, and is not printed.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// The headers.
    pub headers: Vec<Header>,
    /// The body; `None` for an empty one.
    pub body: Option<Secret>,
}

/// A header of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// The name, in lower case.
    pub name: &'static str,
    /// The value.
    pub value: &'static str,
}

/// The code of an error (RFC 6749, 4.1.2.1 and 5.2; RFC 6750; RFC 7009; RFC 7591, 3.2.2; RFC 8707;
/// OpenID Connect Core, 3.1.2.6).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorCode {
    /// A parameter is missing, repeated, or has a wrong form.
    InvalidRequest,
    /// The client is unknown, or did not prove itself.
    InvalidClient,
    /// The bearer token of a service is not valid (RFC 6750, 3.1).
    InvalidToken,
    /// The code, refresh token or assertion is not valid, or not for this client.
    InvalidGrant,
    /// This client may not use this grant.
    UnauthorizedClient,
    /// The type of grant is not supported.
    UnsupportedGrantType,
    /// The type of response is not supported.
    UnsupportedResponseType,
    /// The scope is malformed, unknown, or more than was granted.
    InvalidScope,
    /// The resource is not one of this server, or not the granted one.
    InvalidTarget,
    /// The human refused.
    AccessDenied,
    /// The human has to sign in, and the client wants no page.
    LoginRequired,
    /// The human has to consent, and the client wants no page.
    ConsentRequired,
    /// The parameter `request` is not supported.
    RequestNotSupported,
    /// The parameter `request_uri` is not supported.
    RequestUriNotSupported,
    /// A redirect URI of a registration is not allowed.
    InvalidRedirectUri,
    /// Another field of a registration is not allowed.
    InvalidClientMetadata,
    /// A limit is reached; later it may work.
    TemporarilyUnavailable,
    /// A fault of the server.
    ServerError,
}

/// An error, as a client gets it. The description names no secret and nothing of a request's
/// values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{}: {description}", code.as_str())]
pub struct OAuthError {
    /// The code, which programs read.
    pub code: ErrorCode,
    /// The description, which people read. It has no quotes or backslashes (RFC 6749, 5.2).
    pub description: &'static str,
}

impl ErrorCode {
    /// The code as it is written in answers.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::InvalidRequest => "invalid_request",
            Self::InvalidClient => "invalid_client",
            Self::InvalidToken => "invalid_token",
            Self::InvalidGrant => "invalid_grant",
            Self::UnauthorizedClient => "unauthorized_client",
            Self::UnsupportedGrantType => "unsupported_grant_type",
            Self::UnsupportedResponseType => "unsupported_response_type",
            Self::InvalidScope => "invalid_scope",
            Self::InvalidTarget => "invalid_target",
            Self::AccessDenied => "access_denied",
            Self::LoginRequired => "login_required",
            Self::ConsentRequired => "consent_required",
            Self::RequestNotSupported => "request_not_supported",
            Self::RequestUriNotSupported => "request_uri_not_supported",
            Self::InvalidRedirectUri => "invalid_redirect_uri",
            Self::InvalidClientMetadata => "invalid_client_metadata",
            Self::TemporarilyUnavailable => "temporarily_unavailable",
            Self::ServerError => "server_error",
        }
    }

    /// The HTTP status of an answer with this code.
    #[must_use]
    pub fn status(self) -> u16 {
        match self {
            Self::InvalidClient | Self::InvalidToken => 401,
            Self::TemporarilyUnavailable => 429,
            Self::ServerError => 500,
            Self::InvalidRequest
            | Self::InvalidGrant
            | Self::UnauthorizedClient
            | Self::UnsupportedGrantType
            | Self::UnsupportedResponseType
            | Self::InvalidScope
            | Self::InvalidTarget
            | Self::AccessDenied
            | Self::LoginRequired
            | Self::ConsentRequired
            | Self::RequestNotSupported
            | Self::RequestUriNotSupported
            | Self::InvalidRedirectUri
            | Self::InvalidClientMetadata => 400,
        }
    }
}

impl OAuthError {
    /// An error with a description.
    #[must_use]
    pub const fn new(code: ErrorCode, description: &'static str) -> Self {
        Self { code, description }
    }

    /// The error for a system that gives no random bytes.
    pub(super) const NO_RANDOMNESS: Self =
        Self::new(ErrorCode::ServerError, "the operating system gives no random bytes");

    /// The error as an answer (RFC 6749, 5.2).
    #[must_use]
    pub fn answer(self) -> Answer {
        let body = json!({
            "error": self.code.as_str(),
            "error_description": self.description,
        });
        let mut answer = Answer::json(self.code.status(), &body);
        // HTTP demands a challenge with 401, and RFC 6749 the scheme that the client used.
        let challenge = match self.code {
            ErrorCode::InvalidClient => Some("Basic realm=\"narthex\""),
            ErrorCode::InvalidToken => Some("Bearer realm=\"narthex\", error=\"invalid_token\""),
            _ => None,
        };
        let header = challenge.map(|value| Header { name: "www-authenticate", value });
        answer.headers.extend(header);
        answer
    }
}

impl Answer {
    /// An answer with JSON that no cache may keep.
    #[must_use]
    pub fn json(status: u16, body: &Value) -> Self {
        Self { status, headers: HEADERS.to_vec(), body: Some(Secret::new(body.to_string())) }
    }

    /// An answer without a body, which says that all is well.
    #[must_use]
    pub fn empty() -> Self {
        Self { status: 200, headers: HEADERS[1..].to_vec(), body: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn door_a8_errors_have_their_status_and_are_not_cached() {
        let error = |code| OAuthError::new(code, "because");
        let answer = error(ErrorCode::InvalidGrant).answer();
        assert_eq!(answer.status, 400);
        let body: Value = serde_json::from_str(answer.body.unwrap().expose()).unwrap();
        assert_eq!(body, json!({"error": "invalid_grant", "error_description": "because"}));
        let has = |answer: &Answer, name| answer.headers.iter().any(|header| header.name == name);
        let refused = error(ErrorCode::InvalidClient).answer();
        assert_eq!(refused.status, 401);
        assert!(has(&refused, "www-authenticate"));
        let no_store = Header { name: "cache-control", value: "no-store" };
        for answer in [refused, Answer::empty(), error(ErrorCode::InvalidScope).answer()] {
            assert!(answer.headers.contains(&no_store));
        }
        assert!(!has(&Answer::empty(), "content-type"));
        assert_eq!(error(ErrorCode::TemporarilyUnavailable).answer().status, 429);
    }

    #[test]
    fn answers_do_not_print_their_tokens() {
        let answer = Answer::json(200, &json!({"access_token": "hunter2"}));
        assert!(!format!("{answer:?}").contains("hunter2"));
    }
}
