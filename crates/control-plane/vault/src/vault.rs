//! The vault: one backend, behind checks that hold for all.

use std::sync::Arc;

use narthex_model::{SecretName, SecretReference, SecretSummary, WorkspaceId};

use crate::{
    Backend, VaultError,
    backend::{Opened, Put, Rotation, Stored, Voucher},
    document::{DocumentKeys, is_reserved},
};

/// The longest value, in bytes: half of the limit of Linux for one variable of a process.
pub const VALUE_MAX: usize = 64 * 1024;

/// Number of values of a name that are stored for runs that have pinned them.
pub const VERSIONS_KEPT: u64 = 32;

/// Keeps the secrets of all workspaces. Clones are the same one.
#[derive(Debug, Clone)]
pub struct Vault {
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) documents: DocumentKeys,
}

impl Vault {
    /// A vault that keeps its secrets there.
    #[must_use]
    pub fn new(backend: Arc<dyn Backend>) -> Self {
        Self { backend, documents: DocumentKeys::default() }
    }

    /// All secrets of a workspace that ever were set, by name; never a value.
    ///
    /// # Errors
    /// `UnknownWorkspace`, or when the backend fails.
    pub async fn list(&self, workspace: &WorkspaceId) -> Result<Vec<SecretSummary>, VaultError> {
        let mut all = self.backend.list(workspace).await?;
        all.retain(|secret| !is_reserved(&secret.name));
        Ok(all)
    }

    /// Keeps a value, which is the newest of its name from now on.
    ///
    /// # Errors
    /// `Reserved`; when the value is empty, longer than [`VALUE_MAX`] or holds a zero byte;
    /// `UnknownWorkspace`; or when the backend fails.
    pub async fn put(&self, put: Put<'_>) -> Result<Stored, VaultError> {
        if is_reserved(put.name) {
            return Err(VaultError::Reserved(put.name.clone()));
        }
        let value = put.value.expose();
        if value.is_empty() {
            return Err(VaultError::EmptyValue);
        }
        if value.len() > VALUE_MAX {
            return Err(VaultError::LongValue { most: VALUE_MAX });
        }
        if value.contains('\0') {
            return Err(VaultError::ZeroByte);
        }
        self.backend.put(put).await
    }

    /// The value that a reference of this workspace names, and which one it is. To see the same
    /// value later, whatever is set meanwhile, open [`SecretReference::pinned`] with that version.
    ///
    /// # Errors
    /// `NotSet` also once it was cleared, `VersionGone`, `Damaged`, `KeysMissing`, or when the
    /// backend fails.
    pub async fn open(
        &self,
        workspace: &WorkspaceId,
        reference: &SecretReference,
    ) -> Result<Opened, VaultError> {
        if is_reserved(&reference.name) {
            return Err(VaultError::NotSet(reference.name.clone()));
        }
        self.backend.open(workspace, reference).await
    }

    /// Takes all values of a name away, those that are pinned too (D10).
    ///
    /// # Errors
    /// `NothingToClear`, `Reserved`, or when the backend fails.
    pub async fn clear(
        &self,
        workspace: &WorkspaceId,
        name: &SecretName,
        by: &str,
    ) -> Result<(), VaultError> {
        if is_reserved(name) {
            return Err(VaultError::Reserved(name.clone()));
        }
        match self.backend.clear(workspace, name, by).await {
            Err(VaultError::NotSet(name)) => Err(VaultError::NothingToClear(name)),
            cleared => cleared,
        }
    }

    /// Changes the master key while secrets are in use, or completes such a change that broke off.
    ///
    /// # Errors
    /// `RotationRuns`, `NoNewKey`, `Stuck`, or when keys or values cannot be stored. Every secret
    /// still opens after each error, and the next call continues from there.
    pub async fn rotate_key(&self) -> Result<Rotation, VaultError> {
        self.backend.rotate_key().await
    }

    /// Marks a text, so that it is known again as ours.
    ///
    /// # Errors
    /// When the backend fails.
    pub async fn vouch(&self, text: &str) -> Result<Voucher, VaultError> {
        self.backend.vouch(text).await
    }

    /// True if a mark is of this text; `None` if its key is not there any more.
    ///
    /// # Errors
    /// When the backend fails.
    pub async fn vouches(&self, text: &str, voucher: &Voucher) -> Result<Option<bool>, VaultError> {
        self.backend.vouches(text, voucher).await
    }
}
