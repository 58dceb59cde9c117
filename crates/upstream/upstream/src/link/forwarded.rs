//! A forwarded request, for its caller.

use crate::{
    Frame, LinkError, duplex::DuplexCall, http::HttpCall, outlet::clean, redaction::Redaction,
};

/// A sent request. Dropping it before the answer cancels the request at the server.
#[derive(Debug)]
pub struct Forwarded {
    pub(super) call: Call,
    pub(super) redaction: Redaction,
}

/// A forwarded request, by transport.
#[derive(Debug)]
pub(super) enum Call {
    Duplex(DuplexCall),
    Http(HttpCall),
}

impl Forwarded {
    /// Returns the next frame; the answer is the last one. Cancel safe.
    ///
    /// # Errors
    /// When the link fails before the answer.
    pub async fn next(&mut self) -> Result<Frame, LinkError> {
        let next = match &mut self.call {
            Call::Duplex(call) => call.next().await,
            Call::Http(call) => call.next().await,
        };
        self.clean(next)
    }

    /// The error code, if the whole answer is an error that has already arrived.
    #[must_use]
    pub fn error_code(&self) -> Option<i64> {
        match &self.call {
            Call::Http(HttpCall::Single(Some(message))) => message.error_code(),
            Call::Http(_) | Call::Duplex(_) => None,
        }
    }

    /// The next frame, if it has already arrived: [`Forwarded::next`] would return it at once.
    pub fn buffered(&mut self) -> Option<Result<Frame, LinkError>> {
        match &mut self.call {
            Call::Duplex(_) => None,
            Call::Http(call) => call.buffered().map(|next| self.clean(next)),
        }
    }

    /// Sends the server a cancellation of the request, and waits until the server has taken it.
    /// Dropping the request does not wait.
    pub async fn give_up(self) {
        match self.call {
            Call::Http(HttpCall::Stream(stream)) => stream.give_up().await,
            // The request is over, or dropping it sends the cancellation.
            Call::Http(HttpCall::Single(_)) | Call::Duplex(_) => {}
        }
    }

    fn clean(&self, next: Result<Frame, LinkError>) -> Result<Frame, LinkError> {
        self.redaction.with(|redactor| match redactor {
            None => next,
            Some(redactor) => next
                .map(|frame| frame.map(|message| clean(Some(redactor), message)))
                .map_err(|error| error.redacted(redactor)),
        })
    }
}
