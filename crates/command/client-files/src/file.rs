//! Files that others write as well: replaced whole and at once, if their content is the known one.
//!
//! The new content is written to a file of another name in the same folder, and renamed over the
//! old one. So a stop at any moment leaves the old content or the new one, and at most a file
//! `.narthex-…` beside it.

use std::ffi::OsString;
use std::fs::{Metadata, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use narthex_model::command::quoted;
use rustix::fs::{Access, Gid, OFlags, Uid};
use tempfile::NamedTempFile;

use crate::moment::{self, Change};

/// The mode of new files, which may have secrets in them.
const PRIVATE: u32 = 0o600;
/// Number of links to follow, as in the kernel.
const LINKS_MAX: usize = 40;
/// The beginning of the name of an unfinished file.
const UNFINISHED: &str = ".narthex-";
/// Length of a file name that all file systems allow.
const NAME_MAX: usize = 255;

/// The reason for which a file is not written.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// Another program has written the file, created it or removed it.
    #[error("`{}` has changed since it was read; run the command again", path.display())]
    Changed {
        /// The file, with links followed.
        path: PathBuf,
    },
    /// The path is a folder, a pipe, a socket or a device.
    #[error("`{}` is not a regular file; move it away", path.display())]
    NoFile {
        /// The path.
        path: PathBuf,
    },
    /// The mode of the file does not allow this user to write it.
    #[error(
        "`{}` is read-only; allow writing with `chmod u+w {}`, then try again",
        path.display(), pasted(path)
    )]
    ReadOnly {
        /// The file, with links followed.
        path: PathBuf,
    },
    /// The file has further names, which would keep the old content.
    #[error(
        "`{0}` has {count} names (hard links), and a change would reach only this one; make it a \
         file of its own with `cp -p {1} {1}.own && mv {1}.own {1}`, then try again",
        path.display(), pasted(path)
    )]
    HardLinks {
        /// The file, with links followed.
        path: PathBuf,
        /// Number of its names.
        count: u64,
    },
    /// The new file cannot belong to the owner of the old one.
    #[error(
        "`{}` belongs to the user {owner} and the group {group}, which this user cannot give a \
         file to; run the command as that user",
        path.display()
    )]
    Owner {
        /// The file, with links followed.
        path: PathBuf,
        /// Its user.
        owner: u32,
        /// Its group.
        group: u32,
        /// The answer of the system.
        source: io::Error,
    },
    /// A link leads to itself.
    #[error("`{}` is a link that leads nowhere; remove it", path.display())]
    Links {
        /// The link.
        path: PathBuf,
    },
    /// The system refuses.
    #[error("`{}` cannot be written; check its folder, then try again", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The answer of the system.
        source: io::Error,
    },
    /// The system reports that the new file has not got the name of the old one. On a file system
    /// of the network it may have the name all the same.
    #[error("`{}` cannot be written; check its folder, then try again", path.display())]
    Rename {
        /// The file, with links followed.
        path: PathBuf,
        /// The answer of the system.
        source: io::Error,
    },
}

/// Reads a regular file; `None` if it does not exist. A link is followed. Never waits for a pipe.
///
/// # Errors
/// [`FileError::NoFile`] for anything else, and [`FileError::Io`] when the file cannot be read.
pub fn read(path: &Path) -> Result<Option<Vec<u8>>, FileError> {
    let io = |source| FileError::Io { path: path.to_owned(), source };
    let no_file = || FileError::NoFile { path: path.to_owned() };
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let mut options = fs_err::OpenOptions::new();
    options.read(true).options_mut().custom_flags(flags.bits().cast_signed());
    let mut file = match options.open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => {
            // A socket cannot be opened at all.
            let is_other = fs_err::metadata(path).is_ok_and(|found| !found.is_file());
            return Err(if is_other { no_file() } else { io(source) });
        }
    };
    if !file.metadata().map_err(io)?.is_file() {
        return Err(no_file());
    }
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map_err(io)?;
    Ok(Some(bytes))
}

