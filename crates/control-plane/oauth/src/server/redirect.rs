//! Redirect URIs: the ones that may be registered, and the ones that a registered one admits.
//!
//! A code goes where a redirect URI leads, so these rules decide who gets it (RFC 6749, 10.15; RFC
//! 8252; OAuth 2.1, 2.3).

use std::{fmt, net::Ipv4Addr};

use serde::{Deserialize, Serialize};
use url::{Host, Url};

use crate::address::is_loopback;

/// The longest redirect URI, in bytes.
const URI_MAX: usize = 2048;
/// Schemes that no setting can allow: browsers run or open what they name.
const NEVER: [&str; 16] = [
    "about",
    "blob",
    "chrome",
    "data",
    "file",
    "filesystem",
    "ftp",
    "http",
    "https",
    "intent",
    "jar",
    "javascript",
    "vbscript",
    "view-source",
    "ws",
    "wss",
];
/// Private-use addresses of known clients: whole URIs, and schemes that belong to one program.
const KNOWN: [&str; 4] =
    ["cursor://anysphere.cursor-mcp/oauth/callback", "claude:", "vscode:", "vscode-insiders:"];

/// The private-use addresses that may be registered, besides https and loopback.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RedirectRules {
    /// Whole URIs.
    uris: Vec<String>,
    /// Schemes, without the colon.
    schemes: Vec<String>,
}

/// A redirect URI that was admitted by the rules, as its client wrote it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RedirectUri(String);

/// The kind of program that a redirect URI leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RedirectKind {
    /// A web page of the host that the URI names.
    Web,
    /// Any program on the user's own machine.
    Loopback,
    /// The program that registered the scheme on the user's machine.
    PrivateUse,
}

/// The reason why a redirect URI is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RedirectError {
    /// The text is no URI, is too long, or is not written in the usual form.
    #[error("a redirect URI must be an absolute URI in its usual form, of at most 2048 bytes")]
    NoUri,
    /// The URI has a fragment (RFC 6749, 3.1.2).
    #[error("a redirect URI must not have a fragment")]
    Fragment,
    /// The URI has a wildcard.
    #[error("a redirect URI must not have a wildcard")]
    Wildcard,
    /// The URI has a user name or password.
    #[error("a redirect URI must not have a user name or password")]
    User,
    /// The URI is http to another machine.
    #[error("a redirect URI with http must lead to localhost, 127.0.0.1 or [::1]; use https")]
    PlainHttp,
    /// The scheme is not allowed.
    #[error(
        "the scheme of a redirect URI must be https, http on loopback, or one that the server's \
         settings allow"
    )]
    Scheme,
}

/// An entry of the settings is neither a private-use URI nor a scheme with its colon.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` cannot be allowed: write a whole redirect URI, such as \
     `cursor://anysphere.cursor-mcp/oauth/callback`, or a scheme of one program with its colon, \
     such as `vscode:`"
)]
pub struct BadRule(String);

impl Default for RedirectRules {
    /// The addresses of known clients.
    fn default() -> Self {
        Self::new(KNOWN).expect("the known addresses follow the rules")
    }
}

impl RedirectRules {
    /// Rules that allow these addresses: each a whole URI of a private-use scheme, or a scheme with
    /// its colon. They replace the addresses of known clients.
    ///
    /// # Errors
    /// When an entry is neither, or has a scheme that can never be allowed.
    pub fn new<'e>(entries: impl IntoIterator<Item = &'e str>) -> Result<Self, BadRule> {
        let mut rules = Self { uris: Vec::new(), schemes: Vec::new() };
        for entry in entries {
            let (scheme, rest) = entry.split_once(':').ok_or_else(|| BadRule(entry.to_owned()))?;
            if !is_private_scheme(scheme) || rest.is_empty() != entry.ends_with(':') {
                return Err(BadRule(entry.to_owned()));
            }
            if rest.is_empty() {
                rules.schemes.push(scheme.to_owned());
            } else {
                parsed(entry).map_err(|_error| BadRule(entry.to_owned()))?;
                rules.uris.push(entry.to_owned());
            }
        }
        Ok(rules)
    }

    /// Admits a redirect URI of a client's registration or document (RFC 7591, 2; RFC 8252, 7).
    ///
    /// # Errors
    /// When the rules do not allow the URI.
    pub fn admit(&self, text: &str) -> Result<RedirectUri, RedirectError> {
        let url = parsed(text)?;
        match url.scheme() {
            "https" if url.host().is_some() => {}
            "http" if is_plain_and_local(&url) => {}
            "http" => return Err(RedirectError::PlainHttp),
            scheme => {
                let is_named = self.uris.iter().any(|uri| uri == text);
                if !is_named && !self.schemes.iter().any(|known| known == scheme) {
                    return Err(RedirectError::Scheme);
                }
            }
        }
        Ok(RedirectUri(text.to_owned()))
    }
}

