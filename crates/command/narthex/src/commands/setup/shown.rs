//! The files and servers of a set-up for people and for programs. Values of secrets are in neither.

use narthex_client::terminal::render;
use narthex_client_files::{
    inventory::{Content, FoundFile},
    plan::{Outcome, Planned, is_gone_narthex, is_own},
    servers::Found,
};
use serde_json::{Value, json};

use super::{find::Survey, projects::Untrusted};
use crate::{
    Failure,
    commands::import::{
        by_folder::Stays,
        shown::{
            called, file_json, file_table, found_in, losses, others, server_json, skipped_json,
            tell_by_folder, told, variables,
        },
    },
    output::{self, harmless},
};

impl Survey {
    /// Prints the files, the table of servers, and the facts of each. `is_all`: also the reasons
    /// for which parts stay, which the end of a set-up names as well.
    pub(super) fn show(&self, is_all: bool) -> Result<(), Failure> {
        self.show_files(is_all)?;
        let servers = self.plan.servers.iter().enumerate();
        let mut rows: Vec<_> = servers.clone().map(|(at, one)| self.row(at, one)).collect();
        rows.extend(self.plan.skipped.iter().map(|one| {
            let (client, name) = (&one.origin.client.name, &one.origin.name);
            vec![name.clone(), client.clone(), "stays".to_owned(), String::new(), String::new()]
        }));
        let none = "No server was found in the files of MCP clients.";
        let header = ["server", "found in", "result", "secrets", "starts"];
        output::line(&render(&header, &rows, none))?;
        for (at, one) in servers {
            match self.staying.get(&at) {
                Some(reason) if is_all => {
                    told(one.alias.as_str(), &[format!("stays: {reason}")])?;
                }
                Some(_) => {}
                None => told(one.alias.as_str(), &notes(one))?,
            }
        }
        let texts = self.texts().into_iter();
        let texts: Vec<_> = texts
            .map(|(alias, place)| format!("{place} of {} moves to the vault", alias.as_str()))
            .collect();
        told(&self.settings.display().to_string(), &texts)?;
        if !is_all {
            return Ok(());
        }
        let mut skipped = self.plan.skipped.iter();
        skipped.try_for_each(|one| told(&one.origin.name, &[format!("stays: {}", one.reason)]))?;
        tell_by_folder(&self.by_folder, "stays")
    }

    fn show_files(&self, is_all: bool) -> Result<(), Failure> {
        let found = self.files.iter().map(|file| self.file_row(file));
        let left_alone = self.left_alone.iter().map(|file| {
            let content = format!(
                "left alone, as its form is unconfirmed; `--only {}` sets it up",
                file.client.id
            );
            vec![file.client.name.clone(), content, file.path.display().to_string()]
        });
        let new = self.new_files.iter().map(|file| {
            let path = file.path.display().to_string();
            vec![
                file.client.name.clone(),
                "does not exist yet, gets narthex alone".to_owned(),
                path,
            ]
        });
        let rows: Vec<_> = found.chain(left_alone).chain(new).collect();
        let faulty: &[FoundFile] = if is_all { &self.files } else { &[] };
        file_table(&rows, faulty, "stays as it is")?;
        for Untrusted { path, reason, command, .. } in &self.projects.untrusted {
            let facts = [
                format!("stays as it is: it {reason}"),
                format!("`{command}` shows what it would start, and asks"),
            ];
            output::sentence(&harmless(&path.display().to_string()))?;
            facts.iter().try_for_each(|fact| output::sentence(&format!("  {}", harmless(fact))))?;
            output::sentence("")?;
        }
        Ok(())
    }

    fn file_row(&self, file: &FoundFile) -> Vec<String> {
        let content = match &file.content {
            Content::Servers(found) => {
                let servers = others(file.client, found).len() as u64;
                let of_folder = if file.client.is_of_project() { " of this folder" } else { "" };
                let servers = format!("{}{of_folder}", output::counted(servers, "server"));
                match self.own_words(file, found) {
                    Some(words) => format!("{servers}, {words}"),
                    None => servers,
                }
            }
            Content::OfFolder(of) => {
                format!(
                    "of this folder, stays as it is: {}",
                    harmless(&others(file.client, &of.servers).join(", "))
                )
            }
            Content::Broken { .. } | Content::Unreadable(_) => "stays as it is".to_owned(),
        };
        vec![file.client.name.clone(), content, file.path.display().to_string()]
    }

