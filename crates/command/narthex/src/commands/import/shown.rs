//! The result of an import for people and for programs. Values of secrets are in neither.

use std::path::Path;

use narthex_client::{DaemonOptions, daemon_client::DaemonClient, terminal::render};
use narthex_client_files::{
    clients::Client,
    inventory::{Content, FoundFile},
    plan::{Origin, Outcome, Plan, Planned, is_own},
    servers::{Found, Placeholder},
};
use narthex_model::command::narthex;
use serde_json::{Value, json};

use super::{Import, by_folder::Stays, check::unset};
use crate::{
    Failure,
    commands::followed::follows,
    config,
    output::{self, harmless},
};

impl Import {
    /// Prints the files, the table of servers, and the facts of each.
    pub(super) fn show(&self) -> Result<(), Failure> {
        self.show_files()?;
        let servers = self.plan.servers.iter().enumerate();
        let mut rows: Vec<_> = servers.clone().map(|(at, one)| self.row(at, one)).collect();
        rows.extend(self.plan.skipped.iter().map(|one| {
            let Origin { client, name, .. } = &one.origin;
            vec![name.clone(), client.name.clone(), "skipped".to_owned(), String::new()]
        }));
        let none = "No server was found in the files of MCP clients.";
        output::line(&render(&["server", "found in", "result", "starts"], &rows, none))?;
        for (at, one) in servers {
            match self.reason(at, one) {
                Some(reason) => told(one.alias.as_str(), &[format!("skipped: {reason}")])?,
                None if one.outcome == Outcome::Add => told(one.alias.as_str(), &notes(one))?,
                None => {}
            }
        }
        let mut skipped = self.plan.skipped.iter();
        skipped
            .try_for_each(|one| told(&one.origin.name, &[format!("skipped: {}", one.reason)]))?;
        tell_by_folder(&self.by_folder, "not imported")
    }

    /// Prints the files that were read, and the reasons for which others were not.
    fn show_files(&self) -> Result<(), Failure> {
        let rows = self.files.iter().map(|file| {
            let content = match &file.content {
                Content::Servers(found) => {
                    let is_own = found.iter().any(|one| is_own(file.client, one));
                    let end = if is_own { ", and narthex itself" } else { "" };
                    let count = others(file.client, found).len() as u64;
                    format!("{}{end}", output::counted(count, "server"))
                }
                Content::OfFolder(of) => {
                    // A line break in a name would end the cell.
                    format!(
                        "of this folder, not imported: {}",
                        harmless(&others(file.client, &of.servers).join(", "))
                    )
                }
                Content::Broken { .. } | Content::Unreadable(_) => "skipped".to_owned(),
            };
            vec![file.client.name.clone(), content, file.path.display().to_string()]
        });
        file_table(&rows.collect::<Vec<_>>(), &self.files, "skipped")
    }

    fn row(&self, at: usize, one: &Planned) -> Vec<String> {
        let result = match (&one.outcome, self.refused.contains_key(&at)) {
            (Outcome::Add, false) if one.server.is_disabled => "add, disabled",
            (Outcome::Add, false) => "add",
            (Outcome::Present, _) => "is there already",
            (Outcome::Taken | Outcome::Differs { .. } | Outcome::Add, _) => "skipped",
        };
        vec![one.alias.as_str().to_owned(), found_in(one), result.to_owned(), one.server.starts()]
    }

    /// The reason for which a server is not added.
    fn reason(&self, at: usize, one: &Planned) -> Option<String> {
        match &one.outcome {
            Outcome::Add => self.refused.get(&at).cloned(),
            Outcome::Present => None,
            Outcome::Taken => {
                let (file, this, way) = (self.file.display(), place(one), self.beside.get(&at)?);
                Some(format!(
                    "{file} has another server of this name, and {this} has this one; {way}"
                ))
            }
            Outcome::Differs { fields, .. } => {
                let mut all = self.plan.servers.iter();
                let first = all.find(|first| first.alias == one.alias).map(place)?;
                let (this, fields) = (place(one), fields.join("`, `"));
                let way = self.beside.get(&at)?;
                Some(format!(
                    "{first} has another server of this name, which counts, and {this} has this \
                     one, which differs in `{fields}`; {way}"
                ))
            }
        }
    }

