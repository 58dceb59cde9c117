//! Receives one POST to an MCP endpoint: checks its types, reads its body, determines its era.

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use narthex_gateway::{TraceContext, is_large};
use narthex_model::ErrorKind;
use narthex_wire::{
    Era, Message, MessageError, Raw, classify_downstream,
    headers::MCP_PROTOCOL_VERSION,
    meta_key,
    rpc::{self, code},
};

use crate::listener::single;
use crate::{
    batch,
    body::{self, BodyFault, RequestBody, Room},
    door::{Door, Visit},
    legacy, modern,
    problem::Problem,
    respond::{Response, closing, rpc_error},
    servers::changes::{no_room, of_body, status_of_full},
};

/// A POST request and its door.
#[derive(Clone, Copy)]
pub(crate) struct Post<'a> {
    pub(crate) door: &'a Door,
    pub(crate) visit: &'a Visit,
}

impl Post<'_> {
    /// Counts a refused request, and returns its answer.
    pub(crate) fn refused(self, reason: &'static str, answer: Response) -> Response {
        self.door.gateway.metrics().refused(reason);
        answer
    }
}

/// Answers a POST. The request has no effect before its whole body was read (S8).
pub(crate) async fn receive(post: Post<'_>, body: RequestBody) -> Response {
    let headers = &post.visit.parts.headers;
    if !is_json(headers) {
        let problem = Problem::new(ErrorKind::Invalid, "the content type must be application/json");
        let status = StatusCode::UNSUPPORTED_MEDIA_TYPE;
        let answer = closing(problem.with_status(status).answer());
        return post.refused("content_type", answer);
    }
    if !accepts(headers, "application", "json") {
        return post.refused("accept", not_acceptable());
    }
    let limits = post.door.gateway.limits();
    let within = post.door.options.body_timeout;
    let room = Room::Run(&post.door.gateway, &post.visit.run);
    let bytes = match body::read_in(body, limits.message_bytes, within, Some(room)).await {
        Ok(bytes) => bytes,
        Err(fault) => return post.refused("body", refuse_body(fault)),
    };
    let parsed = match is_large(&bytes) {
        false => Message::parse(bytes.clone(), limits),
        true => {
            let run = &post.visit.run;
            Box::pin(post.door.gateway.parse_aside(run, bytes.clone())).await
        }
    };
    let message = match parsed {
        Ok(message) => message,
        Err(MessageError::Batch) => return Box::pin(batch::receive(post, &bytes)).await,
        Err(error) => {
            return post.refused("message", refuse(&error, Message::refused_id(&bytes)));
        }
    };
    drop(bytes);
    let Some(version) = single(headers, &MCP_PROTOCOL_VERSION) else {
        let text = "header mismatch: MCP-Protocol-Version is sent twice or cannot be read";
        let status = StatusCode::BAD_REQUEST;
        let answer = rpc_error(status, message.id(), code::HEADER_MISMATCH, text);
        return post.refused("headers", answer);
    };
    match classify_downstream(&message, version) {
        Era::Modern => modern::receive(post, message, version).await,
        Era::Legacy => legacy::receive(post, message).await,
    }
}

/// The answer to a body that is no acceptable message (S12).
pub(crate) fn refuse(error: &MessageError, id: Option<Raw<'_>>) -> Response {
    let (status, code) = match error {
        MessageError::Json(_) => (StatusCode::BAD_REQUEST, code::PARSE_ERROR),
        MessageError::TooLarge { .. } => (StatusCode::PAYLOAD_TOO_LARGE, code::INVALID_REQUEST),
        MessageError::Batch | MessageError::Envelope(_) => {
            (StatusCode::BAD_REQUEST, code::INVALID_REQUEST)
        }
    };
    rpc_error(status, id, code, &error.to_string())
}

fn refuse_body(fault: BodyFault) -> Response {
    closing(match fault {
        BodyFault::TooLarge => {
            let line = "the message is longer than allowed";
            rpc_error(StatusCode::PAYLOAD_TOO_LARGE, None, code::INVALID_REQUEST, line)
        }
        BodyFault::NoRoom(full) => {
            let status = status_of_full(full);
            rpc_error(status, None, rpc::code_for(ErrorKind::Exhausted), &no_room(full))
        }
        BodyFault::TooSlow | BodyFault::Broken => of_body(fault, "the message", 0).answer(),
    })
}

pub(crate) fn not_acceptable() -> Response {
    let text = "the client must accept application/json and text/event-stream";
    Problem::new(ErrorKind::Invalid, text).with_status(StatusCode::NOT_ACCEPTABLE).answer()
}

