//! Copies files of one run's folder into another's.
//!
//! Copies are first written into a hidden folder of the destination, and moved from there when all
//! of them exist. Moving is fast, so that hardly ever only a part of them is in place.

use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{self, AtFlags, Mode, OFlags, RenameFlags, ResolveFlags};
use rustix::io::Errno;

use crate::error::io_error;
use crate::folder::{self, Opened, is_passed_over};
use crate::leftovers::{INCOMING, REPLACED, is_taken};
use crate::snapshot::{Copying, FileCopy, copy_out};
use crate::{Folder, ShareError, Snapshot};

/// Greatest depth of a folder that is removed: agents make deeper ones than a stack holds.
const REMOVED_DEPTH: usize = 256;
/// The most names of one folder that is removed.
const REMOVED_NAMES: usize = 1_000_000;
/// The modes of new files and folders: the daemon owns them, and the agent's user can read them.
const FILE: Mode = Mode::from_raw_mode(0o644);
const FOLDER: Mode = Mode::from_raw_mode(0o755);
/// Most names of hidden folders that are tried: some may be left of a daemon that was killed.
const NAMES_TRIED: usize = 1000;

/// The destination of a copy.
#[derive(Debug, Clone, Copy)]
pub struct Destination<'a> {
    /// The folder of a run.
    pub folder: &'a Folder,
    /// The path within it, below which the files are written. Links and hidden folders on the path
    /// are refused.
    pub path: &'a str,
    /// True if the copy replaces the folder at the path. Otherwise it is merged into that folder,
    /// and only files of the same names are replaced. Not for the whole folder.
    pub is_emptied: bool,
    /// True if files keep their paths within their own folder. Otherwise a file has its name as its
    /// path, and a file of a folder its path within that folder.
    pub keeps_paths: bool,
}

/// The result of copying.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Transferred {
    /// Number of files.
    pub files: usize,
    /// Size of the files in bytes.
    pub bytes: u64,
    /// Number of skipped parts: hidden files, links, and the like.
    pub skipped: usize,
}

/// Copies that are put below the destination.
struct Piece {
    place: String,
    snapshot: Snapshot,
    copies: Vec<FileCopy>,
}

/// Copies files and folders of `from` as they are at one time, and puts them below the
/// destination; nothing is written through a link.
pub(crate) fn transfer(
    from: &Folder,
    paths: &[&str],
    to: Destination<'_>,
    copying: Copying<'_>,
) -> Result<Transferred, ShareError> {
    let within = folder::clean(to.path)?;
    if is_passed_over(&within) {
        return Err(ShareError::Hidden { path: within });
    }
    if to.is_emptied && within == "." {
        let why = "it is the whole folder, which cannot be replaced";
        return Err(ShareError::Path { path: within, why });
    }
    // A folder's replacement is made outside of the folder, under its own paths.
    let below = if to.is_emptied { "." } else { &within };
    let (pieces, skipped) = collect(from, paths, (below, to.keeps_paths), copying)?;
    let stage = Stage::new(to.folder, INCOMING)?;
    let moved = put_all(&stage, &pieces, copying).and_then(|()| match to.is_emptied {
        true => stage.replace(&within, copying),
        false => stage.merge(&pieces, copying),
    });
    // The first of both failures has the reason.
    let removed = stage.remove();
    moved.and(removed)?;
    let snapshots = || pieces.iter().map(|piece| &piece.snapshot);
    Ok(Transferred {
        files: snapshots().map(|one| one.files.len()).sum(),
        bytes: snapshots().map(|one| one.total_size).sum(),
        skipped: skipped + snapshots().map(|one| one.skipped_count).sum::<usize>(),
    })
}

/// Copies the files at each path that is not hidden, and returns the number of hidden ones.
fn collect(
    from: &Folder,
    paths: &[&str],
    (below, keeps_paths): (&str, bool),
    copying: Copying<'_>,
) -> Result<(Vec<Piece>, usize), ShareError> {
    let (mut left, mut pieces, mut skipped) = (*copying.limits, Vec::new(), 0);
    for path in paths {
        let path = folder::clean(path)?;
        if is_passed_over(&path) {
            skipped += 1;
            continue;
        }
        let place = match keeps_paths {
            true => place(from, &path, below)?,
            false => below.to_owned(),
        };
        let (snapshot, copies) = copy_out(from, &path, Copying { limits: &left, ..copying })?;
        left.share_bytes = left.share_bytes.saturating_sub(snapshot.total_size);
        left.files = left.files.saturating_sub(snapshot.files.len());
        pieces.push(Piece { place, snapshot, copies });
    }
    match paths.first() {
        Some(path) if pieces.is_empty() => Err(ShareError::Hidden { path: (*path).to_owned() }),
        _ => Ok((pieces, skipped)),
    }
}

