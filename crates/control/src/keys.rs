//! What things of a workspace are called among those of all workspaces, in what runs have mounted:
//! so that a cut finds them ([`MountIdentity`](narthex_registry::MountIdentity)).

use std::sync::Arc;

use narthex_model::{SecretName, WorkspaceId};

/// A server of the catalog.
#[must_use]
pub fn server_key(workspace: &WorkspaceId, id: &str) -> Arc<str> {
    format!("{workspace}/{id}").into()
}

/// A secret.
#[must_use]
pub fn secret_key(workspace: &WorkspaceId, name: &SecretName) -> Arc<str> {
    format!("{workspace}/{name}").into()
}
