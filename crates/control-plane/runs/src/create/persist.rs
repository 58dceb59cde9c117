//! The row of a new run, and its events.

use narthex_audit::{AuditEvent, kind};
use narthex_catalog::RunKind;
use narthex_control::ControlError;
use narthex_events::{EventKind, EventPlace};
use narthex_model::{
    AgentEnv, AgentType, EnvName, ExecutorName, RunId, Secret, SessionId, WorkspaceId,
};
use narthex_store::{NewRun, RunRow, SessionRow};
use serde_json::{Value, json};

use crate::{
    DirectServers, RunError, Runs,
    create::{creator::shown_actor, parent::Parent, request::Requested, servers::OmittedKey},
    frozen::session_place,
};

/// Facts that the run's creator learns, for the audit.
#[derive(Clone, Copy)]
pub(crate) struct Disclosed<'a> {
    /// The daemon's executor that carries out the run.
    pub(crate) executor: Option<&'a ExecutorName>,
    pub(crate) direct: Option<&'a DirectServers>,
    pub(crate) env: &'a AgentEnv,
    /// Optional keys of the run's servers that are left out, since they have no value.
    pub(crate) omitted: &'a [OmittedKey],
}

impl Runs {
    /// Stores a run, and records in the audit which values its creator gets.
    pub(crate) async fn store_recorded(
        &self,
        requested: &Requested,
        session: &SessionRow,
        sealed: &str,
        told: Disclosed<'_>,
    ) -> Result<RunRow, RunError> {
        let event = |kind| {
            AuditEvent::new(kind, requested.by.clone())
                .in_workspace(&requested.workspace)
                .on("agent", session.agent.clone())
                .of_run(requested.token.run_id().to_text())
                .of_session(session.id.to_text())
        };
        let mut created = event(kind::RUN_CREATED);
        if !told.omitted.is_empty() {
            // Only names of keys: the values, which would narrow a server, are absent.
            created = created.with("omitted", json!(told.omitted));
        }
        let mut noted = vec![self.control().note(created).await?];
        if let Some(direct) = told.direct {
            let event = event(kind::RUN_DIRECT).with("servers", direct.aliases());
            noted.push(self.control().note(event).await?);
        }
        let parent = requested.parent.as_ref();
        if let Some(grant) = parent.and_then(Parent::spawned).and_then(|of| of.grant) {
            let used = event(kind::PERMISSION_CONSUMED).on("grant", grant.to_text());
            noted.push(self.control().note(used).await?);
        }
        let names = told.env.names();
        if !names.is_empty() {
            let texts: Vec<_> = names.iter().map(EnvName::as_str).collect();
            let event = event(kind::RUN_ENV_INJECTED).with("names", texts);
            noted.push(self.control().note(event).await?);
        }
        let row = self.keep(requested, session, sealed, (told.executor, &names)).await?;
        for one in noted {
            one.done().await;
        }
        Ok(row)
    }

    /// Adds an event to a session, about a change that has already happened.
    pub(crate) async fn tell(
        &self,
        workspace: &WorkspaceId,
        session: SessionId,
        run: Option<RunId>,
        (kind, payload): (EventKind, Value),
    ) {
        let Some(events) = self.control().events() else { return };
        let place = EventPlace { workspace: workspace.clone(), session, run };
        events.note(&place, kind, &payload, None).await;
    }

    async fn keep(
        &self,
        requested: &Requested,
        session: &SessionRow,
        sealed: &str,
        (executor, agent_env): (Option<&ExecutorName>, &[EnvName]),
    ) -> Result<RunRow, RunError> {
        let id = requested.token.run_id();
        let token = hex::encode(requested.token.hash());
        let said = requested.awaited.as_ref();
        let is_awaited = said.is_some() || executor.is_some();
        let awaited = is_awaited.then(|| narthex_store::Awaited {
            model: said.and_then(|of| of.model.as_deref()).unwrap_or_default(),
            runtime: said.and_then(|of| of.runtime.as_deref()).unwrap_or_default(),
            executor,
        });
        let new = NewRun {
            id,
            workspace: &requested.workspace,
            session: session.id,
            agent: &session.agent,
            agent_type: session.agent_type,
            parent: requested.parent.as_ref().map(|parent| parent.row.id),
            agent_env,
            token: &token,
            sealed,
            created_by: &requested.by.id,
            expires_at: requested.expires_at,
            has_sockets: requested.request.has_sockets,
            driver: requested.driver.as_ref(),
            awaited,
            spawned: requested.parent.as_ref().and_then(Parent::spawned),
            is_owed: requested.is_owed,
            suspended_at: requested.former.as_ref().and_then(|former| former.suspended_at),
        };
        let is_new = requested.request.kind == RunKind::StartSession;
        // The row as it is stored at that moment. A later read could find the run claimed, ended or
        // missing, and the stored row would belong to no caller.
        let stored = self.store()?.runs().create(new, is_new.then_some(session)).await;
        if let Some(row) = stored.map_err(ControlError::Store)? {
            return Ok(row);
        }
        let over = |why| RunError::over(session.id, why);
        Err(match (&requested.parent, is_new) {
            (Some(parent), true) => {
                self.child_refused(&requested.workspace, parent, &session.agent).await
            }
            (None, true) => RunError::NoParent,
            (_, false) if requested.is_owed => over("it is active already, or has ended"),
            (_, false) => over("it has ended, or was suspended or resumed at the same time"),
        })
    }

    /// The session as it is stored, with its sealed inputs.
    pub(crate) async fn sealed_session(
        &self,
        requested: &Requested,
        inputs: Secret,
        agent_type: Option<AgentType>,
    ) -> Result<SessionRow, RunError> {
        let mut session = SessionRow { agent_type, ..requested.session.clone() };
        if requested.request.kind == RunKind::StartSession {
            let place = session_place(session.id);
            session.sealed = self.seal(&requested.workspace, &place, &inputs).await?;
        }
        Ok(session)
    }

    pub(crate) async fn seal(
        &self,
        workspace: &WorkspaceId,
        place: &str,
        text: &Secret,
    ) -> Result<String, RunError> {
        let sealed = self.vault()?.seal_document(workspace, place, text).await;
        Ok(sealed.map_err(ControlError::from)?)
    }
}

/// The event that reports a run's start to its session.
pub(crate) fn begin_event(requested: &Requested, row: &RunRow) -> (EventKind, Value) {
    let is_new = requested.request.kind == RunKind::StartSession;
    let kind = if is_new { EventKind::SessionCreated } else { EventKind::SessionResumed };
    let mut payload = json!({
        "agent_name": (!row.agent.is_empty()).then_some(&row.agent),
        "parent_run_id": row.parent.map(RunId::to_text),
        "pid": row.pid.get(),
        "by": shown_actor(&requested.by),
    });
    if let Some(former) = &requested.former {
        payload["former_pids"] = former.pids.iter().map(|pid| pid.get()).collect();
        payload["was_suspended"] = former.suspended_at.is_some().into();
    }
    (kind, payload)
}
