//! Outcomes of requests that were not reported to their session: the time for a decision is over,
//! or a daemon was killed between a decision and its event.

use std::time::{Duration, SystemTime};

use narthex_events::EventKind;
use narthex_store::{GrantRequestRow, GrantRequestStatus};
use tokio::time::{MissedTickBehavior, interval};

use crate::{Control, ControlError};

/// Pause between two looks.
const EVERY: Duration = Duration::from_secs(15);
/// Number of requests read together.
const TOGETHER: u32 = 100;
/// Time after a decision in which a starting daemon reports it again.
const TOLD_AGAIN: Duration = Duration::from_secs(10 * 60);

impl Control {
    /// Reports requests whose time is over, until the end; at first, those decided just before. A
    /// session hears nothing twice.
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
    /// Each session gets the status once, however many daemons run. The process also calls this by
    /// itself.
    ///
    /// # Errors
    /// When the store fails; the remaining requests are reported the next time.
    pub async fn grant_requests_expire(&self) -> Result<(), ControlError> {
        let Some(store) = self.store() else { return Ok(()) };
        let requests = store.grant_requests();
        loop {
            let overdue = requests.overdue(TOGETHER).await.map_err(ControlError::Store)?;
            for row in &overdue {
                // Sent before it is stored, so that it is not lost with a daemon.
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
