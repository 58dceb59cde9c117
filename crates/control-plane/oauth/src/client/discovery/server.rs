//! Checks of an authorization server's metadata.

use std::fmt;

use url::Url;

use crate::{
    address::{AddressFault, Reach},
    client::Flow,
    metadata::ServerMetadata,
    pkce,
};

/// The reason why a document is not used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// The document is of another issuer.
    Issuer,
    /// A required endpoint is absent.
    Missing(&'static str),
    /// An address must not be used.
    Address(&'static str, AddressFault),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Issuer => f.write_str("the document is of another issuer"),
            Self::Missing(name) => write!(f, "the document has no `{name}`"),
            Self::Address(name, fault) => write!(f, "`{name}` cannot be used: {fault}"),
        }
    }
}

/// True if a document's issuer is the one that its place was built from.
///
/// Letter by letter, or one server could speak for another (RFC 8414, 3.3); only the slash of an
/// issuer without a path may be there or not.
pub(super) fn is_issuer(asked: &str, said: &str) -> bool {
    let has_no_path =
        |text: &str| Url::parse(text).is_ok_and(|url| url.path() == "/" && url.query().is_none());
    let bare = |text: &str| text.strip_suffix('/').unwrap_or(text).to_owned();
    asked == said || has_no_path(asked) && has_no_path(said) && bare(asked) == bare(said)
}

/// Checks that all endpoints can be used, and that those are there which a flow needs.
pub(super) fn check_endpoints(
    metadata: &ServerMetadata,
    reach: Reach,
    flow: Flow,
) -> Result<(), Fault> {
    for (name, url) in metadata.endpoints() {
        reach.check(url).map_err(|fault| Fault::Address(name, fault))?;
    }
    let endpoint = match flow {
        Flow::Browser => ("authorization_endpoint", metadata.authorization_endpoint.is_some()),
        Flow::Device => {
            ("device_authorization_endpoint", metadata.device_authorization_endpoint.is_some())
        }
        Flow::Machine => ("token_endpoint", true),
    };
    for (name, is_there) in [endpoint, ("token_endpoint", metadata.token_endpoint.is_some())] {
        if !is_there {
            return Err(Fault::Missing(name));
        }
    }
    Ok(())
}

/// The endpoints of a server without metadata, as of MCP 2025-03-26. Such servers must support
/// PKCE.
pub(super) fn fixed_endpoints(server: &Url) -> Option<ServerMetadata> {
    let issuer = server.origin().ascii_serialization();
    let endpoint = |path: &str| Url::parse(&format!("{issuer}{path}")).ok();
    Some(ServerMetadata {
        authorization_endpoint: Some(endpoint("/authorize")?),
        token_endpoint: Some(endpoint("/token")?),
        registration_endpoint: Some(endpoint("/register")?),
        code_challenge_methods_supported: Some(vec![pkce::METHOD.to_owned()]),
        issuer,
        ..ServerMetadata::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn oauth_c7_and_q1_only_the_slash_of_a_bare_issuer_may_differ() {
        for (asked, said) in [
            ("https://accounts.google.com", "https://accounts.google.com/"),
            ("https://accounts.google.com/", "https://accounts.google.com"),
            ("https://a.example/t", "https://a.example/t"),
            ("https://a.example/t/", "https://a.example/t/"),
        ] {
            assert!(is_issuer(asked, said), "{asked} {said}");
        }
        for (asked, said) in [
            ("https://a.example/t", "https://a.example/t/"),
            ("https://a.example/t/", "https://a.example/t"),
            ("https://a.example/t", "https://a.example"),
            ("https://a.example", "https://A.example"),
            ("https://a.example", "https://a.example:443"),
            ("https://a.example", "https://a.example//"),
            ("https://a.example", "https://a.example/?x"),
            ("https://a.example", "https://b.example"),
            ("https://a.example", ""),
        ] {
            assert!(!is_issuer(asked, said), "{asked} {said}");
        }
    }
}
