//! Costs of sessions, as the platforms that carry them out report them.

use std::time::{Duration, SystemTime};

use narthex_audit::{AuditEvent, kind};
use narthex_catalog::CostRequest;
use narthex_control::{By, Control, ControlError};
use narthex_gateway::RunView;
use narthex_model::{ErrorKind, SessionId, WorkspaceId};
use narthex_store::{Cost, CostSum, REPORTS_MAX};

use crate::{RunError, Runs};

/// The sessions whose cost a caller asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CostOf {
    /// One session.
    Session(SessionId),
    /// A session with all of its descendants.
    Tree(SessionId),
}

impl Runs {
    /// Stores a report of a session's use. A report that is sent twice counts once.
    ///
    /// # Errors
    /// When the report is faulty, there is no such session, the session has another report of this
    /// id or the most reports that it may have, or the store fails.
    pub async fn cost_report(
        &self,
        workspace: &WorkspaceId,
        id: &str,
        text: &[u8],
        by: &By,
    ) -> Result<Cost, RunError> {
        let (session, _) = self.session(workspace, id).await?;
        let session = session.id;
        let asked = CostRequest::parse(text).map_err(RunError::Unfit)?.value;
        let CostRequest { id, model, input_tokens, output_tokens, cost, currency } = asked;
        let cost = Cost { id, model, input_tokens, output_tokens, cost, currency };
        if let Some(kept) = self.cost_kept(workspace, session, &cost).await? {
            return Ok(kept);
        }
        let costs = self.store()?.costs();
        if costs.count(workspace, session).await.map_err(ControlError::Store)? >= REPORTS_MAX {
            return Err(RunError::TooManyReports(REPORTS_MAX));
        }
        let (here, by, new) = (workspace.clone(), by.clone(), cost.clone());
        let keep = async move |control: Control| {
            let store = control.catalog_store(&here).await?;
            let event = AuditEvent::new(kind::SESSION_COST_REPORTED, by.clone());
            let event = event.in_workspace(&here).of_session(session.to_text());
            let noted = control.note(event.on("session", session.to_text())).await?;
            let kept = store.costs().create(&here, session, &new, &by.id).await;
            kept.map_err(ControlError::Store)?;
            noted.done().await;
            Ok(())
        };
        match self.control().to_the_end(keep).await {
            Ok(()) => Ok(cost),
            // Another caller has stored a report of this id first.
            Err(error) if error.kind() == ErrorKind::Conflict => {
                let kept = self.cost_kept(workspace, session, &cost).await?;
                kept.ok_or(RunError::Control(error))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// The stored report with the id of `cost`, if there is one. A stored report that differs from
    /// `cost` is an error.
    async fn cost_kept(
        &self,
        workspace: &WorkspaceId,
        session: SessionId,
        cost: &Cost,
    ) -> Result<Option<Cost>, RunError> {
        let kept = self.store()?.costs().find(workspace, session, &cost.id).await;
        match kept.map_err(ControlError::Store)? {
            Some(kept) if kept != *cost => Err(RunError::ReportTaken(cost.id.clone())),
            kept => Ok(kept),
        }
    }

    /// The sums of use, by model and currency.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn cost(
        &self,
        workspace: &WorkspaceId,
        of: CostOf,
    ) -> Result<Vec<CostSum>, RunError> {
        let costs = self.store()?.costs();
        let sums = match of {
            CostOf::Session(session) => costs.of_session(workspace, session).await,
            CostOf::Tree(session) => costs.of_tree(workspace, session).await,
        };
        Ok(sums.map_err(ControlError::Store)?)
    }

    /// The sums of use by the agent of a run in all its sessions, within `window` if it is given;
    /// none for a run without an agent.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn agent_cost(
        &self,
        run: &RunView,
        window: Option<Duration>,
    ) -> Result<Vec<CostSum>, RunError> {
        let Some(agent) = run.authority.actors().agent.clone() else { return Ok(Vec::new()) };
        let since = window.and_then(|window| SystemTime::now().checked_sub(window));
        let since = since.unwrap_or(SystemTime::UNIX_EPOCH);
        let sums = self.store()?.costs().of_agent(&run.workspace, agent.as_str(), since).await;
        Ok(sums.map_err(ControlError::Store)?)
    }
}
