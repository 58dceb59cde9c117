//! Edits the servers of a settings file, one at a time; never a project's `mcp.json` (E144).
//!
//! All other content of the file stays byte for byte. An edit that would be refused when read is
//! not stored (D9). Entries are stored verbatim: placeholders stay placeholders, so no secret of
//! the environment gets into the file. Writers of this kind take turns by a lock file next to the
//! file. A reader sees the old content or the new one, never a part.

mod error;
mod store;

use std::{
    collections::BTreeSet,
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
};

use narthex_model::{Alias, ErrorKind, package::UnpinnedPackage};
use serde_json::value::RawValue;

pub use error::EditError;
pub use store::{EditLock, remove_lock};

use super::text::{self, TextError};
use crate::config::{self, ConfigWarning, Entry, Env, LoadContext, Variables, parse_settings};

/// The place of the entries.
const SERVERS: [&str; 2] = ["mcp", "servers"];

/// The text of a settings file that does not exist yet.
const EMPTY: &str = "{}\n";

/// A user's settings file, for edits.
#[derive(Clone)]
pub struct SettingsFile {
    file: Arc<Path>,
    workspace_root: Arc<Path>,
    env: Variables,
}

/// Result of a stored edit.
#[derive(Debug, Clone, PartialEq)]
pub struct Edited {
    /// Warnings about the entry for a person, such as a secret in the entry.
    pub warnings: Vec<ConfigWarning>,
    /// Packages of the entry whose version is not fixed; each is also a warning.
    pub unpinned: Vec<UnpinnedPackage>,
}

/// One edit, of one server. Entries and changes are JSON text.
#[derive(Debug, Clone)]
pub enum SettingsChange {
    /// Adds a server with a new name.
    Add(String),
    /// Adds a server, or replaces the server of its name.
    Replace(String),
    /// Sets these fields; removes those that are null.
    Update(String),
    /// Removes the server.
    Remove,
}

/// An edit that may be stored. Meanwhile no other writer edits the file.
#[derive(Debug)]
pub struct PreparedEdit {
    settings: SettingsFile,
    after: String,
    edited: Edited,
    fields: Vec<String>,
    lock: EditLock,
}

impl PreparedEdit {
    /// The names of the entry's fields in the change.
    #[must_use]
    pub fn fields(&self) -> &[String] {
        &self.fields
    }

    /// Stores the edit.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub async fn store(self) -> Result<Edited, EditError> {
        let Self { settings, after, edited, lock, .. } = self;
        let this = settings.clone();
        // The lock moves into the task: an edit whose caller no longer waits still ends before the
        // next.
        let storing = tokio::task::spawn_blocking(move || {
            let stored = store::replace(&this.file, &after);
            drop(lock);
            stored
        });
        storing.await.map_err(|source| settings.bug(source))??;
        Ok(edited)
    }
}

impl SettingsFile {
    /// Edits this file, which need not exist. `workspace_root` and `env` serve only the check of
    /// entries.
    #[must_use]
    pub fn new(file: &Path, workspace_root: &Path, env: Variables) -> Self {
        Self { file: file.into(), workspace_root: workspace_root.into(), env }
    }

    /// Adds a server; `entry` is JSON text.
    ///
    /// # Errors
    /// When there is a server of this name (E142), or for the reasons of [`EditError`].
    pub async fn add(&self, name: &str, entry: &str) -> Result<Edited, EditError> {
        self.edit(name, SettingsChange::Add(entry.to_owned())).await
    }

    /// Adds a server, or replaces it as a whole; `entry` is JSON text.
    ///
    /// # Errors
    /// For the reasons of [`EditError`].
    pub async fn replace(&self, name: &str, entry: &str) -> Result<Edited, EditError> {
        self.edit(name, SettingsChange::Replace(entry.to_owned())).await
    }

    /// Changes fields of a server: fields in `changes` are set, those that are null there are
    /// removed, and all others stay (E141). The same holds inside `auth`, unless its mode changes:
    /// then the block is replaced as a whole.
    ///
    /// # Errors
    /// When there is no server of this name, its transport would change (E142), or for the reasons
    /// of [`EditError`].
    pub async fn update(&self, name: &str, changes: &str) -> Result<Edited, EditError> {
        self.edit(name, SettingsChange::Update(changes.to_owned())).await
    }

    /// Removes a server.
    ///
    /// # Errors
    /// When there is no server of this name, or for the reasons of [`EditError`].
    pub async fn remove(&self, name: &str) -> Result<Edited, EditError> {
        self.edit(name, SettingsChange::Remove).await
    }

    /// The names of all entries as written, with those of faulty ones.
    ///
    /// # Errors
    /// When the file cannot be used.
    pub async fn names(&self) -> Result<BTreeSet<String>, EditError> {
        let this = self.clone();
        let names = tokio::task::spawn_blocking(move || {
            let text = this.read()?;
            text::keys(&text, &SERVERS).map_err(|error| this.shape(&error))
        });
        Ok(names.await.map_err(|source| self.bug(source))??.into_iter().collect())
    }

