//! Hidden folders that a killed daemon has left in the destination of a copy.
//!
//! A copy locks its hidden folder, and the lock ends with its process. So an unlocked folder has no
//! owner any more, in any daemon on any host. Where the file system has no locks, nothing is
//! removed.

use std::os::fd::{AsFd, OwnedFd};

use narthex_model::written::is_digits;
use rustix::fs::{self, AtFlags, FlockOperation};
use rustix::io::Errno;

use crate::error::io_error;
use crate::folder;
use crate::transfer::{empty_all, open_folder};
use crate::{Folder, ShareError};

/// Prefix of the folder for new files, until all of them are there.
pub(crate) const INCOMING: &str = ".narthex-incoming";
/// Prefix of the folder for the files that were replaced.
pub(crate) const REPLACED: &str = ".narthex-replaced";
/// The most names that are looked through.
const NAMES_MAX: usize = 100_000;

/// True if this process owns a new hidden folder: no other process has taken it for left over.
pub(crate) fn is_taken(folder: &OwnedFd) -> bool {
    match fs::flock(folder, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => fs::fstat(folder).is_ok_and(|stat| stat.st_nlink > 0),
        Err(Errno::WOULDBLOCK) => false,
        // No other process can lock it here either.
        Err(_) => true,
    }
}

impl Folder {
    /// Removes hidden folders that interrupted copies have left in this folder, and returns their
    /// number. Folders of running copies stay, of this process or of another one. In a folder with
    /// more than 100,000 names nothing is removed.
    ///
    /// # Errors
    /// When the folder cannot be read, or a leftover cannot be removed.
    pub fn remove_leftovers(&self) -> Result<usize, ShareError> {
        let own = open_folder(self.fd(), ".", ".")?;
        let names = folder::names(&own, NAMES_MAX).map_err(io_error("look for old copies"))?;
        let mut removed = 0;
        for name in names.into_iter().flatten() {
            let Ok(name) = String::from_utf8(name) else { continue };
            if is_name_of_ours(&name) && remove(&own, &name)? {
                removed += 1;
            }
        }
        Ok(removed)
    }
}

fn is_name_of_ours(name: &str) -> bool {
    let rest = name.strip_prefix(INCOMING).or_else(|| name.strip_prefix(REPLACED));
    let numbers = rest.and_then(|rest| rest.strip_prefix('-')?.split_once('-'));
    numbers.is_some_and(|(process, number)| is_digits(process) && is_digits(number))
}

/// Removes one, unless it is no folder, or another copy uses it.
fn remove(own: &OwnedFd, name: &str) -> Result<bool, ShareError> {
    let Ok(left) = open_folder(own.as_fd(), name, name) else { return Ok(false) };
    if fs::flock(&left, FlockOperation::NonBlockingLockExclusive).is_err() {
        return Ok(false);
    }
    // Another folder may have got the name before the lock was taken.
    let Ok(again) = open_folder(own.as_fd(), name, name) else { return Ok(false) };
    if !is_same(&left, &again) {
        return Ok(false);
    }
    empty_all(&left, name, 0)?;
    match fs::unlinkat(own, name, AtFlags::REMOVEDIR) {
        Ok(()) => Ok(true),
        Err(Errno::NOENT) => Ok(false),
        Err(error) => Err(io_error("remove an old copy")(error.into())),
    }
}

fn is_same(one: &OwnedFd, other: &OwnedFd) -> bool {
    let place = |folder| fs::fstat(folder).map(|stat| (stat.st_dev, stat.st_ino));
    place(one).is_ok_and(|one| place(other) == Ok(one))
}
