//! Reasons for which a record is not read or written.

use std::io;
use std::path::PathBuf;

use crate::edit::EditError;
use crate::file::FileError;

/// The reason for which a step is not made, not recorded or not undone.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// A file cannot be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// The text of a file cannot be edited.
    #[error("`{}` cannot be edited", path.display())]
    Edit {
        /// The file.
        path: PathBuf,
        /// The fault of the text.
        #[source]
        source: EditError,
    },
    /// The record is no record.
    #[error(
        "the record `{}` is damaged; restore the files from the backups beside it",
        path.display()
    )]
    Damaged {
        /// The record.
        path: PathBuf,
        /// The fault.
        source: serde_json::Error,
    },
    /// The folder of the record cannot be made or removed.
    #[error(
        "the folder `{}` cannot be used; check its permissions, then try again",
        path.display()
    )]
    Folder {
        /// The folder.
        path: PathBuf,
        /// The answer of the system.
        source: io::Error,
    },
}
