//! Parses large messages of callers on threads for blocking work: the threads of calls stay free.

use bytes::Bytes;
use narthex_wire::{Message, MessageError};

use crate::{Gateway, RunView};

impl Gateway {
    /// Parses a large message of a run ([`crate::is_large`]) on a thread that may block. The
    /// gateway parses one such message of a run at a time; further messages wait.
    ///
    /// # Errors
    /// The errors of [`Message::parse`].
    pub async fn parse_aside(&self, run: &RunView, text: Bytes) -> Result<Message, MessageError> {
        let limits = *self.limits();
        run.aside.run(move || Message::parse(text, &limits)).await
    }

    /// Parses a large batch of at most `most` messages, like [`Self::parse_aside`].
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
