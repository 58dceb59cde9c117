//! Undoing of written files.

use super::step::{FileStep, Step};
use super::{Journal, JournalError, seal};
use crate::edit::Format;
use crate::rewrite::{TakenBack, parse, take_back};
use crate::{file, moment};

/// The content of a file of JSON that has no entry any more.
const EMPTY: &[u8] = b"{}\n";

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
    /// Undoes a written file. The step stays recorded: call [`Journal::forget_last`] next. A file
    /// that the step made is removed once it has nothing in it but the step's own entries.
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
            && let Some(outcome) = self.restore(step, &now)?
        {
            moment::passed();
            return Ok(outcome);
        }
        let fault = |source| JournalError::Edit { path: path.clone(), source };
        let TakenBack { bytes, kept } = take_back(&now, &step.made).map_err(fault)?;
        if step.before.is_none() && kept.is_empty() && is_blank(step, &bytes) {
            file::remove_if_unchanged(path, &now)?;
            moment::passed();
            return Ok(FileUndone::Restored);
        }
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

    /// Takes the entries out of a JSON file that the undo of its step removes. So a program that
    /// follows the file sees the entries go, and not a file with entries that is lost. Call
    /// [`Journal::undo`] next. False, and nothing is changed, for any other file.
    ///
    /// # Errors
    /// As [`Journal::undo`].
    pub fn empty(&self, step: &FileStep) -> Result<bool, JournalError> {
        self.remove_unfinished();
        let path = &step.path;
        let is_json = step.made.format().is_some_and(Format::is_json);
        if step.before.is_some() || !is_json {
            return Ok(false);
        }
        let Some(now) = file::read(path)? else { return Ok(false) };
        let fault = |source| JournalError::Edit { path: path.clone(), source };
        let TakenBack { bytes, kept } = take_back(&now, &step.made).map_err(fault)?;
        if !kept.is_empty() || !is_blank(step, &bytes) {
            return Ok(false);
        }
        moment::passed();
        file::write_over(path, Some(&now), EMPTY, step.unfinished.as_deref())?;
        moment::passed();
        Ok(true)
    }

    /// Puts the earlier content back, or removes a file that was not there; `None` if the copy of
    /// the file is not the earlier content any more.
    fn restore(&self, step: &FileStep, now: &[u8]) -> Result<Option<FileUndone>, JournalError> {
        let Some(before) = &step.before else {
            file::remove_if_unchanged(&step.path, now)?;
            return Ok(Some(FileUndone::Restored));
        };
        let Some(copy) = self.copy_of(step) else { return Ok(None) };
        let bytes = file::read(&copy)?.filter(|bytes| seal(bytes) == *before);
        let Some(bytes) = bytes else { return Ok(None) };
        file::write_over(&step.path, Some(now), &bytes, step.unfinished.as_deref())?;
        Ok(Some(FileUndone::Restored))
    }
}

/// True if a content of a file has no entry and no comment.
fn is_blank(step: &FileStep, bytes: &[u8]) -> bool {
    let document = step.made.format().map(|format| parse(format, bytes));
    document.is_some_and(|document| document.is_ok_and(|document| document.is_blank()))
}
