//! The session of the run of the process itself, which has no row of its own. The session is
//! created when that run first asks humans for something, so that run and humans receive its
//! events. It ends with the process.

use std::time::SystemTime;

use narthex_control::{Actor, ActorKind, By, ControlError};
use narthex_gateway::RunView;
use narthex_model::{RunEnd, SessionId};
use narthex_store::{SessionRow, StatementError};

use crate::{Runs, end::Ending, error::RunError};

impl Runs {
    /// The session that a run was created in; the run of the process itself was created in none.
    #[must_use]
    pub fn session_of(&self, run: &RunView) -> Option<SessionId> {
        run.authority.actors().session.filter(|_| !self.is_local(run))
    }

    /// True if a run belongs to a session that exists now. The call creates the session of the run
    /// of the process itself, if that run has a session id.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn has_session(&self, run: &RunView) -> Result<bool, RunError> {
        let session = run.authority.actors().session;
        let (true, Some(id)) = (self.is_local(run), session) else { return Ok(session.is_some()) };
        let begin = async || {
            let row = SessionRow {
                workspace: run.workspace.clone(),
                id,
                agent: String::new(),
                parent: None,
                depth: 0,
                sealed: String::new(),
                created_at: SystemTime::now(),
                created_by: self.own_name(),
                ended_at: None,
                how: None,
                agent_type: None,
            };
            match self.store()?.sessions().begin_alone(&row).await {
                // An earlier call has created the row, and failed after that.
                Ok(()) | Err(StatementError::Exists { .. }) => Ok(()),
                Err(error) => Err(ControlError::Store(error).into()),
            }
        };
        self.shared.process_session.get_or_try_init(begin).await.map(|()| true)
    }

    /// Ends the session that an earlier process created for its own run and has not ended.
    ///
    /// # Errors
    /// When the store fails.
    pub(crate) async fn end_earlier_session(&self) -> Result<(), ControlError> {
        let control = self.control();
        let (home, by) = (control.home().clone(), self.own_name());
        let store = control.needed_store()?;
        for id in store.sessions().live_alone(&home, &by).await.map_err(ControlError::Store)? {
            let ending = Ending { by: By::system(), how: RunEnd::Ended, first: None };
            self.end_with_runs(control, &home, id, ending).await?;
        }
        Ok(())
    }

    /// True for the session of the run of the process itself, which lasts as long as the process.
    #[must_use]
    pub fn is_own_session(&self, id: SessionId) -> bool {
        let own = self.shared.gateway.runs().get(self.shared.options.local);
        own.is_some_and(|own| own.authority.actors().session == Some(id))
    }

    fn own_name(&self) -> String {
        Actor::new(ActorKind::Run, self.shared.options.local.to_text()).id.into_owned()
    }
}
