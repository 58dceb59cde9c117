//! JSON-RPC messages that the gateway writes itself, and the codes of its errors.

use bytes::Bytes;
use narthex_model::{CallError, ErrorKind};
use serde_json::{Value, json};

use crate::{Era, Payload, PayloadBuilder, Raw, Revision, json::encode_string, meta_key};

/// Error codes of JSON-RPC, of MCP and of the gateway.
///
/// The gateway's own codes are outside −32768…−32000, which JSON-RPC and MCP divide among
/// themselves. Their last three digits are those of the HTTP status with the same meaning.
pub mod code {
    /// The text is not JSON.
    pub const PARSE_ERROR: i64 = -32700;
    /// The text is JSON, but no acceptable message.
    pub const INVALID_REQUEST: i64 = -32600;
    /// The method does not exist.
    pub const METHOD_NOT_FOUND: i64 = -32601;
    /// The parameters do not fit, or name an item that does not exist.
    pub const INVALID_PARAMS: i64 = -32602;
    /// The server's own fault.
    pub const INTERNAL_ERROR: i64 = -32603;
    /// HTTP headers and body disagree (modern).
    pub const HEADER_MISMATCH: i64 = -32020;
    /// The client did not declare a capability that the request needs (modern).
    pub const MISSING_CLIENT_CAPABILITY: i64 = -32021;
    /// The requested revision is not supported (modern).
    pub const UNSUPPORTED_VERSION: i64 = -32022;
    /// The session does not exist (legacy); the code of the official SDKs.
    pub const LEGACY_SESSION_NOT_FOUND: i64 = -32001;
    /// The resource does not exist (legacy). Modern peers get [`INVALID_PARAMS`].
    pub const LEGACY_RESOURCE_NOT_FOUND: i64 = -32002;
    /// The user must visit a URL first (legacy, 2025-11-25 only).
    pub const LEGACY_URL_ELICITATION_REQUIRED: i64 = -32042;

    /// The request has no valid credential (the gateway's own code).
    pub const UNAUTHENTICATED: i64 = -31401;
    /// The request is not allowed (the gateway's own code).
    pub const DENIED: i64 = -31403;
    /// The request contradicts the present state (the gateway's own code).
    pub const CONFLICT: i64 = -31409;
    /// A limit is reached (the gateway's own code).
    pub const EXHAUSTED: i64 = -31429;
    /// A server cannot be reached now (the gateway's own code).
    pub const UNAVAILABLE: i64 = -31503;
    /// A deadline passed (the gateway's own code).
    pub const TIMEOUT: i64 = -31504;
}

/// The JSON-RPC code of an error kind: this door's table (D24).
#[must_use]
pub fn code_for(kind: ErrorKind) -> i64 {
    match kind {
        // Modern servers answer alike for absent and hidden items.
        ErrorKind::Invalid | ErrorKind::NotFound => code::INVALID_PARAMS,
        ErrorKind::Unauthenticated => code::UNAUTHENTICATED,
        ErrorKind::Denied => code::DENIED,
        ErrorKind::Conflict => code::CONFLICT,
        ErrorKind::Exhausted => code::EXHAUSTED,
        ErrorKind::Unavailable => code::UNAVAILABLE,
        ErrorKind::Timeout => code::TIMEOUT,
        ErrorKind::Bug => code::INTERNAL_ERROR,
    }
}

/// The error kind of a code, by the same table. An unknown code is a server's own, and only means
/// that the server refused the request.
#[must_use]
pub fn kind_of(code: i64) -> ErrorKind {
    match code {
        code::PARSE_ERROR | code::INVALID_REQUEST | code::METHOD_NOT_FOUND => ErrorKind::Invalid,
        // Servers use this code for their own faults.
        code::INTERNAL_ERROR => ErrorKind::Unavailable,
        code => {
            let known = ErrorKind::ALL.into_iter().find(|kind| code_for(*kind) == code);
            known.unwrap_or(ErrorKind::Unavailable)
        }
    }
}

/// The code and the data that a server itself gave its error, from those that its caller got.
///
/// An error may get another code on its way to the other era; `data` then has the server's own.
#[must_use]
pub fn own_error(code: i64, data: Option<Value>) -> (i64, Option<Value>) {
    let of_server = data.as_ref().filter(|data| data["kind"] == "server_error");
    let details = of_server.and_then(|data| data.get("details"));
    let own = details.and_then(|details| details.get("code")).and_then(Value::as_i64);
    match (own, code) {
        (Some(own), code::INTERNAL_ERROR) => {
            (own, details.and_then(|details| details.get("data")).cloned())
        }
        _ => (code, data),
    }
}

