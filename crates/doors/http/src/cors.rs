//! The headers that browsers require before pages of allowed origins can use the door (CORS).
//!
//! Cookies are never allowed in these requests: a page sends a token, as any other client does.

use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode, header};
use narthex_wire::Payload;

use crate::body::RequestBody;
use crate::listener::{Guard, single};
use crate::respond::Response;

/// Methods of the door's routes.
const METHODS: HeaderValue = HeaderValue::from_static("GET, HEAD, POST, PUT, PATCH, DELETE");
/// Response headers that scripts may read in addition to those that browsers always allow.
const EXPOSED: HeaderValue = HeaderValue::from_static(
    "Mcp-Session-Id, MCP-Protocol-Version, WWW-Authenticate, Retry-After, Location, ETag, Allow, \
     Link",
);
/// Number of seconds for which a browser need not send another preflight request.
const MAX_AGE: HeaderValue = HeaderValue::from_static("600");
/// The request headers that the answers depend on, named for caches.
const VARY: HeaderValue = HeaderValue::from_static("Origin");
const VARY_PREFLIGHT: HeaderValue = HeaderValue::from_static(
    "Origin, Access-Control-Request-Method, Access-Control-Request-Headers",
);
/// The header that a browser sends when a page of the internet calls an address of a private
/// network.
const REQUEST_PRIVATE: HeaderName =
    HeaderName::from_static("access-control-request-private-network");
const ALLOW_PRIVATE: HeaderName = HeaderName::from_static("access-control-allow-private-network");
/// The value that lets any page read an answer.
const ANY: HeaderValue = HeaderValue::from_static("*");
/// The longest list of header names that a preflight request may have.
const HEADERS_MAX: usize = 4096;

/// The origin of the page that sent the request, if it is a foreign origin that may use the door.
/// `None` for every other request.
pub(crate) fn origin(guard: &Guard, request: &Request<RequestBody>) -> Option<HeaderValue> {
    let origin = request.headers().get(header::ORIGIN)?;
    let text = single(request.headers(), &header::ORIGIN)??;
    (guard.allows_origin(text) && guard.admits(request.uri(), request.headers()))
        .then(|| origin.clone())
}

/// Answers a preflight request. Returns `None` for every other request.
///
/// The answer does not depend on what exists at the path, so the request needs no token.
pub(crate) fn preflight(origin: &HeaderValue, request: &Request<RequestBody>) -> Option<Response> {
    let asked = request.headers();
    let is_one = request.method() == Method::OPTIONS
        && asked.contains_key(header::ACCESS_CONTROL_REQUEST_METHOD);
    if !is_one {
        return None;
    }
    let mut response = Response::new(Payload::default().into());
    *response.status_mut() = StatusCode::NO_CONTENT;
    let headers = response.headers_mut();
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
    headers.insert(header::VARY, VARY_PREFLIGHT);
    headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, METHODS);
    headers.insert(header::ACCESS_CONTROL_MAX_AGE, MAX_AGE);
    // The name of each `Mcp-Param-*` header contains the name of an argument, so no fixed list can
    // have them all.
    if let Some(names) = asked.get(header::ACCESS_CONTROL_REQUEST_HEADERS).filter(is_list) {
        headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, names.clone());
    }
    if asked.contains_key(REQUEST_PRIVATE) {
        headers.insert(ALLOW_PRIVATE, HeaderValue::from_static("true"));
    }
    Some(response)
}

/// Adds the headers that allow the page to read an answer.
pub(crate) fn open(origin: HeaderValue, headers: &mut HeaderMap) {
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
    headers.append(header::VARY, VARY);
}

/// Answers the preflight request of any page; `None` for every other request. For routes to which
/// browsers send no cookies.
pub(crate) fn preflight_of_any(request: &Request<RequestBody>) -> Option<Response> {
    let any = ANY;
    preflight(&any, request)
}

/// Adds the header that allows any page to read an answer.
pub(crate) fn open_to_any(headers: &mut HeaderMap) {
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, ANY);
}

fn is_list(names: &&HeaderValue) -> bool {
    let is_name = |name: &str| HeaderName::from_bytes(name.trim().as_bytes()).is_ok();
    names.len() <= HEADERS_MAX && names.to_str().is_ok_and(|names| names.split(',').all(is_name))
}
