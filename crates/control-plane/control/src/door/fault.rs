//! Reasons why a request at the authorization server of the door fails.

use narthex_model::{ErrorKind, WorkspaceId, command::narthex};
use narthex_oauth::server::{DocumentError, OAuthError, PageError, Redirect};

/// An error of a request that has given no right.
#[derive(Debug, thiserror::Error)]
pub enum DoorFault {
    /// The door gives no tokens.
    #[error("this daemon gives no tokens to clients; set `oauth.door` to `on` to change this")]
    Off,
    /// The request was answered, is too old, or belongs to another browser.
    #[error(
        "this page was answered already, is older than 10 minutes, or was opened in another \
         browser; begin again in the client"
    )]
    Gone,
    /// Too many requests wait for humans.
    #[error("too many clients wait for a human; try again in 10 minutes")]
    Full,
    /// The human may not let a client act there.
    #[error(
        "you may not let a client act in the workspace `{workspace}`; ask one of its admins for \
         the role `runner`, as with `{command}`",
        command = narthex("members set NAME runner", &[]).in_workspace(.workspace)
    )]
    NotAllowed {
        /// The workspace.
        workspace: WorkspaceId,
    },
    /// The client was revoked for this human, or disabled.
    #[error("this client was revoked for you; sign in with another client, or ask an operator")]
    Revoked,
    /// The resource of the request has other servers than the chosen ones.
    #[error("the client asked for another endpoint than the chosen servers have; choose again")]
    Unfit,
    /// The request cannot be approved.
    #[error("{}", .0.description)]
    Refused(OAuthError),
    /// A stored record cannot be read.
    #[error("a stored record of a client at the door is damaged; connect the client again")]
    Damaged,
    /// The operating system gives no random bytes.
    #[error("the operating system gives no random bytes")]
    Randomness(#[source] getrandom::Error),
}

impl DoorFault {
    /// The kind of failure (D24).
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Off => ErrorKind::NotFound,
            Self::Gone | Self::Unfit | Self::Refused(_) => ErrorKind::Conflict,
            Self::Full => ErrorKind::Exhausted,
            Self::NotAllowed { .. } | Self::Revoked => ErrorKind::Denied,
            Self::Damaged | Self::Randomness(_) => ErrorKind::Unavailable,
        }
    }
}

/// The refusal of an authorization request.
#[derive(Debug)]
pub enum DoorStop {
    /// A page of our own, since the client's address is not verified. Its text has nothing of the
    /// request.
    Page(String),
    /// A redirect to the client.
    Redirect(Redirect),
}

impl From<PageError> for DoorStop {
    fn from(error: PageError) -> Self {
        Self::Page(error.to_string())
    }
}

impl From<DocumentError> for DoorStop {
    fn from(error: DocumentError) -> Self {
        let remedy = match error {
            DocumentError::Unreachable => "let this daemon reach its host",
            _ => "tell the client's maker",
        };
        Self::Page(format!("{error}; {remedy}, or use another client"))
    }
}
