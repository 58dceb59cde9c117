//! Sessions that callers suspend and resume. A suspended session resumes from the configuration of
//! its last run, other sessions resume from their inputs (R-M23, R-M24).
//!
//! A suspended session keeps its run's frozen configuration, by references: the next run resolves
//! the configuration anew, with the newest values of its secrets (R-E38, A-10).

use std::{
    collections::BTreeMap,
    time::{Duration, SystemTime},
};

use narthex_audit::{ActorKind, AuditEvent, kind};
use narthex_catalog::RunRequest;
use narthex_control::{By, ControlError};
use narthex_events::EventKind;
use narthex_model::{Pid, RunEnd, RunId, SessionId, WorkspaceId};
use narthex_store::{RunFilter, RunRow, SessionRow, SuspendedSession};
use serde_json::{Map, Value, json};

use crate::{
    ATTEMPTS, Created, Creator, RunError, Runs,
    create::{creator::shown_actor, request::Former},
    end::run_ended,
    frozen::{Inputs, Suspended, session_place, suspended_place},
};

/// The fields that a request may set for the next run of a session.
const ASKED: [&str; 6] = ["prompt", "scope", "user", "expires_in", "direct", "sockets"];

impl Runs {
    /// Suspends a session: its runs end as by [`end`](Self::end), its children stay active, and
    /// only [`session_resume`](Self::session_resume) resumes it. The configuration of its newest
    /// run is stored, by references.
    ///
    /// # Errors
    /// When there is no session with this id, the session has ended, it is suspended already, it is
    /// that of the run of the process itself, or the store or the vault fails.
    pub async fn session_suspend(
        &self,
        workspace: &WorkspaceId,
        id: &str,
        by: &By,
    ) -> Result<(), RunError> {
        let session = self.session_of_others(workspace, id).await?;
        let id = session.id;
        if session.ended_at.is_some() {
            return Err(RunError::ended(id));
        }
        let (runs, workspace, by) = (self.clone(), workspace.clone(), by.clone());
        let suspending = async move { runs.suspend_with_runs(&workspace, id, by).await };
        // The task completes also if the caller disconnects: by then, the session's runs may have
        // ended in the store.
        let done = self.control().spawn(suspending).await;
        done.unwrap_or_else(|error| Err(ControlError::Bug(error).into()))
    }

    /// Suspends a session, and tries again if one of its runs has ended or started meanwhile.
    async fn suspend_with_runs(
        &self,
        workspace: &WorkspaceId,
        id: SessionId,
        by: By,
    ) -> Result<(), RunError> {
        let sessions = self.store()?.sessions();
        for _ in 0..ATTEMPTS {
            if self.try_suspend(workspace, id, by.clone()).await? {
                return Ok(());
            }
            let found = sessions.find(workspace, id).await.map_err(ControlError::Store)?;
            let has_ended = found.is_none_or(|session| session.ended_at.is_some());
            if has_ended || self.suspended(workspace, id).await?.is_some() {
                let why = "it has just ended, or is suspended already";
                return Err(RunError::over(id, why));
            }
        }
        let why = "its runs start and end at the same time; try again";
        Err(RunError::over(id, why))
    }

