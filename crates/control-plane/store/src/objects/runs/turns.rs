//! Turns of sessions, stored with their runs (X-E81).

use narthex_model::{PrincipalId, RunId, SessionId, TurnOf, WorkspaceId};

use super::{RunRow, RunRows};
use crate::{
    StatementError,
    database::Step,
    objects::{grants::maybe, id, workspace},
    statement::{Row, Statement, Value},
};

/// Before each change, which gets the new number.
const COUNT: Statement =
    Statement { name: "turns.count", sql: "UPDATE turns SET n = n + 1 WHERE id = 1" };
/// Sets the turn of all active runs of a session. A run that begins later has a turn of its own.
const TAKE: Statement = Statement {
    name: "runs.take_turn",
    sql: "UPDATE runs SET turn_user = $3, turn = (SELECT n FROM turns WHERE id = 1) \
          WHERE workspace = $1 AND session = $2 AND ended_at = 0",
};
const LAST: Statement = Statement { name: "turns.last", sql: "SELECT n FROM turns WHERE id = 1" };
const SINCE: Statement = Statement {
    name: "runs.turns_since",
    sql: "SELECT id, workspace, session, driver, turn_user, turn FROM runs \
          WHERE turn > $1 AND ended_at = 0 ORDER BY turn",
};
const OF_SESSION: Statement = Statement {
    name: "runs.turns_of_session",
    sql: "SELECT id, workspace, session, driver, turn_user, turn FROM runs \
          WHERE workspace = $1 AND session = $2 AND ended_at = 0",
};

/// The turn of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Turn {
    /// Number of the turn's last change, counted over all runs; a higher number is newer.
    pub number: u64,
    /// The user who took the turn; `None` while the driver has it.
    pub of: Option<TurnOf>,
}

/// The turn of an active run, with the ids that find the run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunTurn {
    /// The workspace that owns the run.
    pub workspace: WorkspaceId,
    /// The run's session.
    pub session: SessionId,
    /// The run.
    pub run: RunId,
    /// Number of the turn's last change.
    pub number: u64,
    /// The human for whom the run acts; `None` if it acts for no human.
    pub user: Option<PrincipalId>,
}

impl RunRow {
    /// The human for whom the run acts now, whose grants count: the human who took the turn last,
    /// or the driver if none did.
    #[must_use]
    pub fn acts_for(&self) -> Option<&PrincipalId> {
        acts_for(&self.turn, self.driver.as_ref())
    }
}

fn acts_for<'p>(turn: &'p Turn, driver: Option<&'p PrincipalId>) -> Option<&'p PrincipalId> {
    turn.of.as_ref().map_or(driver, TurnOf::user)
}

impl RunRows<'_> {
    /// The number of the last turn of all sessions.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn last_turn(&self) -> Result<u64, StatementError> {
        let rows = self.database.read(LAST, &[]).await?;
        let number = rows.first().map(|row| row.integer("n")).transpose()?.unwrap_or_default();
        Ok(u64::try_from(number).unwrap_or_default())
    }

    /// The active runs whose turn changed after this number, the oldest change first.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn turns_since(&self, last: u64) -> Result<Vec<RunTurn>, StatementError> {
        let values = [Value::Integer(i64::try_from(last).unwrap_or(i64::MAX))];
        self.database.read(SINCE, &values).await?.iter().map(run_turn).collect()
    }

    /// The turns of the active runs of a session.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn turns_of(
        &self,
        workspace: &WorkspaceId,
        session: SessionId,
    ) -> Result<Vec<RunTurn>, StatementError> {
        let session = session.to_text();
        let values = [Value::Text(workspace.as_str()), Value::Text(&session)];
        self.database.read(OF_SESSION, &values).await?.iter().map(run_turn).collect()
    }
}

/// The steps by which a user takes the turn of a session.
pub(in crate::objects) fn take<'v>(
    workspace: Value<'v>,
    session: Value<'v>,
    turn: &'v TurnOf,
) -> [Step<'v>; 2] {
    let values = vec![workspace, session, Value::Text(turn.as_str())];
    [Step::new(COUNT, Vec::new()), Step::new(TAKE, values)]
}

/// The turn in the run of a row.
pub(super) fn turn(row: &Row) -> Result<Turn, StatementError> {
    let number = u64::try_from(row.integer("turn")?).map_err(|_negative| row.damaged())?;
    Ok(Turn { number, of: maybe(row, "turn_user", TurnOf::parse)? })
}

fn run_turn(row: &Row) -> Result<RunTurn, StatementError> {
    let driver = maybe(row, "driver", |text| PrincipalId::new(text).ok())?;
    let turn = turn(row)?;
    Ok(RunTurn {
        workspace: workspace(row)?,
        session: id(row, "session", SessionId::parse)?,
        run: id(row, "id", RunId::parse)?,
        number: turn.number,
        user: acts_for(&turn, driver.as_ref()).cloned(),
    })
}