/// Writes a modern request of a client without capabilities. `members` are the names and JSON
/// values of its parameters; `client` is its `clientInfo`, a JSON object.
#[must_use]
pub fn modern_request(method: &str, members: &[(&str, &[u8])], client: &[u8]) -> Payload {
    let revision = encode_string(Revision::LATEST.as_str());
    let meta: [(&str, &[u8]); 3] = [
        (meta_key::PROTOCOL_VERSION, &revision),
        (meta_key::CLIENT_CAPABILITIES, b"{}"),
        (meta_key::CLIENT_INFO, client),
    ];
    let sizes = members.iter().map(|(name, value)| name.len() + value.len() + 4);
    let mut params = Vec::with_capacity(256 + sizes.sum::<usize>());
    let mut sign = b'{';
    for (name, value) in members {
        params.push(sign);
        params.extend_from_slice(&encode_string(name));
        params.push(b':');
        params.extend_from_slice(value);
        sign = b',';
    }
    params.push(sign);
    params.extend_from_slice(br#""_meta":{"#);
    let meta = meta.map(|(key, value)| [&encode_string(key)[..], b":", value].concat());
    params.extend_from_slice(&meta.join(&b","[..]));
    params.extend_from_slice(b"}}");
    request(Raw::new(b"1"), method, Some(&params))
}

/// Writes an error message. `data` is JSON.
///
/// Without an id the member is left out rather than null: MCP's schemas know no null id, and
/// JSON-RPC readers treat both alike.
#[must_use]
pub fn error_response(
    id: Option<Raw<'_>>,
    code: i64,
    message: &str,
    data: Option<&[u8]>,
) -> Payload {
    let mut out = Vec::with_capacity(96 + message.len() + data.map_or(0, <[u8]>::len));
    out.extend_from_slice(br#"{"jsonrpc":"2.0","#);
    if let Some(id) = id {
        out.extend_from_slice(br#""id":"#);
        out.extend_from_slice(id.as_bytes());
        out.push(b',');
    }
    out.extend_from_slice(format!(r#""error":{{"code":{code},"message":"#).as_bytes());
    out.extend_from_slice(&encode_string(message));
    if let Some(data) = data {
        out.extend_from_slice(br#","data":"#);
        out.extend_from_slice(data);
    }
    out.extend_from_slice(b"}}");
    out.into()
}

/// Writes a result message; a large result is shared, not copied.
#[must_use]
pub fn result_response(id: Raw<'_>, result: &Bytes) -> Payload {
    let nothing = Bytes::new();
    let mut out = PayloadBuilder::new(&nothing, 40 + id.as_bytes().len() + result.len().min(4096));
    out.push(br#"{"jsonrpc":"2.0","id":"#);
    out.push(id.as_bytes());
    out.push(br#","result":"#);
    out.share(result);
    out.push(b"}");
    out.build()
}

/// Writes a request. `params` is a JSON object.
#[must_use]
pub fn request(id: Raw<'_>, method: &str, params: Option<&[u8]>) -> Payload {
    call(Some(id), method, params)
}

/// Writes a notification. `params` is a JSON object.
#[must_use]
pub fn notification(method: &str, params: Option<&[u8]>) -> Payload {
    call(None, method, params)
}

fn call(id: Option<Raw<'_>>, method: &str, params: Option<&[u8]>) -> Payload {
    let mut out = Vec::with_capacity(64 + method.len() + params.map_or(0, <[u8]>::len));
    out.extend_from_slice(br#"{"jsonrpc":"2.0","#);
    if let Some(id) = id {
        out.extend_from_slice(br#""id":"#);
        out.extend_from_slice(id.as_bytes());
        out.push(b',');
    }
    out.extend_from_slice(br#""method":"#);
    out.extend_from_slice(&encode_string(method));
    if let Some(params) = params {
        out.extend_from_slice(br#","params":"#);
        out.extend_from_slice(params);
    }
    out.push(b'}');
    out.into()
}

/// The result of a `tools/call`: text for a model, and an object for programs.
#[must_use]
pub fn tool_result<'t>(
    texts: impl Iterator<Item = &'t str>,
    structured: &Value,
    is_modern: bool,
) -> Vec<u8> {
    let content: Vec<_> = texts.map(|text| json!({"type": "text", "text": text})).collect();
    let mut result = json!({
        "content": content,
        "structuredContent": structured,
    });
    if is_modern {
        result["resultType"] = "complete".into();
    }
    result.to_string().into_bytes()
}

/// The result of a `tools/call` that failed (D16): one text for a model, and the error for
/// programs.
///
/// Clients check structured content against the output schema that a tool declares (`is_shaped`):
/// for such a tool the error is in `_meta` under [`meta_key::ERROR`].
#[must_use]
pub fn tool_error_result(error: &CallError, era: Era, is_shaped: bool) -> Vec<u8> {
    let text = json!({ "type": "text", "text": error.text() });
    let mut result = json!({ "content": [text], "isError": true });
    if is_shaped {
        result["_meta"] = json!({ meta_key::ERROR: error });
    } else {
        result["structuredContent"] = json!({ "error": error });
    }
    if era == Era::Modern {
        result["resultType"] = "complete".into();
    }
    result.to_string().into_bytes()
}

#[cfg(test)]
mod tests {
    use narthex_model::CallErrorKind;

    use super::*;
    use crate::{Limits, Message, MessageKind};

    fn parse(payload: Payload) -> Message {
        Message::parse(payload.into_bytes(), &Limits::default()).unwrap()
    }

    #[test]
    fn written_messages_parse_back() {
        let id = Raw::new(br#""a""#);
        let error = parse(error_response(Some(id), -31403, "no \"x\"\n", Some(b"[1]")));
        assert_eq!((error.kind(), error.error_code()), (MessageKind::Error, Some(-31403)));
        assert_eq!(error.get("message").unwrap().as_str().unwrap(), "no \"x\"\n");
        assert_eq!(error.get("data").unwrap().as_bytes(), b"[1]");
        assert_eq!(error.id(), Some(id));
        assert_eq!(parse(error_response(None, -32700, "x", None)).id(), None);

        let request = parse(request(id, "tools/list", Some(br#"{"cursor":"c"}"#)));
        assert_eq!((request.kind(), request.method()), (MessageKind::Request, "tools/list"));
        assert_eq!(request.get("cursor").unwrap().as_bytes(), br#""c""#);
        let notification = parse(notification("notifications/initialized", None));
        assert_eq!(notification.kind(), MessageKind::Notification);
        assert!(notification.body_raw().is_none());
    }

    #[test]
    fn large_results_are_shared() {
        let result = Bytes::from(format!(r#"{{"x":"{}"}}"#, "y".repeat(100_000)));
        let payload = result_response(Raw::new(b"7"), &result);
        assert!(payload.pieces().any(|piece| piece.as_ptr() == result.as_ptr()));
        let message = parse(payload);
        assert_eq!(message.body_raw().unwrap().as_bytes(), &result);
        assert_eq!(message.id().unwrap().as_bytes(), b"7");
    }

    /// D16, E48: one shape for every failed call, and `resultType` only where it is known.
    #[test]
    fn d16_failed_calls_are_results() {
        let mut error = CallError::new(CallErrorKind::Timeout, "no answer in 5 s");
        let parsed = |error: &CallError, era| -> Value {
            serde_json::from_slice(&tool_error_result(error, era, false)).unwrap()
        };
        let expected = json!({
            "content": [{"type": "text", "text": "no answer in 5 s"}],
            "isError": true,
            "structuredContent": {"error": {"kind": "timeout", "message": "no answer in 5 s"}},
        });
        assert_eq!(parsed(&error, Era::Legacy), expected);
        error.details = Some(json!({"after_ms": 5000}));
        let modern = parsed(&error, Era::Modern);
        assert_eq!(modern["resultType"], "complete");
        assert_eq!(modern["structuredContent"]["error"]["details"]["after_ms"], 5000);
        // Clients check structured content against the tool's own schema.
        let shaped: Value =
            serde_json::from_slice(&tool_error_result(&error, Era::Legacy, true)).unwrap();
        assert_eq!(shaped["structuredContent"], Value::Null);
        assert_eq!(shaped["_meta"][meta_key::ERROR], json!(error));
        let told = json!([{"type": "text", "text": "no answer in 5 s"}]);
        assert_eq!(shaped["content"], told, "a failure is said once");
    }

    /// D24: the gateway's own codes are outside the ranges that JSON-RPC and MCP reserve.
    #[test]
    fn own_codes_are_outside_the_reserved_range() {
        let standard = [code::INVALID_PARAMS, code::INTERNAL_ERROR];
        for kind in ErrorKind::ALL {
            let code = code_for(kind);
            assert!(standard.contains(&code) || !(-32768..=-32000).contains(&code), "{kind}");
        }
        assert_eq!(code_for(ErrorKind::NotFound), code_for(ErrorKind::Invalid));
    }
}
