//! Servers of several files as one configuration, and the fate of each: copied by an import, or
//! moved by a set-up.

mod own;

use std::collections::BTreeMap;
use std::path::PathBuf;

use narthex_model::{Alias, SecretName};
use serde_json::Value;

pub use own::{OwnDaemon, is_gone_narthex, is_narthex, is_own, runs_narthex};

use crate::clients::Client;
use crate::inventory::{Content, FoundFile};
use crate::servers::{Found, FoundServer, NameableSecret, Target, Text};

/// The beginning of the name of a secret, in place of a value.
const SECRET: &str = "${secret:";

/// Length of a name that has a client's name at its end.
const ALIAS_ROOM: usize = 60;

/// The file and the name of an entry.
#[derive(Debug, Clone)]
pub struct Origin {
    /// The row of the client.
    pub client: &'static Client,
    /// The file.
    pub path: PathBuf,
    /// The name of the entry.
    pub name: String,
}

/// The fate of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The server is added.
    Add,
    /// The configuration has the server already.
    Present,
    /// The configuration has another server of this name, which stays.
    Taken,
    /// An earlier file has another server of this name, which counts.
    Differs {
        /// The client with the server that counts.
        first: &'static str,
        /// The fields that differ.
        fields: Vec<&'static str>,
    },
}

/// A server with its fate.
#[derive(Debug, Clone)]
pub struct Planned {
    /// The name in narthex.
    pub alias: Alias,
    /// The server.
    pub server: FoundServer,
    /// The entries that describe the server.
    pub origins: Vec<Origin>,
    /// The fate.
    pub outcome: Outcome,
}

/// An entry that is not imported.
#[derive(Debug, Clone)]
pub struct Skipped {
    /// The entry.
    pub origin: Origin,
    /// The reason, as a sentence without its end.
    pub reason: String,
}

/// The configuration that servers come to.
#[derive(Debug, Clone, Copy)]
pub struct Existing<'a> {
    /// Its entries by name.
    pub entries: &'a BTreeMap<String, Value>,
    /// Names of entries that a set-up moved, by the seal of the server: see
    /// [`FoundServer::seal`].
    pub moved: &'a BTreeMap<String, Alias>,
}

/// The plan of an import or a set-up.
#[derive(Debug, Clone, Default)]
pub struct Plan {
    /// The servers, in the order of the files.
    pub servers: Vec<Planned>,
    /// Entries that are not imported.
    pub skipped: Vec<Skipped>,
    /// Entries by which clients reach narthex.
    pub own: Vec<Origin>,
    /// Servers that stay since their clients have them disabled, and that the configuration has.
    pub disabled: Vec<Planned>,
}

impl Plan {
    /// Merges the servers of files. `existing` are the entries of the configuration by name.
    ///
    /// Equal servers are one, under the first name. It is disabled if all of them are. Of different
    /// servers with one name the first counts.
    #[must_use]
    pub fn of_copies(files: &[FoundFile], existing: &BTreeMap<String, Value>) -> Self {
        let mut plan = Self::default();
        for (found, origin) in plan.skip_unusable(files) {
            plan.copy(found, origin, existing);
        }
        plan
    }

    /// Merges the servers of files that shall leave them.
    ///
    /// Equal servers are one, under the first name. Of different servers with one name each further
    /// one gets the client's name at its end. A disabled entry stays where it is.
    #[must_use]
    pub fn of_moves(files: &[FoundFile], existing: Existing<'_>) -> Self {
        let mut plan = Self::default();
        for (found, origin) in plan.skip_unusable(files) {
            if found.is_disabled {
                plan.leave(found, &origin, existing);
                let reason = "it is disabled there".to_owned();
                plan.skipped.push(Skipped { origin, reason });
            } else {
                plan.move_(found, origin, existing);
            }
        }
        plan
    }

