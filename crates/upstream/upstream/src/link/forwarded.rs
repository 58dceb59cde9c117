//! A request that was forwarded, as its caller follows it.

use std::sync::Arc;

use narthex_wire::Redactor;

use crate::{Frame, LinkError, duplex::DuplexCall, http::HttpCall, outlet::clean};

/// A request on its way. Dropping it before the answer cancels it at the server.
#[derive(Debug)]
pub struct Forwarded {
    pub(super) call: Call,
    pub(super) redactor: Option<Arc<Redactor>>,
}

/// The same, by transport.
#[derive(Debug)]
pub(super) enum Call {
    Duplex(DuplexCall),
    Http(HttpCall),
}

impl Forwarded {
    /// The next frame; nothing follows an answer. Safe to drop and call again.
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

    /// The code of an error that is all there is, known without waiting.
    #[must_use]
    pub fn error_code(&self) -> Option<i64> {
        match &self.call {
            Call::Http(HttpCall::Single(Some(message))) => message.error_code(),
            Call::Http(_) | Call::Duplex(_) => None,
        }
    }

    /// The next frame, if it has already arrived: the one that [`Forwarded::next`] would give at
    /// once.
    pub fn buffered(&mut self) -> Option<Result<Frame, LinkError>> {
        match &mut self.call {
            Call::Duplex(_) => None,
            Call::Http(call) => call.buffered().map(|next| self.clean(next)),
        }
    }

    /// Sends the server a cancellation of the request, and waits until it has taken that, which
    /// dropping it does not.
    pub async fn give_up(self) {
        match self.call {
            Call::Http(HttpCall::Stream(stream)) => stream.give_up().await,
            // Nothing is open any more, or the server gets its cancellation when this is dropped.
            Call::Http(HttpCall::Single(_)) | Call::Duplex(_) => {}
        }
    }

    fn clean(&self, next: Result<Frame, LinkError>) -> Result<Frame, LinkError> {
        match &self.redactor {
            None => next,
            Some(redactor) => next
                .map(|frame| frame.map(|message| clean(Some(redactor), message)))
                .map_err(|error| error.redacted(redactor)),
        }
    }
}
