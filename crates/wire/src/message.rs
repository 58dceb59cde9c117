//! One JSON-RPC message as bytes with an index: the envelope, one level of its body, and `_meta`.
//!
//! The bytes are the truth. What is refused here is what two readers could read differently (S12):
//! duplicate keys in envelope, body and `_meta`, known names in other case, NUL in keys, both or
//! neither of `result` and `error`.

use std::borrow::Cow;

use bytes::Bytes;

use crate::{
    Limits,
    json::{JsonError, Member, Object, Scanner, Span, check_utf8, decode_string, key_is},
};

/// Names in the envelope, and those in a body that decide what happens to a message.
const ENVELOPE_NAMES: [&str; 6] = ["jsonrpc", "id", "method", "params", "result", "error"];
const BODY_NAMES: [&str; 9] =
    ["_meta", "name", "uri", "arguments", "cursor", "taskId", "ref", "requestState", "resultType"];

/// What a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageKind {
    /// Has a method and an id.
    Request,
    /// Has a method and no id.
    Notification,
    /// Has an id and a result.
    Result,
    /// Has an id, which may be null, and an error.
    Error,
}

/// Why a text is no acceptable message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum MessageError {
    /// The text itself is refused.
    #[error("the message is refused: {0}")]
    Json(#[source] JsonError),
    /// Longer than allowed.
    #[error("the message is longer than {limit} bytes")]
    TooLarge {
        /// The limit that applies.
        limit: usize,
    },
    /// An array: JSON-RPC batches exist only in revision 2025-03-26.
    #[error("a batch is not accepted here")]
    Batch,
    /// JSON, but no JSON-RPC 2.0 message.
    #[error("not a JSON-RPC 2.0 message: {0}")]
    Envelope(&'static str),
}

impl From<JsonError> for MessageError {
    fn from(error: JsonError) -> Self {
        Self::Json(error)
    }
}

/// A checked message. Cloning shares the bytes.
#[derive(Debug, Clone)]
pub struct Message {
    bytes: Bytes,
    kind: MessageKind,
    envelope: Object,
    id: Option<Span>,
    method: Option<Span>,
    body: Option<Object>,
    meta: Option<Object>,
}

/// A JSON value inside a message, undecoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Raw<'a>(&'a [u8]);

impl<'a> Raw<'a> {
    /// A value that is known to be valid JSON, such as a span of a message.
    #[must_use]
    pub fn new(text: &'a [u8]) -> Self {
        Self(text)
    }

    /// The text, verbatim.
    #[must_use]
    pub fn as_bytes(self) -> &'a [u8] {
        self.0
    }

    /// The text of a string value.
    #[must_use]
    pub fn as_str(self) -> Option<Cow<'a, str>> {
        decode_string(self.0)
    }

    /// A non-negative integer value.
    #[must_use]
    pub fn as_u64(self) -> Option<u64> {
        std::str::from_utf8(self.0).ok()?.parse().ok()
    }

    /// A boolean value.
    #[must_use]
    pub fn as_bool(self) -> Option<bool> {
        match self.0 {
            b"true" => Some(true),
            b"false" => Some(false),
            _ => None,
        }
    }

    /// Whether it is an object.
    #[must_use]
    pub fn is_object(self) -> bool {
        self.0.first() == Some(&b'{')
    }

    /// One member of an object value; `None` if it is no object, has a key twice, or lacks it.
    #[must_use]
    pub fn get(self, key: &str) -> Option<Self> {
        let object = Scanner::new(self.0, 0, 0).object().ok()?;
        object.get(self.0, key).map(|span| Raw(span.of(self.0)))
    }

    /// The elements of an array value; empty if it is no array.
    #[must_use]
    pub fn items(self) -> Vec<Self> {
        let mut items = Vec::new();
        let array = Scanner::new(self.0, 0, 0).array(|span| items.push(Raw(span.of(self.0))));
        if array.is_ok() { items } else { Vec::new() }
    }

    /// The members of an object value as key and value; empty if it is no object.
    #[must_use]
    pub fn entries(self) -> Vec<(Cow<'a, str>, Self)> {
        let Ok(object) = Scanner::new(self.0, 0, 0).object() else { return Vec::new() };
        let pair = |member: &Member| {
            Some((decode_string(member.key.of(self.0))?, Raw(member.value.of(self.0))))
        };
        object.members.iter().filter_map(pair).collect()
    }

    /// The value as a type.
    ///
    /// # Errors
    /// When it does not fit the type.
    pub fn parse<T: serde::Deserialize<'a>>(self) -> Result<T, serde_json::Error> {
        serde_json::from_slice(self.0)
    }
}

