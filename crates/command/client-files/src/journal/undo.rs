//! Undoing of written files.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use super::step::{FileStep, Step};
use super::{Journal, JournalError, seal};
use crate::clients::clients;
use crate::edit::Format;
use crate::plan::runs_narthex;
use crate::rewrite::{TakenBack, parse, take_back};
use crate::servers::{Found, read_entry};
use crate::{file, moment};

/// The content of a file of JSON that has no entry any more.
const EMPTY: &[u8] = b"{}\n";

/// The outcome of an undo of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileUndone {
    /// The file is as it was before, byte for byte.
    Restored {
        /// Names of entries of narthex that others have changed, which are taken out all the same.
        edited: Vec<String>,
    },
    /// The set-up did not write the file, or its step is undone already.
    NotMade,
    /// Others have written the file since. The entries of the set-up are taken out, and the rest
    /// stays.
    TakenOut {
        /// Names of entries that others have changed, which stay as well.
        kept: Vec<String>,
        /// Names of entries of narthex that others have changed, which are taken out all the same.
        edited: Vec<String>,
    },
    /// Others have removed the file since.
    Gone,
}

impl FileUndone {
    /// True if the file is as it was before, byte for byte.
    #[must_use]
    pub fn is_restored(&self) -> bool {
        matches!(self, Self::Restored { .. })
    }

    /// Names of entries that others have changed, and that stay.
    #[must_use]
    pub fn kept(&self) -> &[String] {
        match self {
            Self::TakenOut { kept, .. } => kept,
            Self::Restored { .. } | Self::NotMade | Self::Gone => &[],
        }
    }

    /// Names of entries of narthex that others have changed, and that are taken out.
    #[must_use]
    pub fn edited(&self) -> &[String] {
        match self {
            Self::Restored { edited } | Self::TakenOut { edited, .. } => edited,
            Self::NotMade | Self::Gone => &[],
        }
    }

    /// The outcome of an earlier step of a file, with the entries of the later step that was undone
    /// before.
    #[must_use]
    pub fn after(mut self, later: Self) -> Self {
        let (kept_before, edited_before) = match later {
            Self::TakenOut { kept, edited } => (kept, edited),
            Self::Restored { edited } => (Vec::new(), edited),
            Self::NotMade | Self::Gone => return self,
        };
        let add = |names: &mut Vec<String>, more: Vec<String>| {
            names.extend(more);
            names.sort_unstable();
            names.dedup();
        };
        match &mut self {
            Self::TakenOut { kept, edited } => {
                add(kept, kept_before);
                add(edited, edited_before);
            }
            Self::Restored { edited } => add(edited, edited_before),
            Self::NotMade | Self::Gone => {}
        }
        self
    }
}

impl Journal {
    /// Undoes a written file. The step stays recorded: call [`Journal::forget_last`] next. A file
    /// that the step made is removed once it has nothing in it but the step's own entries. Before
    /// an entry goes that others have edited, the file is copied: that copy outlives the undo.
    ///
    /// # Errors
    /// When the file cannot be read, copied or written, or is no text of its format any more. It is
    /// then as it was.
    pub fn undo(&mut self, step: &FileStep) -> Result<FileUndone, JournalError> {
        self.remove_unfinished();
        let path = &step.path;
        let now = file::read(path)?;
        let Undoing { outcome, content } = self.undoing(step, now.as_deref())?;
        if !outcome.edited().is_empty() {
            self.keep_present(path)?;
        }
        moment::passed();
        match (content, &now) {
            (Content::Written(bytes), Some(now)) => {
                file::write_over(path, Some(now), &bytes, step.unfinished.as_deref())?;
            }
            (Content::Removed, Some(now)) => file::remove_if_unchanged(path, now)?,
            (Content::Same | Content::Written(_) | Content::Removed, _) => {}
        }
        moment::passed();
        Ok(outcome)
    }

    /// The outcomes that an undo of all files would have, which changes nothing: for each path the
    /// last step that would be undone. A step with a fault keeps the earlier ones of its file.
    #[must_use]
    pub fn preview(&self) -> Vec<(FileStep, Result<FileUndone, JournalError>)> {
        let mut contents = BTreeMap::<&Path, Option<Vec<u8>>>::new();
        let mut outcomes = Vec::<(FileStep, Result<FileUndone, JournalError>)>::new();
        for step in self.steps().iter().rev() {
            let Step::File(step) = step else { continue };
            let before = outcomes.iter().position(|(other, _)| other.path == step.path);
            if before.is_some_and(|at| outcomes[at].1.is_err()) {
                continue;
            }
            let mut outcome = self.previewed(step, &mut contents);
            if let Some(at) = before {
                // A step that was not made leaves the outcome of the later one.
                if matches!(outcome, Ok(FileUndone::NotMade)) {
                    continue;
                }
                if let (_, Ok(later)) = outcomes.remove(at) {
                    outcome = outcome.map(|outcome| outcome.after(later));
                }
            }
            outcomes.push((FileStep::clone(step), outcome));
        }
        // In the order in which the files were written.
        outcomes.reverse();
        outcomes
    }

