//! What runs share, without the copies, and the comments on it.

use std::time::SystemTime;

use narthex_model::{RunId, SessionId, ShareId, ThreadId, WorkspaceId};

use super::{id, ms, now_ms, optional_time, time, workspace};
use crate::{
    StatementError,
    database::{Database, Step},
    statement::{Row, Statement, Value},
};

const CREATE: Statement = Statement {
    name: "shares.create",
    sql: "INSERT INTO shares (workspace, id, session, run, title, kind, entry_point, total_size, \
          revision, created_at, updated_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 1, $9, $9)",
};
/// The session stays the one that shared it first.
const REPLACE: Statement = Statement {
    name: "shares.replace",
    sql: "UPDATE shares SET run = $4, title = $5, kind = $6, entry_point = $7, total_size = $8, \
          revision = revision + 1, updated_at = $9 \
          WHERE workspace = $1 AND id = $2 AND session = $3",
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
const BEGIN: Statement = Statement {
    name: "shares.begin_thread",
    sql: "INSERT INTO share_threads (workspace, id, share, anchor, created_at, resolved_at, \
          resolved_by) VALUES ($1, $2, $3, $4, $5, 0, '')",
};
const COMMENT: Statement = Statement {
    name: "shares.comment",
    sql: "INSERT INTO share_comments (workspace, thread, number, author, text, created_at) \
          SELECT $1, $2, COALESCE(MAX(number), 0) + 1, $3, $4, $5 FROM share_comments \
          WHERE workspace = $1 AND thread = $2",
};
const RESOLVE: Statement = Statement {
    name: "shares.resolve",
    sql: "UPDATE share_threads SET resolved_at = $3, resolved_by = $4 \
          WHERE workspace = $1 AND id = $2",
};
const THREAD: Statement = Statement {
    name: "shares.thread",
    sql: "SELECT id, share, anchor, created_at, resolved_at, resolved_by FROM share_threads \
          WHERE workspace = $1 AND id = $2",
};
const THREADS: Statement = Statement {
    name: "shares.threads",
    sql: "SELECT id, share, anchor, created_at, resolved_at, resolved_by FROM share_threads \
          WHERE workspace = $1 AND share = $2 ORDER BY created_at, id",
};
const COMMENTS: Statement = Statement {
    name: "shares.comments",
    sql: "SELECT number, author, text, created_at FROM share_comments \
          WHERE workspace = $1 AND thread = $2 ORDER BY number",
};

/// Access to shares and comments.
#[derive(Debug, Clone, Copy)]
pub struct Shares<'a> {
    database: &'a Database,
}

/// A share as it is stored, without its files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShareRow {
    /// Whose it is.
    pub workspace: WorkspaceId,
    pub id: ShareId,
    /// The session that it goes with.
    pub session: SessionId,
    /// The run that shared it last.
    pub run: RunId,
    pub title: String,
    /// What it is shown as.
    pub kind: String,
    /// The path of the file to begin with, if there is one.
    pub entry_point: Option<String>,
    /// The bytes of all its files.
    pub total_size: u64,
    /// How often it was shared.
    pub revision: u64,
    pub created_at: SystemTime,
    pub updated_at: SystemTime,
}

/// A file of a share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedFileRow {
    /// Its path within the share.
    pub path: String,
    /// Its length in bytes.
    pub size: u64,
    pub content_type: String,
    /// The SHA-256 of its content in hex.
    pub hash: String,
}

/// A thread of comments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadRow {
    pub id: ThreadId,
    pub share: ShareId,
    /// The passage that it is about; empty for the whole share.
    pub anchor: String,
    pub created_at: SystemTime,
    /// When it was settled, and by whom.
    pub resolved: Option<(SystemTime, String)>,
}

/// A comment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommentRow {
    /// Its place in the thread, from 1.
    pub number: u64,
    /// Who wrote it: a principal, or a run by its id.
    pub author: String,
    pub text: String,
    pub created_at: SystemTime,
}

impl<'a> Shares<'a> {
    pub(crate) fn new(database: &'a Database) -> Self {
        Self { database }
    }

    /// Stores a new share with its files. Its revision and its times are not looked at.
    ///
    /// # Errors
    /// `OwnerMissing` if there is no such session, or when a statement fails.
    pub async fn create(
        &self,
        row: &ShareRow,
        files: &[SharedFileRow],
    ) -> Result<(), StatementError> {
        self.put(row, files, false).await.map(drop)
    }

    /// Puts other files in place of those of a share, and keeps its comments. `false`, and nothing
    /// happens, if its session has none of that id.
    ///
    /// # Errors
    /// When a statement fails.
    pub async fn replace(
        &self,
        row: &ShareRow,
        files: &[SharedFileRow],
    ) -> Result<bool, StatementError> {
        self.put(row, files, true).await
    }

