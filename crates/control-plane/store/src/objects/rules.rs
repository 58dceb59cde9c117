//! The rules of workspaces (D13), as written.

use std::time::SystemTime;

use narthex_model::WorkspaceId;

use super::{now_ms, time, workspace};
use crate::{
    StatementError,
    database::{Database, Step},
    statement::{Row, Statement, Value},
};

const FIND: Statement = Statement {
    name: "rules.find",
    sql: "SELECT workspace, document, revision, updated_at, updated_by FROM workspace_rules \
          WHERE workspace = $1",
};
const HEADS: Statement = Statement {
    name: "rules.heads",
    sql: "SELECT workspace, revision, updated_at FROM workspace_rules",
};
const FIRST: Statement = Statement {
    name: "rules.first",
    sql: "INSERT INTO workspace_rules (workspace, document, revision, updated_at, updated_by) \
          SELECT $1, $2, 1, $3, $4 \
          WHERE NOT EXISTS (SELECT 1 FROM workspace_rules WHERE workspace = $1)",
};
const NEXT: Statement = Statement {
    name: "rules.next",
    sql: "UPDATE workspace_rules SET document = $2, revision = revision + 1, updated_at = $3, \
          updated_by = $4 WHERE workspace = $1 AND revision = $5 AND updated_at = $6",
};

/// The rules of a workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RulesRow {
    /// The workspace that owns the rules.
    pub workspace: WorkspaceId,
    /// The text of the rules; empty if they were cleared.
    pub document: String,
    /// The number of writes, and the time of the last one.
    pub head: RulesHead,
    /// The principal of the last write.
    pub updated_by: String,
}

/// Distinguishes one state of a workspace's rules from all others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RulesHead {
    /// Number of writes, from 1.
    pub revision: u64,
    /// Time of the last write.
    pub updated_at: SystemTime,
}

/// Access to the rules of workspaces.
#[derive(Debug, Clone, Copy)]
pub struct WorkspaceRulesRows<'a> {
    database: &'a Database,
}

impl<'a> WorkspaceRulesRows<'a> {
    pub(crate) fn new(database: &'a Database) -> Self {
        Self { database }
    }

    /// The rules of a workspace; `None` if it never had any.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn find(&self, id: &WorkspaceId) -> Result<Option<RulesRow>, StatementError> {
        let rows = self.database.read(FIND, &[Value::Text(id.as_str())]).await?;
        let read = |row: &Row| {
            Ok(RulesRow {
                workspace: workspace(row)?,
                document: row.text("document")?,
                head: head(row)?,
                updated_by: row.text("updated_by")?,
            })
        };
        rows.first().map(read).transpose()
    }

    /// The current revisions of rules, of all workspaces that ever had any.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn heads(&self) -> Result<Vec<(WorkspaceId, RulesHead)>, StatementError> {
        let rows = self.database.read(HEADS, &[]).await?;
        rows.iter().map(|row| Ok((workspace(row)?, head(row)?))).collect()
    }

    /// Replaces the rules that were read, or writes the first ones. Returns `false` and changes
    /// nothing if other rules are stored by now.
    ///
    /// # Errors
    /// `OwnerMissing` if there is no such workspace, or when the statement fails.
    pub async fn write(
        &self,
        id: &WorkspaceId,
        read: Option<RulesHead>,
        document: &str,
        by: &str,
    ) -> Result<bool, StatementError> {
        let mut values = vec![
            Value::Text(id.as_str()),
            Value::Text(document),
            Value::Integer(now_ms()),
            Value::Text(by),
        ];
        let step = match read {
            None => Step::must_change(FIRST, values),
            Some(RulesHead { revision, updated_at }) => {
                let revision = i64::try_from(revision).unwrap_or(i64::MAX);
                values.extend([Value::Integer(revision), Value::Integer(super::ms(updated_at))]);
                Step::must_change(NEXT, values)
            }
        };
        self.database.write_steps(&[step]).await
    }
}

fn head(row: &Row) -> Result<RulesHead, StatementError> {
    let revision = u64::try_from(row.integer("revision")?).map_err(|_negative| row.damaged())?;
    Ok(RulesHead { revision, updated_at: time(row, "updated_at")? })
}
