//! Reasons why a sign-in to a server fails.

use narthex_catalog::OpenError;
use narthex_model::{ErrorKind, WorkspaceId, command::narthex};
use narthex_oauth::client::AuthorizationError;
use narthex_oauth_client::SignInError;
use url::Url;

/// An error of a sign-in to a server. No grant has changed.
#[derive(Debug, thiserror::Error)]
pub enum ServerSignInError {
    /// The process stores no grants.
    #[error("this process signs in to no server; start the daemon with `{}`", narthex("up", &[]))]
    NoSignIns,
    /// No person signs in to the server.
    #[error(
        "`{name}` has no sign-in, since the mode of its `auth` is `{mode}`; connect it anew with \
         `{}`",
        narthex("mcp reconnect {}", &[.name])
    )]
    NoSignIn {
        /// The server.
        name: String,
        /// The mode of its authentication.
        mode: &'static str,
    },
    /// No human signs in to the server of the catalog.
    #[error(
        "`{name}` has no sign-in of humans: the mode of its `auth` is `{mode}`; runs need no \
         connection to use it"
    )]
    NotPersonal {
        /// The server.
        name: String,
        /// The mode of its authentication.
        mode: &'static str,
    },
    /// The workspace has no such server, or the human may not see it.
    #[error(
        "the workspace `{workspace}` has no server `{name}` that people sign in to; `{list}` shows \
         those that it has",
        list = narthex("connections list", &[]).in_workspace(.workspace)
    )]
    NoServer {
        /// The workspace.
        workspace: WorkspaceId,
        /// The name.
        name: String,
    },
    /// The caller is no human, and connects no account.
    #[error(
        "only a human connects an account, and only their own: sign in to narthex in a browser, or \
         use the admin token of this machine"
    )]
    NoHuman,
    /// The address or a secret of the server is not known outside of runs.
    #[error("the sign-in cannot begin outside of a run: {0}")]
    Unopened(OpenError),
    /// The server is disabled.
    #[error(
        "`{0}` is disabled; enable it first with `{command}`",
        command = narthex("mcp enable {}", &[.0])
    )]
    Disabled(String),
    /// A step of the sign-in failed.
    #[error(transparent)]
    Failed(#[from] SignInError),
}

impl ServerSignInError {
    /// The kind of failure (D24).
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::NoSignIns
            | Self::NoSignIn { .. }
            | Self::NotPersonal { .. }
            | Self::Unopened(_)
            | Self::Disabled(_) => ErrorKind::Conflict,
            Self::NoServer { .. } => ErrorKind::NotFound,
            Self::NoHuman => ErrorKind::Denied,
            Self::Failed(error) => match error.kind() {
                // The caller is known here: another server does not know the human.
                ErrorKind::Unauthenticated => ErrorKind::Conflict,
                kind => kind,
            },
        }
    }

    /// True for an answer that belongs to no open attempt, or to that of another browser.
    #[must_use]
    pub fn is_unproved(&self) -> bool {
        match self {
            Self::Failed(SignInError::NoAttempt { .. } | SignInError::Callback(_)) => true,
            Self::Failed(SignInError::Authorization(error)) => {
                matches!(**error, AuthorizationError::Foreign)
            }
            Self::NoSignIns
            | Self::NoSignIn { .. }
            | Self::NotPersonal { .. }
            | Self::NoServer { .. }
            | Self::NoHuman
            | Self::Unopened(_)
            | Self::Disabled(_)
            | Self::Failed(_) => false,
        }
    }

    /// The address at which the same person should be sent on at once (Q19).
    #[must_use]
    pub fn goes_on_at(&self) -> Option<&Url> {
        match self {
            Self::Failed(error) => error.goes_on_at(),
            Self::NoSignIns
            | Self::NoSignIn { .. }
            | Self::NotPersonal { .. }
            | Self::NoServer { .. }
            | Self::NoHuman
            | Self::Unopened(_)
            | Self::Disabled(_) => None,
        }
    }
}
