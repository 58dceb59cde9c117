//! Narthex's own backend: values sealed under master keys, in the rows of a database.

mod rotation;

use std::sync::Arc;

use narthex_model::{
    KeyId, SealedSecret, SecretName, SecretReference, SecretSummary, SecretVersion, WorkspaceId,
    command::narthex,
};
use tokio::sync::{Mutex, RwLock};

use crate::{
    Keeper, KeyRing, MasterKey, SealedRows, VERSIONS_KEPT, VaultError,
    backend::{Backend, Doing, KeyInUse, KeysInUse, Opened, Put, Rotation, Stored, Voucher},
    keeper::KeeperError,
    mark,
    seal::Place,
};

/// Most attempts to store a value while other writers set the same name.
const ATTEMPTS: usize = 16;

/// Sealed values in rows, and the keys that open them.
#[derive(Debug)]
pub struct SealedBackend {
    rows: Arc<dyn SealedRows>,
    keeper: Arc<dyn Keeper>,
    /// The keys. A reader holds the lock from before a row is read until it is open, and from
    /// before a value is sealed until it is stored. So no key is removed or replaced in between.
    ring: RwLock<KeyRing>,
    /// Locked while keys change.
    rotating: Mutex<()>,
}

impl SealedBackend {
    /// Loads the keys, and creates the first one if no value was ever sealed.
    ///
    /// # Errors
    /// `KeysMissing` if a value is sealed under another key, or when keys or rows cannot be read.
    pub async fn start(
        rows: Arc<dyn SealedRows>,
        keeper: Arc<dyn Keeper>,
    ) -> Result<Self, VaultError> {
        let in_use = rows.keys().await?;
        let is_new = in_use.is_empty();
        let loaded = blocking(&keeper, move |keeper| match keeper.load()? {
            None if is_new => keeper.create().map(Some),
            loaded => Ok(loaded),
        });
        let ring = loaded.await?;
        let has = |id: &KeyId| ring.as_ref().is_some_and(|ring| ring.get(id).is_some());
        let missing = in_use.iter().filter(|(id, _)| !has(id));
        let (keys, counts): (Vec<KeyId>, Vec<u64>) =
            missing.map(|(id, count)| (id.clone(), *count)).unzip();
        let place = keeper.place();
        match ring {
            Some(ring) if keys.is_empty() => {
                if ring.older().next().is_some() {
                    tracing::warn!(
                        "the change of the master key is not finished; finish it with `{}`",
                        narthex("secrets rotate-key", &[])
                    );
                }
                Ok(Self { rows, keeper, ring: RwLock::new(ring), rotating: Mutex::default() })
            }
            Some(_) => Err(VaultError::KeysMissing { keys, count: counts.iter().sum(), place }),
            None => {
                let (count, absent) = (counts.iter().sum(), keeper.absent());
                Err(VaultError::KeysAbsent { keys, count, absent })
            }
        }
    }

    async fn put_value(&self, put: Put<'_>) -> Result<Stored, VaultError> {
        let Put { workspace, name, value, by } = put;
        let ring = self.ring.read().await;
        for _ in 0..ATTEMPTS {
            let head = self.rows.head(workspace, name).await?;
            let version = head.map_or(SecretVersion::FIRST, |head| head.last.next());
            let place = Place { workspace, name, version };
            let sealed = place.seal(ring.current(), value).map_err(VaultError::Randomness)?;
            let added = self.rows.add(&sealed, by, VERSIONS_KEPT).await;
            let added = added.map_err(|error| match error.kind {
                narthex_model::ErrorKind::NotFound => {
                    VaultError::UnknownWorkspace(workspace.clone())
                }
                _ => error.into(),
            });
            if added? {
                return Ok(Stored { version, was_set: head.is_some_and(|head| head.is_set) });
            }
        }
        Err(VaultError::Contended(name.clone()))
    }

