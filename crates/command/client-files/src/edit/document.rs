//! A text with its values, and its edits.

use serde_json::Value;

use super::change::{Change, Entry, What};
use super::error::EditError;
use super::expect;
use super::fault::Fault;
use super::format::Format;
use super::parent::{Found, Parent};
use super::source::{New, Parsed, Place, Removal, Source};
use super::text::{self, Splice};
use super::tree::{self, walk};

const BOM: &str = "\u{feff}";

/// The text of a configuration file, with its values.
#[derive(Debug, Clone)]
pub struct Document {
    pub(super) format: Format,
    pub(super) has_bom: bool,
    /// Without a byte order mark.
    pub(super) text: String,
    pub(super) parsed: Parsed,
}

impl Document {
    /// Reads the bytes of a file. An empty file is a document without a value.
    ///
    /// # Errors
    /// [`EditError::Syntax`] when the bytes are no UTF-8, the text is not of the format, a key
    /// stands twice in one map, or a YAML file has several documents.
    pub fn parse(format: Format, bytes: &[u8]) -> Result<Self, EditError> {
        let text = std::str::from_utf8(bytes).map_err(|error| {
            let valid = String::from_utf8_lossy(&bytes[..error.valid_up_to()]);
            let fault = Fault::new(valid.len(), "the bytes are not UTF-8");
            syntax(format, &valid, fault)
        })?;
        let (has_bom, text) = match text.strip_prefix(BOM) {
            Some(text) => (true, text),
            None => (false, text),
        };
        let parsed = format.parse(text).map_err(|fault| syntax(format, text, fault))?;
        Ok(Self { format, has_bom, text: text.to_owned(), parsed })
    }

    /// The format.
    #[must_use]
    pub fn format(&self) -> Format {
        self.format
    }

