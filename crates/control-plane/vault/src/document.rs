//! Seals whole texts that are no named secrets, such as the frozen data of a run.
//!
//! They are sealed under a key of their workspace. That key is a value of the backend, under a name
//! that no caller can use. So a change of the master key seals that one value anew instead of each
//! document.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use narthex_model::{Secret, SecretName, SecretReference, SecretVersion, WorkspaceId};
use tokio::sync::Mutex;
use zeroize::Zeroizing;

use crate::{
    Backend, MasterKey, Vault, VaultError,
    backend::{Opened, Put},
    seal::{Closed, open_text, seal_text},
};

/// Name of the value that is the key of a workspace's documents.
const KEY_NAME: &str = "_NARTHEX_DOCUMENTS";
/// The author of this value in its summary.
const KEY_MAKER: &str = "narthex";
/// Kind and version of the sealed form: another form gets another word.
const FORM: &[u8] = b"narthex document 1\n";

/// The keys that were needed so far.
pub(crate) type DocumentKeys = Arc<Mutex<HashMap<WorkspaceId, BTreeMap<SecretVersion, MasterKey>>>>;

/// True if a name is the vault's own: no secret can be set, read or listed under it.
pub(crate) fn is_reserved(name: &SecretName) -> bool {
    name.as_str() == KEY_NAME
}

impl Vault {
    /// Seals a text for one place of a workspace. The text opens only there.
    ///
    /// # Errors
    /// `UnknownWorkspace`, or when the backend fails or the system gives no random bytes.
    pub async fn seal_document(
        &self,
        workspace: &WorkspaceId,
        place: &str,
        text: &Secret,
    ) -> Result<String, VaultError> {
        let (version, key) = self.newest_key(workspace).await?;
        let sealed = seal_text(&key, &associated(workspace, place), text);
        Ok(format!("{version}.{}", sealed.map_err(VaultError::Randomness)?))
    }

    /// Opens a text that was sealed for this place.
    ///
    /// # Errors
    /// `DocumentDamaged` if the text was not sealed for this place, or when the backend fails.
    pub async fn open_document(
        &self,
        workspace: &WorkspaceId,
        place: &str,
        sealed: &str,
    ) -> Result<Secret, VaultError> {
        let damaged = || VaultError::DocumentDamaged {
            workspace: workspace.clone(),
            place: place.to_owned(),
        };
        let (version, sealed) = sealed.split_once('.').ok_or_else(damaged)?;
        let version = version.parse().ok().and_then(SecretVersion::new).ok_or_else(damaged)?;
        let associated = associated(workspace, place);
        let key = self.key(workspace, version).await?;
        if let Ok(text) = open_text(&key, &associated, sealed) {
            return Ok(text);
        }
        // The key may be one of a deleted workspace that had the same id.
        self.documents.lock().await.remove(workspace);
        let key = self.key(workspace, version).await.map_err(|_gone| damaged())?;
        open_text(&key, &associated, sealed).map_err(|Closed| damaged())
    }

    /// Drops the keys of documents of all other workspaces from the memory: they were deleted. A
    /// key that is needed again is read again.
    pub async fn keep_documents_of(&self, workspaces: &BTreeSet<WorkspaceId>) {
        self.documents.lock().await.retain(|workspace, _keys| workspaces.contains(workspace));
    }

    async fn key(
        &self,
        workspace: &WorkspaceId,
        version: SecretVersion,
    ) -> Result<MasterKey, VaultError> {
        let mut known = self.documents.lock().await;
        if let Some(key) = known.get(workspace).and_then(|keys| keys.get(&version)) {
            return Ok(key.clone());
        }
        let reference = SecretReference::pinned(name(), version);
        let (_, key) = parsed(workspace, &self.backend.open(workspace, &reference).await?)?;
        known.entry(workspace.clone()).or_default().insert(version, key.clone());
        Ok(key)
    }

    /// The key that seals new documents. The first call creates it.
    async fn newest_key(
        &self,
        workspace: &WorkspaceId,
    ) -> Result<(SecretVersion, MasterKey), VaultError> {
        // The lock is held until the key is known, so that only one key is made.
        let mut known = self.documents.lock().await;
        if let Some((version, key)) = known.get(workspace).and_then(BTreeMap::last_key_value) {
            return Ok((*version, key.clone()));
        }
        let reference = SecretReference::newest(name());
        let opened = match self.backend.open(workspace, &reference).await {
            Err(VaultError::NotSet(_)) => {
                make(&*self.backend, workspace).await?;
                self.backend.open(workspace, &reference).await?
            }
            opened => opened?,
        };
        let (version, key) = parsed(workspace, &opened)?;
        known.entry(workspace.clone()).or_default().insert(version, key.clone());
        Ok((version, key))
    }
}

async fn make(backend: &dyn Backend, workspace: &WorkspaceId) -> Result<(), VaultError> {
    let mut text = Zeroizing::new(String::new());
    MasterKey::generate().map_err(VaultError::Randomness)?.write(&mut text);
    let value = Secret::new(text.as_str());
    backend.put(Put { workspace, name: &name(), value: &value, by: KEY_MAKER }).await.map(drop)
}

fn name() -> SecretName {
    SecretName::new(KEY_NAME).expect("the name is one")
}

fn parsed(
    workspace: &WorkspaceId,
    opened: &Opened,
) -> Result<(SecretVersion, MasterKey), VaultError> {
    let Opened { value, version } = opened;
    let key = MasterKey::parse(value.expose(), 1).map_err(|_fault| VaultError::Damaged {
        workspace: workspace.clone(),
        name: name(),
        version: *version,
    })?;
    Ok((*version, key))
}

fn associated(workspace: &WorkspaceId, place: &str) -> Vec<u8> {
    let mut bytes = FORM.to_vec();
    for text in [workspace.as_str(), place] {
        bytes.extend_from_slice(&(text.len() as u64).to_be_bytes());
        bytes.extend_from_slice(text.as_bytes());
    }
    bytes
}
