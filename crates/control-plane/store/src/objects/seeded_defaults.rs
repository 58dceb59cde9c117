//! Built-in servers that a workspace got before, so that a removed one does not return (E146).

use std::collections::BTreeSet;

use narthex_model::WorkspaceId;

use super::now_ms;
use crate::{
    StatementError,
    database::Database,
    statement::{Statement, Value},
};

const MARK: Statement = Statement {
    name: "seeded_defaults.mark",
    sql: "INSERT INTO seeded_defaults (workspace, name, seeded_at) VALUES ($1, $2, $3) \
          ON CONFLICT (workspace, name) DO NOTHING",
};
const NAMES: Statement = Statement {
    name: "seeded_defaults.names",
    sql: "SELECT name FROM seeded_defaults WHERE workspace = $1",
};

/// Access to the names of seeded built-in servers.
#[derive(Debug, Clone, Copy)]
pub struct SeededDefaults<'a> {
    database: &'a Database,
}

impl<'a> SeededDefaults<'a> {
    pub(crate) fn new(database: &'a Database) -> Self {
        Self { database }
    }

    /// Marks these servers as seeded, all of them or none. Earlier marks keep their time.
    ///
    /// # Errors
    /// `OwnerMissing` if there is no such workspace, or when the statement fails.
    pub async fn mark(
        &self,
        workspace: &WorkspaceId,
        names: impl IntoIterator<Item = &str>,
    ) -> Result<(), StatementError> {
        let now = Value::Integer(now_ms());
        let values = |name| vec![Value::Text(workspace.as_str()), Value::Text(name), now];
        let all: Vec<_> = names.into_iter().map(values).collect();
        self.database.write_each(MARK, &all).await
    }

    /// The names of all servers that were ever seeded.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn names(&self, workspace: &WorkspaceId) -> Result<BTreeSet<String>, StatementError> {
        let rows = self.database.read(NAMES, &[Value::Text(workspace.as_str())]).await?;
        rows.iter().map(|row| row.text("name")).collect()
    }
}
