//! Reports outcomes of grant requests that their sessions have not received: the time for a
//! decision is over, or a daemon was killed between a decision and its event.

use std::time::{Duration, SystemTime};

use narthex_events::EventKind;
use narthex_store::{GrantRequestRow, GrantRequestStatus};
use tokio::time::{MissedTickBehavior, interval};

use crate::{Control, ControlError};

/// Pause between two searches for expired requests.
const EVERY: Duration = Duration::from_secs(15);
/// Number of requests in one reading.
const TOGETHER: u32 = 100;
/// Age of a decision up to which a starting daemon sends it again.
const TOLD_AGAIN: Duration = Duration::from_secs(10 * 60);

impl Control {
    /// Reports expired requests, until the daemon stops. First sends recent decisions again. A
    /// session receives each outcome once.
    pub(crate) fn follow_requests(&self) {
        if self.store().is_none() {
            return;
        }
        let (telling, closing) = (self.clone(), self.shared.closing.clone());
        self.shared.tasks.spawn(async move {
            closing.run_until_cancelled(Box::pin(telling.tell_of_requests())).await;
        });
    }

    async fn tell_of_requests(self) {
        if let Err(error) = self.tell_decisions_again().await {
            tracing::warn!("recent decisions could not be sent again: {error}");
        }
        let mut ticks = interval(EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            if let Err(error) = self.grant_requests_expire().await {
                tracing::warn!("expired grant requests could not be reported: {error}");
            }
        }
    }

    /// Sends the status `expired` to the sessions of requests whose time for a decision is over.
    /// Each session receives the status once, however many daemons run. The daemon calls this at
    /// intervals.
    ///
    /// # Errors
    /// When the store fails; the remaining requests are reported the next time.
    pub async fn grant_requests_expire(&self) -> Result<(), ControlError> {
        let Some(store) = self.store() else { return Ok(()) };
        let requests = store.grant_requests();
        loop {
            let overdue = requests.overdue(TOGETHER).await.map_err(ControlError::Store)?;
            for row in &overdue {
                // Sent before the status is stored, so that it is not lost if the daemon is killed
                // in between.
                self.tell_session(EventKind::PermissionDenied, row, None).await;
                requests.expire(row).await.map_err(ControlError::Store)?;
            }
            if overdue.is_empty() {
                return Ok(());
            }
        }
    }

    async fn tell_decisions_again(&self) -> Result<(), ControlError> {
        let Some(store) = self.store() else { return Ok(()) };
        let since = SystemTime::now() - TOLD_AGAIN;
        let decided = store.grant_requests().decided_since(since, TOGETHER).await;
        for row in decided.map_err(ControlError::Store)? {
            let GrantRequestRow { workspace, status, grant, .. } = &row;
            match (status, grant) {
                (GrantRequestStatus::Approved, Some(id)) => {
                    let found = store.grants().find(workspace, *id).await;
                    if let Some(granted) = found.map_err(ControlError::Store)? {
                        let kind = EventKind::PermissionGranted;
                        self.tell_session(kind, &row, Some(&granted.grant)).await;
                    }
                }
                _ => self.tell_session(EventKind::PermissionDenied, &row, None).await,
            }
        }
        Ok(())
    }
}
