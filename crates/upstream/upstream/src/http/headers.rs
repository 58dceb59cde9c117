//! The headers that all requests of a link have, built once.

use http::{HeaderMap, HeaderValue, header};
use narthex_wire::{
    Revision,
    headers::{MCP_PROTOCOL_VERSION, MCP_SESSION_ID},
};

const ACCEPT_BOTH: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");
/// Asks for answers without compression; [`narthex_http_client`] decodes answers that are
/// compressed all the same.
const UNCODED: HeaderValue = HeaderValue::from_static("identity");
const JSON: HeaderValue = HeaderValue::from_static("application/json");
/// Number of headers that a POST has in addition to the headers of every request.
const POST_HEADERS: usize = 4;
/// Number of headers that a request usually adds: version, method, name, trace.
const REQUEST_HEADERS: usize = 4;

/// Complete headers; each request gets a copy of them.
#[derive(Debug)]
pub(super) struct Headers {
    /// The headers of every request.
    pub(super) common: HeaderMap,
    /// The headers of a POST: all headers that the client adds, and room for the headers of one
    /// request. Growing a copy would cost more than copying.
    pub(super) post: HeaderMap,
}

/// The results of the handshake.
#[derive(Debug)]
pub(super) struct Established {
    pub(super) revision: Revision,
    pub(super) session: Option<HeaderValue>,
    pub(super) headers: Headers,
}

impl Headers {
    pub(super) fn new(common: HeaderMap, host: &HeaderValue) -> Self {
        let mut common = common;
        common.entry(header::ACCEPT_ENCODING).or_insert(UNCODED);
        let mut post = common.clone();
        post.reserve(POST_HEADERS + REQUEST_HEADERS);
        post.insert(header::HOST, host.clone());
        post.insert(header::ACCEPT, ACCEPT_BOTH);
        post.insert(header::CONTENT_TYPE, JSON);
        post.insert(header::CONTENT_LENGTH, HeaderValue::from_static("0"));
        Self { common, post }
    }
}

impl Established {
    pub(super) fn new(
        first: &Headers,
        host: &HeaderValue,
        revision: Revision,
        session: Option<HeaderValue>,
    ) -> Self {
        let mut common = first.common.clone();
        if revision >= Revision::V2025_06_18 {
            common.insert(MCP_PROTOCOL_VERSION, HeaderValue::from_static(revision.as_str()));
        }
        if let Some(session) = &session {
            common.insert(MCP_SESSION_ID, session.clone());
        }
        Self { revision, session, headers: Headers::new(common, host) }
    }
}