    /// Suspends a session with these runs. Returns `false`, and changes nothing, if the session has
    /// ended, is suspended already, or has other runs at the time of the change.
    async fn try_suspend(
        &self,
        workspace: &WorkspaceId,
        id: SessionId,
        by: By,
    ) -> Result<bool, RunError> {
        let store = self.control().catalog_store(workspace).await?;
        let event = AuditEvent::new(kind::SESSION_SUSPENDED, by.clone()).in_workspace(workspace);
        let noted = self.control().note(event.of_session(id.to_text())).await?;
        let living = RunFilter { status: Some(None), ..RunFilter::of_session(id) };
        let living = store.runs().all(workspace, living).await.map_err(ControlError::Store)?;
        let mut ended = BTreeMap::new();
        for run in &living {
            let event = run_ended(workspace, run.id, RunEnd::Ended, by.clone());
            ended.insert(run.id.to_text(), self.control().note(event).await?);
        }
        let last = living.last();
        let kept = SuspendedSession {
            session: id,
            run: last.map(|run| run.id),
            sealed: self.sealed_for_suspension(workspace, id, last).await?,
            at: now_in_ms(),
            by: by.id.to_string(),
        };
        let is_done = store.suspended().suspend(workspace, &kept).await;
        if !is_done.map_err(ControlError::Store)? {
            return Ok(false);
        }
        let mut pids = Vec::new();
        let all = store.runs().all(workspace, RunFilter::of_session(id)).await;
        for run in all.map_err(ControlError::Store)? {
            if run.ended.is_none() {
                // The session has been resumed since then.
                continue;
            }
            self.release(run.id).await;
            // A run with another time of end was ended by another caller, who recorded that end.
            if run.ended.map(|(at, _)| at) == Some(kept.at)
                && let Some(one) = ended.remove(&run.id.to_text())
            {
                one.done().await;
                pids.push(run.pid.get());
            }
        }
        noted.done().await;
        let told = json!({ "pids": pids, "by": shown_actor(&by) });
        self.tell(workspace, id, None, (EventKind::SessionSuspended, told)).await;
        Ok(true)
    }

    /// The configuration of a run, sealed for its session; empty without a run.
    async fn sealed_for_suspension(
        &self,
        workspace: &WorkspaceId,
        id: SessionId,
        run: Option<&RunRow>,
    ) -> Result<String, RunError> {
        let Some(run) = run else { return Ok(String::new()) };
        let kept = Suspended::new(self.frozen(run).await?);
        self.seal(workspace, &suspended_place(id), &kept.text()).await
    }

    /// Resumes a session without an active run, by a new run with the members `asked`: `prompt`,
    /// `scope`, `user`, `expires_in`, `direct`, `sockets`, as in a document of
    /// [`create`](Self::create). For a session that was suspended with a run, missing members are
    /// as in that run. Servers that fail are left out, and reported in the session's events.
    ///
    /// # Errors
    /// When there is no session with this id, the session has ended, one of its runs is active, the
    /// next run is refused for another reason than a server that fails, or the store or the vault
    /// fails.
    pub async fn session_resume(
        &self,
        workspace: &WorkspaceId,
        id: &str,
        (mut asked, by): (Map<String, Value>, Creator),
    ) -> Result<Created, RunError> {
        let (session, _) = self.session(workspace, id).await?;
        if let Some(other) = asked.keys().find(|key| !ASKED.contains(&key.as_str())) {
            let known = ASKED.join("`, `");
            let text = format!(
                "`{}` is not a member of a request to resume a session; the members are `{known}`",
                narthex_model::json::shortened(other)
            );
            return Err(RunError::Malformed(text));
        }
        if self.is_own_session(session.id) {
            return Err(RunError::Local);
        }
        if self.has_living_run(workspace, session.id, None).await? {
            let why = "it has an active run; suspend the session or end that run first, or create \
                       another run from a request with the type `resume_session`";
            return Err(RunError::over(session.id, why));
        }
        asked.insert("type".to_owned(), "resume_session".into());
        asked.insert("session_id".to_owned(), session.id.to_text().into());
        self.create(workspace, &Value::from(asked).to_string(), by).await
    }

