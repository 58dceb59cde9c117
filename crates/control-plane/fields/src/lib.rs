//! Fields of documents that people send, and everything that is wrong with them: which field, what
//! is wrong there, and what would be right.
//!
//! Knows no store.

mod error;
mod fields;

pub use error::{CatalogError, FieldCode, FieldError, FieldWarning};
pub use fields::Fields;
