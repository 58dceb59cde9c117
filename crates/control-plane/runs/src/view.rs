//! Runs and sessions as their workspace may see them: never a scope, a prompt or a configuration
//! (O81).

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::SystemTime,
};

use narthex_control::ControlError;
use narthex_gateway::RunView;
use narthex_model::{EnvName, Pid, RunEnd, RunId, SessionId, WorkspaceId};
use narthex_store::{RunFilter, RunRow, SessionRow, SuspendedSession};

use crate::{RunError, Runs};

/// One run.
#[derive(Debug, Clone)]
pub struct SeenRun {
    /// The stored run; `None` for the run of the process itself.
    pub row: Option<RunRow>,
    /// The run as the data plane sees it. `None` if the run has ended, or was not used since the
    /// start of the process.
    pub view: Option<Arc<RunView>>,
}

/// One page of a workspace's runs.
#[derive(Debug)]
pub struct RunPage {
    /// The runs, in the order of their numbers; the run of the process itself is the first of the
    /// first page.
    pub items: Vec<SeenRun>,
    /// The number after which the next page begins; `None` if there is no next page.
    pub next: Option<u64>,
}

/// One page of a workspace's sessions.
#[derive(Debug)]
pub struct SessionPage {
    /// The sessions, in the order of their ids.
    pub items: Vec<SessionRow>,
    /// The variables that the creators of the sessions' runs got for the agent, where there are
    /// any.
    pub agent_env: BTreeMap<SessionId, BTreeSet<EnvName>>,
    /// The suspended sessions among them.
    pub suspended: BTreeMap<SessionId, SuspendedSession>,
    /// The id after which the next page begins; `None` if there is no next page.
    pub next: Option<SessionId>,
}

/// Status of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunStatus {
    /// The run is active.
    Running,
    /// The run waits for a claim.
    Pending,
    /// The run has ended.
    Over(RunEnd),
}

impl RunStatus {
    /// Every status.
    pub const ALL: [Self; 6] = narthex_model::every![
        Running,
        Pending,
        Over(RunEnd::Ended),
        Over(RunEnd::Expired),
        Over(RunEnd::Cancelled),
        Over(RunEnd::Failed),
    ];

    /// The spelling in JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Pending => "pending",
            Self::Over(how) => how.as_str(),
        }
    }

    /// The status of a run.
    #[must_use]
    pub fn of(row: &RunRow) -> Self {
        match (row.ended, &row.waiting) {
            (Some((_, how)), _) => Self::Over(how),
            (None, Some(waiting)) if waiting.is_free(SystemTime::now()) => Self::Pending,
            (None, _) => Self::Running,
        }
    }
}

/// The status of a session with these runs. A session without an active run counts as active, too:
/// it rests, or waits for a human to resume it.
pub(crate) fn session_status(
    session: &SessionRow,
    runs: &[RunRow],
    is_suspended: bool,
) -> &'static str {
    let mut living = runs.iter().filter(|run| run.ended.is_none()).map(RunStatus::of).peekable();
    let status = match session.ended_at {
        // The store has no kind of end for older sessions that ended without a run.
        Some(_) => RunStatus::Over(session.how.unwrap_or(RunEnd::Ended)),
        None if is_suspended => return "suspended",
        None if living.peek().is_some() && living.all(|one| one == RunStatus::Pending) => {
            RunStatus::Pending
        }
        None => RunStatus::Running,
    };
    status.as_str()
}

impl SeenRun {
    /// The id of the run.
    #[must_use]
    pub fn id(&self) -> Option<RunId> {
        self.row.as_ref().map(|row| row.id).or_else(|| self.view.as_ref().map(|view| view.id))
    }

    /// The status of the run.
    #[must_use]
    pub fn status(&self) -> RunStatus {
        self.row.as_ref().map_or(RunStatus::Running, RunStatus::of)
    }
}

impl Runs {
    /// The first `limit` runs of a workspace whose numbers come after `after`.
    ///
    /// # Errors
    /// When there is no store or no such workspace, or the store fails.
    pub async fn list(
        &self,
        workspace: &WorkspaceId,
        filter: RunFilter,
        after: u64,
        limit: u32,
    ) -> Result<RunPage, RunError> {
        let store = self.control().catalog_store(workspace).await?;
        let rows = store.runs().page(workspace, filter, after, limit.saturating_add(1)).await;
        let mut rows = rows.map_err(ControlError::Store)?;
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let has_more = rows.len() > limit;
        rows.truncate(limit);
        let next = rows.last().filter(|_| has_more).map(|row| row.pid.get());
        let is_first = after == 0 && filter.session.is_none();
        let local = self.local(workspace).filter(|_| is_first && filter.is_of_living());
        let items = local.into_iter().chain(rows.into_iter().map(|row| self.seen(row)));
        Ok(RunPage { items: items.collect(), next })
    }

