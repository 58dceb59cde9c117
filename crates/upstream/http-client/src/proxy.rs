//! Proxies between this machine and servers: the choice of a proxy, and the way through it.

use std::{fmt, net::IpAddr, sync::Arc};

use http::{HeaderValue, Uri, uri::PathAndQuery};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use url::{Host, Url};

use super::{ClientError, connect::Stream, origin::Origin};

/// The longest answer of a proxy to the wish for a tunnel.
const TUNNEL_HEAD_BYTES: usize = 16 * 1024;

/// The proxies of a process, and the hosts that are reached without one.
///
/// Loopback addresses never go through a proxy.
#[derive(Debug, Clone, Default)]
pub struct Proxies {
    http: Option<Arc<Proxy>>,
    https: Option<Arc<Proxy>>,
    direct: Vec<Direct>,
}

/// The reason why a proxy of a setting cannot be used. The setting is not repeated, since it may
/// hold a password.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the proxy is not an address such as http://user:password@proxy.example:3128: {0}")]
pub struct ProxyFault(&'static str);

/// A proxy.
pub(super) struct Proxy {
    pub(super) origin: Origin,
    /// `Proxy-Authorization`.
    pub(super) authorization: Option<HeaderValue>,
}

/// Hosts that are reached directly.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Direct {
    All,
    /// A name and all names below it, with or without a port.
    Name(String, Option<u16>),
    /// Addresses that begin with this number of these bits.
    Net(IpAddr, u8),
}

impl Proxies {
    /// The proxies at these addresses, written as in variables such as `HTTPS_PROXY`: a URL, or
    /// `host:port`. `direct` is as in `NO_PROXY`: names, `*`, addresses and networks, separated by
    /// commas or blanks.
    ///
    /// # Errors
    /// If a text is no address of a proxy.
    pub fn new(http: Option<&str>, https: Option<&str>, direct: &str) -> Result<Self, ProxyFault> {
        let proxy = |text: Option<&str>| match text.map(str::trim) {
            None | Some("") => Ok(None),
            Some(text) => Proxy::read(text).map(|proxy| Some(Arc::new(proxy))),
        };
        let entries = direct.split([',', ' ', '\t']).map(str::trim);
        let direct = entries.filter(|entry| !entry.is_empty()).map(Direct::read).collect();
        Ok(Self { http: proxy(http)?, https: proxy(https)?, direct })
    }

    /// The proxy through which an origin is reached; `None`: directly.
    pub(super) fn of(&self, origin: &Origin) -> Option<Arc<Proxy>> {
        let proxy = if origin.tls_name.is_some() { &self.https } else { &self.http };
        let proxy = proxy.as_ref()?;
        let is_direct = is_loopback(&origin.host)
            || self.direct.iter().any(|direct| direct.covers(&origin.host, origin.port));
        (!is_direct).then(|| proxy.clone())
    }
}

impl Proxy {
    fn read(text: &str) -> Result<Self, ProxyFault> {
        let with_scheme = match text.contains("://") {
            true => text.to_owned(),
            false => format!("http://{text}"),
        };
        let url = Url::parse(&with_scheme).map_err(|_unfit| ProxyFault("it is not well formed"))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(ProxyFault("its scheme is neither http nor https"));
        }
        let origin = Origin::new(&url).map_err(|_unfit| ProxyFault("it names no host"))?;
        let credentials = narthex_model::basic_credentials(url.as_str());
        let authorization = credentials.map(|basic| {
            let value = HeaderValue::from_str(basic.expose());
            value.map(|mut value| {
                value.set_sensitive(true);
                value
            })
        });
        let authorization = authorization
            .transpose()
            .map_err(|_unfit| ProxyFault("its password cannot be used"))?;
        Ok(Self { origin, authorization })
    }

    /// The target of a request for a path of `origin` that the proxy is to answer itself.
    pub(super) fn target(origin: &Origin, path: &PathAndQuery) -> Uri {
        let host = origin.host_header.to_str().unwrap_or(&origin.address);
        let text = format!("http://{host}{path}");
        text.parse().unwrap_or_else(|_unfit| Uri::from(path.clone()))
    }

    /// Has the proxy connect to an address, for TLS or whatever else.
    pub(super) async fn tunnel(
        &self,
        mut stream: Stream,
        address: &str,
    ) -> Result<Stream, ClientError> {
        let broken = |error: std::io::Error| self.fault(&format!("the connection broke: {error}"));
        let mut wish = format!("CONNECT {address} HTTP/1.1\r\nHost: {address}\r\n").into_bytes();
        if let Some(authorization) = &self.authorization {
            wish.extend_from_slice(b"Proxy-Authorization: ");
            wish.extend_from_slice(authorization.as_bytes());
            wish.extend_from_slice(b"\r\n");
        }
        wish.extend_from_slice(b"\r\n");
        stream.write_all(&wish).await.map_err(broken)?;
        stream.flush().await.map_err(broken)?;
        let mut head = Vec::new();
        // One byte at a time, since the bytes after the head are the server's.
        while !head.ends_with(b"\r\n\r\n") {
            if head.len() == TUNNEL_HEAD_BYTES {
                return Err(self.fault("its answer is too long"));
            }
            head.push(stream.read_u8().await.map_err(broken)?);
        }
        let line = head.split(|byte| *byte == b'\r').next().unwrap_or_default();
        let line = String::from_utf8_lossy(line);
        match line.split(' ').nth(1).and_then(|code| code.parse::<u16>().ok()) {
            Some(200..=299) => Ok(stream),
            Some(407) => Err(self.fault(
                "it requires a credential (407): write the credential into the address of the \
                 proxy, as in http://user:password@proxy.example:3128",
            )),
            Some(code) => {
                Err(self.fault(&format!("it refuses a connection to {address} ({code})")))
            }
            None => Err(self.fault("its answer is not HTTP")),
        }
    }

    /// An error of the proxy, or on the way to it.
    pub(super) fn fault(&self, reason: &str) -> ClientError {
        let reason = reason.to_owned();
        ClientError::Proxy { address: self.origin.address.clone(), reason }
    }
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Proxy").field("address", &self.origin.address).finish_non_exhaustive()
    }
}

