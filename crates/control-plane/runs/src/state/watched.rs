//! Runs whose servers are watched.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use narthex_model::RunId;
use tokio::sync::watch;

/// The runs of this process whose servers are watched: each watcher is active until its run is
/// removed from here.
#[derive(Debug, Default)]
pub(crate) struct WatchedRuns {
    held: Mutex<HashMap<RunId, watch::Sender<()>>>,
}

impl WatchedRuns {
    /// The sender of each run; the watchers of the run are active while it exists.
    pub(crate) fn held(&self) -> MutexGuard<'_, HashMap<RunId, watch::Sender<()>>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
