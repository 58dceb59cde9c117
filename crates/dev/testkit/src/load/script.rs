//! The requests of a measurement, in both eras.

use std::str::FromStr;

use anyhow::{Context as _, bail};
use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri};
use http_body_util::Full;
use serde_json::Value;

use super::Target;

pub(super) const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");
const LEGACY: &str = "2025-11-25";
const MODERN: &str = "2026-07-28";
const CLIENT: &str = r#"{"name":"narthex-load","version":"1"}"#;

/// The protocol era of the requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Era {
    /// A session with a handshake.
    Legacy,
    /// Every request alone.
    Modern,
}

impl FromStr for Era {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "legacy" => Ok(Self::Legacy),
            "modern" => Ok(Self::Modern),
            _ => bail!("an era is legacy or modern"),
        }
    }
}

/// The repeated request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work {
    /// The tool `echo` with a text of its own for each call.
    Echo,
    /// The tool `blob`, which returns so many bytes.
    Blob(usize),
    /// The tool `progress`, which reports so many times.
    Progress(usize),
    /// The list of tools, which must have so many.
    List(usize),
}

impl Work {
    /// Reads a kind of work and its size, which `echo` has none of.
    ///
    /// # Errors
    ///
    /// If there is no such kind.
    pub fn new(kind: &str, size: usize) -> anyhow::Result<Self> {
        match kind {
            "echo" => Ok(Self::Echo),
            "blob" => Ok(Self::Blob(size)),
            "progress" => Ok(Self::Progress(size)),
            "list" => Ok(Self::List(size)),
            _ => bail!("the work is echo, blob, progress or list"),
        }
    }

    /// True for a tool call, which a fixture counts.
    pub(super) fn is_call(self) -> bool {
        !matches!(self, Self::List(_))
    }
}

/// The text that the call with this id echoes.
pub(super) fn message(id: u64) -> String {
    format!("message {id}")
}

/// Makes the requests of one connection.
pub(super) struct Script {
    era: Era,
    uri: Uri,
    headers: HeaderMap,
}

impl Script {
    pub(super) fn new(target: &Target) -> anyhow::Result<Self> {
        let mut headers = HeaderMap::new();
        let host = target.url.authority().context("the URL has no host")?.as_str();
        headers.insert(HOST, HeaderValue::from_str(host)?);
        let types = HeaderValue::from_static("application/json, text/event-stream");
        headers.insert(ACCEPT, types);
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some(authorization) = &target.authorization {
            headers.insert(AUTHORIZATION, authorization.clone());
        }
        let path = target.url.path_and_query().context("the URL has no path")?;
        Ok(Self { era: target.era, uri: Uri::from(path.clone()), headers })
    }

    /// The first message of a legacy session.
    pub(super) fn initialize(&self) -> Request<Full<Bytes>> {
        let params = format!(
            r#"{{"protocolVersion":"{LEGACY}","capabilities":{{}},"clientInfo":{CLIENT}}}"#
        );
        let head = r#""jsonrpc":"2.0","id":0,"method":"initialize""#;
        self.post(format!(r#"{{{head},"params":{params}}}"#))
    }

    /// The second message of a legacy session, once it has an id.
    pub(super) fn initialized(&mut self, session: HeaderValue) -> Request<Full<Bytes>> {
        self.headers.insert(SESSION, session);
        self.headers.insert(VERSION, HeaderValue::from_static(LEGACY));
        self.post(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#.to_owned())
    }

    /// Ends a legacy session.
    pub(super) fn delete(&self) -> Request<Full<Bytes>> {
        self.without_body(Method::DELETE)
    }

    /// Opens a legacy session's own stream.
    pub(super) fn stream(&self) -> Request<Full<Bytes>> {
        self.without_body(Method::GET)
    }

    /// One piece of work.
    pub(super) fn work(&self, work: Work, prefix: &str, id: u64) -> Request<Full<Bytes>> {
        match work {
            Work::Echo => {
                let arguments = format!(r#"{{"message":"{}"}}"#, message(id));
                self.call(&format!("{prefix}echo"), &arguments, id, "")
            }
            Work::Blob(bytes) => {
                self.call(&format!("{prefix}blob"), &format!(r#"{{"bytes":{bytes}}}"#), id, "")
            }
            Work::Progress(count) => {
                let token = format!(r#""progressToken":{id}"#);
                let arguments = format!(r#"{{"count":{count}}}"#);
                self.call(&format!("{prefix}progress"), &arguments, id, &token)
            }
            Work::List(_) => self.page("", id),
        }
    }

    /// A page of the list of tools: the first one for an empty `cursor`.
    pub(super) fn page(&self, cursor: &str, id: u64) -> Request<Full<Bytes>> {
        let members = match cursor {
            "" => String::new(),
            cursor => format!(r#""cursor":{}"#, Value::from(cursor)),
        };
        self.request("tools/list", None, &members, id, "")
    }

    /// Asks a fixture for its counters.
    pub(super) fn counters(&self, id: u64) -> Request<Full<Bytes>> {
        self.call("fixture_stats", "{}", id, "")
    }

    fn call(&self, tool: &str, arguments: &str, id: u64, meta: &str) -> Request<Full<Bytes>> {
        let members = format!(r#""name":"{tool}","arguments":{arguments}"#);
        self.request("tools/call", Some(tool), &members, id, meta)
    }

    fn request(
        &self,
        method: &'static str,
        tool: Option<&str>,
        members: &str,
        id: u64,
        meta: &str,
    ) -> Request<Full<Bytes>> {
        let mut params = members.to_owned();
        let stamp = match self.era {
            Era::Legacy => String::new(),
            Era::Modern => modern_stamp(),
        };
        let meta = [meta, &stamp].into_iter().filter(|part| !part.is_empty());
        let meta = meta.collect::<Vec<_>>().join(",");
        if !meta.is_empty() {
            let comma = if params.is_empty() { "" } else { "," };
            params = format!(r#"{params}{comma}"_meta":{{{meta}}}"#);
        }
        let body =
            format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{{params}}}}}"#);
        let mut request = self.post(body);
        if self.era == Era::Modern {
            let headers = request.headers_mut();
            headers.insert(VERSION, HeaderValue::from_static(MODERN));
            headers.insert(METHOD, HeaderValue::from_static(method));
            if let Some(tool) = tool {
                let name = HeaderValue::from_str(tool).expect("names of tools are plain");
                headers.insert(NAME, name);
            }
        }
        request
    }

    fn post(&self, body: String) -> Request<Full<Bytes>> {
        self.with_body(Method::POST, Bytes::from(body))
    }

    fn without_body(&self, method: Method) -> Request<Full<Bytes>> {
        self.with_body(method, Bytes::new())
    }

    fn with_body(&self, method: Method, body: Bytes) -> Request<Full<Bytes>> {
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = method;
        *request.uri_mut() = self.uri.clone();
        *request.headers_mut() = self.headers.clone();
        request
    }
}

fn modern_stamp() -> String {
    let member = |name, value: &str| format!(r#""io.modelcontextprotocol/{name}":{value}"#);
    let version = member("protocolVersion", &format!(r#""{MODERN}""#));
    [version, member("clientInfo", CLIENT), member("clientCapabilities", "{}")].join(",")
}
