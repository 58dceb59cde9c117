//! The servers of a catalog together with the objects that use them.

use std::collections::BTreeMap;

use narthex_catalog::fields::FieldError;
use narthex_model::{CatalogKind, WorkspaceId};

use super::{CatalogObject, checks::CatalogUser, object, unknown};
use crate::{Control, ControlError};

/// All servers of a catalog, and their users.
#[derive(Debug, Clone, PartialEq)]
pub struct CatalogServers {
    /// The servers, in the order of their ids.
    pub servers: Vec<CatalogObject>,
    /// The objects that attach a server, by its id. Objects that cannot be read are not among them.
    pub users: BTreeMap<String, Vec<CatalogUser>>,
}

impl Control {
    /// All servers of a catalog, and the objects that use them.
    ///
    /// # Errors
    /// When there is no store or no such workspace, or the store or the vault fails.
    pub async fn catalog_servers(
        &self,
        workspace: &WorkspaceId,
    ) -> Result<CatalogServers, ControlError> {
        let stored = self.catalog_stored(workspace).await?;
        let read = self.catalog_work(move || {
            let users = stored.read().users_of_servers();
            let rows = stored.servers.iter();
            let servers = rows.map(|row| object(CatalogKind::Server, row)).collect();
            CatalogServers { servers, users }
        });
        read.await
    }

    /// The places that refer to an object, which its removal would break (O41).
    ///
    /// # Errors
    /// When there is no such object, no store or no such workspace, or the store or the vault
    /// fails.
    pub async fn catalog_users(
        &self,
        workspace: &WorkspaceId,
        kind: CatalogKind,
        id: &str,
    ) -> Result<Vec<FieldError>, ControlError> {
        let stored = self.catalog_stored(workspace).await?;
        let found = stored.find(kind, id).map(|row| row.id.clone());
        let id = found.ok_or_else(|| unknown(kind, id))?;
        self.catalog_work(move || stored.read().users_named(kind, &id)).await
    }
}
