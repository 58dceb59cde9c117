//! Tests of the check of `Host` and `Origin`.

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
