//! Rows and keys in memory, which outlive a vault and can fail at any step.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard},
    time::SystemTime,
};

use narthex_model::{
    ErrorKind, KeyId, SealedSecret, Secret, SecretName, SecretReference, SecretSummary,
    SecretVersion, VersionSummary, WorkspaceId,
};
use narthex_vault::{
    Head, Keeper, KeeperError, KeyRing, MasterKey, Put, RowsError, RowsResult, SealedBackend,
    SealedRows, Vault, VaultError,
};

type Name = (WorkspaceId, SecretName);

/// The state of the disk. Clones are the same one.
#[derive(Debug, Clone, Default)]
pub(crate) struct World(Arc<Mutex<Disk>>);

#[derive(Debug, Default)]
pub(crate) struct Disk {
    pub(crate) names: BTreeMap<Name, SecretVersion>,
    pub(crate) rows: BTreeMap<(Name, SecretVersion), SealedSecret>,
    pub(crate) ring: Option<KeyRing>,
    /// Number of steps that work before the machine stops.
    pub(crate) fuse: Option<u32>,
    /// True if the step at which it stops is still done.
    pub(crate) is_last_done: bool,
    /// True if the keys are given from outside, so that narthex may not change them.
    pub(crate) is_given: bool,
    /// Another process's work before the next batch is read.
    pub(crate) before_batch: Option<Work>,
}

/// Another process's change to the disk.
pub(crate) struct Work(pub(crate) Box<dyn FnOnce(&mut Disk) + Send>);

impl std::fmt::Debug for Work {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Work(…)")
    }
}

impl Disk {
    /// Returns if one more step is done, and if its caller gets the result. Once the machine has
    /// stopped, no step is done.
    fn step(&mut self) -> (bool, bool) {
        match &mut self.fuse {
            None => (true, true),
            Some(0) => (std::mem::take(&mut self.is_last_done), false),
            Some(left) => {
                *left -= 1;
                (true, true)
            }
        }
    }

    /// Checks that the stored ring opens every row, which must hold at every moment.
    fn check(&self) {
        for row in self.rows.values() {
            let ring = self.ring.as_ref().unwrap();
            assert!(ring.get(&row.key).is_some(), "nothing opens {row:?}");
        }
    }
}

impl World {
    pub(crate) fn disk(&self) -> MutexGuard<'_, Disk> {
        self.0.lock().unwrap()
    }

    /// A vault as a daemon has it after its start.
    pub(crate) async fn start(&self) -> Result<Vault, VaultError> {
        let world = Arc::new(self.clone());
        Ok(Vault::new(Arc::new(SealedBackend::start(world.clone(), world).await?)))
    }

    fn change<T: Default>(&self, change: impl FnOnce(&mut Disk) -> T) -> Result<T, RowsError> {
        let changed = self.step(change);
        self.disk().check();
        changed
    }

    fn step<T: Default>(&self, work: impl FnOnce(&mut Disk) -> T) -> Result<T, RowsError> {
        let mut disk = self.disk();
        let (is_done, is_told) = disk.step();
        let done = if is_done { work(&mut disk) } else { T::default() };
        if is_told { Ok(done) } else { Err(stopped()) }
    }

    fn keep(&self, ring: &KeyRing) -> Result<(), KeeperError> {
        let kept = self.change(|disk| disk.ring = Some(ring.clone()));
        kept.map_err(|error| KeeperError::File {
            path: "master.key".into(),
            source: std::io::Error::other(error),
        })
    }
}

fn stopped() -> RowsError {
    RowsError { kind: ErrorKind::Unavailable, source: "the machine has stopped".into() }
}

