//! The user's settings file of narthex: servers put in and taken out, as one edit each.

use std::{collections::BTreeMap, path::Path};

use narthex_client_files::{
    edit::{Document, Format, Parent},
    file,
    journal::{Journal, Step},
    plan::{Outcome, Planned, field_of_secrets, naming, replaced},
    rewrite::{Edit, parse, rewrite},
};
use narthex_model::ErrorKind;
use narthex_registry::layers::{EditError, EditLock, SettingsFile};
use serde_json::Value;

use super::{
    find::Survey,
    place::failed,
    secrets::{Names, WithSecrets},
};
use crate::{Failure, commands::import::check};

/// The file's name in the record.
pub(super) const LABEL: &str = "settings";

/// The servers whose secrets go to the vault: those that come into the settings, and those that are
/// there with secrets as texts.
pub(super) fn with_secrets(survey: &Survey) -> Vec<WithSecrets<'_>> {
    let new = survey.moving().filter(|one| one.outcome == Outcome::Add);
    let new = new.map(|one| (one, one.server.nameable_secrets()));
    new.chain(survey.with_texts()).collect()
}

/// Puts servers into the settings, with the names of their secrets. In the entry of one that is
/// there these names come in place of values, and all else stays as it is written.
pub(super) async fn add(
    servers: &[(&Planned, Names)],
    survey: &Survey,
    journal: &mut Journal,
) -> Result<(), Failure> {
    if servers.is_empty() {
        return Ok(());
    }
    let open = Open::of(survey, journal).await?;
    let now = open.entries(survey)?;
    let mut edits = Vec::new();
    for (one, names) in servers {
        let name = one.alias.as_str().to_owned();
        let present = now.get(&name).filter(|_| one.outcome == Outcome::Present);
        let value = match present {
            Some(entry) => naming(&one.server, entry, names),
            None => serde_json::from_str(one.server.entry_naming(names).expose())
                .map_err(|error| Failure::new(ErrorKind::Bug, error.to_string()))?,
        };
        // Before the edit, so that a later set-up knows each of them again. A server that was there
        // before stays, also if it does not work.
        let step = Step::Server {
            alias: name.clone(),
            seal: one.server.seal(),
            entry: Some(value.to_string()),
            is_unproven: present.is_none(),
        };
        journal.note(step).map_err(|error| failed(&error))?;
        match present {
            Some(entry) => edits.extend(name_secrets(one, entry, names)),
            None => edits.push(Edit::Insert { parent: parent(), name, value }),
        }
    }
    open.write(&edits, survey, journal)
}

/// The edits that put names of secrets in place of the values of an entry.
fn name_secrets(one: &Planned, entry: &Value, names: &Names) -> impl Iterator<Item = Edit> {
    let path = ["mcp", "servers", one.alias.as_str(), field_of_secrets(&one.server)];
    let parent = Parent::map(path);
    let replaced = replaced(&one.server, entry, names).into_iter();
    replaced.map(move |(name, value)| Edit::Replace { parent: parent.clone(), name, value })
}

/// A server that set-ups put into the settings, and that has not worked yet.
pub(super) struct Unproven {
    alias: String,
    seal: String,
    pub(super) entry: Value,
}

impl Unproven {
    /// The server in the record; `None` if it has worked once, or came from another place.
    pub(super) fn find(one: &Planned, journal: &Journal) -> Option<Self> {
        let wanted = one.server.seal();
        journal.steps().iter().rev().find_map(|step| match step {
            Step::Server { alias, seal, entry: Some(text), is_unproven: true }
                if *alias == one.alias.as_str() && *seal == wanted =>
            {
                let entry = serde_json::from_str(text).ok()?;
                Some(Self { alias: alias.clone(), seal: seal.clone(), entry })
            }
            Step::Server { .. } | Step::File(_) | Step::Secret { .. } | Step::Service { .. } => {
                None
            }
        })
    }

    /// True for the step that put the server into the settings.
    fn is_of(&self, step: &Step) -> bool {
        matches!(step, Step::Server { alias, seal, .. }
            if *alias == self.alias && *seal == self.seal)
    }
}