    /// The outcome of one step after the later ones, whose contents are in `contents`.
    fn previewed<'s>(
        &self,
        step: &'s FileStep,
        contents: &mut BTreeMap<&'s Path, Option<Vec<u8>>>,
    ) -> Result<FileUndone, JournalError> {
        let path = step.path.as_path();
        let now = match contents.remove(path) {
            Some(now) => now,
            None => file::read(path)?,
        };
        let Undoing { outcome, content } = self.undoing(step, now.as_deref())?;
        let after = match content {
            Content::Same => now,
            Content::Written(bytes) => Some(bytes),
            Content::Removed => None,
        };
        contents.insert(path, after);
        Ok(outcome)
    }

    /// The undo of a step for this content of its file, before it is made.
    fn undoing(&self, step: &FileStep, now: Option<&[u8]>) -> Result<Undoing, JournalError> {
        let same = |outcome| Ok(Undoing { outcome, content: Content::Same });
        let Some(now) = now else {
            return same(match step.before {
                None => FileUndone::NotMade,
                Some(_) => FileUndone::Gone,
            });
        };
        let hash = seal(now);
        if step.before.as_ref() == Some(&hash) {
            return same(FileUndone::NotMade);
        }
        if hash == step.after
            && let Some(content) = self.earlier(step)?
        {
            let outcome = FileUndone::Restored { edited: Vec::new() };
            return Ok(Undoing { outcome, content });
        }
        let fault = |source| JournalError::Edit { path: step.path.clone(), source };
        let is_ours = |name: &str, value: &Value| is_narthex(step, name, value);
        let taken = take_back(now, &step.made, &is_ours).map_err(fault)?;
        let TakenBack { bytes, kept, edited } = taken;
        if step.before.is_none() && kept.is_empty() && is_blank(step, &bytes) {
            let outcome = FileUndone::Restored { edited };
            return Ok(Undoing { outcome, content: Content::Removed });
        }
        let outcome = match step.before == Some(seal(&bytes)) {
            true => FileUndone::Restored { edited },
            false => FileUndone::TakenOut { kept, edited },
        };
        let content = if bytes == now { Content::Same } else { Content::Written(bytes) };
        Ok(Undoing { outcome, content })
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
        let is_ours = |name: &str, value: &Value| is_narthex(step, name, value);
        let taken = take_back(&now, &step.made, &is_ours).map_err(fault)?;
        let TakenBack { bytes, kept, edited } = taken;
        // An edited entry is copied first.
        if !kept.is_empty() || !edited.is_empty() || !is_blank(step, &bytes) {
            return Ok(false);
        }
        moment::passed();
        file::write_over(path, Some(&now), EMPTY, step.unfinished.as_deref())?;
        moment::passed();
        Ok(true)
    }

    /// The content before a step; `None` if the copy of the file is not that content any more.
    fn earlier(&self, step: &FileStep) -> Result<Option<Content>, JournalError> {
        let Some(before) = &step.before else { return Ok(Some(Content::Removed)) };
        let Some(copy) = self.copy_of(step) else { return Ok(None) };
        let bytes = file::read(&copy)?.filter(|bytes| seal(bytes) == *before);
        Ok(bytes.map(Content::Written))
    }
}

impl FileStep {
    /// The entries among these names that start narthex itself, as the file is now.
    #[must_use]
    pub fn starting_narthex(&self, names: &[String]) -> Vec<String> {
        let now = file::read(&self.path).ok().flatten();
        let document = now.zip(self.made.format());
        let document = document.and_then(|(now, format)| parse(format, &now).ok());
        let Some(document) = document else { return Vec::new() };
        let entries = self.made.parents().filter_map(|parent| document.entries(parent).ok());
        let live = entries
            .flatten()
            .filter(|(name, value)| names.contains(name) && is_narthex(self, name, value));
        let mut live: Vec<_> = live.map(|(name, _)| name).collect();
        live.sort_unstable();
        live.dedup();
        live
    }
}

/// The undo of a step, before it is made.
struct Undoing {
    outcome: FileUndone,
    content: Content,
}

/// The content of a file after an undo.
enum Content {
    /// That of now.
    Same,
    /// Another one.
    Written(Vec<u8>),
    /// None: the file goes.
    Removed,
}

/// True for an entry by which the client of a step starts narthex itself.
fn is_narthex(step: &FileStep, name: &str, value: &Value) -> bool {
    let row = clients().iter().find(|row| row.label() == step.label);
    let found = row.and_then(|row| read_entry(row.shape, name, value, false));
    found.as_ref().and_then(Found::server).is_some_and(runs_narthex)
}

/// True if a content of a file has no entry and no comment.
fn is_blank(step: &FileStep, bytes: &[u8]) -> bool {
    let document = step.made.format().map(|format| parse(format, bytes));
    document.is_some_and(|document| document.is_ok_and(|document| document.is_blank()))
}
