//! The plan of an import: servers of several files as one configuration, and the fate of each.

use std::collections::BTreeMap;
use std::path::PathBuf;

use narthex_model::Alias;
use serde_json::Value;

use crate::clients::Client;
use crate::inventory::{Content, FoundFile};
use crate::servers::{Found, FoundServer, Target};

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

/// The plan of an import.
#[derive(Debug, Clone, Default)]
pub struct Plan {
    /// The servers, in the order of the files.
    pub servers: Vec<Planned>,
    /// Entries that are not imported.
    pub skipped: Vec<Skipped>,
}

impl Plan {
    /// Merges the servers of files. `existing` are the entries of the configuration by name.
    ///
    /// Equal servers are one, under the first name. It is disabled if all of them are. Of different
    /// servers with one name the first counts.
    #[must_use]
    pub fn new(files: &[FoundFile], existing: &BTreeMap<String, Value>) -> Self {
        let mut plan = Self::default();
        for file in files {
            let Content::Servers(found) = &file.content else { continue };
            for found in found {
                let (client, path) = (file.client, file.path.clone());
                let origin = Origin { client, path, name: found.name().to_owned() };
                match found {
                    Found::Server(server) if is_narthex(server) => {
                        let reason = "it is narthex itself".to_owned();
                        plan.skipped.push(Skipped { origin, reason });
                    }
                    Found::Server(server) => plan.add(server, origin, existing),
                    Found::Unusable { reason, .. } => {
                        plan.skipped.push(Skipped { origin, reason: reason.clone() });
                    }
                }
            }
        }
        plan
    }

    fn add(&mut self, found: &FoundServer, origin: Origin, existing: &BTreeMap<String, Value>) {
        let is_same = |planned: &&mut Planned| planned.server.differences(found).is_empty();
        if let Some(same) = self.servers.iter_mut().find(is_same) {
            same.server.is_disabled &= found.is_disabled;
            same.server.left_out.extend(found.left_out.iter().cloned());
            same.server.left_out.sort();
            same.server.left_out.dedup();
            same.origins.push(origin);
            return;
        }
        let alias = Alias::suggest(&found.name);
        let first = self.servers.iter().find(|planned| planned.alias == alias);
        let outcome = match (first, existing.get(alias.as_str())) {
            (Some(first), _) => Outcome::Differs {
                first: &first.origins[0].client.name,
                fields: first.server.differences(found),
            },
            (None, None) => Outcome::Add,
            (None, Some(entry)) if is_entry(found, entry) => Outcome::Present,
            (None, Some(_)) => Outcome::Taken,
        };
        self.servers.push(Planned { alias, server: found.clone(), origins: vec![origin], outcome });
    }
}

/// True if the configuration has this server; being disabled does not count.
fn is_entry(server: &FoundServer, entry: &Value) -> bool {
    let own: Option<Value> = serde_json::from_str(server.entry().expose()).ok();
    let without_switch = |mut entry: Value| {
        if let Some(fields) = entry.as_object_mut() {
            fields.remove("disabled");
        }
        entry
    };
    own.is_some_and(|own| without_switch(own) == without_switch(entry.clone()))
}

