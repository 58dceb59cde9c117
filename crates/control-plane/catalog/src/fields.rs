//! Fields of documents that people send, and all their faults: the field, the problem and the
//! remedy.
//!
//! A layer above the rest of the crate, which does not import it. Knows no store.

mod document;
mod error;

pub use document::Fields;
pub use error::{CatalogError, FieldCode, FieldError, FieldWarning};
