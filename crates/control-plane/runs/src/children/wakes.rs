//! Wakes of orchestrators by the platform: a wake is an event in the orchestrator's session,
//! without a driver (X-E88). If the session has no active run, some wakes begin one.

use std::time::{Duration, SystemTime};

use narthex_catalog::Agent;
use narthex_control::ControlError;
use narthex_events::{Along, EventKind, EventPlace};
use narthex_model::{AgentName, AgentType, CatalogKind, RunEnd, SessionId, WorkspaceId};
use narthex_store::{BeatingSession, NewRest, QuietChild, RunFilter, SessionRow};
use serde_json::{Value, json};

use crate::{RunError, RunStatus, Runs};

/// Number of rows read at a time.
const BATCH: u32 = 500;
/// Minutes of silence after which the watchdog stops and checkups begin.
const LADDER_END: u64 = 60;
/// Minutes without a platform after which the parent of an unclaimed child is asked to check it.
const UNCLAIMED: u64 = 10;

impl Runs {
    /// Asks the parent of a child to check the child: once an hour after the watchdog's last step,
    /// and once when no platform carries the child out. Asks also once for each message that the
    /// child has not acknowledged after all deliveries.
    pub(crate) async fn check_up(
        &self,
        workspace: &WorkspaceId,
        child: &QuietChild,
        (now, watched): (SystemTime, Duration),
    ) -> Result<(), RunError> {
        let (since, silent) = (child.since(), watched.as_secs() / 60);
        let own = child.session;
        let mut found = Vec::new();
        if child.is_waiting(now) {
            if silent >= UNCLAIMED {
                let id = format!("checkup-{own}-unclaimed-{}", child.run);
                found.push((id, json!({ "reason": "unclaimed", "run_id": child.run.to_text() })));
            }
        } else if silent >= 2 * LADDER_END {
            let hours = silent / 60;
            let since = since.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
            let id = format!("checkup-{own}-{}-{hours}", since.as_millis());
            found.push((id, json!({ "reason": "silent", "silent_minutes": hours * 60 })));
        }
        if let Some(seq) = child.unread {
            let id = format!("checkup-{own}-unread-{seq}");
            found.push((id, json!({ "reason": "unread", "sequence": seq })));
        }
        for (id, mut payload) in found {
            payload["kind"] = json!("checkup");
            payload["child_session_id"] = json!(own.to_text());
            payload["child_agent_id"] = json!(child.agent);
            // A wake that is sent without the data for resuming its session would never be sent
            // again.
            let Some(owed) = self.owed_for(workspace, own, checkup_prompt(child)).await else {
                continue;
            };
            self.wake(workspace, child.above, payload, (&id, owed)).await?;
        }
        Ok(())
    }

    /// Wakes the orchestrators of a workspace whose agents have a heartbeat, after that time
    /// without events.
    pub(crate) async fn beat(
        &self,
        workspace: &WorkspaceId,
        now: SystemTime,
    ) -> Result<(), RunError> {
        let mut after = String::new();
        loop {
            let page = self.store()?.sessions().beating(workspace, &after, (now, BATCH)).await;
            let page = page.map_err(ControlError::Store)?;
            let Some(last) = page.last() else { return Ok(()) };
            after = last.session.to_text();
            for row in &page {
                if let Err(error) = self.beat_of(workspace, row, now).await {
                    tracing::warn!(
                        session.id = %row.session,
                        "the heartbeat of a session failed: {error}"
                    );
                }
            }
        }
    }

    async fn beat_of(
        &self,
        workspace: &WorkspaceId,
        row: &BeatingSession,
        now: SystemTime,
    ) -> Result<(), RunError> {
        let quiet = now.duration_since(row.last_at).unwrap_or_default().as_secs() / 60;
        let is_due = heartbeat(row).is_some_and(|minutes| quiet >= u64::from(minutes));
        // While a run of the session waits for a claim, no agent would receive the wake.
        if !is_due || row.waiting > 0 || self.is_at_work(workspace, row.session).await? {
            return Ok(());
        }
        let resting_for = match row.runs {
            0 => {
                let child = self.store()?.sessions().youngest_child(workspace, row.session).await;
                let Some(child) = child.map_err(ControlError::Store)? else { return Ok(()) };
                Some(child)
            }
            _ => None,
        };
        let since = row.last_at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let id = format!("heartbeat-{}", since.as_millis());
        let payload = json!({ "kind": "heartbeat", "quiet_minutes": quiet });
        let prompt = format!(
            "Nothing has happened in this session for {quiet} minutes, so this is its heartbeat: \
             check the sessions that you have started. `read_child_output` gives what each did."
        );
        let owed = match resting_for {
            Some(child) => self.owed_for(workspace, child, prompt).await,
            None => Some(None),
        };
        let Some(owed) = owed else { return Ok(()) };
        self.wake(workspace, row.session, payload, (&id, owed)).await
    }

    /// True if a run of a session was used just now, in this process.
    async fn is_at_work(
        &self,
        workspace: &WorkspaceId,
        session: SessionId,
    ) -> Result<bool, RunError> {
        let living = RunFilter { status: Some(None), ..RunFilter::of_session(session) };
        let living = self.store()?.runs().all(workspace, living).await;
        let runs = self.shared.gateway.runs();
        let is_used = |id| runs.get(id).is_some_and(|view| view.is_watched());
        Ok(living.map_err(ControlError::Store)?.iter().any(|row| is_used(row.id)))
    }

