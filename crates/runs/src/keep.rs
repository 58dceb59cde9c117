//! The row of a run that begins, and the events of it.

use narthex_audit::{AuditEvent, kind};
use narthex_control::ControlError;
use narthex_model::{AgentEnv, EnvName, Secret, WorkspaceId};
use narthex_resolve::RunKind;
use narthex_store::{NewRun, RunRow, SessionRow};

use crate::{DirectServers, RunError, Runs, create::Draft};

/// What whoever creates the run is told of values.
#[derive(Clone, Copy)]
pub(crate) struct Told<'a> {
    pub(crate) direct: Option<&'a DirectServers>,
    pub(crate) env: &'a AgentEnv,
}

impl Runs {
    /// Keeps a run, with what its creator is told in the audit.
    pub(crate) async fn keep_noted(
        &self,
        draft: &Draft,
        session: &SessionRow,
        sealed: &str,
        told: Told<'_>,
    ) -> Result<RunRow, RunError> {
        let event = |kind| {
            AuditEvent::new(kind, draft.by.clone())
                .in_workspace(&draft.workspace)
                .on("agent", session.agent.clone())
                .of_run(draft.token.run_id().to_text())
                .of_session(session.id.to_text())
        };
        let mut noted = vec![self.control().note(event(kind::RUN_CREATED)).await?];
        if let Some(direct) = told.direct {
            let event = event(kind::RUN_DIRECT).with("servers", direct.aliases());
            noted.push(self.control().note(event).await?);
        }
        let names = told.env.names();
        if !names.is_empty() {
            let texts: Vec<_> = names.iter().map(EnvName::as_str).collect();
            let event = event(kind::RUN_ENV_INJECTED).with("names", texts);
            noted.push(self.control().note(event).await?);
        }
        let row = self.keep(draft, session, sealed, &names).await?;
        for one in noted {
            one.done().await;
        }
        Ok(row)
    }

    async fn keep(
        &self,
        draft: &Draft,
        session: &SessionRow,
        sealed: &str,
        agent_env: &[EnvName],
    ) -> Result<RunRow, RunError> {
        let id = draft.token.run_id();
        let token = hex::encode(draft.token.hash());
        let new = NewRun {
            id,
            workspace: &draft.workspace,
            session: session.id,
            agent: &session.agent,
            parent: draft.parent.as_ref().map(|parent| parent.row.id),
            agent_env,
            token: &token,
            sealed,
            created_by: &draft.by.id,
            expires_at: draft.expires_at,
            has_sockets: draft.request.has_sockets,
            driver: draft.driver.as_ref(),
        };
        let is_new = draft.request.kind == RunKind::StartSession;
        let runs = self.store()?.runs();
        let stored = runs.create(new, is_new.then_some(session)).await;
        if !stored.map_err(ControlError::Store)? {
            return Err(match is_new {
                true => RunError::NoParent,
                false => RunError::SessionOver { id: session.id, why: "it has ended" },
            });
        }
        let row = runs.find(id).await.map_err(ControlError::Store)?;
        row.ok_or(RunError::HasEnded(id))
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