/// What the walk over the envelope collects.
#[derive(Default)]
struct Found {
    members: smallvec::SmallVec<[Member; 6]>,
    body: Option<Object>,
    meta: Option<Object>,
}

impl Message {
    /// Checks and indexes one message.
    ///
    /// # Errors
    /// When it is too large, no JSON, a batch, or no unambiguous JSON-RPC 2.0 message.
    pub fn parse(bytes: Bytes, limits: &Limits) -> Result<Self, MessageError> {
        if bytes.len() > limits.message_bytes {
            return Err(MessageError::TooLarge { limit: limits.message_bytes });
        }
        check_utf8(&bytes)?;
        let mut scanner = Scanner::new(&bytes, 0, 0);
        if scanner.peek() == Some(b'[') {
            scanner.value()?;
            scanner.finish()?;
            return Err(MessageError::Batch);
        }
        let mut found = Found::default();
        let span = scanner.object_with(|scanner, key| found.member(&bytes, scanner, key))?;
        scanner.finish()?;
        let envelope = Object { span, members: found.members };
        crate::json::check_keys(&bytes, &envelope.members)?;
        envelope.check_deceptive(&bytes, &ENVELOPE_NAMES)?;
        let (kind, id, method) = classify(&bytes, &envelope)?;
        if let Some(body) = &found.body {
            body.check_deceptive(&bytes, &BODY_NAMES)?;
        }
        Ok(Self { kind, id, method, envelope, body: found.body, meta: found.meta, bytes })
    }

    /// The messages of a batch (revision 2025-03-26), or the one message that is no batch.
    ///
    /// # Errors
    /// Those of [`Message::parse`] for any of them, an empty batch, or more than `most` members.
    pub fn parse_batch(
        bytes: &Bytes,
        limits: &Limits,
        most: usize,
    ) -> Result<Vec<Self>, MessageError> {
        match Self::parse(bytes.clone(), limits) {
            Err(MessageError::Batch) => {}
            single => return single.map(|message| vec![message]),
        }
        let mut spans = Vec::new();
        Scanner::new(bytes, 0, 0).array(|span| spans.push(span))?;
        if spans.is_empty() || spans.len() > most {
            return Err(MessageError::Envelope("an empty batch, or one with too many members"));
        }
        spans.into_iter().map(|span| Self::parse(bytes.slice(span.range()), limits)).collect()
    }

    /// The whole text, verbatim.
    #[must_use]
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// What the message is.
    #[must_use]
    pub fn kind(&self) -> MessageKind {
        self.kind
    }

