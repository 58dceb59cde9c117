//! The record of all that a set-up did, by which it is undone.
//!
//! A step is recorded before it is made. So a process that ends at any moment leaves a record of
//! each step that was made, and at most one step that was not: an undo finds out which.
//!
//! The record and its backups have texts of clients' files in them, secrets included. They lie in
//! a folder for their user alone.

mod copies;
mod error;
mod step;
mod undo;

use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

pub use copies::Lacking;
pub use error::JournalError;
pub use step::{FileStep, Step};
pub use undo::FileUndone;

use crate::file::FileError;
use crate::rewrite::Rewritten;
use crate::{file, moment};

/// The record in its folder, and the folder of backups beside it.
const RECORD: &str = "journal.json";
const BACKUPS: &str = "backups";

/// The record of a set-up.
#[derive(Debug)]
pub struct Journal {
    folder: PathBuf,
    record: step::Record,
}

impl Journal {
    /// Reads the record of a folder, which need not exist.
    ///
    /// # Errors
    /// When the record cannot be read, or is damaged.
    pub fn open(folder: &Path) -> Result<Self, JournalError> {
        let path = folder.join(RECORD);
        let record = match file::read(&path)? {
            None => step::Record::default(),
            Some(bytes) => serde_json::from_slice(&bytes)
                .map_err(|source| JournalError::Damaged { path, source })?,
        };
        let mut journal = Self { folder: folder.to_owned(), record };
        journal.adopt_copies()?;
        Ok(journal)
    }

    /// The recorded steps, in their order.
    #[must_use]
    pub fn steps(&self) -> &[Step] {
        &self.record.steps
    }

    /// The folder with copies of all files as they were before.
    #[must_use]
    pub fn backups(&self) -> PathBuf {
        self.folder.join(BACKUPS)
    }

    /// The lock of the settings, if a set-up made it.
    #[must_use]
    pub fn lock(&self) -> Option<&Path> {
        self.record.lock.as_deref()
    }

    /// Records that the lock of the settings is made next.
    ///
    /// # Errors
    /// When the record cannot be written.
    pub fn note_lock(&mut self, path: PathBuf) -> Result<(), JournalError> {
        self.record.lock = Some(path);
        self.store()
    }

    /// Records a step that is made next.
    ///
    /// # Errors
    /// When the record cannot be written.
    pub fn note(&mut self, step: Step) -> Result<(), JournalError> {
        self.record.steps.push(step);
        self.store()
    }

    /// Replaces the last step, of which more is known now.
    ///
    /// # Errors
    /// When the record cannot be written.
    pub fn replace_last(&mut self, step: Step) -> Result<(), JournalError> {
        self.record.steps.pop();
        self.note(step)
    }

    /// Forgets a step, by its place: it is undone, or was not made.
    ///
    /// # Errors
    /// When the record cannot be written.
    pub fn forget(&mut self, at: usize) -> Result<(), JournalError> {
        if at < self.record.steps.len() {
            self.record.steps.remove(at);
        }
        self.store()
    }

    /// Forgets all steps that are undone.
    ///
    /// # Errors
    /// When the record cannot be written.
    pub fn forget_all(&mut self, is_undone: impl Fn(&Step) -> bool) -> Result<(), JournalError> {
        self.record.steps.retain(|step| !is_undone(step));
        self.store()
    }

    /// Records that servers work, by their names.
    ///
    /// # Errors
    /// When the record cannot be written.
    pub fn note_working(&mut self, works: impl Fn(&str) -> bool) -> Result<(), JournalError> {
        for step in &mut self.record.steps {
            if let Step::Server { alias, is_unproven, .. } = step
                && works(alias)
            {
                *is_unproven = false;
            }
        }
        self.store()
    }

    /// Forgets the last step: it is undone, or was not made.
    ///
    /// # Errors
    /// When the record cannot be written.
    pub fn forget_last(&mut self) -> Result<(), JournalError> {
        self.forget(self.record.steps.len().saturating_sub(1))
    }

    /// Replaces the content of a file if it is still `expected`; `None`: if the file does not
    /// exist. The file is copied first, and the step recorded.
    ///
    /// # Errors
    /// When the file has changed or cannot be written. It is then as it was, and nothing is
    /// recorded; or the system does not say if the file is written, and the step stays recorded.
    pub fn write(
        &mut self,
        label: &str,
        path: &Path,
        expected: Option<&[u8]>,
        new: &Rewritten,
    ) -> Result<(), JournalError> {
        // An undo may run in another folder.
        let path = &std::path::absolute(path)
            .map_err(|source| FileError::Io { path: path.to_owned(), source })?;
        let unfinished = file::unfinished(path)?;
        let backups = self.next_backups();
        self.create_folder()?;
        let backup = match expected {
            Some(_) => file::backup(path, &backups)?,
            None => None,
        };
        moment::passed();
        let step = FileStep {
            label: label.to_owned(),
            path: path.to_owned(),
            backup,
            before: expected.map(seal),
            after: seal(&new.bytes),
            made: new.made.clone(),
            unfinished: Some(unfinished.clone()),
        };
        self.note(Step::File(Box::new(step.clone())))?;
        moment::passed();
        if let Err(error) = file::write_over(path, expected, &new.bytes, Some(&unfinished)) {
            return self.end_failed(&step, error);
        }
        moment::passed();
        Ok(())
    }

    /// Ends a write with an error, after which the file may be written all the same. The step, the
    /// last one, is forgotten only if it was not made, and its copy goes only if nothing in it is
    /// lost with it.
    fn end_failed(&mut self, step: &FileStep, error: FileError) -> Result<(), JournalError> {
        let now = file::read(&step.path);
        if let Ok(now) = &now {
            let hash = now.as_deref().map(seal);
            if hash == step.before {
                self.forget_last()?;
                return Err(error.into());
            }
            if hash.as_ref() == Some(&step.after) {
                return Ok(());
            }
        }
        if matches!(error, FileError::Rename { .. }) {
            return Err(error.into());
        }
        // Others have written the file, before the copy or after it.
        let copy = self.copy_of(step).and_then(|copy| file::read(&copy).ok().flatten());
        if copy.is_none() || copy != now.ok().flatten() {
            self.keep_copy(step);
        }
        self.forget_last()?;
        Err(error.into())
    }

    /// Removes the record with all backups.
    fn remove(self) -> Result<(), JournalError> {
        match fs_err::remove_dir_all(&self.folder) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(JournalError::Folder { path: self.folder, source: error })
            }
            Ok(()) | Err(_) => Ok(()),
        }
    }

    fn store(&self) -> Result<(), JournalError> {
        self.create_folder()?;
        let path = self.folder.join(RECORD);
        let text = serde_json::to_vec(&self.record)
            .map_err(|source| JournalError::Damaged { path: path.clone(), source })?;
        moment::passed();
        file::replace_private(&path, &text)?;
        moment::passed();
        Ok(())
    }

    fn create_folder(&self) -> Result<(), JournalError> {
        let created = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.folder);
        created.map_err(|source| JournalError::Folder { path: self.folder.clone(), source })
    }
}

/// Hash that equal contents share and other ones do not.
fn seal(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

#[cfg(test)]
mod tests;
