//! Undoing of written files.

use super::step::{FileStep, Step};
use super::{Journal, JournalError, seal};
use crate::rewrite::{TakenBack, take_back};
use crate::{file, moment};

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
            file::write_over(path, Some(&now), &bytes, step.unfinished.as_deref())?;
        }
        moment::passed();
        Ok(match step.before == Some(seal(&bytes)) {
            true => FileUndone::Restored,
            false => FileUndone::TakenOut { kept },
        })
    }

    /// Removes the files that a process left beside files of the set-up when it was killed, by
    /// their recorded names. A record without names is of an older narthex: its files stay.
    fn remove_unfinished(&self) {
        let recorded = self.steps().iter().filter_map(|step| match step {
            Step::File(file) => file.unfinished.as_deref(),
            Step::Secret { .. } | Step::Server { .. } | Step::Service { .. } => None,
        });
        for path in recorded {
            if fs_err::symlink_metadata(path).is_ok_and(|found| found.is_file()) {
                // A file that stays harms nothing.
                fs_err::remove_file(path).ok();
            }
        }
    }
}

/// Puts the earlier content back, or removes a file that was not there; `None` if the copy of the
/// file is not the earlier content any more.
fn restore(step: &FileStep, now: &[u8]) -> Result<Option<FileUndone>, JournalError> {
    match (&step.before, &step.backup) {
        (None, _) => file::remove_if_unchanged(&step.path, now)?,
        (Some(before), Some(backup)) => {
            let bytes = file::read(backup)?.filter(|bytes| seal(bytes) == *before);
            let Some(bytes) = bytes else { return Ok(None) };
            file::write_over(&step.path, Some(now), &bytes, step.unfinished.as_deref())?;
        }
        (Some(_), None) => return Ok(None),
    }
    Ok(Some(FileUndone::Restored))
}
