//! The entry of narthex in the file of one client, without its servers: shown before it is
//! written, written, and taken back.
//!
//! Texts of the file itself are never shown, since entries of others may have secrets in them.
//! Each write is recorded first, as those of a set-up are.

mod error;

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

pub use error::ConnectError;

use crate::clients::{Client, Machine, OwnEntry, Scope, System, clients};
use crate::edit::{Document, EditError};
use crate::file;
use crate::journal::{FileStep, FileUndone, Journal, Lacking, Step};
use crate::plan::{OwnDaemon, is_gone_narthex};
use crate::rewrite::{Edit, parse, rewrite};
use crate::servers::{Found, read};

/// The usual name of narthex's own entry.
const NAME: &str = "narthex";

/// The machine of a daemon that runs as the owner of the clients' files.
#[derive(Debug, Clone)]
pub struct OwnMachine {
    /// The home folder of the user.
    pub home: PathBuf,
    /// Looks up one environment variable.
    pub variable: fn(&str) -> Option<String>,
    /// The path of the program.
    pub program: String,
    /// Arguments after `connect`.
    pub arguments: Vec<String>,
    /// The daemon that clients are to reach.
    pub daemon: OwnDaemon,
    /// The folder of the record.
    pub record: PathBuf,
    /// The lock of set-ups.
    pub lock: PathBuf,
}

/// The file of a client, before anything changes.
#[derive(Debug, Clone)]
pub struct Look {
    /// The row of the client.
    pub client: &'static Client,
    /// The path of the file.
    pub path: PathBuf,
    /// True if the file is to be made.
    pub is_new: bool,
    /// Hash of the content, by which a later write knows that it is the same.
    pub seal: String,
    /// The name of narthex's entry: the one that is there, or the one to come.
    pub name: String,
    /// The state of that entry.
    pub entry: Standing,
}

/// The state of narthex's own entry in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// The entry is to come, with these lines.
    Absent(String),
    /// The entry is there.
    Present(WayBack),
}

/// The way in which an entry is taken out again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WayBack {
    /// By the record, which has the entry alone.
    Alone,
    /// By the undo of a set-up, which has also moved servers.
    SetUp,
    /// By hand: narthex has no record of it.
    ByHand,
}

/// The clients of this user that have a file, each once, in the order of the table.
pub fn of_user() -> impl Iterator<Item = &'static Client> {
    clients().iter().filter(|client| client.scope == Scope::User)
}

/// The edit that puts narthex's entry into a file of a client, after the other edits. Its name is
/// one that no other entry has: the client may reach another narthex under the usual name.
///
/// # Errors
/// When the file has no room for entries, or the template of the row cannot be used.
pub fn own_edit(
    client: &Client,
    folder: &str,
    document: &Document,
    others: &[Edit],
    own: &OwnEntry<'_>,
) -> Result<Option<Edit>, EditError> {
    let Some(parent) = client.parents(folder).into_iter().next() else { return Ok(None) };
    let is_removed = |own: &String| {
        let mut edits = others.iter();
        edits.any(|edit| match edit {
            Edit::Remove { parent: of, name } => *of == parent && name == own,
            Edit::Insert { .. } | Edit::Replace { .. } => false,
        })
    };
    let present = document.entries(&parent)?.into_iter().map(|(name, _)| name);
    let taken: Vec<_> = present.filter(|name| !is_removed(name)).collect();
    let name = free_name(&taken);
    let value = client.own_entry(&OwnEntry { name: &name, ..*own })?;
    Ok(Some(Edit::Insert { parent, name, value }))
}

/// The name of narthex's own entry beside entries of these names.
fn free_name(taken: &[String]) -> String {
    let numbered = (2..).map(|number: u32| format!("{NAME}-{number}"));
    let mut names = std::iter::once(NAME.to_owned()).chain(numbered);
    names.find(|name| !taken.contains(name)).unwrap_or_else(|| NAME.to_owned())
}

