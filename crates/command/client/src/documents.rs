//! Objects of the catalog in people's files: JSON or YAML, and the files of desktop clients and
//! other programs. Reads such files and converts them into objects of the catalog.

mod differences;
mod document;
mod error;
mod lines;

pub use differences::differences;
pub use document::{Document, read, read_servers, text_of, yaml};
pub use error::DocumentError;
pub use narthex_client_files::catalog::{HEADERS, Pasted, PastedFault, PastedServer};
use narthex_client_files::catalog::{of_client, of_document};

/// Converts the servers of a file for the catalog; `None` if the document is a single server of the
/// catalog.
#[must_use]
pub fn take_out(document: &Document) -> Option<Pasted> {
    match &document.of_client {
        Some(file) => Some(of_client(file)),
        None => of_document(&document.value),
    }
}
