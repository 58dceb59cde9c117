//! Requests for the caller to send, and the answers to them.

use std::{fmt, time::Duration};

use narthex_model::Secret;
use serde_json::{Map, Value};
use url::{Url, form_urlencoded};

/// A POST request with the body `application/x-www-form-urlencoded`.
///
/// It goes with `Accept: application/json`, without which some servers answer in another format. A
/// redirect must not be followed.
#[derive(Debug)]
pub struct FormRequest {
    /// The address.
    pub url: Url,
    /// Value of the header `Authorization`, if there is one.
    pub authorization: Option<Secret>,
    /// The body.
    pub form: Secret,
}

/// A POST request with the body `application/json`. A redirect must not be followed.
#[derive(Debug, Clone, PartialEq)]
pub struct JsonRequest {
    /// The address.
    pub url: Url,
    /// The body, which has no secrets.
    pub body: Value,
}

/// A form that is being filled in.
#[derive(Default)]
pub struct Form(String);

impl Form {
    /// A form with its grant type.
    #[must_use]
    pub fn of(grant_type: &str) -> Self {
        let mut form = Self::default();
        form.add("grant_type", grant_type);
        form
    }

    /// Adds a field.
    pub fn add(&mut self, name: &str, value: &str) -> &mut Self {
        let text = std::mem::take(&mut self.0);
        let mut pairs = form_urlencoded::Serializer::new(text);
        self.0 = pairs.append_pair(name, value).finish();
        self
    }

    /// Adds a field if it has a value.
    pub fn add_some(&mut self, name: &str, value: Option<&str>) -> &mut Self {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            self.add(name, value);
        }
        self
    }

    /// The body of a request.
    #[must_use]
    pub fn finish(self) -> Secret {
        Secret::new(self.0)
    }
}

/// The outcome of a request.
#[derive(Clone, Copy)]
pub enum Reply<'a> {
    /// The server has answered, after at most a few redirects of a GET.
    Answer {
        /// The HTTP status.
        status: u16,
        /// The body, up to the caller's limit.
        body: &'a [u8],
        /// Value of the header `Retry-After`.
        retry_after: Option<Duration>,
    },
    /// There is no answer: no connection, a deadline, an oversized body, or an address that the
    /// caller's guard refuses.
    Missing,
}

impl<'a> Reply<'a> {
    /// An answer without `Retry-After`.
    #[must_use]
    pub fn of(status: u16, body: &'a [u8]) -> Self {
        Self::Answer { status, body, retry_after: None }
    }

    /// The HTTP status.
    #[must_use]
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Answer { status, .. } => Some(*status),
            Self::Missing => None,
        }
    }

    /// The delay that the server asks for.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Answer { retry_after, .. } => *retry_after,
            Self::Missing => None,
        }
    }

    /// The body; empty if there is no answer.
    pub(super) fn body(&self) -> &'a [u8] {
        match self {
            Self::Answer { body, .. } => body,
            Self::Missing => &[],
        }
    }

    /// True if the same request may succeed later: no answer, a timeout, too many requests, or a
    /// fault of the server.
    pub(super) fn is_transient(&self) -> bool {
        self.status().is_none_or(|status| matches!(status, 408 | 425 | 429 | 500..))
    }

    pub(super) fn is_success(&self) -> bool {
        matches!(self.status(), Some(200..=299))
    }

    /// The members of the body, if it is a JSON object.
    pub(super) fn json(&self) -> Option<Map<String, Value>> {
        let body = self.body();
        serde_json::from_slice(body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body)).ok()
    }
}

/// Shows no byte of the body, which may have tokens.
impl fmt::Debug for Reply<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Answer { status, body, .. } => {
                write!(f, "Answer({status}, {} bytes)", body.len())
            }
            Self::Missing => f.write_str("Missing"),
        }
    }
}

/// Shows no field, which may be a secret.
impl fmt::Debug for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Form(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_and_answers_print_no_secret() {
        let mut form = Form::of("refresh_token");
        form.add("refresh_token", "s3cret").add_some("scope", None).add_some("resource", Some(""));
        assert!(!format!("{form:?}").contains("s3cret"));
        let form = form.finish();
        assert_eq!(form.expose(), "grant_type=refresh_token&refresh_token=s3cret");
        let url = Url::parse("https://a.example/token").unwrap();
        let authorization = Some(Secret::new("Basic s3cret"));
        let request = FormRequest { url, authorization, form };
        let reply = Reply::of(200, b"{\"access_token\":\"s3cret\"}");
        assert!(!format!("{request:?} {reply:?}").contains("s3cret"));
    }

    #[test]
    fn oauth_c25_faults_of_the_server_are_transient() {
        for status in [408, 429, 500, 502, 503, 504] {
            assert!(Reply::of(status, b"").is_transient(), "{status}");
        }
        assert!(Reply::Missing.is_transient());
        for status in [200, 302, 400, 401, 403, 404, 422] {
            assert!(!Reply::of(status, b"").is_transient(), "{status}");
        }
    }
}
