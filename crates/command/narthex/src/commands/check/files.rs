//! The files that configure servers: which exist, and which of them count.

use narthex_model::command::narthex;
use std::path::Path;

use super::{Check, rows::Served};
use crate::{
    commands::source::{Unfilled, standing, trusting},
    config::Settings,
    trust::Standing,
};

pub(super) async fn all(files: &[Unfilled], settings: &Settings, served: &Served) -> Vec<Check> {
    let mut checks = vec![user(files, settings)];
    checks.extend(project(files, settings, served).await);
    checks
}

/// The user's own servers.
fn user(files: &[Unfilled], settings: &Settings) -> Check {
    let Some(path) = &settings.servers else {
        let text = "there is no home directory, so there is no settings file with servers of your \
                    own";
        return Check::info("SETTINGS", text);
    };
    match files.iter().find(|file| !file.is_project) {
        None => Check::info(
            "SETTINGS",
            format!("there is no file {}, which is optional", path.display()),
        ),
        Some(file) => of_file("SETTINGS", file),
    }
}

/// The folder's file, and whether its user has approved it (D27).
async fn project(files: &[Unfilled], settings: &Settings, served: &Served) -> Vec<Check> {
    let Some(file) = files.iter().find(|file| file.is_project) else {
        let text = match &settings.config {
            Some(path) => format!("there is no file {}, which the settings name", path.display()),
            None => "there is no mcp.json in this folder".to_owned(),
        };
        let check = Check::info("MCP_JSON", text);
        return vec![Check {
            hint: Some(format!("`{}` writes one", narthex("init", &[]))),
            ..check
        }];
    };
    let mut checks = vec![of_file("MCP_JSON", file)];
    // A file that is named by the settings counts as approved.
    if file.loaded.is_ok() && settings.config.is_none() {
        checks.extend(trust(&file.path, settings, served).await);
    }
    checks
}

fn of_file(code: &'static str, file: &Unfilled) -> Check {
    let path = file.path.display();
    match &file.loaded {
        Ok(loaded) => {
            let names: Vec<_> = loaded.entries.iter().map(|entry| entry.name()).collect();
            let count = match names.len() {
                1 => "1 server".to_owned(),
                count => format!("{count} servers"),
            };
            let check = Check::info(code, format!("{path} has {count}"));
            if names.is_empty() { check } else { check.detail(names.join(", ")) }
        }
        Err(failure) => {
            let hint = "correct the file; until then a running daemon uses the content that it \
                        read before";
            Check::warn(code, format!("{path} cannot be used"), hint).detail(&failure.message)
        }
    }
}

async fn trust(path: &Path, settings: &Settings, served: &Served) -> Option<Check> {
    let warn = |text: &str| {
        let hint = format!("read what the file starts and approve it with `{}`", trusting(path));
        Some(Check::warn("MCP_JSON", format!("{} {text}", path.display()), hint))
    };
    match standing(path, settings).await {
        Ok(Standing::Approved) => None,
        Ok(Standing::Changed) => warn("has changed since it was trusted"),
        // The daemon was started with it, which approves it.
        Ok(Standing::Unknown)
            if std::path::absolute(path).is_ok_and(|path| served.files.contains(&path)) =>
        {
            None
        }
        Ok(Standing::Unknown) => {
            let up = narthex("up", &[]);
            warn(&format!("is not trusted yet, so `{up}` does not start it"))
        }
        Err(failure) => {
            Some(warn("may be trusted: its approval cannot be read")?.detail(failure.message))
        }
    }
}
