//! The syntactic rules for addresses that servers and clients name. The caller's guard checks the
//! hosts when it connects.

use url::{Host, Url};

/// An address that must not be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AddressFault {
    /// The text is no absolute address.
    #[error("it is not an absolute address")]
    NotUrl,
    /// The scheme is neither https, nor http on loopback for a server on loopback.
    #[error("it is not https (http is allowed on loopback, for servers on loopback only)")]
    NotHttps,
    /// The address has a user name, a password or a fragment.
    #[error("it has a user name, a password or a fragment")]
    NotPlain,
}

/// The addresses that the other side may name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reach {
    is_local: bool,
}

impl Reach {
    /// The reach of strangers: https alone.
    pub(crate) const PUBLIC: Self = Self { is_local: false };

    /// The reach of a server: http on loopback only if the server itself is on loopback.
    #[must_use]
    pub fn of(server: &Url) -> Self {
        Self { is_local: is_loopback(server) }
    }

    /// Reads an address that the other side names.
    ///
    /// # Errors
    /// When the address must not be used.
    pub fn parse(self, text: &str) -> Result<Url, AddressFault> {
        let url = Url::parse(text).map_err(|_error| AddressFault::NotUrl)?;
        self.check(&url).map(|()| url)
    }

    /// Checks an address that the other side names.
    ///
    /// # Errors
    /// When the address must not be used.
    pub fn check(self, url: &Url) -> Result<(), AddressFault> {
        let is_safe = match url.scheme() {
            "https" => url.has_host(),
            "http" => self.is_local && is_loopback(url),
            _ => false,
        };
        let is_plain = url.username().is_empty() && url.password().is_none();
        match (is_safe, is_plain && url.fragment().is_none()) {
            (false, _) => Err(AddressFault::NotHttps),
            (true, false) => Err(AddressFault::NotPlain),
            (true, true) => Ok(()),
        }
    }
}

/// True for an address on this machine.
pub(crate) fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(ip)) => ip.is_loopback(),
        Some(Host::Ipv6(ip)) => ip.is_loopback(),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn oauth_c9_addresses_are_https_or_loopback_for_servers_on_loopback() {
        let reach = |server: &str| Reach::of(&Url::parse(server).unwrap());
        let (public, local) = (reach("https://mcp.example/mcp"), reach("http://127.0.0.1:1/mcp"));
        for both in ["https://as.example/token?x=1", "https://127.0.0.1/token"] {
            assert!(public.parse(both).is_ok() && local.parse(both).is_ok(), "{both}");
        }
        for only_local in ["http://localhost:3/t", "http://127.0.0.2/t", "http://[::1]:9/t"] {
            assert_eq!(public.parse(only_local), Err(AddressFault::NotHttps), "{only_local}");
            assert!(local.parse(only_local).is_ok(), "{only_local}");
        }
        for neither in ["http://as.example", "file:///etc/passwd", "javascript:alert(1)", "data:x"]
        {
            assert_eq!(local.parse(neither), Err(AddressFault::NotHttps), "{neither}");
        }
        for marked in ["https://u@as.example", "https://u:p@as.example", "https://as.example#f"] {
            assert_eq!(public.parse(marked), Err(AddressFault::NotPlain), "{marked}");
        }
        for text in ["", "as.example/token", "/token"] {
            assert_eq!(public.parse(text), Err(AddressFault::NotUrl), "{text}");
        }
    }
}