    /// Keeps other edits from the file, for a caller that writes the file itself. The file's folder
    /// is created if needed.
    ///
    /// # Errors
    /// When another edit does not end in time, or the lock cannot be made.
    pub async fn lock(&self) -> Result<EditLock, EditError> {
        store::lock(&self.file).await
    }

    /// The file that [`Self::lock`] locks, which need not exist.
    ///
    /// # Errors
    /// When the file is a link that leads nowhere.
    pub fn lock_file(&self) -> Result<PathBuf, EditError> {
        let file = &self.file;
        store::lock_file(file)
            .map_err(|source| EditError::Write { file: file.to_path_buf(), source })
    }

    async fn edit(&self, name: &str, change: SettingsChange) -> Result<Edited, EditError> {
        self.prepare(name, change).await?.store().await
    }

    /// Prepares an edit, and stores nothing yet.
    ///
    /// # Errors
    /// The errors of the edit itself: [`SettingsFile::add`], [`SettingsFile::replace`],
    /// [`SettingsFile::update`], [`SettingsFile::remove`].
    pub async fn prepare(
        &self,
        name: &str,
        change: SettingsChange,
    ) -> Result<PreparedEdit, EditError> {
        let name = match &change {
            SettingsChange::Remove => Alias::new(name)?,
            SettingsChange::Add(_) | SettingsChange::Replace(_) | SettingsChange::Update(_) => {
                Alias::of_server(name)?
            }
        };
        let lock = store::lock(&self.file).await?;
        let settings = self.clone();
        let prepare = tokio::task::spawn_blocking(move || {
            let before = settings.read()?;
            let after = settings.changed(&before, &name, &change)?;
            let (edited, given) = match &change {
                SettingsChange::Add(given)
                | SettingsChange::Replace(given)
                | SettingsChange::Update(given) => (settings.check(&after, &name)?, Some(given)),
                SettingsChange::Remove => {
                    (Edited { warnings: Vec::new(), unpinned: Vec::new() }, None)
                }
            };
            let fields = match given {
                Some(given) => text::keys(given, &[]).map_err(|error| settings.shape(&error))?,
                None => Vec::new(),
            };
            Ok(PreparedEdit { fields, settings, after, edited, lock })
        });
        prepare.await.map_err(|source| self.bug(source))?
    }

    /// The file's text, if the file can be edited.
    fn read(&self) -> Result<String, EditError> {
        let bytes = match config::read(&self.file) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == ErrorKind::NotFound => EMPTY.as_bytes().to_vec(),
            Err(error) => return Err(error.into()),
        };
        parse_settings(&bytes, &self.context())?;
        let shape = |problem| EditError::Shape { file: self.file.to_path_buf(), problem };
        let text = String::from_utf8(bytes).map_err(|error| shape(error.to_string()))?;
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text).to_owned();
        let keys = text::keys(&text, &[]).map_err(|error| self.shape(&error))?;
        let has = |key: &str| keys.iter().any(|other| other == key);
        if !has("mcp") && (has("servers") || has("mcpServers")) {
            return Err(EditError::NotSettings { file: self.file.to_path_buf() });
        }
        Ok(text)
    }

    fn changed(
        &self,
        text: &str,
        name: &Alias,
        change: &SettingsChange,
    ) -> Result<String, EditError> {
        let path = [SERVERS[0], SERVERS[1], name.as_str()];
        let shape = |error: TextError| self.shape(&error);
        let present = text::get(text, &path).map_err(shape)?;
        let file = || self.file.to_path_buf();
        match (change, present) {
            (SettingsChange::Add(_), Some(_)) => {
                Err(EditError::Exists { file: file(), name: name.clone() })
            }
            (SettingsChange::Add(entry), None) | (SettingsChange::Replace(entry), _) => {
                text::set(text, &path, object(name, entry)?).map_err(shape)
            }
            (SettingsChange::Update(_) | SettingsChange::Remove, None) => {
                Err(EditError::Unknown { file: file(), name: name.clone() })
            }
            (SettingsChange::Update(changes), Some(entry)) => {
                let changes = object(name, changes)?;
                let is_kept = keeps_transport(entry, changes).map_err(shape)?;
                if !is_kept {
                    return Err(EditError::TransportFixed { file: file(), name: name.clone() });
                }
                if let Some(key) = twice(changes).map_err(shape)? {
                    return Err(EditError::Twice { name: name.clone(), key });
                }
                update(text, &path, changes).map_err(shape)
            }
            (SettingsChange::Remove, Some(_)) => {
                let removed = text::remove(text, &path).map_err(shape)?;
                removed.ok_or_else(|| EditError::Unknown { file: file(), name: name.clone() })
            }
        }
    }

    /// Reads the new text as it will be read, before it is stored.
    fn check(&self, text: &str, name: &Alias) -> Result<Edited, EditError> {
        let loaded = parse_settings(text.as_bytes(), &self.context())?;
        let entry = loaded.entries.into_iter().find(|entry| entry.name() == name.as_str());
        match entry {
            Some(Entry::Server(_)) => {
                let at = format!("mcp.servers.{name}");
                let inside = |warning: &ConfigWarning| {
                    let rest = warning.path.strip_prefix(&at);
                    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
                };
                let told = loaded.warnings.into_iter().filter(inside);
                let unpinned = self.unpinned(text, name)?;
                let packages = unpinned.iter().map(|package| ConfigWarning {
                    file: self.file.to_path_buf(),
                    path: format!("{at}.args"),
                    message: package.to_string(),
                });
                Ok(Edited { warnings: told.chain(packages).collect(), unpinned })
            }
            Some(Entry::Fault(fault)) => {
                Err(EditError::Refused { name: name.clone(), message: fault.error.message })
            }
            None => Err(EditError::Shape {
                file: self.file.to_path_buf(),
                problem: "`mcp.servers` is not an object".to_owned(),
            }),
        }
    }

    /// The packages of an entry whose version is not fixed, as it is written, without values.
    fn unpinned(&self, text: &str, name: &Alias) -> Result<Vec<UnpinnedPackage>, EditError> {
        let context = LoadContext { env: Env::AsWritten, ..self.context() };
        let loaded = parse_settings(text.as_bytes(), &context)?;
        let packages = loaded.entries.iter().filter_map(|entry| match entry {
            Entry::Server(server) if server.alias == *name => Some(server.unpinned_packages()),
            Entry::Server(_) | Entry::Fault(_) => None,
        });
        Ok(packages.flatten().collect())
    }

    fn context(&self) -> LoadContext<'_> {
        LoadContext {
            file: &self.file,
            workspace_root: &self.workspace_root,
            env: Env::Values(&*self.env),
        }
    }

    fn shape(&self, error: &TextError) -> EditError {
        EditError::Shape { file: self.file.to_path_buf(), problem: error.to_string() }
    }

    fn bug(&self, source: tokio::task::JoinError) -> EditError {
        EditError::Bug { file: self.file.to_path_buf(), source }
    }
}

