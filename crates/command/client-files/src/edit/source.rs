//! A text with its tree, and the place of an edit: the input of each format's editor.

use std::ops::Range;

use serde_json::Value;

use super::text::{self, Splice};
use super::toml::statement::Statement;
use super::tree::{Node, Walk};

/// A text that was read.
#[derive(Debug, Clone, Default)]
pub(super) struct Parsed {
    /// The value; `None` for a text without one.
    pub(super) root: Option<Node>,
    /// Places of comments, in order.
    pub(super) comments: Vec<Range<usize>>,
    /// Headers and keys with values, for TOML alone.
    pub(super) statements: Vec<Statement>,
}

/// A text and its tree.
pub(super) struct Source<'a> {
    pub(super) text: &'a str,
    pub(super) parsed: &'a Parsed,
    /// The line end of the text.
    pub(super) newline: &'static str,
}

impl<'a> Source<'a> {
    pub(super) fn new(text: &'a str, parsed: &'a Parsed) -> Self {
        Self { text, parsed, newline: text::newline(text) }
    }

    /// The comma of JSON that follows a value, after spaces and comments.
    pub(super) fn comma_after(&self, end: usize) -> Option<usize> {
        let mut at = end;
        loop {
            let rest = &self.text[at..];
            at += rest.len() - rest.trim_start().len();
            match self.comments_in(at..self.text.len()).next() {
                Some(comment) if comment.start == at => at = comment.end,
                Some(_) | None => break,
            }
        }
        self.text[at..].starts_with(',').then_some(at)
    }

    /// Comments that lie in a range.
    pub(super) fn comments_in(
        &self,
        range: Range<usize>,
    ) -> impl Iterator<Item = &'a Range<usize>> {
        let first = self.parsed.comments.partition_point(|comment| comment.start < range.start);
        self.parsed.comments[first..].iter().take_while(move |comment| comment.end <= range.end)
    }
}

/// The map or list in which an edit takes place.
pub(super) struct Place<'a> {
    /// Keys from the root; all of them exist.
    pub(super) path: &'a [String],
    pub(super) walk: Walk<'a>,
}

/// A member or an entry to insert.
pub(super) struct New<'a> {
    /// The key; `None` for an entry of a list.
    pub(super) key: Option<&'a str>,
    pub(super) value: &'a Value,
    /// The text of the member as it was before its removal, if it is put back.
    pub(super) raw: Option<&'a str>,
}

/// The ways to remove a member.
pub(super) struct Removal {
    /// From the most thorough to the most careful one.
    pub(super) ways: Vec<Vec<Splice>>,
    /// The text of the member.
    pub(super) raw: String,
}
