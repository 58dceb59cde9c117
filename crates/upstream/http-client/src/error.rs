//! Failures between narthex and an HTTP server.

use std::{borrow::Cow, error::Error, io};

use http::{StatusCode, uri::PathAndQuery};
use narthex_model::ErrorKind;
use narthex_wire::Redactor;

/// A request that got no usable answer. Addresses in messages carry no user name and no query.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The configured address cannot be used.
    #[error("{url:?} is not an http or https address with a host")]
    Address {
        /// The configured address, without user name and query.
        url: String,
    },
    /// A request was addressed to another origin.
    #[error("a request for {wanted} must not go to {origin}")]
    OtherOrigin {
        /// The target of the request.
        wanted: String,
        /// The origin of this client.
        origin: String,
    },
    /// The host name has no address.
    #[error("cannot resolve the host name {host}")]
    Dns {
        /// The name.
        host: String,
        /// The resolver's error.
        #[source]
        cause: io::Error,
    },
    /// The address is not public.
    #[error("{address} has no public address")]
    NotPublic {
        /// Host and port.
        address: String,
    },
    /// No server listens at the address.
    #[error("connection refused by {address}: check that the server is running there")]
    Refused {
        /// Host and port.
        address: String,
    },
    /// The proxy did not open the way to the server.
    #[error("the proxy {address}: {reason}")]
    Proxy {
        /// Host and port of the proxy.
        address: String,
        /// The fault.
        reason: String,
    },
    /// The connection failed, and was not refused.
    #[error("cannot connect to {address}")]
    Connect {
        /// Host and port.
        address: String,
        /// The system's error.
        #[source]
        cause: io::Error,
    },
    /// Connecting, TLS included, took too long.
    #[error("no connection to {address} within {waited_ms} ms")]
    ConnectTimeout {
        /// Host and port.
        address: String,
        /// The time waited, in milliseconds.
        waited_ms: u128,
    },
    /// No trusted secure connection could be made.
    #[error("TLS with {host} failed: {reason}")]
    Tls {
        /// The host of the certificate.
        host: String,
        /// The fault.
        reason: String,
    },
    /// The connection ended before an answer began, and after at least a part of the request was
    /// sent.
    #[error("{address} closed the connection without an answer")]
    Unanswered {
        /// Host and port.
        address: String,
        /// The connection's error.
        #[source]
        cause: hyper::Error,
    },
    /// The connection ended in the middle of an answer.
    #[error("the answer of {address} ended too early")]
    BrokenOff {
        /// Host and port.
        address: String,
        /// The connection's error.
        #[source]
        cause: hyper::Error,
    },
    /// The answer is not HTTP/1.1, or its head is too large.
    #[error("the answer of {address} is not valid HTTP")]
    Malformed {
        /// Host and port.
        address: String,
        /// The fault.
        #[source]
        cause: hyper::Error,
    },
    /// The answer's compression is unknown or broken.
    #[error("the answer of {address} cannot be decoded: {reason}")]
    Coding {
        /// Host and port.
        address: String,
        /// The coding, and the fault.
        reason: String,
    },
    /// The answer is longer than the caller's limit.
    #[error("the answer of {address} is larger than {limit} bytes")]
    TooLarge {
        /// Host and port.
        address: String,
        /// The limit in bytes.
        limit: usize,
    },
    /// The server redirects to another origin. The client does not follow, since credentials stay
    /// with their origin.
    #[error(
        "{address} answered {status}, a redirect to {location}, which is not followed: \
         configure the final address"
    )]
    Redirected {
        /// Host and port.
        address: String,
        /// The redirect's status.
        status: StatusCode,
        /// The target, without user name and query.
        location: String,
    },
    /// A path that used to answer now redirects. The next request follows the redirect.
    #[error("{address} has moved to {path} since the last request; try again")]
    Moved {
        /// Host and port.
        address: String,
        /// The new path.
        path: String,
    },
    /// The server redirects in circles, or too often.
    #[error(
        "{address} redirects in a circle, or more than {limit} times; the last target was {path}"
    )]
    TooManyRedirects {
        /// Host and port.
        address: String,
        /// Number of redirects that the client follows.
        limit: usize,
        /// The last target's path.
        path: String,
    },
    /// Another of these errors, whose text contained a secret of the configuration.
    #[error("{text}")]
    Redacted {
        /// The text without the secret.
        text: String,
        /// The kind of failure.
        kind: ErrorKind,
        /// True if the server may have seen the request.
        may_have_arrived: bool,
    },
}

