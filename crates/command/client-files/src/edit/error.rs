//! Reasons for which a text is not read or not edited.

use super::format::Format;

/// The reason for which a text cannot be read or edited. The caller adds the name of the file.
#[derive(Debug, thiserror::Error)]
pub enum EditError {
    /// The text is not of the format.
    #[error("line {line}, column {column}: {reason}; correct the {format} there, then try again")]
    Syntax {
        /// The expected format.
        format: Format,
        /// Line, from 1.
        line: usize,
        /// Column in characters, from 1.
        column: usize,
        /// The fault.
        reason: String,
    },
    /// A value on the path is of another kind than the path needs.
    #[error(
        "line {line}, column {column}: `{path}` is {found}, where {expected} is needed; correct it \
         in the file, then try again"
    )]
    Kind {
        /// The path to the value.
        path: String,
        /// Kind of the value.
        found: &'static str,
        /// Kind that the edit needs.
        expected: &'static str,
        /// Line, from 1.
        line: usize,
        /// Column in characters, from 1.
        column: usize,
    },
    /// The name to insert exists.
    #[error("line {line}: `{path}` has `{name}` already; replace or remove the existing entry")]
    Exists {
        /// The path to the parent.
        path: String,
        /// The name.
        name: String,
        /// Line, from 1.
        line: usize,
    },
    /// The name to remove or replace does not exist.
    #[error("`{path}` has no `{name}`; insert it first")]
    Missing {
        /// The path to the parent.
        path: String,
        /// The name.
        name: String,
    },
    /// Two entries of a list have the name.
    #[error("line {line}: `{path}` has a second entry `{name}`; remove one of the two by hand")]
    Ambiguous {
        /// The path to the list.
        path: String,
        /// The name.
        name: String,
        /// Line of the second entry, from 1.
        line: usize,
    },
    /// The text is written in a way that the editor does not handle.
    #[error("line {line}, column {column}: {reason}; edit the file by hand")]
    Unsupported {
        /// Line, from 1.
        line: usize,
        /// Column in characters, from 1.
        column: usize,
        /// The obstacle.
        reason: String,
    },
    /// The result would change something else.
    #[error(
        "an edit of `{name}` in `{path}` would change another part of the file; edit the file by \
         hand"
    )]
    Unsafe {
        /// The path to the parent.
        path: String,
        /// The name.
        name: String,
    },
    /// The format cannot express the new value.
    #[error("the value for `{name}` {reason}; give another value")]
    Value {
        /// The name.
        name: String,
        /// The fault.
        reason: String,
    },
}
