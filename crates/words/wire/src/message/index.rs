//! The one walk over a message that checks the message and locates its parts.

use bytes::Bytes;

use super::{MessageError, MessageKind};
use crate::{
    json::{
        JsonError, KnownNames, Member, Members, Object, Scanner, Span, check_keys_unless_plain,
        check_utf8, decode_string, key_is,
    },
    meta_key, method,
};

/// Names in the envelope, and those in a body by which a message is routed.
const ENVELOPE_NAMES: KnownNames =
    KnownNames::new(&["jsonrpc", "id", "method", "params", "result", "error"]);
const BODY_NAMES: KnownNames = KnownNames::new(&[
    "_meta",
    "name",
    "uri",
    "arguments",
    "cursor",
    "taskId",
    "ref",
    "requestState",
    "resultType",
    "inputResponses",
    "inputRequests",
]);
/// Names in `_meta` that decide something.
const META_NAMES: KnownNames = KnownNames::new(&[
    meta_key::PROTOCOL_VERSION,
    meta_key::CLIENT_CAPABILITIES,
    meta_key::LOG_LEVEL,
    meta_key::PROGRESS_TOKEN,
    meta_key::RELATED_TASK,
    meta_key::SUBSCRIPTION_ID,
]);

/// Most members of an envelope, of a body (`params`, `result` or `error`), and of its `_meta`. Each
/// is searched for every requested name.
const ENVELOPE_MAX: usize = 100;
const BODY_MAX: usize = 10_000;
const META_MAX: usize = 1000;

/// The places of a message's parts.
#[derive(Debug)]
pub(super) struct Index {
    pub(super) bytes: Bytes,
    pub(super) kind: MessageKind,
    pub(super) envelope: Object,
    pub(super) id: Option<Span>,
    pub(super) method: Option<Span>,
    /// The method, if it is a frequent one.
    pub(super) known_method: Option<&'static str>,
    /// The whole of `params`, `result` or `error`, of whatever type.
    pub(super) content: Option<Span>,
    pub(super) body: Option<Object>,
    pub(super) meta: Option<Object>,
    /// The span of a `null` in place of a required object. A finished index has none.
    null: Option<Span>,
}

/// The parts that the walk over the envelope collects.
#[derive(Default)]
struct Found {
    members: Members,
    known: Known,
    body: Option<Object>,
    meta: Option<Object>,
    /// The span of a `null` in place of `_meta`.
    null: Option<Span>,
}

/// The values of the names that an envelope may have.
#[derive(Default)]
struct Known {
    version: Option<Span>,
    id: Option<Span>,
    method: Option<Span>,
    params: Option<Span>,
    result: Option<Span>,
    error: Option<Span>,
}

impl Index {
    /// Indexes a text. Parameters or `_meta` that are null are absent: they are written as empty
    /// objects, since many readers take nothing else.
    pub(super) fn of(bytes: Bytes) -> Result<Self, MessageError> {
        let index = Self::as_it_is(bytes)?;
        let Some(null) = index.null.map(Span::range) else { return Ok(index) };
        let (before, after) = (&index.bytes[..null.start], &index.bytes[null.end..]);
        Self::of([before, b"{}", after].concat().into())
    }

    /// Indexes a text, with the place of an object that is null in it and should be there.
    fn as_it_is(bytes: Bytes) -> Result<Self, MessageError> {
        let is_ascii = bytes.is_ascii();
        if !is_ascii {
            check_utf8(&bytes)?;
        }
        let mut scanner = Scanner::new(&bytes, 0, 0);
        if scanner.peek() == Some(b'[') {
            scanner.value()?;
            scanner.finish()?;
            return Err(MessageError::Batch);
        }
        let mut found = Found::default();
        let span = scanner.object_with(|scanner, key| found.member(&bytes, scanner, key))?;
        scanner.finish()?;
        let is_plain = !scanner.has_escaped_keys();
        let Found { members, known, body, meta, null } = found;
        check_keys_unless_plain(&bytes, &members, is_plain)?;
        let is_plain = is_plain && is_ascii;
        let envelope = Object { span, members };
        envelope.check_deceptive(&bytes, &ENVELOPE_NAMES, is_plain)?;
        let kind = known.classify(&bytes)?;
        if let Some(body) = &body {
            body.check_deceptive(&bytes, &BODY_NAMES, is_plain)?;
        }
        if let Some(meta) = &meta {
            meta.check_deceptive(&bytes, &META_NAMES, is_plain)?;
        }
        let Known { id, method, params, result, error, version: _ } = known;
        let known_method = method.and_then(|span| method::frequent(span.of(&bytes)));
        let content = params.or(result).or(error);
        let null = null.or_else(|| params.filter(|params| params.of(&bytes) == b"null"));
        Ok(Self { kind, envelope, id, method, known_method, content, body, meta, null, bytes })
    }
}

