//! Messages and failures that come back from a server.

use std::{fmt, sync::Arc, time::Duration};

use narthex_http_client::ClientError;
use narthex_model::{CallErrorKind, ErrorKind, HttpAnswer, Side, WantedSignIn, command::narthex};
use narthex_wire::{Message, Redactor};
use serde_json::Value;

use crate::{CredentialFault, RetryAfter};

/// One message of a server while it works on a request.
#[derive(Debug)]
pub enum Frame {
    /// Progress, log messages and other notifications that belong to the request.
    Notification(Message),
    /// The server asks the client a question, because of the request (legacy only).
    Request(Message),
    /// The server closed its stream before the answer, and wants the client to reconnect later. The
    /// link reconnects. Carries the delay that the server named, if any.
    Break {
        /// The delay in milliseconds.
        retry_ms: Option<u64>,
    },
    /// The result or error, which is the last frame.
    Answer(Message),
}

impl Frame {
    /// The frame with a changed message.
    pub(crate) fn map(self, change: impl FnOnce(Message) -> Message) -> Self {
        match self {
            Self::Notification(message) => Self::Notification(change(message)),
            Self::Request(message) => Self::Request(change(message)),
            Self::Answer(message) => Self::Answer(change(message)),
            Self::Break { retry_ms } => Self::Break { retry_ms },
        }
    }
}

/// A message that a server sends outside of any request.
#[derive(Debug)]
pub enum LinkEvent {
    /// List changes, resource updates, log messages.
    Notification(Message),
    /// Sampling, elicitation and roots requests that the link cannot assign to a client's request.
    Request(Message),
    /// The link has ended for good.
    Closed(Arc<str>),
}

/// The reason why narthex ends a server's link while it works (D10).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CutReason {
    /// A person has disabled the server.
    #[error("the server was disabled")]
    SwitchedOff,
    /// A person has cleared a secret that the server had received.
    #[error("{0}")]
    SecretCleared(ClearedSecret),
}

/// A secret of a workspace that was cleared while a server held it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClearedSecret {
    /// The workspace's id.
    pub workspace: Arc<str>,
    /// The secret's name in the workspace.
    pub name: Arc<str>,
    /// True once the secret is set again. The server does not get the new value (D10).
    pub is_set_again: bool,
}

/// Shows the event and the next step, which is another one once the secret is set again.
impl fmt::Display for ClearedSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = &self.name;
        write!(
            f,
            "the secret `{name}` was cleared, which ended this server for the rest of the run"
        )?;
        match self.is_set_again {
            true => f.write_str("; it is set again: create a new run, which gets the new value"),
            false => {
                let set = narthex("secrets set {}", &[name]).in_workspace(&self.workspace);
                write!(f, "; create a new run once `{set}` has set it again")
            }
        }
    }
}

impl CutReason {
    /// The kind of a call that failed for this reason (D16).
    #[must_use]
    pub fn call_kind(&self) -> CallErrorKind {
        match self {
            Self::SwitchedOff => CallErrorKind::ServerDisabled,
            Self::SecretCleared(_) => CallErrorKind::SecretCleared,
        }
    }
}

/// The status of too many requests.
const TOO_MANY: u16 = 429;

/// The reason why a request got no answer.
#[derive(Debug, Clone, thiserror::Error)]
pub enum LinkError {
    /// The link has ended: the process died, or the stream broke.
    #[error("the connection to the server has ended: {0}")]
    Closed(Arc<str>),
    /// The program ended before it read a byte of the request.
    #[error("the server ended before it read the request: {0}")]
    Unread(Arc<str>),
    /// A person has disabled the server, or cleared one of the server's secrets.
    #[error("{0}")]
    Cut(CutReason),
    /// The server does not know the session any more; it did not handle the request.
    #[error("the server ended the session")]
    SessionEnded,
    /// The answer broke off and could not be resumed: the server had accepted the request.
    #[error("the answer ended too early{}", unresumed(.0))]
    BrokenOff(Arc<LinkError>),
    /// The HTTP exchange failed before MCP.
    #[error("{0}")]
    Client(#[source] Arc<ClientError>),
    /// An HTTP status without a JSON-RPC body. Also 429, or 503 with a time, whatever the body is:
    /// the server takes no requests now.
    #[error(
        "the server answered HTTP {status}{}{}{}",
        if *.status == TOO_MANY { ", too many requests" } else { "" },
        hint(.text),
        again(.retry_after.as_ref())
    )]
    Status {
        /// The status code.
        status: u16,
        /// The start of the body, if it is text, or the message of its JSON-RPC error.
        text: String,
        /// The time after which the server takes requests again, if it names one.
        retry_after: Option<RetryAfter>,
        /// The code of the JSON-RPC error in the body.
        code: Option<i64>,
    },
    /// The server refuses the credential, or asks for one.
    #[error("the server refuses the credential (HTTP {status})")]
    AuthRejected {
        /// The status: 401 or 403.
        status: u16,
    },
    /// The server asks for a credential that cannot be had, or for a better one. It did not carry
    /// the request out.
    #[error("{fault}")]
    SignIn {
        /// The reason.
        fault: Arc<CredentialFault>,
        /// True if the credential is valid, and only this operation needs further scopes.
        is_step_up: bool,
        /// True if the credential is the grant of one human.
        has_holder: bool,
    },
    /// The server sent a text that is no acceptable MCP message.
    #[error("the server sent an unusable answer: {0}")]
    Protocol(String),
    /// The server answered a request of narthex itself with an error.
    #[error("the server answered with error {code}: {text}")]
    Refused {
        /// The JSON-RPC code.
        code: i64,
        /// The server's error text.
        text: String,
    },
    /// A deadline of narthex passed; the number is its length in milliseconds.
    #[error("no answer within {0} ms")]
    Deadline(u128),
    /// The request has no valid form as HTTP headers.
    #[error("the request cannot be sent: {0}")]
    Request(String),
}

