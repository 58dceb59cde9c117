//! The record of set-ups in the data directory, and the lock of the one that works.

use narthex_client_files::journal::{Journal, JournalError};
use narthex_model::ErrorKind;

use crate::{Failure, data_dir::DataDir};

/// The lock of a set-up, held for as long as this value lives.
pub(super) struct Lock {
    _file: fs_err::File,
}

/// Reads the record. Makes nothing.
pub(in crate::commands) fn journal(data: &DataDir) -> Result<Journal, Failure> {
    Journal::open(&data.setup_dir()).map_err(|error| failed(&error))
}

/// Keeps a second set-up from this data directory.
pub(super) fn lock(data: &DataDir) -> Result<Lock, Failure> {
    let file = narthex_private::open_or_create(&data.setup_lock_file())?;
    file.file().try_lock().map_err(|_taken| {
        let text = format!(
            "another set-up works with {}; wait until it has ended, then try again",
            data.path().display()
        );
        Failure::new(ErrorKind::Conflict, text)
    })?;
    Ok(Lock { _file: file })
}

/// The failure of a step.
pub(super) fn failed(error: &JournalError) -> Failure {
    Failure::caused(ErrorKind::Unavailable, error)
}
