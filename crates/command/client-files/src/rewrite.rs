//! Several edits of one file as one, and their undo.

mod window;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use self::window::Window;
use crate::edit::{Change, Document, EditError, Format, Parent, Undone};

/// One edit of a file.
#[derive(Debug, Clone, PartialEq)]
pub enum Edit {
    /// Removes an entry.
    Remove {
        /// The place of the entry.
        parent: Parent,
        /// The name.
        name: String,
    },
    /// Adds an entry.
    Insert {
        /// The place of the entry.
        parent: Parent,
        /// The name.
        name: String,
        /// The value.
        value: Value,
    },
    /// Gives an entry another value, at its place.
    Replace {
        /// The place of the entry.
        parent: Parent,
        /// The name.
        name: String,
        /// The value.
        value: Value,
    },
}

/// The new content of a file, and the record that leads back.
#[derive(Debug, Clone, PartialEq)]
pub struct Rewritten {
    /// The new content.
    pub bytes: Vec<u8>,
    /// The record that leads back.
    pub made: Made,
}

/// A record of edits, by which they are taken back. It has parts of the file in it, which may be
/// secrets: store it as privately as the file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Made {
    /// The edits, in their order.
    changes: Vec<Change>,
    /// The lines of all edits.
    window: Window,
}

/// A test of an added entry that others have changed, by its name and its value: true if it is
/// taken out all the same.
pub type IsOurs<'a> = &'a dyn Fn(&str, &Value) -> bool;

/// A content without the edits.
#[derive(Debug, Clone, PartialEq)]
pub struct TakenBack {
    /// The content.
    pub bytes: Vec<u8>,
    /// Names of entries that others have changed since; they are left as they are.
    pub kept: Vec<String>,
    /// Names of entries that others have changed since, and that are taken out all the same.
    pub edited: Vec<String>,
}

impl Made {
    /// The format of the edited text; `None` without an edit.
    pub(crate) fn format(&self) -> Option<Format> {
        self.changes.first().map(Change::format)
    }

    /// The parents of the edited entries.
    pub(crate) fn parents(&self) -> impl Iterator<Item = &Parent> {
        self.changes.iter().map(Change::parent)
    }

    /// True if an added entry is one of ours, as others have changed it.
    fn is_ours(document: &Document, change: &Change, is_ours: IsOurs<'_>) -> bool {
        let entries = document.entries(change.parent()).unwrap_or_default();
        let now = entries.into_iter().find(|(name, _)| name == change.name());
        change.is_insertion() && now.is_some_and(|(name, value)| is_ours(&name, &value))
    }

    /// True if the earlier document has the entries of the present one that no edit is about. The
    /// lines of others may be indented differently from the earlier ones beside them.
    fn has_others_of(&self, document: &Document, earlier: &Document) -> bool {
        let is_of = |parent: &Parent, name: &str| {
            let mut changes = self.changes.iter();
            changes.any(|change| change.parent() == parent && change.name() == name)
        };
        self.parents().all(|parent| {
            let then = earlier.entries(parent).unwrap_or_default();
            let mut now = document.entries(parent).unwrap_or_default().into_iter();
            now.all(|entry| is_of(parent, &entry.0) || then.contains(&entry))
        })
    }

    /// True for one edit that added an entry.
    pub(crate) fn is_one_insertion(&self) -> bool {
        matches!(&self.changes[..], [only] if only.is_insertion())
    }

    /// True if one of the edits added this entry.
    pub(crate) fn has_inserted(&self, parent: &Parent, name: &str) -> bool {
        let mut insertions = self.changes.iter().filter(|change| change.is_insertion());
        insertions.any(|change| change.parent() == parent && change.name() == name)
    }

    /// The content with the earlier lines in place of the new ones, if these are found, if nothing
    /// is left to undo then, and if the entries of others stay.
    fn lines_back(&self, document: &Document) -> Option<Vec<u8>> {
        let text = String::from_utf8(document.bytes()).ok()?;
        let is_undone = |text: &String| {
            let Ok(mut earlier) = Document::parse(document.format(), text.as_bytes()) else {
                return false;
            };
            let mut changes = self.changes.iter().rev();
            self.has_others_of(document, &earlier)
                && changes.all(|change| matches!(earlier.undo(change), Ok(Undone::Already)))
        };
        self.window.undone(&text).find(is_undone).map(String::into_bytes)
    }
}

/// Reads a text of a client's file. Comments are accepted in all JSON: a reader harms nothing by
/// them, and some clients take more than their documentation says.
///
/// # Errors
/// When the text is not of the format.
pub fn parse(format: Format, bytes: &[u8]) -> Result<Document, EditError> {
    Document::parse(format, bytes).or_else(|error| match format {
        Format::Json => Document::parse(Format::Jsonc, bytes).map_err(|_same_fault| error),
        Format::Jsonc | Format::Toml | Format::Yaml => Err(error),
    })
}

/// Makes all edits of a document.
///
/// # Errors
/// When one of them cannot be made. None is made then.
pub fn rewrite(document: &Document, edits: &[Edit]) -> Result<Rewritten, EditError> {
    let before = document.bytes();
    let mut document = document.clone();
    let changes = edits.iter().map(|edit| match edit {
        Edit::Remove { parent, name } => document.remove(parent, name),
        Edit::Insert { parent, name, value } => document.insert(parent, name, value),
        Edit::Replace { parent, name, value } => document.replace(parent, name, value),
    });
    let changes = changes.collect::<Result<Vec<_>, _>>()?;
    let bytes = document.bytes();
    let (old, new) = (String::from_utf8_lossy(&before), String::from_utf8_lossy(&bytes));
    let window = Window::between(&old, &new);
    Ok(Rewritten { made: Made { changes, window }, bytes })
}

/// Takes edits back, the last one first. Entries that others have changed since stay, apart from
/// added ones that are ours.
///
/// # Errors
/// When the text is not of its format, or an entry cannot be put back.
pub fn take_back(bytes: &[u8], made: &Made, is_ours: IsOurs<'_>) -> Result<TakenBack, EditError> {
    let (mut kept, mut edited) = (Vec::new(), Vec::new());
    let Some(last) = made.changes.last() else {
        return Ok(TakenBack { bytes: bytes.to_vec(), kept, edited });
    };
    let mut document = parse(last.format(), bytes)?;
    if let Some(bytes) = made.lines_back(&document) {
        return Ok(TakenBack { bytes, kept, edited });
    }
    for change in made.changes.iter().rev() {
        if document.undo(change)? != Undone::Changed {
            continue;
        }
        let name = change.name().to_owned();
        let is_out =
            Made::is_ours(&document, change, is_ours) && document.take_out(change)? == Undone::Done;
        if is_out { edited.push(name) } else { kept.push(name) }
    }
    Ok(TakenBack { bytes: document.bytes(), kept, edited })
}

#[cfg(test)]
mod tests;