    /// The data for resuming the parent session of a child, if the parent session has no active
    /// run. A failure is logged and gives `None`: then no wake is sent either, and the next check
    /// tries again.
    pub(crate) async fn owed_for(
        &self,
        workspace: &WorkspaceId,
        child: SessionId,
        prompt: String,
    ) -> Option<Option<NewRest>> {
        let owed = async {
            let found = self.store()?.sessions().find(workspace, child).await;
            match found.map_err(ControlError::Store)? {
                Some(child) => self.owed_above(&child, prompt).await,
                None => Ok(None),
            }
        };
        let failed = |error: &RunError| {
            tracing::warn!(
                session.id = %child,
                "the parent session could not be resumed yet: {error}"
            );
        };
        owed.await.inspect_err(failed).ok()
    }

    /// Sends an orchestrator a wake (X-E88), once for each message id, and stores with the wake the
    /// data for resuming the session. Sessions of other agents get no wakes.
    pub(crate) async fn wake(
        &self,
        workspace: &WorkspaceId,
        session: SessionId,
        mut payload: Value,
        (message_id, owed): (&str, Option<NewRest>),
    ) -> Result<(), RunError> {
        let found = self.store()?.sessions().find(workspace, session).await;
        let Some(above) = found.map_err(ControlError::Store)? else { return Ok(()) };
        let agent_type = self.type_of((workspace, &above.agent), above.agent_type).await?;
        if above.ended_at.is_some() || agent_type != AgentType::Orchestrator {
            return Ok(());
        }
        let Some(events) = self.control().events() else { return Ok(()) };
        payload["source"] = json!("platform");
        let place = EventPlace { workspace: workspace.clone(), session, run: None };
        let (kind, message_id) = (EventKind::SessionWake, Some(message_id));
        let along = Along { message_id, owed: owed.as_ref(), ..Along::default() };
        match events.tell(&place, kind, &payload, along).await {
            Ok(told) if told.is_new && owed.is_some() => self.shared.resting.call(),
            Ok(_) => {}
            Err(error) => events.missed(&place, kind, &error),
        }
        Ok(())
    }

    /// Wakes the parent session of a session that has ended.
    pub(crate) async fn wake_of_end(&self, session: &SessionRow, how: RunEnd) {
        let told = async {
            let Some(parent) = session.parent else { return Ok(()) };
            let Some(parent) = self.stored(&session.workspace, parent).await? else {
                return Ok(());
            };
            let payload = json!({
                "kind": "state_change",
                "child_session_id": session.id.to_text(),
                "child_agent_id": session.agent,
                "status": RunStatus::Over(how).as_str(),
            });
            let id = format!("ended-{}", session.id);
            self.wake(&session.workspace, parent.session, payload, (&id, None)).await
        };
        if let Err(error) = told.await {
            tracing::warn!(
                session.id = %session.id,
                "the end of a session could not be reported to its parent session: {error}"
            );
        }
    }

    /// Wakes the parent session of a child that has sent a message to it.
    pub(crate) async fn wake_of_message(
        &self,
        child: &SessionRow,
        sequence: u64,
    ) -> Result<(), RunError> {
        let Some(parent) = child.parent else { return Ok(()) };
        let Some(parent) = self.stored(&child.workspace, parent).await? else { return Ok(()) };
        let payload = json!({
            "kind": "message",
            "child_session_id": child.id.to_text(),
            "child_agent_id": child.agent,
            "sequence": sequence,
        });
        let id = format!("message-{sequence}");
        self.wake(&child.workspace, parent.session, payload, (&id, None)).await
    }

    /// The type of a session's agent, as frozen in the session's newest run (D10). Older sessions
    /// have no stored type: then the agent's present type.
    pub(crate) async fn type_of(
        &self,
        (workspace, agent): (&WorkspaceId, &str),
        known: Option<AgentType>,
    ) -> Result<AgentType, RunError> {
        match known {
            Some(known) => Ok(known),
            None => self.agent_type(workspace, agent).await,
        }
    }

    /// The present type of an agent; a worker if it does not exist any more.
    pub(crate) async fn agent_type(
        &self,
        workspace: &WorkspaceId,
        name: &str,
    ) -> Result<AgentType, RunError> {
        let found = self.store()?.catalog(CatalogKind::Agent).find(workspace, name).await;
        let found = found.map_err(ControlError::Store)?;
        let name = AgentName::new(name).ok();
        let agent = found.and_then(|row| Agent::parse(row.document.as_bytes(), name.as_ref()).ok());
        Ok(agent.map_or(AgentType::Worker, |parsed| parsed.value.agent_type))
    }
}

/// Minutes without events after which a session is to be woken.
fn heartbeat(row: &BeatingSession) -> Option<u16> {
    let name = AgentName::new(&row.agent).ok();
    let agent = Agent::parse(row.document.as_bytes(), name.as_ref()).ok()?.value;
    agent.heartbeat_minutes.filter(|_| agent.agent_type == AgentType::Orchestrator)
}

fn checkup_prompt(child: &QuietChild) -> String {
    format!(
        "The session {} of the agent `{}`, which you have started, needs attention: the last \
         `session.wake` of this session gives the reason.",
        child.session, child.agent
    )
}
