//! Changes the master key while secrets are in use.
//!
//! First the ring with the new key is stored durably, then new values are sealed under it, then
//! every row is sealed anew. The older keys are removed once no row needs them. At each moment the
//! stored ring opens every row, so a process may be killed anywhere. A ring with more than one key
//! makes the next rotation complete this one instead of starting another.

use narthex_model::SealedSecret;

use super::{SealedBackend, blocking};
use crate::{KeyRing, MasterKey, VaultError, backend::Rotation, seal::Place};

/// Number of rows per read.
const BATCH: u32 = 64;

/// The result of one pass over all rows.
#[derive(Debug, Default)]
struct Pass {
    resealed: u64,
    /// Number of rows that do not open, and the first of them.
    stuck: u64,
    first_stuck: Option<String>,
}

impl SealedBackend {
    pub(super) async fn rotate(&self) -> Result<Rotation, VaultError> {
        let Ok(_alone) = self.rotating.try_lock() else { return Err(VaultError::RotationRuns) };
        let is_resumed = self.begin().await?;
        let mut resealed = 0;
        loop {
            let pass = self.reseal_all().await?;
            resealed += pass.resealed;
            if let Some(first) = pass.first_stuck {
                return Err(VaultError::Stuck { count: pass.stuck, first });
            }
            // Once more if another process has sealed a value under an older key meanwhile.
            if let Some(ended) = self.end().await? {
                return Ok(Rotation { is_resumed, resealed, ..ended });
            }
        }
    }

    /// Puts a new key in front, unless a new one is there already with older ones behind it.
    async fn begin(&self) -> Result<bool, VaultError> {
        // Once this is held, all that was being sealed under the key so far is stored.
        let mut ring = self.ring.write().await;
        if ring.older().next().is_some() {
            return Ok(self.keeper.is_ours());
        }
        if !self.keeper.is_ours() {
            return Err(VaultError::NoNewKey { place: self.keeper.place() });
        }
        let key = MasterKey::generate().map_err(VaultError::Randomness)?;
        let new = ring.with(key).map_err(VaultError::Ring)?;
        self.keep(&new).await?;
        *ring = new;
        Ok(false)
    }

    async fn reseal_all(&self) -> Result<Pass, VaultError> {
        let mut pass = Pass::default();
        let mut last: Option<SealedSecret> = None;
        loop {
            let current = self.ring.read().await.current().id().clone();
            let batch = self.rows.sealed_otherwise(&current, last.as_ref(), BATCH).await?;
            if batch.is_empty() {
                return Ok(pass);
            }
            for row in &batch {
                match self.reseal(row).await {
                    Ok(is_done) => pass.resealed += u64::from(is_done),
                    Err(VaultError::Damaged { workspace, name, version }) => {
                        let stuck = || format!("version {version} of `{name}` in `{workspace}`");
                        pass.stuck += 1;
                        pass.first_stuck.get_or_insert_with(stuck);
                    }
                    Err(error) => return Err(error),
                }
            }
            last = batch.into_iter().next_back();
        }
    }

    /// Returns `false` if another process cleared the row or sealed it anew meanwhile.
    async fn reseal(&self, row: &SealedSecret) -> Result<bool, VaultError> {
        let ring = self.ring.read().await;
        let value = self.open_row(&ring, row)?.value;
        let new = Place::of(row).seal(ring.current(), &value).map_err(VaultError::Randomness)?;
        Ok(self.rows.replace(row, &new).await?)
    }

    /// Forgets the older keys; `None` if some row still needs one.
    async fn end(&self) -> Result<Option<Rotation>, VaultError> {
        // While this is held, nothing is sealed, and nothing is between being read and open.
        let mut ring = self.ring.write().await;
        let key = ring.current().id().clone();
        if self.rows.keys().await?.keys().any(|in_use| *in_use != key) {
            return Ok(None);
        }
        let older = ring.older().map(|older| older.id().clone()).collect();
        let done = Rotation {
            key,
            is_resumed: false,
            resealed: 0,
            dropped: Vec::new(),
            unused: Vec::new(),
        };
        if !self.keeper.is_ours() {
            return Ok(Some(Rotation { unused: older, ..done }));
        }
        let new = ring.without_older();
        self.keep(&new).await?;
        *ring = new;
        Ok(Some(Rotation { dropped: older, ..done }))
    }

    async fn keep(&self, ring: &KeyRing) -> Result<(), VaultError> {
        let ring = ring.clone();
        blocking(&self.keeper, move |keeper| keeper.replace(&ring)).await
    }
}
