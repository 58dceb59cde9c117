//! Workspaces: made, named and deleted.

use narthex_model::WorkspaceId;
use narthex_store::Workspace;

use super::{AccessError, change::of_statement, fields::Fields};
use crate::{CatalogError, Control, ControlError};

impl Control {
    /// All of them, in the order of their ids.
    ///
    /// # Errors
    /// When there is no store.
    pub fn workspaces(&self) -> Result<Vec<Workspace>, ControlError> {
        self.access_store()?;
        Ok(self.access().workspaces.values().cloned().collect())
    }

    /// One of them.
    ///
    /// # Errors
    /// When there is none of this id, or no store.
    pub fn workspace(&self, id: &WorkspaceId) -> Result<Workspace, ControlError> {
        self.known_workspace(id)?;
        let found = self.access().workspaces.get(id).cloned();
        found.ok_or_else(|| CatalogError::NoWorkspace(id.clone()).into())
    }

    /// Makes one of `{"id": …, "name": …}`; without a name, the id is it.
    ///
    /// # Errors
    /// When a field is wrong, or the id is taken; when there is no store, or it fails.
    pub async fn workspace_create(&self, text: &[u8], by: &str) -> Result<Workspace, ControlError> {
        let mut fields = Fields::read(text, &["id", "name"])?;
        let id = fields.named("id", WorkspaceId::new);
        let name = fields.text("name");
        fields.done()?;
        let id = id.expect("what is missing is a fault");
        let name = name.unwrap_or_else(|| id.to_string());
        let (new, by) = (Workspace { id, name }, by.to_owned());
        self.change_access(async move |_, store| {
            let taken = AccessError::WorkspaceTaken(new.id.clone());
            store.workspaces().create(&new).await.map_err(of_statement(taken))?;
            tracing::info!(event = "workspace.created", workspace = %new.id, by);
            Ok(new)
        })
        .await
    }

    /// Gives one another name: `{"name": …}`.
    ///
    /// # Errors
    /// When a field is wrong, there is no such workspace or no store, or it fails.
    pub async fn workspace_change(
        &self,
        id: &WorkspaceId,
        text: &[u8],
        by: &str,
    ) -> Result<Workspace, ControlError> {
        self.known_workspace(id)?;
        let mut fields = Fields::read(text, &["name"])?;
        fields.needed("name");
        let name = fields.text("name");
        fields.done()?;
        let name = name.expect("what is missing is a fault");
        let (new, by) = (Workspace { id: id.clone(), name }, by.to_owned());
        self.change_access(async move |_, store| {
            let renamed = store.workspaces().rename(&new.id, &new.name).await;
            if !renamed.map_err(ControlError::Store)? {
                return Err(CatalogError::NoWorkspace(new.id).into());
            }
            tracing::info!(event = "workspace.updated", workspace = %new.id, by);
            Ok(new)
        })
        .await
    }

    /// Deletes one. With `is_forced` also one in which something lives, which is then gone.
    ///
    /// # Errors
    /// When something lives in it, it is `default`, there is none of this id or no store, or the
    /// store fails.
    pub async fn workspace_delete(
        &self,
        id: &WorkspaceId,
        is_forced: bool,
        by: &str,
    ) -> Result<(), ControlError> {
        self.known_workspace(id)?;
        if *id == WorkspaceId::default() {
            return Err(AccessError::DefaultStays.into());
        }
        let (id, by) = (id.clone(), by.to_owned());
        self.change_access(async move |this, store| {
            // Nobody adds to the catalog meanwhile.
            let _together = this.shared.cataloguing.lock().await;
            let workspaces = store.workspaces();
            if workspaces.delete(&id, is_forced).await.map_err(ControlError::Store)? {
                tracing::info!(event = "workspace.deleted", workspace = %id, is_forced, by);
                return Ok(());
            }
            let living = workspaces.contents(&id).await.map_err(ControlError::Store)?;
            match living.is_empty() {
                true => Err(CatalogError::NoWorkspace(id).into()),
                false => Err(AccessError::Living { workspace: id, living }.into()),
            }
        })
        .await
    }
}
