//! Copies of files from before a set-up, and the end of those that no file needs any more.

use std::fs::DirEntry;
use std::io;
use std::path::{Path, PathBuf};

use super::step::{FileStep, Step};
use super::{Journal, JournalError, seal};
use crate::clients::clients;
use crate::edit::Parent;
use crate::file;
use crate::rewrite::parse;

/// The difference between a file after an undo and its copy from before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lacking {
    /// The file has each server of the copy, with the same values.
    Nothing,
    /// Names of entries that the file does not have as they are in the copy.
    Entries(Vec<String>),
    /// The two cannot be compared.
    Unknown,
}

impl Journal {
    /// Compares a file with its copy, after the undo of a step and before the step is forgotten.
    #[must_use]
    pub fn lacking(&self, step: &FileStep) -> Lacking {
        let Some(copy) = self.copy_of(step) else { return Lacking::Nothing };
        let copy = match file::read(&copy) {
            Ok(None) => return Lacking::Nothing,
            Ok(Some(copy)) => copy,
            Err(_) => return Lacking::Unknown,
        };
        let Ok(Some(now)) = file::read(&step.path) else { return Lacking::Unknown };
        if now == copy {
            return Lacking::Nothing;
        }
        match step.before.as_ref() == Some(&seal(&copy)) {
            true => self.lacking_in(step, &copy, &now).unwrap_or(Lacking::Unknown),
            false => Lacking::Unknown,
        }
    }

    /// Compares all places of servers; `None` if one cannot be read.
    fn lacking_in(&self, step: &FileStep, copy: &[u8], now: &[u8]) -> Option<Lacking> {
        let format = step.made.format()?;
        let (copy, now) = (parse(format, copy).ok()?, parse(format, now).ok()?);
        let mut names = Vec::new();
        for (parent, is_edited) in parents(step) {
            let before = match copy.entries(&parent) {
                Ok(entries) => entries,
                // A value of another kind at a place that was not edited is no server.
                Err(_) if !is_edited => continue,
                Err(_) => return None,
            };
            let after = now.entries(&parent).ok()?;
            for entry in before {
                if !after.contains(&entry) && !self.has_earlier(step, &parent, &entry.0) {
                    names.push(entry.0);
                }
            }
        }
        Some(if names.is_empty() { Lacking::Nothing } else { Lacking::Entries(names) })
    }

    /// True if an earlier step of the same file added the entry, and takes it out again.
    fn has_earlier(&self, step: &FileStep, parent: &Parent, name: &str) -> bool {
        self.steps().iter().any(|one| match one {
            Step::File(other) => {
                other.path == step.path && **other != *step && other.made.has_inserted(parent, name)
            }
            Step::Secret { .. } | Step::Server { .. } | Step::Service { .. } => false,
        })
    }

    /// Has the copy of a step outlive the undo. The next change of the record stores this.
    pub fn keep_copy(&mut self, step: &FileStep) {
        let Some(copy) = self.copy_of(step).filter(|copy| copy.exists()) else { return };
        let needed = self.record.needed.get_or_insert_default();
        let name = name_of(&copy);
        if !needed.contains(&name) {
            needed.push(name);
        }
    }

    /// Copies a file as it is now, and has the copy outlive the undo.
    pub(super) fn keep_present(&mut self, path: &Path) -> Result<(), JournalError> {
        let folder = self.next_backups();
        self.create_folder()?;
        if let Some(copy) = file::backup(path, &folder)? {
            self.record.needed.get_or_insert_default().push(name_of(&copy));
            self.store()?;
        }
        Ok(())
    }

    /// The copies that outlive an undo, of earlier undos as well.
    #[must_use]
    pub fn kept_copies(&self) -> Vec<PathBuf> {
        let needed = self.record.needed.iter().flatten();
        needed.map(|name| self.backups().join(name)).filter(|copy| copy.exists()).collect()
    }

