//! Cuts the text of tool results that are longer than a limit (decision D23).
//!
//! Only the insides of strings change: `text` of content and of embedded resources, and strings of
//! structured content. A result within its limits is not touched, and a short one is not even
//! parsed. Only the places of the texts and the shortened copy take memory.
//!
//! Tokens are an estimate by the *quarter rule*: a character counts a quarter of a token if it is
//! ASCII, a half if UTF-8 gives it two bytes, a whole one with three bytes, and two with four. The
//! sum is rounded up. The rule needs no vocabulary and is the same for every model. Unlike a count
//! of letters or of bytes alone, it does not take texts in other scripts for short ones.

mod measure;
mod structured;

use std::num::NonZeroU64;

use narthex_model::OutputLimits;

use self::measure::{Reading, Size, size_of};
use crate::{
    Limits, Message, MessageKind,
    json::{Member, Scanner, Span, key_is},
    method,
};

/// The replacement for a text of which nothing is left. Some readers refuse empty texts.
const NOTHING: &str = "…";
/// The most quarters that a byte of JSON is worth: a short result needs no count.
const QUARTERS_PER_BYTE: u64 = 2;

/// A shortened result.
#[derive(Debug)]
pub struct CutResult {
    /// The message after cutting.
    pub message: Message,
    /// The summary of the cut parts, as in the marker.
    pub summary: String,
}

/// The limit that a result exceeds most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Excess {
    Tokens,
    Bytes,
}

/// A replacement for a part of the message.
#[derive(Debug)]
struct Edit {
    span: Span,
    text: Vec<u8>,
}

/// Number of tokens of a JSON text, such as a definition, by the quarter rule.
#[must_use]
pub fn estimated_tokens(json: &[u8]) -> u64 {
    size_of(json, Reading::Json).tokens()
}

/// Shortens the answer to `method` if it is the result of a tool and longer than the limits. `None`
/// if the answer fits, or is no such result.
///
/// Texts are kept from the first on, until a limit is reached. Structured content, which repeats
/// the text in most results, has the same limits on its own.
#[must_use]
pub fn cut_result(method: &str, message: &Message, limits: &OutputLimits) -> Option<CutResult> {
    if message.kind() != MessageKind::Result || is_surely_short(message, limits) {
        return None;
    }
    let text = message.bytes();
    let result = match method {
        method::TOOLS_CALL | method::TASKS_RESULT => message.body()?.members.to_vec(),
        // The result of a task that has ended.
        method::TASKS_GET => {
            let body = message.body()?;
            members(text, body.get(text, "result")?)
        }
        _ => return None,
    };
    let mut edits = Vec::new();
    let mut summary = None;
    for member in &result {
        let key = member.key.of(text);
        let cut = if key_is(key, "content") {
            cut_texts(text, member.value, limits, &mut edits)
        } else if key_is(key, "structuredContent") {
            structured::cut(text, member.value, limits, &mut edits)
        } else {
            None
        };
        summary = summary.or(cut);
    }
    let summary = summary?;
    edits.sort_unstable_by_key(|edit| edit.span.start);
    Some(CutResult { message: edited(text, &edits), summary })
}

fn is_surely_short(message: &Message, limits: &OutputLimits) -> bool {
    let bytes = message.bytes().len() as u64;
    let fits = |limit: Option<NonZeroU64>, most: u64| limit.is_none_or(|limit| most <= limit.get());
    fits(limits.tokens, (bytes * QUARTERS_PER_BYTE).div_ceil(4)) && fits(limits.bytes, bytes)
}

/// The members of an object at a place of a valid text, also those whose key is given twice.
fn members(text: &[u8], object: Span) -> Vec<Member> {
    let mut members = Vec::new();
    let scanned = scanner(text, object).object_with(|scanner, key| {
        members.push(Member { key, value: scanner.value()? });
        Ok(())
    });
    if scanned.is_err() { Vec::new() } else { members }
}

fn scanner(text: &[u8], from: Span) -> Scanner<'_> {
    // This text was already validated from the outermost level on.
    Scanner::new(text, from.start as usize, 0)
}

