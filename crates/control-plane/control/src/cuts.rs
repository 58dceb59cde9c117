//! Cuts that end servers of active runs at once (D10), at all daemons on one store.
//!
//! A cut is a row of the store, written with the change that causes it. Each daemon reads new rows
//! every [`crate::live::POLL`] and before it mounts a server. A daemon that could not reach the
//! store reads the missed rows as soon as it can: rows are numbered, and no clock decides which of
//! them count.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use narthex_model::{SecretName, WorkspaceId};
use narthex_registry::{ClearedSecret, CutReason, MountIdentity};
use narthex_store::{Cut, Store};
use tokio::sync::Mutex;

use crate::live::Polls;
use crate::{
    Control, ControlError,
    control::Shared,
    keys::{secret_key, server_key},
};

/// Cuts that this daemon has made or read.
#[derive(Debug)]
pub(crate) struct Cuts {
    /// Number of cuts that this daemon has applied.
    count: AtomicU64,
    /// The number of the last cut of the store that this daemon knows.
    last: Mutex<i64>,
}

impl Cuts {
    /// Reads the number of the last cut. Earlier cuts do not matter, since nothing is mounted here
    /// yet.
    pub(crate) async fn load(store: Option<&Store>) -> Result<Self, ControlError> {
        let last = match store {
            Some(store) => store.cuts().last().await.map_err(ControlError::Store)?,
            None => 0,
        };
        Ok(Self { count: AtomicU64::new(0), last: Mutex::new(last) })
    }
}

impl Control {
    /// Ends all mounts of a server or secret in runs of this daemon, at once. The caller must have
    /// removed the server or secret before.
    pub(crate) fn cut(&self, workspace: &WorkspaceId, cut: &Cut) {
        self.shared.cuts.count.fetch_add(1, Ordering::AcqRel);
        let registry = &self.shared.registry;
        match cut {
            Cut::Server(id) => {
                let key = server_key(workspace, id);
                let is_meant = |identity: &MountIdentity| identity.server.as_ref() == Some(&key);
                registry.cut(&CutReason::SwitchedOff, is_meant);
            }
            Cut::Secret(name, last) => {
                let key = secret_key(workspace, name);
                let is_meant = |identity: &MountIdentity| {
                    let mut held = identity.secrets.iter();
                    held.any(|(held, version)| *held == key && version <= last)
                };
                let secret = ClearedSecret {
                    workspace: workspace.as_str().into(),
                    name: name.as_str().into(),
                    is_set_again: false,
                };
                registry.cut(&CutReason::SecretCleared(secret), is_meant);
            }
        }
    }

    /// Updates the servers that were cut when this secret was cleared: they now report that it is
    /// set again.
    pub(crate) fn secret_set_again(&self, workspace: &WorkspaceId, name: &SecretName) {
        let key = secret_key(workspace, name);
        let is_meant =
            |identity: &MountIdentity| identity.secrets.iter().any(|(held, _)| *held == key);
        self.shared.registry.secret_set_again(is_meant);
    }

    /// A number that changes with each cut.
    pub fn cuts(&self) -> u64 {
        self.shared.cuts.count.load(Ordering::Acquire)
    }

    /// Applies the cuts that other daemons on the store have made since the last reading. They do
    /// not affect mounts made after this call.
    ///
    /// # Errors
    /// When the store fails: the next reading finds the missed cuts.
    pub async fn look_at_cuts(&self) -> Result<(), ControlError> {
        let Some(store) = &self.shared.store else { return Ok(()) };
        let mut last = self.shared.cuts.last.lock().await;
        let changes = store.cuts().since(*last).await.map_err(ControlError::Store)?;
        for (workspace, cut) in &changes.cuts {
            self.cut(workspace, cut);
        }
        *last = changes.last;
        drop(last);
        Ok(())
    }
}

/// Reads new cuts at each poll, until the daemon stops.
pub(crate) async fn follow(shared: Arc<Shared>) {
    let control = Control { shared: shared.clone() };
    let mut polls = Polls::until(shared.closing.clone());
    while polls.next().await {
        if let Err(error) = control.look_at_cuts().await {
            tracing::warn!("changes of servers and secrets cannot be read from the store: {error}");
        }
    }
}
