//! Takes known secret values out of texts and messages on their way to people, logs and models.
//!
//! A value is found as it is, escaped as in JSON (also JSON inside a JSON string), percent-encoded,
//! and in base64 wherever it stands in the encoded text. In JSON it is found in strings, in keys
//! but for those of the protocol, and as a number. The envelope and the values that find a
//! message's way never change, so that a message stays the message it was. What a server disguises
//! on purpose is not found: this is against accidents.

mod encodings;
mod keys;

use std::{
    borrow::Cow,
    fmt,
    hash::{BuildHasher, RandomState},
    ops::Range,
};

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
/// Members by which a message finds its way, and which are numbers for every reader.
const NUMBERS: [&str; 3] = ["progressToken", "requestId", "code"];

/// Finds the secrets of one server. Finding nothing costs one pass and no copy.
pub struct Redactor {
    finder: Option<AhoCorasick>,
    /// The secrets that a JSON number can be.
    numbers: Vec<f64>,
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
        let (mut patterns, mut numbers) = (Vec::new(), Vec::new());
        for value in secrets.into_iter().map(Secret::expose) {
            let lines = value.lines().filter(|_| value.contains('\n')).map(str::trim);
            for part in std::iter::once(value).chain(lines).filter(|part| is_telling(part)) {
                encodings::add(part, &mut patterns);
                numbers.extend(telling_number(part));
            }
        }
        patterns.retain(|pattern| pattern.len() >= BYTES_MIN);
        patterns.sort_unstable();
        patterns.dedup();
        if patterns.is_empty() {
            return Self { finder: None, numbers };
        }
        let mut builder = AhoCorasick::builder();
        let finder = builder.match_kind(MatchKind::LeftmostLongest).build(&patterns);
        Self { finder: Some(finder.expect("an environment's values fit an automaton")), numbers }
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

    /// A JSON value without secrets in its strings, keys and numbers; `None` if it has none. A
    /// number that is a secret becomes a string.
    #[must_use]
    pub fn json(&self, text: &[u8]) -> Option<Vec<u8>> {
        self.clean_json(text, REDACTED)
    }

    fn clean_json(&self, text: &[u8], key: &str) -> Option<Vec<u8>> {
        let finder = self.finder.as_ref()?;
        if self.numbers.is_empty() && !finder.is_match(text) {
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

    /// A message without secrets in its params, result or error; `None` if it has none.
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
            // The server has a key of its own that is as ours is; none is as a random one.
            let key = format!("{REDACTED} {:016x}", RandomState::new().hash_one(start));
            let parsed = parsed(self.clean_json(body, &key)?);
            Some(parsed.expect("only keys, numbers and the insides of strings have changed"))
        })
    }

    /// Whether a number is a secret, however it is written.
    fn is_secret(&self, number: &[u8]) -> bool {
        let number = std::str::from_utf8(number).ok().and_then(|text| text.parse::<f64>().ok());
        // The nearest one that a reader of JSON has is the same.
        number.is_some_and(|number| self.numbers.contains(&number.abs()))
    }
}

/// Whether a secret of this value is kept out of texts: a shorter one would be found everywhere.
#[must_use]
pub fn is_redactable(value: &Secret) -> bool {
    is_telling(value.expose())
}

/// Whether a value is worth looking for.
fn is_telling(value: &str) -> bool {
    let is_number = value.bytes().all(|b| b.is_ascii_digit());
    value.len() >= if is_number { DIGITS_MIN } else { BYTES_MIN }
}

/// The number that a value is, if it has digits enough to be told from a setting.
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
    /// What stands in the place of a key; further ones get a number.
    key: &'r str,
    /// How many keys were secrets.
    keys: usize,
    pos: usize,
    depth: u32,
    /// The key at the first level whose value comes next.
    member: Option<Range<usize>>,
    /// Empty until the first change.
    out: Vec<u8>,
    /// How much of the text `out` stands for.
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

    /// Whether what was taken last is the value of one of these members.
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

    /// Replaces a whole key: what is left of it would say where the secret began.
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
            // Half a character stands in it, so that it is no text of which a part can be replaced.
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
