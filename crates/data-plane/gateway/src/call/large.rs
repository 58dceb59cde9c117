//! Large messages of callers, read away from the threads on which calls go.

use bytes::Bytes;
use narthex_wire::{Message, MessageError};

use crate::{Gateway, RunView};

impl Gateway {
    /// Reads a message of a run on a thread that may block. A run has one at a time: further ones
    /// wait. It is for large messages ([`crate::is_large`]).
    ///
    /// # Errors
    /// Those of [`Message::parse`].
    pub async fn parse_aside(&self, run: &RunView, text: Bytes) -> Result<Message, MessageError> {
        let limits = *self.limits();
        run.aside.run(move || Message::parse(text, &limits)).await
    }

    /// The same of a batch with at most so many messages.
    ///
    /// # Errors
    /// Those of [`Message::parse_batch`].
    pub async fn parse_batch_aside(
        &self,
        run: &RunView,
        text: Bytes,
        most: usize,
    ) -> Result<Vec<Message>, MessageError> {
        let limits = *self.limits();
        run.aside.run(move || Message::parse_batch(&text, &limits, most)).await
    }
}