    /// Prints the end of an import.
    pub(super) async fn tell_stored(&self, daemon: &DaemonOptions) -> Result<(), Failure> {
        let file = harmless(&self.file.display().to_string());
        let count = output::counted(self.to_add().count() as u64, "server");
        output::line(&format!("\nCopied {count} into {file}. Files of clients are unchanged."))?;
        let secrets: usize = self.to_add().map(|one| one.server.secrets().len()).sum();
        if secrets > 0 {
            let (set, moves) = (narthex("secrets set NAME", &[]), self.way_to_vault());
            let (noun, verb) = if secrets == 1 { ("secret", "is") } else { ("secrets", "are") };
            output::line(&format!(
                "{secrets} {noun} {verb} in that file now, which only you can read. {moves}; to \
                 do it by hand, store one with `{set}`, and write `${{secret:NAME}}` in its place."
            ))?;
        }
        let follows = self.is_followed(daemon).await;
        let (list, up) = (narthex("mcp list", &[]), narthex("up --detach", &[]));
        output::line(&match follows {
            Ok(Some(true)) => format!("The running daemon uses them now; `{list}` shows them."),
            Ok(Some(false)) => format!(
                "The running daemon does not read that file, so nothing uses them yet; run \
                 `{}`, then `{up}`.",
                narthex("daemon stop", &[])
            ),
            Ok(None) => format!(
                "No daemon runs, so nothing uses them yet; start one with `{up}`, or connect your \
                 clients as well with `{}`.",
                narthex("setup", &[])
            ),
            Err(failure) => format!(
                "The daemon cannot be asked if it uses them: {}; try `{list}`.",
                harmless(&failure.message)
            ),
        })
    }

    /// The commands that move secrets of variables and headers to the vault. A set-up reads files
    /// whose form is unconfirmed only if it names their clients.
    fn way_to_vault(&self) -> String {
        let with_secrets = self.to_add().filter(|one| !one.server.nameable_secrets().is_empty());
        let is_confirmed = |one: &&Planned| one.origins.iter().any(|it| it.client.is_verified);
        let (confirmed, others): (Vec<_>, Vec<_>) = with_secrets.partition(is_confirmed);
        let mut clients: Vec<_> =
            others.iter().filter_map(|one| one.origins.first()).map(|it| it.client).collect();
        clients.dedup_by(|one, two| one.id == two.id);
        let set_up = narthex("setup", &[]);
        let ids: Vec<_> = clients.iter().map(|client| client.id.as_str()).collect();
        let only = narthex("setup --only {}", &[&ids.join(",")]);
        let names: Vec<_> = clients.iter().map(|client| client.name.as_str()).collect();
        let what = "those of variables and headers to the vault";
        match (&confirmed[..], &clients[..]) {
            (_, []) => format!("`{set_up}` moves {what}"),
            ([], _) => format!("`{only}` moves {what}"),
            (_, _) => {
                format!("`{set_up}` moves {what}, and `{only}` those of {}", names.join(", "))
            }
        }
    }

    /// True if the running daemon reads the settings file; `None` if no daemon runs.
    async fn is_followed(&self, daemon: &DaemonOptions) -> Result<Option<bool>, Failure> {
        let Some(client) = DaemonClient::of_data_if_up(daemon)? else { return Ok(None) };
        follows(&client, &self.file).await.map(Some)
    }

