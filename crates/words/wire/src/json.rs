//! One strict pass over JSON text that validates the text and locates its parts.
//!
//! No part is decoded or copied: a value is a [`Span`] of the original bytes. So unknown fields,
//! key order and the spelling of numbers survive. Depth is limited before any memory is taken. The
//! grammar is RFC 8259 without any leniency: see `tests::the_scanner_agrees_with_serde_json`.

mod scanner;

use std::borrow::Cow;

use smallvec::SmallVec;

pub use self::scanner::Scanner;
use self::scanner::plain_run;

/// The deepest nesting accepted; deeper input is refused, not truncated.
pub const DEPTH_MAX: u32 = 128;

/// A range of bytes in a message. Messages are shorter than 4 GiB by [`crate::Limits`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl Span {
    /// The bytes of `text` that the span covers.
    #[must_use]
    pub fn of(self, text: &[u8]) -> &[u8] {
        &text[self.start as usize..self.end as usize]
    }

    /// The span as a range.
    #[must_use]
    pub fn range(self) -> std::ops::Range<usize> {
        self.start as usize..self.end as usize
    }
}

/// One member of an object: both spans are verbatim, the key with its quotes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Member {
    /// The key with its quotes.
    pub key: Span,
    /// The value without white space around it.
    pub value: Span,
}

/// The members of one object, in their order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Object {
    /// The object with its braces.
    pub span: Span,
    /// Its members.
    pub members: Members,
}

/// Members in their order, stored in place up to six: most indexed objects have few.
pub type Members = SmallVec<[Member; 6]>;

/// Names that a key must not pretend to be.
#[derive(Debug)]
pub(crate) struct KnownNames {
    names: &'static [&'static str],
    /// Bit n is set if a known name has n bytes.
    lengths: u64,
}

/// The reason why a text is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum JsonError {
    /// The text is not JSON by RFC 8259.
    #[error("not valid JSON at byte {at}")]
    Syntax {
        /// Byte position at which the scanner stopped.
        at: usize,
    },
    /// The text is not UTF-8, which RFC 8259 demands.
    #[error("not valid UTF-8 at byte {at}")]
    Utf8 {
        /// Position of the first bad byte.
        at: usize,
    },
    /// The text is nested deeper than [`DEPTH_MAX`].
    #[error("nested deeper than {DEPTH_MAX} levels")]
    TooDeep,
    /// One object has a key twice; readers would differ on which value counts (S12).
    #[error("the same key twice in one object, at byte {at}")]
    DuplicateKey {
        /// Byte position of the second key.
        at: usize,
    },
    /// The envelope, the body or `_meta` has more members than any reader needs.
    #[error("more than {most} members in one object of the message")]
    TooManyMembers {
        /// The most members allowed.
        most: usize,
    },
    /// A key that some readers would take for another: it has a NUL, or is a known name in other
    /// case.
    #[error("a key that could be read as another one, at byte {at}")]
    DeceptiveKey {
        /// Byte position of the key.
        at: usize,
    },
}

/// Checks that `text` is UTF-8.
///
/// # Errors
/// [`JsonError::Utf8`] with the position of the first bad byte.
pub fn check_utf8(text: &[u8]) -> Result<(), JsonError> {
    match std::str::from_utf8(text) {
        Ok(_) => Ok(()),
        Err(error) => Err(JsonError::Utf8 { at: error.valid_up_to() }),
    }
}

/// Refuses a key that occurs twice, compared after decoding, and keys with NUL inside.
///
/// # Errors
/// [`JsonError::DuplicateKey`], [`JsonError::DeceptiveKey`], or a key with a lone surrogate.
pub fn check_keys(text: &[u8], members: &[Member]) -> Result<(), JsonError> {
    check_keys_unless_plain(text, members, false)
}

/// As [`check_keys`], for keys that may be known to have no escapes.
pub(crate) fn check_keys_unless_plain(
    text: &[u8],
    members: &[Member],
    is_plain: bool,
) -> Result<(), JsonError> {
    const FEW: usize = 12;
    let at = |member: &Member| member.key.start as usize;
    let is_plain = is_plain || !members.iter().any(|m| m.key.of(text).contains(&b'\\'));
    if is_plain && members.len() <= FEW {
        for (i, member) in members.iter().enumerate() {
            let length = member.key.end - member.key.start;
            let is_same = |earlier: &Member| {
                earlier.key.end - earlier.key.start == length
                    && earlier.key.of(text) == member.key.of(text)
            };
            if members[..i].iter().any(is_same) {
                return Err(JsonError::DuplicateKey { at: at(member) });
            }
        }
        return Ok(());
    }
    let mut seen = std::collections::HashSet::with_capacity(members.len());
    for member in members {
        let key = decode_string(member.key.of(text)).ok_or(JsonError::Syntax { at: at(member) })?;
        if key.contains('\0') {
            return Err(JsonError::DeceptiveKey { at: at(member) });
        }
        if !seen.insert(key) {
            return Err(JsonError::DuplicateKey { at: at(member) });
        }
    }
    Ok(())
}

