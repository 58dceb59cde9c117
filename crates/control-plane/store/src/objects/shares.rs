//! Shares of runs, without the copies of files, and the comments on them.

mod comments;

use std::time::SystemTime;

use narthex_model::{RunId, SessionId, ShareId, WorkspaceId};

pub use comments::{CommentBounds, CommentCounts, CommentRow, ThreadRow};

use super::{id, now_ms, time, workspace};
use crate::{
    StatementError,
    database::{Database, Step},
    statement::{Row, Statement, Value},
};

const CREATE: Statement = Statement {
    name: "shares.create",
    sql: "INSERT INTO shares (workspace, id, session, run, title, kind, entry_point, total_size, \
          revision, created_at, updated_at) SELECT $1, $2, $3, $4, $5, $6, $7, $8, 1, $9, $9 \
          WHERE (SELECT COUNT(*) FROM shares WHERE workspace = $1 AND session = $3) < $10 \
          AND (SELECT COUNT(*) FROM shares WHERE workspace = $1) < $11 \
          AND (SELECT COUNT(*) FROM shared_files WHERE workspace = $1) + $12 <= $13",
};
/// Replaces a share of the same session; a share never moves to another session.
const REPLACE: Statement = Statement {
    name: "shares.replace",
    sql: "UPDATE shares SET run = $4, title = $5, kind = $6, entry_point = $7, total_size = $8, \
          revision = revision + 1, updated_at = $9 \
          WHERE workspace = $1 AND id = $2 AND session = $3 \
          AND (SELECT COUNT(*) FROM shared_files WHERE workspace = $1 AND share <> $2) + $10 \
          <= $11",
};
const COUNTS: Statement = Statement {
    name: "shares.counts",
    sql: "SELECT (SELECT COUNT(*) FROM shares WHERE workspace = $1 AND session = $2) \
          AS of_session, (SELECT COUNT(*) FROM shares WHERE workspace = $1) AS of_workspace",
};
const CLEAR: Statement = Statement {
    name: "shares.clear",
    sql: "DELETE FROM shared_files WHERE workspace = $1 AND share = $2",
};
const ADD_FILE: Statement = Statement {
    name: "shares.add_file",
    sql: "INSERT INTO shared_files (workspace, share, path, size, content_type, hash) \
          VALUES ($1, $2, $3, $4, $5, $6)",
};
const FIND: Statement = Statement {
    name: "shares.find",
    sql: "SELECT workspace, id, session, run, title, kind, entry_point, total_size, revision, \
          created_at, updated_at FROM shares WHERE workspace = $1 AND id = $2",
};
const PAGE: Statement = Statement {
    name: "shares.page",
    sql: "SELECT workspace, id, session, run, title, kind, entry_point, total_size, revision, \
          created_at, updated_at FROM shares WHERE workspace = $1 AND id > $2 \
          ORDER BY id LIMIT $3",
};
const OF_SESSION: Statement = Statement {
    name: "shares.of_session",
    sql: "SELECT workspace, id, session, run, title, kind, entry_point, total_size, revision, \
          created_at, updated_at FROM shares WHERE workspace = $1 AND session = $2 \
          ORDER BY id LIMIT $3",
};
const FILES: Statement = Statement {
    name: "shares.files",
    sql: "SELECT path, size, content_type, hash FROM shared_files \
          WHERE workspace = $1 AND share = $2 ORDER BY path",
};
const HASHES: Statement = Statement {
    name: "shares.hashes",
    sql: "SELECT DISTINCT hash FROM shared_files WHERE workspace = $1",
};
const REMOVE: Statement =
    Statement { name: "shares.remove", sql: "DELETE FROM shares WHERE workspace = $1 AND id = $2" };

/// Limits on the number of shares.
#[derive(Debug, Clone, Copy)]
pub struct ShareBounds {
    /// Maximum number of shares of one session.
    pub of_session: u64,
    /// Maximum number of shares of a workspace.
    pub of_workspace: u64,
    /// Maximum number of files of all shares of a workspace; files with the same content count
    /// twice.
    pub files_of_workspace: u64,
}

