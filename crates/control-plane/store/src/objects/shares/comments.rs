//! Threads of comments on shares.

use std::time::SystemTime;

use narthex_model::{ShareId, ThreadId, WorkspaceId};

use super::super::{id, ms, now_ms, optional_time, time};
use super::{Shares, count, stored};
use crate::{
    StatementError,
    database::Step,
    statement::{Row, Statement, Value},
};

const BEGIN: Statement = Statement {
    name: "shares.begin_thread",
    sql: "INSERT INTO share_threads (workspace, id, share, anchor, created_at, resolved_at, \
          resolved_by) SELECT $1, $2, $3, $4, $5, 0, '' \
          WHERE (SELECT COUNT(*) FROM share_threads WHERE workspace = $1 AND share = $3) < $6",
};
const COMMENT: Statement = Statement {
    name: "shares.comment",
    sql: "INSERT INTO share_comments (workspace, thread, number, author, text, created_at) \
          SELECT $1, $2, (SELECT COALESCE(MAX(number), 0) + 1 FROM share_comments \
          WHERE workspace = $1 AND thread = $2), $3, $4, $5 \
          WHERE (SELECT COUNT(*) FROM share_comments WHERE workspace = $1 AND thread = $2) < $7 \
          AND (SELECT COUNT(*) FROM share_comments \
          JOIN share_threads ON share_threads.workspace = share_comments.workspace \
          AND share_threads.id = share_comments.thread \
          WHERE share_threads.workspace = $1 AND share_threads.share = $6) < $8",
};
const COUNTS: Statement = Statement {
    name: "shares.comment_counts",
    sql: "SELECT (SELECT COUNT(*) FROM share_threads WHERE workspace = $1 AND share = $2) \
          AS threads, (SELECT COUNT(*) FROM share_comments \
          JOIN share_threads ON share_threads.workspace = share_comments.workspace \
          AND share_threads.id = share_comments.thread \
          WHERE share_threads.workspace = $1 AND share_threads.share = $2) AS comments",
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

/// A thread of comments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadRow {
    pub id: ThreadId,
    pub share: ShareId,
    /// The passage that the thread is about; empty for the whole share.
    pub anchor: String,
    pub created_at: SystemTime,
    /// Time when the thread was resolved, and who did so.
    pub resolved: Option<(SystemTime, String)>,
}

/// A comment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommentRow {
    /// Number of the comment in the thread, from 1.
    pub number: u64,
    /// The author: a principal, or a run by its id.
    pub author: String,
    pub text: String,
    pub created_at: SystemTime,
}

/// Limits on the comments of a share.
#[derive(Debug, Clone, Copy)]
pub struct CommentBounds {
    /// Maximum number of threads of a share.
    pub threads: u64,
    /// Maximum number of comments of a thread.
    pub of_thread: u64,
    /// Maximum number of comments of all threads of a share.
    pub of_share: u64,
}

/// Numbers of a share's threads and comments.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CommentCounts {
    pub threads: u64,
    /// Number of comments of all threads.
    pub comments: u64,
}

impl Shares<'_> {
    /// Creates a thread with its first comment; `said` is its author and text. Returns `false` and
    /// stores nothing if a limit is reached.
    ///
    /// # Errors
    /// `OwnerMissing` if there is no such share, or when a statement fails.
    pub async fn begin_thread(
        &self,
        workspace: &WorkspaceId,
        thread: &ThreadRow,
        said: (&str, &str),
        bounds: CommentBounds,
    ) -> Result<bool, StatementError> {
        let (id, share) = (thread.id.to_text(), thread.share.to_text());
        let values = vec![
            Value::Text(workspace.as_str()),
            Value::Text(&id),
            Value::Text(&share),
            Value::Text(&thread.anchor),
            Value::Integer(ms(thread.created_at)),
            Value::Integer(stored(bounds.threads)),
        ];
        let comment = comment(workspace, (&id, &share), said, bounds);
        let steps = [Step::must_change(BEGIN, values), Step::must_change(COMMENT, comment)];
        self.database.write_steps(&steps).await
    }

    /// Adds a comment to a thread; `said` is its author and text. Returns `false` and stores
    /// nothing if a limit is reached.
    ///
    /// # Errors
    /// `OwnerMissing` if there is no such thread, or when a statement fails.
    pub async fn comment(
        &self,
        workspace: &WorkspaceId,
        thread: &ThreadRow,
        said: (&str, &str),
        bounds: CommentBounds,
    ) -> Result<bool, StatementError> {
        let (id, share) = (thread.id.to_text(), thread.share.to_text());
        let comment = comment(workspace, (&id, &share), said, bounds);
        self.database.write_steps(&[Step::must_change(COMMENT, comment)]).await
    }

    /// Returns the numbers of a share's threads and comments.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn comment_counts(
        &self,
        workspace: &WorkspaceId,
        share: ShareId,
    ) -> Result<CommentCounts, StatementError> {
        let rows = self.of(COUNTS, workspace, &share.to_text()).await?;
        let counts = rows.first().map(|row| {
            Ok(CommentCounts { threads: count(row, "threads")?, comments: count(row, "comments")? })
        });
        counts.transpose().map(Option::unwrap_or_default)
    }

    /// Resolves a thread, or opens it again for `None`. Returns `false` if the thread does not
    /// exist.
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

    /// The thread of this id, if it exists.
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
}

fn comment<'a>(
    workspace: &'a WorkspaceId,
    (thread, share): (&'a str, &'a str),
    (author, text): (&'a str, &'a str),
    bounds: CommentBounds,
) -> Vec<Value<'a>> {
    vec![
        Value::Text(workspace.as_str()),
        Value::Text(thread),
        Value::Text(author),
        Value::Text(text),
        Value::Integer(now_ms()),
        Value::Text(share),
        Value::Integer(stored(bounds.of_thread)),
        Value::Integer(stored(bounds.of_share)),
    ]
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
