//! The secrets that go with the data, and that are nowhere else after the undo.

use narthex_client_files::journal::Step;
use narthex_model::WorkspaceId;
use narthex_store::{StatementError, Store};

use crate::{commands::setup::place, config::Settings, data_dir::DataDir, stored::StorePlace};

/// The beginning of the names that the vault has for itself.
const OWN: &str = "_NARTHEX_";

/// A secret of the vault.
struct Stored {
    /// The name, with the workspace if it is not the first one.
    shown: String,
    name: String,
    version: Option<u64>,
    is_of_default: bool,
}

/// The names of the secrets that no file of a client gets back. None where the data are in a
/// database elsewhere, which stays, or cannot be read.
pub(super) async fn lost(data: &DataDir, settings: &Settings) -> Vec<String> {
    if settings.store_url.is_some() {
        return Vec::new();
    }
    let Ok(Some(store)) = StorePlace::of(data, settings).look().await else { return Vec::new() };
    let stored = stored(&store).await;
    store.close().await;
    let (Ok(stored), Ok(journal)) = (stored, place::journal(data)) else { return Vec::new() };
    let comes_back = |one: &Stored| {
        one.is_of_default
            && journal.steps().iter().any(|step| match step {
                Step::Secret { name, version } => {
                    *name == one.name && (version.is_none() || *version == one.version)
                }
                Step::File(_) | Step::Server { .. } | Step::Service { .. } => false,
            })
    };
    stored.into_iter().filter(|one| !comes_back(one)).map(|one| one.shown).collect()
}

async fn stored(store: &Store) -> Result<Vec<Stored>, StatementError> {
    let mut stored = Vec::new();
    for workspace in store.workspaces().all().await? {
        let is_of_default = workspace.id == WorkspaceId::default();
        let all = store.secrets().all(&workspace.id).await?;
        let all = all.into_iter().filter(|one| one.is_set() && !one.name.as_str().starts_with(OWN));
        stored.extend(all.map(|one| {
            let name = one.name.as_str().to_owned();
            let shown = match is_of_default {
                true => name.clone(),
                false => format!("{name} (workspace {})", workspace.id),
            };
            let version = one.versions.last().map(|last| last.version.get());
            Stored { shown, name, version, is_of_default }
        }));
    }
    Ok(stored)
}
