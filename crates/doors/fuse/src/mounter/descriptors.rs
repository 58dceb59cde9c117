//! The descriptors that this process inherited from its parent: locks, pipes, sockets.
//!
//! A program that it starts would inherit them as well, and hold them for longer. Descriptors that
//! this process opens itself are closed there anyhow.

use std::{
    io,
    os::fd::{BorrowedFd, RawFd},
};

use fs_err as fs;
use rustix::io::{Errno, FdFlags, fcntl_setfd};

/// The last one of the three that a program is always given.
const STANDARD_ERROR: RawFd = 2;

/// Keeps programs that are started from now on from inheriting any descriptor of ours, but those
/// three.
///
/// # Errors
/// When the kernel does not list the descriptors.
#[expect(unsafe_code, reason = "descriptors that were inherited are known by their number alone")]
pub(crate) fn keep() -> io::Result<()> {
    for entry in fs::read_dir("/proc/self/fd")? {
        let number = entry?.file_name().to_str().and_then(|name| name.parse().ok());
        let Some(number) = number.filter(|number| *number > STANDARD_ERROR) else { continue };
        // SAFETY: the number is one, and is used for this one flag alone, which all descriptors of
        // this process are to have; it is neither read, written nor closed by it. If another
        // thread has closed it meanwhile, the kernel reports that and does nothing.
        let descriptor = unsafe { BorrowedFd::borrow_raw(number) };
        match fcntl_setfd(descriptor, FdFlags::CLOEXEC) {
            Ok(()) | Err(Errno::BADF) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}