    /// The servers of files that narthex can run, without narthex itself. Entries that it cannot
    /// use are skipped.
    fn skip_unusable<'f>(&mut self, files: &'f [FoundFile]) -> Vec<(&'f FoundServer, Origin)> {
        let mut usable = Vec::new();
        for file in files {
            let Content::Servers(found) = &file.content else { continue };
            for found in found {
                let (client, path) = (file.client, file.path.clone());
                let origin = Origin { client, path, name: found.name().to_owned() };
                match found {
                    Found::Server(server) if is_narthex(client, server) => self.own.push(origin),
                    Found::Server(server) => usable.push((&**server, origin)),
                    Found::Unusable { reason, .. } => {
                        self.skipped.push(Skipped { origin, reason: reason.clone() });
                    }
                }
            }
        }
        usable
    }

    /// Adds the origin to an equal server; gives the origin back if there is none.
    fn merge(&mut self, found: &FoundServer, origin: Origin) -> Option<Origin> {
        let is_same = |planned: &&mut Planned| planned.server.differences(found).is_empty();
        let Some(same) = self.servers.iter_mut().find(is_same) else { return Some(origin) };
        same.server.is_disabled &= found.is_disabled;
        same.server.left_out.extend(found.left_out.iter().cloned());
        same.server.left_out.sort();
        same.server.left_out.dedup();
        same.origins.push(origin);
        None
    }

    /// Adds a disabled server, if the configuration has it.
    fn leave(&mut self, found: &FoundServer, origin: &Origin, existing: Existing<'_>) {
        // A later set-up finds it by its seal once it is enabled.
        let server = FoundServer { is_disabled: false, ..found.clone() };
        let (alias, outcome) = self.fate(&server, origin.client, existing);
        if outcome == Outcome::Present {
            let origins = vec![origin.clone()];
            self.disabled.push(Planned { alias, server, origins, outcome });
        }
    }

    fn move_(&mut self, found: &FoundServer, origin: Origin, existing: Existing<'_>) {
        let Some(origin) = self.merge(found, origin) else { return };
        let (alias, outcome) = self.fate(found, origin.client, existing);
        self.servers.push(Planned { alias, server: found.clone(), origins: vec![origin], outcome });
    }

    /// The name and the fate of a server that is to move.
    fn fate(
        &self,
        found: &FoundServer,
        client: &Client,
        existing: Existing<'_>,
    ) -> (Alias, Outcome) {
        let wanted = Alias::suggest(&found.name);
        let moved = existing.moved.get(&found.seal());
        let moved = moved.filter(|alias| {
            let entry = existing.entries.get(alias.as_str());
            entry.is_some_and(|entry| is_entry_naming(found, entry))
        });
        match (moved, existing.entries.get(wanted.as_str())) {
            (Some(moved), _) => (moved.clone(), Outcome::Present),
            (None, Some(entry)) if is_entry(found, entry) => (wanted, Outcome::Present),
            (None, _) => (self.free(&wanted, client, existing.entries), Outcome::Add),
        }
    }

    /// A name that no server has: the wanted one, or with the client's name at its end, or with a
    /// number behind that.
    fn free(&self, wanted: &Alias, client: &Client, entries: &BTreeMap<String, Value>) -> Alias {
        let is_free = |alias: &Alias| {
            let is_planned = self.servers.iter().any(|planned| planned.alias == *alias);
            !is_planned && !entries.contains_key(alias.as_str())
        };
        if is_free(wanted) {
            return wanted.clone();
        }
        let with = |end: &str| {
            // A name that is too long loses its end, and not the part that distinguishes.
            let room = ALIAS_ROOM.saturating_sub(end.len());
            let begin: String = wanted.as_str().chars().take(room).collect();
            Alias::suggest(&format!("{begin}-{end}"))
        };
        let ends = std::iter::once(client.id.clone());
        let ends = ends.chain((2..).map(|number: u32| format!("{}-{number}", client.id)));
        let mut names = ends.map(|end| with(&end)).filter(is_free);
        names.next().unwrap_or_else(|| wanted.clone())
    }

    fn copy(&mut self, found: &FoundServer, origin: Origin, existing: &BTreeMap<String, Value>) {
        let Some(origin) = self.merge(found, origin) else { return };
        let alias = Alias::suggest(&found.name);
        let first = self.servers.iter().find(|planned| planned.alias == alias);
        let outcome = match (first, existing.get(alias.as_str())) {
            (Some(first), _) => Outcome::Differs {
                first: &first.origins[0].client.name,
                fields: first.server.differences(found),
            },
            (None, None) => Outcome::Add,
            // A set-up has put names in place of secrets.
            (None, Some(entry)) if is_entry_naming(found, entry) => Outcome::Present,
            (None, Some(_)) => Outcome::Taken,
        };
        self.servers.push(Planned { alias, server: found.clone(), origins: vec![origin], outcome });
    }
}

