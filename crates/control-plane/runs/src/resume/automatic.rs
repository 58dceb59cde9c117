//! Sessions that resume by themselves (O80). The session of an orchestrator whose run has ended
//! resumes when one of its children ends or sends it a message.
//!
//! The data for resuming (prompt and scope) is stored with its cause, and deleted when the new run
//! begins. So the session resumes exactly once, also if the daemon stops in between, and also where
//! several daemons use the store.

use std::time::{Duration, SystemTime};

use narthex_control::ControlError;
use narthex_model::{AgentType, RunId, Secret, SessionId, WorkspaceId};
use narthex_store::{NewRest, RestingSession, RunFilter, RunRow, SessionRow};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tokio::{
    sync::OwnedSemaphorePermit,
    time::{MissedTickBehavior, interval},
};

use crate::{
    Creator, RunError, Runs,
    create::creator::Awaited,
    frozen::{Inputs, session_place},
};

/// Pause between two searches for sessions that are to resume; a call starts a search earlier.
const EVERY: Duration = Duration::from_secs(60);
/// First and longest pause before a session is tried again; each pause is twice as long.
const AGAIN: Duration = Duration::from_secs(60);
const AGAIN_MAX: Duration = Duration::from_secs(60 * 60);
/// Number of sessions read together.
const BATCH: u32 = 64;

/// The prompt and scope of the next run of a session, as the vault seals them.
#[derive(Serialize, Deserialize)]
struct Rest {
    prompt: String,
    scope: Map<String, Value>,
}

impl Runs {
    /// The data for resuming the parent session of a child, if that session resumes by itself: it
    /// is an orchestrator's, and a platform or an executor carried out its run.
    pub(crate) async fn owed_above(
        &self,
        child: &SessionRow,
        prompt: String,
    ) -> Result<Option<NewRest>, RunError> {
        let workspace = &child.workspace;
        let Some(parent) = child.parent else { return Ok(None) };
        let Some(run) = self.stored(workspace, parent).await? else { return Ok(None) };
        if run.waiting.is_none() || child.sealed.is_empty() {
            return Ok(None);
        }
        let opened =
            self.vault()?.open_document(workspace, &session_place(child.id), &child.sealed).await;
        let inputs = Inputs::read(&opened.map_err(ControlError::from)?);
        // The next run has the scope of the very run that created the child (O75).
        let Some(scope) = inputs.and_then(|inputs| inputs.caller_scope) else { return Ok(None) };
        let above = self.store()?.sessions().find(workspace, run.session).await;
        let Some(above) = above.map_err(ControlError::Store)? else { return Ok(None) };
        let agent_type = self.type_of((workspace, &above.agent), above.agent_type).await?;
        if above.ended_at.is_some() || agent_type != AgentType::Orchestrator {
            return Ok(None);
        }
        self.rest_of(&run, Rest { prompt, scope }).await.map(Some)
    }

    /// The data for resuming the session of a run of which children have ended, or sent a message,
    /// without the knowledge of the run.
    pub(crate) async fn owed_alone(
        &self,
        run: &RunRow,
        scope: Map<String, Value>,
    ) -> Result<NewRest, RunError> {
        let prompt = "One or more of the sessions that you started have ended, or have sent you a \
                      message, while you were working; others may still be active. `read_messages` \
                      gives their messages, `read_child_output` the work and the status of each, \
                      and the `session.wake` events of this session name those that have ended."
            .to_owned();
        self.rest_of(run, Rest { prompt, scope }).await
    }

    async fn rest_of(&self, run: &RunRow, rest: Rest) -> Result<NewRest, RunError> {
        let text = serde_json::to_string(&rest).expect("texts and maps by text can be written");
        let (workspace, session) = (run.workspace.clone(), run.session);
        let sealed = self.seal(&workspace, &rest_place(session), &Secret::new(text)).await?;
        Ok(NewRest { workspace, session, run: run.id, sealed })
    }

    /// The data for resuming the parent session of a child when the child sends it a message.
    /// `None` if the parent session does not resume by itself. The caller stores the data in the
    /// transaction that stores the message.
    ///
    /// # Errors
    /// When there is no such session, or the store or the vault fails.
    pub async fn owed_for_message(
        &self,
        workspace: &WorkspaceId,
        child: SessionId,
    ) -> Result<Option<NewRest>, RunError> {
        let (child, _) = self.session(workspace, &child.to_text()).await?;
        self.owed_above(&child, told_prompt(&child)).await
    }

    /// Notes that a run knows of a child's end: that end does not resume the run's session.
    pub fn knows_end(&self, run: RunId, child: SessionId) {
        self.shared.resting.ends.note(run, child);
    }

    /// Wakes the parent session of a child, which has a message from the child in the event of this
    /// number. A failure is logged: the message is stored, and with it the data for resuming.
    pub async fn caller_told(&self, workspace: &WorkspaceId, child: SessionId, sequence: u64) {
        self.shared.resting.call();
        let told = async {
            let (child, _) = self.session(workspace, &child.to_text()).await?;
            self.wake_of_message(&child, sequence).await
        };
        if let Err(error) = told.await {
            tracing::warn!(session.id = %child, "the parent session could not be woken: {error}");
        }
    }

    /// Resumes sessions that are due, for as long as the future is polled; first the sessions that
    /// an earlier process has left.
    pub(crate) async fn watch_resting(&self) {
        let mut called = self.shared.resting.called.subscribe();
        let mut ticks = interval(EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            called.borrow_and_update();
            if let Err(error) = self.go_on(SystemTime::now()).await {
                tracing::warn!("sessions to resume cannot be read: {error}");
            }
            // The sender exists for as long as these runs do.
            tokio::select! {
                _ = called.changed() => {}
                _ = ticks.tick() => {}
            }
        }
    }

