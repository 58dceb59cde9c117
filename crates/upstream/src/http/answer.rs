//! Reads a response without a stream.

use bytes::Bytes;
use http::{HeaderMap, header};
use narthex_wire::{Limits, Message, MessageError, MessageKind, headers::has_media_type};

use crate::LinkError;

/// Number of bytes of an error body that are shown.
const SNIPPET_BYTES: usize = 300;

/// The answer that a body carries, alone or in a batch (revision 2025-03-26).
pub(super) fn parse_answer(bytes: Bytes, limits: &Limits) -> Result<Message, LinkError> {
    let unusable = |error: MessageError| LinkError::Protocol(error.to_string());
    let is_answer =
        |message: &Message| matches!(message.kind(), MessageKind::Result | MessageKind::Error);
    let found = match Message::parse_lenient(bytes.clone(), limits) {
        Ok(message) => Some(message).filter(is_answer),
        Err(MessageError::Batch) => {
            let messages = Message::parse_batch_lenient(&bytes, limits, 100).map_err(unusable)?;
            messages.into_iter().find(is_answer)
        }
        Err(error) => return Err(unusable(error)),
    };
    found.ok_or_else(|| LinkError::Protocol("a JSON body without an answer".to_owned()))
}

/// The media type of a body, in small letters and without parameters.
fn content_type(headers: &HeaderMap) -> Option<String> {
    let value = headers.get(header::CONTENT_TYPE)?.to_str().ok()?;
    Some(value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase())
}

pub(crate) fn is_event_stream(headers: &HeaderMap) -> bool {
    has_media_type(headers, "text/event-stream")
}

/// The start of an error body, if it is text.
pub(super) fn snippet(headers: &HeaderMap, bytes: &Bytes) -> String {
    // A page for browsers has little of use in its first bytes.
    let is_text = match content_type(headers) {
        None => std::str::from_utf8(bytes).is_ok(),
        Some(kind) => {
            (kind.starts_with("text/") && kind != "text/html")
                || kind == "application/json"
                || kind.ends_with("+json")
        }
    };
    if !is_text {
        return String::new();
    }
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(SNIPPET_BYTES)]);
    text.chars().filter(|c| !c.is_control()).collect()
}
