//! The address of a registry.

use std::fmt;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use url::Url;

use crate::{Failure, web::is_loopback};

/// The official registry of the protocol.
pub const OFFICIAL: &str = "https://registry.modelcontextprotocol.io";

/// The unreserved characters of RFC 3986 are written as they are.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The address of a registry: https, or plain HTTP to this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegistryAddress {
    url: Url,
}

impl RegistryAddress {
    /// Checks an address. `source` names the flag, variable or setting that gave it.
    ///
    /// # Errors
    /// When the text is no address, has a user, a query or a fragment, or is plain HTTP to another
    /// machine.
    pub fn new(text: &str, source: &str) -> Result<Self, Failure> {
        let wrong = |what: &str| {
            Failure::usage(format!(
                "{source} `{text}` {what}; write it like https://registry.example"
            ))
        };
        let mut url = Url::parse(text)
            .map_err(|error| wrong(&format!("is not the address of a registry: {error}")))?;
        if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
            return Err(wrong("is not an address of https"));
        }
        let has_more = url.query().is_some() || url.fragment().is_some();
        if has_more || !url.username().is_empty() || url.password().is_some() {
            let what = "has a user, a query or a fragment, which addresses of registries do not";
            return Err(wrong(what));
        }
        if url.scheme() == "http" && !is_loopback(&url) {
            let what = "is plain HTTP to another machine, so anyone on the way could change which \
                        programs are offered";
            return Err(wrong(what));
        }
        // A path of the API is added to it, and people name registries with the path of an API.
        let path = url.path().trim_end_matches('/').to_owned();
        let path = path.strip_suffix("/v0.1").unwrap_or(&path).to_owned();
        url.set_path(&path);
        Ok(Self { url })
    }

    /// The server that has the registry.
    #[must_use]
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// True for a registry of this machine without TLS, as tests have one.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        self.url.scheme() == "http"
    }

    /// The path of a request, with its query. Each segment is escaped here.
    pub(super) fn path(&self, segments: &[&str], query: &[(&str, &str)]) -> String {
        let mut path = self.url.path().trim_end_matches('/').to_owned();
        path.push_str("/v0.1");
        for segment in segments {
            path.push('/');
            path.extend(utf8_percent_encode(segment, ESCAPED));
        }
        for (index, (name, value)) in query.iter().enumerate() {
            path.push(if index == 0 { '?' } else { '&' });
            path.push_str(name);
            path.push('=');
            path.extend(utf8_percent_encode(value, ESCAPED));
        }
        path
    }
}

impl fmt::Display for RegistryAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.url.as_str().trim_end_matches('/'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// E200: a registry is reached by https, or on this machine.
    #[test]
    fn e200_an_address_of_a_registry_is_https_or_of_this_machine() {
        let path = |text: &str| {
            let address = RegistryAddress::new(text, "--registry").unwrap();
            (address.to_string(), address.path(&["servers", "a/b"], &[("limit", "1"), ("q", "& ")]))
        };
        let bare = "/v0.1/servers/a%2Fb?limit=1&q=%26%20".to_owned();
        for text in ["https://a.example", "https://a.example/", "https://a.example/v0.1/"] {
            assert_eq!(path(text), ("https://a.example".to_owned(), bare.clone()), "{text}");
        }
        assert_eq!(path("http://127.0.0.1:1").1, bare);
        assert_eq!(path("http://localhost:1/x/").1, format!("/x{bare}"));
        for text in [
            "",
            "a.example",
            "ftp://a.example",
            "http://a.example",
            "http://10.0.0.1",
            "https://u:p@a.example",
            "https://a.example/?x",
            "https://a.example/#x",
        ] {
            let message = RegistryAddress::new(text, "NARTHEX_REGISTRY").unwrap_err().message;
            assert!(message.starts_with(&format!("NARTHEX_REGISTRY `{text}` ")), "{message}");
        }
        assert!(RegistryAddress::new(OFFICIAL, "").is_ok());
    }
}
