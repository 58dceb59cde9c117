//! The HTTP headers that mirror parts of a modern request, written and checked.
//!
//! A reader that routes or decides by a header must be sure that the body has the same value (S13).
//! So a request whose headers and body disagree is refused before any other check.

mod params;
mod value;

use http::{HeaderMap, HeaderName, HeaderValue, header};

pub use params::{HeaderParams, ParamFault};
pub use value::{ValueFault, decode_value, encode_value};

use crate::{Message, MessageKind, Raw, Revision, meta_key, method, rpc::code};
use value::Mirrored;

/// `MCP-Protocol-Version`: the revision of a request.
pub const MCP_PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
/// `Mcp-Session-Id`: the legacy session.
pub const MCP_SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
/// `Mcp-Method`: the method of a modern request.
pub const MCP_METHOD: HeaderName = HeaderName::from_static("mcp-method");
/// `Mcp-Name`: the item of a modern request; see [`name_member`].
pub const MCP_NAME: HeaderName = HeaderName::from_static("mcp-name");
/// `Last-Event-ID`: the event after which a legacy stream resumes.
pub const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
/// The prefix of the names of headers that mirror arguments of a tool.
pub const MCP_PARAM_PREFIX: &str = "Mcp-Param-";

/// True if a body is declared to be of a media type, in any case and with any parameters.
#[must_use]
pub fn has_media_type(headers: &HeaderMap, wanted: &str) -> bool {
    let value = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let essence = value.and_then(|value| value.split(';').next()).unwrap_or_default();
    essence.trim().eq_ignore_ascii_case(wanted)
}

/// A contradiction between the headers and the body of a request. Each is
/// [`code::HEADER_MISMATCH`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HeaderFault {
    /// A header is missing although the body has a value that it must mirror.
    #[error("header mismatch: {header} is missing; send the value of {member} in it")]
    Missing {
        /// The header.
        header: String,
        /// The path of the value in the body.
        member: String,
    },
    /// The header was sent more than once, so that readers could take different values.
    #[error("header mismatch: {header} is sent more than once; send it once")]
    Duplicate {
        /// The header.
        header: String,
    },
    /// The header has no valid value.
    #[error("header mismatch: {header} cannot be read: {fault}")]
    Unreadable {
        /// The header.
        header: String,
        /// The fault of the value.
        #[source]
        fault: ValueFault,
    },
    /// The header has another value than the body.
    #[error(
        "header mismatch: {header} is {found:?} but {member} is {expected}; \
         send the value of the body in the header"
    )]
    Mismatch {
        /// The header.
        header: String,
        /// Its value, decoded and shortened.
        found: String,
        /// The path of the value in the body.
        member: String,
        /// The value in the body, shortened.
        expected: String,
    },
    /// The body's value is ambiguous or of a kind that no header can mirror.
    #[error(
        "header mismatch: {member} cannot be copied into {header}; send one string, integer or \
         boolean there"
    )]
    Unmirrored {
        /// The header.
        header: String,
        /// The path of the value in the body.
        member: String,
    },
}

impl HeaderFault {
    /// The JSON-RPC code; the HTTP status is 400.
    #[must_use]
    pub fn code(&self) -> i64 {
        code::HEADER_MISMATCH
    }
}

/// The member of `params` that `Mcp-Name` mirrors for a method; `None` if there is none.
#[must_use]
pub fn name_member(method: &str) -> Option<&'static str> {
    match method {
        method::TOOLS_CALL | method::PROMPTS_GET => Some("name"),
        method::RESOURCES_READ => Some("uri"),
        method::TASKS_GET | method::TASKS_UPDATE | method::TASKS_CANCEL => Some("taskId"),
        _ => None,
    }
}

/// Checks that the headers of a modern message agree with its body.
///
/// `params` are those of the called tool. Other `Mcp-Param-` headers are ignored, as the protocol
/// demands. A request without a version in `_meta` passes the check of that header:
/// [`check_stamps`](crate::check_stamps) refuses it. Notifications need no headers, but those that
/// are sent must agree with the body.
///
/// # Errors
/// The first disagreement.
pub fn check_request(
    headers: &HeaderMap,
    message: &Message,
    params: Option<&HeaderParams>,
) -> Result<(), HeaderFault> {
    let is_request = message.kind() == MessageKind::Request;
    check_version(headers, message, is_request)?;
    let header = Header { name: &MCP_METHOD, shown: "Mcp-Method", is_encoded: false };
    header
        .check(headers, &Mirrored::Text(message.method().into()), is_request, || "method".into())?;
    if let Some(member) = name_member(message.method()) {
        let header = Header { name: &MCP_NAME, shown: "Mcp-Name", is_encoded: true };
        let body = message.get(member).map_or(Mirrored::Absent, Mirrored::of);
        header.check(headers, &body, is_request, || format!("params.{member}"))?;
    }
    if message.method() == method::TOOLS_CALL
        && let Some(params) = params
    {
        params.check(headers, message.get("arguments"), is_request)?;
    }
    Ok(())
}

