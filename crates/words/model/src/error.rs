//! The kind of a failure, and the side of its cause: the words of every error of the project.

use std::{borrow::Cow, fmt};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::model_text::{REFUSAL_TEXT_MAX, fitting, for_models, value_for_models};

/// The kind of a failure. Each door turns this into its own numbers by one table (D24).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ErrorKind {
    /// The input is wrong and will stay wrong.
    Invalid,
    /// No credential, or one that proves nothing.
    Unauthenticated,
    /// A known principal may not do this.
    Denied,
    /// Absent, or hidden from this caller: the two look alike (D5).
    NotFound,
    /// The request contradicts the present state.
    Conflict,
    /// A limit is reached; later it may work.
    Exhausted,
    /// Something that is needed cannot be reached now.
    Unavailable,
    /// A deadline passed.
    Timeout,
    /// A fault of our own.
    Bug,
}

impl ErrorKind {
    /// Every kind, for tables that must be complete.
    pub const ALL: [Self; 9] = crate::every![
        Invalid,
        Unauthenticated,
        Denied,
        NotFound,
        Conflict,
        Exhausted,
        Unavailable,
        Timeout,
        Bug
    ];

    /// The kind's spelling in JSON, logs and metrics.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Invalid => "invalid",
            Self::Unauthenticated => "unauthenticated",
            Self::Denied => "denied",
            Self::NotFound => "not_found",
            Self::Conflict => "conflict",
            Self::Exhausted => "exhausted",
            Self::Unavailable => "unavailable",
            Self::Timeout => "timeout",
            Self::Bug => "bug",
        }
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Whose side a failure was on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Side {
    /// The caller's.
    Downstream,
    /// The MCP server's.
    Upstream,
    /// Our own.
    Own,
}

/// Why a `tools/call` failed, as the model sees it (decision D16).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallErrorKind {
    /// A human must allow this tool first.
    PermissionRequired,
    /// No usable credential for the server.
    AuthUnavailable,
    /// The server could not be reached, or the connection broke.
    TransportError,
    /// The call's deadline passed; the gateway sent the server a cancellation.
    Timeout,
    /// The server answered that the call failed.
    ServerError,
    /// There is no such tool for this caller.
    ToolNotFound,
    /// The server is disabled.
    ServerDisabled,
    /// A secret that the server needs was cleared.
    SecretCleared,
    /// A rate, size, concurrency or quota limit.
    LimitExceeded,
    /// The arguments do not fit.
    InvalidArguments,
    /// The tool's definition changed since it was accepted.
    DefinitionChanged,
}

/// The kind of a call's failure by this kind, where no more specific one is known.
impl From<ErrorKind> for CallErrorKind {
    fn from(kind: ErrorKind) -> Self {
        match kind {
            ErrorKind::Invalid | ErrorKind::NotFound | ErrorKind::Conflict => {
                Self::InvalidArguments
            }
            ErrorKind::Denied | ErrorKind::Unauthenticated => Self::PermissionRequired,
            ErrorKind::Exhausted => Self::LimitExceeded,
            ErrorKind::Timeout => Self::Timeout,
            ErrorKind::Unavailable | ErrorKind::Bug => Self::ServerError,
        }
    }
}

impl CallErrorKind {
    /// Every kind, for tables and bounded metric labels.
    pub const ALL: [Self; 11] = [
        Self::PermissionRequired,
        Self::AuthUnavailable,
        Self::TransportError,
        Self::Timeout,
        Self::ServerError,
        Self::ToolNotFound,
        Self::ServerDisabled,
        Self::SecretCleared,
        Self::LimitExceeded,
        Self::InvalidArguments,
        Self::DefinitionChanged,
    ];

    /// The kind's spelling in JSON, logs and metrics.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::PermissionRequired => "permission_required",
            Self::AuthUnavailable => "auth_unavailable",
            Self::TransportError => "transport_error",
            Self::Timeout => "timeout",
            Self::ServerError => "server_error",
            Self::ToolNotFound => "tool_not_found",
            Self::ServerDisabled => "server_disabled",
            Self::SecretCleared => "secret_cleared",
            Self::LimitExceeded => "limit_exceeded",
            Self::InvalidArguments => "invalid_arguments",
            Self::DefinitionChanged => "definition_changed",
        }
    }
}

impl fmt::Display for CallErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A failed call or a failed server, in the one shape used on rows and on calls (E48, D16).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CallError {
    /// The kind of the failure.
    pub kind: CallErrorKind,
    /// The failure and its remedy, for a person. Never a secret.
    pub message: String,
    /// More, for a program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
}

