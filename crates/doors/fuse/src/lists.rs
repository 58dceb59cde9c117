//! The lists of directories, remembered for a moment: each path that a program names is looked up
//! first.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use fuser::Errno;
use narthex_vfs::Process;
use tokio::time::Instant;

use crate::{errno::errno_of, running::lock};

/// Time for which a list is believed. Each open and call checks its target anyhow.
pub(crate) const BELIEVED_FOR: Duration = Duration::from_secs(1);

/// The list of a directory.
#[derive(Debug)]
pub(crate) struct Listed {
    /// Names, and whether each is a directory; in order.
    pub(crate) entries: Vec<(String, bool)>,
    names: HashMap<String, bool>,
}

impl Listed {
    /// Returns true for a directory and false for a file of this name; `None` if the name is not
    /// listed.
    pub(crate) fn get(&self, name: &str) -> Option<bool> {
        self.names.get(name).copied()
    }
}

/// The outcome of fetching a list, and its time.
#[derive(Debug)]
struct Fetched {
    listed: Result<Arc<Listed>, Errno>,
    since: Instant,
}

/// A list that is being fetched, or was.
#[derive(Debug, Default)]
struct Slot {
    fetched: tokio::sync::Mutex<Option<Fetched>>,
    /// Since when it is being fetched, if it is.
    fetching: Mutex<Option<Instant>>,
}

impl Slot {
    fn fetching(&self) -> MutexGuard<'_, Option<Instant>> {
        lock(&self.fetching)
    }
}

/// Marks a list as being fetched for as long as the value lives.
struct Fetching<'a>(&'a Slot);

impl<'a> Fetching<'a> {
    fn of(slot: &'a Slot) -> Self {
        *slot.fetching() = Some(Instant::now());
        Self(slot)
    }
}

impl Drop for Fetching<'_> {
    fn drop(&mut self) {
        *self.0.fetching() = None;
    }
}

/// The lists of one process.
#[derive(Debug)]
pub(crate) struct Lists {
    process: Arc<Process>,
    slots: Mutex<HashMap<String, Arc<Slot>>>,
}

impl Lists {
    pub(crate) fn new(process: Arc<Process>) -> Self {
        Self { process, slots: Mutex::default() }
    }

    /// The list of a directory from a moment ago, without asking a server.
    pub(crate) fn known(&self, path: &str) -> Option<Arc<Listed>> {
        let slot = self.slot(path);
        let kept = slot.fetched.try_lock().ok()?;
        let fetched = kept.as_ref().filter(|kept| kept.since.elapsed() < BELIEVED_FOR)?;
        fetched.listed.as_ref().ok().cloned()
    }

    /// True if a list is being fetched for longer than this.
    pub(crate) fn is_late(&self, path: &str, within: Duration) -> bool {
        self.slot(path).fetching().is_some_and(|since| since.elapsed() >= within)
    }

    /// The list of a directory. Callers at the same time wait for one answer, also if that is a
    /// failure. So no caller waits for longer than one fetch takes and the one before it.
    pub(crate) async fn fetch(&self, path: &str, is_anew: bool) -> Result<Arc<Listed>, Errno> {
        let slot = self.slot(path);
        let asked = Instant::now();
        let mut kept = slot.fetched.lock().await;
        // A failure answers the callers that waited for it. A later caller fetches again.
        let is_fresh = |kept: &&Fetched| match is_anew || kept.listed.is_err() {
            true => kept.since >= asked,
            false => kept.since.elapsed() < BELIEVED_FOR,
        };
        if let Some(fetched) = kept.as_ref().filter(is_fresh) {
            return fetched.listed.clone();
        }
        *kept = None;
        let _fetching = Fetching::of(&slot);
        let listed = self.process.list(path).await.map_err(|error| errno_of(&error));
        let listed = listed.map(|entries| {
            let entries: Vec<_> = entries.into_iter().map(|e| (e.name, e.is_directory)).collect();
            let names = entries.iter().cloned().collect();
            Arc::new(Listed { entries, names })
        });
        *kept = Some(Fetched { listed: listed.clone(), since: Instant::now() });
        listed
    }

    /// Directories are few: those of the mounts that the process may open.
    fn slot(&self, path: &str) -> Arc<Slot> {
        let mut slots = lock(&self.slots);
        match slots.get(path) {
            Some(slot) => slot.clone(),
            None => slots.entry(path.to_owned()).or_default().clone(),
        }
    }
}
