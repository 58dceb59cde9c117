//! The tokens of services, as hashes.

use std::time::SystemTime;

use narthex_model::{PrincipalId, ServiceTokenId, WorkspaceId};

use super::{
    maybe_time, ms, now_ms,
    principals::{CHANGED, id, workspace},
    time,
};
use crate::{
    StatementError,
    database::{Database, Step},
    statement::{Row, Statement, Value},
};

const CREATE: Statement = Statement {
    name: "service_tokens.create",
    sql: "INSERT INTO service_tokens \
          (id, workspace, principal, hash, label, created_at, created_by, expires_at, is_proved) \
          VALUES ($1, $2, $3, $4, $5, $6, $7, NULLIF($8, 0), $9)",
};
const ALL: Statement = Statement {
    name: "service_tokens.all",
    sql: "SELECT id, workspace, principal, hash, label, created_at, created_by, expires_at, \
          revoked_at, last_used_at, is_proved FROM service_tokens",
};
const REVOKE: Statement = Statement {
    name: "service_tokens.revoke",
    sql: "UPDATE service_tokens SET revoked_at = $3 \
          WHERE workspace = $1 AND id = $2 AND revoked_at IS NULL",
};
const REVOKE_ALL: Statement = Statement {
    name: "service_tokens.revoke_all",
    sql: "UPDATE service_tokens SET revoked_at = $2 \
          WHERE principal = $1 AND revoked_at IS NULL",
};
const USED: Statement = Statement {
    name: "service_tokens.used",
    sql: "UPDATE service_tokens SET last_used_at = $2 \
          WHERE id = $1 AND COALESCE(last_used_at, 0) < $2",
};

/// A token of a service, without its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceTokenRow {
    pub id: ServiceTokenId,
    pub workspace: WorkspaceId,
    pub principal: PrincipalId,
    /// SHA-256 of the token, in hexadecimal.
    pub hash: String,
    /// Purpose of the token, for people.
    pub label: String,
    pub created_at: SystemTime,
    pub created_by: String,
    /// True if the token's creator was proved to be human, or used a token of which this is true.
    pub is_proved: bool,
    pub expires_at: Option<SystemTime>,
    pub revoked_at: Option<SystemTime>,
    /// Approximate time of the last use.
    pub last_used_at: Option<SystemTime>,
}

/// Access to the tokens of services.
#[derive(Debug, Clone, Copy)]
pub struct ServiceTokens<'a> {
    database: &'a Database,
}

impl<'a> ServiceTokens<'a> {
    pub(crate) fn new(database: &'a Database) -> Self {
        Self { database }
    }

    /// All tokens of all workspaces, in no order.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn all(&self) -> Result<Vec<ServiceTokenRow>, StatementError> {
        self.database.read(ALL, &[]).await?.iter().map(token).collect()
    }

    /// Stores a new token. Ignores the times of revocation and use in the row.
    ///
    /// # Errors
    /// `OwnerMissing` if there is no such workspace or principal, or when a statement fails.
    pub async fn create(&self, token: &ServiceTokenRow) -> Result<(), StatementError> {
        let values = vec![
            Value::Text(token.id.as_str()),
            Value::Text(token.workspace.as_str()),
            Value::Text(token.principal.as_str()),
            Value::Text(&token.hash),
            Value::Text(&token.label),
            Value::Integer(ms(token.created_at)),
            Value::Text(&token.created_by),
            Value::Integer(token.expires_at.map_or(0, ms)),
            Value::Integer(token.is_proved.into()),
        ];
        let steps = [Step::new(CREATE, values), Step::new(CHANGED, Vec::new())];
        self.database.write_steps(&steps).await.map(drop)
    }

    /// Revokes a token. Returns `false` if no valid token has this id.
    ///
    /// # Errors
    /// When a statement fails.
    pub async fn revoke(
        &self,
        workspace: &WorkspaceId,
        id: &ServiceTokenId,
    ) -> Result<bool, StatementError> {
        let place = [Value::Text(workspace.as_str()), Value::Text(id.as_str())];
        let values = [&place[..], &[Value::Integer(now_ms())]].concat();
        let steps = [Step::must_change(REVOKE, values), Step::new(CHANGED, Vec::new())];
        self.database.write_steps(&steps).await
    }

    /// Revokes all tokens of a service.
    ///
    /// # Errors
    /// When a statement fails.
    pub async fn revoke_all(&self, principal: &PrincipalId) -> Result<(), StatementError> {
        let values = vec![Value::Text(principal.as_str()), Value::Integer(now_ms())];
        let steps = [Step::new(REVOKE_ALL, values), Step::new(CHANGED, Vec::new())];
        self.database.write_steps(&steps).await.map(drop)
    }

    /// Stores the times of tokens' last uses. Does not count as a change of permissions.
    ///
    /// # Errors
    /// When a statement fails.
    pub async fn used(
        &self,
        tokens: &[(ServiceTokenId, SystemTime)],
    ) -> Result<(), StatementError> {
        let all: Vec<_> = tokens
            .iter()
            .map(|(id, at)| vec![Value::Text(id.as_str()), Value::Integer(ms(*at))])
            .collect();
        self.database.write_each(USED, &all).await
    }
}

fn token(row: &Row) -> Result<ServiceTokenRow, StatementError> {
    Ok(ServiceTokenRow {
        id: ServiceTokenId::new(&row.text("id")?).map_err(|_invalid| row.damaged())?,
        workspace: workspace(row)?,
        principal: id(row, "principal")?,
        hash: row.text("hash")?,
        label: row.text("label")?,
        created_at: time(row, "created_at")?,
        created_by: row.text("created_by")?,
        is_proved: row.integer("is_proved")? != 0,
        expires_at: maybe_time(row, "expires_at")?,
        revoked_at: maybe_time(row, "revoked_at")?,
        last_used_at: maybe_time(row, "last_used_at")?,
    })
}
