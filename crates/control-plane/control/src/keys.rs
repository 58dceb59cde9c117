//! Names of a workspace's objects that are unique among all workspaces. Mounts of runs carry them,
//! so that a cut finds the mounts ([`MountIdentity`](narthex_registry::MountIdentity)).

use std::sync::Arc;

use narthex_model::{SecretName, WorkspaceId};

/// The unique name of a server of the catalog.
#[must_use]
pub fn server_key(workspace: &WorkspaceId, id: &str) -> Arc<str> {
    format!("{workspace}/{id}").into()
}

/// The unique name of a secret.
#[must_use]
pub fn secret_key(workspace: &WorkspaceId, name: &SecretName) -> Arc<str> {
    format!("{workspace}/{name}").into()
}