/// Text for an answer that could not be resumed. An unreachable server was reachable when it took
/// the request, so the text says "any more".
fn unresumed(error: &LinkError) -> String {
    match error.is_unsent() {
        true => ", and the server cannot be reached any more".to_owned(),
        false => format!(" and cannot be resumed: {error}"),
    }
}

fn hint(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!(": {text}") }
}

fn again(retry_after: Option<&RetryAfter>) -> String {
    retry_after.map(|when| format!("; try again after {when}")).unwrap_or_default()
}

impl LinkError {
    /// A status without a body, a retry time or a code.
    pub(crate) fn status(status: u16) -> Self {
        Self::Status { status, text: String::new(), retry_after: None, code: None }
    }

    /// Kind of the failure.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Status { status: TOO_MANY, .. } => ErrorKind::Exhausted,
            Self::Closed(_)
            | Self::Unread(_)
            | Self::SessionEnded
            | Self::Cut(_)
            | Self::Status { .. } => ErrorKind::Unavailable,
            Self::BrokenOff(error) => error.kind(),
            Self::Client(error) => error.kind(),
            Self::AuthRejected { .. } => ErrorKind::Unauthenticated,
            Self::SignIn { fault, .. } => match &**fault {
                CredentialFault::Unavailable { .. } => ErrorKind::Unavailable,
                CredentialFault::NeedsConsent { .. }
                | CredentialFault::Unusable { .. }
                | CredentialFault::Rejected { .. } => ErrorKind::Unauthenticated,
            },
            Self::Protocol(_) | Self::Refused { .. } => ErrorKind::Unavailable,
            Self::Deadline(_) => ErrorKind::Timeout,
            Self::Request(_) => ErrorKind::Invalid,
        }
    }

    /// The side that caused the failure.
    #[must_use]
    pub fn side(&self) -> Side {
        match self {
            Self::Request(_) => Side::Downstream,
            Self::Cut(_) => Side::Own,
            Self::Closed(_)
            | Self::Unread(_)
            | Self::SessionEnded
            | Self::BrokenOff(_)
            | Self::Client(_)
            | Self::Status { .. }
            | Self::AuthRejected { .. }
            | Self::SignIn { .. }
            | Self::Protocol(_)
            | Self::Refused { .. }
            | Self::Deadline(_) => Side::Upstream,
        }
    }

    /// The kind of a call that failed in this way (D16).
    #[must_use]
    pub fn call_kind(&self) -> CallErrorKind {
        match self {
            Self::AuthRejected { .. } | Self::SignIn { .. } => CallErrorKind::AuthUnavailable,
            Self::Deadline(_) => CallErrorKind::Timeout,
            Self::Cut(reason) => reason.call_kind(),
            Self::Request(_) => CallErrorKind::InvalidArguments,
            Self::Status { status: TOO_MANY, .. } => CallErrorKind::LimitExceeded,
            Self::BrokenOff(error) => error.call_kind(),
            Self::Client(error) if error.kind() == ErrorKind::Timeout => CallErrorKind::Timeout,
            Self::Closed(_)
            | Self::Unread(_)
            | Self::SessionEnded
            | Self::Client(_)
            | Self::Status { .. }
            | Self::Refused { .. }
            | Self::Protocol(_) => CallErrorKind::TransportError,
        }
    }

    /// The time until a retry may succeed, if the server or the credential named one.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Status { retry_after, .. } => retry_after.as_ref()?.wait(),
            Self::SignIn { fault, .. } => fault.retry_after(),
            _ => None,
        }
    }

    /// The reason why no credential could be had; `None` for a failure of another kind.
    #[must_use]
    pub fn credential_fault(&self) -> Option<&CredentialFault> {
        match self {
            Self::SignIn { fault, .. } => Some(fault),
            Self::BrokenOff(error) => error.credential_fault(),
            _ => None,
        }
    }

    /// The sign-in of a person that would mend the failure.
    #[must_use]
    pub fn wanted_sign_in(&self) -> Option<WantedSignIn> {
        match self {
            Self::SignIn { fault, has_holder, .. } => fault.wanted_sign_in(*has_holder),
            Self::BrokenOff(error) => error.wanted_sign_in(),
            _ => None,
        }
    }

    /// True if the server takes no request at all until a person signs in.
    #[must_use]
    pub fn needs_sign_in(&self) -> bool {
        match self {
            Self::SignIn { fault, is_step_up, .. } => !is_step_up && fault.needs_consent(),
            Self::BrokenOff(error) => error.needs_sign_in(),
            _ => false,
        }
    }

    /// The HTTP answer that refused the request; `None` if no status arrived.
    #[must_use]
    pub fn answer(&self) -> Option<HttpAnswer> {
        let Self::Status { status, code, .. } = self else { return None };
        Some(HttpAnswer { status: *status, retry_after: self.retry_after(), code: *code })
    }

    /// Details for programs: the HTTP status, the time until the next try, and the server's own
    /// code. `None` if no status arrived.
    #[must_use]
    pub fn details(&self) -> Option<Value> {
        self.answer().map(HttpAnswer::details)
    }

    /// True if the server certainly did not act on the request, so that a retry is harmless.
    #[must_use]
    pub fn is_unsent(&self) -> bool {
        match self {
            Self::SessionEnded | Self::Unread(_) | Self::Request(_) => true,
            Self::Client(error) => !error.may_have_arrived(),
            Self::Closed(_)
            | Self::Cut(_)
            | Self::BrokenOff(_)
            | Self::Status { .. }
            | Self::AuthRejected { .. }
            | Self::SignIn { .. }
            | Self::Protocol(_)
            | Self::Refused { .. }
            | Self::Deadline(_) => false,
        }
    }

    /// True if the connection was lost after the request was written, so that the server may have
    /// acted on it.
    #[must_use]
    pub fn may_have_acted(&self) -> bool {
        match self {
            Self::Closed(_) | Self::BrokenOff(_) => true,
            Self::Client(error) => error.is_lost_answer(),
            Self::Unread(_)
            | Self::SessionEnded
            | Self::Cut(_)
            | Self::Status { .. }
            | Self::AuthRejected { .. }
            | Self::SignIn { .. }
            | Self::Protocol(_)
            | Self::Refused { .. }
            | Self::Deadline(_)
            | Self::Request(_) => false,
        }
    }

    /// True if a later attempt may succeed without a change: the server was not reached, or
    /// answered that it cannot work now.
    #[must_use]
    pub fn is_unreachable(&self) -> bool {
        match self {
            Self::BrokenOff(error) => error.is_unreachable(),
            Self::Closed(_) | Self::Unread(_) | Self::SessionEnded | Self::Deadline(_) => true,
            Self::Client(error) => {
                matches!(error.kind(), ErrorKind::Unavailable | ErrorKind::Timeout)
                    && !error.is_configured_wrong()
            }
            Self::Status { status, .. } => matches!(*status, 408 | 425 | TOO_MANY | 500..),
            Self::SignIn { fault, .. } => matches!(**fault, CredentialFault::Unavailable { .. }),
            Self::Cut(_)
            | Self::AuthRejected { .. }
            | Self::Protocol(_)
            | Self::Refused { .. }
            | Self::Request(_) => false,
        }
    }

    /// The error without known secrets.
    pub(crate) fn redacted(self, redactor: &Redactor) -> Self {
        let clean = |text: &str| redactor.text(text).into_owned();
        match self {
            Self::Closed(why) => Self::Closed(clean(&why).into()),
            Self::Unread(why) => Self::Unread(clean(&why).into()),
            Self::Status { status, text, retry_after, code } => Self::Status {
                status,
                text: clean(&text),
                retry_after: retry_after.map(|when| when.map(clean)),
                code,
            },
            Self::Protocol(text) => Self::Protocol(clean(&text)),
            Self::Refused { code, text } => Self::Refused { code, text: clean(&text) },
            Self::Request(text) => Self::Request(clean(&text)),
            Self::BrokenOff(error) => {
                Self::BrokenOff(Arc::new(error.as_ref().clone().redacted(redactor)))
            }
            Self::Client(error) => Self::Client(error.redacted(redactor).map_or(error, Arc::new)),
            Self::SignIn { fault, is_step_up, has_holder } => {
                let fault = Arc::new(fault.redacted(&clean));
                Self::SignIn { fault, is_step_up, has_holder }
            }
            Self::SessionEnded | Self::Cut(_) | Self::AuthRejected { .. } | Self::Deadline(_) => {
                self
            }
        }
    }
}

impl From<ClientError> for LinkError {
    fn from(error: ClientError) -> Self {
        Self::Client(Arc::new(error))
    }
}
