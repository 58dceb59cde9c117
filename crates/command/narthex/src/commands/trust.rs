//! `narthex trust`: shows the programs and addresses that a file would start, asks for approval,
//! and stores it.
//!
//! A file in the notation of narthex is approved for `narthex up`, and the project file of a
//! client for `narthex setup`. An approval counts for one notation: the other one may read other
//! programs in the same text.

mod of_client;
mod shown;

use std::{path::Path, process::ExitCode};

use narthex_client::{cli::TrustArgs, commands::typed::is_agreed, dialect};
use narthex_client_files::clients::{Dialect, OWN};
use narthex_model::{ErrorKind, command::narthex};
use serde_json::{Value, json};

pub(super) use self::shown::shown;
use self::{of_client::ProjectFile, shown::quoted};
use super::{packages::FailedStarts, source};
use crate::{
    Failure,
    cli::Context,
    config,
    data_dir::DataDir,
    output::{self, harmless},
    stored::StorePlace,
    trust::{Folder, Standing},
};

/// A file before its approval.
struct Review {
    folder: Folder,
    /// Its servers, for people and for programs.
    servers: Vec<Value>,
    /// The client whose project file it is; `None` for a file of narthex.
    client: Option<ProjectFile>,
}

pub(crate) async fn run(args: TrustArgs, context: Context) -> Result<ExitCode, Failure> {
    let path = args.file.clone().unwrap_or_else(source::usual);
    if !path.exists() {
        return Err(absent(args.file.as_deref())?);
    }
    let failed = FailedStarts::of(&context.settings).await;
    let review = Review::of(&path, args.format.as_deref(), &failed)?;
    let Review { folder, servers, .. } = &review;
    let data = json!({
        "file": std::path::absolute(&path)?,
        "format": review.client.as_ref().map_or(OWN, ProjectFile::id),
        "sha256": folder.hash(),
        "servers": servers,
    });
    let is_text = context.format.is_text();
    if is_text {
        show(servers)?;
    }
    let name = harmless(&path.display().to_string());
    let standing = source::standing_of(folder, &context.settings).await;
    if matches!(standing, Ok(Standing::Approved)) && !args.yes {
        return already(&name, &data, &context);
    }
    // Without a terminal that shows the programs, the user gets no question.
    let is_approved = is_agreed(args.yes, context.format, &review.question(&name)).await?;
    if !is_approved {
        let text = format!(
            "{name} is not approved, and nothing has changed; read what it would start and answer \
             `y` on a terminal, or add --yes"
        );
        return Err(Failure::new(ErrorKind::Denied, text).with_details(Some(data)));
    }
    let data_dir = DataDir::open(&context.settings.daemon.data)?;
    let place = StorePlace::of(&data_dir, &context.settings);
    let store = place.open().await?;
    let approved = folder.approve(store.trusted_files()).await;
    store.close().await;
    approved?;
    if review.client.is_none() {
        place.note_approval(&folder.hash())?;
    }
    if context.format.is_json() {
        output::done(&data)?;
    } else if is_text {
        let then = harmless(&review.taking_effect(&data_dir));
        output::sentence(&format!("\ntrusted {name} as it is now; {then}"))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The failure for a file that is not there: the named one, or else that of this folder.
fn absent(named: Option<&Path>) -> Result<Failure, Failure> {
    let text = match named {
        Some(file) => format!(
            "there is no file {}; correct its path, or leave it out to approve the mcp.json of \
             this folder",
            file.display()
        ),
        None => {
            let (root, init) = (config::workspace_root()?, narthex("init", &[]));
            let folder = root.display();
            match &source::approvals_of_clients()[..] {
                [] => format!(
                    "{folder} has neither an mcp.json, which `{init}` writes, nor a project file \
                     of a client, such as .vscode/mcp.json"
                ),
                found => format!(
                    "{folder} has no mcp.json, which `{init}` writes, but project files of \
                     clients: {}",
                    found.join(", ")
                ),
            }
        }
    };
    Ok(Failure::new(ErrorKind::NotFound, text))
}

/// A content that is approved needs no second answer: nothing changes.
fn already(name: &str, data: &Value, context: &Context) -> Result<ExitCode, Failure> {
    if context.format.is_json() {
        output::done(data)?;
    } else if !context.format.is_quiet() {
        output::sentence(&format!(
            "\nthe present content of {name} is trusted already; nothing has changed"
        ))?;
    }
    Ok(ExitCode::SUCCESS)
}

impl Review {
    /// Reads a file in its dialect, with its variables left as they are written.
    fn of(path: &Path, format: Option<&str>, failed: &FailedStarts) -> Result<Self, Failure> {
        let folder = Folder::read(path)?;
        match dialect::of(path, format)? {
            Dialect::Own => {
                let loaded = source::unfilled_text(&folder, path)?;
                let entries = loaded.entries.iter();
                let servers = entries.map(|entry| shown(entry, failed));
                Ok(Self { servers: servers.collect(), folder, client: None })
            }
            Dialect::Of(file) => {
                let file = ProjectFile::new(path, file)?;
                let servers = file.servers(&folder.text, failed)?;
                let folder = folder.in_dialect(file.id());
                Ok(Self { servers, folder, client: Some(file) })
            }
        }
    }

    fn question(&self, name: &str) -> String {
        match &self.client {
            Some(file) => format!(
                "Approve {name}, so that `{}` includes it, and may start this?",
                file.setup()
            ),
            None => format!("Approve {name}, so that `{}` may start this?", narthex("up", &[])),
        }
    }

    /// Names the daemon that follows the approved file, or the command that takes it up.
    fn taking_effect(&self, place: &DataDir) -> String {
        if let Some(file) = &self.client {
            return file.taking_effect();
        }
        let folder = &self.folder;
        // Without a daemon that can be seen, there is one to be started.
        if let Ok(Some(daemon)) = place.running()
            && folder.is_at(&daemon.config)
        {
            return "the running daemon uses it from now on".to_owned();
        }
        let up = narthex("up", &[]);
        match config::workspace_root().is_ok_and(|root| root == folder.root()) {
            true => format!("`{up}` starts it here"),
            false => format!("`{up}` starts it, in the folder {}", folder.root().display()),
        }
    }
}

pub(super) fn show(servers: &[Value]) -> Result<(), Failure> {
    for server in servers {
        // The file is not trusted yet, and the person decides by this output whether it will be.
        let text = |key: &str| harmless(server[key].as_str().unwrap_or_default());
        output::line(&format!("{:<16} {}", text("alias"), text("starts")))?;
        if !text("folder").is_empty() {
            output::line(&format!("{:<16} in {}", "", quoted(&text("folder"))))?;
        }
        for (name, value) in server["environment"].as_object().into_iter().flatten() {
            let value = value.as_str().unwrap_or_default();
            let pair = format!("{}={}", harmless(name), quoted(value));
            output::line(&format!("{:<16} with environment {pair}", ""))?;
        }
        for (note, key) in [
            ("with headers", "headers"),
            ("gets your variables", "variables"),
            ("gets your stored secrets", "secrets"),
        ] {
            let names = server[key].as_array().into_iter().flatten().filter_map(Value::as_str);
            let names: Vec<_> = names.map(harmless).collect();
            if !names.is_empty() {
                output::line(&format!("{:<16} {note} {}", "", names.join(", ")))?;
            }
        }
        for (note, text) in [("confined to", "confinement"), ("signs in by", "auth")] {
            if let Some(text) = server[text].as_str() {
                output::line(&format!("{:<16} {note} {}", "", harmless(text)))?;
            }
        }
        let unpinned = server["unpinned"].as_array().into_iter().flatten();
        for package in unpinned.filter_map(Value::as_str) {
            output::line(&format!("{:<16} warning: {}", "", harmless(package)))?;
        }
        for fact in of_client::facts(server) {
            output::line(&format!("{:<16} {}", "", harmless(&fact)))?;
        }
    }
    if servers.is_empty() {
        output::line("no servers")?;
    }
    Ok(())
}