    /// The result for programs.
    pub(super) fn to_json(&self, is_stored: bool) -> Value {
        let servers = self.plan.servers.iter().enumerate();
        let servers: Vec<_> = servers
            .map(|(at, one)| {
                let result = match (&one.outcome, self.refused.contains_key(&at)) {
                    (Outcome::Add, true) => "refused",
                    (Outcome::Add, false) if is_stored => "added",
                    (Outcome::Add, false) => "add",
                    (Outcome::Present, _) => "present",
                    (Outcome::Taken, _) => "taken",
                    (Outcome::Differs { .. }, _) => "differs",
                };
                let mut server = server_json(one, result, self.reason(at, one).as_deref());
                server["is_disabled"] = one.server.is_disabled.into();
                server
            })
            .collect();
        let files: Vec<_> = self
            .files
            .iter()
            .map(|file| file_json(file.client, &file.path, &file.content))
            .collect();
        json!({
            "settings": self.file.to_string_lossy(),
            "is_stored": is_stored,
            "files": files,
            "servers": servers,
            "skipped": skipped_json(&self.plan),
            "by_folder": self.by_folder.iter().map(Stays::to_json).collect::<Vec<_>>(),
        })
    }
}

/// Prints a table of files, and the reasons for which some cannot be read. `fate` says what becomes
/// of these.
pub(in crate::commands) fn file_table(
    rows: &[Vec<String>],
    files: &[FoundFile],
    fate: &str,
) -> Result<(), Failure> {
    let none = "There are no files of MCP clients here.";
    output::line(&render(&["client", "content", "file"], rows, none))?;
    for file in files {
        if let Content::Broken { message, .. } | Content::Unreadable(message) = &file.content {
            told(&file.path.display().to_string(), &[format!("{fate}: {message}")])?;
        }
    }
    output::line("")
}

/// Prints the servers that stay in their folders. `fate` says what becomes of them.
pub(in crate::commands) fn tell_by_folder(all: &[Stays], fate: &str) -> Result<(), Failure> {
    let mut all = all.iter();
    all.try_for_each(|one| told(&one.name, &[format!("{fate}: {}", one.reason())]))
}

/// The client and the file of a server's first entry.
fn place(one: &Planned) -> String {
    let origin = one.origins.first();
    let place = |origin: &Origin| format!("{} ({})", origin.client.name, origin.path.display());
    origin.map(place).unwrap_or_default()
}

/// The names of the clients that have a server.
pub(in crate::commands) fn found_in(one: &Planned) -> String {
    let mut clients: Vec<_> = one.origins.iter().map(|one| one.client.name.as_str()).collect();
    clients.dedup();
    clients.join(", ")
}

/// Prints lines of facts below a name; nothing if there are none.
pub(in crate::commands) fn told(name: &str, facts: &[String]) -> Result<(), Failure> {
    if facts.is_empty() {
        return Ok(());
    }
    output::line(&format!("\n{}", harmless(name)))?;
    facts.iter().try_for_each(|fact| output::line(&format!("  {}", harmless(fact))))
}

/// The names of servers, without the entry of narthex itself.
pub(in crate::commands) fn others<'f>(client: &Client, found: &'f [Found]) -> Vec<&'f str> {
    found.iter().filter(|one| !is_own(client, one)).map(Found::name).collect()
}

pub(in crate::commands) fn origin(origin: &Origin) -> Value {
    let file = origin.path.to_string_lossy();
    json!({ "client": origin.client.label(), "file": file, "name": origin.name })
}

pub(in crate::commands) fn file_json(client: &Client, path: &Path, content: &Content) -> Value {
    let mut file = json!({ "client": client.label(), "file": path.to_string_lossy() });
    match content {
        Content::Servers(found) => {
            file["status"] = "read".into();
            file["servers"] = others(client, found).into();
            file["is_connected"] = found.iter().any(|one| is_own(client, one)).into();
        }
        Content::OfFolder(of) => {
            file["status"] = "of_folder".into();
            file["servers"] = others(client, &of.servers).into();
        }
        Content::Broken { line, column, message } => {
            file["status"] = "broken".into();
            file["line"] = json!(line);
            file["column"] = json!(column);
            file["message"] = json!(message);
        }
        Content::Unreadable(message) => {
            file["status"] = "unreadable".into();
            file["message"] = json!(message);
        }
    }
    file
}