impl SealedRows for World {
    fn head<'a>(
        &'a self,
        workspace: &'a WorkspaceId,
        name: &'a SecretName,
    ) -> RowsResult<'a, Option<Head>> {
        Box::pin(async move {
            let key = (workspace.clone(), name.clone());
            self.change(|disk| {
                let last = *disk.names.get(&key)?;
                let is_set = disk.rows.keys().any(|(name, _)| *name == key);
                Some(Head { last, is_set })
            })
        })
    }

    fn add<'a>(
        &'a self,
        sealed: &'a SealedSecret,
        _by: &'a str,
        kept: u64,
    ) -> RowsResult<'a, bool> {
        Box::pin(async move {
            tokio::task::yield_now().await;
            if sealed.workspace.as_str() == "nowhere" {
                let source = "no such workspace".into();
                return Err(RowsError { kind: ErrorKind::NotFound, source });
            }
            let name = (sealed.workspace.clone(), sealed.name.clone());
            self.change(|disk| {
                let last = disk.names.get(&name).map_or(0, |last| last.get());
                if sealed.version.get() != last + 1 {
                    return false;
                }
                disk.names.insert(name.clone(), sealed.version);
                disk.rows.insert((name.clone(), sealed.version), sealed.clone());
                let pruned = sealed.version.get().saturating_sub(kept);
                disk.rows.retain(|(of, version), _| *of != name || version.get() > pruned);
                true
            })
        })
    }

    fn find<'a>(
        &'a self,
        workspace: &'a WorkspaceId,
        name: &'a SecretName,
        version: Option<SecretVersion>,
    ) -> RowsResult<'a, Option<SealedSecret>> {
        Box::pin(async move {
            let name = (workspace.clone(), name.clone());
            let found = self.change(|disk| {
                let mut rows = disk.rows.iter().filter(|((of, _), _)| *of == name);
                let row = match version {
                    Some(version) => rows.find(|((_, of), _)| *of == version),
                    None => rows.next_back(),
                };
                row.map(|(_, row)| row.clone())
            });
            // Other tasks may run between reading and opening a row.
            tokio::task::yield_now().await;
            found
        })
    }

    fn clear<'a>(
        &'a self,
        workspace: &'a WorkspaceId,
        name: &'a SecretName,
        _by: &'a str,
    ) -> RowsResult<'a, bool> {
        Box::pin(async move {
            let name = (workspace.clone(), name.clone());
            self.change(|disk| {
                let before = disk.rows.len();
                disk.rows.retain(|(of, _), _| *of != name);
                disk.rows.len() < before
            })
        })
    }

    fn list<'a>(
        &'a self,
        workspace: &'a WorkspaceId,
    ) -> RowsResult<'a, Option<Vec<SecretSummary>>> {
        Box::pin(async move {
            if workspace.as_str() == "nowhere" {
                return Ok(None);
            }
            let at = SystemTime::UNIX_EPOCH;
            let disk = self.disk();
            let names = disk.names.keys().filter(|(of, _)| of == workspace);
            let summary = |name: &Name| {
                let rows = disk.rows.iter().filter(|((of, _), _)| of == name);
                let version = |((_, version), row): (&(_, SecretVersion), &SealedSecret)| {
                    VersionSummary { version: *version, created_at: at, key: Some(row.key.clone()) }
                };
                SecretSummary {
                    name: name.1.clone(),
                    created_at: at,
                    updated_at: at,
                    updated_by: "admin".to_owned(),
                    versions: rows.map(version).collect(),
                }
            };
            Ok(Some(names.map(summary).collect()))
        })
    }

    fn keys(&self) -> RowsResult<'_, BTreeMap<KeyId, u64>> {
        Box::pin(async move {
            self.step(|disk| {
                let mut keys = BTreeMap::new();
                for row in disk.rows.values() {
                    *keys.entry(row.key.clone()).or_default() += 1;
                }
                keys
            })
        })
    }

    fn sealed_otherwise<'a>(
        &'a self,
        key: &'a KeyId,
        after: Option<&'a SealedSecret>,
        limit: u32,
    ) -> RowsResult<'a, Vec<SealedSecret>> {
        Box::pin(async move {
            let place = after.map(|row| ((row.workspace.clone(), row.name.clone()), row.version));
            let read = self.change(|disk| {
                if let Some(work) = disk.before_batch.take() {
                    (work.0)(disk);
                }
                let rows = disk.rows.iter().filter(|(at, row)| {
                    row.key != *key && place.as_ref().is_none_or(|place| *at > place)
                });
                rows.take(limit as usize).map(|(_, row)| row.clone()).collect()
            });
            tokio::task::yield_now().await;
            read
        })
    }

    fn replace<'a>(&'a self, old: &'a SealedSecret, new: &'a SealedSecret) -> RowsResult<'a, bool> {
        Box::pin(async move {
            tokio::task::yield_now().await;
            self.change(|disk| match disk.rows.values_mut().find(|row| *row == old) {
                Some(row) => {
                    row.clone_from(new);
                    true
                }
                None => false,
            })
        })
    }
}

impl Keeper for World {
    fn place(&self) -> String {
        "the key file of the test".to_owned()
    }

    fn is_ours(&self) -> bool {
        !self.disk().is_given
    }

    fn load(&self) -> Result<Option<KeyRing>, KeeperError> {
        Ok(self.disk().ring.clone())
    }

    fn create(&self) -> Result<KeyRing, KeeperError> {
        let ring = KeyRing::new(MasterKey::generate().unwrap());
        self.keep(&ring).map(|()| ring)
    }

    fn replace(&self, ring: &KeyRing) -> Result<(), KeeperError> {
        assert!(self.is_ours(), "these keys are not to be changed");
        self.keep(ring)
    }
}

pub(crate) fn workspace(text: &str) -> WorkspaceId {
    WorkspaceId::new(text).unwrap()
}

pub(crate) fn name(text: &str) -> SecretName {
    SecretName::new(text).unwrap()
}

pub(crate) fn version(number: u64) -> SecretVersion {
    SecretVersion::new(number).unwrap()
}

/// Sets a secret in `default`; gives the version.
pub(crate) async fn put(vault: &Vault, of: &str, value: &str) -> u64 {
    let (workspace, name, value) = (WorkspaceId::default(), name(of), Secret::new(value));
    let put = Put { workspace: &workspace, name: &name, value: &value, by: "admin" };
    vault.put(put).await.unwrap().version.get()
}

/// The newest value of a secret in `default`.
pub(crate) async fn newest(vault: &Vault, of: &str) -> Result<String, VaultError> {
    let reference = SecretReference::newest(name(of));
    let opened = vault.open(&WorkspaceId::default(), &reference).await?;
    Ok(opened.value.expose().to_owned())
}

/// One value of a secret in `default`.
pub(crate) async fn pinned(vault: &Vault, of: &str, number: u64) -> Result<String, VaultError> {
    let reference = SecretReference::pinned(name(of), version(number));
    let opened = vault.open(&WorkspaceId::default(), &reference).await?;
    assert_eq!(opened.version.get(), number);
    Ok(opened.value.expose().to_owned())
}
