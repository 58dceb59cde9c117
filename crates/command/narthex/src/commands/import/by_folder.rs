//! Servers that a client uses in one folder alone, by entries in a file of the user. An import and
//! a set-up name them, and leave them: they would come into all folders.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use narthex_client_files::{
    clients::{Client, Scope, clients},
    inventory::InOneFolder,
    plan::is_own,
    servers::{Found, FoundServer},
};
use narthex_model::Alias;
use serde_json::{Value, json};

use super::adding::{Taken, Way, free_name};

/// A server that stays in its folder.
pub(in crate::commands) struct Stays {
    client: &'static Client,
    path: PathBuf,
    folder: String,
    pub(in crate::commands) name: String,
    way: Way,
}

/// All servers that stay in their folders. `taken` are names of other servers and secrets. `way`
/// gives the way to add a server under a name, and takes names for its secrets.
pub(in crate::commands) fn stays(
    all: &[InOneFolder],
    mut taken: Taken,
    way: impl Fn(&FoundServer, &Alias, &mut BTreeSet<String>) -> Way,
) -> Vec<Stays> {
    let mut stays = Vec::new();
    for of in all {
        for found in of.servers.iter().filter(|found| !is_own(of.client, found)) {
            stays.push(Stays {
                client: of.client,
                path: of.path.clone(),
                folder: of.folder.clone(),
                name: found.name().to_owned(),
                way: in_all_folders(found, Path::new(&of.folder), &mut taken, &way),
            });
        }
    }
    stays
}

/// The way to have a server of this folder in all folders.
fn in_all_folders(
    found: &Found,
    folder: &Path,
    taken: &mut Taken,
    way: impl Fn(&FoundServer, &Alias, &mut BTreeSet<String>) -> Way,
) -> Way {
    // The client starts the server in the folder, and a daemon does not.
    match found.in_folder(folder) {
        Found::Unusable { reason, .. } => Way::Refused(reason),
        Found::Server(server) => {
            let end = folder.file_name().unwrap_or_default().to_string_lossy();
            let alias = free_name(&server.name, &end, &mut taken.servers);
            way(&server, &alias, &mut taken.secrets)
        }
    }
}

impl Stays {
    /// The client and its file.
    pub(in crate::commands) fn place(&self) -> String {
        format!("{} ({})", self.client.name, self.path.display())
    }

    /// The reason and the remedy, as a sentence without its end.
    pub(in crate::commands) fn reason(&self) -> String {
        let remedy = match &self.way {
            Way::Add(adding) => adding.told("adds it for all clients"),
            Way::ByHand => format!(
                "it has a secret that no command should have, so move its entry to {} of {} by \
                 hand, then run the command again",
                self.place_for_all(),
                self.path.display()
            ),
            Way::Refused(reason) => format!("narthex cannot use it: {reason}"),
        };
        let (client, folder) = (&self.client.name, &self.folder);
        format!("{client} uses it in the folder {folder} alone; {remedy}")
    }

    /// The place of the client's servers of all folders, for people.
    fn place_for_all(&self) -> String {
        let mut rows = clients().iter();
        let row = rows.find(|row| row.id == self.client.id && row.scope == Scope::User);
        let key = row.map(|row| format!("`{}`", row.key.join(".")));
        key.unwrap_or_else(|| "the servers of all folders".to_owned())
    }

    /// The server for programs.
    pub(in crate::commands) fn to_json(&self) -> Value {
        let adding = match &self.way {
            Way::Add(adding) => Some(adding),
            Way::ByHand | Way::Refused(_) => None,
        };
        let secrets = adding.into_iter().flat_map(|adding| &adding.secrets);
        json!({
            "client": self.client.label(),
            "file": self.path.to_string_lossy(),
            "folder": self.folder,
            "name": self.name,
            "reason": self.reason(),
            "add": adding.map(|adding| adding.command.to_string()),
            "secrets": secrets.map(|name| name.as_str()).collect::<Vec<_>>(),
        })
    }
}
