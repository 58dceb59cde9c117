//! `narthex setup --undo`: brings back the files, settings and secrets from before.
//!
//! The steps are undone from the last one backwards, and each is forgotten once it is undone. So a
//! second undo continues after an end at any moment.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use narthex_client::commands::service::remove_own;
use narthex_client_files::journal::{FileStep, FileUndone, Journal, Step};
use narthex_model::{ErrorKind, command::narthex, with_causes};
use narthex_registry::layers::remove_lock;
use serde_json::{Value, json};

use super::{
    daemon::Daemon,
    place::{self, failed},
    projects,
    secrets::{self, Cleared},
    settings,
};
use crate::{
    Failure,
    cli::Context,
    data_dir::DataDir,
    output::{self, harmless},
};

/// The results of an undo.
#[derive(Default)]
pub(in crate::commands) struct Undo {
    files: Vec<UndoneFile>,
    /// Secrets that are cleared.
    cleared: Vec<String>,
    /// Secrets that have another value since, which stay.
    kept: Vec<String>,
    /// Files that cannot be brought back yet, each with the reason.
    faults: Vec<(PathBuf, String)>,
    daemon: Option<Daemon>,
    /// Copies of the files as they were before the set-up.
    backups: PathBuf,
    /// The file of the service that is removed.
    service: Option<PathBuf>,
}

struct UndoneFile {
    label: String,
    path: PathBuf,
    outcome: FileUndone,
}

pub(super) async fn run(place: &Path, context: &Context) -> Result<ExitCode, Failure> {
    let nothing = place::journal(&DataDir::at(place))?.steps().is_empty();
    if nothing {
        let sentence = "There is no set-up to undo, and nothing has changed.";
        let data = json!({ "files": [], "cleared_secrets": [], "kept_secrets": [] });
        return output::told(&data, sentence, context.format);
    }
    let undo = Undo::made(place, context).await?;
    let (data, sentences) = (undo.to_json(), undo.sentences());
    output::told_lines(&data, &sentences, context.format)
}

impl Undo {
    /// Undoes all set-ups.
    ///
    /// # Errors
    /// When a file cannot be brought back yet. All that could be undone is, and the rest stays
    /// recorded.
    pub(in crate::commands) async fn made(
        place: &Path,
        context: &Context,
    ) -> Result<Self, Failure> {
        let data = DataDir::open(place)?;
        let _lock = place::lock(&data)?;
        let mut journal = place::journal(&data)?;
        let mut undo = Self { backups: journal.backups(), ..Self::default() };
        undo.steps(&mut journal, context).await?;
        let is_whole = undo.faults.is_empty()
            && undo.files.iter().all(|file| file.outcome == FileUndone::Restored);
        if is_whole {
            if let Some(Err(error)) = journal.lock().map(remove_lock) {
                tracing::warn!("the lock of the settings could not be removed: {error}");
            }
            journal.remove().map_err(|error| failed(&error))?;
        }
        undo.check()?;
        Ok(undo)
    }

    async fn steps(&mut self, journal: &mut Journal, context: &Context) -> Result<(), Failure> {
        for at in (0..journal.steps().len()).rev() {
            let step = journal.steps()[at].clone();
            let is_of_client = matches!(&step, Step::File(file) if file.label != settings::LABEL);
            // A client that still reaches its servers through narthex needs them there.
            if !self.faults.is_empty() && !is_of_client {
                return Ok(());
            }
            match step {
                Step::File(file) => {
                    let was_approved = projects::is_approved(&file, &context.settings).await;
                    if !self.file(&file, journal) {
                        continue;
                    }
                    if was_approved {
                        self.approve(&file, context).await?;
                    }
                }
                Step::Secret { name, version } => self.secret(name, version, context).await?,
                Step::Server { .. } => {}
                Step::Service { .. } => self.service(context).await?,
            }
            journal.forget(at).map_err(|error| failed(&error))?;
        }
        if let Some(daemon) = &self.daemon {
            daemon.reload().await?;
        }
        Ok(())
    }

    /// Approves a file of the folder that is as it was when it was approved.
    async fn approve(&self, step: &FileStep, context: &Context) -> Result<(), Failure> {
        let is_restored = self
            .files
            .iter()
            .any(|file| file.path == step.path && file.outcome == FileUndone::Restored);
        let Some(backup) = step.backup.as_ref().filter(|_| is_restored) else { return Ok(()) };
        let text = fs_err::read(backup)?;
        projects::approve(&step.label, &step.path, &text, &context.settings).await
    }