    /// The suspension of a session; `None` if it is not suspended.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn suspended(
        &self,
        workspace: &WorkspaceId,
        id: SessionId,
    ) -> Result<Option<SuspendedSession>, RunError> {
        let found = self.store()?.suspended().find(workspace, id).await;
        Ok(found.map_err(ControlError::Store)?)
    }

    async fn pids(
        &self,
        workspace: &WorkspaceId,
        session: SessionId,
    ) -> Result<Vec<(RunId, Pid)>, RunError> {
        let runs = self.store()?.runs().all(workspace, RunFilter::of_session(session)).await;
        let runs = runs.map_err(ControlError::Store)?;
        Ok(runs.iter().map(|run| (run.id, run.pid)).collect())
    }

    /// The session to resume, its inputs (O85), and the state that it resumes from.
    pub(crate) async fn resumed(
        &self,
        workspace: &WorkspaceId,
        request: &RunRequest,
        by: &Creator,
    ) -> Result<(SessionRow, Inputs, Former), RunError> {
        let text = request.session_id.as_deref().unwrap_or_default();
        let unknown = || RunError::UnknownSession(text.chars().take(100).collect());
        let id = SessionId::parse(text).ok_or_else(unknown)?;
        let sessions = self.store()?.sessions();
        let found = sessions.find(workspace, id).await.map_err(ControlError::Store)?;
        let session = found.ok_or_else(unknown)?;
        let over = |why| RunError::over(id, why);
        if session.ended_at.is_some() {
            return Err(RunError::not_resumed(id));
        }
        let denied =
            |message: &str| RunError::Denied { field: "session_id", message: message.to_owned() };
        if session.agent.is_empty() && !by.is_operator() {
            let message = "the session has servers of its own, and only an operator can resume it";
            return Err(denied(message));
        }
        if request.agent_name.as_ref().is_some_and(|name| name.as_str() != session.agent) {
            return Err(over("it belongs to another agent; leave `agent_name` out"));
        }
        let suspended = self.suspended(workspace, id).await?;
        if suspended.is_some() && is_client(by) {
            return Err(RunError::Suspended(id));
        }
        let kept = self.opened(workspace, suspended.as_ref()).await?;
        if kept.is_some() && request.is_direct {
            let message = "the scope of a suspended session is never given out; leave it out";
            return Err(RunError::Denied { field: "direct", message: message.to_owned() });
        }
        let inputs = match session.sealed.as_str() {
            // Earlier versions did not store servers of a run's own.
            "" => Inputs::default(),
            sealed => {
                let place = session_place(id);
                let opened = self.vault()?.open_document(workspace, &place, sealed).await;
                let inputs = Inputs::read(&opened.map_err(ControlError::from)?);
                inputs.ok_or_else(|| over("its stored inputs cannot be read any more"))?
            }
        };
        let kept_inputs = kept.as_ref().and_then(|kept| kept.of.agent()).map(|of| &of.inputs);
        if [Some(&inputs), kept_inputs].into_iter().flatten().any(|of| !may_work_in(by, of)) {
            let message = "the session works in a folder that an operator chose, and only an \
                           operator can resume it";
            return Err(denied(message));
        }
        let pids = self.pids(workspace, id).await?.into_iter().map(pid_of).collect();
        let suspended_at = suspended.map(|suspended| suspended.at);
        Ok((session, inputs, Former { pids, suspended_at, configuration: kept }))
    }

    async fn opened(
        &self,
        workspace: &WorkspaceId,
        suspended: Option<&SuspendedSession>,
    ) -> Result<Option<Suspended>, RunError> {
        let Some(suspended) = suspended.filter(|one| !one.sealed.is_empty()) else {
            return Ok(None);
        };
        let (id, place) = (suspended.session, suspended_place(suspended.session));
        let opened = self.vault()?.open_document(workspace, &place, &suspended.sealed).await;
        let why = "its stored configuration cannot be read any more; end the session";
        let read = Suspended::read(&opened.map_err(ControlError::from)?);
        read.map(Some).ok_or(RunError::over(id, why))
    }
}

/// True for a registered client, whose calls begin its runs: a call is no request to resume a
/// suspended session.
fn is_client(by: &Creator) -> bool {
    matches!(by, Creator::Member(by, _) if by.kind == ActorKind::Client)
}

/// True if the creator may resume a session with these inputs: only operators may use folders of
/// the host (S2). A session that resumes by itself does so in the name of its creator.
fn may_work_in(by: &Creator, inputs: &Inputs) -> bool {
    let is_given = inputs.project_dir.is_some() && !inputs.has_own_folder;
    !is_given || by.is_operator() || matches!(by, Creator::Platform(_))
}

/// The current time, with the precision of the store.
fn now_in_ms() -> SystemTime {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    SystemTime::UNIX_EPOCH
        + Duration::from_secs(since.as_secs())
        + Duration::from_millis(since.subsec_millis().into())
}

fn pid_of((_, pid): (RunId, Pid)) -> Pid {
    pid
}
