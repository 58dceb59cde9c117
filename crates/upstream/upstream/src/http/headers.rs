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
/// The value of `Authorization` in headers that are built before the credential is known.
const BLANK: HeaderValue = HeaderValue::from_static("");
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
    /// True if `Authorization` is blank until a request has its credential. To replace a header
    /// costs less than to add one.
    is_blank: bool,
}

/// The results of the handshake.
#[derive(Debug)]
pub(super) struct Established {
    pub(super) revision: Revision,
    pub(super) session: Option<HeaderValue>,
    pub(super) headers: Headers,
}

impl Headers {
    /// Headers of a link whose requests will probably have a credential of their own, if
    /// `is_authorized`.
    pub(super) fn new(mut common: HeaderMap, host: &HeaderValue, is_authorized: bool) -> Self {
        let is_blank = is_authorized && !common.contains_key(header::AUTHORIZATION);
        if is_blank {
            common.insert(header::AUTHORIZATION, BLANK);
        }
        common.entry(header::ACCEPT_ENCODING).or_insert(UNCODED);
        Self::built(common, host, is_blank)
    }

    fn built(common: HeaderMap, host: &HeaderValue, is_blank: bool) -> Self {
        let mut post = common.clone();
        post.reserve(POST_HEADERS + REQUEST_HEADERS);
        post.insert(header::HOST, host.clone());
        post.insert(header::ACCEPT, ACCEPT_BOTH);
        post.insert(header::CONTENT_TYPE, JSON);
        post.insert(header::CONTENT_LENGTH, HeaderValue::from_static("0"));
        Self { common, post, is_blank }
    }

    /// Puts the credential of one request into a copy of these headers. `None`: the request keeps
    /// the credential of the definition, or has none.
    pub(super) fn authorize(&self, copy: &mut HeaderMap, value: Option<&HeaderValue>) {
        match value {
            Some(value) => {
                copy.insert(header::AUTHORIZATION, value.clone());
            }
            None if self.is_blank => {
                copy.remove(header::AUTHORIZATION);
            }
            None => {}
        }
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
        Self { revision, session, headers: Headers::built(common, host, first.is_blank) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host() -> HeaderValue {
        HeaderValue::from_static("mcp.example.com")
    }

    fn sent(
        headers: &Headers,
        map: &HeaderMap,
        value: Option<&HeaderValue>,
    ) -> Option<HeaderValue> {
        let mut copy = map.clone();
        headers.authorize(&mut copy, value);
        copy.get(header::AUTHORIZATION).cloned()
    }

    /// C28: a credential of a request replaces one in the definition. Without one, the
    /// definition's stays, and no blank header is sent.
    #[test]
    fn oauth_c28_each_request_has_the_credential_of_its_moment() {
        let token = HeaderValue::from_static("Bearer t-1");
        let basic = HeaderValue::from_static("Basic eA==");
        for (fixed, is_authorized) in
            [(None, false), (None, true), (Some(&basic), false), (Some(&basic), true)]
        {
            let mut common = HeaderMap::new();
            common.extend(fixed.map(|fixed| (header::AUTHORIZATION, fixed.clone())));
            let first = Headers::new(common, &host(), is_authorized);
            let established = Established::new(&first, &host(), Revision::V2025_06_18, None);
            for headers in [&first, &established.headers] {
                for map in [&headers.common, &headers.post] {
                    let with = sent(headers, map, Some(&token)).unwrap();
                    assert_eq!(with, token);
                    assert_eq!(sent(headers, map, None).as_ref(), fixed);
                }
            }
        }
    }

    /// E22: a link without such a credential has no blank header.
    #[test]
    fn e22_a_link_without_a_changing_credential_is_as_it_was() {
        let headers = Headers::new(HeaderMap::new(), &host(), false);
        assert!(!headers.post.contains_key(header::AUTHORIZATION));
        assert!(!headers.common.contains_key(header::AUTHORIZATION));
    }
}
