//! The results of an undo for people and for programs.

use std::path::{Path, PathBuf};

use narthex_client_files::{
    clients::{Client, clients},
    journal::{FileStep, FileUndone},
};
use narthex_model::{
    ErrorKind,
    command::{self, CommandLine, narthex},
};
use serde_json::{Value, json};

use super::running::Running;
use crate::{
    Failure,
    cli::Context,
    commands::{
        setup::{daemon::Daemon, settings},
        source,
    },
    output::{self, counted, harmless},
};

/// The use that an undo makes of the daemon, which clears secrets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::commands) enum Asking {
    /// A daemon is started if none runs. One that does not start is not needed, if the store can be
    /// opened without it; otherwise the undo ends.
    #[default]
    Needed,
    /// As `Needed`, but otherwise the secrets stay, and are named.
    Wanted,
    /// Only a daemon that runs is asked: the vault goes with the data.
    IfUp,
}

/// The results of an undo.
#[derive(Default)]
pub(in crate::commands) struct Undo {
    pub(super) asking: Asking,
    pub(super) files: Vec<UndoneFile>,
    /// Secrets that are cleared.
    pub(super) cleared: Vec<String>,
    /// Secrets that have another value since, which stay.
    pub(super) kept: Vec<String>,
    /// Secrets that a server of the settings still names, which stay.
    pub(super) needed: Vec<NeededSecret>,
    /// Secrets that stay, since no daemon could be asked to clear them.
    pub(super) unasked: Vec<String>,
    /// The failure for which no daemon starts.
    pub(super) no_daemon: Option<Failure>,
    /// The failure for which the audit has no record of a secret that was cleared.
    pub(super) unrecorded: Option<Failure>,
    /// The failure for which no daemon could be asked.
    pub(super) no_answer: Option<Failure>,
    /// Files that cannot be brought back yet.
    pub(super) faults: Vec<Fault>,
    /// The failure that ended the undo before its last step.
    pub(super) ended_by: Option<Failure>,
    /// Sentences about parts that the user has to see to.
    pub(super) notes: Vec<String>,
    pub(super) daemon: Option<Daemon>,
    /// Copies of the files as they were before the set-up.
    pub(super) backups: PathBuf,
    /// True if copies stay, of this undo or an earlier one.
    pub(super) keeps_copies: bool,
    /// The file of the service that is removed.
    pub(super) service: Option<PathBuf>,
    /// The part of narthex that runs on.
    pub(super) running: Option<Running>,
}

/// A secret that a remaining server of the settings names.
pub(super) struct NeededSecret {
    pub(super) name: String,
    pub(super) server: String,
}

pub(super) struct UndoneFile {
    pub(super) label: String,
    pub(super) path: PathBuf,
    pub(super) outcome: FileUndone,
    /// Names of entries that the file does not have as they were before.
    pub(super) lacking: Vec<String>,
    /// Names of entries that stay though they start narthex.
    pub(super) live: Vec<String>,
}

/// A file that cannot be brought back yet.
pub(super) struct Fault {
    pub(super) label: String,
    pub(super) path: PathBuf,
    pub(super) reason: String,
    /// The copy from before, if there was a file.
    pub(super) copy: Option<PathBuf>,
}

impl Undo {
    /// Fails if something is left to do. People see first what is done. `again` is the command that
    /// continues.
    pub(in crate::commands) fn check(
        &self,
        again: &CommandLine,
        context: &Context,
    ) -> Result<(), Failure> {
        let Some(failure) = self.failure(again) else { return Ok(()) };
        if context.format.is_text() {
            self.sentences(true).iter().try_for_each(|sentence| output::sentence(sentence))?;
        }
        Err(failure.with_details(Some(self.to_json())))
    }

    /// Leaves out what an uninstallation has deleted since. Gives the names of the secrets that the
    /// undo had kept, if the vault is deleted.
    pub(in crate::commands) fn leave_out_deleted(
        &mut self,
        files: &[PathBuf],
        has_vault: bool,
    ) -> Vec<String> {
        self.files.retain(|file| !files.contains(&file.path));
        if !has_vault {
            return Vec::new();
        }
        // Their values are in the files of clients again, or else the caller has named them.
        self.unasked.clear();
        let (kept, needed) = (std::mem::take(&mut self.kept), std::mem::take(&mut self.needed));
        kept.into_iter().chain(needed.into_iter().map(|one| one.name)).collect()
    }