/// Replaces the content of a file if it is still `expected`; `None`: if the file does not exist.
///
/// A link is followed, and stays a link. Mode, user and group of the file are kept; a new file is
/// for its user alone. Extended attributes are not kept, and a file with further hard links is
/// refused.
///
/// # Errors
/// [`FileError::Changed`] when the content is another one, and the other kinds when the file cannot
/// be written. The file is then as it was; only after [`FileError::Rename`] it may be written.
pub fn write_if_unchanged(
    path: &Path,
    expected: Option<&[u8]>,
    new: &[u8],
) -> Result<(), FileError> {
    write_over(path, expected, new, None)
}

/// A new name for the unfinished file beside a file, which cannot be known before.
///
/// # Errors
/// When the path is a link that leads nowhere, or the system gives no random bytes.
pub(crate) fn unfinished(path: &Path) -> Result<PathBuf, FileError> {
    let mut random = [0; 8];
    getrandom::fill(&mut random)
        .map_err(|error| FileError::Io { path: path.to_owned(), source: error.into() })?;
    let name = format!("{UNFINISHED}{}", hex::encode(random));
    Ok(folder_of(&target(path)?).join(name))
}

/// Replaces a file as [`write_if_unchanged`] does, under a known name for the unfinished file. The
/// name counts only in the folder of the file: a link may lead elsewhere by now.
pub(crate) fn write_over(
    path: &Path,
    expected: Option<&[u8]>,
    new: &[u8],
    unfinished: Option<&Path>,
) -> Result<(), FileError> {
    let path = &target(path)?;
    let io = |source| FileError::Io { path: path.clone(), source };
    let old = match fs_err::metadata(path) {
        Ok(metadata) if metadata.is_file() => Some(metadata),
        Ok(_) => return Err(FileError::NoFile { path: path.clone() }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(io(error)),
    };
    check(path, expected)?;
    if old.is_some() && rustix::fs::access(path, Access::WRITE_OK).is_err() {
        return Err(FileError::ReadOnly { path: path.clone() });
    }
    if let Some(count) = old.as_ref().map(MetadataExt::nlink).filter(|count| *count > 1) {
        return Err(FileError::HardLinks { path: path.clone(), count });
    }
    let file = prepare(path, old.as_ref(), new, unfinished)?;
    // Time has passed since the first look.
    check(path, expected)?;
    let renamed = match expected {
        Some(_) => file.persist(path),
        None => file.persist_noclobber(path),
    };
    let renamed = renamed.map(drop).map_err(|error| error.error);
    moment::outcome(Change::Rename, renamed).map_err(|source| match source.kind() {
        io::ErrorKind::AlreadyExists if expected.is_none() => {
            FileError::Changed { path: path.clone() }
        }
        _ => FileError::Rename { path: path.clone(), source },
    })?;
    sync_folder(path);
    Ok(())
}

/// Removes a file if its content is still `expected`, as after an undo of the edit that created it.
/// A link is followed, and stays.
///
/// # Errors
/// [`FileError::Changed`] when the content is another one, and [`FileError::Io`] when the file
/// cannot be removed.
pub fn remove_if_unchanged(path: &Path, expected: &[u8]) -> Result<(), FileError> {
    let path = &target(path)?;
    check(path, Some(expected))?;
    let io = |source| FileError::Io { path: path.clone(), source };
    fs_err::remove_file(path).map_err(io)?;
    sync_folder(path);
    Ok(())
}

/// Copies a file into a folder, once: an existing copy is left as it is. The name of the copy is
/// the whole path of the file, and only its user may read it. The folder is created if needed.
///
/// Gives the path of the copy; `None` if there is no file to copy.
///
/// # Errors
/// [`FileError::Io`] when the file cannot be read, or the copy not be written.
pub fn backup(path: &Path, folder: &Path) -> Result<Option<PathBuf>, FileError> {
    let Some(bytes) = read(path)? else { return Ok(None) };
    let copy = folder.join(copy_name(path));
    let io = |source| FileError::Io { path: copy.clone(), source };
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(io)?;
    if copy.symlink_metadata().is_ok() {
        return Ok(Some(copy));
    }
    let file = prepare(&copy, None, &bytes, None)?;
    match file.persist_noclobber(&copy) {
        Ok(_) => sync_folder(&copy),
        Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(io(error.error)),
    }
    Ok(Some(copy))
}

/// Puts a file, for its user alone, in the place of the old one, at once.
pub(crate) fn replace_private(path: &Path, bytes: &[u8]) -> Result<(), FileError> {
    let io = |source| FileError::Io { path: path.to_owned(), source };
    prepare(path, None, bytes, None)?.persist(path).map_err(|error| io(error.error))?;
    sync_folder(path);
    Ok(())
}

/// The file that a path leads to, which need not exist.
fn target(path: &Path) -> Result<PathBuf, FileError> {
    let mut target = path.to_owned();
    for _ in 0..LINKS_MAX {
        match fs_err::read_link(&target) {
            Ok(next) => {
                target = target.parent().unwrap_or(Path::new("")).join(next);
            }
            // No link, or not there.
            Err(_) => return Ok(target),
        }
    }
    Err(FileError::Links { path: path.to_owned() })
}

fn check(path: &Path, expected: Option<&[u8]>) -> Result<(), FileError> {
    if read(path)?.as_deref() == expected {
        return Ok(());
    }
    Err(FileError::Changed { path: path.to_owned() })
}

/// Writes the new content beside a file, with the mode and owner of the old one.
fn prepare(
    path: &Path,
    old: Option<&Metadata>,
    new: &[u8],
    unfinished: Option<&Path>,
) -> Result<NamedTempFile, FileError> {
    let io = |source| FileError::Io { path: path.to_owned(), source };
    let folder = folder_of(path);
    let name = unfinished.filter(|one| one.parent() == Some(folder)).and_then(Path::file_name);
    let mut builder = tempfile::Builder::new();
    builder.permissions(Permissions::from_mode(PRIVATE)).prefix(UNFINISHED);
    if let Some(name) = name {
        builder.prefix(name).rand_bytes(0);
    }
    let mut file = builder.tempfile_in(folder).map_err(io)?;
    if let Some(old) = old {
        keep_owner(path, old, &file)?;
        let mode = Permissions::from_mode(old.mode() & 0o7777);
        file.as_file().set_permissions(mode).map_err(io)?;
    }
    moment::passed();
    file.write_all(new).map_err(io)?;
    moment::passed();
    file.as_file().sync_all().map_err(io)?;
    Ok(file)
}

fn keep_owner(path: &Path, old: &Metadata, file: &NamedTempFile) -> Result<(), FileError> {
    let (owner, group) = (old.uid(), old.gid());
    let error = |source| FileError::Owner { path: path.to_owned(), owner, group, source };
    let new = file.as_file().metadata().map_err(error)?;
    if (new.uid(), new.gid()) == (owner, group) {
        return Ok(());
    }
    rustix::fs::fchown(file.as_file(), Some(Uid::from_raw(owner)), Some(Gid::from_raw(group)))
        .map_err(|errno| error(errno.into()))
}

/// Makes a change in the folder of a file last, also when the machine stops. A failure takes
/// nothing back, so it is no failure of the change: some file systems cannot do this, and a folder
/// that may be written need not be readable.
fn sync_folder(path: &Path) {
    let synced = fs_err::File::open(folder_of(path)).and_then(|folder| folder.sync_all());
    moment::outcome(Change::Sync, synced).ok();
}

/// The path from the root of the file system.
fn whole(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_unknown| path.to_owned())
}

/// The whole path as a word for a shell.
fn pasted(path: &Path) -> String {
    quoted(&whole(path).to_string_lossy()).into_owned()
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// The whole path as one name, with `%` for `/`. A name that is too long loses its begin, and gets
/// a number made from the whole path.
fn copy_name(path: &Path) -> OsString {
    let name = whole(path).to_string_lossy().replace('%', "%%").replace('/', "%");
    if name.len() <= NAME_MAX {
        return name.into();
    }
    let number = name
        .bytes()
        .fold(0_u64, |hash, byte| hash.wrapping_mul(0x0100_0000_01b3) ^ u64::from(byte));
    let start = name.ceil_char_boundary(name.len() - (NAME_MAX - 17));
    format!("{number:016x}%{}", &name[start..]).into()
}

#[cfg(test)]
mod tests;
