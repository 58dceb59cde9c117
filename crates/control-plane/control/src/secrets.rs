//! Secrets of workspaces: the vault's verbs, and its rows in the store.

use std::collections::BTreeMap;

use narthex_audit::{AuditEvent, kind};
use narthex_model::{
    CatalogKind, KeyId, SealedSecret, Secret, SecretName, SecretSummary, SecretVersion,
    WorkspaceId, json::Place,
};
use narthex_store::{Cut, StatementError, Store};
use narthex_vault::{Head, Put, Rotation, RowsError, RowsResult, SealedRows, Stored, Vault};
use serde_json::Value;

use crate::{By, Control, ControlError, filled, follow};

/// Names of secrets, each with the places that refer to it.
pub type SecretUses = BTreeMap<String, Vec<String>>;

impl Control {
    /// All secrets of a workspace, also cleared ones, by name; never a value (X-M21).
    ///
    /// # Errors
    /// When there is no vault or no such workspace, or the store fails.
    pub async fn secrets(
        &self,
        workspace: &WorkspaceId,
    ) -> Result<Vec<SecretSummary>, ControlError> {
        Ok(self.vault()?.list(workspace).await?)
    }

    /// Gives a secret a new value. Active runs keep their value (X-M50).
    ///
    /// # Errors
    /// When there is no vault or no such workspace, the value is unusable, or the store fails. No
    /// error shows the value.
    pub async fn secret_put(
        &self,
        workspace: &WorkspaceId,
        name: &SecretName,
        value: Secret,
        by: &By,
    ) -> Result<Stored, ControlError> {
        let (workspace, name, by) = (workspace.clone(), name.clone(), by.clone());
        let put = async move |this: Self| {
            let vault = this.vault()?;
            let id = by.id.clone();
            let event = AuditEvent::new(kind::SECRET_SET, by).in_workspace(&workspace);
            let event = event.on("secret", name.as_str().to_owned()).changing(["value"]);
            let mut noted = this.note(event).await?;
            let put = Put { workspace: &workspace, name: &name, value: &value, by: &id };
            let stored = vault.put(put).await?;
            this.secret_set_again(&workspace, &name);
            let version = stored.version.get();
            // The kinds of events of X-M59.
            let kind = if stored.was_set { kind::SECRET_REPLACED } else { kind::SECRET_SET };
            noted
                .update(|event| AuditEvent { kind: kind.into(), ..event.with("version", version) });
            noted.done().await;
            this.follow_secret(&workspace).await;
            Ok(stored)
        };
        self.to_the_end(put).await
    }

    /// The secrets that the catalog of a workspace names, each with its places, such as
    /// `agents.reader.mcpServers.docs.config.key`, and those of local files, such as
    /// `mcp.json:servers.docs.env.KEY`.
    ///
    /// # Errors
    /// When there is no such workspace or no store, or the store fails.
    pub async fn secret_uses(&self, workspace: &WorkspaceId) -> Result<SecretUses, ControlError> {
        let store = self.catalog_store(workspace).await?;
        let mut found = SecretUses::new();
        for kind in CatalogKind::ALL {
            for row in store.catalog(kind).all(workspace).await.map_err(ControlError::Store)? {
                let Ok(document) = serde_json::from_str(&row.document) else { continue };
                let kind = match kind {
                    CatalogKind::Server => "servers",
                    CatalogKind::Capability => "capabilities",
                    CatalogKind::Agent => "agents",
                };
                naming(&document, &Place::root(kind).key(&row.id), &mut found);
            }
        }
        if *workspace == self.shared.workspace
            && let Some(applied) = &*self.shared.applied.lock().await
        {
            for (name, places) in filled::uses(&applied.declared) {
                found.entry(name.as_str().to_owned()).or_default().extend(places);
            }
        }
        Ok(found)
    }

    /// Removes all values of a secret, at once (D10).
    ///
    /// # Errors
    /// When there is no vault, the secret is not set, or the store fails.
    pub async fn secret_clear(
        &self,
        workspace: &WorkspaceId,
        name: &SecretName,
        by: &By,
    ) -> Result<(), ControlError> {
        let (workspace, name, by) = (workspace.clone(), name.clone(), by.clone());
        let clear = async move |this: Self| {
            let vault = this.vault()?;
            let id = by.id.clone();
            let event = AuditEvent::new(kind::SECRET_CLEARED, by).in_workspace(&workspace);
            let noted = this.note(event.on("secret", name.as_str().to_owned())).await?;
            vault.clear(&workspace, &name, &id).await?;
            this.cut(&workspace, &Cut::Secret(name, u64::MAX));
            noted.done().await;
            this.follow_secret(&workspace).await;
            Ok(())
        };
        self.to_the_end(clear).await
    }

