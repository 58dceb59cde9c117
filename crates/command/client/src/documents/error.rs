//! Errors of documents.

use std::io;

use narthex_model::ErrorKind;

/// The reason why a document cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DocumentError {
    /// A file, a folder or standard input cannot be read; the message names the path.
    #[error(transparent)]
    Read(#[from] io::Error),
    /// The file or folder does not exist, or the folder has no document.
    #[error("{0}")]
    NotThere(String),
    /// The text is no document, or has a part that cannot be used.
    #[error("{0}")]
    Invalid(String),
    /// The document cannot be written in a form that reads as the same document.
    #[error("the document cannot be written as YAML, use --json: {0}")]
    Unwritable(String),
}

impl DocumentError {
    /// The kind of failure. For [`Self::Read`], the contained error is more specific.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Read(_) => ErrorKind::Unavailable,
            Self::NotThere(_) => ErrorKind::NotFound,
            Self::Invalid(_) => ErrorKind::Invalid,
            Self::Unwritable(_) => ErrorKind::Bug,
        }
    }
}