/// Numbers of shares.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ShareCounts {
    /// Number of shares of one session.
    pub of_session: u64,
    /// Number of shares of its workspace.
    pub of_workspace: u64,
}

/// Access to shares and comments.
#[derive(Debug, Clone, Copy)]
pub struct Shares<'a> {
    database: &'a Database,
}

/// A stored share, without its files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShareRow {
    /// The workspace that owns the share.
    pub workspace: WorkspaceId,
    pub id: ShareId,
    /// The session of the share.
    pub session: SessionId,
    /// The last run that wrote the share.
    pub run: RunId,
    pub title: String,
    /// The kind of display.
    pub kind: String,
    /// Path of the file that is opened first, if there is one.
    pub entry_point: Option<String>,
    /// Size of all files in bytes.
    pub total_size: u64,
    /// Number of writes of the share.
    pub revision: u64,
    pub created_at: SystemTime,
    pub updated_at: SystemTime,
}

/// A file of a share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedFileRow {
    /// Path of the file within the share.
    pub path: String,
    /// Size of the file in bytes.
    pub size: u64,
    pub content_type: String,
    /// SHA-256 of the file's content, in hexadecimal.
    pub hash: String,
}

impl<'a> Shares<'a> {
    pub(crate) fn new(database: &'a Database) -> Self {
        Self { database }
    }

    /// Stores a new share with its files. Ignores the revision and the times in the row. Returns
    /// `false` and stores nothing if a limit is reached.
    ///
    /// # Errors
    /// `OwnerMissing` if there is no such session, or when a statement fails.
    pub async fn create(
        &self,
        row: &ShareRow,
        files: &[SharedFileRow],
        bounds: ShareBounds,
    ) -> Result<bool, StatementError> {
        self.put(row, files, bounds, true).await
    }

    /// Replaces the files of a share, and keeps its comments. Returns `false` and changes nothing
    /// if its session has no share of this id, or the limit of files would be passed.
    ///
    /// # Errors
    /// When a statement fails.
    pub async fn replace(
        &self,
        row: &ShareRow,
        files: &[SharedFileRow],
        bounds: ShareBounds,
    ) -> Result<bool, StatementError> {
        self.put(row, files, bounds, false).await
    }