/// The entries that narthex cannot use.
pub(in crate::commands) fn skipped_json(plan: &Plan) -> Vec<Value> {
    let skipped = plan.skipped.iter();
    skipped.map(|one| json!({ "from": origin(&one.origin), "reason": one.reason })).collect()
}

/// A server with its fate.
pub(in crate::commands) fn server_json(one: &Planned, result: &str, reason: Option<&str>) -> Value {
    let found = &one.server;
    let left_out = found.left_out.iter();
    let left_out: Vec<_> =
        left_out.map(|one| json!({ "field": one.field, "message": one.words })).collect();
    json!({
        "name": one.alias,
        "from": one.origins.iter().map(origin).collect::<Vec<_>>(),
        "result": result,
        "reason": reason,
        "transport": found.transport().as_str(),
        "starts": found.starts(),
        "secrets": found.secrets(),
        "unset_variables": unset(found),
        "left_out": left_out,
    })
}

/// The facts of a server that a person must know, each in a line.
fn notes(one: &Planned) -> Vec<String> {
    let mut notes = Vec::new();
    notes.extend(called(one));
    let secrets = one.server.secrets();
    if !secrets.is_empty() {
        notes.push(format!("has secrets: {}", secrets.join(", ")));
    }
    notes.extend(variables(one));
    let has_folder = one.server.placeholders.contains(&Placeholder::Folder);
    if has_folder || one.server.has_relative_path() {
        notes.push("the folder of the client becomes the folder of the daemon".to_owned());
    }
    notes.extend(losses(one));
    notes
}

/// The names that a server has in files, if they differ from its own.
pub(in crate::commands) fn called(one: &Planned) -> Option<String> {
    let others = one.origins.iter().filter(|origin| origin.name != one.alias.as_str());
    let others: Vec<_> =
        others.map(|origin| format!("`{}` in {}", origin.name, origin.client.name)).collect();
    (!others.is_empty()).then(|| format!("is called {}", others.join(", ")))
}

/// The facts of an entry that narthex does not keep.
pub(in crate::commands) fn losses(one: &Planned) -> impl Iterator<Item = String> {
    one.server.left_out.iter().map(|one| format!("without `{}`: {}", one.field, one.words))
}

/// The variables that a server reads.
pub(in crate::commands) fn variables(one: &Planned) -> Vec<String> {
    let mut notes = Vec::new();
    for placeholder in &one.server.placeholders {
        notes.extend(match placeholder {
            Placeholder::Asked { id, variable } => Some(format!(
                "the client asks for `{id}`: set {variable} where the daemon starts; {}",
                in_each_daemon(variable)
            )),
            Placeholder::Variable { name, has_default: true } => {
                Some(format!("reads the variable {name}"))
            }
            Placeholder::Variable { name, has_default: false } => {
                let missing = match config::placeholder(name) {
                    None => ", which is not set here: set it where the daemon starts",
                    Some(_) => "",
                };
                Some(format!("reads the variable {name}{missing}; {}", in_each_daemon(name)))
            }
            Placeholder::Unfilled { place, text } => Some(format!(
                "`{place}` has `{text}`, which the client does not fill in, so it stays text: \
                 write the value itself"
            )),
            Placeholder::Folder | Placeholder::Home => None,
        });
    }
    notes
}

/// The consequence of reading a variable, and the way without one: a daemon that this shell does
/// not start has no variables of this shell.
fn in_each_daemon(variable: &str) -> String {
    format!(
        "a daemon that a client or a service starts needs it, too. Better store the value with \
         `{}`, and write `${{secret:{variable}}}` as the whole value in your settings",
        narthex("secrets set {}", &[&variable])
    )
}
