//! Suspended sessions.

use std::{collections::BTreeMap, time::SystemTime};

use narthex_model::{RunEnd, RunId, SessionId, WorkspaceId};

use super::{grants, id, ms, resting, runs, sessions, time};
use crate::{
    StatementError,
    database::{Database, Step},
    statement::{Row, Statement, Value},
};

/// Suspends only if `$3` is the newest active run, or is empty and no run is active.
const SUSPEND: Statement = Statement {
    name: "suspended_sessions.suspend",
    sql: "INSERT INTO suspended_sessions \
          (workspace, session, run, sealed, suspended_at, suspended_by) \
          SELECT workspace, id, $3, $4, $5, $6 FROM sessions \
          WHERE workspace = $1 AND id = $2 AND ended_at = 0 \
          AND COALESCE((SELECT runs.id FROM runs WHERE runs.workspace = $1 \
          AND runs.session = $2 AND runs.ended_at = 0 ORDER BY pid DESC LIMIT 1), '') = $3 \
          ON CONFLICT (workspace, session) DO NOTHING",
};
const FIND: Statement = Statement {
    name: "suspended_sessions.find",
    sql: "SELECT session, run, sealed, suspended_at, suspended_by FROM suspended_sessions \
          WHERE workspace = $1 AND session = $2",
};
const BETWEEN: Statement = Statement {
    name: "suspended_sessions.between",
    sql: "SELECT session, run, sealed, suspended_at, suspended_by FROM suspended_sessions \
          WHERE workspace = $1 AND session >= $2 AND session <= $3 ORDER BY session",
};
const GO_ON: Statement = Statement {
    name: "suspended_sessions.go_on",
    sql: "DELETE FROM suspended_sessions \
          WHERE workspace = $1 AND session = $2 AND suspended_at = $3",
};
const FORGET: Statement = Statement {
    name: "suspended_sessions.forget",
    sql: "DELETE FROM suspended_sessions WHERE workspace = $1 AND session = $2",
};

/// Access to suspended sessions.
#[derive(Debug, Clone, Copy)]
pub struct SuspendedRows<'a> {
    database: &'a Database,
}

/// The suspension of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SuspendedSession {
    /// The session.
    pub session: SessionId,
    /// The session's newest active run at that time; `None` if there was none.
    pub run: Option<RunId>,
    /// The sealed inputs of that run; empty if there was none.
    pub sealed: String,
    /// Time of the suspension, in milliseconds; the session's runs ended at this time.
    pub at: SystemTime,
    /// The principal who suspended it.
    pub by: String,
}

impl<'a> SuspendedRows<'a> {
    pub(crate) fn new(database: &'a Database) -> Self {
        Self { database }
    }

    /// Suspends a session. All its runs end as of [`at`](SuspendedSession::at), with their frozen
    /// data and their grants. The session no longer resumes by itself. A run can be created in it
    /// only if the run names [the time](crate::NewRun::suspended_at) of this suspension. Returns
    /// `false` and changes nothing if the session has ended, is suspended already, or has another
    /// newest active run.
    ///
    /// # Errors
    /// When a statement fails.
    pub async fn suspend(
        &self,
        workspace: &WorkspaceId,
        new: &SuspendedSession,
    ) -> Result<bool, StatementError> {
        let session = new.session.to_text();
        let run = new.run.map(RunId::to_text).unwrap_or_default();
        let values = vec![
            Value::Text(workspace.as_str()),
            Value::Text(&session),
            Value::Text(&run),
            Value::Text(&new.sealed),
            Value::Integer(ms(new.at)),
            Value::Text(&new.by),
        ];
        let (of, one) = (values[0], values[1]);
        // The session comes first: another creator of a run in it waits here.
        let mut steps = vec![sessions::lives(of, one), Step::must_change(SUSPEND, values)];
        steps.extend(grants::end_of_runs_of(of, one));
        let ending = vec![of, one, Value::Integer(ms(new.at))];
        steps.push(runs::end_all(ending, RunEnd::Ended));
        steps.push(resting::forget(of, one, false));
        self.database.write_steps(&steps).await
    }

    /// Returns the suspension of a session, if it is suspended.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn find(
        &self,
        workspace: &WorkspaceId,
        session: SessionId,
    ) -> Result<Option<SuspendedSession>, StatementError> {
        let session = session.to_text();
        let values = [Value::Text(workspace.as_str()), Value::Text(&session)];
        let rows = self.database.read(FIND, &values).await?;
        rows.first().map(suspended).transpose()
    }

    /// The suspensions of a workspace's sessions from one id to another, both included.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn between(
        &self,
        workspace: &WorkspaceId,
        first: SessionId,
        last: SessionId,
    ) -> Result<BTreeMap<SessionId, SuspendedSession>, StatementError> {
        let (first, last) = (first.to_text(), last.to_text());
        let values = [Value::Text(workspace.as_str()), Value::Text(&first), Value::Text(&last)];
        let rows = self.database.read(BETWEEN, &values).await?;
        let row = |row: &Row| suspended(row).map(|one| (one.session, one));
        rows.iter().map(row).collect()
    }
}

/// The step that resumes a session which was suspended at this time; it comes to nothing if the
/// session has no such suspension any more.
pub(super) fn go_on<'v>(workspace: Value<'v>, session: Value<'v>, at: SystemTime) -> Step<'v> {
    Step::must_change(GO_ON, vec![workspace, session, Value::Integer(ms(at))])
}

/// The step that removes the stored suspension of a session that ends.
pub(super) fn forget<'v>(workspace: Value<'v>, session: Value<'v>) -> Step<'v> {
    Step::new(FORGET, vec![workspace, session])
}

fn suspended(row: &Row) -> Result<SuspendedSession, StatementError> {
    let run = match row.text("run")?.as_str() {
        "" => None,
        _ => Some(id(row, "run", RunId::parse)?),
    };
    Ok(SuspendedSession {
        session: id(row, "session", SessionId::parse)?,
        run,
        sealed: row.text("sealed")?,
        at: time(row, "suspended_at")?,
        by: row.text("suspended_by")?,
    })
}
