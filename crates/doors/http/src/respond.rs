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
use sha2::{Digest, Sha256};

use crate::{
    feed::FeedStream,
    file::FileStream,
    lines::LinesStream,
    stream::{CallStream, ReaderStream},
};

/// The caching of a public document: short, as settings change it.
const PUBLIC: HeaderValue = HeaderValue::from_static("public, max-age=300");

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

/// Marks a public document, which any cache may store for a while. Other answers are stored by no
/// cache.
///
/// `known` is the header `If-None-Match` of the request: a copy that is still right is not sent
/// again.
pub(crate) fn public(response: Response, known: Option<&HeaderValue>) -> Response {
    let document = response.body().whole().filter(|_| response.status() == StatusCode::OK);
    let mut response = unstored(response);
    let Some(tag) = document.and_then(|document| tag_of(&document)) else { return response };
    if known.is_some_and(|known| has_tag(known, &tag)) {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        *response.body_mut() = Payload::default().into();
        response.headers_mut().remove(header::CONTENT_TYPE);
    }
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, PUBLIC);
    headers.insert(header::ETAG, tag);
    response
}

/// The name of a document's content.
fn tag_of(document: &[u8]) -> Option<HeaderValue> {
    let digest: [u8; 32] = Sha256::digest(document).into();
    let start = u128::from_be_bytes(*digest.first_chunk()?);
    HeaderValue::try_from(format!("\"{start:032x}\"")).ok()
}

/// True if `If-None-Match` names this content. Weak names count too (RFC 9110, 13.1.2).
fn has_tag(known: &HeaderValue, tag: &HeaderValue) -> bool {
    let strong = |one: &str| one.strip_prefix("W/").unwrap_or(one) == tag;
    let known = known.to_str().unwrap_or_default();
    known.split(',').map(str::trim).any(|one| one == "*" || strong(one))
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

#[cfg(test)]
mod tests {
    use super::*;

    fn document(known: Option<&'static str>) -> Response {
        let known = known.map(HeaderValue::from_static);
        public(json(StatusCode::OK, Payload::from(b"{}".to_vec())), known.as_ref())
    }

    fn is_kept(response: &Response) -> bool {
        response.headers()[header::CACHE_CONTROL] == "public, max-age=300"
    }

    /// C12: a cache that has the document gets no second copy of it.
    #[test]
    fn oauth_c12_a_public_document_has_a_tag_and_is_sent_once() {
        let first = document(None);
        assert!(is_kept(&first));
        assert_eq!(first.headers()[header::X_CONTENT_TYPE_OPTIONS], "nosniff");
        let tag = first.headers()[header::ETAG].to_str().unwrap();
        // The start of the SHA-256 of `{}`.
        assert_eq!(tag, "\"44136fa355b3678a1146ad16f7e8649e\"");
        let known = [
            "\"44136fa355b3678a1146ad16f7e8649e\"",
            "\"x\", W/\"44136fa355b3678a1146ad16f7e8649e\"",
            "*",
        ];
        for known in known {
            let again = document(Some(known));
            assert_eq!(again.status(), StatusCode::NOT_MODIFIED, "{known}");
            assert_eq!(again.body().whole().unwrap(), "", "{known}");
            assert_eq!(again.headers()[header::ETAG], tag, "{known}");
            assert!(is_kept(&again), "{known}");
        }
        for other in ["", "\"x\"", "44136fa355b3678a1146ad16f7e8649e"] {
            assert_eq!(document(Some(other)).status(), StatusCode::OK, "{other}");
        }
    }

    /// S27: a refusal at the address of a document is no document.
    #[test]
    fn s27_an_error_at_the_address_of_a_document_is_not_stored() {
        let known = HeaderValue::from_static("*");
        for status in [StatusCode::NOT_FOUND, StatusCode::FORBIDDEN, StatusCode::SEE_OTHER] {
            let response = public(text(status, "no"), Some(&known));
            assert_eq!(response.status(), status);
            assert_eq!(response.headers()[header::CACHE_CONTROL], "no-store");
            assert_eq!(response.headers().get(header::ETAG), None);
        }
    }
}