/// Records that servers work, before a file of a client changes, which then needs them.
pub(super) fn note_working(names: &[&str], journal: &mut Journal) -> Result<(), Failure> {
    if names.is_empty() {
        return Ok(());
    }
    journal.note_working(|alias| names.contains(&alias)).map_err(|error| failed(&error))
}

/// Forgets servers that are taken back: one of the same name is another one then.
pub(super) fn forget(servers: &[Unproven], journal: &mut Journal) -> Result<(), Failure> {
    let forgotten = journal.forget_all(|step| servers.iter().any(|one| one.is_of(step)));
    forgotten.map_err(|error| failed(&error))
}

/// Takes servers out of the settings; an entry that another has changed since stays. True if one
/// was taken out.
pub(super) async fn remove(
    servers: &[Unproven],
    survey: &Survey,
    journal: &mut Journal,
) -> Result<bool, Failure> {
    if servers.is_empty() {
        return Ok(false);
    }
    let open = Open::of(survey, journal).await?;
    let now = open.entries(survey)?;
    let own = servers.iter().filter(|one| now.get(&one.alias) == Some(&one.entry));
    let edits = own.map(|one| Edit::Remove { parent: parent(), name: one.alias.clone() });
    let edits: Vec<_> = edits.collect();
    open.write(&edits, survey, journal)?;
    Ok(!edits.is_empty())
}

/// The servers of a settings file by name.
pub(super) fn entries(path: &Path) -> Result<BTreeMap<String, Value>, Failure> {
    read(path)?.entries(path)
}

fn parent() -> Parent {
    Parent::map(["mcp", "servers"])
}

/// The present settings.
struct Present {
    /// The text; `None` if there is no file.
    bytes: Option<Vec<u8>>,
    document: Document,
}

impl Present {
    fn entries(&self, path: &Path) -> Result<BTreeMap<String, Value>, Failure> {
        let entries = self.document.entries(&parent());
        Ok(entries.map_err(|error| invalid(path, &error))?.into_iter().collect())
    }
}

fn read(path: &Path) -> Result<Present, Failure> {
    let bytes =
        file::read(path).map_err(|error| Failure::caused(ErrorKind::Unavailable, &error))?;
    let document = parse(Format::Jsonc, bytes.as_deref().unwrap_or_default());
    let document = document.map_err(|error| invalid(path, &error))?;
    Ok(Present { bytes, document })
}

fn invalid(path: &Path, error: &dyn std::fmt::Display) -> Failure {
    Failure::new(ErrorKind::Invalid, format!("{}: {error}", path.display()))
}

/// The present settings while no other program writes them: edits are made from what is there.
struct Open {
    present: Present,
    _lock: EditLock,
}

impl Open {
    async fn of(survey: &Survey, journal: &mut Journal) -> Result<Self, Failure> {
        let path = &survey.settings;
        let variables = check::assumed(&survey.plan);
        let settings = SettingsFile::new(path, &survey.folder, variables);
        let refused = |error: EditError| Failure::caused(error.kind(), &error);
        let lock = settings.lock_file().map_err(refused)?;
        if !lock.exists() {
            journal.note_lock(lock).map_err(|error| failed(&error))?;
        }
        let lock = settings.lock().await.map_err(refused)?;
        Ok(Self { present: read(path)?, _lock: lock })
    }

    fn entries(&self, survey: &Survey) -> Result<BTreeMap<String, Value>, Failure> {
        self.present.entries(&survey.settings)
    }

    fn write(&self, edits: &[Edit], survey: &Survey, journal: &mut Journal) -> Result<(), Failure> {
        if edits.is_empty() {
            return Ok(());
        }
        let (path, Present { bytes, document }) = (&survey.settings, &self.present);
        let new = rewrite(document, edits).map_err(|error| invalid(path, &error))?;
        journal.write(LABEL, path, bytes.as_deref(), &new).map_err(|error| failed(&error))
    }
}
