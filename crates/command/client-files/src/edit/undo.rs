//! Undoing of edits, also after other edits of the file.

use std::ops::Range;

use serde_json::Value;

use super::change::{Change, Entry, What};
use super::document::Document;
use super::error::EditError;
use super::expect;
use super::fault::Fault;
use super::format::Format;
use super::parent::Parent;
use super::source::Source;
use super::text;
use super::tree::{Node, walk};

/// The outcome of an undo.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Undone {
    /// The edit is undone.
    Done,
    /// Others have undone the edit already, so nothing is changed.
    Already,
    /// Others have changed the entry since, so it is left as it is.
    Changed,
}

impl Document {
    /// Undoes an edit. If the text is the edited one, the result is the text before, byte for
    /// byte. Otherwise only the entry is taken back, and what others have written stays.
    ///
    /// # Errors
    /// [`EditError::Unsupported`] when the change is of a file in another format, and those of
    /// [`Document::insert`] and [`Document::remove`]. The document is then unchanged. JSON with and
    /// without comments is one format here: others may have added comments since.
    pub fn undo(&mut self, change: &Change) -> Result<Undone, EditError> {
        if change.entry.format != self.format
            && !(change.entry.format.is_json() && self.format.is_json())
        {
            let reason = format!("the change is of a {} file", change.entry.format);
            return Err(self.unsupported(Fault::new(0, reason)));
        }
        if let Some(text) = change.exact(&self.text)
            && let Ok(parsed) = self.format.parse(&text)
        {
            *self = Self { text, parsed, ..*self };
            return Ok(Undone::Done);
        }
        // A failure half way leaves the document as it was.
        let mut new = self.clone();
        let outcome = new.undo_elsewhere(change)?;
        *self = new;
        Ok(outcome)
    }

    /// Takes the entry of an insertion out, also if others have changed its value since. An entry
    /// with comments of others stays.
    ///
    /// # Errors
    /// The errors of [`Document::remove`]. The document is then unchanged.
    pub fn take_out(&mut self, change: &Change) -> Result<Undone, EditError> {
        let What::Inserted { created, is_new_root, .. } = change.what else {
            return Ok(Undone::Changed);
        };
        let mut new = self.clone();
        let outcome = new.take_back(change, created, is_new_root)?;
        *self = new;
        Ok(outcome)
    }

    fn undo_elsewhere(&mut self, change: &Change) -> Result<Undone, EditError> {
        let (Entry { parent, name, .. }, what) = (&change.entry, &change.what);
        let current = match self.find(parent, name) {
            Ok(found) => Some(found.node.shape()),
            Err(EditError::Missing { .. }) => None,
            // Others have put another kind of value in the place of the entry's map.
            Err(EditError::Kind { .. }) if matches!(what, What::Replaced { .. }) => None,
            Err(error) => return Err(error),
        };
        let (wanted, expected) = match what {
            What::Inserted { value, .. } => (None, Some(value)),
            What::Removed { value, .. } => (Some(value), None),
            What::Replaced { old, new } => (Some(old), Some(new)),
        };
        if current.as_ref() == wanted {
            return Ok(Undone::Already);
        }
        if current.as_ref() != expected {
            return Ok(Undone::Changed);
        }
        if self.relocate(change, wanted) {
            return Ok(Undone::Done);
        }
        match what {
            What::Inserted { created, is_new_root, .. } => {
                return self.take_back(change, *created, *is_new_root);
            }
            What::Removed { .. } if self.put_before_next(change) => {}
            What::Removed { value, raw, has_last_comma, .. } => {
                // Others may have written a text that has no such commas anew.
                let has_comma =
                    *has_last_comma && Self::parse(Format::Json, self.text.as_bytes()).is_err();
                if self.insert_with(parent, name, value, Some(raw)).is_err() {
                    self.insert(parent, name, value)?;
                }
                if has_comma {
                    self.add_comma(parent, name);
                }
            }
            What::Replaced { old, .. } => {
                self.replace(parent, name, old)?;
            }
        }
        Ok(Undone::Done)
    }

    /// Puts a removed member of JSON back before the one that was behind it, and before the
    /// comments of that one. False, and nothing is changed, if that one is gone.
    fn put_before_next(&mut self, change: &Change) -> bool {
        let (parent, name) = (&change.entry.parent, change.entry.name.as_str());
        let What::Removed { value, raw, next: Some(next), .. } = &change.what else {
            return false;
        };
        let container = self.container(parent).ok().flatten();
        let container = container.filter(|_| self.format.is_json() && !parent.is_list());
        let Some(container) = container else { return false };
        let Some(&index) = parent.find(container, next).first() else { return false };
        let at = self.place_before(change, container, index);
        let gap = if text::starts_line(&self.text, at) {
            format!("{}{}", text::newline(&self.text), text::line_indent(&self.text, at))
        } else if self.text[..at].ends_with(char::is_whitespace) {
            " ".to_owned()
        } else {
            String::new()
        };
        let splice = text::Splice::insert(at, format!("{raw},{gap}"));
        let mut expected = self.shape();
        expect::insert(&mut expected, parent.path(), Some(name), value);
        self.take(parent, name, vec![vec![splice]], expected).is_ok()
    }