    /// The id as written; `None` for notifications.
    #[must_use]
    pub fn id(&self) -> Option<Raw<'_>> {
        self.id.map(|span| Raw(span.of(&self.bytes)))
    }

    /// The method of a request or notification; empty for responses.
    #[must_use]
    pub fn method(&self) -> &str {
        // `classify` admits only methods without escapes.
        let text = self.method.map_or(&b""[..], |span| span.of(&self.bytes));
        let inner = text.get(1..text.len().saturating_sub(1)).unwrap_or_default();
        std::str::from_utf8(inner).unwrap_or_default()
    }

    /// The members of `params`, `result` or `error`.
    #[must_use]
    pub fn body(&self) -> Option<&Object> {
        self.body.as_ref()
    }

    /// The members of the body's `_meta`.
    #[must_use]
    pub fn meta(&self) -> Option<&Object> {
        self.meta.as_ref()
    }

    pub(crate) fn envelope(&self) -> &Object {
        &self.envelope
    }

    pub(crate) fn id_span(&self) -> Option<Span> {
        self.id
    }

    /// One member of `params`, `result` or `error`.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<Raw<'_>> {
        let span = self.body.as_ref()?.get(&self.bytes, key)?;
        Some(Raw(span.of(&self.bytes)))
    }

    /// One member of `_meta`.
    #[must_use]
    pub fn meta_value(&self, key: &str) -> Option<Raw<'_>> {
        let span = self.meta.as_ref()?.get(&self.bytes, key)?;
        Some(Raw(span.of(&self.bytes)))
    }

    /// The whole of `params`, `result` or `error`.
    #[must_use]
    pub fn body_raw(&self) -> Option<Raw<'_>> {
        let name = match self.kind {
            MessageKind::Request | MessageKind::Notification => "params",
            MessageKind::Result => "result",
            MessageKind::Error => "error",
        };
        let span = self.envelope.get(&self.bytes, name)?;
        Some(Raw(span.of(&self.bytes)))
    }

    /// The `code` of an error message.
    #[must_use]
    pub fn error_code(&self) -> Option<i64> {
        if self.kind != MessageKind::Error {
            return None;
        }
        std::str::from_utf8(self.get("code")?.as_bytes()).ok()?.parse().ok()
    }
}

impl Found {
    fn member(
        &mut self,
        text: &[u8],
        scanner: &mut Scanner<'_>,
        key: Span,
    ) -> Result<(), JsonError> {
        let quoted = key.of(text);
        let is_body = ["params", "result", "error"].iter().any(|name| key_is(quoted, name));
        let value = if is_body && scanner.peek() == Some(b'{') && self.body.is_none() {
            let (object, meta) = indexed_body(text, scanner)?;
            let span = object.span;
            (self.body, self.meta) = (Some(object), meta);
            span
        } else {
            scanner.value()?
        };
        self.members.push(Member { key, value });
        Ok(())
    }
}

/// Indexes a body and its `_meta` in the same pass.
fn indexed_body(
    text: &[u8],
    scanner: &mut Scanner<'_>,
) -> Result<(Object, Option<Object>), JsonError> {
    let mut members = smallvec::SmallVec::new();
    let mut meta = None;
    let span = scanner.object_with(|scanner, key| {
        let value = if key_is(key.of(text), "_meta") && scanner.peek() == Some(b'{') {
            let object = scanner.object()?;
            let span = object.span;
            meta = Some(object);
            span
        } else {
            scanner.value()?
        };
        members.push(Member { key, value });
        Ok(())
    })?;
    crate::json::check_keys(text, &members)?;
    Ok((Object { span, members }, meta))
}

type Classified = (MessageKind, Option<Span>, Option<Span>);

fn classify(text: &[u8], envelope: &Object) -> Result<Classified, MessageError> {
    let wrong = |why| Err(MessageError::Envelope(why));
    let get = |name| envelope.get(text, name);
    if get("jsonrpc").map(|span| span.of(text)) != Some(br#""2.0""#) {
        return wrong("`jsonrpc` must be \"2.0\"");
    }
    let (id, method) = (get("id"), get("method"));
    let id_is_null = id.is_some_and(|id| id.of(text) == b"null");
    if id.is_some_and(|id| !is_id(id.of(text))) && !id_is_null {
        return wrong("`id` must be a string or an integer");
    }
    if let Some(method) = method {
        let quoted = method.of(text);
        if quoted.first() != Some(&b'"') || quoted.len() < 3 || quoted.contains(&b'\\') {
            return wrong("`method` must be a non-empty string without escapes");
        }
        if get("result").is_some() || get("error").is_some() {
            return wrong("`method` together with `result` or `error`");
        }
        if get("params").is_some_and(|params| !matches!(params.of(text)[0], b'{' | b'[')) {
            return wrong("`params` must be an object");
        }
        return match id {
            None => Ok((MessageKind::Notification, None, Some(method))),
            Some(_) if id_is_null => wrong("the `id` of a request must not be null"),
            Some(_) => Ok((MessageKind::Request, id, Some(method))),
        };
    }
    if get("params").is_some() {
        return wrong("`params` without `method`");
    }
    match (get("result"), get("error")) {
        (Some(_), None) if id.is_none() || id_is_null => wrong("a result needs an `id`"),
        (Some(_), None) => Ok((MessageKind::Result, id, None)),
        (None, Some(error)) if error.of(text)[0] != b'{' => wrong("`error` must be an object"),
        (None, Some(_)) => Ok((MessageKind::Error, id, None)),
        _ => wrong("exactly one of `method`, `result` and `error` is needed"),
    }
}

