//! Server-sent events, read and written as bytes.
//!
//! Reading follows the WHATWG rules for event streams, with one difference: an event that has an
//! id or a retry time but no data is reported, because resumable streams are primed that way.

use std::collections::VecDeque;

use bytes::{Buf, Bytes, BytesMut};

use crate::{Payload, PayloadBuilder, lines::push_one_line};

/// One event of a stream.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SseEvent {
    /// The `event` field; `None` means `message`.
    pub event: Option<Bytes>,
    /// The `id` field of this very event: ids of earlier events are not repeated. The bytes keep
    /// their whole chunk in memory, so copy an id before storing it.
    pub id: Option<Bytes>,
    /// The `retry` field.
    pub retry_ms: Option<u64>,
    /// The `data` lines joined by line feeds.
    pub data: Bytes,
    /// True if there was a `data` line at all, even an empty one.
    pub has_data: bool,
}

/// The reason why a stream is refused. Every later read fails as well.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SseError {
    /// One event is longer than allowed.
    #[error("an event longer than {limit} bytes")]
    TooLong {
        /// The limit in bytes.
        limit: usize,
    },
}

/// Cuts chunks of an event stream into events.
#[derive(Debug)]
pub struct SseParser {
    limit: usize,
    chunks: VecDeque<Bytes>,
    /// The start of a line whose end has not arrived yet.
    partial: BytesMut,
    /// True if a line ended with CR, so that a following LF belongs to the same line end.
    is_after_cr: bool,
    is_first_line: bool,
    has_failed: bool,
    event: Pending,
}

/// The event whose lines are being read.
#[derive(Debug, Default)]
struct Pending {
    /// Number of bytes of the event's lines so far.
    bytes: usize,
    fields: SseEvent,
    /// The data lines from the second on; the first alone is not copied.
    joined: BytesMut,
}

impl SseParser {
    /// Starts a stream; an event with more than `max_event_bytes` in its lines is refused.
    #[must_use]
    pub fn new(max_event_bytes: usize) -> Self {
        Self {
            limit: max_event_bytes,
            chunks: VecDeque::new(),
            partial: BytesMut::new(),
            is_after_cr: false,
            is_first_line: true,
            has_failed: false,
            event: Pending::default(),
        }
    }

    /// Takes the next chunk. Call [`Self::next_event`] until it returns `None` before the next
    /// push: only bytes that it has read count towards the limit.
    pub fn push(&mut self, chunk: Bytes) {
        if !chunk.is_empty() {
            self.chunks.push_back(chunk);
        }
    }

    /// Returns the next complete event, or `None` if more input is needed. An unfinished event at
    /// the end of a stream is dropped.
    ///
    /// # Errors
    /// When an event is too long, and at every later call.
    pub fn next_event(&mut self) -> Result<Option<SseEvent>, SseError> {
        if self.has_failed {
            return Err(SseError::TooLong { limit: self.limit });
        }
        while let Some(line) = self.next_line()? {
            if !line.is_empty() {
                self.event.line(&line);
            } else if let Some(event) = std::mem::take(&mut self.event).finish() {
                return Ok(Some(event));
            }
        }
        Ok(None)
    }

    fn next_line(&mut self) -> Result<Option<Bytes>, SseError> {
        while let Some(mut chunk) = self.chunks.pop_front() {
            if std::mem::take(&mut self.is_after_cr) && chunk[0] == b'\n' {
                chunk.advance(1);
            }
            let end = memchr::memchr2(b'\n', b'\r', &chunk);
            let piece = chunk.split_to(end.unwrap_or(chunk.len()));
            self.count(piece.len())?;
            if end.is_none() {
                self.partial.extend_from_slice(&piece);
                continue;
            }
            self.is_after_cr = chunk[0] == b'\r';
            chunk.advance(1);
            if !chunk.is_empty() {
                self.chunks.push_front(chunk);
            }
            return Ok(Some(self.complete(piece)));
        }
        Ok(None)
    }

    fn count(&mut self, bytes: usize) -> Result<(), SseError> {
        self.event.bytes += bytes;
        if self.event.bytes <= self.limit {
            return Ok(());
        }
        self.has_failed = true;
        self.partial = BytesMut::new();
        self.event = Pending::default();
        self.chunks.clear();
        Err(SseError::TooLong { limit: self.limit })
    }

