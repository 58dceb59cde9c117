//! Reasons why definitions are not reviewed or decided.

use narthex_control::ControlError;
use narthex_model::{Alias, ErrorKind, command::narthex};
use narthex_registry::LookError;

/// An error of a review, or of a decision.
#[derive(Debug, thiserror::Error)]
pub enum ReviewError {
    /// The control plane refuses or fails.
    #[error(transparent)]
    Control(#[from] ControlError),
    /// Two servers whose definitions are stored have this name.
    #[error(
        "there is a server `{0}` in the catalog and one in the live configuration; choose one with \
         `source=catalog` or `source=live`, on the command line with `--catalog` or `--live`"
    )]
    TwoServers(String),
    /// No server of the live configuration has this name.
    #[error(
        "there is no live server `{0}`; `{command}` lists them",
        command = narthex("mcp list", &[])
    )]
    NoLive(String),
    /// A live server whose definitions are not stored.
    #[error(
        "the definitions of the server `{0}` of the live configuration are not pinned; set \
         `\"pinDefinitions\": true` in its entry"
    )]
    NotPinned(Alias),
    /// The decision is stored, and not applied yet.
    #[error("the decision is stored but not applied yet; the daemon retries until it is")]
    NotYet(#[source] LookError),
}

impl ReviewError {
    /// The kind of failure.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Control(error) => error.kind(),
            Self::NoLive(_) => ErrorKind::NotFound,
            Self::TwoServers(_) | Self::NotPinned(_) => ErrorKind::Conflict,
            Self::NotYet(_) => ErrorKind::Unavailable,
        }
    }
}