impl CallError {
    /// A failure without details.
    #[must_use]
    pub fn new(kind: CallErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), details: None }
    }

    /// The error as a model may see it: without remedies that only an operator has (D28).
    #[must_use]
    pub fn for_models(mut self) -> Self {
        if let Cow::Owned(text) = for_models(&self.message) {
            self.message = text;
        }
        let members = self.details.as_mut().and_then(Value::as_object_mut);
        for (_, member) in members.into_iter().flatten().filter(|(name, _)| is_read(name)) {
            value_for_models(member);
        }
        self
    }

    /// The text of the result that a model reads: the message, and where a grant is wanting, how to
    /// ask a human for it; that has [`REFUSAL_TEXT_MAX`] bytes at most.
    #[must_use]
    pub fn text(&self) -> Cow<'_, str> {
        let (message, member) = (&self.message, |name| self.details.as_ref()?.get(name));
        if self.kind == CallErrorKind::AuthUnavailable
            && let Some(address) = member(AUTH_URL).and_then(Value::as_str)
        {
            return Cow::Owned(format!("{message}; a person signs in at {address}"));
        }
        if self.kind != CallErrorKind::PermissionRequired {
            return Cow::Borrowed(&self.message);
        }
        let call = member(ASK).map(|ask| &ask["calls"][0]);
        let Some(tool) = call.and_then(|call| call["name"].as_str()) else {
            return Cow::Owned(fitting([message.clone()], REFUSAL_TEXT_MAX));
        };
        let is_one = member(ASK).is_some_and(|ask| ask["calls"][1].is_null());
        let details = call.map(|call| &call["arguments"]["details"]);
        let details = details.filter(|details| is_one && details.is_object());
        let of = if tool.starts_with("mcp__") { "" } else { " of the server `narthex`" };
        let ask = |with: &str| {
            format!(
                "{message}. Ask a human with `{tool}`{of}{with}; once it is granted, make this \
                 call again"
            )
        };
        let grant = call.and_then(|call| call["arguments"]["grant_type"].as_str());
        let grant = grant.unwrap_or("tool_scope");
        let with = details.map(|details| format!(" (grant_type {grant}, details {details})"));
        let short = format!("A human must allow this. Ask with `{tool}`");
        Cow::Owned(fitting([ask(&with.unwrap_or_default()), ask(""), short], REFUSAL_TEXT_MAX))
    }
}

/// The member of `details` with the way to ask for a grant.
const ASK: &str = "ask";
/// The member of details with the address of a sign-in.
pub(crate) const AUTH_URL: &str = "auth_url";

/// True if a member of details has texts of narthex. The names in the calls that ask are those of
/// servers, and the address of a sign-in is that of an authorization server.
fn is_read(member: &str) -> bool {
    member != ASK && member != AUTH_URL
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind, self.message)
    }
}

impl std::error::Error for CallError {}

/// The message of an error with those of its causes that it does not repeat itself.
#[must_use]
pub fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        source = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// D16: programs know these words, on the wire and in logs.
    #[test]
    fn d16_call_error_kinds_have_the_same_text_printed_and_serialized() {
        let words = [
            "permission_required",
            "auth_unavailable",
            "transport_error",
            "timeout",
            "server_error",
            "tool_not_found",
            "server_disabled",
            "secret_cleared",
            "limit_exceeded",
            "invalid_arguments",
            "definition_changed",
        ];
        assert_eq!(CallErrorKind::ALL.map(CallErrorKind::as_str), words);
        for (kind, word) in CallErrorKind::ALL.into_iter().zip(words) {
            assert_eq!(serde_json::to_value(kind).unwrap(), word);
        }
    }

    /// E48: an error is an object of kind, message and details, and details are absent where there
    /// are none.
    #[test]
    fn e48_an_error_has_one_shape() {
        let bare = CallError::new(CallErrorKind::Timeout, "no answer");
        let full = CallError { details: Some(json!({ "code": 7 })), ..bare.clone() };
        for (error, shape) in [
            (bare, json!({ "kind": "timeout", "message": "no answer" })),
            (full, json!({ "kind": "timeout", "message": "no answer", "details": { "code": 7 } })),
        ] {
            assert_eq!(serde_json::to_value(&error).unwrap(), shape);
            assert_eq!(serde_json::from_value::<CallError>(shape).unwrap(), error);
        }
    }

    /// D28: a refusal names in one short text the missing grant and the way to ask for it, with any
    /// names in them; programs find the calls beside it.
    #[test]
    fn d28_a_refusal_is_one_short_text() {
        let refused = |name: &str, scopes: &[&str]| {
            let call = |scope: &&str| {
                let details = json!({ "scope": scope, "server": "git", "tool": name });
                json!({
                    "name": "mcp__narthex__request_grant",
                    "arguments": { "details": details },
                })
            };
            let calls: Vec<_> = scopes.iter().map(call).collect();
            let details = json!({ "ask": { "server": "narthex", "calls": calls } });
            let message = format!("`{name}` requires `{}`", scopes.join("`, `"));
            CallError {
                details: Some(details),
                ..CallError::new(CallErrorKind::PermissionRequired, message)
            }
        };
        let one = refused("push", &["git.write"]);
        let text = one.text();
        for told in ["`push`", "`git.write`", "mcp__narthex__request_grant", r#""tool":"push""#] {
            assert!(text.contains(told), "{text}");
        }
        let two = refused("push", &["git.write", "git.read"]);
        assert!(two.text().contains("`git.read`") && !two.text().contains("details"), "{two:?}");
        for name in ["x".repeat(200), "é".repeat(3000)] {
            let error = refused(&name, &["a", "b"]);
            let text = error.text();
            assert!(text.len() <= REFUSAL_TEXT_MAX && text.contains("request_grant"), "{text}");
        }
        let forbidden = CallError::new(CallErrorKind::PermissionRequired, "é".repeat(400));
        assert!(forbidden.text().len() <= REFUSAL_TEXT_MAX, "{forbidden:?}");
        let other = CallError::new(CallErrorKind::Timeout, "é".repeat(400));
        assert_eq!(other.text(), other.message);
    }
}