    fn complete(&mut self, piece: Bytes) -> Bytes {
        let mut line = if self.partial.is_empty() {
            piece
        } else {
            self.partial.extend_from_slice(&piece);
            std::mem::take(&mut self.partial).freeze()
        };
        if std::mem::take(&mut self.is_first_line) && line.starts_with(b"\xef\xbb\xbf") {
            line.advance(3);
        }
        line
    }
}

impl Pending {
    fn line(&mut self, line: &Bytes) {
        let colon = memchr::memchr(b':', line).unwrap_or(line.len());
        let mut value = line.slice(line.len().min(colon + 1)..);
        if value.first() == Some(&b' ') {
            value.advance(1);
        }
        match &line[..colon] {
            b"data" => self.data(value),
            b"event" => self.fields.event = Some(value),
            b"id" if !value.contains(&0) => self.fields.id = Some(value),
            b"retry" if value.iter().all(u8::is_ascii_digit) => {
                let number = std::str::from_utf8(&value).ok().and_then(|text| text.parse().ok());
                self.fields.retry_ms = number.or(self.fields.retry_ms);
            }
            // A comment leaves nothing behind, so any number of them may precede an event.
            b"" => self.bytes -= line.len(),
            _ => {}
        }
    }

    fn data(&mut self, value: Bytes) {
        if !std::mem::replace(&mut self.fields.has_data, true) {
            self.fields.data = value;
            return;
        }
        let first = std::mem::take(&mut self.fields.data);
        self.joined.extend_from_slice(&first);
        self.joined.extend_from_slice(b"\n");
        self.joined.extend_from_slice(&value);
    }

    fn finish(mut self) -> Option<SseEvent> {
        if !self.joined.is_empty() {
            self.fields.data = self.joined.freeze();
        }
        let fields = self.fields;
        let is_event = fields.has_data || fields.id.is_some() || fields.retry_ms.is_some();
        // By the standard, an event needs data: a type alone only describes data.
        is_event.then_some(fields)
    }
}

/// Writes one event. `data` is one JSON message, or empty for a priming event.
///
/// Raw line ends in `data` become spaces: in valid JSON they occur only between tokens. Characters
/// that an `id` field cannot carry are left out.
#[must_use]
pub fn sse_event(id: Option<&str>, retry_ms: Option<u64>, data: &Payload) -> Payload {
    let nothing = Bytes::new();
    let mut out = PayloadBuilder::new(&nothing, data.len().min(4096) + 64);
    push_head(|piece| out.push(piece), id, retry_ms, data);
    push_one_line(&mut out, data);
    out.push(b"\n\n");
    out.build()
}

/// Appends one event to `out`, as [`sse_event`] writes it.
pub fn write_sse_event(
    out: &mut BytesMut,
    id: Option<&str>,
    retry_ms: Option<u64>,
    data: &Payload,
) {
    out.reserve(data.len() + id.map_or(0, str::len) + 64);
    push_head(|piece| out.extend_from_slice(piece), id, retry_ms, data);
    for piece in data.pieces() {
        let start = out.len();
        out.extend_from_slice(piece);
        if memchr::memchr2(b'\n', b'\r', piece).is_some() {
            let ends = out[start..].iter_mut().filter(|byte| matches!(byte, b'\n' | b'\r'));
            ends.for_each(|byte| *byte = b' ');
        }
    }
    out.extend_from_slice(b"\n\n");
}

/// Writes the fields before the data itself.
fn push_head(mut push: impl FnMut(&[u8]), id: Option<&str>, retry_ms: Option<u64>, data: &Payload) {
    if let Some(id) = id {
        push(b"id: ");
        id.split(['\r', '\n', '\0']).for_each(|part| push(part.as_bytes()));
        push(b"\n");
    }
    if let Some(retry_ms) = retry_ms {
        push(b"retry: ");
        push(retry_ms.to_string().as_bytes());
        push(b"\n");
    }
    push(if data.is_empty() { b"data:" } else { b"data: " });
}

#[cfg(test)]
mod tests;