    /// Connects the servers of local files anew whose secrets have changed.
    async fn follow_secret(&self, workspace: &WorkspaceId) {
        if *workspace == self.shared.workspace {
            follow::fill_anew(&self.shared).await;
        }
    }

    /// Changes the master key while secrets are in use, or finishes an interrupted change.
    ///
    /// # Errors
    /// As for [`Vault::rotate_key`], and when there is no vault or the change cannot be recorded.
    pub async fn secret_rotate_key(&self, by: &By) -> Result<Rotation, ControlError> {
        let by = by.clone();
        let rotate = async move |this: Self| {
            this.vault()?;
            let event = AuditEvent::new(kind::KEY_ROTATED, by).on("key", "master");
            let mut noted = this.note(event).await?;
            let rotation = this.audit_rotate().await?;
            let (key, resealed) = (rotation.key.as_str().to_owned(), rotation.resealed);
            noted.update(|event| event.on("key", key).with("resealed", resealed));
            noted.done().await;
            Ok(rotation)
        };
        self.to_the_end(rotate).await
    }

    pub fn vault(&self) -> Result<&Vault, ControlError> {
        self.shared.vault.as_ref().ok_or(ControlError::NoVault)
    }
}

/// Collects the places in a normal form whose whole value is a secret.
fn naming(value: &Value, at: &Place, found: &mut SecretUses) {
    match value {
        Value::Object(members) => match members.get("$secret").and_then(Value::as_str) {
            Some(name) => found.entry(name.to_owned()).or_default().push(at.to_string()),
            None => members.iter().for_each(|(key, value)| naming(value, &at.key(key), found)),
        },
        Value::Array(items) => {
            let items = items.iter().enumerate();
            items.for_each(|(index, value)| naming(value, &at.index(index), found));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The vault's rows, in the tables of the store.
#[derive(Debug)]
pub struct SecretRows(Store);

impl SecretRows {
    /// Rows in the tables of this store.
    #[must_use]
    pub fn new(store: Store) -> Self {
        Self(store)
    }
}

fn failed(source: StatementError) -> RowsError {
    RowsError { kind: source.kind(), source: Box::new(source) }
}

impl SealedRows for SecretRows {
    fn head<'a>(
        &'a self,
        workspace: &'a WorkspaceId,
        name: &'a SecretName,
    ) -> RowsResult<'a, Option<Head>> {
        Box::pin(async move {
            let head = self.0.secrets().head(workspace, name).await.map_err(failed)?;
            Ok(head.map(|head| Head { last: head.last, is_set: head.is_set }))
        })
    }

    fn add<'a>(&'a self, sealed: &'a SealedSecret, by: &'a str, kept: u64) -> RowsResult<'a, bool> {
        Box::pin(async move { self.0.secrets().add(sealed, by, kept).await.map_err(failed) })
    }

    fn find<'a>(
        &'a self,
        workspace: &'a WorkspaceId,
        name: &'a SecretName,
        version: Option<SecretVersion>,
    ) -> RowsResult<'a, Option<SealedSecret>> {
        Box::pin(
            async move { self.0.secrets().find(workspace, name, version).await.map_err(failed) },
        )
    }

    fn clear<'a>(
        &'a self,
        workspace: &'a WorkspaceId,
        name: &'a SecretName,
        by: &'a str,
    ) -> RowsResult<'a, bool> {
        Box::pin(async move { self.0.secrets().clear(workspace, name, by).await.map_err(failed) })
    }

    fn list<'a>(
        &'a self,
        workspace: &'a WorkspaceId,
    ) -> RowsResult<'a, Option<Vec<SecretSummary>>> {
        Box::pin(async move {
            if self.0.workspaces().find(workspace).await.map_err(failed)?.is_none() {
                return Ok(None);
            }
            self.0.secrets().all(workspace).await.map(Some).map_err(failed)
        })
    }

    fn keys(&self) -> RowsResult<'_, BTreeMap<KeyId, u64>> {
        Box::pin(async move { self.0.secrets().keys().await.map_err(failed) })
    }

    fn sealed_otherwise<'a>(
        &'a self,
        key: &'a KeyId,
        after: Option<&'a SealedSecret>,
        limit: u32,
    ) -> RowsResult<'a, Vec<SealedSecret>> {
        Box::pin(async move {
            self.0.secrets().sealed_otherwise(key, after, limit).await.map_err(failed)
        })
    }

    fn replace<'a>(&'a self, old: &'a SealedSecret, new: &'a SealedSecret) -> RowsResult<'a, bool> {
        Box::pin(async move { self.0.secrets().replace(old, new).await.map_err(failed) })
    }
}
