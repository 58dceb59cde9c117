//! Files of clients in the current folder: included once their content is approved (D27).
//!
//! Others may have written such a file, and its entries start programs. So without an approval it
//! is shown and left as it is. A set-up and its undo write an approved file from known texts, so
//! their result is approved as well.

use std::path::{Path, PathBuf};

use narthex_client_files::{
    clients::{Client, clients},
    inventory::{Content, FoundFile},
    journal::FileStep,
};
use narthex_model::command::CommandLine;
use serde_json::{Value, json};

use crate::{
    Failure,
    commands::source,
    config::Settings,
    data_dir::DataDir,
    stored::StorePlace,
    trust::{Folder, Standing},
};

/// The files of the folder, as far as the user has approved them.
#[derive(Default)]
pub(super) struct Projects {
    /// The approved texts.
    approved: Vec<(&'static Client, PathBuf, Vec<u8>)>,
    /// Files that no set-up touches yet.
    pub(super) untrusted: Vec<Untrusted>,
}

/// A file without an approval.
pub(super) struct Untrusted {
    pub(super) client: &'static Client,
    pub(super) path: PathBuf,
    /// The reason in words.
    pub(super) reason: String,
    /// The command that approves the file.
    pub(super) command: CommandLine,
}

impl Projects {
    /// Includes the servers of approved files, with the paths that they have in the folder.
    pub(super) async fn include(
        files: &mut [FoundFile],
        folder: &Path,
        settings: &Settings,
    ) -> Result<Self, Failure> {
        let mut projects = Self::default();
        for file in files.iter_mut().filter(|file| file.client.is_of_project()) {
            let Content::OfFolder(content) = &file.content else { continue };
            let (client, path) = (file.client, file.path.clone());
            let text = Folder::of(&path, &content.text)?.in_dialect(&client.id);
            let reason = match source::standing_of(&text, settings).await {
                Ok(standing) => source::untrusted(standing).map(str::to_owned),
                Err(failure) => Some(format!("cannot be trusted: {}", failure.message)),
            };
            match reason {
                Some(reason) => {
                    let command = source::trusting_of(client, &path);
                    projects.untrusted.push(Untrusted { client, path, reason, command });
                }
                None => {
                    projects.approved.push((client, path, text.text));
                    file.content = Content::Servers(content.in_folder(folder));
                }
            }
        }
        Ok(projects)
    }

    /// The file among those that wait for an approval.
    pub(super) fn untrusted(&self, file: &FoundFile) -> Option<&Untrusted> {
        let mut untrusted = self.untrusted.iter();
        untrusted.find(|one| one.path == file.path && one.client.label() == file.client.label())
    }

    /// The files that wait for an approval, for programs.
    pub(super) fn to_json(&self) -> Vec<Value> {
        let untrusted = self.untrusted.iter().map(|one| {
            json!({
                "client": one.client.label(),
                "file": one.path.to_string_lossy(),
                "reason": one.reason,
                "trust": one.command.to_string(),
            })
        });
        untrusted.collect()
    }

    /// True if this text of a file was approved.
    pub(super) fn has_approved(&self, file: &FoundFile, text: &[u8]) -> bool {
        self.approved.iter().any(|(client, path, approved)| {
            client.label() == file.client.label() && *path == file.path && approved == text
        })
    }
}

/// True if the present content of a recorded file is approved.
pub(super) async fn is_approved(step: &FileStep, settings: &Settings) -> bool {
    let Some(client) = of_project(&step.label) else { return false };
    let Ok(folder) = Folder::read(&step.path) else { return false };
    let standing = source::standing_of(&folder.in_dialect(&client.id), settings).await;
    matches!(standing, Ok(Standing::Approved))
}

/// Approves a content that narthex itself has made of an approved one, or brought back.
pub(super) async fn approve(
    label: &str,
    path: &Path,
    text: &[u8],
    settings: &Settings,
) -> Result<(), Failure> {
    let Some(client) = of_project(label) else { return Ok(()) };
    let folder = Folder::of(path, text)?.in_dialect(&client.id);
    let place = StorePlace::of(&DataDir::open(&settings.daemon.data)?, settings);
    let store = place.open().await?;
    let approved = folder.approve(store.trusted_files()).await;
    store.close().await;
    approved
}

/// The row of a project's file by its label.
fn of_project(label: &str) -> Option<&'static Client> {
    let mut rows = clients().iter().filter(|row| row.is_of_project());
    rows.find(|row| row.label() == label)
}