/// True for the entry by which a client reaches narthex.
fn is_narthex(server: &FoundServer) -> bool {
    let is_program = match &server.target {
        Target::Stdio { command, args, .. } => {
            let program = command.expose().rsplit(['/', '\\']).next().unwrap_or_default();
            let words = std::iter::once(program).chain(args.iter().map(|arg| arg.expose()));
            let mut words = words.skip_while(|word| !word.ends_with("narthex"));
            words.next().is_some() && words.any(|word| word == "connect")
        }
        Target::Remote { .. } => false,
    };
    is_program || Alias::suggest(&server.name).is_built_in()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::clients::{Scope, Shape, clients};
    use crate::servers::read_entry;

    fn file(id: &str, servers: &Value) -> FoundFile {
        let rows = clients().iter();
        let mut rows = rows.filter(|row| row.id == id && row.scope == Scope::User);
        let client = rows.next().unwrap();
        let entries = servers.as_object().unwrap().iter();
        let found =
            entries.filter_map(|(name, value)| read_entry(client.shape, name, value, false));
        let content = Content::Servers(found.collect());
        FoundFile { client, path: PathBuf::from(id), content }
    }

    fn plan(files: &[FoundFile], existing: &Value) -> Plan {
        let existing = existing.as_object().unwrap().clone();
        Plan::new(files, &existing.into_iter().collect())
    }

    fn outcomes(plan: &Plan) -> Vec<(&str, &Outcome, usize)> {
        let servers = plan.servers.iter();
        servers.map(|one| (one.alias.as_str(), &one.outcome, one.origins.len())).collect()
    }

    #[test]
    fn equal_servers_are_one_and_different_ones_are_named() {
        let files = [
            file(
                "cursor",
                &json!({
                    "My Tracker": { "url": "https://t.example/mcp", "disabled": true },
                    "notes": { "command": "notes", "env": { "A": "1" } },
                }),
            ),
            file(
                "windsurf",
                &json!({
                    "tracker": { "serverUrl": "https://t.example/mcp" },
                    "notes": { "command": "notes", "env": { "A": "2" }, "disabledTools": ["x"] },
                }),
            ),
            file(
                "roo",
                &json!({ "other": { "command": "notes", "env": { "A": "2" } ,
                "disabledTools": ["x"] } }),
            ),
        ];
        let plan = plan(&files, &json!({}));
        let fields = vec!["env", "tools"];
        assert_eq!(
            outcomes(&plan),
            [
                ("my-tracker", &Outcome::Add, 2),
                ("notes", &Outcome::Add, 1),
                ("notes", &Outcome::Differs { first: "Cursor", fields }, 2),
            ]
        );
        assert!(!plan.servers[0].server.is_disabled, "one client has it enabled");
    }

    #[test]
    fn existing_servers_stay_and_are_compared() {
        let files = [file(
            "cursor",
            &json!({
                "same": { "command": "x" },
                "other": { "command": "x", "args": ["2"] },
                "new": { "command": "z" },
            }),
        )];
        let existing = json!({
            "same": { "command": "x", "transport": "stdio", "disabled": true },
            "other": { "command": "x", "transport": "stdio" },
        });
        let plan = plan(&files, &existing);
        assert_eq!(
            outcomes(&plan),
            [
                ("same", &Outcome::Present, 1),
                ("other", &Outcome::Taken, 1),
                ("new", &Outcome::Add, 1),
            ]
        );
    }

    #[test]
    fn narthex_is_not_imported_into_itself() {
        let files = [file(
            "cursor",
            &json!({
                "narthex": { "url": "http://127.0.0.1:7717/mcp" },
                "gateway": { "command": "/opt/bin/narthex", "args": ["--data", "d", "connect"] },
                "bridge": { "command": "npx", "args": ["narthex", "connect"] },
                "tools": { "command": "narthex-tools", "args": ["connect"] },
            }),
        )];
        let plan = plan(&files, &json!({}));
        assert_eq!(outcomes(&plan), [("tools", &Outcome::Add, 1)]);
        let names: Vec<_> = plan.skipped.iter().map(|one| one.origin.name.as_str()).collect();
        assert_eq!(names, ["narthex", "gateway", "bridge"]);
    }

    #[test]
    fn entries_that_cannot_be_used_are_kept_with_their_reason() {
        let entry = json!({ "command": ["x"] });
        assert!(matches!(
            read_entry(Shape::Cursor, "a", &entry, false),
            Some(Found::Unusable { reason, .. }) if reason == "`command` is not a text"
        ));
        let plan = plan(&[file("cursor", &json!({ "a": entry }))], &json!({}));
        assert_eq!((plan.servers.len(), plan.skipped.len()), (0, 1));
    }
}
