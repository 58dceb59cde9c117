//! A run's view of its child sessions, and of its parent session. The caller is always the run
//! itself. A session that is not a child of the caller's session is treated as absent (S18).

pub(crate) mod abandoned;
mod orchestrator_child;
pub(crate) mod wakes;
pub(crate) mod watchdog;

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use narthex_audit::{Actor, ActorKind};
use narthex_catalog::EndSession;
use narthex_events::EventKind;
use narthex_gateway::RunView;
use narthex_model::{AgentName, AgentType, RunEnd, SessionId, json::shortened};
use narthex_store::{RunRow, SessionRow};
use serde_json::Value;

use crate::{
    RunError, RunStatus, Runs,
    children::abandoned::cancelled_by,
    create::creator::{Awaited, Creator},
    end::Ending,
    frozen::FrozenAgent,
    view::session_status,
};

/// A session that a run of another session has created.
#[derive(Debug, Clone)]
pub struct Child {
    /// The session.
    pub session: SessionRow,
    /// The newest run of the session.
    pub run: Option<RunRow>,
    /// Status of the session.
    pub status: &'static str,
}

/// The run of a child that a parent run asked for.
#[derive(Debug, Clone)]
pub struct StartedChild {
    /// The newest run of the child session.
    pub row: RunRow,
    /// Status of the child session.
    pub status: &'static str,
    /// True if the call created the child. False for an existing child of an agent of which a
    /// session may have one child at a time.
    pub is_new: bool,
    /// True if the child waits for a platform to claim it, and no platform has claimed a run of the
    /// workspace in the last hour.
    pub lacks_platform: bool,
}

/// Time for which a platform counts as present after it has claimed a run.
const PLATFORM_LASTS: Duration = Duration::from_secs(60 * 60);

/// The session of the parent run.
#[derive(Debug, Clone)]
pub struct Caller {
    /// Id of the session.
    pub session: SessionId,
    /// True if the session's agent is an orchestrator: sessions of other agents get no events of
    /// their children.
    pub is_orchestrator: bool,
    /// The child session.
    pub child: SessionId,
}

impl Child {
    /// True if a run may still begin in the child session.
    #[must_use]
    pub fn is_live(&self) -> bool {
        self.session.ended_at.is_none()
    }
}

impl Runs {
    /// Creates a session of another agent, as a child of a run, from a document in the form that
    /// [`create`](Self::create) reads. The new run waits until a client claims it: the caller does
    /// not get its token.
    ///
    /// # Errors
    /// As [`create`](Self::create).
    pub async fn spawn(
        &self,
        run: &Arc<RunView>,
        agent: &str,
        request: &Value,
        awaited: Awaited,
    ) -> Result<StartedChild, RunError> {
        let own = self.session_of(run);
        let _turn = match own {
            Some(own) => Some(self.shared.spawning.take(&own).await),
            None => None,
        };
        if let Some(started) = self.started(run, own, agent).await? {
            return Ok(started);
        }
        let awaited = self.with_model(run, awaited)?;
        let by = Creator::Spawner(run.clone(), awaited);
        match self.create(&run.workspace, &request.to_string(), by).await {
            Ok(created) => {
                let status = RunStatus::of(&created.row).as_str();
                let lacks_platform = self.lacks_platform(&created.row).await;
                Ok(StartedChild { row: created.row, status, is_new: true, lacks_platform })
            }
            // Another daemon on the store has created the child first.
            Err(error @ RunError::SingleChild(_)) => {
                self.started(run, own, agent).await?.ok_or(error)
            }
            Err(error) => Err(error),
        }
    }

    /// The active child of an agent of which a session has one at a time.
    async fn started(
        &self,
        run: &RunView,
        own: Option<SessionId>,
        agent: &str,
    ) -> Result<Option<StartedChild>, RunError> {
        let (Some(own), Ok(agent)) = (own, AgentName::new(agent)) else { return Ok(None) };
        let Some(child) = self.orchestrator_child(run, own, &agent).await? else { return Ok(None) };
        let Some(row) = child.run else { return Ok(None) };
        let lacks_platform = self.lacks_platform(&row).await;
        Ok(Some(StartedChild { row, status: child.status, is_new: false, lacks_platform }))
    }