impl Direct {
    fn read(entry: &str) -> Self {
        if entry == "*" {
            return Self::All;
        }
        let plain = entry.trim_start_matches('[').trim_end_matches(']');
        let (address, bits) = plain.split_once('/').unwrap_or((plain, ""));
        if let Ok(address) = address.parse::<IpAddr>() {
            let all = if address.is_ipv4() { 32 } else { 128 };
            return Self::Net(address, bits.parse().unwrap_or(all).min(all));
        }
        let (name, port) = match entry.rsplit_once(':') {
            Some((name, port)) if port.parse::<u16>().is_ok() => (name, port.parse().ok()),
            _ => (entry, None),
        };
        let name = name.trim_start_matches('*').trim_start_matches('.').trim_end_matches('.');
        Self::Name(name.to_ascii_lowercase(), port)
    }

    fn covers(&self, host: &Host<String>, port: u16) -> bool {
        match (self, host) {
            (Self::All, _) => true,
            (Self::Name(name, only), Host::Domain(host)) => {
                let host = host.trim_end_matches('.').to_ascii_lowercase();
                let is_below =
                    host.strip_suffix(name.as_str()).is_some_and(|rest| rest.ends_with('.'));
                only.is_none_or(|only| only == port) && (host == *name || is_below)
            }
            (Self::Name(name, only), host) => {
                only.is_none_or(|only| only == port) && host.to_string() == *name
            }
            (Self::Net(net, bits), Host::Ipv4(host)) => shares(*net, (*host).into(), *bits),
            (Self::Net(net, bits), Host::Ipv6(host)) => shares(*net, (*host).into(), *bits),
            (Self::Net(..), Host::Domain(_)) => false,
        }
    }
}

/// True if the first bits of two addresses are the same.
fn shares(one: IpAddr, other: IpAddr, bits: u8) -> bool {
    let bits = u32::from(bits);
    match (one, other) {
        (IpAddr::V4(one), IpAddr::V4(other)) => {
            let differ = u32::from(one) ^ u32::from(other);
            differ.checked_shr(32 - bits).unwrap_or_default() == 0
        }
        (IpAddr::V6(one), IpAddr::V6(other)) => {
            let differ = u128::from(one) ^ u128::from(other);
            differ.checked_shr(128 - bits).unwrap_or_default() == 0
        }
        _ => false,
    }
}

fn is_loopback(host: &Host<String>) -> bool {
    match host {
        Host::Domain(name) => {
            let name = name.trim_end_matches('.').to_ascii_lowercase();
            name == "localhost" || name.ends_with(".localhost")
        }
        Host::Ipv4(address) => address.is_loopback(),
        Host::Ipv6(address) => address.is_loopback(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// E169: the forms of `NO_PROXY`, as `curl` and the libraries of other languages read it.
    #[test]
    fn e169_hosts_that_are_reached_without_a_proxy() {
        let direct = ".corp.example, intra *.dev.example other.example:8443,10.1.0.0/16,::1/64 \
                      192.0.2.7";
        let proxies = Proxies::new(Some("proxy:3128"), Some("http://proxy:1"), direct).unwrap();
        let goes = |url: &str| {
            let origin = Origin::new(&Url::parse(url).unwrap()).unwrap();
            proxies.of(&origin).map(|proxy| proxy.origin.address.clone())
        };
        for url in [
            "https://corp.example/",
            "https://a.b.Corp.Example./",
            "http://intra/",
            "http://a.intra/",
            "https://x.dev.example/",
            "https://other.example:8443/",
            "http://10.1.255.1/",
            "http://192.0.2.7/",
            "http://localhost:1/",
            "http://127.0.0.9/",
            "http://[::1]/",
        ] {
            assert_eq!(goes(url), None, "{url}");
        }
        for url in [
            "https://notcorp.example/",
            "https://other.example/",
            "https://10.2.0.1/",
            "https://192.0.2.8/",
            "https://[2001:db8::1]/",
        ] {
            assert_eq!(goes(url).as_deref(), Some("proxy:1"), "{url}");
        }
        assert_eq!(goes("http://far.example/").as_deref(), Some("proxy:3128"));
        let all = Proxies::new(Some("http://p"), None, "*").unwrap();
        let far = Origin::new(&Url::parse("http://far.example/").unwrap()).unwrap();
        assert!(all.of(&far).is_none());
    }

    /// E169: an invalid proxy is refused without repeating it, and a password is never shown.
    #[test]
    fn e169_addresses_of_proxies() {
        for text in ["socks5://hush:1080", "http://", "::"] {
            let fault = Proxies::new(Some(text), None, "").unwrap_err().to_string();
            assert!(!fault.contains("hush"), "{fault}");
        }
        let proxies = Proxies::new(Some("http://me:hush@proxy:3128"), Some(" "), "").unwrap();
        assert!(!format!("{proxies:?}").contains("hush"));
        let proxy = proxies.http.as_ref().unwrap();
        assert_eq!(proxy.authorization.as_ref().unwrap(), "Basic bWU6aHVzaA==");
        assert!(proxies.https.is_none());
    }
}
