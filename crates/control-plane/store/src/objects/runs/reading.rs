//! Reads runs.

use std::{collections::HashSet, time::SystemTime};

use narthex_model::{ExecutorName, Pid, PrincipalId, RunEnd, RunId, SessionId, WorkspaceId};

use super::{RunRow, RunRows, Waiting, turns::turn};
use crate::{
    StatementError,
    database::Step,
    objects::{env_bindings::env_names, id, ms, now_ms, optional_time, time, workspace},
    statement::{Row, Statement, Value},
};

const FIND: Statement = Statement {
    name: "runs.find",
    sql: "SELECT id, workspace, session, pid, agent, parent, token, sealed, created_at, \
          created_by, expires_at, ended_at, outcome, agent_env, has_sockets, driver, \
          claimable, claimed_by, claimed_until, model, runtime, executor, attempts, turn_user, \
          turn FROM runs WHERE id = $1",
};
const LIVE: Statement = Statement {
    name: "runs.live",
    sql: "SELECT id, workspace, expires_at, has_sockets FROM runs WHERE ended_at = 0 AND id > $1 \
          ORDER BY id LIMIT $2",
};
const PAGE: Statement = Statement {
    name: "runs.page",
    sql: "SELECT id, workspace, session, pid, agent, parent, token, sealed, created_at, \
          created_by, expires_at, ended_at, outcome, agent_env, has_sockets, driver, \
          claimable, claimed_by, claimed_until, model, runtime, executor, attempts, turn_user, \
          turn FROM runs \
          WHERE workspace = $1 AND pid > $2 AND ($4 = 'all' OR outcome = $4) \
          AND ($5 = 'all' OR $5 = CASE WHEN claimable = 1 AND claimed_until <= $6 \
          THEN 'waits' ELSE 'begun' END) ORDER BY pid LIMIT $3",
};
/// The sum is no part of an index: with the column itself, SQLite reads all runs of the workspace.
pub(in crate::objects) const PAGE_OF_SESSION: Statement = Statement {
    name: "runs.page_of_session",
    sql: "SELECT id, workspace, session, pid, agent, parent, token, sealed, created_at, \
          created_by, expires_at, ended_at, outcome, agent_env, has_sockets, driver, \
          claimable, claimed_by, claimed_until, model, runtime, executor, attempts, turn_user, \
          turn FROM runs \
          WHERE workspace = $1 AND pid + 0 > $2 AND ($4 = 'all' OR outcome = $4) \
          AND ($5 = 'all' OR $5 = CASE WHEN claimable = 1 AND claimed_until <= $6 \
          THEN 'waits' ELSE 'begun' END) AND session = $7 ORDER BY pid + 0 LIMIT $3",
};

const LIVING: Statement = Statement {
    name: "runs.living",
    sql: "SELECT id FROM runs WHERE ended_at = 0 AND id > $1 ORDER BY id LIMIT $2",
};

const ENDED_SINCE: Statement = Statement {
    name: "runs.ended_since",
    sql: "SELECT id FROM runs WHERE ended_at >= $1 ORDER BY ended_at, id LIMIT $2",
};

/// Selects runs of a workspace.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RunFilter {
    /// The session; `None` for all.
    pub session: Option<SessionId>,
    /// The status: active, or ended with this outcome; `None` for all.
    pub status: Option<Option<RunEnd>>,
    /// True for runs that wait for a claim, false for the others; `None` for all.
    pub waits: Option<bool>,
}

impl RunFilter {
    /// All runs of a session.
    #[must_use]
    pub fn of_session(session: SessionId) -> Self {
        Self { session: Some(session), ..Self::default() }
    }

    /// True if active runs are selected.
    #[must_use]
    pub fn is_of_living(&self) -> bool {
        matches!(self.status, None | Some(None)) && self.waits != Some(true)
    }

    pub(super) fn outcome(&self) -> &'static str {
        match self.status {
            None => "all",
            Some(how) => how.map_or("", RunEnd::as_str),
        }
    }

    pub(super) fn waiting(&self) -> &'static str {
        match self.waits {
            None => "all",
            Some(true) => "waits",
            Some(false) => "begun",
        }
    }
}

/// An active run: the data about its end and its sockets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveRun {
    /// The run's id.
    pub id: RunId,
    /// The workspace that owns the run.
    pub workspace: WorkspaceId,
    /// End of the run's time.
    pub expires_at: SystemTime,
    /// True if the run has Unix sockets.
    pub has_sockets: bool,
}

/// Number of rows per read where all are needed.
const BATCH: u32 = 1000;

