//! Events of servers, for logs, audit and people: transitions that a row does not show.

use std::sync::Arc;

use narthex_model::Alias;

/// An event of one server. A healthy server has none (R-E42).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerEvent {
    /// A ready server was lost; its open calls have failed (R-E40).
    Lost {
        /// The server.
        alias: Alias,
        /// The reason, in the transport's words.
        reason: Arc<str>,
    },
    /// A lost server is back: one event per return (R-E41).
    Reconnected {
        /// The server.
        alias: Alias,
        /// Number of returns, with this one.
        reconnects: u64,
        /// Number of the attempt that succeeded, from 1.
        attempt: u32,
    },
    /// A server did not end when asked to, and was killed (R-E31).
    Killed {
        /// The server.
        alias: Alias,
    },
}

impl ServerEvent {
    /// The event's name in logs.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Lost { .. } => "mcp.error",
            Self::Reconnected { .. } => "mcp.reconnect",
            Self::Killed { .. } => "mcp.killed",
        }
    }
}
