//! Removes a data directory with all that narthex has written into it.
//!
//! A directory with the marker was made by narthex, and its folders go with all that is in them. A
//! directory of an earlier version has no marker: it counts as narthex's own if its store is one of
//! narthex and each name in it is one that narthex uses. Anything else, such as the folder of a
//! project that `--data` named, is refused.

use std::{
    io,
    path::{Path, PathBuf},
};

use fs_err as fs;
use narthex_model::{ErrorKind, SessionId, command::quoted};

use super::{
    DataDir, FILES, FOLDERS, SETUP,
    marker::{MARKER, is_marked},
    unless_absent,
};
use crate::{Failure, settings_files::is_settings_file};

const LOCK: &str = "daemon.lock";
const STORE: &str = "store.db";
/// Folders outside of [`FOLDERS`]: the daemon's sockets, and settings that a restore has left
/// because newer ones exist.
const MORE_FOLDERS: [&str; 2] = ["run", "restored"];
/// Files that are replaced whole, and logs.
const MORE_FILES: [&str; 8] = [
    MARKER,
    "daemon.json",
    "registry-cache.json",
    "service.json",
    "setup.lock",
    "approvals.changed",
    "daemon.log.old",
    "mount.log",
];
/// The beginnings of the names of files that a killed process has not finished.
const UNFINISHED: [&str; 2] = [".narthex-", ".key-ring-"];
/// The first bytes of a SQLite file that is a store of narthex: the format, and at its place the
/// mark of the application.
const SQLITE: &[u8] = b"SQLite format 3\0";
const APPLICATION: (usize, &[u8]) = (68, b"nrtx");
const STORE_HEADER: u64 = 72;

/// The parts of a data directory that a removal deletes, and those that stay.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Removal {
    /// The directory itself comes last, if nothing stays in it.
    pub deleted: Vec<PathBuf>,
    pub left: Vec<Left>,
}

/// A file or folder that stays, and the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Left {
    pub path: PathBuf,
    pub reason: String,
}

/// A file or folder in the directory.
struct Entry {
    path: PathBuf,
    name: String,
    is_folder: bool,
    is_known: bool,
}

impl DataDir {
    /// The removal that [`DataDir::remove`] makes, which changes nothing yet. The copies of a
    /// set-up count as deleted unless `keeps_copies`.
    ///
    /// # Errors
    /// When narthex has not made the directory, or it cannot be read.
    pub fn removal(&self, keeps_copies: bool) -> Result<Removal, Failure> {
        let is_link = self.is_link();
        let mut removal = match self.target()? {
            Some(target) => target.own_removal(keeps_copies)?,
            None => Removal::default(),
        };
        if is_link && removal.left.is_empty() {
            removal.deleted.push(self.path.clone());
        }
        Ok(removal)
    }

    /// Removes the files and folders of narthex, and the directory if nothing else is in it. The
    /// copies of files from before a set-up stay if an undo has not used them all.
    ///
    /// # Errors
    /// When a daemon uses the directory, narthex has not made it, or something cannot be removed.
    pub fn remove(&self) -> Result<Removal, Failure> {
        let removal = self.removal(true)?;
        let is_link = self.is_link();
        if let Some(target) = self.target()?
            && !removal.deleted.is_empty()
        {
            let removal = target.remove_own()?;
            if !removal.left.is_empty() {
                return Ok(removal);
            }
        }
        if is_link {
            unless_absent(fs::remove_file(&self.path))?;
        }
        Ok(removal)
    }

    fn is_link(&self) -> bool {
        fs::symlink_metadata(&self.path).is_ok_and(|found| found.is_symlink())
    }

