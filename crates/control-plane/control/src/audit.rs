//! The audit in the control plane. Changes are noted before they are made. Recorded events are
//! moved into the store, and are read, exported and trimmed there.

mod export;
mod keeping;
mod listing;

use std::{sync::Arc, time::Duration};

use narthex_audit::{Actor, AuditEvent, KnownHead, Noted, Waiting};
use narthex_store::AuditChain;
use tokio::{runtime::Handle, sync::Mutex, task::spawn_blocking, time::sleep};

use crate::shipping::{ShipError, Shipper};

pub use self::{
    export::AuditExport,
    listing::{AuditItem, AuditPage, AuditQuery},
};
use crate::{Control, ControlError, control::Shared};

/// The actor of a change.
pub type By = Actor<'static>;

/// Shortest and longest pause before a failed move into the store is tried again.
const RETRY: Duration = Duration::from_secs(1);
const RETRY_MAX: Duration = Duration::from_secs(30);
/// Time for which events wait for others, so that one move into the store takes several. Each move
/// waits for the disk, as every change does. Readers do not wait for the time to pass.
const GATHER: Duration = Duration::from_millis(250);
/// Pause between two searches for events that are too old.
const TRIM_EVERY: Duration = Duration::from_secs(3600);

impl Control {
    /// Notes a change before it is made, and waits until the note is on the disk. The caller awaits
    /// [`Noted::done`] before its answer, which records `ok`; a note that is dropped is recorded as
    /// `failed`. Call this once it is clear that the change will be made: a refused request is no
    /// event.
    ///
    /// # Errors
    /// When the note cannot be recorded: the change must not be made then (D25).
    pub async fn note(&self, event: AuditEvent<'static>) -> Result<Noted, ControlError> {
        Ok(self.shared.audit.begin(event).await?)
    }

    /// Notes changes that are made together, as [`Control::note`] does; waits once for the disk.
    ///
    /// # Errors
    /// When the notes cannot be recorded: none of the changes must be made then (D25).
    pub(crate) async fn note_all(
        &self,
        events: Vec<AuditEvent<'static>>,
    ) -> Result<Vec<Noted>, ControlError> {
        Ok(self.shared.audit.begin_all(events).await?)
    }

    /// Moves the events recorded until now into the store, up to [`BATCHES_AWAITED`] batches.
    async fn ship(&self) -> Shipped {
        self.shared.audit.flush().await;
        ship(&self.shared).await
    }

    /// The recorded events of a workspace, or of the installation, that are missing in the store.
    /// `chains` are the chains that the store has. `None` if the store has all events.
    async fn waiting(
        &self,
        workspace: &str,
        chains: &[AuditChain],
        shipped: Shipped,
    ) -> Option<Waiting> {
        let shipper = self.shared.shipper.as_ref().filter(|_| shipped != Shipped::All)?;
        let spooled = shipper.lock().await.spooled();
        spooled.waiting(workspace, chains, shipped == Shipped::Nothing).await
    }

    /// The last events of a workspace, or of the installation, that were moved into the store from
    /// this daemon's disk.
    async fn moved(&self, workspace: &str) -> Result<Vec<KnownHead>, ShipError> {
        let Some(shipper) = &self.shared.shipper else { return Ok(Vec::new()) };
        let spooled = shipper.lock().await.spooled();
        spooled.moved(workspace).await
    }
}

/// The part of the recorded events that is in the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shipped {
    All,
    /// A part, while the rest is being moved.
    Part,
    /// No part: the events cannot be moved.
    Nothing,
}

/// Largest number of batches whose move a reader waits for.
const BATCHES_AWAITED: usize = 20;

async fn ship(shared: &Shared) -> Shipped {
    let Some(shipper) = &shared.shipper else { return Shipped::All };
    for _ in 0..BATCHES_AWAITED {
        match step_aside(shipper).await.0 {
            Ok(true) => {}
            Ok(false) => return Shipped::All,
            Err(ShipError::Contended) => return Shipped::Part,
            // The background task logs the failure and tries again.
            Err(error) => {
                tracing::debug!("events of the audit could not be moved into the store: {error}");
                return Shipped::Nothing;
            }
        }
    }
    Shipped::Part
}

/// Starts the tasks that move events into the store and remove old ones.
pub(crate) fn start(shared: &Arc<Shared>) {
    if shared.shipper.is_some() {
        shared.tasks.spawn(move_all(shared.clone()));
        shared.tasks.spawn(trim_all(shared.clone()));
    }
}

/// Moves the remaining events into the store, after all other work has ended.
pub(crate) async fn end(shared: &Shared) {
    shared.audit.flush().await;
    if ship(shared).await != Shipped::All {
        tracing::warn!(
            "some events of the audit are still on the disk; the next start moves them into the \
             store"
        );
    }
}

async fn move_all(shared: Arc<Shared>) {
    let moving = async {
        let Some(shipper) = &shared.shipper else { return };
        let grown = shipper.lock().await.grown();
        let mut pause = RETRY;
        loop {
            let (step, is_behind) = step_aside(shipper).await;
            match step {
                Ok(has_moved) => {
                    pause = RETRY;
                    if !has_moved {
                        grown.wait().await;
                    }
                    if !is_behind {
                        sleep(GATHER).await;
                    }
                }
                Err(error) => {
                    if pause == RETRY {
                        tracing::warn!(
                            "events of the audit stay on the disk until the store is back: {error}"
                        );
                    }
                    sleep(pause).await;
                    pause = (pause * 2).min(RETRY_MAX);
                }
            }
        }
    };
    tokio::select! {
        () = moving => {}
        () = shared.closing.cancelled() => {}
    }
}

/// Moves a batch on a thread for blocking work: hundreds of rows are parsed, bound and sent, for
/// which calls on a thread of the runtime would wait. Also returns true if the batch was full. A
/// move whose future is dropped ends before the next one begins, as it has the shipper's lock.
async fn step_aside(shipper: &Arc<Mutex<Shipper>>) -> (Result<bool, ShipError>, bool) {
    let mut turn = shipper.clone().lock_owned().await;
    let runtime = Handle::current();
    let stepping =
        spawn_blocking(move || runtime.block_on(async { (turn.step().await, turn.is_behind()) }));
    stepping.await.unwrap_or_else(|error| (Err(ShipError::Bug(error)), false))
}

async fn trim_all(shared: Arc<Shared>) {
    let control = Control { shared: shared.clone() };
    loop {
        tokio::select! {
            () = sleep(TRIM_EVERY) => {}
            () = shared.closing.cancelled() => return,
        }
        if let Err(error) = control.audit_trim().await {
            tracing::warn!("old events of the audit could not be removed: {error}");
        }
    }
}