impl RunRows<'_> {
    /// The run of this id, in any workspace, if it exists.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn find(&self, id: RunId) -> Result<Option<RunRow>, StatementError> {
        let id = id.to_text();
        let rows = self.database.read(FIND, &[Value::Text(&id)]).await?;
        rows.first().map(run).transpose()
    }

    /// The first `limit` active runs of all workspaces whose ids come after `after`.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn live(
        &self,
        after: Option<RunId>,
        limit: u32,
    ) -> Result<Vec<LiveRun>, StatementError> {
        let after = after.map(RunId::to_text).unwrap_or_default();
        let values = [Value::Text(&after), Value::Integer(limit.into())];
        let rows = self.database.read(LIVE, &values).await?;
        let live = |row: &Row| {
            Ok(LiveRun {
                id: id(row, "id", RunId::parse)?,
                workspace: workspace(row)?,
                expires_at: time(row, "expires_at")?,
                has_sockets: row.integer("has_sockets")? != 0,
            })
        };
        rows.iter().map(live).collect()
    }

    /// All runs of a workspace that a filter selects, in the order of their numbers.
    ///
    /// # Errors
    /// When a statement fails.
    pub async fn all(
        &self,
        workspace: &WorkspaceId,
        filter: RunFilter,
    ) -> Result<Vec<RunRow>, StatementError> {
        let mut all: Vec<RunRow> = Vec::new();
        loop {
            let after = all.last().map_or(0, |row| row.pid.get());
            let page = self.page(workspace, filter, after, BATCH).await?;
            if page.is_empty() {
                return Ok(all);
            }
            all.extend(page);
        }
    }

    /// The active runs of all workspaces. A run that is missing in the result has ended, or was
    /// deleted with its workspace. Reads an index in pages, which costs less than a statement that
    /// names each run of a daemon.
    ///
    /// # Errors
    /// When a statement fails.
    pub async fn living(&self) -> Result<HashSet<RunId>, StatementError> {
        let (mut living, mut after) = (HashSet::new(), String::new());
        loop {
            let values = [Value::Text(&after), Value::Integer(BATCH.into())];
            let rows = self.database.read(LIVING, &values).await?;
            for row in &rows {
                living.insert(id(row, "id", RunId::parse)?);
            }
            match rows.last().filter(|_| rows.len() == BATCH as usize) {
                Some(last) => after = last.text("id")?,
                None => return Ok(living),
            }
        }
    }

    /// Runs that ended at `since` or later, by the clocks of the daemons that ended them; `None` if
    /// there are too many for one page.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn ended_since(
        &self,
        since: SystemTime,
    ) -> Result<Option<HashSet<RunId>>, StatementError> {
        let values = [Value::Integer(ms(since)), Value::Integer(BATCH.into())];
        let rows = self.database.read(ENDED_SINCE, &values).await?;
        if rows.len() == BATCH as usize {
            return Ok(None);
        }
        rows.iter().map(|row| id(row, "id", RunId::parse)).collect::<Result<_, _>>().map(Some)
    }

    /// Returns a run as it is after these steps; `None`, and nothing is stored, if one of the steps
    /// comes to nothing.
    pub(super) async fn read_after(
        &self,
        steps: &[Step<'_>],
        id: Value<'_>,
    ) -> Result<Option<RunRow>, StatementError> {
        let rows = self.database.write_then_read(steps, FIND, vec![id]).await?;
        rows.iter().flatten().next().map(run).transpose()
    }

    /// The first `limit` selected runs of a workspace whose numbers come after `after`.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn page(
        &self,
        workspace: &WorkspaceId,
        filter: RunFilter,
        after: u64,
        limit: u32,
    ) -> Result<Vec<RunRow>, StatementError> {
        let after = i64::try_from(after).unwrap_or(i64::MAX);
        let mut values = vec![
            Value::Text(workspace.as_str()),
            Value::Integer(after),
            Value::Integer(limit.into()),
            Value::Text(filter.outcome()),
            Value::Text(filter.waiting()),
            Value::Integer(now_ms()),
        ];
        let session = filter.session.map(SessionId::to_text);
        let rows = match &session {
            None => self.database.read(PAGE, &values).await?,
            Some(session) => {
                values.push(Value::Text(session));
                self.database.read(PAGE_OF_SESSION, &values).await?
            }
        };
        rows.iter().map(run).collect()
    }
}

pub(super) fn run(row: &Row) -> Result<RunRow, StatementError> {
    let driver = row.text("driver")?;
    let driver = (!driver.is_empty()).then(|| PrincipalId::new(&driver));
    let pid = u64::try_from(row.integer("pid")?).ok().and_then(Pid::counted);
    let parent = match row.text("parent")?.as_str() {
        "" => None,
        _ => Some(id(row, "parent", RunId::parse)?),
    };
    let ended = match optional_time(row, "ended_at")? {
        None => None,
        Some(at) => {
            let how = RunEnd::parse(&row.text("outcome")?).ok_or_else(|| row.damaged())?;
            Some((at, how))
        }
    };
    Ok(RunRow {
        id: id(row, "id", RunId::parse)?,
        workspace: workspace(row)?,
        session: id(row, "session", SessionId::parse)?,
        pid: pid.ok_or_else(|| row.damaged())?,
        agent: row.text("agent")?,
        parent,
        agent_env: env_names(row)?,
        token: row.text("token")?,
        sealed: row.text("sealed")?,
        created_at: time(row, "created_at")?,
        created_by: row.text("created_by")?,
        has_sockets: row.integer("has_sockets")? != 0,
        driver: driver.transpose().map_err(|_invalid| row.damaged())?,
        expires_at: time(row, "expires_at")?,
        turn: turn(row)?,
        waiting: waiting(row)?,
        ended,
    })
}

fn waiting(row: &Row) -> Result<Option<Waiting>, StatementError> {
    if row.integer("claimable")? == 0 {
        return Ok(None);
    }
    let claimed_by = row.text("claimed_by")?;
    let claim = optional_time(row, "claimed_until")?.map(|until| (claimed_by, until));
    let executor = row.text("executor")?;
    let executor = (!executor.is_empty()).then(|| ExecutorName::new(&executor));
    Ok(Some(Waiting {
        model: row.text("model")?,
        runtime: row.text("runtime")?,
        executor: executor.transpose().map_err(|_invalid| row.damaged())?,
        attempts: u32::try_from(row.integer("attempts")?).map_err(|_negative| row.damaged())?,
        claim,
    }))
}
