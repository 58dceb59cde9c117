//! Writes a settings file as a whole, one writer at a time.

use std::{
    fs::{Permissions, TryLockError},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
    time::Duration,
};

use narthex_private::is_at;
use tokio::time::Instant;

use super::EditError;

/// Time that an edit waits for another to end. Each edit takes milliseconds.
const LOCK_DEADLINE: Duration = Duration::from_secs(5);
/// Pause between attempts to lock: the system cannot wake a waiter and keep a deadline at once.
const LOCK_PAUSE: Duration = Duration::from_millis(10);

/// Modes of the files: settings may hold data that only their user should see.
const FILE_MODE: u32 = 0o600;
const FOLDER_MODE: u32 = 0o700;

/// The lock that an edit holds until its end. It is released when it is dropped.
#[derive(Debug)]
pub struct EditLock {
    _file: fs_err::File,
}

/// Waits until no other edit of `file` is under way, in this process or another.
pub(super) async fn lock(file: &Path) -> Result<EditLock, EditError> {
    let fail = |source| EditError::Write { file: file.to_owned(), source };
    let mut lock = open_lock(file).map_err(fail)?;
    let end = Instant::now() + LOCK_DEADLINE;
    loop {
        match lock.file().try_lock() {
            Ok(()) if is_at(&lock, lock.path()).map_err(fail)? => {
                return Ok(EditLock { _file: lock });
            }
            Ok(()) | Err(TryLockError::WouldBlock) if Instant::now() >= end => {
                return Err(EditError::Busy { file: file.to_owned(), waited: LOCK_DEADLINE });
            }
            // The lock was removed meanwhile, and a new one of its name is another lock.
            Ok(()) => lock = open_lock(file).map_err(fail)?,
            Err(TryLockError::Error(source)) => return Err(fail(source)),
            Err(TryLockError::WouldBlock) => tokio::time::sleep(LOCK_PAUSE).await,
        }
    }
}

/// Opens the lock, a file of its own, since each edit replaces the settings file.
fn open_lock(file: &Path) -> io::Result<fs_err::File> {
    let path = lock_file(file)?;
    if let Some(folder) = path.parent() {
        std::fs::DirBuilder::new().recursive(true).mode(FOLDER_MODE).create(folder)?;
    }
    let mut options = fs_err::OpenOptions::new();
    options.write(true).create(true).truncate(false).options_mut().mode(FILE_MODE);
    options.open(path)
}

/// The lock of a settings file.
pub(super) fn lock_file(file: &Path) -> io::Result<PathBuf> {
    let target = target(file)?;
    let mut name = target.file_name().unwrap_or_default().to_owned();
    name.push(".lock");
    Ok(target.with_file_name(name))
}

/// Removes a lock, unless an edit holds it. An edit that waits for it takes a new one.
///
/// # Errors
/// When the lock cannot be opened or removed. One that is absent is no error.
pub fn remove_lock(lock: &Path) -> io::Result<()> {
    let absent = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => Ok(()),
        _ => Err(error),
    };
    let held = match fs_err::OpenOptions::new().write(true).open(lock) {
        Ok(held) => held,
        Err(error) => return absent(error),
    };
    match held.file().try_lock() {
        Ok(()) if is_at(&held, lock)? => fs_err::remove_file(lock).or_else(absent),
        Ok(()) | Err(TryLockError::WouldBlock) => Ok(()),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// Puts `text` in the place of the file: a reader sees the old file or the new one, even after a
/// power failure.
pub(super) fn replace(file: &Path, text: &str) -> Result<(), EditError> {
    replace_target(file, text).map_err(|source| EditError::Write { file: file.to_owned(), source })
}

fn replace_target(file: &Path, text: &str) -> io::Result<()> {
    let target = target(file)?;
    let folder = target.parent().unwrap_or(Path::new("/"));
    let mode = match fs_err::metadata(&target) {
        Ok(metadata) => metadata.permissions().mode() & 0o7777,
        Err(error) if error.kind() == io::ErrorKind::NotFound => FILE_MODE,
        Err(error) => return Err(error),
    };
    let mut new = tempfile::Builder::new().prefix(".narthex-").tempfile_in(folder)?;
    new.write_all(text.as_bytes())?;
    new.as_file().set_permissions(Permissions::from_mode(mode))?;
    new.as_file().sync_all()?;
    new.persist(&target).map_err(|error| error.error)?;
    // The file is replaced, also where a folder cannot be read or made to last.
    if let Err(error) = fs_err::File::open(folder).and_then(|folder| folder.sync_all()) {
        tracing::debug!("the folder of the settings could not be synced: {error}");
    }
    Ok(())
}

/// The file itself where the path is a link to it: the link is a person's and stays.
fn target(file: &Path) -> io::Result<PathBuf> {
    match fs_err::symlink_metadata(file) {
        Ok(metadata) if metadata.is_symlink() => fs_err::canonicalize(file),
        Ok(_) => std::path::absolute(file),
        Err(error) if error.kind() == io::ErrorKind::NotFound => std::path::absolute(file),
        Err(error) => Err(error),
    }
}
