//! `narthex setup --undo`: brings back the files, settings and secrets from before.
//!
//! The files of clients come first, each from its last step backwards: one that cannot be brought
//! back keeps no other one from its servers. While there is such a file, narthex's own settings,
//! secrets and service stay, since its client needs them. Each step is forgotten once it is undone,
//! so a second undo continues after an end at any moment.

mod preview;
mod running;
mod told;

pub(in crate::commands) use preview::Preview;
use running::Running;
pub(in crate::commands) use told::{Asking, Undo, client_names};
use told::{Fault, NeededSecret, UndoneFile};

use std::{path::Path, process::ExitCode, time::Duration};

use narthex_client::{
    cli::SetupArgs,
    commands::{daemon::stop_daemon, service::remove_own, typed::is_agreed},
};
use narthex_client_files::journal::{FileStep, FileUndone, Journal, JournalError, Lacking, Step};
use narthex_model::{ErrorKind, command::narthex, with_causes};
use narthex_registry::layers::remove_lock;

use super::{
    daemon::Daemon,
    place::{self, failed},
    projects,
    secrets::{self, Cleared},
    settings,
};
use crate::{Failure, cli::Context, data_dir::DataDir, output};

/// The time in which a daemon that was started for an undo has to end.
const STOPPED: Duration = Duration::from_secs(60);

pub(super) async fn run(
    args: &SetupArgs,
    place: &Path,
    context: &Context,
) -> Result<ExitCode, Failure> {
    let data = DataDir::at(place);
    let journal = place::journal(&data)?;
    if journal.steps().is_empty() {
        let keeps_copies = !journal.kept_copies().is_empty();
        let none = Undo { backups: journal.backups(), keeps_copies, ..Undo::default() };
        let mut lines = vec!["There is no set-up to undo, and nothing has changed.".to_owned()];
        lines.extend(none.sentences(true));
        return output::told_lines(&none.to_json(), &lines, context.format);
    }
    let preview = Preview::of(&journal);
    if context.format.is_text() && !args.yes {
        preview.show()?;
    }
    if args.dry_run {
        let line = "Nothing has changed: this was a dry run.".to_owned();
        return output::told_lines(&preview.to_json(), &[line], context.format);
    }
    if !is_agreed(args.yes, context.format, preview.question()).await? {
        let text = format!(
            "nothing was undone, and nothing has changed; answer `y` on a terminal, or run `{}`",
            narthex("setup --undo --yes", &[])
        );
        return Err(Failure::new(ErrorKind::Denied, text).with_details(Some(preview.to_json())));
    }
    let mut undo = Undo::made(place, Asking::Needed, context).await?;
    undo.check(&narthex("setup --undo", &[]), context)?;
    undo.running = Running::find(&data, context);
    output::told_lines(&undo.to_json(), &undo.sentences(true), context.format)
}

impl Undo {
    /// Undoes all set-ups, as far as that is possible: [`Undo::check`] fails if something is left
    /// to do, which stays recorded.
    ///
    /// # Errors
    /// When the record cannot be used, or another set-up works.
    pub(in crate::commands) async fn made(
        place: &Path,
        asking: Asking,
        context: &Context,
    ) -> Result<Self, Failure> {
        let data = DataDir::open(place)?;
        let _lock = place::lock(&data)?;
        let mut journal = place::journal(&data)?;
        let mut undo = Self { asking, backups: journal.backups(), ..Self::default() };
        undo.ended_by = undo.steps(&mut journal, context).await.err();
        undo.end_started(context).await;
        undo.keeps_copies = !journal.kept_copies().is_empty();
        if journal.steps().is_empty() {
            if let Some(Err(error)) = journal.lock().map(remove_lock) {
                tracing::warn!("the lock of the settings could not be removed: {error}");
            }
            journal.finish().map_err(|error| failed(&error))?;
        }
        Ok(undo)
    }

    async fn steps(&mut self, journal: &mut Journal, context: &Context) -> Result<(), Failure> {
        self.clients(journal, context).await?;
        // A client that still reaches its servers through narthex needs them there.
        match self.faults.is_empty() {
            true => self.rest(journal, context).await,
            false => Ok(()),
        }
    }

