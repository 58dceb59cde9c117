//! The headers that browsers need before pages of allowed origins can use the door (CORS).
//!
//! Cookies are never allowed with it: a page shows a token, as any other client.

use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode, header};
use narthex_wire::Payload;

use crate::body::RequestBody;
use crate::listener::{Guard, single};
use crate::respond::Response;

/// Methods of the door's routes.
const METHODS: HeaderValue = HeaderValue::from_static("GET, HEAD, POST, PUT, PATCH, DELETE");
/// Headers of answers that scripts may read besides those that they always may.
const EXPOSED: HeaderValue = HeaderValue::from_static(
    "Mcp-Session-Id, MCP-Protocol-Version, WWW-Authenticate, Retry-After, Location, ETag, Allow, \
     Link",
);
/// Seconds for which a browser need not ask again.
const MAX_AGE: HeaderValue = HeaderValue::from_static("600");
/// The request headers that the answers depend on, for caches.
const VARY: HeaderValue = HeaderValue::from_static("Origin");
const VARY_PREFLIGHT: HeaderValue = HeaderValue::from_static(
    "Origin, Access-Control-Request-Method, Access-Control-Request-Headers",
);
/// Asked where a page of the internet calls an address of a private network.
const REQUEST_PRIVATE: HeaderName =
    HeaderName::from_static("access-control-request-private-network");
const ALLOW_PRIVATE: HeaderName = HeaderName::from_static("access-control-allow-private-network");
/// The longest list of headers that a browser may ask for.
const HEADERS_MAX: usize = 4096;

/// The origin of a page that may use the door from elsewhere; `None` for every other request.
pub(crate) fn origin(guard: &Guard, request: &Request<RequestBody>) -> Option<HeaderValue> {
    let origin = request.headers().get(header::ORIGIN)?;
    let text = single(request.headers(), &header::ORIGIN)??;
    (guard.allows_origin(text) && guard.admits(request.uri(), request.headers()))
        .then(|| origin.clone())
}

/// The answer to the question that a browser asks before a request; `None` if this is none.
///
/// The answer says nothing of what is behind the path, so it needs no token.
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
    // The names of `Mcp-Param-*` are those of arguments, so no list has them all.
    if let Some(names) = asked.get(header::ACCESS_CONTROL_REQUEST_HEADERS).filter(is_list) {
        headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, names.clone());
    }
    if asked.contains_key(REQUEST_PRIVATE) {
        headers.insert(ALLOW_PRIVATE, HeaderValue::from_static("true"));
    }
    Some(response)
}

/// Lets the page read an answer.
pub(crate) fn open(origin: HeaderValue, headers: &mut HeaderMap) {
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
    headers.append(header::VARY, VARY);
}

fn is_list(names: &&HeaderValue) -> bool {
    let is_name = |name: &str| HeaderName::from_bytes(name.trim().as_bytes()).is_ok();
    names.len() <= HEADERS_MAX && names.to_str().is_ok_and(|names| names.split(',').all(is_name))
}
