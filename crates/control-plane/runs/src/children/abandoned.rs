//! Child sessions without an active run: the daemon notifies their parents, and ends the children
//! whose time is over. It also ends sessions that remain below a cancelled session.

use std::{collections::BTreeSet, time::SystemTime};

use narthex_control::{By, ControlError};
use narthex_events::EventKind;
use narthex_model::{AgentType, RunEnd, RunId, SessionId, WorkspaceId};
use narthex_store::{LeftChild, StillChild};
use serde_json::{Value, json};

use crate::{RunError, RunStatus, Runs, end::Ending};

/// Number of rows read at a time.
const BATCH: u32 = 500;

impl Runs {
    /// Ends children without an active run whose time is over. Notifies the parent of each other
    /// child without an active run, once for each last run of the child. Children that resume by
    /// themselves are skipped: they wait for their own children.
    pub(crate) async fn check_abandoned(
        &self,
        workspace: &WorkspaceId,
        now: SystemTime,
    ) -> Result<(), RunError> {
        let mut after = String::new();
        loop {
            let page = self.store()?.sessions().still(workspace, &after, BATCH).await;
            let page = page.map_err(ControlError::Store)?;
            let Some(last) = page.last() else { return Ok(()) };
            after = last.session.to_text();
            for child in &page {
                if let Err(error) = self.check_one_abandoned(workspace, child, now).await {
                    let session = child.session;
                    tracing::warn!(
                        session.id = %session,
                        "a stopped child session could not be reported to its parent session: \
                         {error}"
                    );
                }
            }
        }
    }

    async fn check_one_abandoned(
        &self,
        workspace: &WorkspaceId,
        child: &StillChild,
        now: SystemTime,
    ) -> Result<(), RunError> {
        if child.expires_at <= now {
            // A caller may have resumed the session just now.
            return self.expire_session(workspace, child.session, None).await.map(drop);
        }
        let agent_type = self.type_of((workspace, &child.agent), child.agent_type).await?;
        if agent_type == AgentType::Orchestrator && child.children > 0 {
            return Ok(());
        }
        let payload = json!({
            "kind": "state_change",
            "child_session_id": child.session.to_text(),
            "child_agent_id": child.agent,
            "status": RunStatus::Running.as_str(),
            "run_id": child.run.to_text(),
            "run_status": child.how.as_str(),
        });
        let id = format!("still-{}-{}", child.session, child.run);
        let owed = self.owed_for(workspace, child.session, still_prompt(child)).await;
        let Some(owed) = owed else { return Ok(()) };
        self.wake(workspace, child.above, payload, (&id, owed)).await
    }

    /// Ends all active sessions below sessions that their parents have cancelled: no parent remains
    /// that could end them.
    pub(crate) async fn cancel_left(&self, workspace: &WorkspaceId) -> Result<(), RunError> {
        let mut tried = BTreeSet::new();
        loop {
            let left = self.store()?.sessions().left(workspace, BATCH).await;
            let mut left = left.map_err(ControlError::Store)?;
            // A session whose end failed is tried again at the next check.
            left.retain(|child| tried.insert(child.session));
            if left.is_empty() {
                return Ok(());
            }
            for LeftChild { session, above, run } in left {
                let reason = Some("the session that started this one was cancelled");
                let payload = cancelled_by((Some(above), run), reason);
                let first = Some((EventKind::SessionCancelledByParent, payload, None));
                let ending = Ending { by: By::system(), how: RunEnd::Cancelled, first };
                if let Err(error) = self.end_session(workspace, session, ending).await {
                    tracing::warn!(
                        session.id = %session,
                        "a session below a cancelled one could not be ended: {error}"
                    );
                }
            }
        }
    }
}

/// The payload of the event of a session that its parent has cancelled.
pub(crate) fn cancelled_by(
    (above, run): (Option<SessionId>, RunId),
    reason: Option<&str>,
) -> Value {
    json!({
        "cancelled_by_parent": true,
        "parent_session_id": above.map(SessionId::to_text),
        "parent_run_id": run.to_text(),
        "reason": reason,
    })
}

fn still_prompt(child: &StillChild) -> String {
    format!(
        "The session {} of the agent `{}`, which you have started, has no active run: its run has \
         ended ({}), but the session has not. `read_child_output` gives what it did, \
         `cancel_session` ends it.",
        child.session,
        child.agent,
        child.how.as_str()
    )
}
