//! How a run that begins is kept, and noted.

use narthex_audit::{AuditEvent, kind};
use narthex_model::{Secret, WorkspaceId};
use narthex_resolve::RunKind;
use narthex_store::{NewRun, RunRow, SessionRow};

use super::Draft;
use crate::{
    ControlError,
    access::hex,
    runs::{DirectServers, RunError, Runs},
};

impl Runs {
    pub(super) async fn keep_noted(
        &self,
        draft: &Draft,
        session: &SessionRow,
        sealed: &str,
        direct: Option<&DirectServers>,
    ) -> Result<RunRow, RunError> {
        let event = |kind| {
            AuditEvent::new(kind, draft.by.clone())
                .in_workspace(&draft.workspace)
                .on("agent", session.agent.clone())
                .of_run(draft.token.run_id().to_text())
                .of_session(session.id.to_text())
        };
        let noted = self.control().note(event(kind::RUN_CREATED)).await?;
        let told = direct.map(|direct| event(kind::RUN_DIRECT).with("servers", direct.aliases()));
        let told = match told {
            Some(event) => Some(self.control().note(event).await?),
            None => None,
        };
        let row = self.keep(draft, session, sealed).await?;
        noted.done().await;
        if let Some(told) = told {
            told.done().await;
        }
        Ok(row)
    }

    async fn keep(
        &self,
        draft: &Draft,
        session: &SessionRow,
        sealed: &str,
    ) -> Result<RunRow, RunError> {
        let id = draft.token.run_id();
        let token = hex(&draft.token.hash());
        let new = NewRun {
            id,
            workspace: &draft.workspace,
            session: session.id,
            agent: &session.agent,
            parent: draft.parent.as_ref().map(|parent| parent.row.id),
            token: &token,
            sealed,
            created_by: &draft.by.id,
            expires_at: draft.expires_at,
            has_sockets: draft.request.has_sockets,
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

    pub(super) async fn seal(
        &self,
        workspace: &WorkspaceId,
        place: &str,
        text: &Secret,
    ) -> Result<String, RunError> {
        let sealed = self.vault()?.seal_document(workspace, place, text).await;
        Ok(sealed.map_err(ControlError::from)?)
    }
}
