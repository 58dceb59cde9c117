//! The bearer token of a request, and the challenge for a request without a good one (RFC 6750).

use narthex_model::Secret;
use url::form_urlencoded;

use super::door::{Door, DoorPath};
use crate::{challenge::Bearer, scopes::Scopes};

/// Headers beside a challenge, so that web pages can read it.
pub const CHALLENGE_HEADERS: [(&str, &str); 1] =
    [("access-control-expose-headers", "WWW-Authenticate")];

/// The reason why a request at the door is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// There is no token.
    #[error("no access token was sent")]
    NoToken,
    /// The token has not the form of one, or it is unknown, expired, revoked, or for another
    /// resource. The text is a constant, so that it is safe in a header.
    #[error("{0}")]
    BadToken(&'static str),
    /// The token is in the query, where logs and browsers keep it.
    #[error("access tokens are taken from the header Authorization alone")]
    TokenInQuery,
    /// The token lacks a scope of the operation.
    #[error("the operation needs more scopes")]
    MoreScopes,
}

/// A refusal as the status and the header `WWW-Authenticate`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChallengeAnswer {
    /// The HTTP status: 400, 401 or 403.
    pub status: u16,
    /// The value of the header `WWW-Authenticate`.
    pub header: String,
}

/// The token in the header `Authorization` of a request; `None` without one, or with another
/// scheme.
///
/// # Errors
/// When the token has not the form of one (RFC 6750, 2.1), or the query has a token.
pub fn bearer_token(
    authorization: Option<&str>,
    query: Option<&str>,
) -> Result<Option<Secret>, Refusal> {
    let mut names = form_urlencoded::parse(query.unwrap_or_default().as_bytes());
    if names.any(|(name, _)| name == "access_token") {
        return Err(Refusal::TokenInQuery);
    }
    let Some(value) = authorization else { return Ok(None) };
    let (scheme, token) = value.split_once(' ').unwrap_or((value, ""));
    if !scheme.eq_ignore_ascii_case("bearer") {
        return Ok(None);
    }
    let token = token.trim_matches(' ');
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || b"-._~+/=".contains(&b);
    match !token.is_empty() && token.bytes().all(is_plain) {
        true => Ok(Some(Secret::new(token))),
        false => Err(Refusal::BadToken("the access token has not the form of one")),
    }
}

impl Refusal {
    /// The challenge at a path of the door (RFC 6750, 3; RFC 9728, 5.1).
    ///
    /// `scopes` are the scopes of ordinary work; for [`Refusal::MoreScopes`], all scopes of the
    /// operation, also those that the token has.
    #[must_use]
    pub fn challenge(self, door: &Door, path: &DoorPath, scopes: &Scopes) -> ChallengeAnswer {
        let (status, error) = match self {
            // An error would tell a client that it had sent a token (RFC 6750, 3.1).
            Self::NoToken => (401, None),
            Self::BadToken(_) => (401, Some("invalid_token")),
            Self::TokenInQuery => (400, Some("invalid_request")),
            Self::MoreScopes => (403, Some("insufficient_scope")),
        };
        let bearer = Bearer {
            resource_metadata: Some(door.metadata_url(path)),
            scope: Some(scopes.clone()),
            error: error.map(str::to_owned),
        };
        let header = bearer.header(Some(&self.to_string()));
        ChallengeAnswer { status, header }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn challenge(refusal: Refusal, scopes: &str) -> ChallengeAnswer {
        let door = Door::new("https://narthex.example").unwrap();
        let path = DoorPath::parse("/mcp/git").unwrap();
        refusal.challenge(&door, &path, &Scopes::read(scopes).unwrap())
    }

    const METADATA: &str = "resource_metadata=\
        \"https://narthex.example/.well-known/oauth-protected-resource/mcp/git\"";

    #[test]
    fn door_r1_a_request_without_a_token_is_told_where_to_get_one() {
        let found = challenge(Refusal::NoToken, "mcp");
        assert_eq!(found.status, 401);
        assert_eq!(found.header, format!("Bearer {METADATA}, scope=\"mcp\""));
        assert_eq!(challenge(Refusal::NoToken, "").header, format!("Bearer {METADATA}"));
    }

    #[test]
    fn door_r1_a_bad_token_is_named_as_the_error() {
        let found = challenge(Refusal::BadToken("it has expired"), "mcp");
        let error = "error=\"invalid_token\", error_description=\"it has expired\"";
        assert_eq!(found.header, format!("Bearer {METADATA}, scope=\"mcp\", {error}"));
        assert_eq!(found.status, 401);
        assert_eq!(CHALLENGE_HEADERS[0].1, "WWW-Authenticate");
    }

    #[test]
    fn door_r6_more_scopes_are_all_scopes_of_the_operation() {
        let found = challenge(Refusal::MoreScopes, "mcp.write mcp");
        assert_eq!(found.status, 403);
        assert!(found.header.contains("scope=\"mcp mcp.write\", error=\"insufficient_scope\""));
    }

    #[test]
    fn door_r5_tokens_are_taken_from_the_header_alone() {
        let token = |authorization, query| {
            bearer_token(authorization, query).map(|token| token.map(|t| t.expose().to_owned()))
        };
        assert_eq!(token(None, None), Ok(None));
        assert_eq!(token(Some("Basic abc"), None), Ok(None));
        assert_eq!(token(Some("bearer nxa_1"), Some("a=1")), Ok(Some("nxa_1".to_owned())));
        for query in ["access_token=nxa_1", "a=1&access%5Ftoken="] {
            let both = token(Some("Bearer nxa_1"), Some(query));
            assert_eq!(both, Err(Refusal::TokenInQuery), "{query}");
        }
        assert_eq!(challenge(Refusal::TokenInQuery, "").status, 400);
        for bad in ["Bearer", "Bearer ", "Bearer a b", "Bearer a\"b"] {
            assert!(matches!(token(Some(bad), None), Err(Refusal::BadToken(_))), "{bad}");
        }
    }
}
