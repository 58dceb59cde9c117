//! One request that the fixture was sent, as tests read it.

use std::{borrow::Cow, fmt::Write as _};

use base64::{Engine, engine::general_purpose::STANDARD};
use http::{HeaderMap, Method};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use serde_json::Value;

use super::kinds::Endpoint;

/// Bytes that forms encode.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'*');

/// One request.
#[derive(Debug, Clone)]
pub struct Asked {
    /// The origin that was asked, such as `http://127.0.0.1:4711`.
    pub origin: String,
    /// The kind of the address. A redirect to another origin does not change it.
    pub endpoint: Endpoint,
    /// The method of HTTP.
    pub method: Method,
    /// Path and query, as they were sent.
    pub target: String,
    /// All headers.
    pub headers: HeaderMap,
    /// The body; empty if it is no text.
    pub body: String,
}

/// The credentials of HTTP Basic, decoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Basic {
    /// The client id.
    pub id: String,
    /// The client's secret.
    pub secret: String,
}

impl Asked {
    /// The path without a query.
    #[must_use]
    pub fn path(&self) -> &str {
        self.target.split('?').next().unwrap_or_default()
    }

    /// One header, if it is text.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// The first parameter of the query with this name.
    #[must_use]
    pub fn query(&self, name: &str) -> Option<String> {
        let (_, query) = self.target.split_once('?')?;
        first(form(query), name)
    }

    /// The first field of the form in the body with this name.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<String> {
        first(form(&self.body), name)
    }

    /// The body as JSON; null if it is none.
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_default()
    }

    /// The token of the header `Authorization`.
    #[must_use]
    pub fn bearer(&self) -> Option<&str> {
        self.header("authorization")?.strip_prefix("Bearer ")
    }

    /// The credentials of HTTP Basic.
    #[must_use]
    pub fn basic(&self) -> Option<Basic> {
        let encoded = self.header("authorization")?.strip_prefix("Basic ")?;
        let text = String::from_utf8(STANDARD.decode(encoded).ok()?).ok()?;
        let (id, secret) = text.split_once(':')?;
        Some(Basic { id: decoded(id), secret: decoded(secret) })
    }

    /// The whole request as one text, to search for secrets.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = format!("{} {}{}\n", self.method, self.origin, self.target);
        for (name, value) in &self.headers {
            let value = String::from_utf8_lossy(value.as_bytes());
            writeln!(text, "{name}: {value}").expect("a text takes everything");
        }
        text + "\n" + &self.body
    }

    /// A parameter that comes twice in a form, apart from those that may.
    pub(super) fn repeated(&self) -> Option<String> {
        let fields = form(&self.body);
        let mut names: Vec<_> = fields.into_iter().map(|(name, _)| name).collect();
        names.retain(|name| name != "resource" && name != "audience");
        names.sort();
        names.windows(2).find(|two| two[0] == two[1]).map(|two| two[0].clone())
    }
}

fn first(pairs: Vec<(String, String)>, name: &str) -> Option<String> {
    pairs.into_iter().find(|(key, _)| key == name).map(|(_, value)| value)
}

/// The pairs of a form or a query.
#[must_use]
pub fn form(text: &str) -> Vec<(String, String)> {
    let pairs = text.split('&').filter(|pair| !pair.is_empty());
    let pairs = pairs.map(|pair| pair.split_once('=').unwrap_or((pair, "")));
    pairs.map(|(name, value)| (decoded(name), decoded(value))).collect()
}

/// A form or a query of these pairs.
#[must_use]
pub fn form_of<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    let pairs = pairs.into_iter().map(|(name, value)| format!("{}={}", coded(name), coded(value)));
    pairs.collect::<Vec<_>>().join("&")
}

/// One text as forms encode it.
#[must_use]
pub fn coded(text: &str) -> String {
    utf8_percent_encode(text, ENCODED).to_string().replace("%20", "+")
}

fn decoded(text: &str) -> String {
    let text: Cow<'_, str> = text.replace('+', " ").into();
    percent_decode_str(&text).decode_utf8_lossy().into_owned()
}