    /// One run of a workspace.
    ///
    /// # Errors
    /// When there is no run with this id, or the store fails.
    pub async fn get(&self, workspace: &WorkspaceId, id: &str) -> Result<SeenRun, RunError> {
        let unknown = || RunError::Unknown(id.chars().take(100).collect());
        let id = RunId::parse(id).ok_or_else(unknown)?;
        if let Some(local) = self.local(workspace).filter(|_| id == self.shared.options.local) {
            return Ok(local);
        }
        self.stored(workspace, id).await?.map(|row| self.seen(row)).ok_or_else(unknown)
    }

    /// The first `limit` sessions of a workspace whose ids come after `after`.
    ///
    /// # Errors
    /// When there is no store or no such workspace, or the store fails.
    pub async fn sessions(
        &self,
        workspace: &WorkspaceId,
        after: &str,
        limit: u32,
    ) -> Result<SessionPage, RunError> {
        let store = self.control().catalog_store(workspace).await?;
        let rows = store.sessions().page(workspace, after, limit.saturating_add(1)).await;
        let mut items = rows.map_err(ControlError::Store)?;
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let has_more = items.len() > limit;
        items.truncate(limit);
        let next = items.last().filter(|_| has_more).map(|row| row.id);
        let (agent_env, suspended) = match (items.first(), items.last()) {
            (Some(first), Some(last)) => {
                let told = store.env_bindings().of_sessions(workspace, first.id, last.id).await;
                let aside = store.suspended().between(workspace, first.id, last.id).await;
                (told.map_err(ControlError::Store)?, aside.map_err(ControlError::Store)?)
            }
            _ => (BTreeMap::new(), BTreeMap::new()),
        };
        Ok(SessionPage { items, agent_env, suspended, next })
    }

    /// One session of a workspace with its runs. The number of each of the runs also names the
    /// session.
    ///
    /// # Errors
    /// When there is no session with this id, or the store fails.
    pub async fn session(
        &self,
        workspace: &WorkspaceId,
        id: &str,
    ) -> Result<(SessionRow, Vec<RunRow>), RunError> {
        let unknown = || RunError::UnknownSession(id.chars().take(100).collect());
        let id = SessionId::parse(id).ok_or_else(unknown)?;
        let store = self.control().catalog_store(workspace).await?;
        let found = store.sessions().find(workspace, id).await.map_err(ControlError::Store)?;
        let session = found.ok_or_else(unknown)?;
        let runs = store.runs().all(workspace, RunFilter::of_session(id)).await;
        Ok((session, runs.map_err(ControlError::Store)?))
    }

    /// Finds a session that callers may end or suspend: any but that of the run of the process
    /// itself.
    pub(crate) async fn session_of_others(
        &self,
        workspace: &WorkspaceId,
        id: &str,
    ) -> Result<SessionRow, RunError> {
        let (session, _) = self.session(workspace, id).await?;
        if self.is_own_session(session.id) { Err(RunError::Local) } else { Ok(session) }
    }

    /// A run as it is stored, and the numbers of the runs of its session that ended before it
    /// began; `None` for a run without a row, as that of the process itself.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn numbers(&self, run: &RunView) -> Result<Option<(RunRow, Vec<Pid>)>, RunError> {
        if self.is_local(run) || self.control().store().is_none() {
            return Ok(None);
        }
        let Some(row) = self.stored(&run.workspace, run.id).await? else { return Ok(None) };
        let filter = RunFilter::of_session(row.session);
        let all = self.store()?.runs().all(&run.workspace, filter).await;
        let all = all.map_err(ControlError::Store)?;
        let earlier = all.iter().filter(|one| one.pid < row.pid && one.ended.is_some());
        let earlier = earlier.map(|one| one.pid).collect();
        Ok(Some((row, earlier)))
    }

    /// The row of a run of a workspace.
    pub(crate) async fn stored(
        &self,
        workspace: &WorkspaceId,
        id: RunId,
    ) -> Result<Option<RunRow>, RunError> {
        let found = self.store()?.runs().find(id).await.map_err(ControlError::Store)?;
        Ok(found.filter(|row| row.workspace == *workspace))
    }

    pub(crate) fn seen(&self, row: RunRow) -> SeenRun {
        let view = self.shared.gateway.runs().get(row.id);
        SeenRun { row: Some(row), view }
    }

    /// The run of the process itself, as one of the workspace of the live configuration.
    pub(crate) fn local(&self, workspace: &WorkspaceId) -> Option<SeenRun> {
        let view = self.shared.gateway.runs().get(self.shared.options.local)?;
        self.is_home(workspace).then_some(SeenRun { row: None, view: Some(view) })
    }
}