impl RedirectUri {
    /// True if a requested redirect URI is this one. They are compared letter by letter, but the
    /// port of a loopback address is free, as a program takes any port that it gets (RFC 8252,
    /// 7.3), also when none or another was registered.
    #[must_use]
    pub fn admits(&self, requested: &str) -> bool {
        if self.0 == requested {
            return true;
        }
        match (parsed(&self.0), parsed(requested)) {
            (Ok(own), Ok(other)) => {
                is_plain_and_local(&own) && without_port(&own) == without_port(&other)
            }
            _ => false,
        }
    }

    /// The requested redirect URI, if this one admits it.
    #[must_use]
    pub fn admitted(&self, requested: &str) -> Option<Self> {
        self.admits(requested).then(|| Self(requested.to_owned()))
    }

    /// The URI as its client wrote it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The kind of program that the URI leads to.
    #[must_use]
    pub fn kind(&self) -> RedirectKind {
        match parsed(&self.0) {
            Ok(url) if !matches!(url.scheme(), "http" | "https") => RedirectKind::PrivateUse,
            Ok(url) if is_own_machine(&url) => RedirectKind::Loopback,
            Ok(_) | Err(_) => RedirectKind::Web,
        }
    }

    /// The place that a human is asked about, and under which the answer is remembered: the whole
    /// host with its port for web pages, the host without its port for loopback, and the scheme and
    /// host for private-use URIs.
    #[must_use]
    pub fn place(&self) -> String {
        let Ok(url) = parsed(&self.0) else { return self.0.clone() };
        let host = url.host_str().unwrap_or_default();
        match self.kind() {
            RedirectKind::Web => url.authority().to_owned(),
            RedirectKind::Loopback => host.to_owned(),
            RedirectKind::PrivateUse => format!("{}://{host}", url.scheme()),
        }
    }

    /// The URI with these parameters added to its query. Its own bytes stay as they are.
    pub(super) fn with(&self, query: &str) -> String {
        let separator = match self.0.contains('?') {
            true if self.0.ends_with(['?', '&']) => "",
            true => "&",
            false => "?",
        };
        format!("{}{separator}{query}", self.0)
    }
}

impl fmt::Display for RedirectUri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Reads a URI that is written in its usual form, so that browsers and this code agree on where it
/// leads.
fn parsed(text: &str) -> Result<Url, RedirectError> {
    let is_plain = |b: u8| b.is_ascii_graphic() && b != b'\\';
    if text.len() > URI_MAX || !text.bytes().all(is_plain) {
        return Err(RedirectError::NoUri);
    }
    if text.contains('#') {
        return Err(RedirectError::Fragment);
    }
    if text.contains('*') {
        return Err(RedirectError::Wildcard);
    }
    let url = Url::parse(text).map_err(|_error| RedirectError::NoUri)?;
    if !url.username().is_empty() || url.password().is_some() || url.authority().contains('@') {
        return Err(RedirectError::User);
    }
    let is_usual =
        url.as_str() == text || url.path() == "/" && url.as_str().strip_suffix('/') == Some(text);
    if is_usual { Ok(url) } else { Err(RedirectError::NoUri) }
}

/// True for `http` to one of the three usual names of the user's own machine.
fn is_plain_and_local(url: &Url) -> bool {
    url.scheme() == "http" && is_own_machine(url)
}

/// True for the three usual names of the user's own machine. Other addresses of its network, such
/// as 127.0.0.2, are not among them: no client uses one.
fn is_own_machine(url: &Url) -> bool {
    let is_usual = |ip: Ipv4Addr| ip == Ipv4Addr::LOCALHOST;
    is_loopback(url) && !matches!(url.host(), Some(Host::Ipv4(ip)) if !is_usual(ip))
}

/// The URL with no port, so that two of them can be compared.
fn without_port(url: &Url) -> Option<Url> {
    let mut url = url.clone();
    url.set_port(None).ok().map(|()| url)
}

/// True for the name of a scheme that a program can own (RFC 3986, 3.1).
fn is_private_scheme(scheme: &str) -> bool {
    let is_plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"+-.".contains(&b);
    let begins = scheme.starts_with(|c: char| c.is_ascii_lowercase());
    begins && scheme.bytes().all(is_plain) && !NEVER.contains(&scheme)
}

#[cfg(test)]
mod tests;
