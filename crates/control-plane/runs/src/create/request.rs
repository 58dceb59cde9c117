//! The first step of a run's creation: finds the creator and the session of the request, and checks
//! that the creator may request the run.

use std::time::{Duration, SystemTime};

use narthex_catalog::{RunKind, RunRequest};
use narthex_control::By;
use narthex_gateway::RunToken;
use narthex_model::{Pid, PrincipalId, RunScope, WorkspaceId};
use narthex_store::SessionRow;

use crate::{
    RunError, Runs,
    create::{
        creator::{Awaited, Creator},
        parent::Parent,
    },
    frozen::{FrozenAgent, Inputs, ResumedFrom, ServerSource, Suspended},
};

/// Lifetime of a run whose request gives none.
pub(crate) const LIFE: Duration = Duration::from_secs(24 * 60 * 60);

/// The state that a session resumes from.
pub(crate) struct Former {
    /// The numbers of the session's earlier runs, the oldest first.
    pub(crate) pids: Vec<Pid>,
    /// The time of suspension, if the session is suspended.
    pub(crate) suspended_at: Option<SystemTime>,
    /// The configuration of the session's last run, if that run was active at the suspension.
    pub(crate) configuration: Option<Suspended>,
}

/// A requested run, whose creator may create it.
pub(crate) struct Requested {
    pub(crate) workspace: WorkspaceId,
    pub(crate) request: RunRequest,
    /// The text of the request, as it was sent.
    pub(crate) text: String,
    pub(crate) by: By,
    pub(crate) driver: Option<PrincipalId>,
    pub(crate) awaited: Option<Awaited>,
    pub(crate) parent: Option<Parent>,
    pub(crate) token: RunToken,
    pub(crate) session: SessionRow,
    pub(crate) inputs: Inputs,
    pub(crate) expires_at: SystemTime,
    /// True if the run begins because its session is noted to resume by itself.
    pub(crate) is_owed: bool,
    /// The earlier run that the session resumes from, if there is one.
    pub(crate) former: Option<Former>,
}

impl Requested {
    /// True if the run begins without servers that fail, as in a resumed session. A session that
    /// resumes by itself is false: it is tried again later instead.
    pub(crate) fn is_tolerant(&self) -> bool {
        self.former.is_some() && !self.is_owed
    }

    /// The facts of the earlier run, as they are stored with the new run.
    pub(crate) fn resumed_from(&self) -> Option<ResumedFrom> {
        let former = self.former.as_ref()?;
        let since =
            former.suspended_at.and_then(|at| at.duration_since(SystemTime::UNIX_EPOCH).ok());
        let suspended_ms = since.and_then(|since| u64::try_from(since.as_millis()).ok());
        Some(ResumedFrom { pid: former.pids.last()?.get(), suspended_ms })
    }

    fn suspended(&self) -> Option<&Suspended> {
        self.former.as_ref()?.configuration.as_ref()
    }

    /// The agent as the last run of a suspended session had it.
    pub(crate) fn suspended_agent(&self) -> Option<&FrozenAgent> {
        self.suspended()?.of.agent()
    }

    /// The request that names the run's own servers, if the run has such servers.
    pub(crate) fn own_servers(&self) -> Option<&str> {
        match self.suspended().map(|last| &last.of) {
            Some(ServerSource::Own(text)) => Some(text),
            Some(ServerSource::Agent(_)) => None,
            None if self.request.has_own_servers => Some(&self.text),
            None => self.inputs.own.as_deref(),
        }
    }

    /// The prompt for the model.
    pub(crate) fn prompt(&self) -> Option<String> {
        let suspended = || self.suspended()?.prompt.clone();
        self.request.prompt.clone().or_else(suspended)
    }

    /// The scope, which no model sees.
    pub(crate) fn scope(&self) -> RunScope {
        let own = match self.suspended_agent() {
            Some(agent) if !self.request.has_scope => agent.scope(),
            _ => self.request.scope.clone(),
        };
        match &self.parent {
            Some(parent) => parent.scope.of_child(&own),
            None => own,
        }
    }
}

impl Runs {
    /// Checks that the creator may request this run, and finds its parent, its driver and its
    /// session.
    pub(crate) async fn requested(
        &self,
        workspace: WorkspaceId,
        request: RunRequest,
        text: String,
        by: Creator,
    ) -> Result<Requested, RunError> {
        let parent = self.parent(&workspace, &request, &by).await?;
        let driver = self.driver(&workspace, &request, &by, parent.as_ref())?;
        let awaited = by.awaited().cloned();
        let is_owed = matches!(by, Creator::Platform(..));
        let token = RunToken::generate().map_err(RunError::Randomness)?;
        let life = request.expires_in.map_or(LIFE, Duration::from_secs);
        let mut expires_at = SystemTime::now() + life;
        if let Some(parent) = &parent {
            expires_at = expires_at.min(parent.row.expires_at);
        }
        let (session, inputs, former) = match request.kind {
            RunKind::StartSession => {
                let who = by.clone().by().id;
                (self.new_session(&workspace, &request, &who)?, None, None)
            }
            RunKind::ResumeSession => {
                let (session, inputs, former) = self.resumed(&workspace, &request, &by).await?;
                (session, Some(inputs), Some(former))
            }
        };
        let by = by.by();
        let parent_id = parent.as_ref().map(|parent| parent.row.id);
        let depth = parent.as_ref().map_or(session.depth, |parent| parent.depth + 1);
        let session = match inputs {
            None => SessionRow { parent: parent_id, depth, ..session },
            Some(_) => session,
        };
        let inputs = inputs.unwrap_or_default();
        Ok(Requested {
            workspace,
            request,
            text,
            by,
            driver,
            awaited,
            parent,
            token,
            session,
            inputs,
            expires_at,
            is_owed,
            former,
        })
    }
}
