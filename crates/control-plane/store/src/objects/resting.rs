//! Sessions that are due to resume: an event came while they had no active run.

use std::time::SystemTime;

use narthex_model::{RunId, SessionId, WorkspaceId};

use super::{id, ms, now_ms, workspace};
use crate::{
    StatementError,
    database::{Database, Step},
    statement::{Row, Statement, Value},
};

/// Notes nothing if a run of the session is active, which gets the event itself, or the session is
/// suspended. An earlier note stays.
pub(super) const OWE: Statement = Statement {
    name: "resting_sessions.owe",
    sql: "INSERT INTO resting_sessions (workspace, session, run, sealed, due_at, tries) \
          SELECT workspace, id, $3, $4, 0, 0 FROM sessions \
          WHERE workspace = $1 AND id = $2 AND ended_at = 0 AND NOT EXISTS (SELECT 1 FROM runs \
          WHERE runs.workspace = $1 AND runs.session = $2 AND runs.ended_at = 0) \
          AND NOT EXISTS (SELECT 1 FROM suspended_sessions kept \
          WHERE kept.workspace = $1 AND kept.session = $2) \
          ON CONFLICT (workspace, session) DO NOTHING",
};
/// Notes as `OWE` does, but not while a child session is active, whose end will be reported. An
/// active child does not count in two cases, for which nothing was noted, as run `$3` could have
/// read the news. A session has sent an unread message since that run began, or a child has ended
/// since then whose end the run did not get. `$6` has the children whose ends it got.
pub(super) const OWE_ALONE: Statement = Statement {
    name: "resting_sessions.owe_alone",
    sql: "INSERT INTO resting_sessions (workspace, session, run, sealed, due_at, tries) \
          SELECT workspace, id, $3, $4, 0, 0 FROM sessions \
          WHERE workspace = $1 AND id = $2 AND ended_at = 0 AND NOT EXISTS (SELECT 1 FROM runs \
          WHERE runs.workspace = $1 AND runs.session = $2 AND runs.ended_at = 0) \
          AND NOT EXISTS (SELECT 1 FROM suspended_sessions kept \
          WHERE kept.workspace = $1 AND kept.session = $2) \
          AND (NOT EXISTS (SELECT 1 FROM sessions child WHERE child.workspace = $1 \
          AND child.ended_at = 0 AND child.parent IN (SELECT runs.id FROM runs \
          WHERE runs.workspace = $1 AND runs.session = $2)) \
          OR EXISTS (SELECT 1 FROM unread_messages JOIN session_events \
          ON session_events.workspace = unread_messages.workspace \
          AND session_events.session = unread_messages.session \
          AND session_events.seq = unread_messages.seq \
          WHERE unread_messages.workspace = $1 AND unread_messages.session = $2 \
          AND given = 0 AND sender <> '' AND (expires_at = 0 OR expires_at > $5) \
          AND happened_at >= (SELECT runs.created_at FROM runs \
          WHERE runs.workspace = $1 AND runs.id = $3)) \
          OR EXISTS (SELECT 1 FROM runs own JOIN runs one ON one.workspace = own.workspace \
          AND one.session = own.session JOIN sessions child ON child.workspace = one.workspace \
          AND child.parent = one.id AND child.ended_at >= own.created_at \
          WHERE own.workspace = $1 AND own.id = $3 AND $6 NOT LIKE '%' || child.id || '%')) \
          ON CONFLICT (workspace, session) DO NOTHING",
};
const DUE: Statement = Statement {
    name: "resting_sessions.due",
    sql: "SELECT workspace, session, run, sealed, tries FROM resting_sessions \
          WHERE due_at <= $1 ORDER BY due_at, workspace, session LIMIT $2",
};
const TAKE: Statement = Statement {
    name: "resting_sessions.take",
    sql: "UPDATE resting_sessions SET tries = tries + 1, due_at = $4 \
          WHERE workspace = $1 AND session = $2 AND tries = $3",
};
const FORGET: Statement = Statement {
    name: "resting_sessions.forget",
    sql: "DELETE FROM resting_sessions WHERE workspace = $1 AND session = $2",
};

/// Active sessions whose agents have reported by an event that they are done.
const DONE: Statement = Statement {
    name: "resting_sessions.done",
    sql: "SELECT DISTINCT sessions.workspace AS workspace, sessions.id AS session, \
          session_events.run AS run FROM runs \
          JOIN sessions ON sessions.workspace = runs.workspace AND sessions.id = runs.session \
          JOIN session_events ON session_events.workspace = sessions.workspace \
          AND session_events.session = sessions.id AND kind = $1 AND message_id = $2 \
          AND message_id <> '' \
          WHERE runs.ended_at = 0 AND sessions.ended_at = 0 AND happened_at <= $3",
};

/// Access to sessions that are due to resume.
#[derive(Debug, Clone, Copy)]
pub struct RestingRows<'a> {
    database: &'a Database,
}

/// The data for resuming a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewRest {
    /// The workspace that owns the session.
    pub workspace: WorkspaceId,
    /// The session.
    pub session: SessionId,
    /// The run of the session whose time limits the next run.
    pub run: RunId,
    /// The prompt of the next run, sealed.
    pub sealed: String,
}

