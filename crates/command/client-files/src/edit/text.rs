//! Splices of a text, and its lines.

use std::ops::Range;

use serde::{Deserialize, Serialize};

/// The replacement of a part of a text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Splice {
    /// Place of the part, in bytes.
    pub(super) at: usize,
    pub(super) removed: String,
    pub(super) inserted: String,
}

impl Splice {
    pub(super) fn insert(at: usize, inserted: impl Into<String>) -> Self {
        Self { at, removed: String::new(), inserted: inserted.into() }
    }

    pub(super) fn delete(text: &str, range: Range<usize>) -> Self {
        Self::swap(text, range, String::new())
    }

    pub(super) fn swap(text: &str, range: Range<usize>, inserted: impl Into<String>) -> Self {
        let removed = text[range.clone()].to_owned();
        Self { at: range.start, removed, inserted: inserted.into() }
    }

    /// The bytes that are replaced.
    pub(super) fn range(&self) -> Range<usize> {
        self.at..self.at + self.removed.len()
    }
}

/// The text with all splices done, which are in order and do not overlap. `None` if the text does
/// not have the replaced parts.
pub(super) fn apply(text: &str, splices: &[Splice]) -> Option<String> {
    let (mut new, mut from) = (String::with_capacity(text.len()), 0);
    for splice in splices {
        let range = splice.range();
        if text.get(range.clone())? != splice.removed {
            return None;
        }
        new.push_str(text.get(from..range.start)?);
        new.push_str(&splice.inserted);
        from = range.end;
    }
    new.push_str(&text[from..]);
    Some(new)
}

/// The splices that lead back, with their places in the new text.
pub(super) fn reverse(splices: &[Splice]) -> Vec<Splice> {
    let (mut back, mut removed, mut inserted) = (Vec::new(), 0, 0);
    for splice in splices {
        back.push(Splice {
            at: splice.at + inserted - removed,
            removed: splice.inserted.clone(),
            inserted: splice.removed.clone(),
        });
        removed += splice.removed.len();
        inserted += splice.inserted.len();
    }
    back
}

/// The line end that the text uses: the first one in it.
pub(super) fn newline(text: &str) -> &'static str {
    match text.find('\n') {
        Some(at) if text[..at].ends_with('\r') => "\r\n",
        Some(_) | None => "\n",
    }
}

/// Start of the line of a place.
pub(super) fn line_start(text: &str, at: usize) -> usize {
    text[..at].rfind('\n').map_or(0, |newline| newline + 1)
}

/// End of the line of a place, before its line end.
pub(super) fn line_end(text: &str, at: usize) -> usize {
    let Some(newline) = text[at..].find('\n') else { return text.len() };
    let end = at + newline;
    if end > at && text[..end].ends_with('\r') { end - 1 } else { end }
}

/// Start of the line after a place; the end of the text if there is none.
pub(super) fn next_line(text: &str, at: usize) -> usize {
    text[at..].find('\n').map_or(text.len(), |newline| at + newline + 1)
}

/// End of the line before the one that begins at `start`, before its line end.
pub(super) fn previous_end(text: &str, start: usize) -> usize {
    let Some(before) = text[..start].strip_suffix('\n') else { return start };
    before.strip_suffix('\r').unwrap_or(before).len()
}

/// Spaces and tabs at the start of the line of a place.
pub(super) fn line_indent(text: &str, at: usize) -> &str {
    let line = &text[line_start(text, at)..];
    &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]
}

/// True if only spaces and tabs stand before a place in its line.
pub(super) fn starts_line(text: &str, at: usize) -> bool {
    is_blank(&text[line_start(text, at)..at])
}

/// True for a text of spaces and tabs.
pub(super) fn is_blank(text: &str) -> bool {
    text.chars().all(|c| matches!(c, ' ' | '\t'))
}

/// True for a text of spaces, tabs and line ends.
pub(super) fn is_space(text: &str) -> bool {
    text.chars().all(|c| matches!(c, ' ' | '\t' | '\r' | '\n'))
}

/// Line and column of a place, both from 1; the column counts characters.
pub(super) fn position(text: &str, at: usize) -> (usize, usize) {
    let at = text.floor_char_boundary(at);
    let line = text[..at].matches('\n').count() + 1;
    (line, text[line_start(text, at)..at].chars().count() + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splices_lead_there_and_back() {
        let text = "one two three";
        let splices = [Splice::swap(text, 0..3, "1"), Splice::delete(text, 3..7)];
        let new = apply(text, &splices).unwrap();
        assert_eq!(new, "1 three");
        assert_eq!(apply(&new, &reverse(&splices)).unwrap(), text);
        assert_eq!(apply("another text", &splices), None);
    }

    #[test]
    fn lines_end_with_either_line_end() {
        let text = "a\r\n  b\r\n\nc";
        assert_eq!(newline(text), "\r\n");
        assert_eq!((line_start(text, 6), line_end(text, 5), next_line(text, 5)), (3, 6, 8));
        assert_eq!((previous_end(text, 3), line_indent(text, 5)), (1, "  "));
        assert_eq!((line_end(text, 8), line_end(text, 9)), (8, 10));
        assert_eq!(position(text, 5), (2, 3));
        assert_eq!(position("ä", 1), (1, 1));
    }
}
