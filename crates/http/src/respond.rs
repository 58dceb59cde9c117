//! Answers that need no stream.

use axum::{body::Body, response::Response};
use bytes::Bytes;
use http::{HeaderName, HeaderValue, StatusCode, header};
use narthex_wire::{Payload, Raw, rpc};

/// One JSON body.
pub(crate) fn json(status: StatusCode, payload: Payload) -> Response {
    let mut response = Response::new(Body::new(payload));
    *response.status_mut() = status;
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    response
}

/// A JSON-RPC error.
pub(crate) fn rpc_error(
    status: StatusCode,
    id: Option<Raw<'_>>,
    code: i64,
    message: &str,
) -> Response {
    json(status, rpc::error_response(id, code, message, None))
}

/// A status without a body.
pub(crate) fn empty(status: StatusCode) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}

/// A status and a line for people.
pub(crate) fn text(status: StatusCode, line: &'static str) -> Response {
    let mut response = Response::new(Body::from(line));
    *response.status_mut() = status;
    let plain = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, plain);
    response
}

/// Like [`text`], with one more header.
pub(crate) fn text_with(
    status: StatusCode,
    line: &'static str,
    header: (HeaderName, &'static str),
) -> Response {
    let mut response = text(status, line);
    response.headers_mut().insert(header.0, HeaderValue::from_static(header.1));
    response
}

/// An answer to somebody who proved nothing: the connection is not kept for them either.
pub(crate) fn closing(mut response: Response) -> Response {
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    response
}

/// The head of an event stream.
pub(crate) fn event_stream<B>(body: B) -> Response
where
    B: http_body::Body<Data = Bytes, Error = std::convert::Infallible> + Send + 'static,
{
    let mut response = Response::new(Body::new(body));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    // Some reverse proxies collect an answer before they pass it on, unless told not to.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}
