//! Limits of traffic of workspaces, and daily counts of calls (O100).

use narthex_model::WorkspaceId;

use super::{now_ms, workspace};
use crate::{
    StatementError,
    database::{Database, Step},
    statement::{Row, Statement, Value},
};

const SET_LIMITS: Statement = Statement {
    name: "traffic.set_limits",
    sql: "INSERT INTO workspace_limits (workspace, document, updated_at, updated_by) \
          VALUES ($1, $2, $3, $4) \
          ON CONFLICT (workspace) DO UPDATE SET document = excluded.document, \
          updated_at = excluded.updated_at, updated_by = excluded.updated_by",
};
const LIMITS: Statement = Statement {
    name: "traffic.limits",
    sql: "SELECT document FROM workspace_limits WHERE workspace = $1",
};
// A workspace that was removed meanwhile has no calls any more, and keeps nothing else from being
// stored.
const ADD: Statement = Statement {
    name: "traffic.add",
    sql: "INSERT INTO call_counts (workspace, day, kind, name, calls) \
          SELECT $1, $2, $3, $4, $5 WHERE EXISTS (SELECT 1 FROM workspaces WHERE id = $1) \
          ON CONFLICT (workspace, day, kind, name) DO UPDATE \
          SET calls = call_counts.calls + excluded.calls",
};
const OF_DAY: Statement = Statement {
    name: "traffic.of_day",
    sql: "SELECT workspace, day, kind, name, calls FROM call_counts WHERE day = $1",
};
const OF_WORKSPACE: Statement = Statement {
    name: "traffic.of_workspace",
    sql: "SELECT workspace, day, kind, name, calls FROM call_counts \
          WHERE workspace = $1 AND day = $2",
};
const FORGET: Statement =
    Statement { name: "traffic.forget", sql: "DELETE FROM call_counts WHERE day < $1" };

/// The number of calls of one object on one day.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallCount {
    /// The workspace that owns the object.
    pub workspace: WorkspaceId,
    /// The day, counted from 1970 in UTC.
    pub day: u32,
    /// The kind of the object.
    pub kind: String,
    /// The object's id or name.
    pub name: String,
    /// Number of calls. In an addition, the difference, which may be negative.
    pub calls: i64,
}

/// Access to limits of workspaces, and to daily counts of calls.
#[derive(Debug, Clone, Copy)]
pub struct TrafficRows<'a> {
    database: &'a Database,
}

impl<'a> TrafficRows<'a> {
    pub(crate) fn new(database: &'a Database) -> Self {
        Self { database }
    }

    /// Replaces the limits of a workspace.
    ///
    /// # Errors
    /// `OwnerMissing` if there is no such workspace, or when the statement fails.
    pub async fn set_limits(
        &self,
        workspace: &WorkspaceId,
        document: &str,
        by: &str,
    ) -> Result<(), StatementError> {
        let values = [
            Value::Text(workspace.as_str()),
            Value::Text(document),
            Value::Integer(now_ms()),
            Value::Text(by),
        ];
        self.database.write(SET_LIMITS, &values).await
    }

    /// The limits of a workspace; `None` if it never had any.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn limits(&self, workspace: &WorkspaceId) -> Result<Option<String>, StatementError> {
        let rows = self.database.read(LIMITS, &[Value::Text(workspace.as_str())]).await?;
        rows.first().map(|row| row.text("document")).transpose()
    }

    /// Adds to the stored counts, all of them or none. Counts of a deleted workspace are left out.
    ///
    /// # Errors
    /// When a statement fails.
    pub async fn add(&self, more: &[CallCount]) -> Result<(), StatementError> {
        let steps = more.iter().map(|count| {
            let values = vec![
                Value::Text(count.workspace.as_str()),
                Value::Integer(count.day.into()),
                Value::Text(&count.kind),
                Value::Text(&count.name),
                Value::Integer(count.calls),
            ];
            Step::new(ADD, values)
        });
        self.database.write_steps(&steps.collect::<Vec<_>>()).await.map(drop)
    }

    /// The stored counts of a day, of all workspaces.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn of_day(&self, day: u32) -> Result<Vec<CallCount>, StatementError> {
        let rows = self.database.read(OF_DAY, &[Value::Integer(day.into())]).await?;
        rows.iter().map(count).collect()
    }

    /// The stored counts of a day, of one workspace.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn of_workspace(
        &self,
        workspace: &WorkspaceId,
        day: u32,
    ) -> Result<Vec<CallCount>, StatementError> {
        let values = [Value::Text(workspace.as_str()), Value::Integer(day.into())];
        let rows = self.database.read(OF_WORKSPACE, &values).await?;
        rows.iter().map(count).collect()
    }

    /// Removes the counts of days before this one.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn forget_before(&self, day: u32) -> Result<(), StatementError> {
        self.database.write(FORGET, &[Value::Integer(day.into())]).await
    }
}

fn count(row: &Row) -> Result<CallCount, StatementError> {
    Ok(CallCount {
        workspace: workspace(row)?,
        day: u32::try_from(row.integer("day")?).map_err(|_too_large| row.damaged())?,
        kind: row.text("kind")?,
        name: row.text("name")?,
        calls: row.integer("calls")?,
    })
}
