//! Takes known secret values out of texts and messages on their way to people, logs and models.
//!
//! A value is found as it is, escaped as in JSON (also JSON inside a JSON string), percent-encoded,
//! and in base64 wherever it stands in the encoded text. Only the insides of JSON strings change,
//! never keys, numbers or the envelope, so that a message stays the message it was. What a server
//! disguises on purpose is not found: this is against accidents.

mod encodings;

use std::{borrow::Cow, fmt};

use aho_corasick::{AhoCorasick, MatchKind};
use narthex_model::Secret;

use crate::{
    Limits, Message, Raw,
    json::{decode_string, encode_string},
};

/// What stands in the place of a secret.
pub const REDACTED: &str = "[redacted]";
/// Shorter values would be found everywhere.
const BYTES_MIN: usize = 6;
/// Shorter numbers are settings like a port or a limit, whatever their name says.
const DIGITS_MIN: usize = 8;
/// A member that goes back to its server unchanged, and that clients only see sealed.
const OPAQUE: &str = "requestState";

/// Finds the secrets of one server. Finding nothing costs one pass and no copy.
pub struct Redactor {
    finder: Option<AhoCorasick>,
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The automaton would print what it looks for.
        f.debug_struct("Redactor").field("is_empty", &self.is_empty()).finish()
    }
}

impl Redactor {
    /// A redactor for these values. Values shorter than 6 bytes and numbers shorter than 8 digits
    /// are passed over.
    #[must_use]
    pub fn new<'s>(secrets: impl IntoIterator<Item = &'s Secret>) -> Self {
        let mut patterns = Vec::new();
        for value in secrets.into_iter().map(Secret::expose) {
            let lines = value.lines().filter(|_| value.contains('\n')).map(str::trim);
            for part in std::iter::once(value).chain(lines).filter(|part| is_telling(part)) {
                encodings::add(part, &mut patterns);
            }
        }
        patterns.retain(|pattern| pattern.len() >= BYTES_MIN);
        patterns.sort_unstable();
        patterns.dedup();
        if patterns.is_empty() {
            return Self { finder: None };
        }
        let mut builder = AhoCorasick::builder();
        let finder = builder.match_kind(MatchKind::LeftmostLongest).build(&patterns);
        Self { finder: Some(finder.expect("an environment's values fit an automaton")) }
    }

    /// Whether it has nothing to look for.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.finder.is_none()
    }

    /// A text without secrets.
    #[must_use]
    pub fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let Some(finder) = self.finder.as_ref().filter(|finder| finder.is_match(text)) else {
            return Cow::Borrowed(text);
        };
        let mut clean = String::with_capacity(text.len());
        finder.replace_all_with(text, &mut clean, |_, _, clean| {
            clean.push_str(REDACTED);
            true
        });
        Cow::Owned(clean)
    }

    /// Whether a text has a secret in it.
    #[must_use]
    pub fn is_in(&self, text: &[u8]) -> bool {
        self.finder.as_ref().is_some_and(|finder| finder.is_match(text))
    }

    /// How long the longest spelling is that is looked for, in bytes: so much of a text that is cut
    /// may be the beginning of a secret.
    #[must_use]
    pub fn longest(&self) -> usize {
        self.finder.as_ref().map_or(0, AhoCorasick::max_pattern_len)
    }

    /// A JSON value without secrets in its strings; `None` if it has none. Keys stay.
    #[must_use]
    pub fn json(&self, text: &[u8]) -> Option<Vec<u8>> {
        self.finder.as_ref().filter(|finder| finder.is_match(text))?;
        let mut walk = Walk { redactor: self, text, pos: 0, depth: 0, out: Vec::new(), copied: 0 };
        walk.run();
        if walk.out.is_empty() {
            return None;
        }
        walk.out.extend_from_slice(&text[walk.copied..]);
        Some(walk.out)
    }

    /// A message without secrets in its params, result or error; `None` if it has none.
    #[must_use]
    pub fn message(&self, message: &Message) -> Option<Message> {
        let body = message.body_raw().map(Raw::as_bytes)?;
        let clean = self.json(body)?;
        let bytes = message.bytes();
        let start = body.as_ptr().addr() - bytes.as_ptr().addr();
        let all = [&bytes[..start], &clean, &bytes[start + body.len()..]].concat();
        let limits = Limits { message_bytes: all.len() };
        let parsed = Message::parse(all.into(), &limits);
        Some(parsed.expect("only the insides of strings have changed"))
    }
}

/// Whether a value is worth looking for.
fn is_telling(value: &str) -> bool {
    let is_number = value.bytes().all(|b| b.is_ascii_digit());
    value.len() >= if is_number { DIGITS_MIN } else { BYTES_MIN }
}

/// A walk over valid JSON, string by string.
struct Walk<'r, 't> {
    redactor: &'r Redactor,
    text: &'t [u8],
    pos: usize,
    depth: u32,
    /// Empty until the first change.
    out: Vec<u8>,
    /// How much of the text `out` stands for.
    copied: usize,
}

impl Walk<'_, '_> {
    fn run(&mut self) {
        let mut is_opaque = false;
        while let Some(&byte) = self.text.get(self.pos) {
            match byte {
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' => self.depth = self.depth.saturating_sub(1),
                b'"' => {
                    is_opaque = self.take_string(is_opaque);
                    continue;
                }
                _ => {}
            }
            self.pos += 1;
        }
    }

    /// Takes a key or a value; says whether the value that follows is an opaque one.
    fn take_string(&mut self, is_opaque: bool) -> bool {
        let quoted = self.string();
        if self.is_key() {
            return self.depth == 1 && crate::json::key_is(&self.text[quoted], OPAQUE);
        }
        if !is_opaque {
            self.clean(quoted);
        }
        false
    }

    /// Takes one string, and gives it with its quotes.
    fn string(&mut self) -> std::ops::Range<usize> {
        let start = self.pos;
        self.pos += 1;
        while let Some(found) = memchr::memchr2(b'"', b'\\', &self.text[self.pos..]) {
            self.pos += found;
            if self.text[self.pos] == b'"' {
                self.pos += 1;
                return start..self.pos;
            }
            self.pos += 2;
        }
        self.pos = self.text.len();
        start..self.pos
    }

    fn is_key(&self) -> bool {
        let rest = self.text[self.pos..].iter();
        rest.copied().find(|b| !b.is_ascii_whitespace()) == Some(b':')
    }

    fn clean(&mut self, quoted: std::ops::Range<usize>) {
        let Some(decoded) = decode_string(&self.text[quoted.clone()]) else { return };
        let Cow::Owned(clean) = self.redactor.text(&decoded) else { return };
        self.out.extend_from_slice(&self.text[self.copied..quoted.start]);
        self.out.extend_from_slice(&encode_string(&clean));
        self.copied = quoted.end;
    }
}

#[cfg(test)]
mod tests;