    /// Removes the service, which ends the daemon. It is the first step of a set-up, so all that
    /// needs a daemon is undone.
    async fn service(&mut self, context: &Context) -> Result<(), Failure> {
        if let Some(daemon) = self.daemon.take() {
            daemon.reload().await?;
        }
        self.service = remove_own(&context.client()).await?;
        Ok(())
    }

    /// Undoes a file; false if that is not possible yet.
    fn file(&mut self, step: &FileStep, journal: &Journal) -> bool {
        match journal.undo(step) {
            Ok(FileUndone::NotMade) => true,
            Ok(outcome) => {
                let (label, path) = (step.label.clone(), step.path.clone());
                // Of several steps of one file the last one that is undone counts.
                self.files.retain(|file| file.path != path);
                self.files.push(UndoneFile { label, path, outcome });
                true
            }
            Err(error) => {
                self.faults.push((step.path.clone(), with_causes(&error)));
                false
            }
        }
    }

    async fn secret(
        &mut self,
        name: String,
        version: Option<u64>,
        context: &Context,
    ) -> Result<(), Failure> {
        if self.daemon.is_none() {
            self.daemon = Some(Daemon::ensure(context).await?);
        }
        let Some(daemon) = &self.daemon else { return Ok(()) };
        match secrets::clear(&name, version, daemon).await? {
            Cleared::Done => self.cleared.push(name),
            Cleared::Changed => self.kept.push(name),
            Cleared::Absent => {}
        }
        Ok(())
    }

    /// Fails if a file could not be brought back.
    fn check(&self) -> Result<(), Failure> {
        if let [(path, reason), ..] = &self.faults[..] {
            let text = format!(
                "{} cannot be brought back: {reason}; correct that, then run `{}` again; the file \
                 from before is in {}",
                path.display(),
                narthex("setup --undo", &[]),
                self.backups.display()
            );
            return Err(Failure::new(ErrorKind::Conflict, text).with_details(Some(self.to_json())));
        }
        Ok(())
    }

    /// The results, for people.
    pub(in crate::commands) fn sentences(&self) -> Vec<String> {
        let mut lines: Vec<_> = self
            .files
            .iter()
            .map(|file| format!("{} {}", file.path.display(), words(&file.outcome)))
            .collect();
        if self.files.iter().any(|file| file.outcome != FileUndone::Restored) {
            lines.push(format!("The files from before are in {}.", self.backups.display()));
        }
        if !self.cleared.is_empty() {
            lines.push(format!("Cleared the secrets {}.", self.cleared.join(", ")));
        }
        if !self.kept.is_empty() {
            let kept = self.kept.join(", ");
            lines.push(format!("Kept the secrets {kept}, which have other values since."));
        }
        if let Some(file) = &self.service {
            lines.push(format!("Removed the service {}.", file.display()));
        }
        if self.daemon.as_ref().is_some_and(|daemon| daemon.is_started) {
            let stop = narthex("daemon stop", &[]);
            lines.push(format!("The daemon runs in the background; `{stop}` stops it."));
        }
        lines.iter().map(|line| harmless(line)).collect()
    }

    pub(in crate::commands) fn to_json(&self) -> Value {
        let files = self.files.iter().map(|file| {
            let (result, kept): (_, &[String]) = match &file.outcome {
                FileUndone::Restored => ("restored", &[]),
                FileUndone::TakenOut { kept } => ("taken_out", kept),
                FileUndone::Gone => ("gone", &[]),
                FileUndone::NotMade => ("unchanged", &[]),
            };
            let path = file.path.to_string_lossy();
            json!({ "client": file.label, "file": path, "result": result, "kept": kept })
        });
        json!({
            "files": files.collect::<Vec<_>>(),
            "cleared_secrets": self.cleared,
            "kept_secrets": self.kept,
            "removed_service": self.service,
            "backups": self.backups.to_string_lossy(),
        })
    }
}

/// The outcome in words, after the name of a file.
fn words(outcome: &FileUndone) -> String {
    match outcome {
        FileUndone::Restored => "is as it was before".to_owned(),
        FileUndone::NotMade => "was not changed".to_owned(),
        FileUndone::Gone => "was removed meanwhile, and stays away".to_owned(),
        FileUndone::TakenOut { kept } if kept.is_empty() => {
            "was changed by others meanwhile: the own entries are taken out, and the rest stays"
                .to_owned()
        }
        FileUndone::TakenOut { kept } => format!(
            "was changed by others meanwhile: the entries {} are changed and stay, and the other \
             own ones are taken out",
            kept.join(", ")
        ),
    }
}
