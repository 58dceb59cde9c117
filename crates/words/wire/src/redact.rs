//! Removes known secret values from texts and messages for people, logs and models.
//!
//! A value is found verbatim; escaped as in JSON, HTML, XML and URLs, also by two of these in turn;
//! in base64 at any place of the encoded text, also broken into lines; and as hexadecimal digits.
//! In JSON a value is found in strings, in numbers, and in keys that are not the protocol's. The
//! envelope and the values that route a message never change. A value that a server disguises on
//! purpose is not found: redaction is against accidents.

mod encodings;
mod keys;
mod sought;

use std::{
    borrow::Cow,
    collections::HashSet,
    fmt,
    hash::{BuildHasher, RandomState},
    ops::Range,
};

use aho_corasick::{AhoCorasick, Input, MatchKind};
use narthex_model::Secret;

use crate::{
    Limits, Message, Raw,
    json::{decode_string, encode_string},
};

/// The replacement for a secret.
pub const REDACTED: &str = "[redacted]";
/// Shorter values would be found everywhere.
const BYTES_MIN: usize = 6;
/// Shorter numbers are settings like a port or a limit, under any name.
const DIGITS_MIN: usize = 8;
/// A member that goes back to its server unchanged, and that clients only see sealed.
const OPAQUE: &str = "requestState";
/// Members by which a message finds its way, and which are numbers for every reader.
const NUMBERS: [&str; 3] = ["progressToken", "requestId", "code"];

/// Finds the secrets of one server. A text without secrets costs one pass and no copy.
pub struct Redactor {
    /// Finds places where a sought text may be.
    finder: Option<AhoCorasick>,
    all: sought::All,
    longest: usize,
    /// The secrets that can be written as a JSON number.
    numbers: Vec<f64>,
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The automaton would print the secrets.
        f.debug_struct("Redactor").field("is_empty", &self.is_empty()).finish()
    }
}