    /// Undoes the files of clients.
    async fn clients(&mut self, journal: &mut Journal, context: &Context) -> Result<(), Failure> {
        for at in (0..journal.steps().len()).rev() {
            let Step::File(file) = journal.steps()[at].clone() else { continue };
            // The earlier steps of a file wait for the later ones.
            let is_faulty = self.faults.iter().any(|fault| fault.path == file.path);
            if file.label == settings::LABEL || is_faulty {
                continue;
            }
            let was_approved = projects::is_approved(&file, &context.settings).await;
            if !self.file(&file, journal) {
                continue;
            }
            if was_approved {
                self.approve(&file, journal, context).await;
            }
            journal.forget(at).map_err(|error| failed(&error))?;
        }
        Ok(())
    }

    /// Undoes the settings, secrets and service of narthex, once no client needs them.
    async fn rest(&mut self, journal: &mut Journal, context: &Context) -> Result<(), Failure> {
        for at in (0..journal.steps().len()).rev() {
            match journal.steps()[at].clone() {
                Step::File(file) => {
                    // The undo itself reports a file that cannot be written.
                    if journal.empty(&file).is_ok_and(|is_empty| is_empty) {
                        Daemon::read_if_up(context).await;
                    }
                    if !self.file(&file, journal) {
                        return Ok(());
                    }
                }
                Step::Secret { name, version } => self.secret(name, version, context).await?,
                Step::Server { .. } => {}
                Step::Service { .. } => self.service(context).await?,
            }
            journal.forget(at).map_err(|error| failed(&error))?;
        }
        if self.daemon.is_none() {
            Daemon::read_if_up(context).await;
        }
        self.reload().await;
        Ok(())
    }

    /// Has the daemon read its files again, which are right without that.
    async fn reload(&mut self) {
        let Some(daemon) = &self.daemon else { return };
        if let Err(failure) = daemon.reload().await {
            let text = format!(
                "The daemon has not read its files again: {}; correct that, then run `{}`.",
                failure.message,
                narthex("mcp reload", &[])
            );
            self.notes.push(text);
        }
    }

    /// Stops the daemon that was started for the undo alone.
    async fn end_started(&mut self, context: &Context) {
        let is_started = self.daemon.take().is_some_and(|daemon| daemon.is_started);
        if !is_started {
            return;
        }
        if let Err(failure) = stop_daemon(STOPPED, false, &context.client()).await {
            let reason = failure.message;
            self.notes.push(format!("The daemon that was started for this still runs: {reason}"));
        }
    }

    /// Approves a file of the folder that is as it was when it was approved.
    async fn approve(&mut self, step: &FileStep, journal: &Journal, context: &Context) {
        let is_restored =
            self.files.iter().any(|file| file.path == step.path && file.outcome.is_restored());
        let copy = if is_restored { journal.copy_of(step) } else { None };
        let Some(copy) = copy else { return };
        let approved = match fs_err::read(copy) {
            Ok(text) => projects::approve(&step.label, &step.path, &text, &context.settings).await,
            Err(error) => Err(error.into()),
        };
        self.notes.extend(approved.err().map(|failure| told::not_approved(step, &failure)));
    }

    /// Removes the service, which ends the daemon. It is the first step of a set-up, so all that
    /// needs a daemon is undone.
    async fn service(&mut self, context: &Context) -> Result<(), Failure> {
        self.daemon = None;
        self.service = remove_own(&context.client()).await?;
        Ok(())
    }

    /// Undoes a file; false if that is not possible yet. A copy that has more than the file stays.
    fn file(&mut self, step: &FileStep, journal: &mut Journal) -> bool {
        let outcome = match journal.undo(step) {
            Ok(FileUndone::NotMade) => return true,
            Ok(outcome) => outcome,
            Err(error) => {
                self.faults.push(Fault::of(step, &error, journal));
                return false;
            }
        };
        let lacking = match &outcome {
            FileUndone::Restored { .. } | FileUndone::NotMade => Lacking::Nothing,
            FileUndone::TakenOut { .. } => journal.lacking(step),
            FileUndone::Gone => Lacking::Unknown,
        };
        if lacking != Lacking::Nothing {
            journal.keep_copy(step);
        }
        let lacking = match lacking {
            Lacking::Entries(names) => names,
            Lacking::Nothing | Lacking::Unknown => Vec::new(),
        };
        let live = step.starting_narthex(outcome.kept());
        let (label, path) = (step.label.clone(), step.path.clone());
        self.add(UndoneFile { label, path, outcome, lacking, live });
        true
    }

