//! Answers of the registry's verbs.

use std::sync::Arc;

use narthex_model::{CallError, CallErrorKind, ServerState, command::narthex};
use narthex_upstream::FinishFault;
use serde::Serialize;

use crate::{Found, connection::Connection};

/// Outcome of a server: exactly one of three (E1).
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "status", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum ServerResult {
    /// The server can be called.
    Ready {
        /// The server's name.
        id: String,
        /// Number of its tools.
        tool_count: usize,
    },
    /// A person must sign in first.
    Authenticating {
        /// The server's name.
        id: String,
        /// The address of the sign-in page.
        auth_url: String,
    },
    /// The server cannot be called; it may be disabled. For operators.
    Error {
        /// The server's name.
        id: String,
        /// The reason.
        error: CallError,
    },
}

impl ServerResult {
    /// The server's name.
    #[must_use]
    pub fn id(&self) -> &str {
        match self {
            Self::Ready { id, .. } | Self::Authenticating { id, .. } | Self::Error { id, .. } => id,
        }
    }

    /// True if the server can be called.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        matches!(self, Self::Ready { .. })
    }

    pub(crate) fn error(id: &str, kind: CallErrorKind, text: impl Into<String>) -> Self {
        Self::Error { id: id.to_owned(), error: CallError::new(kind, text.into()) }
    }

    fn of(id: &str, found: &Found) -> Self {
        if let (ServerState::Authenticating, Some(auth_url)) = (found.state, &found.auth_url) {
            return Self::Authenticating { id: id.to_owned(), auth_url: auth_url.clone() };
        }
        match found.state {
            ServerState::Ready => {
                Self::Ready { id: id.to_owned(), tool_count: found.inventory.tools.len() }
            }
            ServerState::Disabled => disabled(id),
            ServerState::Authenticating | ServerState::Connecting | ServerState::Error => {
                match &found.error {
                    Some(error) => Self::Error { id: id.to_owned(), error: error.for_operators() },
                    None => Self::error(id, CallErrorKind::TransportError, "it is not connected"),
                }
            }
        }
    }
}

/// The answer for a server that is disabled.
pub(crate) fn disabled(id: &str) -> ServerResult {
    ServerResult::error(id, CallErrorKind::ServerDisabled, "it is disabled")
}

/// An answer for which a caller may still have to wait.
#[derive(Debug)]
pub(crate) enum Awaited {
    Known(ServerResult),
    Connecting(String, Arc<Connection>),
}

impl Awaited {
    pub(crate) async fn result(self) -> ServerResult {
        let (id, connection) = match self {
            Self::Known(result) => return result,
            Self::Connecting(id, connection) => (id, connection),
        };
        let found = connection.settled().await;
        if connection.was_replaced(&found) {
            let text = "it was removed or changed before it was ready";
            return ServerResult::error(&id, CallErrorKind::TransportError, text);
        }
        ServerResult::of(&id, &found)
    }
}

/// The reason why a sign-in is not finished, or its server not connected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FinishError {
    /// The sign-in is not finished.
    #[error(transparent)]
    SignIn(#[from] FinishFault),
    /// There are tokens, but the server cannot be connected.
    #[error(transparent)]
    Server(#[from] VerbError),
}

/// The reason why a verb cannot be carried out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum VerbError {
    /// No server has this name (E58).
    #[error("there is no server `{0}`")]
    Unknown(String),
    /// The server's configuration disables it, which only the owner of the configuration can
    /// change.
    #[error(
        "server `{name}` is disabled in {place}; remove `disabled` or `enabled` from its entry \
         there to enable it"
    )]
    DisabledByConfig {
        /// The server.
        name: String,
        /// The file, or another source that configures it.
        place: String,
    },
    /// The entry is faulty, and cannot be used.
    #[error(
        "the entry `{0}` is faulty, so it cannot be connected; `{command}` shows the fault",
        command = narthex("mcp list", &[])
    )]
    Faulty(String),
    /// The registry has been closed.
    #[error("the registry is closed")]
    Closed,
}
