//! Files in folders that their user has approved (D27), by path and content.

use std::time::SystemTime;

use super::{now_ms, time};
use crate::{
    StatementError,
    database::Database,
    statement::{Statement, Value},
};

const APPROVE: Statement = Statement {
    name: "trusted_files.approve",
    sql: "INSERT INTO trusted_files (place, sha256, approved_at) VALUES ($1, $2, $3) \
          ON CONFLICT (place) DO UPDATE \
          SET sha256 = excluded.sha256, approved_at = excluded.approved_at",
};
const FIND: Statement = Statement {
    name: "trusted_files.find",
    sql: "SELECT sha256, approved_at FROM trusted_files WHERE place = $1",
};

/// The approved file of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrustedFile {
    /// Hash of the approved content.
    pub sha256: String,
    pub approved_at: SystemTime,
}

/// Access to approvals. A path has at most one approval, for one content.
#[derive(Debug, Clone, Copy)]
pub struct TrustedFiles<'a> {
    database: &'a Database,
}

impl<'a> TrustedFiles<'a> {
    pub(crate) fn new(database: &'a Database) -> Self {
        Self { database }
    }

    /// Approves a content at a path, in place of an earlier approval.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn approve(&self, place: &str, sha256: &str) -> Result<(), StatementError> {
        let values = [Value::Text(place), Value::Text(sha256), Value::Integer(now_ms())];
        self.database.write(APPROVE, &values).await
    }

    /// Returns the approved file of a path, if there is one.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn find(&self, place: &str) -> Result<Option<TrustedFile>, StatementError> {
        let rows = self.database.read(FIND, &[Value::Text(place)]).await?;
        let Some(row) = rows.first() else { return Ok(None) };
        let approved_at = time(row, "approved_at")?;
        Ok(Some(TrustedFile { sha256: row.text("sha256")?, approved_at }))
    }
}
