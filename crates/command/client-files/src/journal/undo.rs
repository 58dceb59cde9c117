//! Undoing of written files.

use std::path::Path;

use super::step::{FileStep, Step};
use super::{Journal, JournalError, seal};
use crate::rewrite::{TakenBack, take_back};
use crate::{file, moment};

/// The beginning of the names of unfinished files, and the length of such a name.
const UNFINISHED: &str = ".narthex-";
const UNFINISHED_LENGTH: usize = UNFINISHED.len() + 6;

/// The outcome of an undo of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileUndone {
    /// The file is as it was before, byte for byte.
    Restored,
    /// The set-up did not write the file, or its step is undone already.
    NotMade,
    /// Others have written the file since. The entries of the set-up are taken out, and the rest
    /// stays. `kept` are entries that others have changed, which stay as well.
    TakenOut {
        /// Names of entries.
        kept: Vec<String>,
    },
    /// Others have removed the file since.
    Gone,
}

impl Journal {
    /// Undoes a written file. The step stays recorded: call [`Journal::forget_last`] next.
    ///
    /// # Errors
    /// When the file cannot be read or written, or is no text of its format any more. It is then
    /// as it was.
    pub fn undo(&self, step: &FileStep) -> Result<FileUndone, JournalError> {
        self.remove_unfinished();
        let path = &step.path;
        let Some(now) = file::read(path)? else {
            return Ok(match step.before {
                None => FileUndone::NotMade,
                Some(_) => FileUndone::Gone,
            });
        };
        let hash = seal(&now);
        if step.before.as_ref() == Some(&hash) {
            return Ok(FileUndone::NotMade);
        }
        moment::passed();
        if hash == step.after
            && let Some(outcome) = restore(step, &now)?
        {
            moment::passed();
            return Ok(outcome);
        }
        let fault = |source| JournalError::Edit { path: path.clone(), source };
        let TakenBack { bytes, kept } = take_back(&now, &step.made).map_err(fault)?;
        if bytes != now {
            file::write_if_unchanged(path, Some(&now), &bytes)?;
        }
        moment::passed();
        Ok(match step.before == Some(seal(&bytes)) {
            true => FileUndone::Restored,
            false => FileUndone::TakenOut { kept },
        })
    }

    /// Removes files that a process left beside files of the set-up when it was killed.
    fn remove_unfinished(&self) {
        let files = self.steps().iter().filter_map(|step| match step {
            Step::File(file) => Some(file.path.as_path()),
            Step::Secret { .. } | Step::Server { .. } | Step::Service { .. } => None,
        });
        for folder in files.filter_map(real_folder) {
            let Ok(entries) = fs_err::read_dir(&folder) else { continue };
            for entry in entries.filter_map(Result::ok) {
                let name = entry.file_name();
                let name = name.to_string_lossy();
                let is_unfinished = name.starts_with(UNFINISHED) && name.len() == UNFINISHED_LENGTH;
                if is_unfinished && entry.file_type().is_ok_and(|kind| kind.is_file()) {
                    // A file that stays harms nothing.
                    fs_err::remove_file(entry.path()).ok();
                }
            }
        }
    }
}

/// The folder of a file, with links followed.
fn real_folder(path: &Path) -> Option<std::path::PathBuf> {
    let real = fs_err::canonicalize(path).ok();
    let path = real.as_deref().unwrap_or(path);
    path.parent().map(Path::to_owned)
}

/// Puts the earlier content back, or removes a file that was not there; `None` if the copy of the
/// file is not the earlier content any more.
fn restore(step: &FileStep, now: &[u8]) -> Result<Option<FileUndone>, JournalError> {
    match (&step.before, &step.backup) {
        (None, _) => file::remove_if_unchanged(&step.path, now)?,
        (Some(before), Some(backup)) => {
            let bytes = file::read(backup)?.filter(|bytes| seal(bytes) == *before);
            let Some(bytes) = bytes else { return Ok(None) };
            file::write_if_unchanged(&step.path, Some(now), &bytes)?;
        }
        (Some(_), None) => return Ok(None),
    }
    Ok(Some(FileUndone::Restored))
}
