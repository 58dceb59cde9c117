//! The credential of a link that can change while the link is open.
//!
//! A link knows no OAuth. It asks [`Credentials`] for the header of each request, and tells it of
//! each refusal. An answer that is at hand costs no wait.

use std::{fmt, pin::Pin, time::Duration};

use http::HeaderValue;
use narthex_model::{Alias, HttpTarget, Secret, ServerAuth, WantedSignIn};

/// A step of a credential that takes time.
pub type Obtaining<'a> =
    Pin<Box<dyn Future<Output = Result<Option<HeaderValue>, CredentialFault>> + Send + 'a>>;

/// The credential of all links to one server for one holder.
pub trait Credentials: Send + Sync + fmt::Debug {
    /// The value of `Authorization` for the next request, without a wait.
    fn at_hand(&self) -> AtHand;

    /// The value of `Authorization` for the next request, after a renewal or a request for a token
    /// if one is due. `None`: send the request without one, so that a 401 starts the discovery.
    ///
    /// The work belongs to the credential: a caller that stops waiting stops nothing.
    fn obtain(&self) -> Obtaining<'_>;

    /// Notes that the server refused a request with 401 or 403. Gives the value with which the
    /// request is sent once more, or the reason why it cannot be sent.
    fn refused(&self, refusal: RefusedRequest) -> Obtaining<'_>;
}

/// The answer of [`Credentials::at_hand`].
#[derive(Debug, Clone)]
pub enum AtHand {
    /// Send the request with this header; without one if `None`.
    Ready(Option<HeaderValue>),
    /// Call [`Credentials::obtain`].
    Ask,
}

/// A refused request.
#[derive(Debug, Clone)]
pub struct RefusedRequest {
    /// 401 or 403.
    pub status: u16,
    /// The values of `WWW-Authenticate`, in their order.
    pub challenges: Vec<String>,
    /// The header with which the request was sent.
    pub sent: Option<HeaderValue>,
    /// The method of MCP, and the tool of a call: the limit of step-ups counts for each.
    pub operation: String,
    /// True if the request was sent again after a refusal already.
    pub is_repeated: bool,
}

/// The reason why a request cannot be sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CredentialFault {
    /// A person must sign in, or agree to further scopes. No failure of the server (D17).
    #[error("{why}")]
    NeedsConsent {
        /// The reason and the next step, for operators.
        why: String,
        /// The address at which the person signs in, if one is open.
        address: Option<String>,
        /// The scopes that the server asks for, if it named them.
        scopes: Vec<String>,
    },
    /// No token can be had now; a later attempt may succeed.
    #[error("{why}")]
    Unavailable {
        /// The reason, without a secret.
        why: String,
        /// The time until the next attempt.
        retry_after: Option<Duration>,
    },
    /// The entry cannot work as it is.
    #[error("{why}")]
    Unusable {
        /// The reason and the remedy, for operators.
        why: String,
    },
    /// The server refused the request for a reason that no token changes.
    #[error("the server refused the credential with HTTP {status}")]
    Rejected {
        /// 401 or 403.
        status: u16,
    },
}

impl CredentialFault {
    /// True if a person must act at the authorization server.
    #[must_use]
    pub fn needs_consent(&self) -> bool {
        matches!(self, Self::NeedsConsent { .. })
    }

    /// The sign-in that mends the fault; `None` if none does. `is_callers`: the credential is the
    /// grant of the human who drives the caller.
    #[must_use]
    pub fn wanted_sign_in(&self, is_callers: bool) -> Option<WantedSignIn> {
        let Self::NeedsConsent { address, scopes, .. } = self else { return None };
        let (address, scopes) = (address.clone(), scopes.clone());
        Some(WantedSignIn { address, scopes, is_callers })
    }

    /// The time until the next attempt, if it is known.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Unavailable { retry_after, .. } => *retry_after,
            Self::NeedsConsent { .. } | Self::Unusable { .. } | Self::Rejected { .. } => None,
        }
    }

    /// The fault with cleaned texts. An address stays as it is: a change would break it.
    pub(crate) fn redacted(&self, clean: &impl Fn(&str) -> String) -> Self {
        match self {
            Self::NeedsConsent { why, address, scopes } => {
                let (address, scopes) = (address.clone(), scopes.clone());
                Self::NeedsConsent { why: clean(why), address, scopes }
            }
            Self::Unavailable { why, retry_after } => {
                Self::Unavailable { why: clean(why), retry_after: *retry_after }
            }
            Self::Unusable { why } => Self::Unusable { why: clean(why) },
            Self::Rejected { status } => Self::Rejected { status: *status },
        }
    }
}

/// The parts by which a credential is found.
#[derive(Debug, Clone, Copy)]
pub struct CredentialQuery<'a> {
    /// The name of the server's row.
    pub alias: &'a Alias,
    /// The server, with its `auth`.
    pub target: &'a HttpTarget,
    /// The holder of the grant; shared connections have none.
    pub holder: Option<&'a Holder>,
}

/// The human whose grant a connection uses.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Holder {
    /// The workspace.
    pub workspace: String,
    /// The human's id.
    pub user: String,
}

/// Opens credentials for servers whose `auth` needs one that changes.
pub trait CredentialSource: Send + Sync + fmt::Debug {
    /// The credential of a server; `None` if its `auth` needs no such credential. Two queries with
    /// equal parts get the same credential.
    fn credentials(&self, query: CredentialQuery<'_>) -> Option<std::sync::Arc<dyn Credentials>>;

    /// Finishes the sign-in of a person with the redirect of an authorization server. Gives the
    /// name of the server's row. A source without sign-ins of people finishes none.
    fn finish_auth(&self, redirect: SignInRedirect) -> Finishing<'_> {
        drop(redirect);
        Box::pin(std::future::ready(Err(FinishFault::NoSignIns)))
    }
}

/// The redirect by which an authorization server ends a sign-in, as a browser brings it.
#[derive(Debug, Clone)]
pub struct SignInRedirect {
    /// The query of the address, with the code.
    pub query: Secret,
    /// The name of the server in the path of the address, decoded; `None` at the common address.
    pub server: Option<String>,
}

/// The end of a sign-in: the name of the server's row.
pub type Finishing<'a> = Pin<Box<dyn Future<Output = Result<String, FinishFault>> + Send + 'a>>;

/// The reason why a sign-in is not finished.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FinishFault {
    /// There is no source of credentials by which people sign in.
    #[error("people sign in to no server here; set `RegistryOptions::credentials` to their source")]
    NoSignIns,
    /// The answer gives no tokens.
    #[error("{why}")]
    Refused {
        /// The reason and the next step, for operators.
        why: String,
    },
}

/// True if a credential of this `auth` can change while a link is open.
#[must_use]
pub fn changes(auth: &ServerAuth) -> bool {
    matches!(auth, ServerAuth::OAuth(_) | ServerAuth::Unstated)
}
