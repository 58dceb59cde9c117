//! Open requests: their number, and the end of their time.

use std::time::SystemTime;

use narthex_model::{GrantOf, RunId, SessionId};

use super::{GrantRequestRow, GrantRequests, OPEN_MAX, request};
use crate::{
    StatementError,
    database::Step,
    objects::{ms, now_ms},
    statement::{Statement, Value},
};

/// Requests without a decision in time that are not recorded as expired yet.
const OVERDUE: Statement = Statement {
    name: "grant_requests.overdue",
    sql: select!(
        "$1",
        "WHERE status = 'pending' AND expires_at <= $1 ORDER BY expires_at LIMIT $2"
    ),
};
/// Decided requests of active sessions.
const DECIDED: Statement = Statement {
    name: "grant_requests.decided",
    sql: select!(
        "$2",
        "WHERE decided_at > $1 AND EXISTS (SELECT 1 FROM sessions \
         WHERE sessions.workspace = grant_requests.workspace \
         AND sessions.id = grant_requests.session AND sessions.ended_at = 0) \
         ORDER BY decided_at LIMIT $3"
    ),
};
const EXPIRE: Statement = Statement {
    name: "grant_requests.expire",
    sql: "UPDATE grant_requests SET status = 'expired' \
          WHERE workspace = $1 AND id = $2 AND status = 'pending' AND expires_at <= $3",
};
const END_OF_SESSION: Statement = Statement {
    name: "grant_requests.end_of_session",
    sql: "UPDATE grant_requests SET status = 'expired' \
          WHERE workspace = $1 AND session = $2 AND status = 'pending'",
};
/// A run's request for another thing under this name, in this session: the run of a daemon itself
/// has one session after the other.
const OTHER: Statement = Statement {
    name: "grant_requests.other",
    sql: "SELECT id FROM grant_requests WHERE run = $1 AND session = $5 AND asked_as = $2 \
          AND asked_as <> '' AND (grant_type <> $3 OR details <> $4) LIMIT 1",
};
const OPEN: Statement = Statement {
    name: "grant_requests.open",
    sql: "SELECT grant_type, details FROM grant_requests \
          WHERE run = $1 AND status = 'pending' AND expires_at > $2",
};

impl GrantRequests<'_> {
    /// True if a run has used this name in a session for another request.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn is_other(
        &self,
        (run, session): (RunId, Option<SessionId>),
        asked_as: &str,
        of: &GrantOf,
    ) -> Result<bool, StatementError> {
        let (run, details) = (run.to_text(), of.details().to_string());
        let session = session.map(SessionId::to_text).unwrap_or_default();
        let values = [
            Value::Text(&run),
            Value::Text(asked_as),
            Value::Text(of.word()),
            Value::Text(&details),
            Value::Text(&session),
        ];
        Ok(!self.database.read(OTHER, &values).await?.is_empty())
    }

    /// True if a run may have these requests open in addition to its others.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn is_room(&self, run: RunId, all: &[GrantOf]) -> Result<bool, StatementError> {
        let run = run.to_text();
        let rows = self.database.read(OPEN, &[Value::Text(&run), Value::Integer(now_ms())]).await?;
        let open = rows.iter().map(|row| Ok((row.text("grant_type")?, row.text("details")?)));
        let open = open.collect::<Result<Vec<_>, StatementError>>()?;
        let is_open = |of: &GrantOf| {
            let details = of.details().to_string();
            open.iter().any(|(word, known)| word == of.word() && *known == details)
        };
        let new = all.iter().filter(|of| !is_open(of)).count();
        Ok(open.len() + new <= usize::try_from(OPEN_MAX).unwrap_or(usize::MAX))
    }

    /// The first `limit` requests of all workspaces without a decision in time that are not yet
    /// marked by [`expire`](Self::expire).
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn overdue(&self, limit: u32) -> Result<Vec<GrantRequestRow>, StatementError> {
        let values = [Value::Integer(now_ms()), Value::Integer(limit.into())];
        self.database.read(OVERDUE, &values).await?.iter().map(request).collect()
    }

    /// The first `limit` requests of active sessions, of all workspaces, that humans have decided
    /// since a time.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn decided_since(
        &self,
        since: SystemTime,
        limit: u32,
    ) -> Result<Vec<GrantRequestRow>, StatementError> {
        let values =
            [Value::Integer(ms(since)), Value::Integer(now_ms()), Value::Integer(limit.into())];
        self.database.read(DECIDED, &values).await?.iter().map(request).collect()
    }

    /// Marks a request as expired, unless a human has decided.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn expire(&self, row: &GrantRequestRow) -> Result<(), StatementError> {
        let id = row.id.to_text();
        let place = [Value::Text(row.workspace.as_str()), Value::Text(&id)];
        let values = [&place[..], &[Value::Integer(now_ms())]].concat();
        self.database.write_steps(&[Step::new(EXPIRE, values)]).await.map(drop)
    }
}

/// The step that ends the open requests of a session, for which no run waits any more.
pub(in crate::objects) fn end_of_session<'v>(workspace: Value<'v>, session: Value<'v>) -> Step<'v> {
    Step::new(END_OF_SESSION, vec![workspace, session])
}