impl ClientError {
    /// Kind of the failure.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Address { .. }
            | Self::OtherOrigin { .. }
            | Self::NotPublic { .. }
            | Self::Redirected { .. } => ErrorKind::Invalid,
            Self::ConnectTimeout { .. } => ErrorKind::Timeout,
            Self::TooLarge { .. } => ErrorKind::Exhausted,
            Self::Dns { .. }
            | Self::Refused { .. }
            | Self::Proxy { .. }
            | Self::Connect { .. }
            | Self::Tls { .. }
            | Self::Unanswered { .. }
            | Self::BrokenOff { .. }
            | Self::Malformed { .. }
            | Self::Coding { .. }
            | Self::Moved { .. }
            | Self::TooManyRedirects { .. } => ErrorKind::Unavailable,
            Self::Redacted { kind, .. } => *kind,
        }
    }

    /// True if the server may have acted on the request, so that repeating it is not the same as
    /// sending it once. This holds after any answer but one: a redirect to another path of the same
    /// origin asks the client to send the request there, so the server did not act (D37).
    #[must_use]
    pub fn may_have_arrived(&self) -> bool {
        match self {
            Self::Unanswered { .. }
            | Self::BrokenOff { .. }
            | Self::Malformed { .. }
            | Self::TooLarge { .. }
            | Self::Coding { .. }
            | Self::Redirected { .. }
            | Self::TooManyRedirects { .. } => true,
            Self::Address { .. }
            | Self::OtherOrigin { .. }
            | Self::NotPublic { .. }
            | Self::Dns { .. }
            | Self::Refused { .. }
            | Self::Proxy { .. }
            | Self::Connect { .. }
            | Self::ConnectTimeout { .. }
            | Self::Tls { .. }
            | Self::Moved { .. } => false,
            Self::Redacted { may_have_arrived, .. } => *may_have_arrived,
        }
    }

    /// True if the connection ended after the request was written and before its answer was whole.
    #[must_use]
    pub fn is_lost_answer(&self) -> bool {
        matches!(self, Self::Unanswered { .. } | Self::BrokenOff { .. })
    }

    /// True if an operator has to correct the address, or the trust in its certificate.
    #[must_use]
    pub fn is_configured_wrong(&self) -> bool {
        match self {
            Self::Tls { .. }
            | Self::Malformed { .. }
            | Self::Coding { .. }
            | Self::TooManyRedirects { .. }
            | Self::Address { .. }
            | Self::OtherOrigin { .. }
            | Self::NotPublic { .. }
            | Self::Redirected { .. } => true,
            Self::Dns { .. }
            | Self::Refused { .. }
            | Self::Proxy { .. }
            | Self::Connect { .. }
            | Self::ConnectTimeout { .. }
            | Self::Unanswered { .. }
            | Self::BrokenOff { .. }
            | Self::TooLarge { .. }
            | Self::Moved { .. }
            | Self::Redacted { .. } => false,
        }
    }

    /// The same error without known secrets; `None` if its text contains none.
    #[must_use]
    pub fn redacted(&self, redactor: &Redactor) -> Option<Self> {
        let text = without_secrets(self, redactor)?;
        let may_have_arrived = self.may_have_arrived();
        Some(Self::Redacted { text, kind: self.kind(), may_have_arrived })
    }

    pub(super) fn too_many_redirects(address: &str, limit: usize, path: &PathAndQuery) -> Self {
        Self::TooManyRedirects { address: address.to_owned(), limit, path: path.path().to_owned() }
    }
}

/// The text of an error and its causes without known secrets; `None` if it contains none.
#[must_use]
pub fn without_secrets(error: &dyn Error, redactor: &Redactor) -> Option<String> {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        next = cause.source();
    }
    match redactor.text(&text) {
        Cow::Borrowed(_) => None,
        Cow::Owned(clean) => Some(clean),
    }
}
