//! Flags of servers apart from their definitions: the servers that an operator has disabled
//! (E57).

use std::collections::BTreeSet;

use narthex_model::WorkspaceId;

use super::now_ms;
use crate::{
    StatementError,
    database::Database,
    statement::{Statement, Value},
};

const SET_DISABLED: Statement = Statement {
    name: "server_flags.set_disabled",
    sql: "INSERT INTO server_flags (workspace, server, is_disabled, changed_at) \
          VALUES ($1, $2, $3, $4) \
          ON CONFLICT (workspace, server) DO UPDATE \
          SET is_disabled = excluded.is_disabled, changed_at = excluded.changed_at \
          WHERE server_flags.is_disabled <> excluded.is_disabled",
};
const DISABLED: Statement = Statement {
    name: "server_flags.disabled",
    sql: "SELECT server FROM server_flags WHERE workspace = $1 AND is_disabled",
};
const FORGET: Statement = Statement {
    name: "server_flags.forget",
    sql: "DELETE FROM server_flags WHERE workspace = $1 AND server = $2",
};

/// Access to the flags of servers. A flag belongs to a name, whether or not such a server is
/// defined.
#[derive(Debug, Clone, Copy)]
pub struct ServerFlags<'a> {
    database: &'a Database,
}

impl<'a> ServerFlags<'a> {
    pub(crate) fn new(database: &'a Database) -> Self {
        Self { database }
    }

    /// Disables or enables a server, until this is called again.
    ///
    /// # Errors
    /// `OwnerMissing` if there is no such workspace, or when the statement fails.
    pub async fn set_disabled(
        &self,
        workspace: &WorkspaceId,
        server: &str,
        is_disabled: bool,
    ) -> Result<(), StatementError> {
        let values = [
            Value::Text(workspace.as_str()),
            Value::Text(server),
            Value::Boolean(is_disabled),
            Value::Integer(now_ms()),
        ];
        self.database.write(SET_DISABLED, &values).await
    }

    /// The servers that are disabled.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn disabled(
        &self,
        workspace: &WorkspaceId,
    ) -> Result<BTreeSet<String>, StatementError> {
        let rows = self.database.read(DISABLED, &[Value::Text(workspace.as_str())]).await?;
        rows.iter().map(|row| row.text("server")).collect()
    }

    /// Removes the flag of a server, for instance when its user has removed the server.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn forget(
        &self,
        workspace: &WorkspaceId,
        server: &str,
    ) -> Result<(), StatementError> {
        let values = [Value::Text(workspace.as_str()), Value::Text(server)];
        self.database.write(FORGET, &values).await
    }
}
