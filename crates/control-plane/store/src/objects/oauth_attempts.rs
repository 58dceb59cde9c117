//! Open sign-ins of narthex at the authorization servers of others, sealed, each until its end.

use std::time::SystemTime;

use narthex_model::WorkspaceId;

use super::{
    ms, now_ms,
    oauth_grants::{OAuthGrantKey, key},
    time,
};
use crate::{
    StatementError,
    database::{Database, Step},
    statement::{Row, Statement, Value},
};

/// The most open attempts of a workspace. Beyond it, those that end first make room.
pub const OAUTH_ATTEMPTS_MAX: u32 = 1000;

const FIND: Statement = Statement {
    name: "oauth_attempts.find",
    sql: "SELECT workspace, server, subject, sealed, expires_at FROM oauth_attempts \
          WHERE state_hash = $1 AND expires_at > $2",
};
const PUT: Statement = Statement {
    name: "oauth_attempts.put",
    sql: "INSERT INTO oauth_attempts \
          (state_hash, workspace, server, subject, sealed, created_at, expires_at) \
          VALUES ($1, $2, $3, $4, $5, $6, $7)",
};
const TAKE: Statement = Statement {
    name: "oauth_attempts.take",
    sql: "DELETE FROM oauth_attempts WHERE state_hash = $1 AND expires_at > $2",
};
const OPEN: Statement = Statement {
    name: "oauth_attempts.open",
    sql: "SELECT state_hash FROM oauth_attempts WHERE workspace = $1 AND expires_at > $2",
};
const DROP: Statement = Statement {
    name: "oauth_attempts.drop",
    sql: "DELETE FROM oauth_attempts WHERE workspace = $1 AND server = $2 AND subject = $3",
};
const SWEEP: Statement = Statement {
    name: "oauth_attempts.sweep",
    sql: "DELETE FROM oauth_attempts WHERE expires_at <= $1",
};
const BOUND: Statement = Statement {
    name: "oauth_attempts.bound",
    sql: "DELETE FROM oauth_attempts WHERE workspace = $1 AND state_hash NOT IN \
          (SELECT state_hash FROM oauth_attempts WHERE workspace = $1 \
          ORDER BY expires_at DESC, state_hash LIMIT $2)",
};

/// An open attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OAuthAttemptRow {
    /// The grant that the attempt is for.
    pub key: OAuthGrantKey,
    /// The attempt, sealed.
    pub sealed: String,
    /// The end of its life.
    pub expires_at: SystemTime,
}

/// Access to open attempts.
#[derive(Debug, Clone, Copy)]
pub struct OAuthAttempts<'a> {
    database: &'a Database,
}

impl<'a> OAuthAttempts<'a> {
    pub(crate) fn new(database: &'a Database) -> Self {
        Self { database }
    }

    /// Stores an attempt under the hash of its state, and removes those that have ended. At most
    /// [`OAUTH_ATTEMPTS_MAX`] of a workspace stay.
    ///
    /// # Errors
    /// `Exists` if the hash is taken, `OwnerMissing` if there is no such workspace, or when a
    /// statement fails.
    pub async fn put(
        &self,
        state_hash: &str,
        attempt: &OAuthAttemptRow,
        now: SystemTime,
    ) -> Result<(), StatementError> {
        let OAuthAttemptRow { key, sealed, expires_at } = attempt;
        let here = Value::Text(key.workspace.as_str());
        let values = vec![
            Value::Text(state_hash),
            here,
            Value::Text(&key.server),
            Value::Text(key.user.as_deref().unwrap_or_default()),
            Value::Text(sealed),
            Value::Integer(now_ms()),
            Value::Integer(ms(*expires_at)),
        ];
        let room = i64::from(OAUTH_ATTEMPTS_MAX) - 1;
        let steps = [
            Step::new(SWEEP, vec![Value::Integer(ms(now))]),
            Step::new(BOUND, vec![here, Value::Integer(room)]),
            Step::new(PUT, values),
        ];
        self.database.write_steps(&steps).await.map(drop)
    }

    /// Removes an attempt and returns it, once. `None` if there is none, or it has ended.
    ///
    /// # Errors
    /// When a statement fails.
    pub async fn take(
        &self,
        state_hash: &str,
        now: SystemTime,
    ) -> Result<Option<OAuthAttemptRow>, StatementError> {
        let values = [Value::Text(state_hash), Value::Integer(ms(now))];
        let rows = self.database.read(FIND, &values).await?;
        let Some(row) = rows.first() else { return Ok(None) };
        let found = attempt(row)?;
        // Of several that have read it, one removes it.
        let is_taken =
            self.database.write_steps(&[Step::must_change(TAKE, values.to_vec())]).await?;
        Ok(is_taken.then_some(found))
    }

    /// Removes all attempts for a grant.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn drop_of(&self, key: &OAuthGrantKey) -> Result<(), StatementError> {
        let values = [
            Value::Text(key.workspace.as_str()),
            Value::Text(&key.server),
            Value::Text(key.user.as_deref().unwrap_or_default()),
        ];
        self.database.write(DROP, &values).await
    }

    /// The hashes of the open attempts of a workspace: at most [`OAUTH_ATTEMPTS_MAX`].
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn open(
        &self,
        workspace: &WorkspaceId,
        now: SystemTime,
    ) -> Result<Vec<String>, StatementError> {
        let values = [Value::Text(workspace.as_str()), Value::Integer(ms(now))];
        let rows = self.database.read(OPEN, &values).await?;
        rows.iter().map(|row| row.text("state_hash")).collect()
    }

    /// Removes attempts that have ended.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn sweep(&self, now: SystemTime) -> Result<(), StatementError> {
        self.database.write(SWEEP, &[Value::Integer(ms(now))]).await
    }
}

fn attempt(row: &Row) -> Result<OAuthAttemptRow, StatementError> {
    Ok(OAuthAttemptRow {
        key: key(row)?,
        sealed: row.text("sealed")?,
        expires_at: time(row, "expires_at")?,
    })
}