    /// Ends an undo: removes the record with all copies, or only the copies that no file needs.
    /// Does nothing while a step is left.
    ///
    /// # Errors
    /// When a file or folder cannot be removed, or the record not be written.
    pub fn finish(mut self) -> Result<(), JournalError> {
        if !self.steps().is_empty() {
            return Ok(());
        }
        let kept = self.kept_copies();
        if kept.is_empty() {
            return self.remove();
        }
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source| JournalError::Folder { path, source }
        };
        for copy in self.copies()?.iter().filter(|copy| !kept.contains(copy)) {
            fs_err::remove_file(copy).map_err(failed(copy))?;
            if let Some(folder) = copy.parent().filter(|folder| is_empty(folder)) {
                fs_err::remove_dir(folder).map_err(failed(folder))?;
            }
        }
        self.record.lock = None;
        self.store()
    }

    /// The copy of a step. The data directory may have moved since the step was recorded.
    #[must_use]
    pub fn copy_of(&self, step: &FileStep) -> Option<PathBuf> {
        let recorded = step.backup.as_ref()?;
        let own = self.backups().join(name_of(recorded));
        Some(if own.exists() { own } else { recorded.clone() })
    }

    /// The folder for the next copy, which does not exist yet: no copy takes the place of another.
    pub(super) fn next_backups(&mut self) -> PathBuf {
        loop {
            self.record.count += 1;
            let folder = self.backups().join(format!("{:04}", self.record.count));
            if folder.symlink_metadata().is_err() {
                return folder;
            }
        }
    }

    /// Keeps the copies that an older narthex has left, which no step of the record names.
    pub(super) fn adopt_copies(&mut self) -> Result<(), JournalError> {
        if self.record.needed.is_some() {
            return Ok(());
        }
        let of_steps: Vec<_> = self.steps().iter().filter_map(backup_name).collect();
        let copies = self.copies()?;
        let names = copies.iter().map(|copy| name_of(copy));
        self.record.needed = Some(names.filter(|name| !of_steps.contains(name)).collect());
        Ok(())
    }

    /// All copies.
    pub(super) fn copies(&self) -> Result<Vec<PathBuf>, JournalError> {
        let backups = self.backups();
        let list = || -> io::Result<Vec<PathBuf>> {
            let mut all = Vec::new();
            for folder in entries(&backups)? {
                if folder.file_type()?.is_dir() {
                    all.extend(entries(&folder.path())?.iter().map(DirEntry::path));
                }
            }
            Ok(all)
        };
        list().map_err(|source| JournalError::Folder { path: backups.clone(), source })
    }
}

/// The places of servers in a file, each with true if the step has edited an entry there.
fn parents(step: &FileStep) -> Vec<(Parent, bool)> {
    let mut parents: Vec<(Parent, bool)> = Vec::new();
    let row = clients().iter().find(|row| row.label() == step.label);
    let of_row = row.map(|row| row.parents("")).unwrap_or_default();
    let edited = step.made.parents().map(|parent| (parent.clone(), true));
    for (parent, is_edited) in edited.chain(of_row.into_iter().map(|parent| (parent, false))) {
        if !parents.iter().any(|(known, _)| *known == parent) {
            parents.push((parent, is_edited));
        }
    }
    parents
}

fn backup_name(step: &Step) -> Option<PathBuf> {
    match step {
        Step::File(file) => file.backup.as_deref().map(name_of),
        Step::Secret { .. } | Step::Server { .. } | Step::Service { .. } => None,
    }
}

/// The last two names of a copy's path, which stay if the data directory moves.
fn name_of(copy: &Path) -> PathBuf {
    let folder = copy.parent().and_then(Path::file_name).unwrap_or_default();
    Path::new(folder).join(copy.file_name().unwrap_or_default())
}

fn is_empty(folder: &Path) -> bool {
    entries(folder).is_ok_and(|entries| entries.is_empty())
}

/// The entries of a folder; none if it does not exist.
fn entries(folder: &Path) -> io::Result<Vec<DirEntry>> {
    match std::fs::read_dir(folder) {
        Ok(entries) => entries.collect(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}
