//! Sessions whose agents have said that they are done: they end, also if the daemon that was told
//! so stopped before it ended them.

use std::time::{Duration, SystemTime};

use narthex_audit::{Actor, ActorKind};
use narthex_control::{By, ControlError};
use narthex_events::EventKind;
use narthex_model::RunEnd;
use narthex_store::DoneSession;

use crate::{RunError, Runs, seen::Ending};

/// The id of the event by which a session is done: it has one, whoever says it how often.
pub const COMPLETED: &str = "session-completed";
/// For how long a session may go on that is done: whoever has said so is answered first.
const ANSWERED: Duration = Duration::from_secs(30);

impl Runs {
    /// Ends sessions that were done when an earlier process stopped.
    ///
    /// # Errors
    /// When the store cannot say which. One that cannot be ended is tried again.
    pub(crate) async fn end_done_before(&self, now: SystemTime) -> Result<(), ControlError> {
        let store = self.control().store().ok_or(narthex_control::CatalogError::NoStore)?;
        let kind = EventKind::SessionCompleted.as_str();
        let done = store.resting().done((kind, COMPLETED), now).await;
        for DoneSession { workspace, session, run } in done.map_err(ControlError::Store)? {
            let by = match run {
                Some(run) => Actor::new(ActorKind::Run, run.to_text()),
                None => By::system(),
            };
            let ending = Ending { by, how: RunEnd::Ended, first: None };
            if let Err(error) = self.end_session(&workspace, session, ending).await {
                tracing::warn!(session.id = %session, "a session that is done goes on: {error}");
            }
        }
        Ok(())
    }

    /// Ends sessions that are done as of this time and should have ended by then.
    ///
    /// # Errors
    /// When the store cannot say which.
    pub async fn end_done(&self, now: SystemTime) -> Result<(), RunError> {
        Ok(self.end_done_before(now - ANSWERED).await?)
    }
}
