//! The revisions of the protocol, their two eras, and the names of `_meta` keys.

use std::fmt;

use crate::{Message, MessageKind, Raw, json::encode_string, method, rpc::code};

/// A published revision of MCP, oldest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Revision {
    /// HTTP+SSE and stdio.
    V2024_11_05,
    /// Streamable HTTP; the only one with batches.
    V2025_03_26,
    /// Structured content, elicitation, the version header.
    V2025_06_18,
    /// Tasks, elicitation by URL.
    V2025_11_25,
    /// No handshake and no session; metadata on each request.
    V2026_07_28,
}

/// The two generations of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Era {
    /// Up to 2025-11-25: a handshake opens a session.
    Legacy,
    /// From 2026-07-28 on: each request stands alone.
    Modern,
}

impl Revision {
    /// All revisions, oldest first.
    pub const ALL: [Self; 5] =
        narthex_model::every![V2024_11_05, V2025_03_26, V2025_06_18, V2025_11_25, V2026_07_28];
    /// The revisions that a request names in its `_meta`, without a handshake.
    pub const MODERN: [Self; 1] = [Self::V2026_07_28];
    /// The newest revision that has a handshake.
    pub const LEGACY_LATEST: Self = Self::V2025_11_25;
    /// The newest revision.
    pub const LATEST: Self = Self::V2026_07_28;

    /// The revision with this exact name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|revision| revision.as_str() == name)
    }

    /// The revision's name on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::V2024_11_05 => "2024-11-05",
            Self::V2025_03_26 => "2025-03-26",
            Self::V2025_06_18 => "2025-06-18",
            Self::V2025_11_25 => "2025-11-25",
            Self::V2026_07_28 => "2026-07-28",
        }
    }

    /// The era the revision belongs to.
    #[must_use]
    pub fn era(self) -> Era {
        if self > Self::LEGACY_LATEST { Era::Modern } else { Era::Legacy }
    }

    /// True if each request of this revision stands alone.
    #[must_use]
    pub fn is_modern(self) -> bool {
        self.era() == Era::Modern
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Returns the era whose rules a client's message follows. `version_header` is the value of
/// `MCP-Protocol-Version`, if the request has one.
///
/// A message with a version in `_meta` is modern, whatever the version. Otherwise the header
/// decides if it names a modern or an unknown revision, so that the answer can list the known ones.
/// The header's presence alone decides nothing, as legacy clients send it too. Any other message is
/// legacy, and must be `initialize` or carry a live session; the caller of this function checks
/// sessions.
#[must_use]
pub fn classify_downstream(message: &Message, version_header: Option<&str>) -> Era {
    if message.meta_value(meta_key::PROTOCOL_VERSION).is_some() {
        return Era::Modern;
    }
    match version_header.map(Revision::parse) {
        Some(Some(revision)) => revision.era(),
        // A client may propose an unknown revision in the handshake; the answer offers another.
        Some(None) if message.method() == method::INITIALIZE => Era::Legacy,
        Some(None) => Era::Modern,
        None => Era::Legacy,
    }
}

/// The missing or wrong part of a modern request's `_meta`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StampFault {
    /// The version is not a string.
    #[error("the protocol version in _meta must be a string")]
    VersionKind,
    /// The version is missing.
    #[error("_meta lacks the protocol version")]
    NoVersion,
    /// The version is not one of [`Revision::MODERN`].
    #[error("this protocol version is not supported")]
    Version {
        /// The version that the client requested.
        requested: String,
    },
    /// The capabilities are missing, or not an object.
    #[error("_meta lacks the client's capabilities, an object")]
    NoCapabilities,
}

impl StampFault {
    /// The JSON-RPC code; the HTTP status is 400.
    #[must_use]
    pub fn code(&self) -> i64 {
        match self {
            Self::Version { .. } => code::UNSUPPORTED_VERSION,
            Self::VersionKind | Self::NoVersion | Self::NoCapabilities => code::INVALID_PARAMS,
        }
    }

