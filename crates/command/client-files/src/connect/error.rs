//! Reasons for which narthex's entry is not written or not taken out.

use std::path::PathBuf;

use narthex_model::{ErrorKind, command::narthex};
use narthex_private::PrivateError;

use crate::edit::EditError;
use crate::file::FileError;
use crate::journal::JournalError;

/// The reason for which the file of a client stays as it is.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// No client has this id.
    #[error("no client is called `{0}`; choose one of the list")]
    Unknown(String),
    /// The client is not made for this system.
    #[error("{0} has no file on this system; use the text for another machine")]
    Elsewhere(String),
    /// The client was never started.
    #[error("{client} has no folder `{}` yet; start it once, then try again", folder.display())]
    NoFolder {
        /// The name of the client.
        client: String,
        /// The folder.
        folder: PathBuf,
    },
    /// The file is another one than the shown one.
    #[error("`{}` has changed since the page was made; look at it again", path.display())]
    Changed {
        /// The file.
        path: PathBuf,
    },
    /// The entry is there already.
    #[error("`{}` has narthex already, as `{name}`", path.display())]
    Present {
        /// The file.
        path: PathBuf,
        /// The name of the entry.
        name: String,
    },
    /// The record has no entry of this file alone.
    #[error(
        "narthex has no record of an entry alone in `{}`; undo a set-up with `{}`, or take the \
         entry out by hand",
        path.display(), narthex("setup --undo", &[])
    )]
    NoWayBack {
        /// The file.
        path: PathBuf,
    },
    /// A set-up works.
    #[error("a set-up works at the same time; wait until it has ended, then try again")]
    Busy,
    /// The lock cannot be used.
    #[error("the lock `{}` of set-ups cannot be used", path.display())]
    Lock {
        /// The lock.
        path: PathBuf,
        /// The reason.
        source: PrivateError,
    },
    /// The text of the file cannot be edited.
    #[error("`{}` cannot be edited", path.display())]
    Text {
        /// The file.
        path: PathBuf,
        /// The fault.
        source: EditError,
    },
    /// The file cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// The file cannot be written, or the record cannot be used.
    #[error(transparent)]
    Journal(#[from] JournalError),
}

impl ConnectError {
    /// The kind of failure.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Unknown(_) => ErrorKind::NotFound,
            Self::Elsewhere(_)
            | Self::NoFolder { .. }
            | Self::Changed { .. }
            | Self::Present { .. }
            | Self::NoWayBack { .. }
            | Self::Busy
            | Self::Text { .. } => ErrorKind::Conflict,
            Self::Lock { .. } | Self::File(_) | Self::Journal(_) => ErrorKind::Unavailable,
        }
    }
}
