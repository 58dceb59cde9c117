//! Checks the `Host` and `Origin` of requests (S7): this check keeps foreign web pages away.
//!
//! A page that rebinds its name to our address sends that name as `Host`. A page that calls our
//! address directly sends its own `Origin`. Loopback names are allowed as `Host` with any port: no
//! foreign page can send them, and port forwarding changes the port. An `Origin` must be exactly
//! the origin that the request is sent to, a loopback name with the listener's port, or a
//! configured origin. With TLS, pages over plain HTTP are foreign: any machine on the way could
//! have sent them.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use http::{HeaderMap, HeaderName, Uri, header};

/// The hosts and origins that are allowed in addition to loopback names.
#[derive(Debug)]
pub struct Guard {
    hosts: Vec<String>,
    /// The origins of the configuration.
    origins: Vec<String>,
    /// The beginning of the origins of the listener itself: `http://` or `https://`.
    scheme: &'static str,
    /// The origins of the listener itself.
    own: [String; 3],
}

impl Guard {
    /// Creates the guard of a listener at an address, with further allowed hosts and origins.
    /// `is_tls` is true if the listener encrypts.
    #[must_use]
    pub fn new(
        listen: SocketAddr,
        is_tls: bool,
        allowed_hosts: &[String],
        allowed_origins: &[String],
    ) -> Self {
        let port = listen.port();
        let (scheme, usual_port) = if is_tls { ("https://", 443) } else { ("http://", 80) };
        let mut hosts = own_hosts(listen, usual_port);
        for host in allowed_hosts {
            let host = host.to_ascii_lowercase();
            if split_port(&host).is_some_and(|(_, port)| port.is_none()) {
                hosts.push(format!("{host}:{port}"));
            }
            hosts.push(host);
        }
        let plain = |origin: &String| origin.trim_end_matches('/').to_ascii_lowercase();
        let origins = allowed_origins.iter().map(plain).collect();
        let port = if port == usual_port { String::new() } else { format!(":{port}") };
        let own = ["localhost", "127.0.0.1", "[::1]"].map(|name| format!("{scheme}{name}{port}"));
        Self { hosts, origins, scheme, own }
    }

    /// True if the request's `Host` and `Origin` are allowed.
    #[must_use]
    pub fn admits(&self, uri: &Uri, headers: &HeaderMap) -> bool {
        let Some(Some(host)) = single(headers, &header::HOST) else { return false };
        if uri.authority().is_some_and(|authority| authority.as_str() != host) {
            return false;
        }
        let is_listed = self.hosts.iter().any(|allowed| allowed.eq_ignore_ascii_case(host));
        if !is_listed && !is_loopback(host) {
            return false;
        }
        match single(headers, &header::ORIGIN) {
            Some(None) => true,
            Some(Some(origin)) => self.admits_origin(origin, host, is_listed),
            None => false,
        }
    }

    /// True if pages of this foreign origin may use the listener.
    #[must_use]
    pub fn allows_origin(&self, origin: &str) -> bool {
        self.origins.iter().any(|allowed| allowed.eq_ignore_ascii_case(origin))
    }

    fn admits_origin(&self, origin: &str, host: &str, is_listed: bool) -> bool {
        // A proxy with TLS, which we cannot see, may be in front of a configured name.
        origin.strip_prefix(self.scheme) == Some(host)
            || is_listed && origin.strip_prefix("https://") == Some(host)
            || self.own.iter().any(|own| own == origin)
            || self.allows_origin(origin)
    }
}

fn own_hosts(listen: SocketAddr, usual_port: u16) -> Vec<String> {
    if listen.ip().is_unspecified() {
        return Vec::new();
    }
    let mut hosts = vec![listen.to_string()];
    if listen.port() == usual_port {
        hosts.push(match listen.ip() {
            IpAddr::V4(ip) => ip.to_string(),
            IpAddr::V6(ip) => format!("[{ip}]"),
        });
    }
    hosts
}

fn is_loopback(host: &str) -> bool {
    let Some((name, _port)) = split_port(host) else { return false };
    name.eq_ignore_ascii_case("localhost")
        || name == "[::1]"
        || name.parse::<Ipv4Addr>().is_ok_and(|ip| ip.is_loopback())
}

/// Splits an authority into name and port; `None` if it has any other form.
fn split_port(host: &str) -> Option<(&str, Option<u16>)> {
    let name_end = if host.starts_with('[') {
        host.find(']')? + 1
    } else {
        host.find(':').unwrap_or(host.len())
    };
    let (name, rest) = host.split_at(name_end);
    if rest.is_empty() {
        return Some((name, None));
    }
    let digits = rest.strip_prefix(':')?;
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    Some((name, Some(digits.parse().ok()?)))
}

/// The only value of a header. `Some(None)` if the header is absent; `None` if it occurs several
/// times or is not visible ASCII.
#[must_use]
pub fn single<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<Option<&'h str>> {
    let mut values = headers.get_all(name).iter();
    let Some(first) = values.next() else { return Some(None) };
    if values.next().is_some() {
        return None;
    }
    first.to_str().ok().map(Some)
}

#[cfg(test)]
mod tests;
