//! The settings of a backup: shown with their programs, and put in place where there are none.

use std::{
    io::{self, Write as _},
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
};

use fs_err as fs;
use narthex_client::settings_files::{SERVERS_FILE, SETTINGS_FILE};
use narthex_model::command::quoted;
use narthex_registry::config::{Env, LoadContext, LoadedConfig, parse_settings};
use serde_json::{Value, json};

use crate::{
    Failure,
    archive::{SETTINGS, place_new, unfinished},
    cli::Context,
    commands::{
        packages::FailedStarts,
        trust::{show, shown},
    },
    config,
    output::{self, counted, harmless},
};

/// The settings of a backup, which are in the folder [`SETTINGS`] of the data directory first.
pub(super) struct FoundSettings(Vec<Found>);

struct Found {
    from: PathBuf,
    /// The file in use; `None` without a home folder.
    place: Option<PathBuf>,
    state: State,
}

enum State {
    Placed,
    /// The file in use has the same content.
    Same,
    /// The file stays in the data directory, for this reason.
    Left(Reason),
}

enum Reason {
    /// There is another file.
    Present,
    /// There is something that cannot be read.
    Unreadable(String),
    /// There is no file in use yet, and the user has not agreed, or not yet.
    NotApproved,
    /// The file could not be written.
    Failed(String),
    /// There is no home folder.
    NoPlace,
}

impl FoundSettings {
    pub(super) fn look(data: &Path, context: &Context) -> Self {
        let settings = &context.settings;
        let files = [
            (SERVERS_FILE, settings.servers.clone()),
            (SETTINGS_FILE, settings.variables.file().cloned()),
        ];
        let files = files.into_iter().map(|(name, place)| {
            let from = data.join(SETTINGS).join(name);
            let state = match &place {
                Some(place) => state(&from, place),
                None => State::Left(Reason::NoPlace),
            };
            Found { from, place, state }
        });
        Self(files.filter(|found| found.from.exists()).collect())
    }

    pub(super) fn is_any_new(&self) -> bool {
        self.pending().next().is_some()
    }

    /// The new files, each with its place.
    fn pending(&self) -> impl Iterator<Item = (&Path, &Path)> {
        let new = self.0.iter().filter(|found| found.is_new());
        new.filter_map(|found| Some((found.from.as_path(), found.place.as_deref()?)))
    }

    /// Shows the new files with the programs that they name.
    pub(super) fn show(&self) -> Result<(), Failure> {
        for (from, place) in self.pending() {
            output::line(&format!("\n{}", harmless(&place.display().to_string())))?;
            let text = fs::read(from)?;
            if from.ends_with(SERVERS_FILE) {
                match servers(&text, place) {
                    Ok(servers) => show(&servers)?,
                    Err(failure) => output::line(&harmless(&failure.message))?,
                }
                let profiles = loaded(&text, place).map_or(0, |loaded| loaded.profiles.len());
                if profiles > 0 {
                    output::line(&counted(profiles as u64, "profile"))?;
                }
            } else {
                let lines = config::programs(&String::from_utf8_lossy(&text));
                lines.iter().try_for_each(|line| output::line(&harmless(line)))?;
            }
        }
        Ok(())
    }

    /// The numbers of servers and of profiles; `None` without a readable file of servers.
    pub(super) fn counts(&self) -> Option<(usize, usize)> {
        let found = self.0.iter().find(|found| found.from.ends_with(SERVERS_FILE))?;
        let loaded = loaded(&fs::read(&found.from).ok()?, &found.from).ok()?;
        Some((loaded.entries.len(), loaded.profiles.len()))
    }

    /// Puts the new files in place.
    pub(super) fn place(&mut self) {
        for found in self.0.iter_mut().filter(|found| found.is_new()) {
            let Some(place) = found.place.as_deref() else { continue };
            found.state = match put(&found.from, place) {
                Ok(()) => State::Placed,
                Err(failure) => State::Left(Reason::Failed(failure.message)),
            };
        }
    }

    /// Removes the copies that have no further use.
    pub(super) fn tidy(&self, data: &Path) {
        let is_left = |found: &&Found| matches!(found.state, State::Left(_));
        let done = self.0.iter().filter(|found| !is_left(found));
        let removed = done.map(|found| fs::remove_file(&found.from));
        let mut removed: Vec<_> = removed.collect();
        if !self.0.is_empty() && !self.0.iter().any(|found| is_left(&found)) {
            removed.push(fs::remove_dir(data.join(SETTINGS)));
        }
        for error in removed.into_iter().filter_map(Result::err) {
            tracing::warn!("a copy of the settings could not be removed: {error}");
        }
    }

