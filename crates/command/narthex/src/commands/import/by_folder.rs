//! Servers that a client uses in one folder alone, by entries in a file of the user. An import and
//! a set-up name them, and leave them: they would come into all folders.

use narthex_client_files::{
    inventory::InOneFolder,
    plan::is_own,
    servers::{Found, Target},
};
use narthex_model::{
    Alias,
    command::{CommandLine, narthex},
};
use serde_json::{Value, json};

/// A server that stays in its folder.
pub(in crate::commands) struct Stays<'f> {
    of: &'f InOneFolder,
    pub(in crate::commands) name: &'f str,
    /// The command that adds a server for all clients.
    add: CommandLine,
}

/// All servers that stay in their folders.
pub(in crate::commands) fn stays(all: &[InOneFolder]) -> impl Iterator<Item = Stays<'_>> {
    all.iter().flat_map(|of| {
        let servers = of.servers.iter().filter(move |found| !is_own(of.client, found));
        servers.map(move |found| Stays { of, name: found.name(), add: adding(found) })
    })
}

fn adding(found: &Found) -> CommandLine {
    let alias = Alias::suggest(found.name());
    match found.server().map(|server| &server.target) {
        Some(Target::Remote { .. }) => narthex("mcp add {} --url URL", &[&alias]),
        Some(Target::Stdio { .. }) | None => narthex("mcp add {} -- COMMAND", &[&alias]),
    }
}

impl Stays<'_> {
    /// The client and its file.
    pub(in crate::commands) fn place(&self) -> String {
        format!("{} ({})", self.of.client.name, self.of.path.display())
    }

    /// The reason and the remedy, as a sentence without its end.
    pub(in crate::commands) fn reason(&self) -> String {
        let (client, folder) = (&self.of.client.name, &self.of.folder);
        format!(
            "{client} uses it in the folder {folder} alone; `{}` adds it for all clients",
            self.add
        )
    }

    /// The server for programs.
    pub(in crate::commands) fn to_json(&self) -> Value {
        json!({
            "client": self.of.client.label(),
            "file": self.of.path.to_string_lossy(),
            "folder": self.of.folder,
            "name": self.name,
            "add": self.add.to_string(),
        })
    }
}
