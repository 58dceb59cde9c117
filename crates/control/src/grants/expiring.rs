//! What became of requests, for sessions that were not told yet: nobody has decided in time, or a
//! daemon was killed between a decision and its event.

use std::time::{Duration, SystemTime};

use narthex_events::EventKind;
use narthex_store::{GrantRequestRow, GrantRequestStatus};
use tokio::time::{MissedTickBehavior, interval};

use crate::{Control, ControlError};

/// How often it is looked.
const EVERY: Duration = Duration::from_secs(15);
/// How many are looked at together.
const TOGETHER: u32 = 100;
/// How long after a decision a daemon that starts tells it again.
const TOLD_AGAIN: Duration = Duration::from_secs(10 * 60);

impl Control {
    /// Tells what nobody decides in time, until the end; at first, what was decided just before.
    /// Whoever was told hears nothing twice.
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
            tracing::warn!("what was decided at last is not told again: {error}");
        }
        let mut ticks = interval(EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            if let Err(error) = self.grant_requests_expire().await {
                tracing::warn!("requests that nobody has decided are not told of: {error}");
            }
        }
    }

    /// Tells the sessions of requests that nobody has decided in time, with the status `expired`.
    /// Each is told once, by however many daemons. The process does so by itself, too.
    ///
    /// # Errors
    /// When the store fails; those that are left are told the next time.
    pub async fn grant_requests_expire(&self) -> Result<(), ControlError> {
        let Some(store) = self.store() else { return Ok(()) };
        let requests = store.grant_requests();
        loop {
            let overdue = requests.overdue(TOGETHER).await.map_err(ControlError::Store)?;
            for row in &overdue {
                // Before it is noted, so that it is not lost with a daemon.
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
