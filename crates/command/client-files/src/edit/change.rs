//! Records of edits, by which they are undone.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::format::Format;
use super::parent::Parent;
use super::text::{Splice, apply, reverse};

/// Number of bytes around a splice that are stored, to find its place again.
const CONTEXT: usize = 40;
/// Number of bytes around a splice that must be there at least.
const CONTEXT_LEAST: usize = 16;

/// An edit that was made: [`Document::undo`](super::Document::undo) takes it back.
///
/// It can be stored with serde. It has parts of the file in it, which may be secrets: store it as
/// privately as the file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Change {
    pub(super) entry: Entry,
    pub(super) what: What,
    /// The splices that undo the edit, with places in the edited text.
    back: Vec<Splice>,
    /// The text before and after each of them.
    around: Vec<(String, String)>,
    /// Hash of the edited text, in hexadecimal.
    seal: String,
}

/// The entry that an edit concerns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Entry {
    pub(super) format: Format,
    pub(super) parent: Parent,
    pub(super) name: String,
}

/// The kind of an edit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(super) enum What {
    Inserted {
        value: Value,
        /// Number of parents that were created.
        created: usize,
        /// True if the text had no value before.
        is_new_root: bool,
    },
    Removed {
        value: Value,
        raw: String,
        /// The name of the member behind it.
        #[serde(default)]
        next: Option<String>,
        /// True for a last member of JSON with a comma behind it.
        #[serde(default)]
        has_last_comma: bool,
    },
    Replaced {
        old: Value,
        new: Value,
    },
}

impl Change {
    /// The record of splices that led to a text.
    pub(super) fn new(entry: Entry, what: What, text: &str, splices: &[Splice]) -> Self {
        let back = reverse(splices);
        let around = back.iter().map(|splice| {
            let (start, end) = (splice.at, splice.range().end);
            let before = text.floor_char_boundary(start.saturating_sub(CONTEXT));
            let after = text.floor_char_boundary(end.saturating_add(CONTEXT).min(text.len()));
            (text[before..start].to_owned(), text[end..after.max(end)].to_owned())
        });
        let around = around.collect();
        Self { entry, what, back, around, seal: seal(text) }
    }

    /// The format of the edited text.
    #[must_use]
    pub fn format(&self) -> Format {
        self.entry.format
    }

    /// The parent of the edited entry.
    #[must_use]
    pub fn parent(&self) -> &Parent {
        &self.entry.parent
    }

    /// The name of the edited entry.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.entry.name
    }

    /// True if the edit added the entry.
    #[must_use]
    pub fn is_insertion(&self) -> bool {
        matches!(self.what, What::Inserted { .. })
    }

    /// True if a text stands in what the edit wrote or removed.
    pub(super) fn has_text(&self, text: &str) -> bool {
        let mut splices = self.back.iter();
        splices.any(|splice| splice.removed.contains(text) || splice.inserted.contains(text))
    }

    /// True for a comment that stood directly before the place of the edit.
    pub(super) fn follows(&self, comment: &str) -> bool {
        let before = self.around.first().map_or("", |(before, _)| before.trim_end());
        let comment = comment.trim_end();
        // A long comment is stored in part.
        let is_part = before.len() >= CONTEXT_LEAST && comment.ends_with(before);
        !comment.is_empty() && (before.ends_with(comment) || is_part)
    }

    /// The text before the edit, if this is the text after it.
    pub(super) fn exact(&self, text: &str) -> Option<String> {
        if self.seal == seal(text) { apply(text, &self.back) } else { None }
    }

    /// The text without the edit, if the surroundings of each splice are found exactly once.
    pub(super) fn relocated(&self, text: &str) -> Option<String> {
        self.relocated_by(text, CONTEXT).or_else(|| self.relocated_by(text, CONTEXT_LEAST))
    }

    fn relocated_by(&self, text: &str, context: usize) -> Option<String> {
        let mut splices = Vec::new();
        for (splice, (before, after)) in self.back.iter().zip(&self.around) {
            let skipped = before.ceil_char_boundary(before.len().saturating_sub(context));
            let (before, after) =
                (&before[skipped..], &after[..after.floor_char_boundary(context)]);
            let whole = format!("{before}{}{after}", splice.removed);
            let at = text.find(&whole).filter(|_| !whole.is_empty())?;
            // A second place may overlap the first one.
            let next = at + whole.chars().next().map_or(1, char::len_utf8);
            if text[next..].contains(&whole) {
                return None;
            }
            splices.push(Splice { at: at + before.len(), ..splice.clone() });
        }
        let is_ordered = splices.is_sorted_by(|one, two| one.range().end <= two.at);
        if is_ordered { apply(text, &splices) } else { None }
    }
}

/// Hash that equal texts share and edited ones do not.
fn seal(text: &str) -> String {
    hex::encode(Sha256::digest(text))
}
