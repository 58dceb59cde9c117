//! Bindings of secrets to variables in the environment of agents themselves.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::SystemTime,
};

use narthex_model::{EnvBindingId, EnvName, EnvScope, SecretName, SessionId, WorkspaceId};

use super::{id, now_ms, time};
use crate::{
    StatementError,
    database::{Database, Step},
    statement::{Row, Statement, Value},
};

const ALL: Statement = Statement {
    name: "env_bindings.all",
    sql: "SELECT scope, scope_id, name, secret, created_at, updated_at, updated_by \
          FROM env_bindings WHERE workspace = $1",
};
/// An agent is named where the scope is one.
const CREATE: Statement = Statement {
    name: "env_bindings.create",
    sql: "INSERT INTO env_bindings (workspace, scope, scope_id, name, secret, agent, created_at, \
          updated_at, updated_by) \
          VALUES ($1, $2, $3, $4, $5, CASE WHEN $2 = 'agent' THEN $3 ELSE NULL END, $6, $6, $7)",
};
const REPLACE: Statement = Statement {
    name: "env_bindings.replace",
    sql: "UPDATE env_bindings SET secret = $5, updated_at = $6, updated_by = $7 \
          WHERE workspace = $1 AND scope = $2 AND scope_id = $3 AND name = $4",
};
const DELETE: Statement = Statement {
    name: "env_bindings.delete",
    sql: "DELETE FROM env_bindings \
          WHERE workspace = $1 AND scope = $2 AND scope_id = $3 AND name = $4",
};
const OF_SESSIONS: Statement = Statement {
    name: "env_bindings.of_sessions",
    sql: "SELECT session, agent_env FROM runs \
          WHERE workspace = $1 AND session >= $2 AND session <= $3 AND agent_env <> ''",
};

/// A stored binding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnvBindingRow {
    pub id: EnvBindingId,
    /// The secret whose value the agent gets.
    pub secret: SecretName,
    pub created_at: SystemTime,
    /// Time of the last write.
    pub updated_at: SystemTime,
    /// The principal of the last write.
    pub updated_by: String,
}

/// Access to bindings.
#[derive(Debug, Clone, Copy)]
pub struct EnvBindings<'a> {
    database: &'a Database,
}

impl<'a> EnvBindings<'a> {
    pub(crate) fn new(database: &'a Database) -> Self {
        Self { database }
    }

    /// All bindings of a workspace, in the order of their ids.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn all(&self, workspace: &WorkspaceId) -> Result<Vec<EnvBindingRow>, StatementError> {
        let rows = self.database.read(ALL, &[Value::Text(workspace.as_str())]).await?;
        let mut all: Vec<_> = rows.iter().map(binding).collect::<Result<_, _>>()?;
        // Sorted here, since databases order texts in different ways.
        all.sort_by_cached_key(|one| one.id.to_string());
        Ok(all)
    }

    /// Stores a new binding.
    ///
    /// # Errors
    /// `Exists` if the id is taken, `OwnerMissing` if there is no such workspace, agent or secret,
    /// or when the statement fails.
    pub async fn create(
        &self,
        workspace: &WorkspaceId,
        id: &EnvBindingId,
        secret: &SecretName,
        by: &str,
    ) -> Result<(), StatementError> {
        self.database.write(CREATE, &written(workspace, id, secret, by)).await
    }

    /// Gives a binding another secret. Returns `false` if the id is unknown.
    ///
    /// # Errors
    /// `OwnerMissing` if there is no such secret, or when the statement fails.
    pub async fn replace(
        &self,
        workspace: &WorkspaceId,
        id: &EnvBindingId,
        secret: &SecretName,
        by: &str,
    ) -> Result<bool, StatementError> {
        let values = written(workspace, id, secret, by);
        self.database.write_steps(&[Step::must_change(REPLACE, values)]).await
    }

    /// Removes a binding. Returns `false` if the id is unknown.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn delete(
        &self,
        workspace: &WorkspaceId,
        id: &EnvBindingId,
    ) -> Result<bool, StatementError> {
        self.database.write_steps(&[Step::must_change(DELETE, place(workspace, id))]).await
    }

    /// The variables that runs got, by session, for sessions from the first to the last id.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn of_sessions(
        &self,
        workspace: &WorkspaceId,
        first: SessionId,
        last: SessionId,
    ) -> Result<BTreeMap<SessionId, BTreeSet<EnvName>>, StatementError> {
        let (first, last) = (first.to_text(), last.to_text());
        let values = [Value::Text(workspace.as_str()), Value::Text(&first), Value::Text(&last)];
        let mut told: BTreeMap<SessionId, BTreeSet<EnvName>> = BTreeMap::new();
        for row in &self.database.read(OF_SESSIONS, &values).await? {
            let session = id(row, "session", SessionId::parse)?;
            told.entry(session).or_default().extend(env_names(row)?);
        }
        Ok(told)
    }
}

/// The variables that a run was given.
pub(super) fn env_names(row: &Row) -> Result<Vec<EnvName>, StatementError> {
    let text = row.text("agent_env")?;
    let names = text.split_whitespace().map(EnvName::new);
    names.collect::<Result<_, _>>().map_err(|_invalid| row.damaged())
}

fn place<'v>(workspace: &'v WorkspaceId, id: &'v EnvBindingId) -> Vec<Value<'v>> {
    vec![
        Value::Text(workspace.as_str()),
        Value::Text(id.scope.word()),
        Value::Text(id.scope.id()),
        Value::Text(id.name.as_str()),
    ]
}

fn written<'v>(
    workspace: &'v WorkspaceId,
    id: &'v EnvBindingId,
    secret: &'v SecretName,
    by: &'v str,
) -> Vec<Value<'v>> {
    let mut values = place(workspace, id);
    values.extend([Value::Text(secret.as_str()), Value::Integer(now_ms()), Value::Text(by)]);
    values
}

fn binding(row: &Row) -> Result<EnvBindingRow, StatementError> {
    let scope = EnvScope::parse(&row.text("scope")?, &row.text("scope_id")?);
    let name = EnvName::new(&row.text("name")?).map_err(|_invalid| row.damaged())?;
    let secret = SecretName::new(&row.text("secret")?).map_err(|_invalid| row.damaged())?;
    Ok(EnvBindingRow {
        id: EnvBindingId { scope: scope.ok_or_else(|| row.damaged())?, name },
        secret,
        created_at: time(row, "created_at")?,
        updated_at: time(row, "updated_at")?,
        updated_by: row.text("updated_by")?,
    })
}
