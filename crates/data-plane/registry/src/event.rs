//! Events of servers, for logs, audit and people: transitions that a state alone hides.

use std::sync::Arc;

use narthex_model::Alias;

/// An event of one server. A healthy server causes none (R-E42).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerEvent {
    /// A server that was ready is lost; calls that were open have failed (R-E40).
    Lost {
        /// The server.
        alias: Alias,
        /// The reason, in the words of the transport.
        reason: Arc<str>,
    },
    /// A server that was lost is back: once for each time (R-E41).
    Reconnected {
        /// The server.
        alias: Alias,
        /// Number of returns so far.
        reconnects: u64,
        /// Which attempt it was, from 1.
        attempt: u32,
    },
    /// A server did not end when asked to, and had to be killed (R-E31).
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