/// The text of a file that has this edit alone, to be read or copied by people.
///
/// # Errors
/// When the format cannot express the entry.
pub fn alone(client: &Client, edit: &Edit) -> Result<String, EditError> {
    let document = parse(client.format, b"")?;
    let new = rewrite(&document, std::slice::from_ref(edit))?;
    Ok(String::from_utf8_lossy(&new.bytes).into_owned())
}

/// The text of a file by which a client starts `narthex connect`.
///
/// # Errors
/// When the template of the row cannot be used.
pub fn program_text(client: &Client, own: &OwnEntry<'_>) -> Result<String, EditError> {
    let empty = parse(client.format, b"")?;
    match own_edit(client, "", &empty, &[], own)? {
        Some(edit) => alone(client, &edit),
        None => Ok(String::new()),
    }
}

/// The text of a file by which a client that signs its human in reaches this address; `None` for a
/// client that takes no address.
///
/// # Errors
/// When the template of the row cannot be used.
pub fn address_text(client: &Client, url: &str) -> Result<Option<String>, EditError> {
    let parent = client.parents("").into_iter().next();
    let (Some(parent), Some(value)) = (parent, client.address_entry(NAME, url)?) else {
        return Ok(None);
    };
    alone(client, &Edit::Insert { parent, name: NAME.to_owned(), value }).map(Some)
}

impl OwnMachine {
    /// True if this process runs as the owner of the home folder.
    #[must_use]
    pub fn is_of_this_user(&self) -> bool {
        let own = rustix::process::geteuid().as_raw();
        fs_err::metadata(&self.home).is_ok_and(|home| home.is_dir() && home.uid() == own)
    }

