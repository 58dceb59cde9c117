//! Addresses of the web, and requests to them that carry no credential.

use http::{HeaderValue, Request, header, uri::InvalidUri};
use narthex_wire::Payload;
use url::{Host, Position, Url};

const AGENT: &str = concat!("narthex/", env!("CARGO_PKG_VERSION"));

/// True if the host is this machine.
pub(crate) fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(ip)) => ip.is_loopback(),
        Some(Host::Ipv6(ip)) => ip.is_loopback(),
        Some(Host::Domain(name)) => name == "localhost",
        None => false,
    }
}

/// True for https, and for plain HTTP of this machine.
pub(crate) fn is_reachable(url: &Url) -> bool {
    match url.scheme() {
        "https" => url.host().is_some(),
        "http" => is_loopback(url),
        _ => false,
    }
}

/// The address without its query, which may be or have a key.
pub(crate) fn without_query(url: &Url) -> &str {
    &url[..Position::AfterPath]
}

/// A request for the content of an address, in this form.
///
/// # Errors
/// When the path is none of HTTP.
pub(crate) fn get(url: &Url, accept: &'static str) -> Result<Request<Payload>, InvalidUri> {
    let mut request = Request::new(Payload::default());
    *request.uri_mut() = url[Position::BeforePath..Position::AfterQuery].parse()?;
    let headers = request.headers_mut();
    headers.insert(header::ACCEPT, HeaderValue::from_static(accept));
    headers.insert(header::USER_AGENT, HeaderValue::from_static(AGENT));
    Ok(request)
}