/// A string, or an integer without fraction and exponent.
fn is_id(text: &[u8]) -> bool {
    match text.first() {
        Some(b'"') => true,
        Some(b'-' | b'0'..=b'9') => !text.iter().any(|b| matches!(b, b'.' | b'e' | b'E')),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Message, MessageError> {
        Message::parse(Bytes::copy_from_slice(text.as_bytes()), &Limits::default())
    }

    #[test]
    fn indexes_a_request() {
        let text = r#"{"jsonrpc":"2.0","id":"a","method":"tools/call",
            "params":{"name":"x","_meta":{"progressToken":7},"arguments":{}},"zz":1}"#;
        let message = parse(text).unwrap();
        assert_eq!(message.kind(), MessageKind::Request);
        assert_eq!(message.method(), "tools/call");
        assert_eq!(message.id().unwrap().as_bytes(), br#""a""#);
        assert_eq!(message.get("name").unwrap().as_str().unwrap(), "x");
        assert_eq!(message.meta_value("progressToken").unwrap().as_u64(), Some(7));
        assert_eq!(message.body_raw().unwrap().get("arguments").unwrap().as_bytes(), b"{}");
    }

    /// S12: envelopes that peers could read in two ways.
    #[test]
    fn s12_ambiguous_envelopes_are_refused() {
        let bad = [
            r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"a"}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"a","Method":"b"}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"a","params":{"name":"x","name":"y"}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"a","params":{"name":"x","NAME":"y"}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"a","params":{"name":"x","n\u0061me":"y"}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"a","params":{"name\u0000":"x"}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"a","params":{"_meta":{"a":1,"a":2}}}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"a","result":{}}"#,
            r#"{"jsonrpc":"2.0","id":null,"method":"a"}"#,
            r#"{"jsonrpc":"2.0","id":1.5,"method":"a"}"#,
            r#"{"jsonrpc":"2.0","id":{},"method":"a"}"#,
            r#"{"jsonrpc":"1.0","id":1,"method":"a"}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"to\u006fls/list"}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":""}"#,
            r#"{"jsonrpc":"2.0","result":{}}"#,
            r#"{"jsonrpc":"2.0","id":1}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"a"} x"#,
            r#"[{"jsonrpc":"2.0","id":1,"method":"a"}]"#,
            r#"7"#,
        ];
        for text in bad {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn s12_size_is_limited() {
        let limits = Limits { message_bytes: 10 };
        let error = Message::parse(Bytes::from_static(b"{\"jsonrpc\":\"2.0\"}"), &limits);
        assert_eq!(error.unwrap_err(), MessageError::TooLarge { limit: 10 });
    }

    #[test]
    fn errors_may_have_a_null_id() {
        let text = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"x"}}"#;
        let message = parse(text).unwrap();
        assert_eq!((message.kind(), message.error_code()), (MessageKind::Error, Some(-32700)));
    }

    #[test]
    fn batches_are_split_on_request_only() {
        let text = r#"[{"jsonrpc":"2.0","id":1,"method":"a"}, {"jsonrpc":"2.0","method":"b"}]"#;
        let bytes = Bytes::from_static(text.as_bytes());
        let limits = Limits::default();
        assert_eq!(Message::parse(bytes.clone(), &limits).unwrap_err(), MessageError::Batch);
        let messages = Message::parse_batch(&bytes, &limits, 10).unwrap();
        assert_eq!(messages.iter().map(Message::method).collect::<Vec<_>>(), ["a", "b"]);
        assert!(Message::parse_batch(&bytes, &limits, 1).is_err());
        assert!(Message::parse_batch(&Bytes::from_static(b"[]"), &limits, 10).is_err());
    }
}
