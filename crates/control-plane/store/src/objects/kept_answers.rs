//! Stored answers to writes with an idempotency key.

use std::time::SystemTime;

use narthex_model::WorkspaceId;

use super::ms;
use crate::{
    StatementError,
    database::{Database, Step},
    statement::{Row, Statement, Value},
};

const FORGET: Statement =
    Statement { name: "kept_answers.forget", sql: "DELETE FROM kept_answers WHERE begun_at < $1" };
const BEGIN: Statement = Statement {
    name: "kept_answers.begin",
    sql: "INSERT INTO kept_answers (id, workspace, claim, sealed, begun_at) \
          VALUES ($1, NULLIF($2, ''), $3, $4, $5) ON CONFLICT (id) DO NOTHING",
};
const FIND: Statement = Statement {
    name: "kept_answers.find",
    sql: "SELECT claim, sealed FROM kept_answers WHERE id = $1",
};
const RECLAIM: Statement = Statement {
    name: "kept_answers.reclaim",
    sql: "UPDATE kept_answers SET claim = $2, begun_at = $3 \
          WHERE id = $1 AND claim <> '' AND begun_at < $4",
};
const FINISH: Statement = Statement {
    name: "kept_answers.finish",
    sql: "UPDATE kept_answers SET claim = '', sealed = $3 WHERE id = $1 AND claim = $2",
};
const RELEASE: Statement = Statement {
    name: "kept_answers.release",
    sql: "DELETE FROM kept_answers WHERE id = $1 AND claim = $2",
};

/// A stored request, with its answer if there is one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptAnswer {
    /// True if the request has its answer; no daemon works on the request any more.
    pub is_done: bool,
    /// The request, and its answer if there is one, sealed together.
    pub sealed: String,
}

/// A request that a daemon starts.
#[derive(Debug, Clone, Copy)]
pub struct NewRequest<'a> {
    /// The id under which the request is stored.
    pub id: &'a str,
    /// The workspace that owns the request; `None` without a workspace.
    pub workspace: Option<&'a WorkspaceId>,
    /// The claim of the daemon that works on the request; never empty.
    pub claim: &'a str,
    /// The request, sealed.
    pub sealed: &'a str,
    /// Time of its start.
    pub begun_at: SystemTime,
}

/// Access to stored answers.
#[derive(Debug, Clone, Copy)]
pub struct KeptAnswers<'a> {
    database: &'a Database,
}

impl<'a> KeptAnswers<'a> {
    pub(crate) fn new(database: &'a Database) -> Self {
        Self { database }
    }

    /// Stores a new request. Returns `false` if a request of this id is stored, unless it is from
    /// before `forgotten`: such requests are removed.
    ///
    /// # Errors
    /// `OwnerMissing` if there is no such workspace, or when a statement fails.
    pub async fn begin(
        &self,
        new: NewRequest<'_>,
        forgotten: SystemTime,
    ) -> Result<bool, StatementError> {
        let values = vec![
            Value::Text(new.id),
            Value::Text(new.workspace.map_or("", WorkspaceId::as_str)),
            Value::Text(new.claim),
            Value::Text(new.sealed),
            Value::Integer(ms(new.begun_at)),
        ];
        let forget = Step::new(FORGET, vec![Value::Integer(ms(forgotten))]);
        self.database.write_steps(&[forget, Step::must_change(BEGIN, values)]).await
    }

    /// Returns the request of an id, if it is stored.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn find(&self, id: &str) -> Result<Option<KeptAnswer>, StatementError> {
        let rows = self.database.read(FIND, &[Value::Text(id)]).await?;
        rows.first().map(kept).transpose()
    }

    /// Takes over a request that another daemon started before `abandoned`. Returns `false` if
    /// there is no such request, or it has an answer by now.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn reclaim(
        &self,
        id: &str,
        claim: &str,
        (begun_at, abandoned): (SystemTime, SystemTime),
    ) -> Result<bool, StatementError> {
        let values = vec![
            Value::Text(id),
            Value::Text(claim),
            Value::Integer(ms(begun_at)),
            Value::Integer(ms(abandoned)),
        ];
        self.database.write_steps(&[Step::must_change(RECLAIM, values)]).await
    }

    /// Stores the answer. Returns `false` if another daemon has taken the request over, or its
    /// workspace was deleted.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn finish(
        &self,
        id: &str,
        claim: &str,
        sealed: &str,
    ) -> Result<bool, StatementError> {
        let values = vec![Value::Text(id), Value::Text(claim), Value::Text(sealed)];
        self.database.write_steps(&[Step::must_change(FINISH, values)]).await
    }

    /// Removes a request that changed nothing.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn release(&self, id: &str, claim: &str) -> Result<(), StatementError> {
        self.database.write(RELEASE, &[Value::Text(id), Value::Text(claim)]).await
    }
}

fn kept(row: &Row) -> Result<KeptAnswer, StatementError> {
    Ok(KeptAnswer { is_done: row.text("claim")?.is_empty(), sealed: row.text("sealed")? })
}