fn put_all(stage: &Stage<'_>, pieces: &[Piece], copying: Copying<'_>) -> Result<(), ShareError> {
    for Piece { place, snapshot, copies } in pieces {
        let base = folder_at(stage.folder.as_fd(), place, place)?;
        let by_hash: HashMap<_, _> = copies.iter().map(|copy| (copy.hash, copy)).collect();
        for file in &snapshot.files {
            copying.stop.check()?;
            put(&base, place, &file.path, by_hash[&file.hash])?;
        }
    }
    Ok(())
}

/// A hidden folder of a destination, which is locked as long.
struct Stage<'a> {
    of: &'a Folder,
    name: String,
    folder: OwnedFd,
}

impl<'a> Stage<'a> {
    fn new(of: &'a Folder, prefix: &str) -> Result<Self, ShareError> {
        static NUMBERS: AtomicU64 = AtomicU64::new(0);
        for _ in 0..NAMES_TRIED {
            let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
            let name = format!("{prefix}-{}-{number}", std::process::id());
            match fs::mkdirat(of.fd(), &name, FOLDER) {
                Ok(()) => match open_folder(of.fd(), &name, &name) {
                    Ok(folder) if is_taken(&folder) => return Ok(Self { of, name, folder }),
                    // Another process took the new folder for a leftover.
                    Ok(_) | Err(ShareError::NotFound { .. }) => {}
                    Err(error) => return Err(error),
                },
                Err(Errno::EXIST) => {}
                Err(error) => return Err(refused(error, ".")),
            }
        }
        Err(ShareError::Outside { path: prefix.to_owned() })
    }

    /// Replaces the folder at `within` by it: at one moment, where the file system can exchange two
    /// folders.
    fn replace(&self, within: &str, copying: Copying<'_>) -> Result<(), ShareError> {
        let (above, name) = within.rsplit_once('/').unwrap_or((".", within));
        let above = folder_at(self.of.fd(), above, within)?;
        let there = match open_folder(above.as_fd(), name, within) {
            Ok(there) => Some(there),
            Err(ShareError::NotFound { .. }) => None,
            Err(error) => return Err(error),
        };
        // Locks the old folder so that searches for leftovers pass it over in its new place. A
        // folder that another process has locked is passed over as well.
        let _is_locked = there.as_ref().map(is_taken);
        let old = Self::new(self.of, REPLACED)?;
        let replaced = copying.stop.settle().and_then(|()| {
            let (own, place) = ((self.of.fd(), &*self.name), (above.as_fd(), name));
            let aside = (old.folder.as_fd(), name);
            if there.is_none() {
                return rename(own, place, within);
            }
            if exchange(own, place, within)? {
                return rename(own, aside, within);
            }
            rename(place, aside, within)?;
            rename(own, place, within).or_else(|error| {
                rename(aside, place, within)?;
                Err(error)
            })
        });
        let removed = old.remove();
        replaced.and(removed)
    }

    /// Moves the files of it to where they belong, once it is known that nothing is in their way.
    fn merge(&self, pieces: &[Piece], copying: Copying<'_>) -> Result<(), ShareError> {
        let mut paths = BTreeSet::new();
        for Piece { place, snapshot, .. } in pieces {
            paths.extend(snapshot.files.iter().map(|file| match &**place {
                "." => file.path.clone(),
                place => format!("{place}/{}", file.path),
            }));
        }
        for path in &paths {
            self.check_place(path)?;
        }
        copying.stop.settle()?;
        for path in &paths {
            let (above, name) = path.rsplit_once('/').unwrap_or((".", path));
            let from = folder_at(self.folder.as_fd(), above, path)?;
            let to = folder_at(self.of.fd(), above, path)?;
            rename((from.as_fd(), name), (to.as_fd(), name), path)?;
        }
        Ok(())
    }

    /// Checks that a file can come to a path: no link leads to it, and no folder is there.
    fn check_place(&self, path: &str) -> Result<(), ShareError> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        for above in path.match_indices('/').map(|(at, _)| &path[..at]) {
            match open_folder(self.of.fd(), above, path) {
                Ok(_) => {}
                Err(ShareError::NotFound { .. }) => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        let there = match fs::openat2(self.of.fd(), path, flags, Mode::empty(), resolve) {
            Ok(there) => there,
            Err(Errno::NOENT) => return Ok(()),
            Err(error) => return Err(refused(error, path)),
        };
        let stat = fs::fstat(&there).map_err(|error| refused(error, path))?;
        match fs::FileType::from_raw_mode(stat.st_mode) {
            fs::FileType::Directory => Err(ShareError::NotAFile { path: path.to_owned() }),
            _ => Ok(()),
        }
    }

    /// Removes it, if it is still where it was.
    fn remove(self) -> Result<(), ShareError> {
        match open_folder(self.of.fd(), &self.name, &self.name) {
            Ok(folder) => empty_all(&folder, &self.name, 0)?,
            Err(ShareError::NotFound { .. }) => return Ok(()),
            Err(error) => return Err(error),
        }
        match fs::unlinkat(self.of.fd(), &self.name, AtFlags::REMOVEDIR) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(io_error("empty a folder")(error.into())),
        }
    }
}

