//! Sessions that go on by themselves: that of an orchestrator whose run has ended, when a child of
//! it has something for it (O80).

use std::time::SystemTime;

use narthex_control::ControlError;
use narthex_model::{AgentType, SessionId, WorkspaceId};
use narthex_store::{RunFilter, RunRow, SessionRow};
use serde_json::{Map, Value, json};

use crate::{
    Creator, RunError, Runs,
    driver::Awaited,
    frozen::{Inputs, session_place},
};

/// A session that may go on, and with what.
#[derive(Debug)]
pub(crate) struct Resumption {
    above: SessionRow,
    /// The run that began the child.
    run: RunRow,
    /// What that run had (O75).
    scope: Map<String, Value>,
}

impl Runs {
    /// What the session above a child would go on with, if it is one that does by itself: it is an
    /// orchestrator's, and was carried out by somebody who was waited for.
    pub(crate) async fn resumption(
        &self,
        child: &SessionRow,
    ) -> Result<Option<Resumption>, RunError> {
        let workspace = &child.workspace;
        let Some(parent) = child.parent else { return Ok(None) };
        let Some(run) = self.stored(workspace, parent).await? else { return Ok(None) };
        if run.waiting.is_none() || child.sealed.is_empty() {
            return Ok(None);
        }
        let opened =
            self.vault()?.open_document(workspace, &session_place(child.id), &child.sealed).await;
        let inputs = Inputs::read(&opened.map_err(ControlError::from)?);
        let Some(scope) = inputs.and_then(|inputs| inputs.caller_scope) else { return Ok(None) };
        let above = self.store()?.sessions().find(workspace, run.session).await;
        let Some(above) = above.map_err(ControlError::Store)? else { return Ok(None) };
        let agent_type = self.agent_type(workspace, &above.agent).await?;
        let goes_on = above.ended_at.is_none() && agent_type == AgentType::Orchestrator;
        Ok(goes_on.then_some(Resumption { above, run, scope }))
    }

    /// Has a session go on, unless a run of it does: that hears of it by the session's events.
    pub(crate) async fn resume(&self, of: Resumption, prompt: &str) -> Result<(), RunError> {
        let Resumption { above, run, scope } = of;
        let _turn = self.shared.resuming.take(&above.id).await;
        let left = run.expires_at.duration_since(SystemTime::now()).unwrap_or_default().as_secs();
        // The time of the run that began the child bounds what comes of it.
        if left == 0 || self.has_living_run(&above).await? {
            return Ok(());
        }
        let request = json!({
            "type": "resume_session",
            "session_id": above.id.to_text(),
            "prompt": prompt,
            "scope": scope,
            "expires_in": left,
        });
        let text = |text: &String| (!text.is_empty()).then(|| text.clone());
        let awaited = run.waiting.as_ref().map_or_else(Awaited::default, |waiting| Awaited {
            model: text(&waiting.model),
            runtime: text(&waiting.runtime),
        });
        let by = Creator::Platform(awaited);
        let created = self.create(&above.workspace, &request.to_string(), by).await?;
        tracing::info!(run.id = %created.row.id, "the session of a parent goes on");
        Ok(())
    }

    /// Wakes the session above a child, which the child has told something by the event of this
    /// number, and has it go on.
    pub async fn caller_told(&self, workspace: &WorkspaceId, child: SessionId, sequence: u64) {
        let told = async {
            let found = self.store()?.sessions().find(workspace, child).await;
            let Some(child) = found.map_err(ControlError::Store)? else { return Ok(()) };
            self.wake_of_message(&child, sequence).await?;
            if let Some(of) = self.resumption(&child).await? {
                self.resume_later(of, told_prompt(&child)).await;
            }
            Ok::<_, RunError>(())
        };
        if let Err(error) = told.await {
            tracing::warn!(session.id = %child, "the session above does not go on: {error}");
        }
    }

    /// Has a session go on, unless a run of it does. Servers take their time to start, for which
    /// nobody waits; what is so now decides.
    pub(crate) async fn resume_later(&self, of: Resumption, prompt: String) {
        match self.has_living_run(&of.above).await {
            Ok(true) => return,
            Ok(false) => {}
            Err(error) => tracing::warn!("the session of a parent cannot be looked at: {error}"),
        }
        let runs = self.clone();
        self.control().spawn(async move {
            if let Err(error) = Box::pin(runs.resume(of, &prompt)).await {
                tracing::warn!("the session of a parent does not go on: {error}");
            }
        });
    }

    async fn has_living_run(&self, session: &SessionRow) -> Result<bool, RunError> {
        let living = RunFilter { status: Some(None), ..RunFilter::of_session(session.id) };
        let living = self.store()?.runs().all(&session.workspace, living).await;
        Ok(!living.map_err(ControlError::Store)?.is_empty())
    }

    /// Whether a run leaves children that go on, for which its session stays.
    pub(crate) async fn leaves_children(&self, row: &RunRow) -> Result<bool, RunError> {
        let agent_type = self.agent_type(&row.workspace, &row.agent).await?;
        if agent_type != AgentType::Orchestrator {
            return Ok(false);
        }
        let children = self.store()?.sessions().live_children(&row.workspace, row.session).await;
        Ok(children.map_err(ControlError::Store)? > 0)
    }

    /// Has a session go on all of whose children have ended while its run did.
    pub(crate) async fn resume_if_alone(
        &self,
        row: &RunRow,
        scope: Map<String, Value>,
    ) -> Result<(), RunError> {
        if self.leaves_children(row).await? {
            return Ok(());
        }
        let above = self.store()?.sessions().find(&row.workspace, row.session).await;
        let Some(above) = above.map_err(ControlError::Store)? else { return Ok(()) };
        if above.ended_at.is_some() {
            return Ok(());
        }
        let of = Resumption { above, run: row.clone(), scope };
        self.resume(of, "All sessions that you had started have ended.").await
    }
}

/// What a session is told that goes on because a child of it has ended.
pub(crate) fn ended_prompt(child: &SessionRow, status: &str) -> String {
    format!(
        "The session {} of the agent `{}`, which you have started, has ended: {status}. \
         `read_child_output` gives what it did.",
        child.id, child.agent
    )
}

fn told_prompt(child: &SessionRow) -> String {
    format!(
        "The session {} of the agent `{}`, which you have started, has told you something: it is a \
         `user.message` of this session.",
        child.id, child.agent
    )
}