    /// The error's `data` as JSON; `None` for most faults. An unsupported version gets the
    /// supported ones, in the form of `server/discover`.
    #[must_use]
    pub fn data(&self) -> Option<Vec<u8>> {
        let Self::Version { requested } = self else { return None };
        let requested = String::from_utf8_lossy(&encode_string(requested)).into_owned();
        let supported = supported_versions();
        Some(format!(r#"{{"supported":{supported},"requested":{requested}}}"#).into_bytes())
    }
}

/// Checks the `_meta` members that every modern message must carry. `version_header` is the value
/// of `MCP-Protocol-Version`, if there is one. The header counts for notifications, which need no
/// `_meta`.
///
/// # Errors
/// The first fault.
pub fn check_stamps(message: &Message, version_header: Option<&str>) -> Result<(), StampFault> {
    let stamped = message.meta_value(meta_key::PROTOCOL_VERSION);
    let named = stamped.and_then(Raw::as_str);
    if stamped.is_some() && named.is_none() {
        return Err(StampFault::VersionKind);
    }
    let is_request = message.kind() == MessageKind::Request;
    let Some(requested) = named.as_deref().or(version_header) else {
        return if is_request { Err(StampFault::NoVersion) } else { Ok(()) };
    };
    if !Revision::parse(requested).is_some_and(Revision::is_modern) {
        return Err(StampFault::Version { requested: requested.to_owned() });
    }
    if !is_request {
        return Ok(());
    }
    if named.is_none() {
        return Err(StampFault::NoVersion);
    }
    match message.meta_value(meta_key::CLIENT_CAPABILITIES).is_some_and(Raw::is_object) {
        true => Ok(()),
        false => Err(StampFault::NoCapabilities),
    }
}

/// The revisions that a request may name at any endpoint, whichever the server speaks, as a JSON
/// array.
#[must_use]
pub fn supported_versions() -> String {
    format!("[{}]", Revision::MODERN.map(|revision| format!("\"{revision}\"")).join(","))
}

/// Keys in `_meta` that the protocol itself reads.
pub mod meta_key {
    /// The revision of a modern request.
    pub const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
    /// The capabilities of the client of a modern request.
    pub const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
    /// The client's description of itself in a modern request; it proves nothing.
    pub const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
    /// The lowest level of log messages that a modern request wants.
    pub const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
    /// The server's description of itself in a modern result; it proves nothing.
    pub const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
    /// The id of the listen request that a modern notification belongs to.
    pub const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
    /// The reason why a call failed, for results whose tool declares another structure.
    pub const ERROR: &str = "narthex/error";
    /// Asks for progress notifications.
    pub const PROGRESS_TOKEN: &str = "progressToken";
    /// The task that a legacy message belongs to.
    pub const RELATED_TASK: &str = "io.modelcontextprotocol/related-task";
    /// The extension for tasks, among the capabilities of a modern client.
    pub const TASKS_EXTENSION: &str = "io.modelcontextprotocol/tasks";
    /// The extension for tokens that a company's identity provider authorizes.
    pub const ENTERPRISE_EXTENSION: &str =
        "io.modelcontextprotocol/enterprise-managed-authorization";
    /// W3C trace context: the parent span.
    pub const TRACEPARENT: &str = "traceparent";
    /// W3C trace context: data of tracing systems.
    pub const TRACESTATE: &str = "tracestate";
    /// W3C baggage.
    pub const BAGGAGE: &str = "baggage";

    /// The `_meta` keys that only modern requests carry.
    pub const MODERN_REQUEST: [&str; 4] =
        [PROTOCOL_VERSION, CLIENT_CAPABILITIES, CLIENT_INFO, LOG_LEVEL];
    /// The `_meta` keys that only modern results and notifications carry.
    pub const MODERN_ANSWER: [&str; 2] = [SERVER_INFO, SUBSCRIPTION_ID];
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Limits;

    #[test]
    fn revisions_are_ordered_and_parse_back() {
        assert!(Revision::ALL.is_sorted());
        let modern = Revision::ALL.into_iter().filter(|revision| revision.is_modern());
        assert_eq!(modern.collect::<Vec<_>>(), Revision::MODERN);
        for revision in Revision::ALL {
            assert_eq!(Revision::parse(revision.as_str()), Some(revision));
        }
        assert_eq!(Revision::parse("2026-07-28 "), None);
        assert!(Revision::LATEST.is_modern() && !Revision::LEGACY_LATEST.is_modern());
    }

    #[test]
    fn the_era_of_a_message_follows_from_meta_then_header() {
        let plain = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
        let hello = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}"#;
        let stamped = |version: &str| {
            let meta = format!(r#"{{"{}":{version}}}"#, meta_key::PROTOCOL_VERSION);
            format!(r#"{{"jsonrpc":"2.0","id":1,"method":"x","params":{{"_meta":{meta}}}}}"#)
        };
        let table = [
            (plain.into(), None, Era::Legacy),
            (plain.into(), Some("2025-06-18"), Era::Legacy),
            (plain.into(), Some("2026-07-28"), Era::Modern),
            (plain.into(), Some("2099-01-01"), Era::Modern),
            (hello.into(), None, Era::Legacy),
            (hello.into(), Some("2025-11-25"), Era::Legacy),
            (hello.into(), Some("2026-07-28"), Era::Modern),
            (hello.into(), Some("2099-01-01"), Era::Legacy),
            (stamped("\"2026-07-28\""), None, Era::Modern),
            (stamped("\"2026-07-28\""), Some("2025-06-18"), Era::Modern),
            (stamped("\"2099-01-01\""), None, Era::Modern),
            (stamped("7"), None, Era::Modern),
        ];
        for (text, header, era) in table {
            let message = Message::parse(text.clone().into(), &Limits::default()).unwrap();
            assert_eq!(classify_downstream(&message, header), era, "{text} {header:?}");
        }
    }

    #[test]
    fn modern_messages_carry_a_version_and_requests_capabilities() {
        let of = |method: &str, id: &str, meta: &str| {
            let text =
                format!(r#"{{"jsonrpc":"2.0",{id}"method":"{method}","params":{{{meta}}}}}"#);
            Message::parse(text.into(), &Limits::default()).unwrap()
        };
        let meta = |version: &str, capabilities: &str| {
            let (one, other) = (meta_key::PROTOCOL_VERSION, meta_key::CLIENT_CAPABILITIES);
            format!(r#""_meta":{{"{one}":{version},"{other}":{capabilities}}}"#)
        };
        let bare = format!(r#""_meta":{{"{}":{{}}}}"#, meta_key::CLIENT_CAPABILITIES);
        let unknown =
            |requested: &str| Err(StampFault::Version { requested: requested.to_owned() });
        let now = Revision::LATEST.as_str();
        let right = meta(r#""2026-07-28""#, "{}");
        for (meta, header, request, notification) in [
            (&*right, None, Ok(()), Ok(())),
            (&*right, Some("2025-06-18"), Ok(()), Ok(())),
            (
                &meta("7", "{}"),
                Some(now),
                Err(StampFault::VersionKind),
                Err(StampFault::VersionKind),
            ),
            (&meta(r#""2026-07-28""#, "[]"), None, Err(StampFault::NoCapabilities), Ok(())),
            (&meta(r#""2025-11-25""#, "{}"), None, unknown("2025-11-25"), unknown("2025-11-25")),
            (
                &meta(r#""2099-01-01""#, "{}"),
                Some(now),
                unknown("2099-01-01"),
                unknown("2099-01-01"),
            ),
            (&bare, None, Err(StampFault::NoVersion), Ok(())),
            (&bare, Some(now), Err(StampFault::NoVersion), Ok(())),
            ("", Some("2099-01-01"), unknown("2099-01-01"), unknown("2099-01-01")),
        ] {
            let checked = check_stamps(&of("tools/list", r#""id":1,"#, meta), header);
            assert_eq!(checked, request, "request {meta} {header:?}");
            let checked = check_stamps(&of("notifications/cancelled", "", meta), header);
            assert_eq!(checked, notification, "notification {meta} {header:?}");
        }
    }

    #[test]
    fn an_unsupported_version_is_answered_with_the_supported_versions() {
        assert_eq!(supported_versions(), r#"["2026-07-28"]"#);
        let fault = StampFault::Version { requested: "a\"b".to_owned() };
        let data = r#"{"supported":["2026-07-28"],"requested":"a\"b"}"#;
        assert_eq!((fault.code(), fault.data().as_deref()), (-32022, Some(data.as_bytes())));
        for fault in [StampFault::VersionKind, StampFault::NoVersion, StampFault::NoCapabilities] {
            assert_eq!((fault.code(), fault.data()), (-32602, None), "{fault}");
        }
    }
}