    /// The numbers of shares of a session and of its workspace.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn counts(
        &self,
        workspace: &WorkspaceId,
        session: SessionId,
    ) -> Result<ShareCounts, StatementError> {
        let rows = self.of(COUNTS, workspace, &session.to_text()).await?;
        let counts = rows.first().map(|row| {
            let of_session = count(row, "of_session")?;
            Ok(ShareCounts { of_session, of_workspace: count(row, "of_workspace")? })
        });
        counts.transpose().map(Option::unwrap_or_default)
    }

    async fn put(
        &self,
        row: &ShareRow,
        files: &[SharedFileRow],
        bounds: ShareBounds,
        is_new: bool,
    ) -> Result<bool, StatementError> {
        let (share, session, run) = (row.id.to_text(), row.session.to_text(), row.run.to_text());
        let place = [Value::Text(row.workspace.as_str()), Value::Text(&share)];
        let values = vec![
            Value::Text(&session),
            Value::Text(&run),
            Value::Text(&row.title),
            Value::Text(&row.kind),
            Value::Text(row.entry_point.as_deref().unwrap_or_default()),
            Value::Integer(stored(row.total_size)),
            Value::Integer(now_ms()),
        ];
        let mut values = [&place[..], &values].concat();
        let ShareBounds { of_session, of_workspace, files_of_workspace } = bounds;
        if is_new {
            values.extend([of_session, of_workspace].map(|max| Value::Integer(stored(max))));
        }
        let many = u64::try_from(files.len()).unwrap_or(u64::MAX);
        values.extend([many, files_of_workspace].map(|count| Value::Integer(stored(count))));
        let mut steps = match is_new {
            false => vec![Step::must_change(REPLACE, values), Step::new(CLEAR, place.to_vec())],
            true => vec![Step::must_change(CREATE, values)],
        };
        for file in files {
            let values = [
                Value::Text(&file.path),
                Value::Integer(stored(file.size)),
                Value::Text(&file.content_type),
                Value::Text(&file.hash),
            ];
            steps.push(Step::new(ADD_FILE, [&place[..], &values].concat()));
        }
        self.database.write_steps(&steps).await
    }

    /// The share of this id, if it exists.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn find(
        &self,
        workspace: &WorkspaceId,
        share: ShareId,
    ) -> Result<Option<ShareRow>, StatementError> {
        let rows = self.of(FIND, workspace, &share.to_text()).await?;
        rows.first().map(share_row).transpose()
    }

    /// The first `limit` shares of a workspace in the order of their ids, or those after `after`.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn page(
        &self,
        workspace: &WorkspaceId,
        after: Option<ShareId>,
        limit: u32,
    ) -> Result<Vec<ShareRow>, StatementError> {
        let after = after.map(ShareId::to_text).unwrap_or_default();
        let values = [
            Value::Text(workspace.as_str()),
            Value::Text(&after),
            Value::Integer(i64::from(limit)),
        ];
        self.database.read(PAGE, &values).await?.iter().map(share_row).collect()
    }

    /// The first `limit` shares of a session, in the order of their ids.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn of_session(
        &self,
        workspace: &WorkspaceId,
        session: SessionId,
        limit: u32,
    ) -> Result<Vec<ShareRow>, StatementError> {
        let session = session.to_text();
        let values = [
            Value::Text(workspace.as_str()),
            Value::Text(&session),
            Value::Integer(i64::from(limit)),
        ];
        self.database.read(OF_SESSION, &values).await?.iter().map(share_row).collect()
    }

    /// The files of a share, in the order of their paths.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn files(
        &self,
        workspace: &WorkspaceId,
        share: ShareId,
    ) -> Result<Vec<SharedFileRow>, StatementError> {
        self.of(FILES, workspace, &share.to_text()).await?.iter().map(file_row).collect()
    }

    /// The hashes of all contents in the shares of a workspace, each once.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn hashes(&self, workspace: &WorkspaceId) -> Result<Vec<String>, StatementError> {
        let rows = self.database.read(HASHES, &[Value::Text(workspace.as_str())]).await?;
        rows.iter().map(|row| row.text("hash")).collect()
    }

    /// Removes a share with its comments. Returns `false` if it does not exist.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn remove(
        &self,
        workspace: &WorkspaceId,
        share: ShareId,
    ) -> Result<bool, StatementError> {
        let share = share.to_text();
        let place = vec![Value::Text(workspace.as_str()), Value::Text(&share)];
        self.database.write_steps(&[Step::must_change(REMOVE, place)]).await
    }

    async fn of(
        &self,
        statement: Statement,
        workspace: &WorkspaceId,
        id: &str,
    ) -> Result<Vec<Row>, StatementError> {
        let place = [Value::Text(workspace.as_str()), Value::Text(id)];
        self.database.read(statement, &place).await
    }
}

fn stored(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

fn count(row: &Row, column: &'static str) -> Result<u64, StatementError> {
    u64::try_from(row.integer(column)?).map_err(|_negative| row.damaged())
}

fn share_row(row: &Row) -> Result<ShareRow, StatementError> {
    Ok(ShareRow {
        workspace: workspace(row)?,
        id: id(row, "id", ShareId::parse)?,
        session: id(row, "session", SessionId::parse)?,
        run: id(row, "run", RunId::parse)?,
        title: row.text("title")?,
        kind: row.text("kind")?,
        entry_point: Some(row.text("entry_point")?).filter(|path| !path.is_empty()),
        total_size: count(row, "total_size")?,
        revision: count(row, "revision")?,
        created_at: time(row, "created_at")?,
        updated_at: time(row, "updated_at")?,
    })
}

fn file_row(row: &Row) -> Result<SharedFileRow, StatementError> {
    Ok(SharedFileRow {
        path: row.text("path")?,
        size: count(row, "size")?,
        content_type: row.text("content_type")?,
        hash: row.text("hash")?,
    })
}
