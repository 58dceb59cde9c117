//! Unique names of a workspace's objects among those of all workspaces, for mounts of runs, by
//! which a cut finds them ([`MountIdentity`](narthex_registry::MountIdentity)).

use std::sync::Arc;

use narthex_model::{SecretName, WorkspaceId};

/// The key of a server of the catalog.
#[must_use]
pub fn server_key(workspace: &WorkspaceId, id: &str) -> Arc<str> {
    format!("{workspace}/{id}").into()
}

/// The key of a secret.
#[must_use]
pub fn secret_key(workspace: &WorkspaceId, name: &SecretName) -> Arc<str> {
    format!("{workspace}/{name}").into()
}
