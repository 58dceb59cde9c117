//! Runs for executors of daemons, and the daemons that have these executors.

use std::time::SystemTime;

use narthex_model::{ExecutorName, WorkspaceId};

use super::{RunRow, RunRows, reading::run};
use crate::{
    StatementError,
    database::Step,
    objects::{ms, now_ms},
    statement::{Statement, Value},
};

/// Unclaimed runs for an executor, the oldest first.
const OF_EXECUTOR: Statement = Statement {
    name: "runs.of_executor",
    sql: "SELECT id, workspace, session, pid, agent, parent, token, sealed, created_at, \
          created_by, expires_at, ended_at, outcome, agent_env, has_sockets, driver, \
          claimable, claimed_by, claimed_until, model, runtime, executor, attempts, turn_user, \
          turn FROM runs \
          WHERE executor = $1 AND ended_at = 0 AND claimed_until <= $2 AND expires_at > $2 \
          AND workspace = $4 ORDER BY created_at, id LIMIT $3",
};
/// Runs that wait for an executor that no daemon has for their workspace.
const UNSERVED: Statement = Statement {
    name: "runs.unserved",
    sql: "SELECT id, workspace, session, pid, agent, parent, token, sealed, created_at, \
          created_by, expires_at, ended_at, outcome, agent_env, has_sockets, driver, \
          claimable, claimed_by, claimed_until, model, runtime, executor, attempts, turn_user, \
          turn FROM runs \
          WHERE executor <> '' AND ended_at = 0 AND claimed_until <= $1 AND expires_at > $1 \
          AND NOT EXISTS (SELECT 1 FROM executor_workspaces \
          WHERE executor_workspaces.executor = runs.executor \
          AND executor_workspaces.workspace = runs.workspace AND served_until > $1) \
          ORDER BY created_at, id LIMIT $2",
};

const FORGET: Statement = Statement {
    name: "executor_workspaces.forget",
    sql: "DELETE FROM executor_workspaces WHERE holder = $1 OR served_until <= $2",
};
const SERVE: Statement = Statement {
    name: "executor_workspaces.serve",
    sql: "INSERT INTO executor_workspaces (holder, executor, workspace, served_until) \
          VALUES ($1, $2, $3, $4)",
};

impl RunRows<'_> {
    /// The `limit` oldest unclaimed runs of a workspace for an executor.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn of_executor(
        &self,
        name: &ExecutorName,
        workspace: &WorkspaceId,
        limit: u32,
    ) -> Result<Vec<RunRow>, StatementError> {
        let values = [
            Value::Text(name.as_str()),
            Value::Integer(now_ms()),
            Value::Integer(limit.into()),
            Value::Text(workspace.as_str()),
        ];
        self.database.read(OF_EXECUTOR, &values).await?.iter().map(run).collect()
    }

    /// The `limit` oldest runs of all workspaces that wait for an executor that no daemon has for
    /// their workspace. Daemons report their executors with [`serve`](Self::serve).
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn unserved(&self, limit: u32) -> Result<Vec<RunRow>, StatementError> {
        let values = [Value::Integer(now_ms()), Value::Integer(limit.into())];
        self.database.read(UNSERVED, &values).await?.iter().map(run).collect()
    }

    /// Stores the executors that a daemon has, and their workspaces, valid until a time. Replaces
    /// what the daemon stored before.
    ///
    /// # Errors
    /// When a statement fails.
    pub async fn serve(
        &self,
        holder: &str,
        all: &[(ExecutorName, WorkspaceId)],
        until: SystemTime,
    ) -> Result<(), StatementError> {
        let forget = vec![Value::Text(holder), Value::Integer(now_ms())];
        let mut steps = vec![Step::new(FORGET, forget)];
        for (name, workspace) in all {
            let values = vec![
                Value::Text(holder),
                Value::Text(name.as_str()),
                Value::Text(workspace.as_str()),
                Value::Integer(ms(until)),
            ];
            steps.push(Step::new(SERVE, values));
        }
        self.database.write_steps(&steps).await.map(drop)
    }
}
