//! Answers and their bodies.

use std::{
    convert::Infallible,
    fmt,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use http::{HeaderValue, StatusCode, header};
use http_body::{Body, Frame, SizeHint};
use narthex_wire::{Payload, Raw, rpc};

use crate::{
    feed::FeedStream,
    file::FileStream,
    lines::LinesStream,
    stream::{CallStream, ReaderStream},
};

/// An answer of this door.
pub(crate) type Response = http::Response<ResponseBody>;

/// The body of an answer. It is not boxed, since nearly all answers are one short text.
pub struct ResponseBody(Kind);

enum Kind {
    Whole(Payload),
    Call(Box<CallStream>),
    Kept(Box<ReaderStream>),
    Feed(Box<FeedStream>),
    Lines(Box<LinesStream>),
    File(Box<FileStream>),
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match &mut self.0 {
            Kind::Whole(payload) => Pin::new(payload).poll_frame(cx),
            Kind::Call(stream) => Pin::new(stream).poll_frame(cx),
            Kind::Kept(stream) => Pin::new(stream).poll_frame(cx),
            Kind::Feed(stream) => Pin::new(stream).poll_frame(cx),
            Kind::Lines(stream) => Pin::new(stream).poll_frame(cx),
            Kind::File(stream) => Pin::new(stream).poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Kind::Whole(payload) => payload.is_end_stream(),
            Kind::File(stream) => stream.is_end_stream(),
            Kind::Call(_) | Kind::Kept(_) | Kind::Feed(_) | Kind::Lines(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Kind::Whole(payload) => payload.size_hint(),
            Kind::File(stream) => stream.size_hint(),
            Kind::Call(_) | Kind::Kept(_) | Kind::Feed(_) | Kind::Lines(_) => SizeHint::default(),
        }
    }
}

impl ResponseBody {
    /// The complete body, if all of it is in memory already.
    pub(crate) fn whole(&self) -> Option<Bytes> {
        match &self.0 {
            Kind::Whole(payload) => Some(payload.clone().into_bytes()),
            Kind::Call(_) | Kind::Kept(_) | Kind::Feed(_) | Kind::Lines(_) | Kind::File(_) => None,
        }
    }
}

impl fmt::Debug for ResponseBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Kind::Whole(_) => "ResponseBody::Whole",
            Kind::Call(_) => "ResponseBody::Call",
            Kind::Kept(_) => "ResponseBody::Kept",
            Kind::Feed(_) => "ResponseBody::Feed",
            Kind::Lines(_) => "ResponseBody::Lines",
            Kind::File(_) => "ResponseBody::File",
        })
    }
}

impl From<Payload> for ResponseBody {
    fn from(payload: Payload) -> Self {
        Self(Kind::Whole(payload))
    }
}

impl From<CallStream> for ResponseBody {
    fn from(stream: CallStream) -> Self {
        Self(Kind::Call(Box::new(stream)))
    }
}

impl From<ReaderStream> for ResponseBody {
    fn from(stream: ReaderStream) -> Self {
        Self(Kind::Kept(Box::new(stream)))
    }
}

impl From<FeedStream> for ResponseBody {
    fn from(stream: FeedStream) -> Self {
        Self(Kind::Feed(Box::new(stream)))
    }
}

impl From<LinesStream> for ResponseBody {
    fn from(stream: LinesStream) -> Self {
        Self(Kind::Lines(Box::new(stream)))
    }
}

impl From<FileStream> for ResponseBody {
    fn from(stream: FileStream) -> Self {
        Self(Kind::File(Box::new(stream)))
    }
}

/// An answer with one JSON body.
pub(crate) fn json(status: StatusCode, payload: Payload) -> Response {
    let mut response = Response::new(payload.into());
    *response.status_mut() = status;
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    response
}

/// An answer with a JSON-RPC error.
pub(crate) fn rpc_error(
    status: StatusCode,
    id: Option<Raw<'_>>,
    code: i64,
    message: &str,
) -> Response {
    json(status, rpc::error_response(id, code, message, None))
}

/// An answer without a body.
pub(crate) fn empty(status: StatusCode) -> Response {
    let mut response = Response::new(Payload::default().into());
    *response.status_mut() = status;
    response
}

/// An answer with one line for people.
pub(crate) fn text(status: StatusCode, line: &'static str) -> Response {
    lines(status, Bytes::from_static(line.as_bytes()))
}

/// An answer with generated lines for people.
pub(crate) fn lines(status: StatusCode, text: impl Into<Bytes>) -> Response {
    let mut response = Response::new(Payload::from(text.into()).into());
    *response.status_mut() = status;
    let plain = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, plain);
    response
}

/// Marks an answer to a caller without valid credentials: the connection closes after it.
pub(crate) fn closing(mut response: Response) -> Response {
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    response
}

/// Marks an answer that no cache may store, and whose declared type browsers must not change.
pub(crate) fn unstored(mut response: Response) -> Response {
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

/// The headers of an event stream.
pub(crate) fn event_stream(body: impl Into<ResponseBody>) -> Response {
    let mut response = Response::new(body.into());
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    // Some reverse proxies buffer a whole answer before they pass it on. This header forbids that.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}
