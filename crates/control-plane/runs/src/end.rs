//! The end of a run, and of a session with its runs. Both end in the store first. Then the run
//! leaves the gateway's table, and its servers are released.

pub(crate) mod completed;
mod expiry;
mod folders;
mod workspace;

use std::collections::BTreeMap;

use narthex_audit::{AuditEvent, kind};
use narthex_control::{By, Control, ControlError};
use narthex_events::{EventKind, EventPlace};
use narthex_model::{RunEnd, RunId, SessionId, WorkspaceId, command::narthex};
use narthex_store::{NewRest, RunFilter, SessionRow};
use narthex_vault::VaultError;
use serde_json::{Value, json};

use crate::{RunError, Runs, create::creator::shown_actor, resume::automatic::ended_prompt};

/// The end of a session.
#[derive(Debug)]
pub(crate) struct Ending {
    pub(crate) by: By,
    pub(crate) how: RunEnd,
    /// The event that is sent before the end, with the id that prevents a second event.
    pub(crate) first: Option<(EventKind, Value, Option<&'static str>)>,
}

impl Runs {
    /// Ends a run: its token opens nothing any more, its sessions and streams end, and its servers
    /// end after the open calls. The store forgets its frozen configuration (O82).
    ///
    /// # Errors
    /// When the workspace has no such run, the run has ended before, the run is that of the process
    /// itself, or the store fails.
    pub async fn end(&self, workspace: &WorkspaceId, id: &str, by: &By) -> Result<(), RunError> {
        let unknown = || RunError::Unknown(id.chars().take(100).collect());
        // Commands with which operators watch runs give the run of the process this name.
        if id == "local" && self.is_home(workspace) {
            return Err(RunError::Local);
        }
        let id = RunId::parse(id).ok_or_else(unknown)?;
        if id == self.shared.options.local && self.is_home(workspace) {
            return Err(RunError::Local);
        }
        self.stored(workspace, id).await?.ok_or_else(unknown)?;
        match self.end_stored(workspace, id, RunEnd::Ended, by.clone(), None).await? {
            true => Ok(()),
            false => Err(RunError::HasEnded(id)),
        }
    }

    /// Ends a stored run, and stores with the end the data for resuming its session. Returns
    /// `false` if the run had ended before.
    pub(crate) async fn end_stored(
        &self,
        workspace: &WorkspaceId,
        id: RunId,
        how: RunEnd,
        by: By,
        owed: Option<NewRest>,
    ) -> Result<bool, RunError> {
        let (runs, workspace) = (self.clone(), workspace.clone());
        let ending = self.control().to_the_end(async move |control: Control| {
            let store = control.catalog_store(&workspace).await?;
            let noted = control.note(run_ended(&workspace, id, how, by)).await?;
            // The end is stored first: a caller that shows the token from now on finds no run to
            // restart.
            let given = runs.shared.resting.ends.given(id);
            let owing = owed.as_ref().map(|owed| (owed, &*given));
            let is_ended = store.runs().end_owing(&workspace, id, how, owing).await;
            let is_ended = is_ended.map_err(ControlError::Store)?;
            // Also if another daemon has ended the run, which it has done only in the store.
            runs.release(id).await;
            if !is_ended {
                return Ok(false);
            }
            noted.done().await;
            if owed.is_some() {
                runs.shared.resting.call();
            }
            Ok(true)
        });
        Ok(ending.await?)
    }

    /// Ends a session and all its runs: no run begins in it any more, and the store forgets its
    /// inputs.
    ///
    /// # Errors
    /// When there is no session with this id, the session has ended before, it is that of the run
    /// of the process itself, or the store fails.
    pub async fn session_end(
        &self,
        workspace: &WorkspaceId,
        id: &str,
        by: &By,
    ) -> Result<(), RunError> {
        let id = self.session_of_others(workspace, id).await?.id;
        let ending = Ending { by: by.clone(), how: RunEnd::Ended, first: None };
        match self.end_session(workspace, id, ending).await? {
            true => Ok(()),
            false => Err(RunError::ended(id)),
        }
    }

    /// Ends a session with its runs. Returns `false` if the session had ended before.
    pub(crate) async fn end_session(
        &self,
        workspace: &WorkspaceId,
        id: SessionId,
        ending: Ending,
    ) -> Result<bool, RunError> {
        let (runs, workspace) = (self.clone(), workspace.clone());
        let end = async move |control: Control| {
            runs.end_with_runs(&control, &workspace, id, ending).await
        };
        Ok(self.control().to_the_end(end).await?)
    }

