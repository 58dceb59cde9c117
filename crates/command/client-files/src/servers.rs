//! Servers in the files of clients: one reader for all dialects.
//!
//! The [`Shape`] of a row names the fields of an entry and the notation of its placeholders. The
//! result is in narthex's own notation. Facts that narthex cannot keep are listed in plain words.
//! Texts that look like secrets are [`Text::Secret`], which nothing prints.

mod dialect;
mod entry;
mod fields;
mod found;
mod left_out;
mod placeholder;
mod reader;
mod secrets;

use serde_json::Value;

pub use entry::NameableSecret;
pub use found::{Found, FoundServer, LeftOut, Target, Text, ToolLists};
pub use placeholder::Placeholder;

use crate::clients::{Client, Container, Shape};
use crate::edit::{Document, EditError, Parent};

/// Reads the servers of a client's file, in the order of the file.
///
/// `folder` is the folder of the project, which keys of local scopes have. Entries of the client
/// that are no servers are passed over.
///
/// # Errors
/// [`EditError::Kind`] when the place of the servers has another kind of value.
pub fn read(client: &Client, document: &Document, folder: &str) -> Result<Vec<Found>, EditError> {
    let mut found = Vec::new();
    let off = fields::switched_off(client.shape, document)?;
    for parent in client.parents(folder) {
        for (name, value) in document.entries(&parent)? {
            found.extend(read_entry(client.shape, &name, &value, off.contains(&name)));
        }
        if client.list == Container::Array {
            found.extend(nameless(client, document, &parent)?);
        }
    }
    Ok(found)
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
        let is_there =
            entries.filter(|(name, _)| *name == server.name).any(|(name, value)| match read_entry(
                client.shape,
                &name,
                &value,
                off.contains(&name),
            ) {
                Some(Found::Server(own)) => !own.is_disabled && own.differences(server).is_empty(),
                Some(Found::Unusable { .. }) | None => false,
            });
        if is_there {
            places.push(parent);
        }
    }
    Ok(places)
}

/// Entries of a list without a name, which refer to a definition elsewhere.
fn nameless(
    client: &Client,
    document: &Document,
    parent: &Parent,
) -> Result<Vec<Found>, EditError> {
    let keys: Vec<_> = parent.path().iter().map(String::as_str).collect();
    let Some(Value::Array(items)) = document.value(&keys)? else { return Ok(Vec::new()) };
    let name_field = client.name_field.as_deref().unwrap_or_default();
    let nameless = items.iter().filter(|item| !item[name_field].is_string());
    let found = nameless.map(|item| {
        let uses = item["uses"].as_str();
        Found::Unusable {
            name: uses.unwrap_or("(without a name)").to_owned(),
            reason: match uses {
                Some(_) => "it refers to a definition elsewhere".to_owned(),
                None => format!("it has no `{name_field}`"),
            },
        }
    });
    Ok(found.collect())
}

#[cfg(test)]
mod tests;