pub(crate) fn is_json(headers: &HeaderMap) -> bool {
    is_of_type(headers, "application/json")
}

/// True if the header `Content-Type` names this type.
pub(crate) fn is_of_type(headers: &HeaderMap, wanted: &str) -> bool {
    let Some(Some(value)) = single(headers, &header::CONTENT_TYPE) else { return false };
    let essence = value.split(';').next().unwrap_or_default();
    essence.trim().eq_ignore_ascii_case(wanted)
}

/// The W3C trace context in the headers.
pub(crate) fn trace_context(headers: &HeaderMap) -> Option<Box<TraceContext>> {
    let text = |name| Some(Box::<str>::from(headers.get(name)?.to_str().ok()?));
    let parent = text(meta_key::TRACEPARENT)?;
    let (state, baggage) = (text(meta_key::TRACESTATE), text(meta_key::BAGGAGE));
    Some(Box::new(TraceContext { parent, state, baggage }))
}

/// True if the client prefers a stream even for an immediate answer. A client says so by naming
/// event streams first.
pub(crate) fn prefers_stream(headers: &HeaderMap) -> bool {
    const STREAM: &[u8] = b"text/event-stream";
    let accept = headers.get(header::ACCEPT).map(HeaderValue::as_bytes).unwrap_or_default();
    accept.get(..STREAM.len()).is_some_and(|start| start.eq_ignore_ascii_case(STREAM))
}

/// True if the client accepts answers of this type. A client that names no types accepts all.
pub(crate) fn accepts(headers: &HeaderMap, kind: &str, subtype: &str) -> bool {
    const ACCEPT: HeaderName = header::ACCEPT;
    let mut values = headers.get_all(ACCEPT).iter();
    let Some(first) = values.next() else { return true };
    // Nearly all clients send one of these two values, which accept every type that callers of this
    // function ask for. Further header values could only add types.
    if matches!(first.as_bytes(), b"application/json, text/event-stream" | b"*/*") {
        return true;
    }
    let all = std::iter::once(first).chain(values);
    all.filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(',')).any(|range| {
        let mut parts = range.split(';');
        let is_refused = |part: &str| {
            matches!(part.trim().split_once('='), Some(("q" | "Q", q)) if q.parse() == Ok(0.0))
        };
        let Some((a, b)) = parts.next().and_then(|range| range.trim().split_once('/')) else {
            return false;
        };
        let fits = |asked: &str, offered: &str| asked == "*" || asked.eq_ignore_ascii_case(offered);
        fits(a, kind) && fits(b, subtype) && !parts.any(is_refused)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(name: HeaderName, values: &[&'static str]) -> HeaderMap {
        values.iter().map(|value| (name.clone(), HeaderValue::from_static(value))).collect()
    }

    /// The order of the types decides which is preferred, if their weights do not.
    #[test]
    fn a_client_that_lists_event_streams_first_prefers_a_stream() {
        let prefers = |text| prefers_stream(&with(header::ACCEPT, &[text]));
        assert!(prefers("text/event-stream, application/json") && prefers("Text/Event-Stream"));
        assert!(!prefers("application/json, text/event-stream") && !prefers("*/*"));
        assert!(!prefers_stream(&HeaderMap::new()));
    }

    /// S8: a body that a foreign page can send without a preflight request is refused.
    #[test]
    fn s8_only_json_content_types_count_as_json() {
        for good in ["application/json", "Application/JSON; charset=utf-8", "application/json;"] {
            assert!(is_json(&with(header::CONTENT_TYPE, &[good])), "{good}");
        }
        let bad = ["text/plain", "application/json2", "application/x-www-form-urlencoded", ""];
        for bad in bad.into_iter().chain(["text/plain; application/json", "multipart/form-data"]) {
            assert!(!is_json(&with(header::CONTENT_TYPE, &[bad])), "{bad}");
        }
        assert!(!is_json(&HeaderMap::new()));
        assert!(!is_json(&with(header::CONTENT_TYPE, &["application/json", "text/plain"])));
    }

    #[test]
    fn accept_headers_are_read_with_lists_wildcards_and_weights() {
        let table: [(&[&'static str], bool); 9] = [
            (&[], true),
            (&["application/json, text/event-stream"], true),
            (&["text/event-stream", "application/json"], true),
            (&["*/*"], true),
            (&["application/*;q=0.5"], true),
            (&["text/html, APPLICATION/JSON; q=0.1"], true),
            (&["text/html"], false),
            (&["application/json;q=0"], false),
            (&["json"], false),
        ];
        for (values, expected) in table {
            let headers = with(header::ACCEPT, values);
            assert_eq!(accepts(&headers, "application", "json"), expected, "{values:?}");
        }
    }
}