    /// Ends a session and its runs, in the store at one moment. Returns `false` if the session had
    /// ended before.
    pub(crate) async fn end_with_runs(
        &self,
        control: &Control,
        workspace: &WorkspaceId,
        id: SessionId,
        ending: Ending,
    ) -> Result<bool, ControlError> {
        let Ending { by, how, first } = ending;
        let store = control.catalog_store(workspace).await?;
        let before = store.sessions().find(workspace, id).await.map_err(ControlError::Store)?;
        let owed = self.owed_by(before.as_ref(), how).await?;
        let by_whom = shown_actor(&by);
        let event = AuditEvent::new(kind::SESSION_ENDED, by.clone()).in_workspace(workspace);
        let noted = control.note(event.of_session(id.to_text())).await?;
        let of_run = |run: RunId| run_ended(workspace, run, how, by.clone());
        let of_session = RunFilter::of_session(id);
        let living = RunFilter { status: Some(None), ..of_session };
        let mut noted_runs = BTreeMap::new();
        for run in store.runs().all(workspace, living).await.map_err(ControlError::Store)? {
            noted_runs.insert(run.id.to_text(), control.note(of_run(run.id)).await?);
        }
        let ended = store.sessions().end_owing(workspace, id, how, owed.as_ref()).await;
        if !ended.map_err(ControlError::Store)? {
            return Ok(false);
        }
        let session = store.sessions().find(workspace, id).await.map_err(ControlError::Store)?;
        let at = session.as_ref().and_then(|session| session.ended_at);
        for run in store.runs().all(workspace, of_session).await.map_err(ControlError::Store)? {
            self.release(run.id).await;
            let noted = match noted_runs.remove(&run.id.to_text()) {
                // Another caller has ended this run.
                _ if run.ended.map(|(at, _)| at) != at => continue,
                Some(noted) => noted,
                // The run began after the search for the session's runs.
                None => control.note(of_run(run.id)).await?,
            };
            noted.done().await;
        }
        noted.done().await;
        if let (Some((kind, payload, message)), Some(events)) = (first, self.control().events()) {
            let place = EventPlace { workspace: workspace.clone(), session: id, run: None };
            events.note(&place, kind, &payload, message).await;
        }
        let ended = (EventKind::SessionEnded, json!({ "how": how.as_str(), "by": by_whom }));
        self.tell(workspace, id, None, ended).await;
        if let Some(session) = &session {
            self.wake_of_end(session, how).await;
            if owed.is_some() {
                self.shared.resting.call();
            }
        }
        Ok(true)
    }

    /// The data for resuming the parent session of an ending session. If the data cannot be read
    /// now, the end fails too, and the caller tries both again. If it can never be opened, the
    /// session ends without it.
    async fn owed_by(
        &self,
        session: Option<&SessionRow>,
        how: RunEnd,
    ) -> Result<Option<NewRest>, ControlError> {
        let Some(session) = session else { return Ok(None) };
        match self.owed_above(session, ended_prompt(session, how.as_str())).await {
            Ok(found) => Ok(found),
            Err(RunError::Control(error)) if !is_lost(&error) => Err(error),
            Err(error) => {
                let resume = narthex("sessions resume ID", &[]).in_workspace(&session.workspace);
                tracing::error!(
                    session.id = %session.id,
                    "its parent session will not be resumed when it ends, since the stored inputs \
                     of the parent do not open: {error}; resume the parent with `{resume}`"
                );
                Ok(None)
            }
        }
    }
}

/// The event of the audit for a run's end.
pub(crate) fn run_ended(
    workspace: &WorkspaceId,
    id: RunId,
    how: RunEnd,
    by: By,
) -> AuditEvent<'static> {
    let event = AuditEvent::new(kind::RUN_ENDED, by).in_workspace(workspace);
    event.of_run(id.to_text()).with("how", how.as_str())
}

/// True if the vault can never open a document, however often a caller tries.
fn is_lost(error: &ControlError) -> bool {
    matches!(
        error,
        ControlError::Vault(
            VaultError::Damaged { .. }
                | VaultError::DocumentDamaged { .. }
                | VaultError::VersionGone { .. }
                | VaultError::NotSet(_)
        )
    )
}
