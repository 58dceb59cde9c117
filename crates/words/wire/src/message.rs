//! One JSON-RPC message as bytes with an index: the envelope, one level of its body, and `_meta`.
//!
//! The bytes are never changed. Parsing refuses a message that two readers could read differently
//! (S12): duplicate keys in envelope, body and `_meta`, known names in other case, NUL in keys,
//! both or neither of `result` and `error`.

mod index;
mod lenient;

use std::{borrow::Cow, sync::Arc};

use bytes::Bytes;

use self::index::Index;
use crate::{
    Limits,
    json::{JsonError, Member, Object, Scanner, Span, decode_string},
};

/// The kind of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageKind {
    /// A message with a method and an id.
    Request,
    /// A message with a method and no id.
    Notification,
    /// A message with an id and a result.
    Result,
    /// A message with an error, and an id that may be null.
    Error,
}

/// The reason why a text is no acceptable message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum MessageError {
    /// The text itself is refused.
    #[error("the message is refused: {0}")]
    Json(#[source] JsonError),
    /// The text is longer than allowed.
    #[error("the message is longer than {limit} bytes")]
    TooLarge {
        /// The limit that applies.
        limit: usize,
    },
    /// The text is an array: JSON-RPC batches exist only in revision 2025-03-26.
    #[error("a batch is not accepted here")]
    Batch,
    /// The text is JSON, but no JSON-RPC 2.0 message.
    #[error("not a JSON-RPC 2.0 message: {0}")]
    Envelope(&'static str),
}

impl From<JsonError> for MessageError {
    fn from(error: JsonError) -> Self {
        Self::Json(error)
    }
}

/// A checked message. Clones share the bytes and the index. Moving a message moves a pointer, as a
/// message passes through many futures.
#[derive(Debug, Clone)]
pub struct Message(Arc<Index>);

/// A JSON value inside a message, undecoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Raw<'a>(&'a [u8]);

impl<'a> Raw<'a> {
    /// Wraps a text that is known to be valid JSON, such as a span of a message.
    #[must_use]
    pub fn new(text: &'a [u8]) -> Self {
        Self(text)
    }

    /// The text, verbatim.
    #[must_use]
    pub fn as_bytes(self) -> &'a [u8] {
        self.0
    }

    /// The text of a string value; `None` for other values.
    #[must_use]
    pub fn as_str(self) -> Option<Cow<'a, str>> {
        decode_string(self.0)
    }

    /// The number of a non-negative integer value; `None` for other values.
    #[must_use]
    pub fn as_u64(self) -> Option<u64> {
        std::str::from_utf8(self.0).ok()?.parse().ok()
    }

    /// The value of a boolean; `None` for other values.
    #[must_use]
    pub fn as_bool(self) -> Option<bool> {
        match self.0 {
            b"true" => Some(true),
            b"false" => Some(false),
            _ => None,
        }
    }

    /// True if the value is an object.
    #[must_use]
    pub fn is_object(self) -> bool {
        self.0.first() == Some(&b'{')
    }

    /// True if the value can be an id or a progress token: a string, or an integer.
    #[must_use]
    pub fn is_token(self) -> bool {
        index::is_id(self.0)
    }

    /// One member of an object value. `None` if the value is no object, lacks the key, or has a key
    /// twice.
    #[must_use]
    pub fn get(self, key: &str) -> Option<Self> {
        let object = Scanner::new(self.0, 0, 0).object().ok()?;
        object.get(self.0, key).map(|span| Raw(span.of(self.0)))
    }

    /// The elements of an array value; empty if the value is no array.
    #[must_use]
    pub fn items(self) -> Vec<Self> {
        let mut items = Vec::new();
        let array = Scanner::new(self.0, 0, 0).array(|span| items.push(Raw(span.of(self.0))));
        if array.is_ok() { items } else { Vec::new() }
    }

    /// Number of elements of an array value, 0 if the value is no array; `None` if there are more
    /// than `most`. Elements above `most` are not read.
    #[must_use]
    pub fn count_up_to(self, most: usize) -> Option<usize> {
        let mut count = 0;
        let counted = Scanner::new(self.0, 0, 0).array_with(|_| {
            count += 1;
            if count > most { Err(JsonError::TooManyMembers { most }) } else { Ok(()) }
        });
        match counted {
            Ok(_) => Some(count),
            Err(JsonError::TooManyMembers { .. }) => None,
            Err(_) => Some(0),
        }
    }

    /// The members of an object value as key and value; empty if the value is no object.
    #[must_use]
    pub fn entries(self) -> Vec<(Cow<'a, str>, Self)> {
        let Ok(object) = Scanner::new(self.0, 0, 0).object() else { return Vec::new() };
        let pair = |member: &Member| {
            Some((decode_string(member.key.of(self.0))?, Raw(member.value.of(self.0))))
        };
        object.members.iter().filter_map(pair).collect()
    }

    /// The members of an object value, each key once.
    ///
    /// # Errors
    /// When the value is no object, or has a key twice: readers would differ on which value counts
    /// (S12).
    pub fn members(self) -> Result<Vec<(Cow<'a, str>, Self)>, JsonError> {
        let object = Scanner::new(self.0, 0, 0).object()?;
        let pair = |member: &Member| {
            let at = member.key.start as usize;
            let key = decode_string(member.key.of(self.0)).ok_or(JsonError::Syntax { at })?;
            Ok((key, Raw(member.value.of(self.0))))
        };
        object.members.iter().map(pair).collect()
    }

    /// Deserializes the value.
    ///
    /// # Errors
    /// When the value does not fit the type.
    pub fn parse<T: serde::Deserialize<'a>>(self) -> Result<T, serde_json::Error> {
        serde_json::from_slice(self.0)
    }
}