impl Found {
    fn member(
        &mut self,
        text: &[u8],
        scanner: &mut Scanner<'_>,
        key: Span,
    ) -> Result<(), JsonError> {
        let Some((slot, is_content)) = self.known.slot(key.of(text)) else {
            let value = scanner.value()?;
            return push(&mut self.members, Member { key, value }, ENVELOPE_MAX);
        };
        let value = if is_content && scanner.peek() == Some(b'{') && self.body.is_none() {
            let (object, meta, null) = indexed_body(text, scanner)?;
            let span = object.span;
            (self.body, self.meta, self.null) = (Some(object), meta, null);
            span
        } else {
            scanner.value()?
        };
        // A second one is refused with all keys that occur twice.
        *slot = Some(value);
        push(&mut self.members, Member { key, value }, ENVELOPE_MAX)
    }
}

/// Adds a member, unless there are as many already.
fn push(members: &mut Members, member: Member, most: usize) -> Result<(), JsonError> {
    if members.len() >= most {
        return Err(JsonError::TooManyMembers { most });
    }
    members.push(member);
    Ok(())
}

/// Indexes a body and its `_meta` in the same pass; a `_meta` that is null comes by its place.
fn indexed_body(
    text: &[u8],
    scanner: &mut Scanner<'_>,
) -> Result<(Object, Option<Object>, Option<Span>), JsonError> {
    let mut members = Members::new();
    let (mut meta, mut null) = (None, None);
    let span = scanner.object_with(|scanner, key| {
        let is_meta = key_is(key.of(text), "_meta");
        let value = if is_meta && scanner.peek() == Some(b'{') {
            let object = scanner.object_of(META_MAX)?;
            let span = object.span;
            meta = Some(object);
            span
        } else {
            scanner.value()?
        };
        if is_meta && value.of(text) == b"null" {
            null = Some(value);
        }
        push(&mut members, Member { key, value }, BODY_MAX)
    })?;
    check_keys_unless_plain(text, &members, !scanner.has_escaped_keys())?;
    Ok((Object { span, members }, meta, null))
}

impl Known {
    /// The slot of the value of a quoted key, and true if that value is the content of the message.
    fn slot(&mut self, quoted: &[u8]) -> Option<(&mut Option<Span>, bool)> {
        match quoted {
            br#""jsonrpc""# => Some((&mut self.version, false)),
            br#""id""# => Some((&mut self.id, false)),
            br#""method""# => Some((&mut self.method, false)),
            br#""params""# => Some((&mut self.params, true)),
            br#""result""# => Some((&mut self.result, true)),
            br#""error""# => Some((&mut self.error, true)),
            _ if quoted.contains(&b'\\') => {
                let plain = format!("\"{}\"", decode_string(quoted)?);
                if plain.contains('\\') { None } else { self.slot(plain.as_bytes()) }
            }
            _ => None,
        }
    }

    fn classify(&self, text: &[u8]) -> Result<MessageKind, MessageError> {
        let wrong = |why| Err(MessageError::Envelope(why));
        if self.version.map(|span| span.of(text)) != Some(br#""2.0""#) {
            return wrong("`jsonrpc` must be \"2.0\"");
        }
        let id_is_null = self.id.is_some_and(|id| id.of(text) == b"null");
        if self.id.is_some_and(|id| !is_id(id.of(text))) && !id_is_null {
            return wrong("`id` must be a string or an integer");
        }
        let has_id = self.id.is_some() && !id_is_null;
        if let Some(method) = self.method {
            return self.classify_call(text, method.of(text), id_is_null);
        }
        if self.params.is_some() {
            return wrong("`params` without `method`");
        }
        match (self.result, self.error) {
            (Some(_), None) if !has_id => wrong("a result needs an `id`"),
            (Some(_), None) => Ok(MessageKind::Result),
            (None, Some(error)) if error.of(text)[0] != b'{' => wrong("`error` must be an object"),
            (None, Some(_)) => Ok(MessageKind::Error),
            _ => wrong("exactly one of `method`, `result` and `error` is needed"),
        }
    }

    fn classify_call(
        &self,
        text: &[u8],
        method: &[u8],
        id_is_null: bool,
    ) -> Result<MessageKind, MessageError> {
        let wrong = |why| Err(MessageError::Envelope(why));
        if method.first() != Some(&b'"') || method.len() < 3 || method.contains(&b'\\') {
            return wrong("`method` must be a non-empty string without escapes");
        }
        if self.result.is_some() || self.error.is_some() {
            return wrong("`method` together with `result` or `error`");
        }
        if self.params.is_some_and(|params| !matches!(params.of(text)[0], b'{' | b'[' | b'n')) {
            return wrong("`params` must be an object");
        }
        match self.id {
            None => Ok(MessageKind::Notification),
            Some(_) if id_is_null => wrong("the `id` of a request must not be null"),
            Some(_) => Ok(MessageKind::Request),
        }
    }
}

/// A string, or an integer without fraction and exponent.
pub(super) fn is_id(text: &[u8]) -> bool {
    match text.first() {
        Some(b'"') => true,
        Some(b'-' | b'0'..=b'9') => !text.iter().any(|b| matches!(b, b'.' | b'e' | b'E')),
        _ => false,
    }
}
