//! Servers in the files of clients: one reader for all dialects.
//!
//! The [`Shape`] of a row names the fields of an entry and the notation of its placeholders. The
//! result is in narthex's own notation. Facts that narthex cannot keep are listed in plain words.
//! Texts that look like secrets are [`Text::Secret`], which nothing prints.

mod dialect;
mod entry;
mod fields;
mod folder;
mod found;
mod hidden;
mod left_out;
mod placeholder;
mod reader;
mod secrets;
mod spelling;

use std::path::Path;

use narthex_model::json::Place;
use serde_json::Value;

pub use entry::NameableSecret;
pub use found::{Found, FoundServer, LeftOut, Target, Text, ToolLists};
pub use hidden::{hidden_args, hides_variable};
pub use placeholder::Placeholder;
pub use spelling::{is_by_env, spelling, variable_notation};

use crate::clients::{Client, Container, Shape};
use crate::edit::{Document, EditError, Parent};

/// An entry of a file, and where it stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Placed {
    /// The place, such as `mcpServers.docs`.
    pub place: Place,
    /// The entry as it is written.
    pub value: Value,
    /// The entry as it is read.
    pub found: Found,
}

/// Reads the servers of a client's file, in the order of the file.
///
/// `folder` is the folder of the project, which keys of local scopes have. Entries of the client
/// that are no servers are passed over.
///
/// # Errors
/// [`EditError::Kind`] when the place of the servers has another kind of value.
pub fn read(client: &Client, document: &Document, folder: &str) -> Result<Vec<Found>, EditError> {
    let placed = read_placed(client, document, folder)?;
    Ok(placed.into_iter().map(|placed| placed.found).collect())
}

/// Reads the servers as [`read`] does, each with its place.
///
/// # Errors
/// As [`read`].
pub fn read_placed(
    client: &Client,
    document: &Document,
    folder: &str,
) -> Result<Vec<Placed>, EditError> {
    let mut all = Vec::new();
    let off = fields::switched_off(client.shape, document)?;
    for parent in client.parents(folder) {
        let at = place(&parent);
        let items = items(client, document, &parent)?;
        for (name, value) in document.entries(&parent)? {
            let is_it = |item: &Value| client.name_field.as_ref().is_some_and(|f| item[f] == name);
            let place = match items.iter().position(is_it) {
                Some(index) => at.index(index),
                None => at.key(&name),
            };
            let found = read_entry(client.shape, &name, &value, off.contains(&name));
            all.extend(found.map(|found| Placed { place, value, found }));
        }
        for (index, value) in items.into_iter().enumerate() {
            let found = nameless(client, &value);
            let place = at.index(index);
            all.extend(found.map(|found| Placed { place, value, found }));
        }
    }
    Ok(all)
}

/// The folders for which a client's file has members of their own.
///
/// # Errors
/// [`EditError::Kind`] when the place of the folders has another kind of value.
pub fn folders(client: &Client, document: &Document) -> Result<Vec<String>, EditError> {
    let Some(keys) = client.before_folder() else { return Ok(Vec::new()) };
    Ok(match document.value(&keys)? {
        Some(Value::Object(folders)) => folders.into_iter().map(|(folder, _)| folder).collect(),
        _ => Vec::new(),
    })
}

/// Reads one entry; `None` if it is no server. `is_off`: the file disables the server elsewhere.
#[must_use]
pub fn read_entry(shape: Shape, name: &str, value: &Value, is_off: bool) -> Option<Found> {
    reader::read(shape, name, value, is_off)
}

/// The places in a file at which entries of a name describe a server: equal ones that the file does
/// not disable.
///
/// # Errors
/// As [`read`].
pub fn places(
    client: &Client,
    document: &Document,
    folder: &str,
    server: &FoundServer,
) -> Result<Vec<Parent>, EditError> {
    let off = fields::switched_off(client.shape, document)?;
    let mut places = Vec::new();
    for parent in client.parents(folder) {
        let entries = document.entries(&parent)?.into_iter();
        let is_there = entries.filter(|(name, _)| *name == server.name).any(|(name, value)| {
            let own = read_entry(client.shape, &name, &value, off.contains(&name));
            own.as_ref()
                .and_then(Found::server)
                .is_some_and(|own| !own.is_disabled && is_same(client, own, folder, server))
        });
        if is_there {
            places.push(parent);
        }
    }
    Ok(places)
}

/// True if an entry is this server, as it is written or with the paths of its project.
fn is_same(client: &Client, own: &FoundServer, folder: &str, server: &FoundServer) -> bool {
    let in_folder = || own.in_folder(Path::new(folder));
    own.differences(server).is_empty()
        || client.is_of_project() && in_folder().is_ok_and(|own| own.differences(server).is_empty())
}

fn place(parent: &Parent) -> Place {
    let mut keys = parent.path().iter();
    let first = keys.next().map(String::as_str).unwrap_or_default();
    keys.fold(Place::root(first), |place, key| place.key(key))
}

/// The items of a list of servers; none for a map.
fn items(client: &Client, document: &Document, parent: &Parent) -> Result<Vec<Value>, EditError> {
    if client.list != Container::Array {
        return Ok(Vec::new());
    }
    let keys: Vec<_> = parent.path().iter().map(String::as_str).collect();
    match document.value(&keys)? {
        Some(Value::Array(items)) => Ok(items),
        _ => Ok(Vec::new()),
    }
}

/// An item of a list without a name, which refers to a definition elsewhere.
fn nameless(client: &Client, item: &Value) -> Option<Found> {
    let name_field = client.name_field.as_deref().unwrap_or_default();
    if item[name_field].is_string() {
        return None;
    }
    let uses = item["uses"].as_str();
    Some(Found::Unusable {
        name: uses.unwrap_or("(without a name)").to_owned(),
        reason: match uses {
            Some(_) => "it refers to a definition elsewhere".to_owned(),
            None => format!("it has no `{name_field}`"),
        },
    })
}

#[cfg(test)]
mod tests;
