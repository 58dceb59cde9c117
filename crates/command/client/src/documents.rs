//! Objects of the catalog in people's files: JSON or YAML, and the files of desktop clients and
//! other programs. Reads such files and converts them into objects of the catalog.

mod differences;
mod document;
mod error;
mod lines;
mod pasted;

pub use differences::differences;
pub use document::{Document, read, text_of, yaml};
pub use error::DocumentError;
pub use pasted::{HEADERS, Pasted, PastedFault, PastedServer, take_out};