impl Redactor {
    /// A redactor for these values. Values shorter than 6 bytes and numbers shorter than 8 digits
    /// are skipped.
    #[must_use]
    pub fn new<'s>(secrets: impl IntoIterator<Item = &'s Secret>) -> Self {
        let (mut all, mut numbers) = (sought::All::default(), Vec::new());
        let mut known = HashSet::new();
        for value in secrets.into_iter().map(Secret::expose) {
            let lines = value.lines().filter(|_| value.contains('\n')).map(str::trim);
            for part in std::iter::once(value).chain(lines).filter(|part| is_telling(part)) {
                if known.insert(part) {
                    all.add(part);
                    numbers.extend(telling_number(part));
                }
            }
        }
        let longest = all.longest();
        let patterns = all.patterns();
        let finder = (!patterns.is_empty()).then(|| {
            let mut builder = AhoCorasick::builder();
            let finder = builder.match_kind(MatchKind::LeftmostFirst).build(&patterns);
            finder.expect("an environment's values fit an automaton")
        });
        Self { finder, all, longest, numbers }
    }

    /// True if there is no secret to look for.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.finder.is_none()
    }

    /// The text, with each secret replaced by [`REDACTED`].
    #[must_use]
    pub fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let found = self.found(text.as_bytes());
        if found.is_empty() {
            return Cow::Borrowed(text);
        }
        let (mut clean, mut copied) = (String::with_capacity(text.len()), 0);
        for range in found {
            clean.push_str(&text[copied..range.start]);
            clean.push_str(REDACTED);
            copied = range.end;
        }
        clean.push_str(&text[copied..]);
        Cow::Owned(clean)
    }

    /// The ranges of the secrets in `text`, in order and apart.
    fn found(&self, text: &[u8]) -> Vec<Range<usize>> {
        let mut found = Vec::new();
        let mut from = 0;
        while let Some(start) = self.next(text, from) {
            self.all.around(text, start, &mut found);
            from = start + 1;
        }
        found.sort_unstable_by_key(|(_, range)| (range.start, range.end));
        let mut apart: Vec<Range<usize>> = Vec::with_capacity(found.len());
        for (_, range) in found {
            match apart.last_mut() {
                Some(last) if range.start < last.end => last.end = last.end.max(range.end),
                _ => apart.push(range),
            }
        }
        apart
    }

    /// The start of the next possible secret.
    fn next(&self, text: &[u8], from: usize) -> Option<usize> {
        let input = Input::new(text).span(from..text.len());
        self.finder.as_ref()?.find(input).map(|found| found.start())
    }

    /// True if the text contains a secret.
    #[must_use]
    pub fn is_in(&self, text: &[u8]) -> bool {
        let (mut found, mut from) = (Vec::new(), 0);
        while let Some(start) = self.next(text, from) {
            self.all.around(text, start, &mut found);
            if !found.is_empty() {
                return true;
            }
            from = start + 1;
        }
        false
    }

    /// Length of the longest sought spelling in bytes. The last bytes of a shortened text, up to
    /// this number, may be the beginning of a secret.
    #[must_use]
    pub fn longest(&self) -> usize {
        self.longest
    }

    /// The JSON value, with secrets replaced in its strings, keys and numbers; `None` if it
    /// contains no secret. A number that is a secret becomes a string.
    #[must_use]
    pub fn json(&self, text: &[u8]) -> Option<Vec<u8>> {
        self.clean_json(text, REDACTED)
    }

    fn clean_json(&self, text: &[u8], key: &str) -> Option<Vec<u8>> {
        let finder = self.finder.as_ref()?;
        let is_seen_outside = self.numbers.is_empty() && !self.all.has_listed();
        if is_seen_outside && !finder.is_match(text) {
            return None;
        }
        let mut walk = Walk {
            redactor: self,
            text,
            key,
            keys: 0,
            pos: 0,
            depth: 0,
            member: None,
            out: Vec::new(),
            copied: 0,
        };
        walk.run();
        if walk.out.is_empty() {
            return None;
        }
        walk.out.extend_from_slice(&text[walk.copied..]);
        Some(walk.out)
    }

    /// The message, with secrets replaced in its params, result or error; `None` if it contains no
    /// secret.
    #[must_use]
    pub fn message(&self, message: &Message) -> Option<Message> {
        let body = message.body_raw().map(Raw::as_bytes)?;
        let bytes = message.bytes();
        let start = body.as_ptr().addr() - bytes.as_ptr().addr();
        let parsed = |clean: Vec<u8>| {
            let all = [&bytes[..start], &clean, &bytes[start + body.len()..]].concat();
            let limits = Limits { message_bytes: all.len() };
            Message::parse(all.into(), &limits)
        };
        parsed(self.json(body)?).ok().or_else(|| {
            // The server already uses this key, so a random key follows.
            let key = format!("{REDACTED} {:016x}", RandomState::new().hash_one(start));
            let parsed = parsed(self.clean_json(body, &key)?);
            Some(parsed.expect("only keys, numbers and the insides of strings have changed"))
        })
    }

    /// True if a number is a secret, in any spelling.
    fn is_secret(&self, number: &[u8]) -> bool {
        let number = std::str::from_utf8(number).ok().and_then(|text| text.parse::<f64>().ok());
        // Readers round both numbers to the same double.
        number.is_some_and(|number| self.numbers.contains(&number.abs()))
    }
}

/// True if this secret is long enough for redaction: shorter values would be found everywhere.
#[must_use]
pub fn is_redactable(value: &Secret) -> bool {
    is_telling(value.expose())
}

/// True if a value is worth looking for.
fn is_telling(value: &str) -> bool {
    let is_number = value.bytes().all(|b| b.is_ascii_digit());
    value.len() >= if is_number { DIGITS_MIN } else { BYTES_MIN }
}

/// The number that a value is, if it has digits enough to differ from a setting.
fn telling_number(value: &str) -> Option<f64> {
    let is_decimal = |b: u8| b.is_ascii_digit() || b == b'.';
    let digits = value.trim_start_matches(['0', '.']).bytes().filter(u8::is_ascii_digit).count();
    let number = value.bytes().all(is_decimal).then(|| value.parse::<f64>().ok())??;
    (digits >= DIGITS_MIN && number.is_finite()).then_some(number)
}