/// True if the configuration has this server; being disabled does not count.
fn is_entry(server: &FoundServer, entry: &Value) -> bool {
    is_written(server.entry().expose(), entry)
}

/// True if the configuration has this server, with names of secrets in place of any of their
/// values; being disabled does not count.
fn is_entry_naming(server: &FoundServer, entry: &Value) -> bool {
    let texts = &entry[field_of_secrets(server)];
    let names = server.nameable_secrets().into_iter().filter_map(|secret| {
        let text = texts[secret.key.as_str()].as_str()?;
        let name = text.strip_prefix(SECRET)?.strip_suffix('}')?;
        Some((secret.key, SecretName::new(name).ok()?))
    });
    is_written(server.entry_naming(&names.collect()).expose(), entry)
}

/// The secrets of a server that its entry of the configuration has as texts, and could name.
#[must_use]
pub fn secrets_as_texts(server: &FoundServer, entry: &Value) -> Vec<NameableSecret> {
    let texts = &entry[field_of_secrets(server)];
    let mut secrets = server.nameable_secrets();
    secrets.retain(|secret| {
        let text = texts[secret.key.as_str()].as_str();
        text.is_some_and(|text| !text.starts_with(SECRET))
    });
    secrets
}

/// The texts of a server's entry that these names replace, by variable or header. A text that
/// others have changed since stays.
#[must_use]
pub fn replaced(
    server: &FoundServer,
    entry: &Value,
    names: &BTreeMap<String, SecretName>,
) -> BTreeMap<String, Value> {
    let (own, texts) = (texts_of(server), &entry[field_of_secrets(server)]);
    let replaced = names.iter().filter(|(key, _)| {
        let (own, text) = (own.get(key.as_str()), texts[key.as_str()].as_str());
        text.is_some() && own.map(Text::expose) == text
    });
    let replaced = replaced
        .map(|(key, name)| (key.clone(), Value::from(format!("{SECRET}{}}}", name.as_str()))));
    replaced.collect()
}

/// The server's entry of the configuration, with these names in place of values.
#[must_use]
pub fn naming(server: &FoundServer, entry: &Value, names: &BTreeMap<String, SecretName>) -> Value {
    let replaced = replaced(server, entry, names);
    let mut entry = entry.clone();
    if let Some(texts) = entry.get_mut(field_of_secrets(server)).and_then(Value::as_object_mut) {
        texts.extend(replaced);
    }
    entry
}

/// The field of an entry whose values can be secrets.
#[must_use]
pub fn field_of_secrets(server: &FoundServer) -> &'static str {
    match &server.target {
        Target::Stdio { .. } => "env",
        Target::Remote { .. } => "headers",
    }
}

/// The texts of that field.
fn texts_of(server: &FoundServer) -> &BTreeMap<String, Text> {
    match &server.target {
        Target::Stdio { env: texts, .. } | Target::Remote { headers: texts, .. } => texts,
    }
}

/// True if an entry of the configuration is as it was written; being disabled does not count.
#[must_use]
pub fn is_written(written: &str, entry: &Value) -> bool {
    let own: Option<Value> = serde_json::from_str(written).ok();
    let without_switch = |mut entry: Value| {
        if let Some(fields) = entry.as_object_mut() {
            fields.remove("disabled");
        }
        entry
    };
    own.is_some_and(|own| without_switch(own) == without_switch(entry.clone()))
}

#[cfg(test)]
mod tests;