    /// The files that stay in the data directory, each with the reason and the remedy.
    pub(super) fn notices(&self) -> Vec<String> {
        self.0.iter().filter_map(Found::notice).collect()
    }

    pub(super) fn to_json(&self) -> Vec<Value> {
        let all = self.0.iter().map(|found| {
            let (result, reason) = match &found.state {
                State::Left(Reason::NotApproved) => ("left", "not_approved"),
                State::Placed => ("placed", ""),
                State::Same => ("same", ""),
                State::Left(Reason::Present) => ("left", "present"),
                State::Left(Reason::Unreadable(_)) => ("left", "unreadable"),
                State::Left(Reason::Failed(_)) => ("left", "failed"),
                State::Left(Reason::NoPlace) => ("left", "no_home"),
            };
            let is_left = result == "left";
            json!({
                "file": found.place,
                "result": result,
                "reason": is_left.then_some(reason),
                "copy": is_left.then_some(&found.from),
            })
        });
        all.collect()
    }
}

impl Found {
    fn is_new(&self) -> bool {
        matches!(self.state, State::Left(Reason::NotApproved))
    }

    fn notice(&self) -> Option<String> {
        let State::Left(reason) = &self.state else { return None };
        let from = harmless(&self.from.display().to_string());
        let place = self.place.as_deref().map(|place| harmless(&place.display().to_string()));
        let place = place.unwrap_or_default();
        let copy = format!("the file of the backup is {from}");
        Some(match reason {
            Reason::Present => format!("{place} exists already and is unchanged; {copy}"),
            Reason::Unreadable(error) => {
                format!("{place} cannot be read and is unchanged ({}); {copy}", harmless(error))
            }
            Reason::NotApproved => format!(
                "{place} of the backup was not put in place, since it may name programs that the \
                 daemon starts; read {from}, then put it there with `{}`",
                self.command()
            ),
            Reason::Failed(error) => format!(
                "{place} cannot be written: {}; {copy}; put it in place with `{}`",
                harmless(error),
                self.command()
            ),
            Reason::NoPlace => format!("there is no home folder for settings; {copy}"),
        })
    }

    /// The command that puts the file in place by hand.
    fn command(&self) -> String {
        let word = |path: &Path| quoted(&path.to_string_lossy()).into_owned();
        let place = self.place.as_deref().unwrap_or(Path::new(""));
        let folder = place.parent().unwrap_or(Path::new("/"));
        format!("mkdir -p {} && mv -n {} {}", word(folder), word(&self.from), word(place))
    }
}

/// The state of a file of the backup: new only if nothing is at its place.
fn state(from: &Path, place: &Path) -> State {
    match fs::symlink_metadata(place) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return State::Left(Reason::NotApproved);
        }
        Err(error) => return State::Left(Reason::Unreadable(error.to_string())),
        Ok(_) => {}
    }
    match (fs::read(place), fs::read(from)) {
        (Ok(present), Ok(text)) if present == text => State::Same,
        (Ok(_), _) => State::Left(Reason::Present),
        (Err(error), _) => State::Left(Reason::Unreadable(error.to_string())),
    }
}

fn put(from: &Path, place: &Path) -> Result<(), Failure> {
    let text = fs::read(from)?;
    if let Some(folder) = place.parent() {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    }
    let mut file = unfinished(place)?;
    file.write_all(&text)?;
    place_new(file, place)
}

/// The servers of a settings file, as `narthex trust` shows those of an `mcp.json`.
fn servers(text: &[u8], file: &Path) -> Result<Vec<Value>, Failure> {
    let loaded = loaded(text, file)?;
    let failed = FailedStarts::default();
    Ok(loaded.entries.iter().map(|entry| shown(entry, &failed)).collect())
}

fn loaded(text: &[u8], file: &Path) -> Result<LoadedConfig, Failure> {
    let root = config::workspace_root()?;
    let context = LoadContext { file, workspace_root: &root, env: Env::AsWritten };
    parse_settings(text, &context).map_err(|error| Failure::caused(error.kind(), &error))
}