impl fmt::Debug for SettingsFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SettingsFile").field("file", &self.file).finish_non_exhaustive()
    }
}

/// `entry` without the space around it, if it is exactly one JSON object: any text after it would
/// become a part of the file.
fn object<'t>(name: &Alias, entry: &'t str) -> Result<&'t str, EditError> {
    let fail = |problem: String| EditError::Entry { name: name.clone(), problem };
    let raw: &RawValue = serde_json::from_str(entry).map_err(|error| fail(error.to_string()))?;
    if raw.get().starts_with('{') {
        return Ok(raw.get());
    }
    Err(fail("something else".to_owned()))
}

fn keeps_transport(entry: &str, changes: &str) -> Result<bool, TextError> {
    let Some(asked) = text::get(changes, &["transport"])? else { return Ok(true) };
    let stored = text::get(entry, &["transport"])?.unwrap_or("null");
    Ok(is_same(stored, asked)?)
}

/// The field that changes give twice, if there is one: the reader of the file sees only the
/// outcome.
fn twice(changes: &str) -> Result<Option<String>, TextError> {
    let fields = text::keys(changes, &[])?;
    let auth = match text::get(changes, &["auth"])? {
        Some(auth) if auth.starts_with('{') => text::keys(auth, &[])?,
        Some(_) | None => Vec::new(),
    };
    let again = |keys: &[String]| {
        let found = keys.iter().enumerate().find(|(at, key)| keys[..*at].contains(key));
        found.map(|(_, key)| key.clone())
    };
    Ok(again(&fields).or_else(|| again(&auth)))
}

/// Sets or removes, one by one, the fields of the object at `path`.
fn update(text: &str, path: &[&str], changes: &str) -> Result<String, TextError> {
    let mut text = text.to_owned();
    for key in text::keys(changes, &[])? {
        let value = text::get(changes, &[&key])?.unwrap_or("null");
        let place: Vec<&str> = path.iter().copied().chain([key.as_str()]).collect();
        text = match text::get(&text, &place)? {
            Some(_) if value == "null" => text::remove(&text, &place)?.unwrap_or(text),
            None if value == "null" => text,
            Some(stored) if key == "auth" && keeps_mode(stored, value)? => {
                update(&text, &place, value)?
            }
            Some(_) | None => text::set(&text, &place, value)?,
        };
    }
    Ok(text)
}

/// True if both are blocks of one mode, so that fields missing from the change stay.
fn keeps_mode(stored: &str, change: &str) -> Result<bool, TextError> {
    if !stored.starts_with('{') || !change.starts_with('{') {
        return Ok(false);
    }
    let stored = text::get(stored, &["mode"])?.unwrap_or("null");
    match text::get(change, &["mode"])? {
        Some(mode) => Ok(is_same(stored, mode)?),
        None => Ok(true),
    }
}

fn is_same(left: &str, right: &str) -> Result<bool, serde_json::Error> {
    let read = serde_json::from_str::<serde_json::Value>;
    Ok(read(left)? == read(right)?)
}
