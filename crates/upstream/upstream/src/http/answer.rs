//! Reads a response that is no stream.

use bytes::Bytes;
use http::{HeaderMap, StatusCode, header};
use narthex_wire::{Limits, Message, MessageError, MessageKind, Raw, headers::has_media_type};

use crate::{LinkError, RetryAfter};

/// Maximum number of bytes of an error body that are reported.
const SNIPPET_BYTES: usize = 300;

/// The answer in a body, alone or in a batch (revision 2025-03-26).
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

/// The reason why a body that is not JSON is no answer: the status, and the media type. `None` for
/// JSON, and for a text without a media type.
pub(super) fn is_other(status: StatusCode, headers: &HeaderMap, bytes: &Bytes) -> Option<String> {
    let status = status.as_u16();
    if bytes.trim_ascii().is_empty() {
        return Some(format!("HTTP {status} with an empty body"));
    }
    let kind = content_type(headers);
    if is_page(kind.as_deref(), bytes) {
        return Some(format!("HTTP {status} with {}", page(kind.as_deref())));
    }
    let kind = kind.filter(|kind| !is_json(kind))?;
    let text = snippet(headers, bytes);
    let text = if text.is_empty() { text } else { format!(": {text}") };
    Some(format!("HTTP {status} with `{kind}` instead of JSON{text}"))
}

/// The answer of a server that refuses a request: the JSON-RPC error in the body. For 401, 403, 429
/// and 503 with a time, the status says more, so the result is an error.
pub(crate) fn refusal(
    (status, headers): (StatusCode, &HeaderMap),
    bytes: &Bytes,
    limits: &Limits,
) -> Result<Message, LinkError> {
    if matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
        return Err(LinkError::AuthRejected { status: status.as_u16() });
    }
    let retry_after = RetryAfter::of(headers);
    let is_busy = status == StatusCode::TOO_MANY_REQUESTS
        || (status == StatusCode::SERVICE_UNAVAILABLE && retry_after.is_some());
    let is_json = has_media_type(headers, "application/json");
    let message = is_json.then(|| Message::parse_lenient(bytes.clone(), limits).ok()).flatten();
    let message = message.filter(|message| message.kind() == MessageKind::Error);
    let (text, code) = match message {
        Some(message) if !is_busy => return Ok(message),
        Some(message) => {
            let text = message.get("message").and_then(Raw::as_str).unwrap_or_default();
            (shown(&text), message.error_code())
        }
        None => (snippet(headers, bytes), None),
    };
    Err(LinkError::Status { status: status.as_u16(), text, retry_after, code })
}

/// As [`refusal`], where no caller reads a JSON-RPC error: such an answer is a failure, too.
pub(crate) fn failure(
    (status, headers): (StatusCode, &HeaderMap),
    bytes: &Bytes,
    limits: &Limits,
) -> LinkError {
    match refusal((status, headers), bytes, limits) {
        Err(error) => error,
        Ok(message) => {
            let text = message.get("message").and_then(Raw::as_str).unwrap_or_default();
            let (text, code) = (shown(&text), message.error_code());
            LinkError::Status { status: status.as_u16(), text, retry_after: None, code }
        }
    }
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
fn snippet(headers: &HeaderMap, bytes: &Bytes) -> String {
    let kind = content_type(headers);
    if is_page(kind.as_deref(), bytes) {
        // The first bytes of a page for browsers are of little use.
        return page(kind.as_deref());
    }
    let is_text = match kind {
        None => std::str::from_utf8(bytes).is_ok(),
        Some(kind) => kind.starts_with("text/") || is_json(&kind),
    };
    if !is_text {
        return String::new();
    }
    shown(&String::from_utf8_lossy(&bytes[..bytes.len().min(SNIPPET_BYTES)]))
}

/// The start of a text, as one line.
fn shown(text: &str) -> String {
    text.chars().take(SNIPPET_BYTES).filter(|c| !c.is_control()).collect()
}

fn is_json(kind: &str) -> bool {
    kind == "application/json" || kind.ends_with("+json")
}

/// True if a body is a page for browsers.
fn is_page(kind: Option<&str>, bytes: &Bytes) -> bool {
    let start = |text: &str| {
        let start = bytes.trim_ascii_start().get(..text.len());
        start.is_some_and(|start| start.eq_ignore_ascii_case(text.as_bytes()))
    };
    let has_body = !bytes.trim_ascii().is_empty();
    let is_page = kind.is_some_and(|kind| kind == "text/html" || kind == "application/xhtml+xml");
    (is_page && has_body) || start("<!doctype html") || start("<html")
}

/// Text for a page for browsers with this media type.
fn page(kind: Option<&str>) -> String {
    match kind {
        Some(kind) => format!("HTML instead of JSON (`{kind}`)"),
        None => "HTML instead of JSON (without a content type)".to_owned(),
    }
}
