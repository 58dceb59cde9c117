//! The steps of an answer to a caller.

use std::time::Duration;

use narthex_model::CallErrorKind;
use narthex_wire::Payload;

/// One step of an answer to the caller.
#[derive(Debug)]
pub enum Step {
    /// A notification, or a request of the server (legacy), that belongs to the call.
    Message(Payload),
    /// The server asks the caller to fetch the rest later (legacy, 2025-11-25).
    Break {
        /// The pause in milliseconds, if the server named one.
        retry_ms: Option<u64>,
    },
    /// The answer, which is the last step.
    Answer(Answer),
}

/// The result or error that ends a call.
#[derive(Debug)]
pub struct Answer {
    /// The JSON-RPC message.
    pub payload: Payload,
    /// HTTP status of the response. A door over HTTP sends it if no step was sent before.
    pub status: u16,
    /// Time until another try may succeed, if the call was refused because a limit was reached.
    pub retry_after: Option<Duration>,
    /// The failure of the call, if the gateway itself refused the call. A server's own error may
    /// look the same in `payload`.
    pub refused: Option<RefusedCall>,
}

/// Error of a call that the gateway refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RefusedCall {
    /// Kind of the failure.
    pub kind: CallErrorKind,
    /// True if the server certainly did not see the call.
    pub is_unsent: bool,
}

impl Answer {
    pub(crate) fn new(payload: Payload, status: u16) -> Self {
        Self { payload, status, retry_after: None, refused: None }
    }
}
