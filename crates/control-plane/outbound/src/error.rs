//! Errors of changes and of posts.

use narthex_control::{CatalogError, ControlError, FieldError};
use narthex_model::{ErrorKind, command::narthex};

/// The reason why a request was not carried out.
#[derive(Debug, thiserror::Error)]
pub enum OutboundError {
    /// The workspace has no such channel.
    #[error(
        "there is no channel `{0}`; `{command}` lists them",
        command = narthex("channels list", &[])
    )]
    NoChannel(String),
    /// The workspace has no such webhook.
    #[error(
        "there is no webhook `{0}`; `{command}` lists them",
        command = narthex("webhooks list", &[])
    )]
    NoWebhook(String),
    /// The control plane refuses the request.
    #[error(transparent)]
    Control(#[from] ControlError),
}

impl OutboundError {
    /// The kind of the failure (D24).
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::NoChannel(_) | Self::NoWebhook(_) => ErrorKind::NotFound,
            Self::Control(error) => error.kind(),
        }
    }

    pub(crate) fn refused(faults: Vec<FieldError>) -> Self {
        Self::Control(CatalogError::Refused(faults).into())
    }
}

/// The reason why an agent's message did not reach its channel.
#[derive(Debug, thiserror::Error)]
pub enum MessageFailure {
    /// The channel does not exist.
    #[error("this workspace has no channel `{0}`")]
    NoChannel(String),
    /// The channel's address or key is missing, or is refused.
    #[error("the channel `{0}` refuses the message: {1}; ask an admin of the workspace")]
    Unauthorized(String, String),
    /// No server at the address answers as expected.
    #[error("the channel `{0}` cannot be reached: {1}")]
    Unreachable(String, String),
    /// No answer arrived in time.
    #[error("the channel `{0}` did not answer in time")]
    TooLate(String),
    /// The control plane refuses the request.
    #[error(transparent)]
    Control(#[from] ControlError),
}

impl MessageFailure {
    /// The error's code for programs; `None` if the channel is not the cause.
    #[must_use]
    pub fn code(&self) -> Option<&'static str> {
        match self {
            Self::NoChannel(_) => Some("channel_not_found"),
            Self::Unauthorized(..) => Some("messaging_unauthorized"),
            Self::Unreachable(..) => Some("messaging_provider_unreachable"),
            Self::TooLate(_) => Some("provider_timeout"),
            Self::Control(_) => None,
        }
    }
}