    fn failure(&self, again: &CommandLine) -> Option<Failure> {
        let [first, ..] = &self.faults[..] else {
            let failure = self.ended_by.clone()?;
            let message = format!(
                "the undo is not complete: {}; mend that, then run `{again}`, which continues",
                failure.message
            );
            return Some(Failure { message, ..failure });
        };
        let faults: Vec<_> = self.faults.iter().map(Fault::sentence).collect();
        let rest = match first.label == settings::LABEL {
            true => "narthex's secrets and service stay until then".to_owned(),
            false => {
                let names = client_names(self.faults.iter().map(|fault| fault.label.as_str()));
                let verb = if names.len() == 1 { "needs" } else { "need" };
                let names = names.join(", ");
                format!(
                    "narthex's settings, secrets and service stay until then, since {names} still \
                     {verb} them"
                )
            }
        };
        let text =
            format!("{}; then run `{again}`, which undoes the rest: {rest}", faults.join("; "));
        Some(Failure::new(ErrorKind::Conflict, harmless(&text)))
    }

    /// The results, for people. `names_copies`: false if the caller names the copies that stay.
    pub(in crate::commands) fn sentences(&self, names_copies: bool) -> Vec<String> {
        let mut lines: Vec<_> = self.files.iter().map(UndoneFile::sentence).collect();
        // While the undo is not complete, all copies stay without a word.
        let is_complete = self.faults.is_empty() && self.ended_by.is_none();
        if names_copies && self.keeps_copies && is_complete {
            lines.extend(copies_lines(&self.backups));
        }
        if !self.cleared.is_empty() {
            let count = counted(self.cleared.len() as u64, "secret");
            lines.push(format!("Cleared {count} in the vault: {}.", self.cleared.join(", ")));
            lines.extend(self.no_daemon.as_ref().map(|failure| {
                let reason = &failure.message;
                format!("That was done in the store itself, since no daemon starts: {reason}")
            }));
            if let Some(failure) = &self.unrecorded {
                lines.push(format!("The audit has no record of that: {}", failure.message));
            }
        }
        lines.extend(self.kept.iter().map(|name| {
            let clear = narthex("secrets clear {}", &[name]);
            format!("Kept the secret {name}, which has another value since; `{clear}` clears it.")
        }));
        lines.extend(self.needed.iter().map(|NeededSecret { name, server }| {
            let clear = narthex("secrets clear {}", &[name]);
            format!(
                "Kept the secret {name}, which the server {server} in your settings names; \
                 `{clear}` clears it."
            )
        }));
        lines.extend(self.unasked_line());
        if let Some(file) = &self.service {
            lines.push(format!("Removed the service {}.", file.display()));
        }
        lines.extend(self.notes.iter().cloned());
        lines.extend(self.running.as_ref().map(Running::sentence));
        lines.iter().map(|line| harmless(line)).collect()
    }

    /// The line about secrets that no daemon could be asked to clear.
    fn unasked_line(&self) -> Option<String> {
        let failure = self.no_answer.as_ref().filter(|_| !self.unasked.is_empty())?;
        let clear = narthex("secrets clear NAME", &[]);
        Some(format!(
            "Kept in the vault, since the daemon cannot be asked: {}. `{clear}` clears one of them \
             once a daemon runs. The reason: {}",
            self.unasked.join(", "),
            failure.message
        ))
    }

    /// The names of the secrets that stay.
    fn kept_secrets(&self) -> impl Iterator<Item = &String> {
        let kept = self.kept.iter().chain(self.needed.iter().map(|one| &one.name));
        kept.chain(&self.unasked)
    }