    /// The bytes for the file.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        let bom = if self.has_bom { BOM } else { "" };
        [bom.as_bytes(), self.text.as_bytes()].concat()
    }

    /// True if the text has no entry and no comment.
    #[must_use]
    pub fn is_blank(&self) -> bool {
        let is_empty = |root: &tree::Node| root.is_empty() || root.is_null();
        self.parsed.comments.is_empty() && self.parsed.root.as_ref().is_none_or(is_empty)
    }

    /// The value under keys from the root; `None` if a key does not exist. Dates of TOML are texts.
    ///
    /// # Errors
    /// [`EditError::Unsupported`] when aliases of YAML make the value too large.
    pub fn value(&self, path: &[&str]) -> Result<Option<Value>, EditError> {
        let path: Vec<_> = path.iter().map(|key| (*key).to_owned()).collect();
        let found = walk(self.parsed.root.as_ref(), &path);
        let Some(node) = found.node.filter(|_| found.depth == path.len()) else {
            return Ok(None);
        };
        self.resolved(node).map(Some)
    }

    /// The entries of a map or list with their names, in the order of the file. A parent that does
    /// not exist has none. Entries of a list that have no name are left out.
    ///
    /// # Errors
    /// [`EditError::Kind`] when the parent is no map or list, and the errors of
    /// [`Document::value`].
    pub fn entries(&self, parent: &Parent) -> Result<Vec<(String, Value)>, EditError> {
        let Some(node) = self.container(parent)? else { return Ok(Vec::new()) };
        let items = parent.items(node).into_iter();
        let named = items.filter_map(|(name, node)| name.map(|name| (name, node)));
        named.map(|(name, node)| Ok((name.to_owned(), self.resolved(node)?))).collect()
    }

    /// Inserts an entry as the last one of its parent, in the indentation of the file. Parents
    /// that do not exist are created. An entry of a list gets its name as the first key.
    ///
    /// # Errors
    /// [`EditError::Exists`] when the name exists; [`EditError::Kind`] when a parent is of another
    /// kind; [`EditError::Value`] when the format cannot express the value;
    /// [`EditError::Unsupported`] and [`EditError::Unsafe`] when the file must be edited by hand.
    /// The document is then unchanged.
    pub fn insert(
        &mut self,
        parent: &Parent,
        name: &str,
        value: &Value,
    ) -> Result<Change, EditError> {
        self.insert_with(parent, name, value, None)
    }

    /// Removes an entry with its comma or its lines. Comments of its neighbours stay.
    ///
    /// # Errors
    /// [`EditError::Missing`] when there is no entry of the name; [`EditError::Ambiguous`] when
    /// there are two; otherwise those of [`Document::insert`].
    pub fn remove(&mut self, parent: &Parent, name: &str) -> Result<Change, EditError> {
        let found = self.find(parent, name)?;
        let value = found.node.shape();
        let removal = self.removal(parent, &found)?;
        let (next, has_last_comma) = self.behind(parent, found.index);
        let mut expected = self.shape();
        expect::remove(&mut expected, parent, name);
        let splices = self.take(parent, name, removal.ways, expected)?;
        let what = What::Removed { value, raw: removal.raw, next, has_last_comma };
        Ok(self.change_of(parent, name, what, &splices))
    }

    /// The name of the member behind one, and true for a last one of JSON with a comma behind it.
    fn behind(&self, parent: &Parent, index: usize) -> (Option<String>, bool) {
        let Ok(Some(container)) = self.container(parent) else { return (None, false) };
        let spans = container.item_spans();
        let items = parent.items(container);
        let next = items.get(index + 1).and_then(|(name, _)| name.map(str::to_owned));
        let is_last = self.format.is_json() && index + 1 == spans.len();
        let source = Source::new(&self.text, &self.parsed);
        (next, is_last && source.comma_after(spans[index].end).is_some())
    }

    /// Replaces the value of an entry, and leaves its place. An entry of a list keeps its name.
    ///
    /// # Errors
    /// The errors of [`Document::remove`] and [`Document::insert`].
    pub fn replace(
        &mut self,
        parent: &Parent,
        name: &str,
        value: &Value,
    ) -> Result<Change, EditError> {
        let value = self.checked(parent, name, value)?;
        let found = self.find(parent, name)?;
        let old = found.node.shape();
        let source = Source::new(&self.text, &self.parsed);
        let place = self.place(parent.path());
        let ways = self.format.replace(&place, &source, found.index, &value);
        let ways = ways.map_err(|fault| self.unsupported(fault))?;
        let mut expected = self.shape();
        expect::replace(&mut expected, parent, name, &value);
        let splices = self.take(parent, name, ways, expected)?;
        Ok(self.change_of(parent, name, What::Replaced { old, new: value }, &splices))
    }

    pub(super) fn insert_with(
        &mut self,
        parent: &Parent,
        name: &str,
        value: &Value,
        raw: Option<&str>,
    ) -> Result<Change, EditError> {
        let value = match raw {
            Some(_) => value.clone(),
            None => self.checked(parent, name, value)?,
        };
        let is_new_root = self.parsed.root.is_none();
        if let Some(node) = self.container(parent)?
            && let Some(item) = parent.find(node, name).first()
        {
            let (line, _) = self.position(parent.items(node)[*item].1.span.start);
            let (path, name) = (parent.to_string(), name.to_owned());
            return Err(EditError::Exists { path, name, line });
        }
        let depth = walk(self.parsed.root.as_ref(), parent.path()).depth;
        let created = parent.path().len() - depth;
        let (key, whole) = parent.wrapped(depth, name, &value);
        let new = New { key: key.as_deref(), value: &whole, raw: raw.filter(|_| created == 0) };
        let place = self.place(&parent.path()[..depth]);
        let source = Source::new(&self.text, &self.parsed);
        let ways = self.format.insert(&place, &source, &new);
        let ways = ways.map_err(|fault| self.unsupported(fault))?;
        let mut expected = self.shape();
        expect::insert(&mut expected, &parent.path()[..depth], key.as_deref(), &whole);
        let splices = self.take(parent, name, ways, expected)?;
        let what = What::Inserted { value, created, is_new_root };
        Ok(self.change_of(parent, name, what, &splices))
    }

    /// The record of splices that led to the current text.
    fn change_of(&self, parent: &Parent, name: &str, what: What, splices: &[Splice]) -> Change {
        let entry = Entry { format: self.format, parent: parent.clone(), name: name.to_owned() };
        Change::new(entry, what, &self.text, splices)
    }

    /// Takes the first of several new texts whose tree is the expected one, and that keeps the
    /// comments outside of the deleted parts.
    pub(super) fn take(
        &mut self,
        parent: &Parent,
        name: &str,
        ways: Vec<Vec<Splice>>,
        mut expected: Value,
    ) -> Result<Vec<Splice>, EditError> {
        self.normalize(parent, &mut expected);
        for splices in ways {
            let Some(text) = text::apply(&self.text, &splices) else { continue };
            let Ok(parsed) = self.format.parse(&text) else { continue };
            let new = Self { text, parsed, ..*self };
            let mut shape = new.shape();
            new.normalize(parent, &mut shape);
            if shape == expected && self.keeps_comments(&new, &splices) {
                *self = new;
                return Ok(splices);
            }
        }
        Err(EditError::Unsafe { path: parent.to_string(), name: name.to_owned() })
    }

    /// True if the comments outside of the deleted parts stand in the new text, in their order.
    fn keeps_comments(&self, new: &Self, splices: &[Splice]) -> bool {
        let mut found = new.parsed.comments.iter();
        self.parsed.comments.iter().all(|old| {
            splices.iter().any(|splice| splice.range().contains(&old.start)) || {
                let text = self.text[old.clone()].trim_end();
                found.any(|new_range| new.text[new_range.clone()].trim_end() == text)
            }
        })
    }

    /// TOML has no difference between an absent table and an empty one that only held others.
    pub(super) fn normalize(&self, parent: &Parent, shape: &mut Value) {
        if self.format == Format::Toml {
            expect::prune(shape, parent.path(), 0);
        }
    }

    pub(super) fn shape(&self) -> Value {
        let empty = || Value::Object(serde_json::Map::new());
        self.parsed.root.as_ref().map_or_else(empty, tree::Node::shape)
    }

    fn resolved(&self, node: &tree::Node) -> Result<Value, EditError> {
        let root = self.parsed.root.as_ref().unwrap_or(node);
        node.resolved(root, &mut tree::Budget::default()).ok_or_else(|| {
            self.unsupported(Fault::new(node.span.start, "its aliases make the value too large"))
        })
    }

    pub(super) fn removal(&self, parent: &Parent, found: &Found<'_>) -> Result<Removal, EditError> {
        let source = Source::new(&self.text, &self.parsed);
        let place = self.place(parent.path());
        let removal = self.format.remove(&place, &source, found.index);
        removal.map_err(|fault| self.unsupported(fault))
    }

    pub(super) fn place<'a>(&'a self, path: &'a [String]) -> Place<'a> {
        Place { path, walk: walk(self.parsed.root.as_ref(), path) }
    }

    pub(super) fn position(&self, at: usize) -> (usize, usize) {
        text::position(&self.text, at)
    }

    pub(super) fn unsupported(&self, fault: Fault) -> EditError {
        let (line, column) = self.position(fault.at);
        EditError::Unsupported { line, column, reason: fault.reason }
    }
}

fn syntax(format: Format, text: &str, fault: Fault) -> EditError {
    let (line, column) = text::position(text, fault.at);
    EditError::Syntax { format, line, column, reason: fault.reason }
}
