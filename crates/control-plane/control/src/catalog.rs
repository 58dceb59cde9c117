//! The catalog of a workspace: servers, capabilities and agents, checked when they are stored.
//!
//! The store has the normal form of `narthex_catalog`. A change is checked against all other
//! objects of the workspace. All errors are reported at once, and then no part of the change is
//! stored (D9).

mod changes;
mod checks;
mod connections;
mod export;
mod parts;
mod personal;
mod servers;
mod trial;

use std::{collections::BTreeSet, time::SystemTime};

use narthex_model::{CatalogKind, WorkspaceId, json::shortened};
use narthex_store::{CatalogRow, Store};
use serde_json::Value;

pub use self::checks::{CatalogUser, never_starts};
use self::checks::{Definition, Stored};
pub use narthex_catalog::fields::{CatalogError, FieldCode, FieldError, FieldWarning};

pub use self::changes::{
    CatalogAttached, CatalogAttachment, CatalogAttachments, CatalogChange, CatalogConnection,
    CatalogImport, CatalogImportChange, CatalogImported, CatalogLeft, CatalogValid, Precondition,
};
pub(crate) use self::connections::connection_event;
pub use self::connections::{Connecting, UserConnection};
pub use self::parts::AgentParts;
pub use self::personal::connection_path;
pub use self::servers::CatalogServers;
pub use self::trial::{CatalogTrial, TrialInputs};
use crate::{Control, ControlError, Page};

/// A stored object of the catalog.
#[derive(Debug, Clone, PartialEq)]
pub struct CatalogObject {
    /// The object's id or name.
    pub id: String,
    /// The object's normal form; `None` if the stored text is no JSON.
    pub definition: Option<Value>,
    /// Number of writes of the object.
    pub revision: u64,
    /// Version tag: differs after every write, also if the object was removed and created anew.
    pub tag: String,
    /// Time of creation.
    pub created_at: SystemTime,
    /// Time of the last write.
    pub updated_at: SystemTime,
    /// The actor of the last write.
    pub updated_by: String,
    /// Reasons why the stored object cannot be used (O39). They have one of two causes: a person
    /// changed the store by hand, or an earlier version accepted a definition that this one
    /// refuses.
    pub errors: Vec<FieldError>,
}

/// The result of a write.
#[derive(Debug, Clone, PartialEq)]
pub struct CatalogWritten {
    /// The object after the write.
    pub object: CatalogObject,
    /// True if the object existed before.
    pub was_there: bool,
    /// Warnings for people, about the object and about others that the write breaks.
    pub warnings: Vec<FieldWarning>,
}

impl Control {
    /// The first `limit` objects of a kind whose ids come after `after`; an empty `after` is before
    /// all of them.
    ///
    /// # Errors
    /// When there is no store or no such workspace, or the store fails.
    pub async fn catalog_list(
        &self,
        workspace: &WorkspaceId,
        kind: CatalogKind,
        after: &str,
        limit: u32,
    ) -> Result<Page<CatalogObject>, ControlError> {
        let store = self.catalog_store(workspace).await?;
        // One more row shows whether there is a further page.
        let asked = store.catalog(kind).page(workspace, after, limit.saturating_add(1)).await;
        let mut rows = asked.map_err(ControlError::Store)?;
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let has_more = rows.len() > limit;
        rows.truncate(limit);
        let next = rows.last().filter(|_| has_more).map(|row| row.id.clone());
        let items = self.catalog_work(move || rows.iter().map(|row| object(kind, row)).collect());
        let items = items.await?;
        Ok(Page { items, next })
    }

    /// One object.
    ///
    /// # Errors
    /// When the id is unknown, there is no store or no such workspace, or the store fails.
    pub async fn catalog_get(
        &self,
        workspace: &WorkspaceId,
        kind: CatalogKind,
        id: &str,
    ) -> Result<CatalogObject, ControlError> {
        let store = self.catalog_store(workspace).await?;
        let row = store.catalog(kind).find(workspace, id).await.map_err(ControlError::Store)?;
        let row = row.ok_or_else(|| unknown(kind, id))?;
        self.catalog_work(move || object(kind, &row)).await
    }

