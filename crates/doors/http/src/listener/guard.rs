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
mod tests {
    use http::HeaderValue;

    use super::*;

    fn guard(allowed_hosts: &[&str], allowed_origins: &[&str]) -> Guard {
        let owned = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect::<Vec<_>>();
        let listen = "127.0.0.1:7717".parse().unwrap();
        Guard::new(listen, false, &owned(allowed_hosts), &owned(allowed_origins))
    }

    fn admits(guard: &Guard, host: &str, origin: Option<&str>) -> bool {
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, HeaderValue::from_bytes(host.as_bytes()).unwrap());
        if let Some(origin) = origin {
            headers.insert(header::ORIGIN, HeaderValue::from_bytes(origin.as_bytes()).unwrap());
        }
        guard.admits(&Uri::from_static("/mcp"), &headers)
    }

    /// S7: names that a foreign page could have are refused in every spelling.
    #[test]
    fn s7_foreign_hosts_are_refused() {
        let guard = guard(&["gateway.example", "other.example:8443"], &[]);
        let good = [
            "127.0.0.1:7717",
            "localhost:7717",
            "LocalHost:7717",
            "[::1]:7717",
            "127.0.0.2:7717",
            "localhost",
            "localhost:40000",
            "gateway.example",
            "Gateway.Example:7717",
            "other.example:8443",
        ];
        let bad = [
            "",
            "evil.example",
            "evil.example:7717",
            "localhost.:7717",
            "localhost.evil.example:7717",
            "127.0.0.1.evil.example:7717",
            "localhost:7717@evil.example",
            "user@localhost:7717",
            "localhost:",
            "localhost:x",
            "localhost:99999",
            "localhost:7717:7717",
            "[::1",
            "[::2]:7717",
            "[::ffff:127.0.0.1]:7717",
            "::1",
            "0.0.0.0:7717",
            "0177.0.0.1:7717",
            "127.1:7717",
            "2130706433:7717",
            "10.0.0.1:7717",
            "gateway.example.",
            "gateway.example:80",
            "other.example",
            "a.gateway.example",
            "null",
            " localhost:7717",
        ];
        for host in good {
            assert!(admits(&guard, host, None), "{host}");
        }
        for host in bad {
            assert!(!admits(&guard, host, None), "{host}");
        }
    }

    /// S7: an origin must match exactly.
    #[test]
    fn s7_foreign_origins_are_refused() {
        let guard = guard(&["gateway.example"], &["https://dash.example"]);
        let table = [
            ("127.0.0.1:7717", "http://127.0.0.1:7717", true),
            ("127.0.0.1:7717", "http://localhost:7717", true),
            ("localhost:40000", "http://localhost:40000", true),
            ("gateway.example", "https://gateway.example", true),
            ("gateway.example:7717", "http://gateway.example:7717", true),
            ("127.0.0.1:7717", "https://dash.example", true),
            ("127.0.0.1:7717", "null", false),
            ("127.0.0.1:7717", "", false),
            ("127.0.0.1:7717", "http://evil.example", false),
            ("127.0.0.1:7717", "http://evil.example:7717", false),
            ("127.0.0.1:7717", "http://localhost", false),
            ("127.0.0.1:7717", "http://localhost:3000", false),
            ("127.0.0.1:7717", "https://localhost:7717", false),
            ("127.0.0.1:7717", "http://localhost.:7717", false),
            ("127.0.0.1:7717", "http://localhost:7717/", false),
            ("127.0.0.1:7717", "http://localhost:7717.evil.example", false),
            ("127.0.0.1:7717", "http://user@localhost:7717", false),
            ("127.0.0.1:7717", "http://localhost:7717@evil.example", false),
            ("127.0.0.1:7717", "http://localhost:7717, http://evil.example", false),
            ("127.0.0.1:7717", "file://", false),
            ("127.0.0.1:7717", "http://dash.example", false),
            ("127.0.0.1:7717", "https://dash.example.", false),
            ("127.0.0.1:7717", "https://dash.example:443", false),
            ("gateway.example", "https://other.example", false),
            ("evil.example", "http://evil.example", false),
        ];
        for (host, origin, expected) in table {
            assert_eq!(admits(&guard, host, Some(origin)), expected, "{host} {origin}");
        }
    }

    /// S7: requests that two readers could read differently are refused.
    #[test]
    fn s7_ambiguous_requests_are_refused() {
        let guard = guard(&[], &[]);
        let uri = Uri::from_static("/mcp");
        assert!(!guard.admits(&uri, &HeaderMap::new()), "no host at all");
        let local = HeaderValue::from_static("localhost:7717");
        let mut headers = HeaderMap::from_iter([(header::HOST, local.clone())]);
        assert!(guard.admits(&Uri::from_static("http://localhost:7717/mcp"), &headers));
        assert!(!guard.admits(&Uri::from_static("http://evil.example/mcp"), &headers));
        headers.append(header::HOST, local);
        assert!(!guard.admits(&uri, &headers), "two hosts");
        headers.remove(header::HOST);
        headers.insert(header::HOST, HeaderValue::from_static("localhost:7717"));
        headers.append(header::ORIGIN, HeaderValue::from_static("http://localhost:7717"));
        headers.append(header::ORIGIN, HeaderValue::from_static("http://evil.example"));
        assert!(!guard.admits(&uri, &headers), "two origins");
    }

    #[test]
    fn the_address_of_the_listener_is_allowed() {
        let guard = |listen: &str| Guard::new(listen.parse().unwrap(), false, &[], &[]);
        let own = guard("192.0.2.7:80");
        assert!(admits(&own, "192.0.2.7:80", None) && admits(&own, "192.0.2.7", None));
        assert!(!admits(&own, "192.0.2.8", None));
        assert!(!admits(&guard("0.0.0.0:7717"), "0.0.0.0:7717", None));
    }

    /// S7: a page over plain HTTP, which any machine on the way can send, may not use TLS's port.
    #[test]
    fn s7_with_tls_only_encrypted_pages_are_own() {
        let hosts = ["gateway.example".to_owned()];
        let guard = |listen: &str| Guard::new(listen.parse().unwrap(), true, &hosts, &[]);
        for (listen, host, origin, expected) in [
            ("127.0.0.1:7717", "localhost:7717", "https://localhost:7717", true),
            ("127.0.0.1:7717", "localhost:7717", "http://localhost:7717", false),
            ("127.0.0.1:7717", "127.0.0.1:40000", "https://127.0.0.1:40000", true),
            ("127.0.0.1:7717", "127.0.0.1:7717", "https://localhost:7717", true),
            ("0.0.0.0:7717", "gateway.example:7717", "https://gateway.example:7717", true),
            ("0.0.0.0:7717", "gateway.example:7717", "http://gateway.example:7717", false),
            ("192.0.2.7:443", "192.0.2.7", "https://192.0.2.7", true),
            ("127.0.0.1:443", "127.0.0.1", "https://localhost", true),
            ("127.0.0.1:443", "127.0.0.1", "https://localhost:8443", false),
        ] {
            assert_eq!(admits(&guard(listen), host, Some(origin)), expected, "{host} {origin}");
        }
    }
}
