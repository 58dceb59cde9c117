//! The levels of MCP log messages (those of RFC 5424).

use crate::Raw;

/// A level of log messages, ordered from the least to the most important.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    /// Details for finding a fault.
    Debug,
    /// An ordinary event.
    Info,
    /// An unusual event.
    Notice,
    /// A state that may become an error.
    Warning,
    /// A failed operation.
    Error,
    /// A part that fails.
    Critical,
    /// A fault that an operator must mend at once.
    Alert,
    /// The system is unusable.
    Emergency,
}

impl LogLevel {
    /// The name of the level.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Notice => "notice",
            Self::Warning => "warning",
            Self::Error => "error",
            Self::Critical => "critical",
            Self::Alert => "alert",
            Self::Emergency => "emergency",
        }
    }

    /// Reads the level in a message; `None` if the text names no level.
    #[must_use]
    pub fn read(raw: Raw<'_>) -> Option<Self> {
        Some(match raw.as_str()?.as_ref() {
            "debug" => Self::Debug,
            "info" => Self::Info,
            "notice" => Self::Notice,
            "warning" => Self::Warning,
            "error" => Self::Error,
            "critical" => Self::Critical,
            "alert" => Self::Alert,
            "emergency" => Self::Emergency,
            _ => return None,
        })
    }
}
