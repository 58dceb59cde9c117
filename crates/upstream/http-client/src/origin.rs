//! The origin of a client's requests: one scheme, host and port, and no other.

use http::{HeaderValue, Uri, uri::PathAndQuery};
use rustls::pki_types::ServerName;
use url::{Host, Url};

use super::ClientError;

/// A scheme, host and port, in the forms for sending.
#[derive(Debug)]
pub(super) struct Origin {
    /// The host as the resolver wants it.
    pub(super) host: Host<String>,
    pub(super) port: u16,
    /// Host and port as people read it.
    pub(super) address: String,
    pub(super) host_header: HeaderValue,
    /// The name that the certificate must have; `None` is plain http.
    pub(super) tls_name: Option<ServerName<'static>>,
}

impl Origin {
    pub(super) fn new(url: &Url) -> Result<Self, ClientError> {
        Self::parse(url).ok_or_else(|| ClientError::Address { url: printable(url) })
    }

    fn parse(url: &Url) -> Option<Self> {
        let host = url.host()?.to_owned();
        let port = url.port_or_known_default()?;
        let tls_name = match url.scheme() {
            "http" => None,
            "https" => Some(tls_name(&host)?),
            _ => return None,
        };
        let host_header = match url.port() {
            Some(port) => format!("{host}:{port}"),
            None => host.to_string(),
        };
        let host_header = HeaderValue::try_from(host_header).ok()?;
        Some(Self { address: format!("{host}:{port}"), host, port, host_header, tls_name })
    }

    fn scheme(&self) -> &'static str {
        if self.tls_name.is_some() { "https" } else { "http" }
    }

    /// True if the address leads here.
    pub(super) fn contains(&self, url: &Url) -> bool {
        url.scheme() == self.scheme()
            && url.port_or_known_default() == Some(self.port)
            && url.host().is_some_and(|host| host.to_owned() == self.host)
    }

    /// The path and query of a request for this origin; a request for another one is refused.
    pub(super) fn path_of(&self, uri: &Uri) -> Result<PathAndQuery, ClientError> {
        let path = || {
            uri.path_and_query()
                .filter(|path| path.as_str().starts_with('/'))
                .cloned()
                .unwrap_or_else(|| PathAndQuery::from_static("/"))
        };
        if uri.scheme().is_none() && uri.authority().is_none() {
            return Ok(path());
        }
        match Url::parse(&uri.to_string()) {
            Ok(url) if self.contains(&url) => Ok(path()),
            Ok(url) => Err(self.refuse(printable(&url))),
            Err(_unparsable) => Err(self.refuse("an unreadable address".to_owned())),
        }
    }

    fn refuse(&self, wanted: String) -> ClientError {
        ClientError::OtherOrigin { wanted, origin: format!("{}://{}", self.scheme(), self.address) }
    }

    /// The target of a `Location`, seen from a path of this origin.
    pub(super) fn resolve(&self, path: &PathAndQuery, location: &str) -> Option<Url> {
        let base = format!("{}://{}{path}", self.scheme(), self.address);
        Url::parse(&base).ok()?.join(location).ok()
    }
}

fn tls_name(host: &Host<String>) -> Option<ServerName<'static>> {
    match host {
        Host::Domain(name) => ServerName::try_from(name.clone()).ok(),
        Host::Ipv4(ip) => Some(ServerName::IpAddress((*ip).into())),
        Host::Ipv6(ip) => Some(ServerName::IpAddress((*ip).into())),
    }
}

/// The address without parts that may be secret: user name, password, query and fragment.
pub(super) fn printable(url: &Url) -> String {
    match url.host_str() {
        None => format!("{}:…", url.scheme()),
        Some(host) => {
            let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
            format!("{}://{host}{port}{}", url.scheme(), url.path())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origin(url: &str) -> Origin {
        Origin::new(&Url::parse(url).unwrap()).unwrap()
    }

    #[test]
    fn default_ports_are_left_out_of_the_host_header_only() {
        let origin = origin("https://u:p@Example.com/mcp?key=1");
        assert_eq!(origin.host_header, "example.com");
        assert_eq!(origin.address, "example.com:443");
        assert_eq!(self::origin("http://[::1]:81/").host_header, "[::1]:81");
    }

    #[test]
    fn requests_for_other_origins_are_refused_without_showing_secrets() {
        let origin = origin("http://a.test:8000/mcp");
        for own in ["/x?y=1", "http://a.test:8000/x?y=1", "http://A.test:8000/x?y=1"] {
            assert_eq!(origin.path_of(&own.parse().unwrap()).unwrap(), "/x?y=1");
        }
        for other in [
            "https://a.test:8000/x?token=hush",
            "http://a.test/x?token=hush",
            "http://user:hush@b.test:8000/x",
        ] {
            let error = origin.path_of(&other.parse().unwrap()).unwrap_err().to_string();
            assert!(!error.contains("hush"), "{error}");
        }
    }

    #[test]
    fn only_http_addresses_with_a_host_are_accepted() {
        for url in ["ftp://a/", "unix:/run/x", "data:x,y"] {
            Origin::new(&Url::parse(url).unwrap()).unwrap_err();
        }
    }
}
