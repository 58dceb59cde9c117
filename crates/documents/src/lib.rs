//! Objects of the catalog as people keep them in files: JSON or YAML, and what desktop clients and
//! other programs keep. Read, and taken apart into what the catalog has.

mod differences;
mod document;
mod error;
mod lines;
mod pasted;

pub use differences::differences;
pub use document::{Document, read, text_of, yaml};
pub use error::DocumentError;
pub use pasted::{HEADERS, Pasted, PastedFault, PastedServer, take_out};