    pub(in crate::commands) fn to_json(&self) -> Value {
        let files = self.files.iter().map(|file| {
            let mut shown = file.to_json();
            shown["lacking"] = json!(file.lacking);
            shown
        });
        let faults = self.faults.iter().map(Fault::to_json);
        json!({
            "files": files.collect::<Vec<_>>(),
            "faults": faults.collect::<Vec<_>>(),
            "cleared_secrets": self.cleared,
            "kept_secrets": self.kept_secrets().collect::<Vec<_>>(),
            "removed_service": self.service,
            "running_service": self.running.as_ref().and_then(Running::service),
            "is_daemon_running": self.running.as_ref().is_some_and(Running::has_daemon),
            "backups": self.backups.to_string_lossy(),
            "keeps_copies": self.keeps_copies,
        })
    }
}

impl UndoneFile {
    /// The outcome for programs.
    pub(super) fn to_json(&self) -> Value {
        let none: &[String] = &[];
        let (result, kept) = match &self.outcome {
            FileUndone::Restored { .. } => ("restored", none),
            FileUndone::TakenOut { kept, .. } => ("taken_out", &kept[..]),
            FileUndone::Gone => ("gone", none),
            FileUndone::NotMade => ("unchanged", none),
        };
        json!({
            "client": self.label,
            "file": self.path.to_string_lossy(),
            "result": result,
            "kept": kept,
            "edited": self.outcome.edited(),
            "live": self.live,
        })
    }

    /// The names of entries that stay and that start another program.
    pub(super) fn others(&self) -> Vec<String> {
        let kept = self.outcome.kept().iter();
        kept.filter(|name| !self.live.contains(name)).cloned().collect()
    }

    /// The remedy for entries that stay though they start narthex.
    pub(super) fn live_words(&self) -> Option<String> {
        let path = self.path.display();
        match &self.live[..] {
            [] => None,
            [one] => Some(format!(
                "its entry `{one}` still starts narthex, and stays, since others have written in \
                 it: remove `{one}` from {path} by hand"
            )),
            more => Some(format!(
                "its entries {names} still start narthex, and stay, since others have written in \
                 them: remove {names} from {path} by hand",
                names = quoted(more)
            )),
        }
    }

    /// The name of the client, for people.
    pub(super) fn client(&self) -> &'static str {
        row(&self.label).map_or("narthex", |row| row.name.as_str())
    }

    fn sentence(&self) -> String {
        let (row, name) = (row(&self.label), self.client());
        let is_back =
            self.outcome.is_restored() || matches!(self.outcome, FileUndone::TakenOut { .. });
        let hint = row.and_then(|row| row.refresh_hint.as_deref()).filter(|_| is_back);
        let hint = hint.map(|hint| format!(": {hint}")).unwrap_or_default();
        format!("{name}: {} {}{hint}", self.path.display(), self.words())
    }

    /// The outcome in words, after the name of the file.
    fn words(&self) -> String {
        match &self.outcome {
            FileUndone::Restored { edited } => {
                let words = match self.path.symlink_metadata() {
                    Ok(_) => "is as it was before",
                    Err(_) => "is removed again, since it did not exist before",
                };
                let edited = edited_words(edited).map(|words| format!("; {words}"));
                format!("{words}{}", edited.unwrap_or_default())
            }
            FileUndone::NotMade => "was not changed".to_owned(),
            FileUndone::Gone => "was removed since the set-up, and stays away".to_owned(),
            FileUndone::TakenOut { .. } => {
                let kept = self.kept_words();
                let lacking = match &self.lacking[..] {
                    [] => String::new(),
                    [one] => format!("; `{one}` is not there as it was before"),
                    more => format!("; {} are not there as they were before", quoted(more)),
                };
                format!("was changed by others since the set-up: {kept}{lacking}")
            }
        }
    }

    /// The fates of entries in a file that others have changed.
    fn kept_words(&self) -> String {
        let (edited, live) = (edited_words(self.outcome.edited()), self.live_words());
        let rest = "the rest that narthex did there is taken back";
        let kept = match (&self.others()[..], &edited, &live) {
            ([], None, None) => {
                "all that narthex did there is taken back, and the other changes stay".to_owned()
            }
            ([], Some(_), None) => "the other changes stay".to_owned(),
            ([], _, Some(_)) => rest.to_owned(),
            ([one], _, _) => {
                format!("its entry `{one}` is another one now and stays, and {rest}")
            }
            (more, _, _) => {
                format!("its entries {} are other ones now and stay, and {rest}", quoted(more))
            }
        };
        edited.into_iter().chain(live).chain([kept]).collect::<Vec<_>>().join("; ")
    }
}

