//! The rule for addresses that the configuration names, and that get credentials.

use url::{Host, Url};

/// A configured address that must not get credentials.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CredentialAddressFault {
    /// The text is no absolute address.
    #[error(
        "the address is not absolute or not well formed; write one such as `https://host/path`"
    )]
    NotUrl,
    /// The address shows credentials to others on the way.
    #[error("the address gets credentials, which only `https://` protects; write one with https")]
    NotHttps,
    /// The address has a user name, a password or a fragment.
    #[error("the address has a user name, a password or a fragment; remove it")]
    NotPlain,
}

/// Checks an address that gets credentials: https, or http on this machine.
///
/// # Errors
/// When the address must not be used.
pub fn check_credential_address(text: &str) -> Result<(), CredentialAddressFault> {
    if text.contains(|c: char| c.is_whitespace() || c.is_control()) {
        return Err(CredentialAddressFault::NotUrl);
    }
    let url = Url::parse(text).map_err(|_error| CredentialAddressFault::NotUrl)?;
    let is_safe = match url.scheme() {
        "https" => url.has_host(),
        "http" => is_loopback(&url),
        _ => false,
    };
    let has_user = !url.username().is_empty() || url.password().is_some();
    match is_safe {
        false => Err(CredentialAddressFault::NotHttps),
        true if has_user || url.fragment().is_some() => Err(CredentialAddressFault::NotPlain),
        true => Ok(()),
    }
}

fn is_loopback(url: &Url) -> bool {
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
    fn s16_credentials_go_only_to_https_or_to_this_machine() {
        for fine in [
            "https://as.example/token?x=1",
            "http://127.0.0.1:8080/token",
            "http://localhost/token",
            "http://[::1]:9/token",
        ] {
            assert_eq!(check_credential_address(fine), Ok(()), "{fine}");
        }
        for (text, fault) in [
            ("http://as.example/token", CredentialAddressFault::NotHttps),
            ("http://localhost.example/token", CredentialAddressFault::NotHttps),
            ("ftp://as.example", CredentialAddressFault::NotHttps),
            ("https://u:p@as.example", CredentialAddressFault::NotPlain),
            ("https://u@as.example", CredentialAddressFault::NotPlain),
            ("https://as.example#f", CredentialAddressFault::NotPlain),
            ("as.example", CredentialAddressFault::NotUrl),
            ("https://as.example/a b", CredentialAddressFault::NotUrl),
            ("", CredentialAddressFault::NotUrl),
        ] {
            assert_eq!(check_credential_address(text), Err(fault), "{text}");
        }
    }
}
