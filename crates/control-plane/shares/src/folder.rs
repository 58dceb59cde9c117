//! The folder of a run, and the opening of its files.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{self, Dir, FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use crate::ShareError;
use crate::error::io_error;

/// The longest path, in bytes.
const PATH_MAX: usize = 4096;
/// Most attempts to open a path while parts of it are renamed.
const RETRIES: usize = 64;

/// The folder of a run, held open: it stays the same folder even if its path changes.
#[derive(Debug)]
pub struct Folder(OwnedFd);

/// An opened file or folder: never a pipe, a socket or a device.
#[derive(Debug)]
pub(crate) enum Opened {
    /// A file, and its length in bytes when it was opened.
    File(OwnedFd, u64),
    Folder(OwnedFd),
}

/// The reason for which a path in a folder was not opened.
#[derive(Debug)]
pub(crate) enum Refused {
    Outside,
    Link,
    NotFound,
    Unreadable,
    NotAFile,
    Failed(ShareError),
}

impl Folder {
    /// Opens the folder at `path`. Links on the path are followed, as operators chose it.
    ///
    /// # Errors
    /// When the folder does not exist or cannot be read.
    pub fn open(path: &Path) -> Result<Self, ShareError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = fs::open(path, flags, Mode::empty());
        opened.map(Self).map_err(|error| io_error("open the folder of this run")(error.into()))
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    /// Opens the file or folder at `path`, which [`clean`] has made. Links are followed as long as
    /// they stay within.
    pub(crate) fn at(&self, path: &str) -> Result<Opened, ShareError> {
        let told = || path.to_owned();
        open(&self.0, path.as_bytes(), ResolveFlags::empty()).map_err(|refused| match refused {
            Refused::Outside | Refused::Link => ShareError::Outside { path: told() },
            Refused::NotFound => ShareError::NotFound { path: told() },
            Refused::Unreadable => ShareError::Unreadable { path: told() },
            Refused::NotAFile => ShareError::NotAFile { path: told() },
            Refused::Failed(error) => error,
        })
    }
}

/// Opens the entry `name` of `folder`; a link is refused wherever it leads.
pub(crate) fn entry(folder: &OwnedFd, name: &[u8]) -> Result<Opened, Refused> {
    open(folder, name, ResolveFlags::NO_SYMLINKS)
}

/// The names in `folder`, in their order; `None` where there are more than `max`.
pub(crate) fn names(folder: &OwnedFd, max: usize) -> io::Result<Option<Vec<Vec<u8>>>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(folder)? {
        let name = entry?.file_name().to_bytes().to_vec();
        if name == b"." || name == b".." {
            continue;
        }
        if names.len() == max {
            return Ok(None);
        }
        names.push(name);
    }
    names.sort_unstable();
    Ok(Some(names))
}

/// The path as its components alone, or `.`; refuses parts that could only lead outside.
///
/// # Errors
/// When the text is absolute, has `..` or a control character, or is too long or empty.
pub(crate) fn clean(path: &str) -> Result<String, ShareError> {
    let refuse = |why| Err(ShareError::Path { path: path.chars().take(200).collect(), why });
    if path.is_empty() {
        return refuse("it is empty");
    }
    if path.len() > PATH_MAX {
        return refuse("it is too long");
    }
    if path.starts_with('/') {
        return refuse("it begins with `/`");
    }
    if path.chars().any(char::is_control) {
        return refuse("it has a control character");
    }
    let parts: Vec<_> = path.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
    if parts.contains(&"..") {
        return refuse("it has `..`");
    }
    Ok(if parts.is_empty() { ".".to_owned() } else { parts.join("/") })
}

/// The canonical spelling of a path: without `.`, and without double or trailing `/`. `None` for a
/// text that is no path within a folder.
#[must_use]
pub fn path_spelling(path: &str) -> Option<String> {
    clean(path).ok()
}

/// Names of folders with files that tools can make again.
pub(crate) const MADE_AGAIN: [&[u8]; 2] = [b"node_modules", b"__pycache__"];

/// True if a path that [`clean`] has made leads to, or through, a part that folders pass over.
pub(crate) fn is_passed_over(path: &str) -> bool {
    let is_hidden = |part: &str| part != "." && part.starts_with('.');
    path.split('/').any(|part| is_hidden(part) || MADE_AGAIN.contains(&part.as_bytes()))
}

/// Opens a file or folder in a run's folder, without leaving the folder.
fn open(from: impl AsFd, path: &[u8], more: ResolveFlags) -> Result<Opened, Refused> {
    // A pipe without a writer must not block the open, and a terminal must not become this
    // process's own.
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS | more;
    let mut left = RETRIES;
    let opened = loop {
        match fs::openat2(&from, path, flags, Mode::empty(), resolve) {
            // The kernel could not tell whether a `..` of a link stayed within.
            Err(Errno::AGAIN) if left > 0 => left -= 1,
            other => break other.map_err(refused)?,
        }
    };
    let failed = |error: Errno| Refused::Failed(io_error("look at a file")(error.into()));
    let stat = fs::fstat(&opened).map_err(failed)?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => {
            Ok(Opened::File(opened, u64::try_from(stat.st_size).unwrap_or_default()))
        }
        FileType::Directory => Ok(Opened::Folder(opened)),
        _ => Err(Refused::NotAFile),
    }
}

fn refused(error: Errno) -> Refused {
    match error {
        Errno::XDEV => Refused::Outside,
        Errno::LOOP => Refused::Link,
        Errno::NOENT | Errno::NOTDIR | Errno::NAMETOOLONG => Refused::NotFound,
        Errno::ACCESS | Errno::PERM => Refused::Unreadable,
        // A socket, or a device without a driver.
        Errno::NXIO | Errno::NODEV => Refused::NotAFile,
        Errno::NOSYS => Refused::Failed(ShareError::Unsupported),
        error => Refused::Failed(io_error("open a file")(error.into())),
    }
}
