//! An undo before it is made, for dry runs and questions.

use std::path::{Path, PathBuf};

use narthex_client_files::journal::{FileUndone, Journal, Step};
use serde_json::{Value, json};

use super::told::{Fault, UndoneFile};
use crate::{
    Failure,
    commands::setup::settings,
    output::{self, counted, harmless},
};

/// The results that an undo would have.
pub(in crate::commands) struct Preview {
    /// Files that change, each with true if it is removed.
    files: Vec<(UndoneFile, bool)>,
    /// Files that cannot be brought back yet.
    faults: Vec<Fault>,
    /// Secrets that set-ups have stored.
    secrets: Vec<String>,
    /// The service that a set-up has installed.
    service: Option<PathBuf>,
}

impl Preview {
    pub(in crate::commands) fn of(journal: &Journal) -> Self {
        let (mut files, mut faults) = (Vec::new(), Vec::new());
        for (step, outcome) in journal.preview() {
            match outcome {
                Ok(FileUndone::NotMade) => {}
                Ok(outcome) => {
                    let is_removed = step.is_new() && outcome.is_restored();
                    let live = step.starting_narthex(outcome.kept());
                    let (label, path) = (step.label, step.path);
                    let file = UndoneFile { label, path, outcome, lacking: Vec::new(), live };
                    files.push((file, is_removed));
                }
                Err(error) => faults.push(Fault::of(&step, &error, journal)),
            }
        }
        let mut preview = Self { files, faults, secrets: Vec::new(), service: None };
        if !preview.faults.is_empty() {
            // The clients of these files still need narthex's own parts.
            preview.files.retain(|(file, _)| file.label != settings::LABEL);
            return preview;
        }
        for step in journal.steps() {
            match step {
                Step::Secret { name, .. } => preview.secrets.push(name.clone()),
                Step::Service { file } => preview.service = Some(file.clone()),
                Step::File(_) | Step::Server { .. } => {}
            }
        }
        preview
    }

    /// The labels of the files that come back.
    pub(in crate::commands) fn labels(&self) -> impl Iterator<Item = &str> {
        self.files.iter().map(|(file, _)| file.label.as_str())
    }

    /// True if the undo would be whole.
    pub(in crate::commands) fn is_whole(&self) -> bool {
        self.faults.is_empty()
    }

    /// Lines about the files with entries that others have changed.
    pub(in crate::commands) fn changed_lines(&self) -> impl Iterator<Item = String> {
        let changed = self.files.iter().filter(|(file, _)| {
            !file.outcome.kept().is_empty() || !file.outcome.edited().is_empty()
        });
        changed.map(|(file, is_removed)| would(file, *is_removed))
    }

    /// Lines about the files that cannot be brought back yet.
    pub(in crate::commands) fn fault_lines(&self) -> impl Iterator<Item = String> {
        self.faults.iter().map(|fault| format!("{}.", fault.sentence()))
    }

    /// The line about a file that changes.
    pub(in crate::commands) fn line_of(&self, path: &Path) -> Option<String> {
        let (file, is_removed) = self.files.iter().find(|(file, _)| file.path == path)?;
        Some(would(file, *is_removed))
    }

    /// The line about secrets that are cleared.
    pub(in crate::commands) fn secrets_line(&self) -> Option<String> {
        if self.secrets.is_empty() {
            return None;
        }
        let count = counted(self.secrets.len() as u64, "secret");
        let verb = if self.secrets.len() == 1 { "is" } else { "are" };
        Some(format!(
            "{count} in the vault {verb} cleared, unless changed since or needed by your \
             settings: {}.",
            self.secrets.join(", ")
        ))
    }

    /// The question before the undo.
    pub(super) fn question(&self) -> &'static str {
        match self.is_whole() {
            true => "Take all of this back?",
            false => "Bring back what can be, and leave the rest until then?",
        }
    }

    /// Prints the results.
    pub(super) fn show(&self) -> Result<(), Failure> {
        output::sentence("This command does the following:")?;
        let mut lines: Vec<_> = self.files.iter().map(|(file, gone)| would(file, *gone)).collect();
        lines.extend(self.fault_lines());
        if !self.is_whole() {
            lines.push("Until then, narthex's settings, secrets and service stay.".to_owned());
        }
        lines.extend(self.secrets_line());
        if let Some(file) = &self.service {
            lines.push(format!(
                "The service {} is removed, which stops the daemon.",
                file.display()
            ));
        }
        lines.iter().try_for_each(|line| output::sentence(&format!("  {}", harmless(line))))
    }

    /// The results for programs.
    pub(super) fn to_json(&self) -> Value {
        let files = self.files.iter().map(|(file, is_removed)| {
            let mut shown = file.to_json();
            shown["is_removed"] = (*is_removed).into();
            shown
        });
        json!({
            "is_dry_run": true,
            "files": files.collect::<Vec<_>>(),
            "faults": self.faults_json(),
            "secrets": self.secrets,
            "service": self.service,
        })
    }

    /// The files that cannot be brought back yet, for programs.
    pub(in crate::commands) fn faults_json(&self) -> Vec<Value> {
        self.faults.iter().map(Fault::to_json).collect()
    }
}

/// The line about a file.
fn would(file: &UndoneFile, is_removed: bool) -> String {
    let (client, path) = (file.client(), file.path.display());
    let words = match &file.outcome {
        _ if is_removed => "is removed, since it did not exist before",
        FileUndone::Restored { .. } | FileUndone::NotMade => "comes back as it was before",
        FileUndone::Gone => "was removed since the set-up, and stays away",
        FileUndone::TakenOut { .. } => {
            "loses the parts of narthex and gets its servers back, and changes of others stay"
        }
    };
    let fate = |names: &[String], words: &str| match names {
        [] => String::new(),
        names => format!("; {words}: {}", names.join(", ")),
    };
    let edited = fate(file.outcome.edited(), "taken out, though edited since");
    let kept = fate(&file.others(), "not taken out, since others changed it");
    let live = file.live_words().map(|words| format!("; {words}")).unwrap_or_default();
    format!("{client}: {path} {words}{edited}{kept}{live}.")
}
