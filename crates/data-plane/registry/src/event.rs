//! Events of servers, for logs, audit and people: transitions that a row does not show.

use std::{fmt, sync::Arc};

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

impl fmt::Display for ServerEvent {
    /// The event as a sentence without its end.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lost { alias, reason } => {
                write!(f, "the connection to the server `{alias}` was lost: {reason}")
            }
            Self::Reconnected { alias, attempt, .. } => {
                write!(f, "the server `{alias}` is connected again, at attempt {attempt}")
            }
            Self::Killed { alias } => {
                write!(f, "the server `{alias}` did not end when asked to, and was killed")
            }
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_sentences_in_the_log() {
        let alias = || Alias::new("git").unwrap();
        for (event, expected) in [
            (
                ServerEvent::Lost { alias: alias(), reason: "it ended".into() },
                "the connection to the server `git` was lost: it ended",
            ),
            (
                ServerEvent::Reconnected { alias: alias(), reconnects: 3, attempt: 2 },
                "the server `git` is connected again, at attempt 2",
            ),
            (
                ServerEvent::Killed { alias: alias() },
                "the server `git` did not end when asked to, and was killed",
            ),
        ] {
            assert_eq!(event.to_string(), expected);
        }
    }
}
