//! A statement of TOML.

use std::ops::Range;

use crate::edit::tree::Node;

/// A header, or a key with its value.
#[derive(Debug, Clone)]
pub(in super::super) struct Statement {
    /// Keys from the root.
    pub(super) path: Vec<String>,
    pub(super) kind: StatementKind,
    /// Number of headers up to here.
    pub(super) section: usize,
    /// Bytes without spaces and comments around.
    pub(super) span: Range<usize>,
}

impl Statement {
    /// True for the header of a table or of an entry.
    pub(super) fn is_header(&self) -> bool {
        !matches!(self.kind, StatementKind::Value(_))
    }
}

#[derive(Debug, Clone)]
pub(in super::super) enum StatementKind {
    /// `[table]`
    Table,
    /// `[[entry of a list]]`
    Entry,
    /// `key = value`, with the value.
    Value(Node),
}
