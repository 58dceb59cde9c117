//! Finds runs for people: the newest first, by agent, driver or parent, and those below a run.

use narthex_model::{PrincipalId, RunId, WorkspaceId};

use super::{RunFilter, RunRow, RunRows, reading::run};
use crate::{
    StatementError,
    objects::now_ms,
    statement::{Row, Statement, Value},
};

const NEWEST: Statement = Statement {
    name: "runs.newest",
    sql: "SELECT id, workspace, session, pid, agent, parent, token, sealed, created_at, \
          created_by, expires_at, ended_at, outcome, agent_env, has_sockets, driver, \
          claimable, claimed_by, claimed_until, model, runtime, executor, attempts, turn_user, \
          turn FROM runs \
          WHERE workspace = $1 AND pid < $2 AND ($4 = 'all' OR outcome = $4) \
          AND ($5 = 'all' OR $5 = CASE WHEN claimable = 1 AND claimed_until <= $6 \
          THEN 'waits' ELSE 'begun' END) AND ($7 = '' OR session = $7) \
          AND ($8 = '' OR agent = $8) AND ($9 = '' OR driver = $9) \
          AND ($10 = '' OR parent = $10) ORDER BY pid DESC LIMIT $3",
};
/// Active runs in the index by their end, up to a limit. An expression about the workspace is no
/// part of an index: with the column itself, SQLite reads all runs of the workspace.
pub(in crate::objects) const COUNT_LIVING: Statement = Statement {
    name: "runs.count_living",
    sql: "SELECT waits, COUNT(*) AS runs FROM (SELECT CAST(CASE WHEN claimable = 1 \
          AND claimed_until <= $2 THEN 1 ELSE 0 END AS BIGINT) AS waits FROM runs \
          WHERE ended_at = 0 AND workspace || '' = $1 LIMIT $3) AS living GROUP BY waits",
};
/// SQLite reads the tables of a `CROSS JOIN` in their order. In another order it reads all sessions
/// and runs of the workspace for each generation.
pub(in crate::objects) const BELOW: Statement = Statement {
    name: "runs.below",
    sql: "WITH RECURSIVE tree (session, depth) AS (SELECT id, CAST(1 AS BIGINT) FROM sessions \
          WHERE workspace = $1 AND parent = $2 UNION SELECT sessions.id, tree.depth + 1 \
          FROM tree CROSS JOIN runs CROSS JOIN sessions WHERE tree.depth < $4 \
          AND runs.workspace = $1 AND runs.session = tree.session \
          AND sessions.workspace = $1 AND sessions.parent = runs.id) \
          SELECT id, workspace, runs.session AS session, pid, agent, parent, token, sealed, \
          created_at, created_by, expires_at, ended_at, outcome, agent_env, has_sockets, driver, \
          claimable, claimed_by, claimed_until, model, runtime, executor, attempts, turn_user, \
          turn FROM tree CROSS JOIN runs WHERE runs.session = tree.session \
          AND workspace = $1 ORDER BY pid LIMIT $3",
};

/// Maximum number of runs that are counted.
const COUNTED_MAX: u32 = 10_000;

/// Selects runs of a workspace for people.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunSearch {
    /// The session and the status.
    pub filter: RunFilter,
    /// Name of the agent; an empty text selects all.
    pub agent: String,
    /// The human who drives the run; `None` for all.
    pub driver: Option<PrincipalId>,
    /// The parent run; `None` for all.
    pub parent: Option<RunId>,
}

/// Numbers of active runs, up to 10,000 altogether.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LivingRuns {
    /// Those that run.
    pub running: u64,
    /// Those that wait for a claim.
    pub pending: u64,
}

impl RunRows<'_> {
    /// The newest `limit` selected runs of a workspace whose numbers come before `before`.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn newest(
        &self,
        workspace: &WorkspaceId,
        search: &RunSearch,
        before: u64,
        limit: u32,
    ) -> Result<Vec<RunRow>, StatementError> {
        let before = i64::try_from(before).unwrap_or(i64::MAX);
        let RunSearch { filter, agent, driver, parent } = search;
        let session = filter.session.map(|one| one.to_text()).unwrap_or_default();
        let parent = parent.map(RunId::to_text).unwrap_or_default();
        let values = [
            Value::Text(workspace.as_str()),
            Value::Integer(before),
            Value::Integer(limit.into()),
            Value::Text(filter.outcome()),
            Value::Text(filter.waiting()),
            Value::Integer(now_ms()),
            Value::Text(&session),
            Value::Text(agent),
            Value::Text(driver.as_ref().map_or("", PrincipalId::as_str)),
            Value::Text(&parent),
        ];
        self.database.read(NEWEST, &values).await?.iter().map(run).collect()
    }

    /// Numbers of active runs of a workspace.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn count_living(
        &self,
        workspace: &WorkspaceId,
    ) -> Result<LivingRuns, StatementError> {
        let values = [
            Value::Text(workspace.as_str()),
            Value::Integer(now_ms()),
            Value::Integer(COUNTED_MAX.into()),
        ];
        let rows = self.database.read(COUNT_LIVING, &values).await?;
        let mut counted = LivingRuns::default();
        for row in &rows {
            let count = u64::try_from(row.integer("runs")?).map_err(|_negative| row.damaged())?;
            match row.integer("waits")? {
                0 => counted.running = count,
                _ => counted.pending = count,
            }
        }
        Ok(counted)
    }

    /// The first `limit` runs below a run, in at most `depth` generations, in the order of their
    /// numbers: all runs of the sessions that the run or a run below it has created.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn below(
        &self,
        workspace: &WorkspaceId,
        id: RunId,
        depth: u32,
        limit: u32,
    ) -> Result<Vec<RunRow>, StatementError> {
        let id = id.to_text();
        let values = [
            Value::Text(workspace.as_str()),
            Value::Text(&id),
            Value::Integer(limit.into()),
            Value::Integer(depth.into()),
        ];
        let rows: Vec<Row> = self.database.read(BELOW, &values).await?;
        rows.iter().map(run).collect()
    }
}