    /// The place before a member and before its comments: those on its line, and those on lines
    /// between the members. A comment that stood before the removed member stays before it.
    fn place_before(&self, change: &Change, container: &Node, index: usize) -> usize {
        let (spans, source) = (container.item_spans(), Source::new(&self.text, &self.parsed));
        let start = spans[index].start;
        let from = match index.checked_sub(1) {
            Some(before) => source.comma_after(spans[before].end).unwrap_or(spans[before].end),
            None => container.span.start,
        };
        let line = text::line_start(&self.text, start);
        let is_own =
            |one: &&Range<usize>| text::starts_line(&self.text, one.start) || line <= one.start;
        let own: Vec<_> = source.comments_in(from..start).filter(is_own).collect();
        let is_before = |one: &&Range<usize>| change.follows(&self.text[(*one).clone()]);
        let first = own.iter().rposition(is_before).map_or(0, |last| last + 1);
        own.get(first).map_or(start, |comment| comment.start)
    }

    /// Gives a last member the comma behind it that it had.
    fn add_comma(&mut self, parent: &Parent, name: &str) {
        let (Ok(found), Ok(Some(container))) = (self.find(parent, name), self.container(parent))
        else {
            return;
        };
        let spans = container.item_spans();
        let end = spans[found.index].end;
        let source = Source::new(&self.text, &self.parsed);
        if found.index + 1 < spans.len() || source.comma_after(end).is_some() {
            return;
        }
        if let Some(text) = text::apply(&self.text, &[text::Splice::insert(end, ",")])
            && let Ok(parsed) = self.format.parse(&text)
        {
            *self = Self { text, parsed, ..*self };
        }
    }

    /// Takes the text with the splices undone at their new places, if it differs in the entry
    /// alone.
    fn relocate(&mut self, change: &Change, wanted: Option<&Value>) -> bool {
        let Some(text) = change.relocated(&self.text) else { return false };
        let Ok(parsed) = self.format.parse(&text) else { return false };
        let new = Self { text, parsed, ..*self };
        let (parent, name) = (&change.entry.parent, &change.entry.name);
        let (mut old_shape, mut new_shape) = (self.shape(), new.shape());
        expect::remove(&mut old_shape, parent, name);
        let is_right = expect::remove(&mut new_shape, parent, name).as_ref() == wanted;
        // Parents that the edit created are gone with it.
        let from = match change.what {
            What::Inserted { created, .. } => parent.path().len() - created,
            What::Removed { .. } | What::Replaced { .. } => parent.path().len(),
        };
        for shape in [&mut old_shape, &mut new_shape] {
            expect::prune(shape, parent.path(), from);
            self.normalize(parent, shape);
        }
        let is_other = |text: &&str| !change.has_text(text);
        let keeps_comments = self.comments().filter(is_other).eq(new.comments().filter(is_other));
        let is_same = is_right && old_shape == new_shape && keeps_comments;
        if is_same {
            *self = new;
        }
        is_same
    }

    pub(super) fn comments(&self) -> impl Iterator<Item = &str> {
        self.parsed.comments.iter().map(|range| self.text[range.clone()].trim_end())
    }

    /// Removes an inserted entry, and the parents that were created for it if they are empty now.
    fn take_back(
        &mut self,
        change: &Change,
        created: usize,
        is_new_root: bool,
    ) -> Result<Undone, EditError> {
        let (parent, name) = (&change.entry.parent, &change.entry.name);
        let mut ways = self.removal(parent, &self.find(parent, name)?)?.ways;
        // The edit wrote no comments, so one of another writer would be lost.
        ways.retain(|way| self.is_without_comments(way));
        if ways.is_empty() {
            return Ok(Undone::Changed);
        }
        let mut expected = self.shape();
        expect::remove(&mut expected, parent, name);
        self.take(parent, name, ways, expected)?;
        let path = parent.path();
        for depth in (path.len() - created..path.len()).rev() {
            let found = walk(self.parsed.root.as_ref(), &path[..=depth]);
            let is_empty = found.depth == depth + 1
                && found.node.is_some_and(|node| {
                    let has_comments = self.has_comments(node.span.start, node.span.end);
                    (node.is_empty() || node.is_null()) && !has_comments
                });
            if !is_empty {
                break;
            }
            self.remove(&Parent::new(path[..depth].to_vec(), None), &path[depth])?;
        }
        self.remove_root(is_new_root);
        Ok(Undone::Done)
    }

    /// True if no comment begins in the parts that splices replace.
    fn is_without_comments(&self, splices: &[text::Splice]) -> bool {
        let mut ranges = splices.iter().map(text::Splice::range);
        let comments = &self.parsed.comments;
        ranges.all(|range| !comments.iter().any(|comment| range.contains(&comment.start)))
    }

    fn has_comments(&self, start: usize, end: usize) -> bool {
        self.parsed.comments.iter().any(|comment| start <= comment.start && comment.end <= end)
    }

    /// Removes empty brackets that an edit of an empty file wrote.
    fn remove_root(&mut self, is_new_root: bool) {
        let Some(root) = self.parsed.root.as_ref().filter(|root| is_new_root && root.is_flow)
        else {
            return;
        };
        if !root.is_empty() || self.has_comments(root.span.start, root.span.end) {
            return;
        }
        let end = text::next_line(&self.text, root.span.end);
        let end = if text::is_space(&self.text[root.span.end..end]) { end } else { root.span.end };
        let splice = text::Splice::delete(&self.text, root.span.start..end);
        if let Some(text) = text::apply(&self.text, &[splice])
            && let Ok(parsed) = self.format.parse(&text)
        {
            *self = Self { text, parsed, ..*self };
        }
    }
}