    async fn open_value(
        &self,
        workspace: &WorkspaceId,
        reference: &SecretReference,
    ) -> Result<Opened, VaultError> {
        let SecretReference { name, version } = reference;
        let ring = self.ring.read().await;
        if let Some(sealed) = self.rows.find(workspace, name, *version).await? {
            return self.open_row(&ring, &sealed);
        }
        let Some(version) = *version else { return Err(VaultError::NotSet(name.clone())) };
        // The current values tell if it was cleared or has been superseded for long.
        let head = self.rows.head(workspace, name).await?;
        match head.is_some_and(|head| head.is_set) {
            true => Err(VaultError::VersionGone { name: name.clone(), version }),
            false => Err(VaultError::NotSet(name.clone())),
        }
    }

    fn open_row(&self, ring: &KeyRing, sealed: &SealedSecret) -> Result<Opened, VaultError> {
        let SealedSecret { workspace, name, version, key, sealed: text } = sealed;
        let Some(key) = ring.get(key) else {
            let (keys, place) = (vec![key.clone()], self.keeper.place());
            return Err(VaultError::KeysMissing { keys, count: 1, place });
        };
        match Place::of(sealed).open(key, text) {
            Ok(value) => Ok(Opened { value, version: *version }),
            Err(_closed) => Err(VaultError::Damaged {
                workspace: workspace.clone(),
                name: name.clone(),
                version: *version,
            }),
        }
    }
}

impl Backend for SealedBackend {
    fn list<'a>(&'a self, workspace: &'a WorkspaceId) -> Doing<'a, Vec<SecretSummary>> {
        Box::pin(async move {
            let listed = self.rows.list(workspace).await?;
            listed.ok_or_else(|| VaultError::UnknownWorkspace(workspace.clone()))
        })
    }

    fn put<'a>(&'a self, put: Put<'a>) -> Doing<'a, Stored> {
        Box::pin(self.put_value(put))
    }

    fn open<'a>(
        &'a self,
        workspace: &'a WorkspaceId,
        reference: &'a SecretReference,
    ) -> Doing<'a, Opened> {
        Box::pin(self.open_value(workspace, reference))
    }

    fn clear<'a>(
        &'a self,
        workspace: &'a WorkspaceId,
        name: &'a SecretName,
        by: &'a str,
    ) -> Doing<'a, ()> {
        Box::pin(async move {
            match self.rows.clear(workspace, name, by).await? {
                true => Ok(()),
                false => Err(VaultError::NothingToClear(name.clone())),
            }
        })
    }

    fn rotate_key(&self) -> Doing<'_, Rotation> {
        Box::pin(self.rotate())
    }

    fn keys(&self) -> Doing<'_, KeysInUse> {
        Box::pin(async move {
            let ring = self.ring.read().await;
            let counts = self.rows.keys().await?;
            let of = |key: &MasterKey| KeyInUse {
                id: key.id().clone(),
                values: counts.get(key.id()).copied().unwrap_or_default(),
            };
            let keys = std::iter::once(ring.current()).chain(ring.older()).map(of).collect();
            Ok(KeysInUse { place: self.keeper.place(), is_ours: self.keeper.is_ours(), keys })
        })
    }

    fn vouch<'a>(&'a self, text: &'a str) -> Doing<'a, Voucher> {
        Box::pin(async move {
            let ring = self.ring.read().await;
            let key = ring.current();
            Ok(Voucher { key: key.id().clone(), mark: mark::of(key, text) })
        })
    }

    fn vouches<'a>(&'a self, text: &'a str, voucher: &'a Voucher) -> Doing<'a, Option<bool>> {
        Box::pin(async move {
            let ring = self.ring.read().await;
            Ok(ring.get(&voucher.key).map(|key| mark::fits(key, text, &voucher.mark)))
        })
    }
}

/// Asks the keeper on a thread that may block.
async fn blocking<T: Send + 'static>(
    keeper: &Arc<dyn Keeper>,
    ask: impl FnOnce(&dyn Keeper) -> Result<T, KeeperError> + Send + 'static,
) -> Result<T, VaultError> {
    let keeper = keeper.clone();
    let asked = tokio::task::spawn_blocking(move || ask(&*keeper)).await;
    Ok(asked.map_err(VaultError::Bug)??)
}