/// A session whose agent has reported its work as done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DoneSession {
    /// The workspace that owns the session.
    pub workspace: WorkspaceId,
    /// The session.
    pub session: SessionId,
    /// The run that reported this, if one did.
    pub run: Option<RunId>,
}

/// A session that is due to resume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestingSession {
    /// The data for resuming the session.
    pub rest: NewRest,
    /// Number of attempts.
    pub tries: u32,
}

impl<'a> RestingRows<'a> {
    pub(crate) fn new(database: &'a Database) -> Self {
        Self { database }
    }

    /// The first `limit` sessions of all workspaces whose next attempt is due by `now`.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn due(
        &self,
        now: SystemTime,
        limit: u32,
    ) -> Result<Vec<RestingSession>, StatementError> {
        let values = [Value::Integer(ms(now)), Value::Integer(limit.into())];
        let rows = self.database.read(DUE, &values).await?;
        rows.iter().map(resting).collect()
    }

    /// The sessions of all workspaces with an active run, and with an event of this kind and
    /// message at or before a time.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn done(
        &self,
        (kind, message_id): (&str, &str),
        until: SystemTime,
    ) -> Result<Vec<DoneSession>, StatementError> {
        let values = [Value::Text(kind), Value::Text(message_id), Value::Integer(ms(until))];
        self.database.read(DONE, &values).await?.iter().map(done).collect()
    }

    /// Claims the next attempt to resume a session; the attempt after it is due at `again_at`.
    /// Returns `false` and changes nothing if another daemon has claimed the attempt, or the
    /// session is no longer due.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn take(
        &self,
        resting: &RestingSession,
        again_at: SystemTime,
    ) -> Result<bool, StatementError> {
        let NewRest { workspace, session, .. } = &resting.rest;
        let session = session.to_text();
        let values = vec![
            Value::Text(workspace.as_str()),
            Value::Text(&session),
            Value::Integer(resting.tries.into()),
            Value::Integer(ms(again_at)),
        ];
        self.database.write_steps(&[Step::must_change(TAKE, values)]).await
    }

    /// Removes the mark that a session is due to resume. Returns `false` if it was not due.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn forget(
        &self,
        workspace: &WorkspaceId,
        session: SessionId,
    ) -> Result<bool, StatementError> {
        let session = session.to_text();
        let values = vec![Value::Text(workspace.as_str()), Value::Text(&session)];
        self.database.write_steps(&[Step::must_change(FORGET, values)]).await
    }
}

/// The values of a note, as stored.
pub(super) struct RestTexts<'r> {
    rest: &'r NewRest,
    session: String,
    run: String,
    given: String,
}

impl<'r> RestTexts<'r> {
    pub(super) fn new(rest: &'r NewRest) -> Self {
        Self::after((rest, &[]))
    }

    /// The values of a note of a run that got the ends of these children.
    pub(super) fn after((rest, given): (&'r NewRest, &[SessionId])) -> Self {
        let given = given.iter().map(|id| id.to_text()).collect();
        Self { rest, session: rest.session.to_text(), run: rest.run.to_text(), given }
    }

    fn values(&self) -> Vec<Value<'_>> {
        vec![
            Value::Text(self.rest.workspace.as_str()),
            Value::Text(&self.session),
            Value::Text(&self.run),
            Value::Text(&self.rest.sealed),
        ]
    }

    /// The step that notes the session, unless a run of it is active.
    pub(super) fn step(&self) -> Step<'_> {
        Step::new(OWE, self.values())
    }

    /// The step that notes the session, unless a run or a child of it is active. Children do not
    /// count if a message or the end of a child has not reached any run.
    pub(super) fn step_if_alone(&self) -> Step<'_> {
        let mut values = self.values();
        values.extend([Value::Integer(now_ms()), Value::Text(&self.given)]);
        Step::new(OWE_ALONE, values)
    }
}

/// The step that forgets that a session is due to resume; with `is_owed` it comes to nothing if
/// there is no such note.
pub(super) fn forget<'v>(workspace: Value<'v>, session: Value<'v>, is_owed: bool) -> Step<'v> {
    match is_owed {
        true => Step::must_change(FORGET, vec![workspace, session]),
        false => Step::new(FORGET, vec![workspace, session]),
    }
}

fn done(row: &Row) -> Result<DoneSession, StatementError> {
    let run = Some(row.text("run")?).filter(|text| !text.is_empty());
    Ok(DoneSession {
        workspace: workspace(row)?,
        session: id(row, "session", SessionId::parse)?,
        run: run.map(|text| RunId::parse(&text).ok_or_else(|| row.damaged())).transpose()?,
    })
}

fn resting(row: &Row) -> Result<RestingSession, StatementError> {
    let rest = NewRest {
        workspace: workspace(row)?,
        session: id(row, "session", SessionId::parse)?,
        run: id(row, "run", RunId::parse)?,
        sealed: row.text("sealed")?,
    };
    let tries = u32::try_from(row.integer("tries")?).map_err(|_unfit| row.damaged())?;
    Ok(RestingSession { rest, tries })
}
