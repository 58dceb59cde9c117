//! Fields of documents that people send, and everything that is wrong with them: which field, what
//! is wrong there, and what would be right.
//!
//! A layer above the rest of the crate, which imports nothing of it. Knows no store.

mod document;
mod error;

pub use document::Fields;
pub use error::{CatalogError, FieldCode, FieldError, FieldWarning};