/// The spans of the texts of `content`, in their order. The type that a content declares does not
/// matter: a model will read any string under `text`.
fn texts(text: &[u8], content: Span) -> Vec<Span> {
    let mut found = Vec::new();
    let scanned = scanner(text, content).array(|item| {
        for member in members(text, item) {
            let key = member.key.of(text);
            if key_is(key, "text") {
                found.push(member.value);
            } else if key_is(key, "resource") {
                let inner = members(text, member.value).into_iter();
                let inner = inner.filter(|inner| key_is(inner.key.of(text), "text"));
                found.extend(inner.map(|inner| inner.value));
            }
        }
    });
    found.retain(|value| text[value.start as usize] == b'"');
    if scanned.is_err() { Vec::new() } else { found }
}

/// Cuts the texts of content behind the limit; gives the words of the marker if there was one.
fn cut_texts(
    text: &[u8],
    content: Span,
    limits: &OutputLimits,
    edits: &mut Vec<Edit>,
) -> Option<String> {
    let texts = texts(text, content);
    let inside = |span: &Span| span.range().start + 1..span.range().end - 1;
    let sizes = texts.iter().map(|span| size_of(&text[inside(span)], Reading::Text));
    let whole: Size = sizes.sum();
    let excess = Excess::of(whole, limits)?;
    let mut left = Size::most(limits);
    let mut marker = None;
    for span in &texts {
        let inner = &text[inside(span)];
        if marker.is_some() {
            if inner.len() > NOTHING.len() {
                edits.push(Edit { span: *span, text: quoted(b"", NOTHING) });
            }
            continue;
        }
        let (kept, size) = measure::prefix(inner, left, Reading::Text);
        left = left.minus(size);
        if kept < inner.len() {
            let words = excess.words(Size::most(limits).minus(left), whole);
            let text = quoted(&inner[..kept], &format!("{NOTHING} [{words}]"));
            edits.push(Edit { span: *span, text });
            marker = Some(words);
        }
    }
    marker
}

/// A JSON string of a raw inside and a text that needs no escapes.
fn quoted(inner: &[u8], end: &str) -> Vec<u8> {
    [b"\"", inner, end.as_bytes(), b"\""].concat()
}

impl Excess {
    /// Returns the limit that cuts more; `None` if both hold.
    fn of(whole: Size, limits: &OutputLimits) -> Option<Self> {
        let share = |limit: Option<NonZeroU64>, size: u64| {
            limit.filter(|limit| size > limit.get()).map(|limit| (size, limit.get()))
        };
        let tokens = share(limits.tokens, whole.tokens());
        let bytes = share(limits.bytes, whole.bytes);
        match (tokens, bytes) {
            (None, None) => None,
            (Some(_), None) => Some(Self::Tokens),
            (None, Some(_)) => Some(Self::Bytes),
            (Some((tokens, tokens_max)), Some((bytes, bytes_max))) => {
                let [tokens, tokens_max] = [tokens, tokens_max].map(u128::from);
                let [bytes, bytes_max] = [bytes, bytes_max].map(u128::from);
                let cuts_more_tokens = tokens * bytes_max >= bytes * tokens_max;
                Some(if cuts_more_tokens { Self::Tokens } else { Self::Bytes })
            }
        }
    }

    fn words(self, shown: Size, whole: Size) -> String {
        let (shown, whole, unit, key) = match self {
            Self::Tokens => (shown.tokens(), whole.tokens(), "tokens", "maxOutputTokens"),
            Self::Bytes => (shown.bytes, whole.bytes, "bytes", "maxOutputBytes"),
        };
        let (shown, whole) = (grouped(shown), grouped(whole));
        format!("cut by narthex: {shown} of {whole} {unit} shown; limit {key}")
    }
}

/// A number with commas between thousands.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// The message with its replacements, which are in order and apart.
fn edited(text: &[u8], edits: &[Edit]) -> Message {
    let mut out = Vec::new();
    let mut from = 0;
    for edit in edits {
        out.extend_from_slice(&text[from..edit.span.range().start]);
        out.extend_from_slice(&edit.text);
        from = edit.span.range().end;
    }
    out.extend_from_slice(&text[from..]);
    let limits = Limits { message_bytes: out.len() };
    let parsed = Message::parse(out.into(), &limits);
    parsed.expect("only whole values have changed, and into valid ones")
}

#[cfg(test)]
mod tests;
