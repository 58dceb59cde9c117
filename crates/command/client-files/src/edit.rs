//! Edits of JSON, JSON with comments, TOML and YAML that touch the bytes of one member only.
//!
//! A [`Document`] keeps its text. Each edit is a list of splices of the text, made from the places
//! of a tree. Before a new text is taken, it is read again: its tree must differ in the one member
//! only, and no comment outside of it may be lost. Each edit gives a [`Change`], which
//! [`Document::undo`] takes back, also after others have edited the file elsewhere.

mod change;
mod document;
mod error;
mod expect;
mod fault;
mod find;
mod format;
mod json;
mod lines;
mod parent;
mod source;
mod text;
mod toml;
mod tree;
mod undo;
mod yaml;

#[cfg(test)]
pub(crate) mod tests;

pub use change::Change;
pub use document::Document;
pub use error::EditError;
pub use format::Format;
pub use lines::Lines;
pub use parent::Parent;
pub use undo::Undone;