/// The fate of entries of narthex that others have edited.
fn edited_words(edited: &[String]) -> Option<String> {
    match edited {
        [] => None,
        [one] => Some(format!(
            "its entry `{one}`, which was edited, is taken out, and a copy of the file with it \
             stays"
        )),
        more => Some(format!(
            "its entries {}, which were edited, are taken out, and a copy of the file with them \
             stays",
            quoted(more)
        )),
    }
}

impl Fault {
    /// The fault for programs.
    pub(super) fn to_json(&self) -> Value {
        json!({
            "client": self.label,
            "file": self.path.to_string_lossy(),
            "reason": self.reason,
            "copy": self.copy.as_ref().map(|copy| copy.to_string_lossy()),
        })
    }

    pub(super) fn sentence(&self) -> String {
        let copy =
            self.copy.as_ref().map(|copy| format!(" (the file from before is {})", copy.display()));
        let copy = copy.unwrap_or_default();
        format!("{} cannot be brought back: {}{copy}", self.path.display(), self.reason)
    }
}

/// The lines about copies that stay.
fn copies_lines(backups: &Path) -> [String; 2] {
    // The record of an undo that is complete has nothing but the names of copies.
    let folder = backups.parent().unwrap_or(backups).to_string_lossy();
    [
        format!("The files from before are in {}.", backups.display()),
        format!(
            "They have the keys in them that the files had; once you do not need them, delete them \
             with `rm -r {}`.",
            command::quoted(&folder)
        ),
    ]
}

/// The line about a file of the folder whose approval did not come back.
pub(super) fn not_approved(step: &FileStep, failure: &Failure) -> String {
    let (path, message) = (step.path.display(), &failure.message);
    match row(&step.label) {
        Some(client) => format!(
            "{path} is not trusted any more: {message}; approve it with `{}`.",
            source::trusting_of(client, &step.path)
        ),
        None => format!("{path} is not trusted any more: {message}."),
    }
}

/// The names of clients for people, each once.
pub(in crate::commands) fn client_names<'l>(
    labels: impl Iterator<Item = &'l str>,
) -> Vec<&'static str> {
    let mut names = Vec::new();
    for name in labels.filter_map(row).map(|row| row.name.as_str()) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

fn row(label: &str) -> Option<&'static Client> {
    clients().iter().find(|row| row.label() == label)
}