    /// The narthex that a client reaches now, in words; `None` without one.
    fn own_words(&self, file: &FoundFile, found: &[Found]) -> Option<String> {
        let client = file.client;
        if self.is_connected(client, found) {
            return Some("connected already".to_owned());
        }
        let own: Vec<_> = found.iter().filter(|one| is_own(client, one)).collect();
        let mut servers = own.iter().copied().filter_map(Found::server);
        if servers.any(|server| is_gone_narthex(client, server)) {
            return Some("connected to a narthex that is gone".to_owned());
        }
        let names: Vec<_> = own.iter().map(|one| format!("`{}`", one.name())).collect();
        // A line break in a name would end the cell.
        let names = harmless(&names.join(", "));
        (!own.is_empty()).then(|| format!("{names} does not lead to this narthex, and stays"))
    }

    fn row(&self, at: usize, one: &Planned) -> Vec<String> {
        let result = match (self.staying.contains_key(&at), &one.outcome) {
            (true, _) => "stays",
            (false, Outcome::Present) => "is tried, narthex has it",
            (false, _) => "is tried",
        };
        vec![
            one.alias.as_str().to_owned(),
            found_in(one),
            result.to_owned(),
            // A line break in a name would end the cell.
            harmless(&one.server.secrets().join(", ")),
            one.server.starts(),
        ]
    }

    /// The files of clients that are written only if they are named, for programs.
    pub(super) fn left_alone_json(&self) -> Vec<Value> {
        let files = self.left_alone.iter();
        files.map(|file| file_json(file.client, &file.path, &file.content)).collect()
    }

    /// The servers that stay in their folders, for programs.
    pub(super) fn by_folder_json(&self) -> Vec<Value> {
        self.by_folder.iter().map(Stays::to_json).collect()
    }

    /// The files that cannot be read, for programs.
    pub(super) fn problems_json(&self) -> Vec<Value> {
        let unread = self.unread().map(|(file, reason)| {
            let path = file.path.to_string_lossy();
            json!({ "client": file.client.label(), "file": path, "reason": reason })
        });
        unread.collect()
    }

    /// The files and servers for programs.
    pub(super) fn to_json(&self) -> Value {
        let servers = self.plan.servers.iter().enumerate();
        let servers: Vec<_> = servers.map(|(at, one)| server(one, self.staying.get(&at))).collect();
        let shown = |file: &FoundFile| {
            let mut shown = file_json(file.client, &file.path, &file.content);
            if let Content::Servers(found) = &file.content {
                shown["is_connected"] = self.is_connected(file.client, found).into();
            }
            if let Some(untrusted) = self.projects.untrusted(file) {
                shown["reason"] = json!(untrusted.reason);
                shown["trust"] = json!(untrusted.command.to_string());
            }
            shown
        };
        let files: Vec<_> = self.files.iter().map(shown).collect();
        let new = self.new_files.iter();
        let new: Vec<_> = new
            .map(|file| {
                let path = file.path.to_string_lossy();
                json!({ "client": file.client.label(), "file": path })
            })
            .collect();
        let texts = self.texts().into_iter();
        let texts: Vec<_> =
            texts.map(|(alias, place)| json!({ "server": alias, "secret": place })).collect();
        json!({
            "settings": self.settings.to_string_lossy(),
            "to_vault": texts,
            "files": files,
            "left_alone": self.left_alone_json(),
            "new_files": new,
            "servers": servers,
            "skipped": skipped_json(&self.plan),
            "by_folder": self.by_folder_json(),
            "problems": self.problems_json(),
        })
    }
}

fn server(one: &Planned, reason: Option<&String>) -> Value {
    let result = if reason.is_some() { "stays" } else { "try" };
    let mut server = server_json(one, result, reason.map(String::as_str));
    server["is_present"] = (one.outcome == Outcome::Present).into();
    server
}

/// The facts of a server that a person must know, each in a line.
fn notes(one: &Planned) -> Vec<String> {
    let mut notes: Vec<_> = called(one).into_iter().collect();
    let nameable = one.server.nameable_secrets().len();
    let secrets = one.server.secrets();
    if secrets.len() > nameable {
        let of_vault = one.server.nameable_secrets();
        let is_other = |place: &&String| {
            !of_vault.iter().any(|secret| place.ends_with(&format!(".{}", secret.key)))
        };
        let others: Vec<_> = secrets.iter().filter(is_other).map(String::as_str).collect();
        notes.push(format!(
            "a secret in {} stays a text, in narthex's settings, which only you can read",
            others.join(", ")
        ));
    }
    notes.extend(variables(one));
    notes.extend(losses(one));
    notes
}