    /// Narthex's own entry under its usual name.
    #[must_use]
    pub fn own(&self) -> OwnEntry<'_> {
        OwnEntry { name: NAME, program: &self.program, arguments: &self.arguments }
    }

    /// Looks at the file of a client of this user. Changes nothing.
    ///
    /// # Errors
    /// When there is no such client on this machine, or its file cannot be read or edited.
    pub fn look(&self, id: &str) -> Result<Look, ConnectError> {
        self.read(id).map(|(look, _, _)| look)
    }

    /// Puts narthex's entry into the file of a client, if the file is still the one with this seal.
    ///
    /// # Errors
    /// When the file has changed, has narthex already, or cannot be written. It is then as it was.
    pub fn connect(&self, id: &str, seal: &str) -> Result<Look, ConnectError> {
        let _lock = self.locked()?;
        let (look, bytes, document) = self.read(id)?;
        let Look { client, path, name, .. } = look;
        if look.seal != seal {
            return Err(ConnectError::Changed { path });
        }
        if let Standing::Present(_) = look.entry {
            return Err(ConnectError::Present { path, name });
        }
        let fault = |source| ConnectError::Text { path: path.clone(), source };
        let edit = own_edit(client, "", &document, &[], &self.own()).map_err(fault)?;
        let edits: Vec<_> = edit.into_iter().collect();
        let new = rewrite(&document, &edits).map_err(fault)?;
        let mut journal = Journal::open(&self.record)?;
        journal.write(&client.label(), &path, bytes.as_deref(), &new)?;
        self.look(id)
    }

    /// Takes narthex's entry out of the file of a client again, by the record.
    ///
    /// # Errors
    /// When the record has no such entry alone, or the file cannot be written.
    pub fn take_back(&self, id: &str) -> Result<FileUndone, ConnectError> {
        let _lock = self.locked()?;
        let client = row(id)?;
        let path = self.path(client)?;
        let mut journal = Journal::open(&self.record)?;
        let Some((at, step)) = last_step(&journal, &path).filter(|(_, step)| step.is_own_entry())
        else {
            return Err(ConnectError::NoWayBack { path });
        };
        let undone = journal.undo(&step)?;
        let lacking = match &undone {
            FileUndone::Restored { .. } | FileUndone::NotMade => Lacking::Nothing,
            FileUndone::TakenOut { .. } => journal.lacking(&step),
            FileUndone::Gone => Lacking::Unknown,
        };
        if lacking != Lacking::Nothing {
            journal.keep_copy(&step);
        }
        journal.forget(at)?;
        if journal.lock().is_none() {
            // Does nothing while a step is left.
            journal.finish()?;
        }
        Ok(undone)
    }

    /// The file of a client with its content.
    fn read(&self, id: &str) -> Result<(Look, Option<Vec<u8>>, Document), ConnectError> {
        let client = row(id)?;
        let path = self.path(client)?;
        let fault = |source| ConnectError::Text { path: path.clone(), source };
        let bytes = file::read(&path)?;
        let document = parse(client.format, bytes.as_deref().unwrap_or_default()).map_err(fault)?;
        let found = read(client, &document, "").map_err(fault)?;
        let own = found.iter().filter_map(Found::server).find(|server| {
            self.daemon.is_reached_by(client, server) && !is_gone_narthex(client, server)
        });
        let (name, entry) = match own {
            Some(server) => (server.name.clone(), Standing::Present(self.way_back(&path)?)),
            None => self.to_come(client, &document).map_err(fault)?,
        };
        let (is_new, seal) = (bytes.is_none(), seal(bytes.as_deref()));
        Ok((Look { client, path: path.clone(), is_new, seal, name, entry }, bytes, document))
    }

    /// The name and the lines of the entry to come.
    fn to_come(
        &self,
        client: &Client,
        document: &Document,
    ) -> Result<(String, Standing), EditError> {
        let edit = own_edit(client, "", document, &[], &self.own())?;
        let Some(edit) = edit else {
            return Ok((NAME.to_owned(), Standing::Absent(String::new())));
        };
        let text = alone(client, &edit)?;
        let name = match edit {
            Edit::Insert { name, .. } | Edit::Remove { name, .. } | Edit::Replace { name, .. } => {
                name
            }
        };
        Ok((name, Standing::Absent(text)))
    }

    fn way_back(&self, path: &Path) -> Result<WayBack, ConnectError> {
        let journal = Journal::open(&self.record)?;
        Ok(match last_step(&journal, path) {
            Some((_, step)) if step.is_own_entry() => WayBack::Alone,
            Some(_) => WayBack::SetUp,
            None => WayBack::ByHand,
        })
    }

    /// The path of the client's file: the first that exists, or the one to make.
    fn path(&self, client: &Client) -> Result<PathBuf, ConnectError> {
        let machine = Machine {
            system: System::current(),
            home: &self.home,
            folder: &self.home,
            variable: &self.variable,
        };
        if let Some(found) = machine.candidates(client).into_iter().find(|path| path.exists()) {
            return Ok(found);
        }
        let name = || client.name.clone();
        let path = machine.to_create(client).ok_or_else(|| ConnectError::Elsewhere(name()))?;
        match path.parent() {
            Some(folder) if !folder.is_dir() => {
                Err(ConnectError::NoFolder { client: name(), folder: folder.to_owned() })
            }
            _ => Ok(path),
        }
    }

    /// Keeps a set-up from working at the same time.
    fn locked(&self) -> Result<fs_err::File, ConnectError> {
        let failed = |source| ConnectError::Lock { path: self.lock.clone(), source };
        let file = narthex_private::open_or_create(&self.lock).map_err(failed)?;
        file.file().try_lock().map_err(|_taken| ConnectError::Busy)?;
        Ok(file)
    }
}

fn row(id: &str) -> Result<&'static Client, ConnectError> {
    of_user().find(|client| client.id == id).ok_or_else(|| ConnectError::Unknown(id.to_owned()))
}

/// The last recorded step of a file, with its place.
fn last_step(journal: &Journal, path: &Path) -> Option<(usize, FileStep)> {
    let steps = journal.steps().iter().enumerate().rev();
    let mut of_file = steps.filter_map(|(at, step)| match step {
        Step::File(file) if file.path == path => Some((at, FileStep::clone(file))),
        Step::File(_) | Step::Secret { .. } | Step::Service { .. } | Step::Server { .. } => None,
    });
    of_file.next()
}

/// Hash of a content, which also says if there is none.
fn seal(bytes: Option<&[u8]>) -> String {
    bytes.map_or_else(|| "none".to_owned(), |bytes| hex::encode(Sha256::digest(bytes)))
}

#[cfg(test)]
mod tests;
