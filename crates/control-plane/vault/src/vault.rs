//! The vault: one backend, with checks that apply to every backend.

use std::sync::Arc;

use narthex_model::{SecretName, SecretReference, SecretSummary, WorkspaceId};

use crate::{
    Backend, VaultError,
    backend::{KeysInUse, Opened, Put, Rotation, Stored, Voucher},
    document::{DocumentKeys, is_reserved},
};

/// Maximum length of a value in bytes: half of Linux's limit for one variable of a process.
pub const VALUE_MAX: usize = 64 * 1024;

/// Number of values of a secret that are stored for runs that have pinned them.
pub const VERSIONS_KEPT: u64 = 32;

/// The secrets of all workspaces. Clones share one backend.
#[derive(Debug, Clone)]
pub struct Vault {
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) documents: DocumentKeys,
}

impl Vault {
    /// A vault over this backend.
    #[must_use]
    pub fn new(backend: Arc<dyn Backend>) -> Self {
        Self { backend, documents: DocumentKeys::default() }
    }

    /// All secrets of a workspace, also cleared ones, by name; never a value.
    ///
    /// # Errors
    /// `UnknownWorkspace`, or when the backend fails.
    pub async fn list(&self, workspace: &WorkspaceId) -> Result<Vec<SecretSummary>, VaultError> {
        let mut all = self.backend.list(workspace).await?;
        all.retain(|secret| !is_reserved(&secret.name));
        Ok(all)
    }

    /// Stores a value, which becomes the newest of its secret.
    ///
    /// # Errors
    /// `Reserved`; when the value is empty, longer than [`VALUE_MAX`] or has a zero byte;
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

    /// Returns the value of a reference in this workspace, with its version. To get the same value
    /// later, open [`SecretReference::pinned`] with that version.
    ///
    /// # Errors
    /// `NotSet`, also for a cleared secret, `VersionGone`, `Damaged`, `KeysMissing`, or when the
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

    /// Removes all values of a secret, also pinned ones (D10).
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

    /// Changes the master key while secrets are in use, or completes an interrupted change.
    ///
    /// # Errors
    /// `RotationRuns`, `NoNewKey`, `Stuck`, or when keys or values cannot be stored. Every secret
    /// still opens after an error, and the next call continues from there.
    pub async fn rotate_key(&self) -> Result<Rotation, VaultError> {
        self.backend.rotate_key().await
    }

    /// The master keys without their bytes, and the number of values that each seals.
    ///
    /// # Errors
    /// When the backend fails.
    pub async fn keys(&self) -> Result<KeysInUse, VaultError> {
        self.backend.keys().await
    }

    /// Marks a text as narthex's own.
    ///
    /// # Errors
    /// When the backend fails.
    pub async fn vouch(&self, text: &str) -> Result<Voucher, VaultError> {
        self.backend.vouch(text).await
    }

    /// True if the mark belongs to the text; `None` if the mark's key no longer exists.
    ///
    /// # Errors
    /// When the backend fails.
    pub async fn vouches(&self, text: &str, voucher: &Voucher) -> Result<Option<bool>, VaultError> {
        self.backend.vouches(text, voucher).await
    }
}