impl Message {
    /// Checks and indexes one message.
    ///
    /// # Errors
    /// When the text is too large, no JSON, a batch, or no unambiguous JSON-RPC 2.0 message.
    pub fn parse(bytes: Bytes, limits: &Limits) -> Result<Self, MessageError> {
        if bytes.len() > limits.message_bytes {
            return Err(MessageError::TooLarge { limit: limits.message_bytes });
        }
        Index::of(bytes).map(|index| Self(Arc::new(index)))
    }

    /// The messages of a batch (revision 2025-03-26), or the single message of another text.
    ///
    /// # Errors
    /// The errors of [`Message::parse`] for any message, an empty batch, or more than `most`
    /// messages.
    pub fn parse_batch(
        bytes: &Bytes,
        limits: &Limits,
        most: usize,
    ) -> Result<Vec<Self>, MessageError> {
        Self::batch(bytes, limits, most, Self::parse)
    }

    /// As [`Message::parse_batch`], each read by [`Message::parse_lenient`].
    ///
    /// # Errors
    /// The errors of [`Message::parse_batch`].
    pub fn parse_batch_lenient(
        bytes: &Bytes,
        limits: &Limits,
        most: usize,
    ) -> Result<Vec<Self>, MessageError> {
        Self::batch(&lenient::without_mark(bytes.clone()), limits, most, Self::parse_lenient)
    }

    fn batch(
        bytes: &Bytes,
        limits: &Limits,
        most: usize,
        parse: fn(Bytes, &Limits) -> Result<Self, MessageError>,
    ) -> Result<Vec<Self>, MessageError> {
        match parse(bytes.clone(), limits) {
            Err(MessageError::Batch) => {}
            single => return single.map(|message| vec![message]),
        }
        let mut spans = Vec::new();
        Scanner::new(bytes, 0, 0).array(|span| spans.push(span))?;
        if spans.is_empty() || spans.len() > most {
            return Err(MessageError::Envelope("an empty batch, or one with too many members"));
        }
        spans.into_iter().map(|span| parse(bytes.slice(span.range()), limits)).collect()
    }

    /// The id for the error to a request whose text is refused. `None` if the text has no method,
    /// or no id that can be read.
    #[must_use]
    pub fn refused_id(text: &[u8]) -> Option<Raw<'_>> {
        let whole = Raw::new(text);
        whole.get("method")?;
        whole.get("id").filter(|id| id.is_token() && std::str::from_utf8(id.0).is_ok())
    }

    /// The whole text, verbatim.
    #[must_use]
    pub fn bytes(&self) -> &Bytes {
        &self.0.bytes
    }

    /// The kind of the message.
    #[must_use]
    pub fn kind(&self) -> MessageKind {
        self.0.kind
    }

    /// The id as written; `None` for messages without an id.
    #[must_use]
    pub fn id(&self) -> Option<Raw<'_>> {
        self.0.id.map(|span| Raw(span.of(&self.0.bytes)))
    }

    /// The method of a request or notification; empty for responses.
    #[must_use]
    pub fn method(&self) -> &str {
        if let Some(known) = self.0.known_method {
            return known;
        }
        // The index admits only methods without escapes.
        let text = self.0.method.map_or(&b""[..], |span| span.of(&self.0.bytes));
        let inner = text.get(1..text.len().saturating_sub(1)).unwrap_or_default();
        std::str::from_utf8(inner).unwrap_or_default()
    }

    /// The members of `params`, `result` or `error`.
    #[must_use]
    pub fn body(&self) -> Option<&Object> {
        self.0.body.as_ref()
    }

    /// The members of the body's `_meta`.
    #[must_use]
    pub fn meta(&self) -> Option<&Object> {
        self.0.meta.as_ref()
    }

    pub(crate) fn envelope(&self) -> &Object {
        &self.0.envelope
    }

    pub(crate) fn id_span(&self) -> Option<Span> {
        self.0.id
    }

    /// One member of `params`, `result` or `error`; `None` if it is missing.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<Raw<'_>> {
        let span = self.0.body.as_ref()?.get(&self.0.bytes, key)?;
        Some(Raw(span.of(&self.0.bytes)))
    }

    /// One member of `_meta`; `None` if it is missing.
    #[must_use]
    pub fn meta_value(&self, key: &str) -> Option<Raw<'_>> {
        let span = self.0.meta.as_ref()?.get(&self.0.bytes, key)?;
        Some(Raw(span.of(&self.0.bytes)))
    }

    /// The whole of `params`, `result` or `error`.
    #[must_use]
    pub fn body_raw(&self) -> Option<Raw<'_>> {
        self.0.content.map(|span| Raw(span.of(&self.0.bytes)))
    }

    /// The `code` of an error message; `None` for other messages.
    #[must_use]
    pub fn error_code(&self) -> Option<i64> {
        if self.0.kind != MessageKind::Error {
            return None;
        }
        std::str::from_utf8(self.get("code")?.as_bytes()).ok()?.parse().ok()
    }
}

#[cfg(test)]
mod tests;
