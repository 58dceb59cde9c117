//! Secrets: their public summaries, and their values, which the vault has sealed (X-M25).

mod reading;

use narthex_model::{SealedSecret, SecretName, SecretVersion, WorkspaceId};

use super::{cuts, now_ms};
use crate::{
    StatementError,
    database::{Database, Step},
    statement::{Statement, Value},
};

const NAME: Statement = Statement {
    name: "secrets.name",
    sql: "INSERT INTO secrets \
          (workspace, name, last_version, created_at, updated_at, updated_by) \
          VALUES ($1, $2, 0, $3, $3, $4) \
          ON CONFLICT (workspace, name) DO NOTHING",
};
const GROW: Statement = Statement {
    name: "secrets.grow",
    sql: "UPDATE secrets SET last_version = $3, updated_at = $4, updated_by = $5 \
          WHERE workspace = $1 AND name = $2 AND last_version = $3 - 1",
};
const ADD: Statement = Statement {
    name: "secrets.add",
    sql: "INSERT INTO secret_versions (workspace, name, version, key_id, sealed, created_at) \
          VALUES ($1, $2, $3, $4, $5, $6)",
};
const PRUNE: Statement = Statement {
    name: "secrets.prune",
    sql: "DELETE FROM secret_versions WHERE workspace = $1 AND name = $2 AND version <= $3",
};
const TOUCH_SET: Statement = Statement {
    name: "secrets.touch",
    sql: "UPDATE secrets SET updated_at = $3, updated_by = $4 \
          WHERE workspace = $1 AND name = $2 AND EXISTS (SELECT 1 FROM secret_versions \
          WHERE secret_versions.workspace = secrets.workspace \
          AND secret_versions.name = secrets.name)",
};
const CLEAR: Statement = Statement {
    name: "secrets.clear",
    sql: "DELETE FROM secret_versions WHERE workspace = $1 AND name = $2",
};
const RESEAL: Statement = Statement {
    name: "secrets.reseal",
    sql: "UPDATE secret_versions SET key_id = $6, sealed = $7 \
          WHERE workspace = $1 AND name = $2 AND version = $3 AND key_id = $4 AND sealed = $5",
};

/// Access to secrets. Nothing in this module opens a value.
#[derive(Debug, Clone, Copy)]
pub struct Secrets<'a> {
    database: &'a Database,
}

/// The state of a secret's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SecretHead {
    /// The last version number of the secret.
    pub last: SecretVersion,
    /// True if the secret has a value now.
    pub is_set: bool,
}

impl<'a> Secrets<'a> {
    pub(crate) fn new(database: &'a Database) -> Self {
        Self { database }
    }

    /// Adds the next value of a secret, and removes all but the `kept` newest. Returns `false` and
    /// changes nothing if its number does not follow the last one.
    ///
    /// # Errors
    /// `OwnerMissing` if there is no such workspace, or when a statement fails.
    pub async fn add(
        &self,
        secret: &SealedSecret,
        by: &str,
        kept: u64,
    ) -> Result<bool, StatementError> {
        let SealedSecret { workspace, name, version, key, sealed } = secret;
        let (place, now) =
            ([Value::Text(workspace.as_str()), Value::Text(name.as_str())], now_ms());
        let number = number(*version);
        let pruned = i64::try_from(version.get().saturating_sub(kept)).unwrap_or(i64::MAX);
        let grown = [Value::Integer(number), Value::Integer(now), Value::Text(by)];
        let added = [
            Value::Integer(number),
            Value::Text(key.as_str()),
            Value::Text(sealed),
            Value::Integer(now),
        ];
        let named = [Value::Integer(now), Value::Text(by)];
        let steps = [
            Step::new(NAME, [&place[..], &named].concat()),
            Step::must_change(GROW, [&place[..], &grown].concat()),
            Step::new(ADD, [&place[..], &added].concat()),
            Step::new(PRUNE, [&place[..], &[Value::Integer(pruned)]].concat()),
        ];
        self.database.write_steps(&steps).await
    }

    /// Removes all values of a secret, but not the last number; active runs that hold one lose it.
    /// Returns `false` if there were no values.
    ///
    /// # Errors
    /// When a statement fails.
    pub async fn clear(
        &self,
        workspace: &WorkspaceId,
        name: &SecretName,
        by: &str,
    ) -> Result<bool, StatementError> {
        let place = [Value::Text(workspace.as_str()), Value::Text(name.as_str())];
        let touched = [Value::Integer(now_ms()), Value::Text(by)];
        let steps = [
            Step::must_change(TOUCH_SET, [&place[..], &touched].concat()),
            Step::new(CLEAR, place.to_vec()),
        ];
        let steps: Vec<_> = steps.into_iter().chain(cuts::of_secret(workspace, name)).collect();
        self.database.write_steps(&steps).await
    }

    /// Replaces the sealed form of a value by another sealed form of the same value. Returns
    /// `false` and changes nothing if the old form is no longer stored.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn replace(
        &self,
        old: &SealedSecret,
        new: &SealedSecret,
    ) -> Result<bool, StatementError> {
        let values = vec![
            Value::Text(old.workspace.as_str()),
            Value::Text(old.name.as_str()),
            Value::Integer(number(old.version)),
            Value::Text(old.key.as_str()),
            Value::Text(&old.sealed),
            Value::Text(new.key.as_str()),
            Value::Text(&new.sealed),
        ];
        self.database.write_steps(&[Step::must_change(RESEAL, values)]).await
    }
}

/// The number of a version as the store holds it: at most [`i64::MAX`].
fn number(version: SecretVersion) -> i64 {
    i64::try_from(version.get()).unwrap_or(i64::MAX)
}