fn quoted(names: &[String]) -> String {
    let names: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(outcome: FileUndone, lacking: &[&str]) -> String {
        let lacking = lacking.iter().map(|name| (*name).to_owned()).collect();
        let (label, path) = ("codex/user".to_owned(), "/nowhere/config.toml".into());
        let live = Vec::new();
        UndoneFile { label, path, outcome, lacking, live }.sentence()
    }

    #[test]
    fn an_entry_that_still_starts_narthex_has_a_remedy() {
        let names = |names: &[&str]| -> Vec<String> {
            names.iter().map(|name| (*name).to_owned()).collect()
        };
        let of = |kept: &[&str], live: &[&str]| {
            let outcome = FileUndone::TakenOut { kept: names(kept), edited: Vec::new() };
            let (label, path) = ("codex/user".to_owned(), "/nowhere/config.toml".into());
            UndoneFile { label, path, outcome, lacking: Vec::new(), live: names(live) }.words()
        };
        let changed = "was changed by others since the set-up: ";
        let live = "its entry `narthex` still starts narthex, and stays, since others have written \
                    in it: remove `narthex` from /nowhere/config.toml by hand; ";
        let rest = "the rest that narthex did there is taken back";
        assert_eq!(of(&["narthex"], &["narthex"]), format!("{changed}{live}{rest}"));
        assert_eq!(
            of(&["a", "narthex"], &["narthex"]),
            format!("{changed}{live}its entry `a` is another one now and stays, and {rest}")
        );
    }

    #[test]
    fn sentences_name_the_client_the_entries_and_the_next_step() {
        let names = |names: &[&str]| -> Vec<String> {
            names.iter().map(|name| (*name).to_owned()).collect()
        };
        let kept = |kept: &[&str]| FileUndone::TakenOut { kept: names(kept), edited: Vec::new() };
        let edited =
            |kept: &[&str]| FileUndone::TakenOut { kept: names(kept), edited: names(&["narthex"]) };
        let changed = "Codex CLI: /nowhere/config.toml was changed by others since the set-up: ";
        let taken_back = "that narthex did there is taken back";
        let narthex = "its entry `narthex`, which was edited, is taken out, and a copy of the file \
                       with it stays";
        let none: &[&str] = &[];
        for (outcome, lacking, expected) in [
            (
                FileUndone::Restored { edited: names(&["narthex"]) },
                none,
                format!(
                    "Codex CLI: /nowhere/config.toml is removed again, since it did not exist \
                     before; {narthex}: start Codex again"
                ),
            ),
            (
                kept(&["narthex"]),
                none,
                format!(
                    "{changed}its entry `narthex` is another one now and stays, and the rest \
                     {taken_back}: start Codex again"
                ),
            ),
            (
                kept(&["a", "b"]),
                &["a", "b"][..],
                format!(
                    "{changed}its entries `a`, `b` are other ones now and stay, and the rest \
                     {taken_back}; `a`, `b` are not there as they were before: start Codex again"
                ),
            ),
            (
                edited(&[]),
                none,
                format!("{changed}{narthex}; the other changes stay: start Codex again"),
            ),
            (
                edited(&["a"]),
                none,
                format!(
                    "{changed}{narthex}; its entry `a` is another one now and stays, and the rest \
                     {taken_back}: start Codex again"
                ),
            ),
        ] {
            assert_eq!(file(outcome, lacking), expected);
        }
        let gone = "Codex CLI: /nowhere/config.toml was removed since the set-up, and stays away";
        assert_eq!(file(FileUndone::Gone, &[]), gone);
    }

    /// Secrets that no daemon could be asked about are named with the reason, and not once the
    /// vault is deleted.
    #[test]
    fn secrets_without_a_daemon_are_named() {
        let no_answer = Some(Failure::new(ErrorKind::Unavailable, "it does not start"));
        let unasked = vec!["A".to_owned(), "B".to_owned()];
        let mut undo = Undo { unasked, no_answer, ..Undo::default() };
        let line = "Kept in the vault, since the daemon cannot be asked: A, B. `narthex secrets \
                    clear NAME` clears one of them once a daemon runs. The reason: it does not \
                    start";
        assert_eq!(undo.sentences(true), [line]);
        assert_eq!(undo.to_json()["kept_secrets"], json!(["A", "B"]));
        assert_eq!(undo.leave_out_deleted(&[], true), [""; 0]);
        assert_eq!(undo.sentences(true), [""; 0]);
    }

    #[test]
    fn a_failure_names_each_file_once_and_the_clients_that_wait() {
        let fault = |label: &str, path: &str| Fault {
            label: label.to_owned(),
            path: path.into(),
            reason: "line 1, column 2: odd; correct the JSON there".to_owned(),
            copy: None,
        };
        let again = narthex("setup --undo", &[]);
        let of = |faults| Undo { faults, ..Undo::default() }.failure(&again).unwrap().message;
        let [one, two] = [("codex/user", "/a"), ("zed/user", "/b")].map(|(l, p)| fault(l, p));
        assert_eq!(
            of(vec![one, two]),
            "/a cannot be brought back: line 1, column 2: odd; correct the JSON there; /b cannot \
             be brought back: line 1, column 2: odd; correct the JSON there; then run `narthex \
             setup --undo`, which undoes the rest: narthex's settings, secrets and service stay \
             until then, since Codex CLI, Zed still need them"
        );
        let settings = of(vec![fault(settings::LABEL, "/s")]);
        let end = "which undoes the rest: narthex's secrets and service stay until then";
        assert!(settings.ends_with(end), "{settings}");
        assert!(Undo::default().failure(&again).is_none());
        let ended_by = Some(Failure::new(ErrorKind::Unavailable, "the store is locked"));
        let failure = Undo { ended_by, ..Undo::default() }.failure(&again).unwrap();
        assert_eq!(
            failure.message,
            "the undo is not complete: the store is locked; mend that, then run `narthex \
             setup --undo`, which continues"
        );
    }
}