fn check_version(
    headers: &HeaderMap,
    message: &Message,
    is_request: bool,
) -> Result<(), HeaderFault> {
    let name = &MCP_PROTOCOL_VERSION;
    let header = Header { name, shown: "MCP-Protocol-Version", is_encoded: false };
    let member = || format!("params._meta[{:?}]", meta_key::PROTOCOL_VERSION);
    let version = message.meta_value(meta_key::PROTOCOL_VERSION).and_then(Raw::as_str);
    let Some(version) = version else {
        return match header.single(headers)? {
            None if is_request => Err(header.missing(member())),
            _ => Ok(()),
        };
    };
    header.check(headers, &Mirrored::Text(version), is_request, member)
}

/// The headers of a request that the gateway sends as a client of `version`.
///
/// The headers mirror `message` as given: a caller that renames a tool afterwards inserts
/// [`MCP_NAME`] anew with [`encode_value`]. Legacy revisions get the version alone, and revisions
/// before 2025-06-18 get no header.
#[must_use]
pub fn compose_request_headers(
    message: &Message,
    version: Revision,
    params: Option<&HeaderParams>,
) -> HeaderMap {
    let mut headers = HeaderMap::new();
    if version >= Revision::V2025_06_18 {
        headers.insert(MCP_PROTOCOL_VERSION, HeaderValue::from_static(version.as_str()));
    }
    if !version.is_modern() || message.method().is_empty() {
        return headers;
    }
    headers.insert(MCP_METHOD, encode_value(message.method()));
    let name = name_member(message.method()).and_then(|member| message.get(member));
    if let Some(name) = name.and_then(|name| Mirrored::of(name).to_header()) {
        headers.insert(MCP_NAME, name);
    }
    if message.method() == method::TOOLS_CALL
        && let (Some(params), Some(arguments)) = (params, message.get("arguments"))
    {
        params.fill(arguments, &mut headers);
    }
    headers
}

/// A header that mirrors a part of the body.
struct Header<'a> {
    name: &'a HeaderName,
    /// The name as the protocol spells it.
    shown: &'a str,
    /// True if the header's value may be wrapped in base64.
    is_encoded: bool,
}

impl Header<'_> {
    fn check(
        &self,
        headers: &HeaderMap,
        body: &Mirrored<'_>,
        is_required: bool,
        member: impl Fn() -> String,
    ) -> Result<(), HeaderFault> {
        if matches!(body, Mirrored::Impossible) {
            return Err(HeaderFault::Unmirrored { header: self.shown.into(), member: member() });
        }
        let Some(value) = self.single(headers)? else {
            let is_missing = is_required && !matches!(body, Mirrored::Absent);
            return if is_missing { Err(self.missing(member())) } else { Ok(()) };
        };
        let read = if self.is_encoded { decode_value(value) } else { value::plain_value(value) };
        let found =
            read.map_err(|fault| HeaderFault::Unreadable { header: self.shown.into(), fault })?;
        if body.equals(&found) {
            return Ok(());
        }
        Err(HeaderFault::Mismatch {
            header: self.shown.into(),
            found: value::shortened(&found),
            member: member(),
            expected: body.shown(),
        })
    }

    /// The header's only value.
    fn single<'h>(&self, headers: &'h HeaderMap) -> Result<Option<&'h HeaderValue>, HeaderFault> {
        let mut values = headers.get_all(self.name).iter();
        let first = values.next();
        if values.next().is_some() {
            return Err(HeaderFault::Duplicate { header: self.shown.into() });
        }
        Ok(first)
    }

    fn missing(&self, member: String) -> HeaderFault {
        HeaderFault::Missing { header: self.shown.into(), member }
    }
}

#[cfg(test)]
mod tests;
