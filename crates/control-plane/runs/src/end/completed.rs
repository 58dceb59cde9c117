//! Sessions whose agents have reported that they are done. The sessions end, also if the daemon
//! stopped between the report and the end.

use std::time::{Duration, SystemTime};

use narthex_audit::{Actor, ActorKind};
use narthex_control::{By, ControlError};
use narthex_events::EventKind;
use narthex_model::RunEnd;
use narthex_store::DoneSession;

use crate::{RunError, Runs, end::Ending};

/// The message id of the event that reports a done session. A session has one such event, however
/// often its agent reports.
pub const COMPLETED: &str = "session-completed";
/// Time for which a done session may stay active: the agent that reported first gets an answer.
const ANSWERED: Duration = Duration::from_secs(30);

impl Runs {
    /// Ends sessions that were done when an earlier process stopped.
    ///
    /// # Errors
    /// When the store cannot list the sessions. A session that cannot be ended is tried again.
    pub(crate) async fn end_done_before(&self, now: SystemTime) -> Result<(), ControlError> {
        let store = self.control().needed_store()?;
        let kind = EventKind::SessionCompleted.as_str();
        let done = store.resting().done((kind, COMPLETED), now).await;
        for DoneSession { workspace, session, run } in done.map_err(ControlError::Store)? {
            let by = match run {
                Some(run) => Actor::new(ActorKind::Run, run.to_text()),
                None => By::system(),
            };
            let ending = Ending { by, how: RunEnd::Ended, first: None };
            if let Err(error) = self.end_session(&workspace, session, ending).await {
                tracing::warn!(
                    session.id = %session,
                    "a finished session could not be ended: {error}"
                );
            }
        }
        Ok(())
    }

    /// Ends sessions that are done as of this time and should have ended by then.
    ///
    /// # Errors
    /// When the store cannot list the sessions.
    pub async fn end_done(&self, now: SystemTime) -> Result<(), RunError> {
        Ok(self.end_done_before(now - ANSWERED).await?)
    }
}
