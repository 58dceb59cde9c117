//! What directories have, remembered for a moment: each path that a program names is looked up
//! first.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use narthex_mount::{Process, VfsError};
use tokio::time::Instant;

/// How long a list is believed. What it leads to is checked by each open and call anyhow.
pub(crate) const BELIEVED_FOR: Duration = Duration::from_secs(1);

/// What a directory has.
#[derive(Debug)]
pub(crate) struct Listed {
    /// Names, and whether each is a directory; in order.
    pub(crate) entries: Vec<(String, bool)>,
    names: HashMap<String, bool>,
    since: Instant,
}

impl Listed {
    /// Whether something of this name is there, and whether that is a directory.
    pub(crate) fn get(&self, name: &str) -> Option<bool> {
        self.names.get(name).copied()
    }
}

/// A list that is being fetched, or was.
type Slot = Arc<tokio::sync::Mutex<Option<Arc<Listed>>>>;

/// The lists of one process.
#[derive(Debug)]
pub(crate) struct Lists {
    process: Arc<Process>,
    slots: Mutex<HashMap<String, Slot>>,
}

impl Lists {
    pub(crate) fn new(process: Arc<Process>) -> Self {
        Self { process, slots: Mutex::default() }
    }

    /// What a directory was found to have a moment ago, without asking anybody.
    pub(crate) fn known(&self, path: &str) -> Option<Arc<Listed>> {
        let slot = self.slot(path);
        let listed = slot.try_lock().ok()?.clone()?;
        (listed.since.elapsed() < BELIEVED_FOR).then_some(listed)
    }

    /// What a directory has. Those who ask at once wait for one answer.
    pub(crate) async fn fetch(&self, path: &str, is_anew: bool) -> Result<Arc<Listed>, VfsError> {
        let slot = self.slot(path);
        let asked = Instant::now();
        let mut kept = slot.lock().await;
        let is_fresh = |listed: &&Arc<Listed>| match is_anew {
            true => listed.since >= asked,
            false => listed.since.elapsed() < BELIEVED_FOR,
        };
        if let Some(listed) = kept.as_ref().filter(is_fresh) {
            return Ok(listed.clone());
        }
        *kept = None;
        let entries = self.process.list(path).await?;
        let entries: Vec<_> = entries.into_iter().map(|e| (e.name, e.is_directory)).collect();
        let names = entries.iter().cloned().collect();
        let listed = Arc::new(Listed { entries, names, since: Instant::now() });
        *kept = Some(listed.clone());
        Ok(listed)
    }

    /// Directories are few: those of the mounts that the process may open.
    fn slot(&self, path: &str) -> Slot {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        match slots.get(path) {
            Some(slot) => slot.clone(),
            None => slots.entry(path.to_owned()).or_default().clone(),
        }
    }
}
