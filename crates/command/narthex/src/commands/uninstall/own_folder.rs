//! The folder of the user's own settings files.

use std::{io, path::Path};

use fs_err as fs;
use narthex_registry::layers::remove_lock;

use crate::{Failure, config};

/// The lock beside the user's file of servers.
const LOCK: &str = "settings.json.lock";

/// True for a settings file at its usual place. A file that the command line names elsewhere is
/// the user's own.
pub(super) fn has(file: &Path) -> bool {
    file.parent().is_some_and(|folder| {
        config::own_folder(&config::variable).is_some_and(|own| own == folder)
    })
}

/// Removes the lock of the user's file of servers, and the folder of settings files if nothing else
/// is in it.
pub(super) fn remove() -> Result<(), Failure> {
    let Some(folder) = config::own_folder(&config::variable) else { return Ok(()) };
    remove_lock(&folder.join(LOCK))?;
    match fs::remove_dir(&folder) {
        Err(error)
            if !matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::DirectoryNotEmpty
            ) =>
        {
            Err(error.into())
        }
        Ok(()) | Err(_) => Ok(()),
    }
}