    /// Resumes all sessions that are due at this time: each as a task of its own, a few at a time.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn go_on(&self, now: SystemTime) -> Result<(), RunError> {
        loop {
            let due = self.store()?.resting().due(now, BATCH).await.map_err(ControlError::Store)?;
            if due.is_empty() {
                return Ok(());
            }
            for resting in due {
                let places = self.shared.resting.places.clone();
                let Ok(place) = places.acquire_owned().await else { return Ok(()) };
                // Servers take their time to start. Until `again_at`, other daemons skip this
                // session.
                let again_at = now + again(resting.tries);
                let taken = self.store()?.resting().take(&resting, again_at).await;
                if taken.map_err(ControlError::Store)? {
                    self.control().spawn(self.clone().resume_in(resting, place));
                }
            }
        }
    }

    async fn resume_in(self, resting: RestingSession, _place: OwnedSemaphorePermit) {
        let session = resting.rest.session;
        if let Err(error) = Box::pin(self.resume(resting)).await {
            tracing::warn!(session.id = %session, "a session could not be resumed yet: {error}");
        }
    }

    async fn resume(&self, resting: RestingSession) -> Result<(), RunError> {
        let NewRest { workspace, session, run, sealed } = resting.rest;
        let above = self.store()?.sessions().find(&workspace, session).await;
        let Some(above) = above.map_err(ControlError::Store)? else { return Ok(()) };
        let run = self.stored(&workspace, run).await?;
        // The end of the run that created the child also bounds the new run.
        let time_left = |run: &RunRow| run.expires_at.duration_since(SystemTime::now());
        let left =
            run.as_ref().and_then(|run| time_left(run).ok()).map_or(0, |left| left.as_secs());
        let Some(run) = run.filter(|_| left > 0) else { return self.is_over(&above).await };
        let place = rest_place(session);
        let opened = self.vault()?.open_document(&workspace, &place, &sealed).await;
        let opened = opened.map_err(ControlError::from)?;
        let Rest { prompt, scope } = serde_json::from_str(opened.expose())
            .map_err(|error| RunError::Malformed(error.to_string()))?;
        let request = json!({
            "type": "resume_session",
            "session_id": session.to_text(),
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
        match self.create(&workspace, &request.to_string(), by).await {
            Ok(created) => {
                tracing::info!(run.id = %created.row.id, "the session of a parent was resumed");
                Ok(())
            }
            // The session has ended meanwhile, or another caller has resumed it.
            Err(RunError::SessionOver { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Handles a session that was to resume and whose time is over. A child session ends; other
    /// sessions wait for people to resume them.
    async fn is_over(&self, session: &SessionRow) -> Result<(), RunError> {
        let SessionRow { workspace, id, .. } = session;
        if session.parent.is_some() && self.expire_session(workspace, *id, None).await? {
            return Ok(());
        }
        let forgotten = self.store()?.resting().forget(workspace, *id).await;
        Ok(forgotten.map(drop).map_err(ControlError::Store)?)
    }

    /// True if a session has an active run.
    pub(crate) async fn has_living_run(
        &self,
        workspace: &WorkspaceId,
        session: SessionId,
        besides: Option<RunId>,
    ) -> Result<bool, RunError> {
        let living = RunFilter { status: Some(None), ..RunFilter::of_session(session) };
        let living = self.store()?.runs().all(workspace, living).await;
        let living = living.map_err(ControlError::Store)?;
        Ok(living.iter().any(|run| Some(run.id) != besides))
    }

    /// True if a run leaves active children, for which its session stays active.
    pub(crate) async fn leaves_children(&self, row: &RunRow) -> Result<bool, RunError> {
        let (workspace, sessions) = (&row.workspace, self.store()?.sessions());
        let found = sessions.find(workspace, row.session).await.map_err(ControlError::Store)?;
        let known = found.and_then(|session| session.agent_type);
        let agent_type = self.type_of((workspace, &row.agent), known).await?;
        if agent_type != AgentType::Orchestrator {
            return Ok(false);
        }
        let children = sessions.live_children(workspace, row.session).await;
        Ok(children.map_err(ControlError::Store)? > 0)
    }
}

/// The pause before a session is tried again after this number of tries.
fn again(tries: u32) -> Duration {
    AGAIN.saturating_mul(2_u32.saturating_pow(tries)).min(AGAIN_MAX)
}

/// The place to which the vault binds a session's sealed data for resuming.
fn rest_place(id: SessionId) -> String {
    format!("rest {id}")
}

/// The prompt of a session that resumes because a child of it has ended.
pub(crate) fn ended_prompt(child: &SessionRow, status: &str) -> String {
    format!(
        "The session {} of the agent `{}`, which you have started, has ended: {status}. \
         `read_child_output` gives what it did.",
        child.id, child.agent
    )
}

fn told_prompt(child: &SessionRow) -> String {
    format!(
        "The session {} of the agent `{}`, which you have started, has sent you a message: it is a \
         `user.message` of this session.",
        child.id, child.agent
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A session that cannot resume is tried again after 1, 2, 4 … minutes, and each hour at last.
    #[test]
    fn the_pause_between_resume_attempts_doubles_up_to_an_hour() {
        let minutes = |tries| again(tries).as_secs() / 60;
        assert_eq!([0, 1, 2, 5, 6, 40].map(minutes), [1, 2, 4, 32, 60, 60]);
    }
}
