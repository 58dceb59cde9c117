//! The keys of a sealed file: asked of their keeper once, and then in memory.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use narthex_vault::{Keeper, KeeperError, KeyRing};

/// The keys of a file. Methods may block: a keychain may ask its user for a password.
#[derive(Debug)]
pub(super) struct Keys {
    keeper: Arc<dyn Keeper>,
    ring: OnceLock<KeyRing>,
    /// Locked while the keeper is asked.
    asking: Mutex<()>,
}

impl Keys {
    pub(super) fn of(keeper: Arc<dyn Keeper>) -> Self {
        Self { keeper, ring: OnceLock::new(), asking: Mutex::default() }
    }

    /// The place of the keys, for messages.
    pub(super) fn place(&self) -> String {
        self.keeper.place()
    }

    /// The keys; `None` if there are none yet.
    ///
    /// # Errors
    /// When the keeper cannot be used.
    pub(super) fn known(&self) -> Result<Option<&KeyRing>, KeeperError> {
        if let Some(ring) = self.ring.get() {
            return Ok(Some(ring));
        }
        let _alone = self.asking.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(ring) = self.ring.get() {
            return Ok(Some(ring));
        }
        let loaded = self.keeper.load()?;
        Ok(loaded.map(|ring| self.ring.get_or_init(|| ring)))
    }

    /// The keys, which are made now if there are none. Other processes must not do so meanwhile.
    ///
    /// # Errors
    /// When the keeper cannot be used, or stores no key.
    pub(super) fn known_or_new(&self) -> Result<&KeyRing, KeeperError> {
        if let Some(ring) = self.known()? {
            return Ok(ring);
        }
        let made = self.keeper.create()?;
        Ok(self.ring.get_or_init(|| made))
    }
}
