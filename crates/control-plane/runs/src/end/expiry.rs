//! The end of runs whose time is over.

use std::time::Duration;

use narthex_control::{By, ControlError};
use narthex_model::{RunEnd, RunId, SessionId, WorkspaceId};
use tokio::time::Instant;

use crate::{RunError, Runs, end::Ending};

/// Pause before another attempt to end a run, after the store has failed.
const END_AGAIN: Duration = Duration::from_secs(60);

impl Runs {
    /// Ends runs whose time is over, for as long as the future is polled.
    pub(crate) async fn end_in_time(&self) {
        loop {
            let id = self.shared.expiries.next().await;
            if let Err(error) = self.expire(id).await {
                tracing::warn!(run.id = %id, "a run could not be ended in time: {error}");
                // The run's time is over, even if its end cannot be stored: its token opens nothing
                // here any more.
                self.release(id).await;
                self.shared.expiries.add(Instant::now() + END_AGAIN, id);
            }
        }
    }

    async fn expire(&self, id: RunId) -> Result<(), RunError> {
        let store = self.store()?;
        let found = store.runs().find(id).await.map_err(ControlError::Store)?;
        let Some(run) = found.filter(|run| run.ended.is_none()) else {
            // Another daemon has ended the run, in the store alone.
            self.release(id).await;
            return Ok(());
        };
        let (workspace, session) = (&run.workspace, run.session);
        let of = store.sessions().find(workspace, session).await.map_err(ControlError::Store)?;
        let is_child = of.is_some_and(|of| of.parent.is_some() && of.ended_at.is_none());
        // A child's session ends with its run: nothing would ever resume it.
        if is_child && self.expire_session(workspace, session, Some(id)).await? {
            return Ok(());
        }
        self.end_stored(workspace, id, RunEnd::Expired, By::system(), None).await.map(drop)
    }

    /// Ends a session whose time is over, unless another of its runs is active. Returns `false` if
    /// one is active, or if the session had ended before.
    pub(crate) async fn expire_session(
        &self,
        workspace: &WorkspaceId,
        session: SessionId,
        besides: Option<RunId>,
    ) -> Result<bool, RunError> {
        if self.has_living_run(workspace, session, besides).await? {
            return Ok(false);
        }
        let ending = Ending { by: By::system(), how: RunEnd::Expired, first: None };
        Box::pin(self.end_session(workspace, session, ending)).await
    }
}
