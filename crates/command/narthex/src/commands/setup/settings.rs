//! The user's settings file of narthex: servers put in and taken out, as one edit each.

use narthex_client_files::{
    edit::{Format, Parent},
    file,
    journal::{Journal, Step},
    plan::Planned,
    rewrite::{Edit, parse, rewrite},
};
use narthex_model::{Alias, ErrorKind};
use narthex_registry::layers::{EditError, SettingsFile};
use serde_json::Value;

use super::{find::Survey, place::failed, secrets::Names};
use crate::{Failure, commands::import::check};

/// The file's name in the record.
pub(super) const LABEL: &str = "settings";

/// Puts servers into the settings, with the names of their secrets.
pub(super) async fn add(
    servers: &[(&Planned, Names)],
    survey: &Survey,
    journal: &mut Journal,
) -> Result<(), Failure> {
    let edits = servers.iter().map(|(one, names)| {
        let value: Value = serde_json::from_str(one.server.entry_naming(names).expose())
            .map_err(|error| Failure::new(ErrorKind::Bug, error.to_string()))?;
        Ok(Edit::Insert { parent: parent(), name: one.alias.as_str().to_owned(), value })
    });
    let edits = edits.collect::<Result<Vec<_>, Failure>>()?;
    // Before the edit, so that a later set-up knows each of them again.
    for (one, _) in servers {
        let step = Step::Server { alias: one.alias.as_str().to_owned(), seal: one.server.seal() };
        journal.note(step).map_err(|error| failed(&error))?;
    }
    change(edits, survey, journal).await
}

/// Takes servers out of the settings.
pub(super) async fn remove(
    names: &[&Alias],
    survey: &Survey,
    journal: &mut Journal,
) -> Result<(), Failure> {
    let edits = names.iter().map(|name| {
        let name = name.as_str().to_owned();
        Edit::Remove { parent: parent(), name }
    });
    change(edits.collect(), survey, journal).await
}

fn parent() -> Parent {
    Parent::map(["mcp", "servers"])
}

async fn change(edits: Vec<Edit>, survey: &Survey, journal: &mut Journal) -> Result<(), Failure> {
    if edits.is_empty() {
        return Ok(());
    }
    let path = &survey.settings;
    let variables = check::assumed(&survey.plan);
    let settings = SettingsFile::new(path, &survey.folder, variables);
    let refused = |error: EditError| Failure::caused(error.kind(), &error);
    let lock = settings.lock_file().map_err(refused)?;
    if !lock.exists() {
        journal.note_lock(lock).map_err(|error| failed(&error))?;
    }
    let _lock = settings.lock().await.map_err(refused)?;
    let invalid = |error: &dyn std::fmt::Display| {
        Failure::new(ErrorKind::Invalid, format!("{}: {error}", path.display()))
    };
    let bytes =
        file::read(path).map_err(|error| Failure::caused(ErrorKind::Unavailable, &error))?;
    let document = parse(Format::Jsonc, bytes.as_deref().unwrap_or_default());
    let document = document.map_err(|error| invalid(&error))?;
    let new = rewrite(&document, &edits).map_err(|error| invalid(&error))?;
    journal.write(LABEL, path, bytes.as_deref(), &new).map_err(|error| failed(&error))
}
