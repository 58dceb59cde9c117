//! Shortens structured content: its longest strings get shorter, its form stays.
//!
//! Clients check structured content against the tool's schema, so members, numbers and short
//! strings (names, kinds, ids) stay. If these alone are too long, the marker replaces all of the
//! content.

use narthex_model::OutputLimits;

use super::{
    Edit, Excess, NOTHING,
    measure::{Reading, Size, prefix, size_of},
    quoted,
};
use crate::json::{Span, encode_string};

/// Cuts the strings of structured content; gives the words of the marker if it was too long.
pub(super) fn cut(
    text: &[u8],
    content: Span,
    limits: &OutputLimits,
    edits: &mut Vec<Edit>,
) -> Option<String> {
    let whole = size_of(content.of(text), Reading::Json);
    let excess = Excess::of(whole, limits)?;
    let most = Size::most(limits);
    let strings = values(text, content);
    let sizes: Vec<Size> =
        strings.iter().map(|inner| size_of(inner.of(text), Reading::Json)).collect();
    let form = whole.minus(sizes.iter().copied().sum());
    let each = most.minus(form);
    let each = Size {
        quarters: level(sizes.iter().map(|size| size.quarters), each.quarters),
        bytes: level(sizes.iter().map(|size| size.bytes), each.bytes),
    };
    if !form.fits(most) || (each.quarters == 0 || each.bytes == 0) {
        let words = excess.words(Size::default(), whole);
        let marker = encode_string(&format!("{NOTHING} [{words}]"));
        let text = [br#"{"narthex":"#, &marker[..], b"}"].concat();
        edits.push(Edit { span: content, text });
        return Some(words);
    }
    let cut = strings.iter().zip(&sizes).filter(|(_, size)| !size.fits(each));
    let cut: Vec<_> =
        cut.map(|(span, _)| (*span, prefix(span.of(text), each, Reading::Json))).collect();
    let kept = sizes.iter().filter(|size| size.fits(each)).copied();
    let shown = form.plus(kept.chain(cut.iter().map(|(_, (_, size))| *size)).sum());
    let words = excess.words(shown, whole);
    for (index, (span, (length, _))) in cut.iter().enumerate() {
        let end = if index == 0 { format!("{NOTHING} [{words}]") } else { NOTHING.to_owned() };
        let with_quotes = Span { start: span.start - 1, end: span.end + 1 };
        let text = quoted(&span.of(text)[..*length], &end);
        edits.push(Edit { span: with_quotes, text });
    }
    Some(words)
}

/// The length to which the longest must be cut so that all together have at most `room`.
fn level(lengths: impl Iterator<Item = u64>, room: u64) -> u64 {
    let mut lengths: Vec<u64> = lengths.collect();
    lengths.sort_unstable();
    let mut left = room;
    for (index, length) in lengths.iter().enumerate() {
        let share = left / (lengths.len() - index) as u64;
        if *length > share {
            return share;
        }
        left -= length;
    }
    u64::MAX
}

/// The insides of all strings of a value that are no keys.
fn values(text: &[u8], value: Span) -> Vec<Span> {
    let mut found = Vec::new();
    let range = value.range();
    let mut at = range.start;
    while let Some(next) = memchr::memchr(b'"', &text[at..range.end]) {
        let start = at + next + 1;
        let end = closing_quote(text, start);
        at = end + 1;
        let mut rest = text[at..range.end].iter();
        if rest.find(|byte| !byte.is_ascii_whitespace()) != Some(&b':') {
            let cut = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
            found.push(Span { start: cut(start), end: cut(end) });
        }
    }
    found
}

/// The end of the string that begins before `at`.
fn closing_quote(text: &[u8], mut at: usize) -> usize {
    while let Some(found) = memchr::memchr2(b'"', b'\\', &text[at..]) {
        at += found;
        if text[at] == b'"' {
            return at;
        }
        at += 2;
    }
    text.len()
}
