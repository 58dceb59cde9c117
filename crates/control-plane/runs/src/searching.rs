//! Runs of a workspace for people: the newest first, their numbers, and those below a run.

use narthex_control::ControlError;
use narthex_model::{RunId, SessionId, WorkspaceId};
use narthex_store::{LivingRuns, RunFilter, RunRow, RunSearch, ShareRow};

use crate::{RunError, RunPage, Runs, SeenRun};

impl Runs {
    /// The newest `limit` selected runs of a workspace whose numbers come before `before`. The run
    /// of the process itself is the last one of the last page. `next` of the page is its `before`.
    ///
    /// # Errors
    /// When there is no store or no such workspace, or the store fails.
    pub async fn newest(
        &self,
        workspace: &WorkspaceId,
        search: &RunSearch,
        before: u64,
        limit: u32,
    ) -> Result<RunPage, RunError> {
        let store = self.control().catalog_store(workspace).await?;
        let rows = store.runs().newest(workspace, search, before, limit.saturating_add(1)).await;
        let mut rows = rows.map_err(ControlError::Store)?;
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let has_more = rows.len() > limit;
        rows.truncate(limit);
        let next = rows.last().filter(|_| has_more).map(|row| row.pid.get());
        let RunSearch { filter, agent, driver, parent } = search;
        let is_free = agent.is_empty() && driver.is_none() && parent.is_none();
        let is_wanted = is_free && filter.session.is_none() && filter.is_of_living();
        let local = self.local(workspace).filter(|_| is_wanted && !has_more);
        let items = rows.into_iter().map(|row| self.seen(row)).chain(local);
        Ok(RunPage { items: items.collect(), next })
    }

    /// One run of a workspace: by its id or its number, or `local` for that of the process itself.
    ///
    /// # Errors
    /// When there is no such run, or the store fails.
    pub async fn find(&self, workspace: &WorkspaceId, name: &str) -> Result<SeenRun, RunError> {
        let unknown = || RunError::Unknown(name.chars().take(100).collect());
        if name == "local" {
            return self.local(workspace).ok_or_else(unknown);
        }
        match name.parse::<u64>() {
            Err(_no_number) => self.get(workspace, name).await,
            Ok(0) => self.local(workspace).ok_or_else(unknown),
            Ok(pid) => {
                let page = self.list(workspace, RunFilter::default(), pid - 1, 1).await?;
                let is_it =
                    |run: &SeenRun| run.row.as_ref().is_some_and(|row| row.pid.get() == pid);
                page.items.into_iter().find(is_it).ok_or_else(unknown)
            }
        }
    }

    /// Numbers of active runs of a workspace, with that of the process itself.
    ///
    /// # Errors
    /// When there is no store or no such workspace, or the store fails.
    pub async fn count_living(&self, workspace: &WorkspaceId) -> Result<LivingRuns, RunError> {
        let store = self.control().catalog_store(workspace).await?;
        let counted = store.runs().count_living(workspace).await.map_err(ControlError::Store)?;
        let local = u64::from(self.local(workspace).is_some());
        Ok(LivingRuns { running: counted.running + local, ..counted })
    }

    /// The first `limit` runs below a run of a workspace, in at most `depth` generations, in the
    /// order of their numbers.
    ///
    /// # Errors
    /// When there is no store or no such workspace, or the store fails.
    pub async fn below(
        &self,
        workspace: &WorkspaceId,
        id: RunId,
        depth: u32,
        limit: u32,
    ) -> Result<Vec<RunRow>, RunError> {
        let store = self.control().catalog_store(workspace).await?;
        let rows = store.runs().below(workspace, id, depth, limit).await;
        Ok(rows.map_err(ControlError::Store)?)
    }

    /// The first `limit` shares of a session of a workspace, in the order of their ids.
    ///
    /// # Errors
    /// When there is no store or no such workspace, or the store fails.
    pub async fn shares_of(
        &self,
        workspace: &WorkspaceId,
        session: SessionId,
        limit: u32,
    ) -> Result<Vec<ShareRow>, RunError> {
        let store = self.control().catalog_store(workspace).await?;
        let rows = store.shares().of_session(workspace, session, limit).await;
        Ok(rows.map_err(ControlError::Store)?)
    }
}
