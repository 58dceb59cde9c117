//! Parsing of callers' large messages, off the threads on which calls run.

use bytes::Bytes;
use narthex_wire::{Message, MessageError};

use crate::{Gateway, RunView};

impl Gateway {
    /// Parses a message of a run on a thread that may block; for large messages
    /// ([`crate::is_large`]). One message per run is parsed at a time: further ones wait.
    ///
    /// # Errors
    /// The errors of [`Message::parse`].
    pub async fn parse_aside(&self, run: &RunView, text: Bytes) -> Result<Message, MessageError> {
        let limits = *self.limits();
        run.aside.run(move || Message::parse(text, &limits)).await
    }

    /// As [`Self::parse_aside`], for a batch of at most `most` messages.
    ///
    /// # Errors
    /// The errors of [`Message::parse_batch`].
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