/// The place below `within` of a path that keeps its folders.
fn place(from: &Folder, path: &str, within: &str) -> Result<String, ShareError> {
    let path = folder::clean(path)?;
    let own = match from.at(&path)? {
        Opened::Folder(_) => path.as_str(),
        Opened::File(..) => path.rsplit_once('/').map_or(".", |(above, _)| above),
    };
    Ok(match own {
        "." => within.to_owned(),
        own => format!("{within}/{own}"),
    })
}

/// Writes one file below a folder.
fn put(base: &OwnedFd, within: &str, path: &str, copy: &FileCopy) -> Result<(), ShareError> {
    let shown = format!("{within}/{path}");
    let (above, name) = path.rsplit_once('/').unwrap_or((".", path));
    let folder = folder_at(base.as_fd(), above, &shown)?;
    match fs::unlinkat(&folder, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => {}
        Err(Errno::ISDIR) => return Err(ShareError::NotAFile { path: shown }),
        Err(error) => return Err(io_error("replace a file")(error.into())),
    }
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let written = fs::openat2(&folder, name, flags, FILE, within_alone());
    let mut written = File::from(written.map_err(|error| refused(error, &shown))?);
    let copied =
        fs_err::File::open(&copy.at).and_then(|mut from| io::copy(&mut from, &mut written));
    copied.map(drop).map_err(io_error("copy a file"))
}

/// Opens the folder at `path`; creates each missing part.
fn folder_at(from: BorrowedFd<'_>, path: &str, shown: &str) -> Result<OwnedFd, ShareError> {
    let mut at = open_folder(from, ".", shown)?;
    for part in path.split('/').filter(|part| *part != ".") {
        match fs::mkdirat(&at, part, FOLDER) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(refused(error, shown)),
        }
        at = open_folder(at.as_fd(), part, shown)?;
    }
    Ok(at)
}

pub(crate) fn open_folder(
    from: BorrowedFd<'_>,
    path: &str,
    shown: &str,
) -> Result<OwnedFd, ShareError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let opened = fs::openat2(from, path, flags, Mode::empty(), within_alone());
    opened.map_err(|error| refused(error, shown))
}

/// Moves a file to a name, in the place of a file that has it.
fn rename(
    from: (BorrowedFd<'_>, &str),
    to: (BorrowedFd<'_>, &str),
    shown: &str,
) -> Result<(), ShareError> {
    fs::renameat(from.0, from.1, to.0, to.1).map_err(|error| match error {
        Errno::ISDIR => ShareError::NotAFile { path: shown.to_owned() },
        error => refused(error, shown),
    })
}

/// Exchanges two folders at one moment. Returns `false` and changes nothing if the file system
/// cannot.
fn exchange(
    one: (BorrowedFd<'_>, &str),
    other: (BorrowedFd<'_>, &str),
    shown: &str,
) -> Result<bool, ShareError> {
    match fs::renameat_with(one.0, one.1, other.0, other.1, RenameFlags::EXCHANGE) {
        Ok(()) => Ok(true),
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => Ok(false),
        Err(error) => Err(refused(error, shown)),
    }
}

pub(crate) fn empty_all(folder: &OwnedFd, path: &str, depth: usize) -> Result<(), ShareError> {
    let failed = |error: io::Error| io_error("empty a folder")(error);
    let names = folder::names(folder, REMOVED_NAMES).map_err(failed)?;
    let Some(names) = names.filter(|_| depth < REMOVED_DEPTH) else {
        return Err(ShareError::Outside { path: path.to_owned() });
    };
    for name in names {
        match fs::unlinkat(folder, &name[..], AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => continue,
            // Errors of systems for a folder.
            Err(Errno::ISDIR | Errno::PERM) => {}
            Err(error) => return Err(failed(error.into())),
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let inner = fs::openat2(folder, &name[..], flags, Mode::empty(), within_alone());
        empty_all(&inner.map_err(|error| refused(error, path))?, path, depth + 1)?;
        fs::unlinkat(folder, &name[..], AtFlags::REMOVEDIR)
            .map_err(|error| failed(error.into()))?;
    }
    Ok(())
}

/// No path is followed out of a folder, nor through any link.
fn within_alone() -> ResolveFlags {
    ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS | ResolveFlags::NO_SYMLINKS
}

fn refused(error: Errno, path: &str) -> ShareError {
    let path = path.to_owned();
    match error {
        Errno::XDEV | Errno::LOOP => ShareError::Outside { path },
        Errno::NOTDIR => ShareError::NotAFile { path },
        Errno::NOENT => ShareError::NotFound { path },
        Errno::ACCESS | Errno::PERM => ShareError::Unreadable { path },
        Errno::NOSYS => ShareError::Unsupported,
        error => io_error("write into a folder")(error.into()),
    }
}

#[cfg(test)]
mod tests;