    /// The directory itself, if the path is a link to it; `None` if there is none.
    fn target(&self) -> Result<Option<Self>, Failure> {
        match fs::canonicalize(&self.path) {
            Ok(path) => Ok(Some(Self { path })),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn own_removal(&self, keeps_copies: bool) -> Result<Removal, Failure> {
        let entries = self.entries()?;
        let mut removal = Removal::default();
        if entries.iter().any(|entry| entry.is_known) && !self.is_own(&entries)? {
            return Err(self.refused(&entries));
        }
        let keeps_copies = keeps_copies && has_entries(&self.setup_dir().join("backups"))?;
        for Entry { path, name, is_known, .. } in entries {
            let reason = match name.as_str() {
                _ if !is_known => "it is not of narthex".to_owned(),
                SETUP if keeps_copies => format!(
                    "it has the only copies of files from before the set-up; delete it with \
                     `rm -r {}`",
                    quoted(&path.to_string_lossy())
                ),
                // The directory is still narthex's own then.
                MARKER if keeps_copies => continue,
                _ => {
                    removal.deleted.push(path);
                    continue;
                }
            };
            removal.left.push(Left { path, reason });
        }
        if removal.left.is_empty() {
            removal.deleted.push(self.path.clone());
        }
        Ok(removal)
    }

    /// Removes this directory, which is no link, while no daemon can start in it.
    fn remove_own(&self) -> Result<Removal, Failure> {
        let lock = self.locked_file(std::thread::yield_now)?;
        lock.set_len(0)?;
        let mut removal = self.own_removal(true)?;
        for path in &removal.deleted {
            if *path == self.path {
                continue;
            }
            match fs::symlink_metadata(path) {
                Ok(found) if found.is_dir() => unless_absent(fs::remove_dir_all(path))?,
                Ok(_) => unless_absent(fs::remove_file(path))?,
                Err(error) => unless_absent(Err(error))?,
            }
        }
        drop(lock);
        if !removal.left.is_empty() {
            return Ok(removal);
        }
        match fs::remove_dir(&self.path) {
            // Such as a mount point.
            Err(error) if is_kept_by_system(&error) => {
                removal.deleted.pop();
                let reason = format!("it is empty now, and the system keeps it: {error}");
                removal.left.push(Left { path: self.path.clone(), reason });
            }
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => {
                let text = format!(
                    "{} was removed, but another program has written into it since; end that \
                     program, then run the command again",
                    self.path.display()
                );
                return Err(Failure::new(ErrorKind::Conflict, text));
            }
            removed => unless_absent(removed)?,
        }
        Ok(removal)
    }

    /// Lists the directory in the order of removal: the entries that prove narthex's ownership come
    /// late, the lock last.
    fn entries(&self) -> Result<Vec<Entry>, Failure> {
        let mut entries = Vec::new();
        for entry in fs::read_dir(&self.path)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let is_folder = entry.file_type()?.is_dir();
            let is_known = match is_folder {
                true => FOLDERS.iter().chain(&MORE_FOLDERS).any(|known| **known == *name),
                false => {
                    FILES.iter().chain(&MORE_FILES).any(|known| **known == *name)
                        || UNFINISHED.iter().any(|known| name.starts_with(known))
                }
            };
            entries.push(Entry { path: entry.path(), name, is_folder, is_known });
        }
        let late = [STORE, MARKER, LOCK];
        let place = |name: &str| late.iter().position(|one| *one == name);
        entries.sort_by(|a, b| (place(&a.name), &a.name).cmp(&(place(&b.name), &b.name)));
        Ok(entries)
    }

    /// True if the folders of the directory are narthex's with all that is in them.
    fn is_own(&self, entries: &[Entry]) -> Result<bool, Failure> {
        if is_marked(&self.path) {
            return Ok(true);
        }
        if let [Entry { path, name, .. }] = entries
            && name == LOCK
        {
            // The rest of a removal that was killed.
            return Ok(fs::symlink_metadata(path)?.len() == 0);
        }
        if entries.iter().any(|entry| !entry.is_known) || !is_store(&self.path.join(STORE)) {
            return Ok(false);
        }
        for Entry { path, name, .. } in entries.iter().filter(|entry| entry.is_folder) {
            for inner in fs::read_dir(path)? {
                if !is_own_name(name, &inner?)? {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    fn refused(&self, entries: &[Entry]) -> Failure {
        let known = entries.iter().filter(|entry| entry.is_known);
        let names: Vec<_> =
            known.map(|entry| quoted(&entry.path.to_string_lossy()).into_owned()).collect();
        let text = format!(
            "nothing was removed: narthex has not made the folder {0}, which has no `{MARKER}` and \
             more in it than narthex writes; leave out --delete-data, then look at all that may be \
             narthex's, and delete its own: `rm -r {1}`",
            self.path.display(),
            names.join(" ")
        );
        Failure::new(ErrorKind::Conflict, text)
    }
}

/// True if narthex gives this name to files or folders in one of its folders.
fn is_own_name(folder: &str, entry: &fs::DirEntry) -> Result<bool, Failure> {
    let name = entry.file_name();
    let Some(name) = name.to_str() else { return Ok(false) };
    Ok(match folder {
        "audit" => name.starts_with("audit"),
        "shares" => matches!(name, "workspaces" | "temporary"),
        "executors" => matches!(name, "instance" | "instance.new" | "runs"),
        SETUP => matches!(name, "journal.json" | "backups") || name.starts_with(UNFINISHED[0]),
        "run" => name.ends_with(".sock") || name == "sockets.lock",
        "restored" => is_settings_file(name),
        "folders" => holds_sessions(entry)?,
        _ => false,
    })
}

/// True for the folder of a workspace with the folders of its sessions.
fn holds_sessions(entry: &fs::DirEntry) -> Result<bool, Failure> {
    if !entry.file_type()?.is_dir() {
        return Ok(false);
    }
    for session in fs::read_dir(entry.path())? {
        if session?.file_name().to_str().and_then(SessionId::parse).is_none() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// True if the file is a store of narthex.
fn is_store(file: &Path) -> bool {
    let (start, mark) = APPLICATION;
    narthex_private::read(file, STORE_HEADER).is_ok_and(|header| {
        header.starts_with(SQLITE) && header.get(start..).is_some_and(|rest| rest == mark)
    })
}

/// True if only the folder around this one, or a mount, keeps it from being removed.
fn is_kept_by_system(error: &io::Error) -> bool {
    use io::ErrorKind::{PermissionDenied, ReadOnlyFilesystem, ResourceBusy};
    matches!(error.kind(), PermissionDenied | ReadOnlyFilesystem | ResourceBusy)
}

fn has_entries(folder: &Path) -> Result<bool, Failure> {
    match fs::read_dir(folder) {
        Ok(mut entries) => Ok(entries.next().is_some()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests;