/// A walk over valid JSON, string by string.
struct Walk<'r, 't> {
    redactor: &'r Redactor,
    text: &'t [u8],
    /// The replacement for a key; further keys get a number.
    key: &'r str,
    /// Number of keys that were secrets.
    keys: usize,
    pos: usize,
    depth: u32,
    /// The key at the first level whose value is read next.
    member: Option<Range<usize>>,
    /// The output; empty until the first change.
    out: Vec<u8>,
    /// Length of the part of the text that `out` already covers.
    copied: usize,
}

impl Walk<'_, '_> {
    fn run(&mut self) {
        while let Some(&byte) = self.text.get(self.pos) {
            match byte {
                b'{' | b'[' => {
                    self.depth += 1;
                    self.member = None;
                }
                b'}' | b']' => self.depth = self.depth.saturating_sub(1),
                b'"' => {
                    self.take_string();
                    continue;
                }
                b'-' | b'0'..=b'9' => {
                    self.take_number();
                    continue;
                }
                _ => {}
            }
            self.pos += 1;
        }
    }

    /// Takes a key or a value.
    fn take_string(&mut self) {
        let quoted = self.string();
        if self.is_key() {
            self.member = (self.depth == 1).then(|| quoted.clone());
            self.clean_key(quoted);
        } else if !self.is_value_of(&[OPAQUE])
            && let Some(clean) = self.cleaned(&quoted)
        {
            self.replace(quoted, &clean);
        }
    }

    /// True if the last taken value belongs to one of these members.
    fn is_value_of(&mut self, names: &[&str]) -> bool {
        let Some(member) = self.member.take() else { return false };
        names.iter().any(|name| crate::json::key_is(&self.text[member.clone()], name))
    }

    /// Takes one string, and gives it with its quotes.
    fn string(&mut self) -> Range<usize> {
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

    fn take_number(&mut self) {
        let start = self.pos;
        let rest = self.text[start..].iter();
        let is_of_number = |b: &&u8| matches!(b, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E');
        self.pos += rest.take_while(is_of_number).count();
        let is_secret = self.redactor.is_secret(&self.text[start..self.pos]);
        if !self.is_value_of(&NUMBERS) && is_secret {
            self.replace(start..self.pos, REDACTED);
        }
    }

    fn is_key(&self) -> bool {
        let rest = self.text[self.pos..].iter();
        rest.copied().find(|b| !b.is_ascii_whitespace()) == Some(b':')
    }

    /// Replaces a whole key: the rest of it would show where the secret began.
    fn clean_key(&mut self, quoted: Range<usize>) {
        let is_known =
            decode_string(&self.text[quoted.clone()]).is_some_and(|key| keys::is_known(&key));
        if is_known || self.cleaned(&quoted).is_none() {
            return;
        }
        self.keys += 1;
        let key = match self.keys {
            1 => self.key.to_owned(),
            number => format!("{} {number}", self.key),
        };
        self.replace(quoted, &key);
    }

    /// A string without secrets; `None` if it has none.
    fn cleaned(&self, quoted: &Range<usize>) -> Option<String> {
        let raw = &self.text[quoted.clone()];
        match decode_string(raw) {
            Some(decoded) => match self.redactor.text(&decoded) {
                Cow::Owned(clean) => Some(clean),
                Cow::Borrowed(_) => None,
            },
            // Half a character is in it, so that it is no text of which a part can be replaced.
            None => self.redactor.is_in(raw).then(|| REDACTED.to_owned()),
        }
    }

    fn replace(&mut self, range: Range<usize>, with: &str) {
        self.out.extend_from_slice(&self.text[self.copied..range.start]);
        self.out.extend_from_slice(&encode_string(with));
        self.copied = range.end;
    }
}

#[cfg(test)]
mod tests;