    /// True if a run waits for a platform, and no platform has claimed a run lately. A failure of
    /// the store gives `false`: the run was created all the same.
    async fn lacks_platform(&self, row: &RunRow) -> bool {
        let waits = row.waiting.as_ref().is_some_and(|waiting| {
            waiting.executor.is_none() && waiting.is_free(SystemTime::now())
        });
        let since = SystemTime::now().checked_sub(PLATFORM_LASTS);
        let (true, Ok(store), Some(since)) = (waits, self.store(), since) else { return false };
        match store.runs().was_claimed_since(&row.workspace, since).await {
            Ok(was_claimed) => !was_claimed,
            Err(error) => {
                tracing::warn!(run.id = %row.id, "claims cannot be read: {error}");
                false
            }
        }
    }

    /// A child of the session of a run.
    ///
    /// # Errors
    /// When the session is no child of the run's session, or the store fails.
    pub async fn child(&self, run: &RunView, id: &str) -> Result<Child, RunError> {
        let none = || RunError::NotYourChild(shortened(id));
        let own = self.session_of(run).ok_or_else(none)?;
        let (session, runs) = match self.session(&run.workspace, id).await {
            Ok(found) => found,
            Err(RunError::UnknownSession(_)) => return Err(none()),
            Err(error) => return Err(error),
        };
        let parent = self.stored(&run.workspace, session.parent.ok_or_else(none)?).await?;
        if parent.is_none_or(|parent| parent.session != own) {
            return Err(none());
        }
        self.shared.resting.ends.tell(run.id, &session);
        let is_suspended = self.suspended(&run.workspace, session.id).await?.is_some();
        let status = session_status(&session, &runs, is_suspended);
        Ok(Child { session, run: runs.into_iter().next_back(), status })
    }

    /// The child of a run's session, if a run may still begin in the child.
    ///
    /// # Errors
    /// When the session is no child of the run's session, the child has ended, or the store fails.
    pub async fn live_child(&self, run: &RunView, id: &str) -> Result<Child, RunError> {
        let child = self.child(run, id).await?;
        match child.is_live() {
            true => Ok(child),
            false => Err(RunError::ended(child.session.id)),
        }
    }

    /// Ends a child of a run's session, with all of the child's descendants (X-E92). Returns
    /// `false` if the child had ended before.
    ///
    /// # Errors
    /// When the session is no child of the run's session, or the store fails.
    pub async fn cancel(
        &self,
        run: &RunView,
        id: &str,
        reason: Option<&str>,
    ) -> Result<(bool, Child), RunError> {
        let child = self.child(run, id).await?;
        let payload = cancelled_by((run.authority.actors().session, run.id), reason);
        let ending = Ending {
            by: Actor::new(ActorKind::Run, run.id.to_text()),
            how: RunEnd::Cancelled,
            first: Some((EventKind::SessionCancelledByParent, payload, None)),
        };
        let ended = match child.is_live() {
            true => self.end_session(&run.workspace, child.session.id, ending).await?,
            false => false,
        };
        if let Err(error) = self.cancel_left(&run.workspace).await {
            tracing::warn!(
                "sessions below a cancelled child could not be ended yet; the next check tries \
                 again: {error}"
            );
        }
        Ok((ended, self.child(run, id).await?))
    }

    /// The session of the parent run, which created the session of this run.
    ///
    /// # Errors
    /// When no run created the session, the parent session has ended, or the store fails.
    pub async fn caller(&self, run: &RunView) -> Result<Caller, RunError> {
        let own = self.session_of(run).ok_or(RunError::NoCaller)?;
        let (session, _) = self.session(&run.workspace, &own.to_text()).await?;
        let parent = session.parent.ok_or(RunError::NoCaller)?;
        let parent = self.stored(&run.workspace, parent).await?.ok_or(RunError::CallerOver)?;
        let (above, _) = self.session(&run.workspace, &parent.session.to_text()).await?;
        if above.ended_at.is_some() {
            return Err(RunError::CallerOver);
        }
        let agent_type = self.type_of((&run.workspace, &above.agent), above.agent_type).await?;
        let is_orchestrator = agent_type == AgentType::Orchestrator;
        Ok(Caller { session: above.id, is_orchestrator, child: own })
    }

    /// True if the document of a run's agent lets its runs end their session. A run without an
    /// agent may.
    ///
    /// # Errors
    /// When the frozen configuration of the run cannot be read, or the store fails.
    pub async fn may_end_session(&self, run: &RunView) -> Result<bool, RunError> {
        let Some(row) = self.stored(&run.workspace, run.id).await? else { return Ok(true) };
        let frozen = self.frozen(&row).await?;
        let policy = frozen.of.agent().map(FrozenAgent::end_session).unwrap_or_default();
        Ok(policy == EndSession::Accept)
    }
}