    async fn put(
        &self,
        row: &ShareRow,
        files: &[SharedFileRow],
        is_there: bool,
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
        let values = [&place[..], &values].concat();
        let mut steps = match is_there {
            true => {
                vec![Step::must_change(REPLACE, values), Step::new(CLEAR, place.to_vec())]
            }
            false => vec![Step::new(CREATE, values)],
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

    /// One, or `None`.
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

    /// At most `limit` of a workspace, in the order of their ids, after `after` if it is given.
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

    /// The files of one, in the order of their paths.
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

    /// The hashes of all contents that shares of a workspace have, each once.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn hashes(&self, workspace: &WorkspaceId) -> Result<Vec<String>, StatementError> {
        let rows = self.database.read(HASHES, &[Value::Text(workspace.as_str())]).await?;
        rows.iter().map(|row| row.text("hash")).collect()
    }

    /// Removes one with its comments. `false` if there is none.
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

    /// Begins a thread with its first comment.
    ///
    /// # Errors
    /// `OwnerMissing` if there is no such share, or when a statement fails.
    pub async fn begin_thread(
        &self,
        workspace: &WorkspaceId,
        thread: &ThreadRow,
        author: &str,
        text: &str,
    ) -> Result<(), StatementError> {
        let (id, share) = (thread.id.to_text(), thread.share.to_text());
        let values = vec![
            Value::Text(workspace.as_str()),
            Value::Text(&id),
            Value::Text(&share),
            Value::Text(&thread.anchor),
            Value::Integer(ms(thread.created_at)),
        ];
        let steps =
            [Step::new(BEGIN, values), Step::new(COMMENT, said(workspace, &id, author, text))];
        self.database.write_steps(&steps).await.map(drop)
    }

    /// Adds a comment to a thread.
    ///
    /// # Errors
    /// `OwnerMissing` if there is no such thread, or when a statement fails.
    pub async fn comment(
        &self,
        workspace: &WorkspaceId,
        thread: ThreadId,
        author: &str,
        text: &str,
    ) -> Result<(), StatementError> {
        let id = thread.to_text();
        self.database.write(COMMENT, &said(workspace, &id, author, text)).await
    }

    /// Settles a thread, or with `None` opens it again. `false` if there is none.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn resolve(
        &self,
        workspace: &WorkspaceId,
        thread: ThreadId,
        by: Option<&str>,
    ) -> Result<bool, StatementError> {
        let id = thread.to_text();
        let values = vec![
            Value::Text(workspace.as_str()),
            Value::Text(&id),
            Value::Integer(by.map_or(0, |_| now_ms())),
            Value::Text(by.unwrap_or_default()),
        ];
        self.database.write_steps(&[Step::must_change(RESOLVE, values)]).await
    }

    /// One thread, or `None`.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn thread(
        &self,
        workspace: &WorkspaceId,
        thread: ThreadId,
    ) -> Result<Option<ThreadRow>, StatementError> {
        let rows = self.of(THREAD, workspace, &thread.to_text()).await?;
        rows.first().map(thread_row).transpose()
    }

    /// The threads of a share, the oldest first.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn threads(
        &self,
        workspace: &WorkspaceId,
        share: ShareId,
    ) -> Result<Vec<ThreadRow>, StatementError> {
        self.of(THREADS, workspace, &share.to_text()).await?.iter().map(thread_row).collect()
    }

    /// The comments of a thread, in their order.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn comments(
        &self,
        workspace: &WorkspaceId,
        thread: ThreadId,
    ) -> Result<Vec<CommentRow>, StatementError> {
        self.of(COMMENTS, workspace, &thread.to_text()).await?.iter().map(comment_row).collect()
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

fn said<'a>(
    workspace: &'a WorkspaceId,
    thread: &'a str,
    author: &'a str,
    text: &'a str,
) -> Vec<Value<'a>> {
    vec![
        Value::Text(workspace.as_str()),
        Value::Text(thread),
        Value::Text(author),
        Value::Text(text),
        Value::Integer(now_ms()),
    ]
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

fn thread_row(row: &Row) -> Result<ThreadRow, StatementError> {
    let resolved_by = row.text("resolved_by")?;
    Ok(ThreadRow {
        id: id(row, "id", ThreadId::parse)?,
        share: id(row, "share", ShareId::parse)?,
        anchor: row.text("anchor")?,
        created_at: time(row, "created_at")?,
        resolved: optional_time(row, "resolved_at")?.map(|at| (at, resolved_by)),
    })
}

fn comment_row(row: &Row) -> Result<CommentRow, StatementError> {
    Ok(CommentRow {
        number: count(row, "number")?,
        author: row.text("author")?,
        text: row.text("text")?,
        created_at: time(row, "created_at")?,
    })
}
