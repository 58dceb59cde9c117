//! Newline-delimited framing: one message per line, on standard streams and Unix sockets.
//!
//! Reading is bounded before anything is buffered, and a line that lies in one chunk is not copied.

use std::collections::VecDeque;

use bytes::{Buf, Bytes, BytesMut};

use crate::{Payload, PayloadBuilder};

/// The reason why a line is refused. The parser skips the rest of that line, and continues with the
/// next line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LineError {
    /// The line is longer than allowed.
    #[error("a line longer than {limit} bytes")]
    TooLong {
        /// The limit in bytes.
        limit: usize,
    },
}

/// Cuts chunks of a byte stream into lines.
#[derive(Debug)]
pub struct LineParser {
    limit: usize,
    chunks: VecDeque<Bytes>,
    partial: BytesMut,
    is_skipping: bool,
}

impl LineParser {
    /// Starts with an empty buffer. Lines longer than `limit` bytes, without their end, are
    /// refused.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        let (chunks, partial) = (VecDeque::new(), BytesMut::new());
        Self { limit, chunks, partial, is_skipping: false }
    }

    /// Takes the next chunk. Call [`Self::next_line`] until it returns `None` before the next push:
    /// only bytes that it has read count towards the limit.
    pub fn push(&mut self, chunk: Bytes) {
        if !chunk.is_empty() {
            self.chunks.push_back(chunk);
        }
    }

    /// Returns the next complete line without its end, or `None` if more input is needed. Empty
    /// lines are skipped.
    ///
    /// # Errors
    /// When a line is too long: once per line, as soon as the limit is passed.
    pub fn next_line(&mut self) -> Result<Option<Bytes>, LineError> {
        while let Some(chunk) = self.chunks.front_mut() {
            let Some(at) = memchr::memchr(b'\n', chunk) else {
                let chunk = std::mem::take(chunk);
                self.chunks.pop_front();
                self.keep(&chunk)?;
                continue;
            };
            let piece = chunk.split_to(at);
            chunk.advance(1);
            if chunk.is_empty() {
                self.chunks.pop_front();
            }
            if std::mem::take(&mut self.is_skipping) {
                continue;
            }
            let line = self.complete(piece)?;
            if !line.is_empty() {
                return Ok(Some(line));
            }
        }
        Ok(None)
    }

    /// Keeps the start of a line whose end is not here yet.
    fn keep(&mut self, piece: &[u8]) -> Result<(), LineError> {
        if self.is_skipping {
            return Ok(());
        }
        // One byte more than the limit, as the last one may belong to the line's end.
        if self.partial.len() + piece.len() > self.limit.saturating_add(1) {
            self.is_skipping = true;
            self.partial = BytesMut::new();
            return Err(LineError::TooLong { limit: self.limit });
        }
        self.partial.extend_from_slice(piece);
        Ok(())
    }

    fn complete(&mut self, piece: Bytes) -> Result<Bytes, LineError> {
        let too_long = LineError::TooLong { limit: self.limit };
        if self.partial.len() + piece.len() > self.limit.saturating_add(1) {
            self.partial = BytesMut::new();
            return Err(too_long);
        }
        let mut line = if self.partial.is_empty() {
            piece
        } else {
            self.partial.extend_from_slice(&piece);
            std::mem::take(&mut self.partial).freeze()
        };
        if line.last() == Some(&b'\r') {
            line.truncate(line.len() - 1);
        }
        if line.len() > self.limit { Err(too_long) } else { Ok(line) }
    }
}

/// Frames JSON messages as one line each, in one payload.
///
/// Raw line ends become spaces: in valid JSON they occur only between tokens.
#[must_use]
pub fn line_frames(payloads: &[Payload]) -> Payload {
    let nothing = Bytes::new();
    let extra = payloads.iter().map(|payload| payload.len().min(4096) + 1).sum();
    let mut out = PayloadBuilder::new(&nothing, extra);
    for payload in payloads {
        push_one_line(&mut out, payload);
        out.push(b"\n");
    }
    out.build()
}

/// Adds `payload` with spaces in place of raw line ends; large pieces without any stay shared.
pub(crate) fn push_one_line(out: &mut PayloadBuilder<'_>, payload: &Payload) {
    for piece in payload.pieces() {
        if memchr::memchr2(b'\n', b'\r', piece).is_none() {
            out.share(piece);
        } else {
            let space = |&b: &u8| if matches!(b, b'\n' | b'\r') { b' ' } else { b };
            out.share(&piece.iter().map(space).collect::<Vec<_>>().into());
        }
    }
}

#[cfg(test)]
mod tests;