    /// Adds an outcome. Of several steps of one file the last one that is undone counts, with the
    /// entries of each of them.
    fn add(&mut self, mut new: UndoneFile) {
        if let Some(at) = self.files.iter().position(|file| file.path == new.path) {
            let old = self.files.remove(at);
            if matches!(new.outcome, FileUndone::TakenOut { .. }) {
                new.lacking.extend(old.lacking);
                new.live.extend(old.live);
                for names in [&mut new.lacking, &mut new.live] {
                    names.sort_unstable();
                    names.dedup();
                }
            }
            new.outcome = new.outcome.after(old.outcome);
        }
        self.files.push(new);
    }

    async fn secret(
        &mut self,
        name: String,
        version: Option<u64>,
        context: &Context,
    ) -> Result<(), Failure> {
        if let Some(file) = &context.settings.servers
            && let Some(server) = secrets::needed(settings::entries(file)?).remove(&name)
        {
            self.needed.push(NeededSecret { name, server });
            return Ok(());
        }
        match self.clear(&name, version, context).await {
            Ok(Cleared::Done) => self.cleared.push(name),
            Ok(Cleared::Changed) => self.kept.push(name),
            Ok(Cleared::Absent) => {}
            Err(failure) if self.asking == Asking::Needed => return Err(failure),
            Err(failure) => {
                self.unasked.push(name);
                self.no_answer = Some(failure);
            }
        }
        Ok(())
    }

    /// Has the daemon clear a secret. One that did not answer is not asked again.
    async fn clear(
        &mut self,
        name: &str,
        version: Option<u64>,
        context: &Context,
    ) -> Result<Cleared, Failure> {
        if let Some(failure) = &self.no_answer {
            return Err(failure.clone());
        }
        self.find_daemon(context).await?;
        if let Some(daemon) = &self.daemon {
            return secrets::clear(name, version, daemon).await;
        }
        let cleared = secrets::clear_stored(name, version, &context.settings).await;
        match (cleared, &self.no_daemon) {
            (Ok((cleared, unrecorded)), _) => {
                self.unrecorded = self.unrecorded.take().or(unrecorded);
                Ok(cleared)
            }
            (Err(error), Some(failure)) => {
                tracing::debug!("the store cannot be used without a daemon: {}", error.message);
                Err(failure.clone())
            }
            (Err(error), None) => Err(error),
        }
    }

    /// Finds or starts the daemon, once. Keeps the failure of one that does not start.
    async fn find_daemon(&mut self, context: &Context) -> Result<(), Failure> {
        if self.daemon.is_some() || self.no_daemon.is_some() {
            return Ok(());
        }
        if self.asking == Asking::IfUp {
            self.daemon = Some(Daemon::running(context)?);
            return Ok(());
        }
        match Daemon::ensure(context).await {
            Ok(daemon) => self.daemon = Some(daemon),
            Err(failure) if failure.is_interrupted() => return Err(failure),
            Err(failure) => self.no_daemon = Some(failure),
        }
        Ok(())
    }
}

impl Fault {
    fn of(step: &FileStep, error: &JournalError, journal: &Journal) -> Self {
        Self {
            label: step.label.clone(),
            path: step.path.clone(),
            reason: reason(error, &step.path),
            copy: journal.copy_of(step),
        }
    }
}

/// The reason for which a file cannot be brought back, and its remedy, without the name of the
/// file and the advice to try again: the sentence around it has both.
fn reason(error: &JournalError, path: &Path) -> String {
    let text = match error {
        JournalError::Edit { source, .. } => source.to_string(),
        other => with_causes(other),
    };
    let text = match text.strip_prefix(&format!("`{}` ", path.display())) {
        Some(rest) => format!("it {rest}"),
        None => text,
    };
    text.replace(", then try again", "").replace("; run the command again", "")
}
