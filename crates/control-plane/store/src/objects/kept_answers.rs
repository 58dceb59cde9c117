//! Answers to writes that came with an idempotency key.

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
    /// True if the request has its answer, and no daemon works on it any more.
    pub is_done: bool,
    /// The request, and its answer if there is one, sealed.
    pub sealed: String,
}

/// A request that a daemon begins.
#[derive(Debug, Clone, Copy)]
pub struct NewRequest<'a> {
    /// The id under which the request is stored.
    pub id: &'a str,
    /// The workspace that owns it; `None` if it belongs to no workspace.
    pub workspace: Option<&'a WorkspaceId>,
    /// The claim of the daemon that works on it; never empty.
    pub claim: &'a str,
    /// The request, sealed.
    pub sealed: &'a str,
    /// When it begins.
    pub begun_at: SystemTime,
}

/// Access to kept answers.
#[derive(Debug, Clone, Copy)]
pub struct KeptAnswers<'a> {
    database: &'a Database,
}

impl<'a> KeptAnswers<'a> {
    pub(crate) fn new(database: &'a Database) -> Self {
        Self { database }
    }

    /// Begins a request, unless there is one of this id already: then `false`. Requests from
    /// before `forgotten` are not known any more.
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

    /// Returns the request of an id.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn find(&self, id: &str) -> Result<Option<KeptAnswer>, StatementError> {
        let rows = self.database.read(FIND, &[Value::Text(id)]).await?;
        rows.first().map(kept).transpose()
    }

    /// Takes over a request that another daemon began before `abandoned`. `false` if there is none,
    /// or it has an answer by now.
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

    /// Stores the answer. `false` if another daemon has taken the request over, or its workspace is
    /// gone.
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

    /// Forgets a request that changed nothing.
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
