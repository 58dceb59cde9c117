//! Reads secrets.

use std::collections::BTreeMap;

use narthex_model::{
    KeyId, SealedSecret, SecretName, SecretSummary, SecretVersion, VersionSummary, WorkspaceId,
};

use super::{SecretHead, Secrets, number};
use crate::{
    StatementError,
    objects::time,
    statement::{Row, Statement, Value},
};

const HEAD: Statement = Statement {
    name: "secrets.head",
    sql: "SELECT last_version, (SELECT count(*) FROM secret_versions \
          WHERE secret_versions.workspace = secrets.workspace \
          AND secret_versions.name = secrets.name) AS kept \
          FROM secrets WHERE workspace = $1 AND name = $2",
};
const FIND: Statement = Statement {
    name: "secrets.find",
    sql: "SELECT workspace, name, version, key_id, sealed FROM secret_versions \
          WHERE workspace = $1 AND name = $2 AND version = $3",
};
const NEWEST: Statement = Statement {
    name: "secrets.newest",
    sql: "SELECT workspace, name, version, key_id, sealed FROM secret_versions \
          WHERE workspace = $1 AND name = $2 ORDER BY version DESC LIMIT 1",
};
const ALL: Statement = Statement {
    name: "secrets.all",
    sql: "SELECT secrets.name, secrets.created_at, updated_at, updated_by, version, key_id, \
          secret_versions.created_at AS version_created_at \
          FROM secrets LEFT JOIN secret_versions \
          ON secret_versions.workspace = secrets.workspace \
          AND secret_versions.name = secrets.name \
          WHERE secrets.workspace = $1",
};
const KEYS: Statement = Statement {
    name: "secrets.keys",
    sql: "SELECT key_id, count(*) AS n FROM secret_versions GROUP BY key_id",
};
const SEALED_OTHERWISE: Statement = Statement {
    name: "secrets.sealed_otherwise",
    sql: "SELECT workspace, name, version, key_id, sealed FROM secret_versions \
          WHERE key_id <> $1 AND (workspace, name, version) > ($2, $3, $4) \
          ORDER BY workspace, name, version LIMIT $5",
};

impl Secrets<'_> {
    /// Returns the state of a secret; `None` if it never had a value, or there is no such
    /// workspace.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn head(
        &self,
        workspace: &WorkspaceId,
        name: &SecretName,
    ) -> Result<Option<SecretHead>, StatementError> {
        let values = [Value::Text(workspace.as_str()), Value::Text(name.as_str())];
        let rows = self.database.read(HEAD, &values).await?;
        let Some(row) = rows.first() else { return Ok(None) };
        let (last, is_set) = (version(row, "last_version")?, row.integer("kept")? > 0);
        Ok(Some(SecretHead { last, is_set }))
    }

    /// A value of a secret, by version or the newest; `None` if it does not exist.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn find(
        &self,
        workspace: &WorkspaceId,
        name: &SecretName,
        version: Option<SecretVersion>,
    ) -> Result<Option<SealedSecret>, StatementError> {
        let place = [Value::Text(workspace.as_str()), Value::Text(name.as_str())];
        let rows = match version {
            None => self.database.read(NEWEST, &place).await?,
            Some(version) => {
                let values = [place[0], place[1], Value::Integer(number(version))];
                self.database.read(FIND, &values).await?
            }
        };
        rows.first().map(sealed).transpose()
    }

    /// The public summaries of the secrets of a workspace, by name.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn all(&self, workspace: &WorkspaceId) -> Result<Vec<SecretSummary>, StatementError> {
        let rows = self.database.read(ALL, &[Value::Text(workspace.as_str())]).await?;
        let mut all: BTreeMap<SecretName, SecretSummary> = BTreeMap::new();
        for row in &rows {
            let name = name(row)?;
            let summary = match all.remove(&name) {
                Some(summary) => summary,
                None => SecretSummary {
                    name: name.clone(),
                    created_at: time(row, "created_at")?,
                    updated_at: time(row, "updated_at")?,
                    updated_by: row.text("updated_by")?,
                    versions: Vec::new(),
                },
            };
            all.insert(name, with_version(summary, row)?);
        }
        let sorted = all.into_values().map(|mut summary| {
            // Sorted here, as all other lists of the store.
            summary.versions.sort_by_key(|one| one.version);
            summary
        });
        Ok(sorted.collect())
    }

    /// Number of values per sealing key, of all workspaces.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn keys(&self) -> Result<BTreeMap<KeyId, u64>, StatementError> {
        let rows = self.database.read(KEYS, &[]).await?;
        let of_row = |row: &Row| {
            let count = u64::try_from(row.integer("n")?).map_err(|_negative| row.damaged())?;
            Ok((key(row)?, count))
        };
        rows.iter().map(of_row).collect()
    }

    /// Values of all workspaces that are sealed by another key than this one: the first `limit`
    /// after a place, in the database's own order.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn sealed_otherwise(
        &self,
        key: &KeyId,
        after: Option<&SealedSecret>,
        limit: u32,
    ) -> Result<Vec<SealedSecret>, StatementError> {
        // No workspace has an empty id, so this is before all of them.
        let (workspace, name, version) = after.map_or(("", "", 0), |row| {
            (row.workspace.as_str(), row.name.as_str(), number(row.version))
        });
        let values = [
            Value::Text(key.as_str()),
            Value::Text(workspace),
            Value::Text(name),
            Value::Integer(version),
            Value::Integer(limit.into()),
        ];
        let rows = self.database.read(SEALED_OTHERWISE, &values).await?;
        rows.iter().map(sealed).collect()
    }
}

fn with_version(mut summary: SecretSummary, row: &Row) -> Result<SecretSummary, StatementError> {
    // A secret that is not set has one row, without a version.
    if row.has("version")? {
        summary.versions.push(VersionSummary {
            version: version(row, "version")?,
            created_at: time(row, "version_created_at")?,
            key: Some(key(row)?),
        });
    }
    Ok(summary)
}

fn sealed(row: &Row) -> Result<SealedSecret, StatementError> {
    let workspace = row.text("workspace")?;
    Ok(SealedSecret {
        workspace: WorkspaceId::new(&workspace).map_err(|_invalid| row.damaged())?,
        name: name(row)?,
        version: version(row, "version")?,
        key: key(row)?,
        sealed: row.text("sealed")?,
    })
}

fn name(row: &Row) -> Result<SecretName, StatementError> {
    SecretName::new(&row.text("name")?).map_err(|_invalid| row.damaged())
}

fn key(row: &Row) -> Result<KeyId, StatementError> {
    KeyId::new(&row.text("key_id")?).ok_or_else(|| row.damaged())
}

fn version(row: &Row, column: &'static str) -> Result<SecretVersion, StatementError> {
    let number = u64::try_from(row.integer(column)?).ok().and_then(SecretVersion::new);
    number.ok_or_else(|| row.damaged())
}