/// The text of a JSON string that has its quotes; `None` if the text is no string or not decodable.
#[must_use]
pub fn decode_string(quoted: &[u8]) -> Option<Cow<'_, str>> {
    let inner = quoted.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    if memchr::memchr(b'\\', inner).is_none() {
        return std::str::from_utf8(inner).ok().map(Cow::Borrowed);
    }
    serde_json::from_slice(quoted).ok().map(Cow::Owned)
}

/// A text as a JSON string with quotes.
#[must_use]
pub fn encode_string(text: &str) -> Vec<u8> {
    let plain = plain_run(text.as_bytes()) == text.len();
    if plain {
        let mut quoted = Vec::with_capacity(text.len() + 2);
        quoted.push(b'"');
        quoted.extend_from_slice(text.as_bytes());
        quoted.push(b'"');
        return quoted;
    }
    serde_json::Value::from(text).to_string().into_bytes()
}

impl Object {
    /// The value of `key`, compared after decoding; `None` if the object has no such key.
    #[must_use]
    pub fn get(&self, text: &[u8], key: &str) -> Option<Span> {
        self.find(text, key).map(|index| self.members[index].value)
    }

    /// The position of `key` among the members; `None` if the object has no such key.
    #[must_use]
    pub fn find(&self, text: &[u8], key: &str) -> Option<usize> {
        self.members.iter().position(|member| key_is(member.key.of(text), key))
    }

    /// Refuses keys that one of `names` would match if letters' case did not count.
    ///
    /// `is_plain`: all keys are known to be ASCII without escapes.
    ///
    /// # Errors
    /// Names the first such key (S12).
    pub(crate) fn check_deceptive(
        &self,
        text: &[u8],
        names: &KnownNames,
        is_plain: bool,
    ) -> Result<(), JsonError> {
        for member in &self.members {
            let key = member.key.of(text);
            let is_deceptive = if is_plain {
                names.is_imitated(&key[1..key.len() - 1])
            } else {
                let decoded = decode_string(key);
                names.is_imitated_folded(
                    &decoded.ok_or(JsonError::Syntax { at: member.key.start as usize })?,
                )
            };
            if is_deceptive {
                return Err(JsonError::DeceptiveKey { at: member.key.start as usize });
            }
        }
        Ok(())
    }
}

impl KnownNames {
    pub(crate) const fn new(names: &'static [&'static str]) -> Self {
        let (mut lengths, mut i) = (0, 0);
        while i < names.len() {
            lengths |= 1_u64 << names[i].len();
            i += 1;
        }
        Self { names, lengths }
    }

    /// True if an ASCII key is a known name in other case, or with blanks around it.
    fn is_imitated(&self, key: &[u8]) -> bool {
        let is_bare = |end: Option<&u8>| end.is_none_or(u8::is_ascii_graphic);
        if !(is_bare(key.first()) && is_bare(key.last())) {
            return std::str::from_utf8(key).is_ok_and(|key| self.is_imitated_folded(key));
        }
        // Among ASCII letters, case does not change the length.
        key.len() < 64
            && self.lengths >> key.len() & 1 == 1
            && self.names.iter().any(|name| {
                let name = name.as_bytes();
                name.len() == key.len() && name != key && name.eq_ignore_ascii_case(key)
            })
    }

    /// True if a key equals a known name once case, letters that fold to ASCII, blanks and control
    /// characters are ignored.
    fn is_imitated_folded(&self, key: &str) -> bool {
        self.names.iter().any(|name| imitates(key, name))
    }
}

/// True if a quoted key decodes to `name`.
#[must_use]
#[inline]
pub fn key_is(quoted: &[u8], name: &str) -> bool {
    let length = name.len() + 2;
    if quoted.len() == length {
        return &quoted[1..=name.len()] == name.as_bytes();
    }
    // An escape is longer than its character.
    quoted.len() > length && may_be_escaped(quoted, name) && key_is_escaped(quoted, name)
}

/// True if a quoted key may be `name` with escapes, judged by its first character.
fn may_be_escaped(quoted: &[u8], name: &str) -> bool {
    quoted[1] == b'\\' || name.as_bytes().first() == Some(&quoted[1])
}

#[cold]
fn key_is_escaped(quoted: &[u8], name: &str) -> bool {
    quoted.contains(&b'\\') && decode_string(quoted).is_some_and(|key| key == name)
}

/// True if a key is not the ASCII name, and a lenient reader may take it for that name.
///
/// A lenient reader ignores blanks and control characters, and compares by Unicode's simple case
/// folding as far as that reaches ASCII.
fn imitates(key: &str, name: &str) -> bool {
    let mut names = name.chars();
    let mut kept = key.chars().filter(|c| !c.is_whitespace() && !c.is_control());
    let is_same = kept.all(|c| {
        let c = match c {
            '\u{17f}' => 's',
            '\u{212a}' => 'k',
            other => other.to_ascii_lowercase(),
        };
        names.next().is_some_and(|n| n.to_ascii_lowercase() == c)
    });
    is_same && names.next().is_none() && key != name
}

#[cfg(test)]
mod tests;