    /// The servers of an agent with all levels merged, each value with its origin, and their
    /// faults. Hidden literals are not shown (O101).
    ///
    /// # Errors
    /// When there is no such agent or it cannot be read, there is no store or no such workspace, or
    /// the store or the vault fails.
    pub async fn catalog_merged(
        &self,
        workspace: &WorkspaceId,
        id: &str,
    ) -> Result<Value, ControlError> {
        let (kind, stored) = (CatalogKind::Agent, self.catalog_stored(workspace).await?);
        let Some(row) = stored.find(kind, id).cloned() else {
            return Err(unknown(kind, id).into());
        };
        let merged = self.catalog_work(move || {
            stored.read().merged(&row.id).ok_or_else(|| {
                let errors = object(kind, &row).errors;
                CatalogError::Unreadable { kind, id: row.id, errors }
            })
        });
        Ok(merged.await??)
    }

    /// All objects of a workspace, and which of its secrets are set.
    async fn catalog_stored(&self, workspace: &WorkspaceId) -> Result<Stored, ControlError> {
        let store = self.catalog_store(workspace).await?;
        let found = store.workspaces().find(workspace).await.map_err(ControlError::Store)?;
        let settings = found.map(|found| found.settings).unwrap_or_default();
        let rows = async |kind| {
            let rows = store.catalog(kind).all(workspace).await;
            rows.map_err(ControlError::Store)
        };
        let secrets = match &self.shared.vault {
            Some(vault) => vault.list(workspace).await?,
            None => Vec::new(),
        };
        let set = secrets.into_iter().filter(|secret| secret.is_set());
        Ok(Stored {
            workspace: workspace.clone(),
            servers: rows(CatalogKind::Server).await?,
            capabilities: rows(CatalogKind::Capability).await?,
            agents: rows(CatalogKind::Agent).await?,
            secrets: set.map(|secret| secret.name).collect::<BTreeSet<_>>(),
            variables: self.shared.variables.clone(),
            oauth_on_orchestrators: settings.oauth_on_orchestrators,
            executors: self.shared.executors.of_workspace(workspace),
        })
    }

    /// The store, after a check that it has this workspace.
    pub async fn catalog_store(&self, workspace: &WorkspaceId) -> Result<&Store, ControlError> {
        let store = self.needed_store()?;
        let found = store.workspaces().find(workspace).await.map_err(ControlError::Store)?;
        match found {
            Some(_) => Ok(store),
            None => Err(CatalogError::NoWorkspace(workspace.clone()).into()),
        }
    }

    /// Runs work that takes processor time on a separate thread, where it delays no fast answers.
    async fn catalog_work<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, ControlError> {
        self.shared.tasks.spawn_blocking(work).await.map_err(ControlError::Bug)
    }
}

fn unknown(kind: CatalogKind, id: &str) -> CatalogError {
    CatalogError::Unknown { kind, id: shortened(id) }
}

fn object(kind: CatalogKind, row: &CatalogRow) -> CatalogObject {
    let CatalogRow { id, document, revision, created_at, updated_at, updated_by } = row.clone();
    let read = Definition::parse(kind, document.as_bytes(), Some(&id));
    CatalogObject {
        definition: serde_json::from_str(&document).ok(),
        tag: tag(row),
        id,
        revision,
        created_at,
        updated_at,
        updated_by,
        errors: read.err().unwrap_or_default(),
    }
}

/// A version tag. It differs for each creation of an id, and for each write.
fn tag(row: &CatalogRow) -> String {
    let since = row.created_at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    format!("{:x}-{}", since.as_millis(), row.revision)
}
