//! Runs of workspaces: their numbers, their creation and their ends.

mod claims;
mod executors;
mod reading;
mod searching;
mod turns;

use std::time::SystemTime;

use narthex_model::{
    AgentType, EnvName, GrantId, Pid, PrincipalId, RunEnd, RunId, SessionId, WorkspaceId,
};

pub(super) use self::turns::take as take_turn;
pub use self::{
    claims::{Awaited, Claim, Waiting},
    reading::{LiveRun, RunFilter},
    searching::{LivingRuns, RunSearch},
    turns::{RunTurn, Turn},
};
#[cfg(test)]
pub(super) use self::{
    reading::PAGE_OF_SESSION,
    searching::{BELOW, COUNT_LIVING},
};
use super::{
    grants, ms, now_ms,
    resting::{self, NewRest, RestTexts},
    sessions, suspended,
};
use crate::{
    SessionRow, StatementError,
    database::{Database, Step},
    statement::{Statement, Value},
};

const COUNT: Statement = Statement {
    name: "runs.count",
    sql: "INSERT INTO run_counters (workspace, last_pid) VALUES ($1, 1) \
          ON CONFLICT (workspace) DO UPDATE SET last_pid = run_counters.last_pid + 1",
};
const CREATE: Statement = Statement {
    name: "runs.create",
    sql: "INSERT INTO runs (id, workspace, session, pid, agent, parent, token, sealed, created_at, \
          created_by, expires_at, ended_at, outcome, agent_env, has_sockets, driver, claimable, \
          model, runtime, executor, turn) \
          SELECT $2, $1, $3, last_pid, $4, $5, $6, $7, $8, $9, $10, 0, '', $11, $12, $13, $14, \
          $15, $16, $17, turns.n FROM run_counters, turns \
          WHERE workspace = $1 AND turns.id = 1",
};
const PARENT_LIVES: Statement = Statement {
    name: "runs.parent",
    sql: "UPDATE runs SET ended_at = 0 WHERE workspace = $1 AND id = $2 AND ended_at = 0",
};
/// Holds if no more than `$4` sessions that runs of session `$3` have created are active.
const CHILDREN_FIT: Statement = Statement {
    name: "runs.children_fit",
    sql: "UPDATE runs SET ended_at = 0 WHERE workspace = $1 AND id = $2 AND ended_at = 0 AND \
          (SELECT COUNT(*) FROM sessions WHERE workspace = $1 AND ended_at = 0 AND parent IN \
          (SELECT id FROM runs WHERE workspace = $1 AND session = $3)) <= $4",
};
/// Holds if no session but `$5` is active that runs of session `$3` have created for the agent
/// `$4`.
const IS_SINGLE: Statement = Statement {
    name: "runs.is_single",
    sql: "UPDATE runs SET ended_at = 0 WHERE workspace = $1 AND id = $2 AND ended_at = 0 AND \
          NOT EXISTS (SELECT 1 FROM sessions WHERE workspace = $1 AND ended_at = 0 \
          AND agent = $4 AND agent_type IN ('', 'orchestrator') AND id <> $5 AND parent IN \
          (SELECT id FROM runs WHERE workspace = $1 AND session = $3))",
};
/// Holds if runs have created no more than `$4` sessions since `$3`.
const DAY_FITS: Statement = Statement {
    name: "runs.day_fits",
    sql: "UPDATE runs SET ended_at = 0 WHERE workspace = $1 AND id = $2 AND ended_at = 0 AND \
          (SELECT COUNT(*) FROM sessions WHERE workspace = $1 AND parent <> '' \
          AND created_at >= $3) <= $4",
};
const END: Statement = Statement {
    name: "runs.end",
    sql: "UPDATE runs SET ended_at = $3, outcome = $4, sealed = '', claim = '', claimed_until = \
          CASE WHEN claimed_until > $3 THEN $3 ELSE claimed_until END \
          WHERE workspace = $1 AND id = $2 AND ended_at = 0",
};
const END_ALL: Statement = Statement {
    name: "runs.end_all",
    sql: "UPDATE runs SET ended_at = $3, outcome = $4, sealed = '', claim = '', claimed_until = \
          CASE WHEN claimed_until > $3 THEN $3 ELSE claimed_until END \
          WHERE workspace = $1 AND session = $2 AND ended_at = 0",
};

const FREEZE: Statement = Statement {
    name: "runs.freeze",
    sql: "UPDATE runs SET sealed = $3 WHERE workspace = $1 AND id = $2 AND ended_at = 0",
};

/// Access to runs.
#[derive(Debug, Clone, Copy)]
pub struct RunRows<'a> {
    database: &'a Database,
}

/// A stored run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunRow {
    /// The run's id.
    pub id: RunId,
    /// The workspace that owns the run.
    pub workspace: WorkspaceId,
    /// The session of the run.
    pub session: SessionId,
    /// The run's number.
    pub pid: Pid,
    /// Name of the run's agent; empty for a run with its own servers.
    pub agent: String,
    /// The parent run, if there is one.
    pub parent: Option<RunId>,
    /// The variables for the agent that the creator got (X-E60).
    pub agent_env: Vec<EnvName>,
    /// SHA-256 of the run's token, in hexadecimal.
    pub token: String,
    /// The run's frozen data, sealed; empty once the run has ended.
    pub sealed: String,
    /// Time of creation.
    pub created_at: SystemTime,
    /// The principal or run that created this run.
    pub created_by: String,
    /// End of the run's time.
    pub expires_at: SystemTime,
    /// True if the run has Unix sockets.
    pub has_sockets: bool,
    /// The human who drives the run, if one does.
    pub driver: Option<PrincipalId>,
    /// The current turn.
    pub turn: Turn,
    /// The data for the executor that carries the run out; `None` if its creator does.
    pub waiting: Option<Waiting>,
    /// Time and outcome of the end; `None` while the run is active.
    pub ended: Option<(SystemTime, RunEnd)>,
}

/// A run to be stored. The store gives the number.
#[derive(Debug, Clone, Copy)]
pub struct NewRun<'a> {
    /// The run's id.
    pub id: RunId,
    /// The workspace that owns the run.
    pub workspace: &'a WorkspaceId,
    /// The session of the run.
    pub session: SessionId,
    /// Name of the run's agent; empty for a run with its own servers.
    pub agent: &'a str,
    /// The agent's type in the frozen data; `None` for a run with its own servers.
    pub agent_type: Option<AgentType>,
    /// The parent run, which must be active.
    pub parent: Option<RunId>,
    /// The variables for the agent that the creator gets.
    pub agent_env: &'a [EnvName],
    /// SHA-256 of the run's token, in hexadecimal.
    pub token: &'a str,
    /// The run's frozen data, sealed.
    pub sealed: &'a str,
    /// The principal or run that creates this run.
    pub created_by: &'a str,
    /// End of the run's time.
    pub expires_at: SystemTime,
    /// True if the run has Unix sockets.
    pub has_sockets: bool,
    /// The human who drives the run, if one does.
    pub driver: Option<&'a PrincipalId>,
    /// The request for an executor to claim it; `None` if its creator carries it out.
    pub awaited: Option<Awaited<'a>>,
    /// The conditions on the parent, if the parent creates the run itself.
    pub spawned: Option<Spawned>,
    /// True if the run resumes a session that is due to: only one such run is created.
    pub is_owed: bool,
    /// The time at which the session was suspended, if it is suspended: this run resumes it.
    pub suspended_at: Option<SystemTime>,
}

/// The conditions under which a run may create another.
#[derive(Debug, Clone, Copy)]
pub struct Spawned {
    /// The parent's session, which must be active.
    pub session: SessionId,
    /// Maximum number of active sessions that runs of the parent's session have created, with the
    /// new one.
    pub children_max: u32,
    /// A time, and the maximum number of sessions that runs of the workspace may have created
    /// since, with the new one.
    pub day: (SystemTime, u32),
    /// True if runs of the parent's session may have created no other active session of the agent.
    pub is_single: bool,
    /// The grant for a single use that the new run uses up.
    pub grant: Option<GrantId>,
}

impl<'a> RunRows<'a> {
    pub(crate) fn new(database: &'a Database) -> Self {
        Self { database }
    }

    /// Stores a run, and its session if that is new; returns the stored run. Returns `None` and
    /// changes nothing if the session or the parent has ended, or the parent may not create the
    /// run. The same holds if the session's suspension is not the one that `run` names. It also
    /// holds if another run has resumed the session that this run is to resume.
    ///
    /// # Errors
    /// `Exists` if an id is taken, `OwnerMissing` if there is no such session or workspace, or when
    /// a statement fails.
    pub async fn create(
        &self,
        run: NewRun<'_>,
        new_session: Option<&SessionRow>,
    ) -> Result<Option<RunRow>, StatementError> {
        let NewRun { id, workspace, session, agent, parent, token, .. } = run;
        let NewRun { agent_env, sealed, created_by, expires_at, has_sockets, driver, .. } = run;
        let NewRun { awaited, spawned, is_owed, suspended_at, agent_type, .. } = run;
        let agent_env = agent_env.iter().map(EnvName::as_str).collect::<Vec<_>>().join(" ");
        let (id, session) = (id.to_text(), session.to_text());
        let parent = parent.map(RunId::to_text).unwrap_or_default();
        let of_session = new_session.map(|row| (row.id.to_text(), sessions::parent(row)));
        let workspace = Value::Text(workspace.as_str());
        let by_parent = spawned.map(SpawnTexts::new);
        let mut steps = Vec::with_capacity(8);
        match (new_session, &of_session) {
            (Some(row), Some((id, parent))) => steps.push(sessions::create(row, id, parent)),
            _ => {
                let session = Value::Text(&session);
                let kept = suspended_at.map(|at| suspended::go_on(workspace, session, at));
                steps.extend(kept);
                steps.push(sessions::lives(workspace, session));
                steps.push(resting::forget(workspace, session, is_owed));
            }
        }
        steps.push(sessions::is_of_type(workspace, Value::Text(&session), agent_type));
        if !parent.is_empty() {
            let values = vec![workspace, Value::Text(&parent)];
            steps.push(Step::must_change(PARENT_LIVES, values));
        }
        if let Some(of) = &by_parent {
            steps.extend(of.steps(workspace, Value::Text(&parent)));
            steps.extend(of.single_step(workspace, Value::Text(&parent), (agent, &session)));
        }
        steps.push(Step::new(COUNT, vec![workspace]));
        let day = by_parent.as_ref().map(|of| of.day_step(workspace, Value::Text(&parent)));
        steps.extend(day);
        let values = vec![
            workspace,
            Value::Text(&id),
            Value::Text(&session),
            Value::Text(agent),
            Value::Text(&parent),
            Value::Text(token),
            Value::Text(sealed),
            Value::Integer(now_ms()),
            Value::Text(created_by),
            Value::Integer(ms(expires_at)),
            Value::Text(&agent_env),
            Value::Integer(has_sockets.into()),
            Value::Text(driver.map_or("", PrincipalId::as_str)),
            Value::Integer(awaited.is_some().into()),
            Value::Text(awaited.map_or("", |awaited| awaited.model)),
            Value::Text(awaited.map_or("", |awaited| awaited.runtime)),
            Value::Text(
                awaited.and_then(|awaited| awaited.executor).map_or("", |name| name.as_str()),
            ),
        ];
        steps.push(Step::must_change(CREATE, values));
        self.read_after(&steps, Value::Text(&id)).await
    }

    /// Replaces the frozen data of a run. Returns `false` and changes nothing if the run has ended,
    /// or the id is unknown.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn freeze(
        &self,
        workspace: &WorkspaceId,
        id: RunId,
        sealed: &str,
    ) -> Result<bool, StatementError> {
        let id = id.to_text();
        let values = vec![Value::Text(workspace.as_str()), Value::Text(&id), Value::Text(sealed)];
        self.database.write_steps(&[Step::must_change(FREEZE, values)]).await
    }

    /// Ends a run, and removes its frozen data. Returns `false` and changes nothing if the run had
    /// ended before, or the id is unknown.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn end(
        &self,
        workspace: &WorkspaceId,
        id: RunId,
        how: RunEnd,
    ) -> Result<bool, StatementError> {
        self.end_owing(workspace, id, how, None).await
    }

    /// Ends a run, and marks its session as due to resume in the same step, unless a run or a child
    /// of the session is active. Active children do not count if a session has sent an unread
    /// message since this run began. They do not count either if a child that is not in `owed` has
    /// ended, and no run received that end.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn end_owing(
        &self,
        workspace: &WorkspaceId,
        id: RunId,
        how: RunEnd,
        owed: Option<(&NewRest, &[SessionId])>,
    ) -> Result<bool, StatementError> {
        let id = id.to_text();
        let values = vec![
            Value::Text(workspace.as_str()),
            Value::Text(&id),
            Value::Integer(now_ms()),
            Value::Text(how.as_str()),
        ];
        let granted = grants::end_of_run(values[0], values[1]);
        let owed = owed.map(RestTexts::after);
        let mut steps = vec![Step::must_change(END, values)];
        steps.extend(granted);
        steps.extend(owed.as_ref().map(RestTexts::step_if_alone));
        self.database.write_steps(&steps).await
    }
}

/// The conditions on a parent, as stored.
struct SpawnTexts {
    session: String,
    children_max: i64,
    day: (i64, i64),
    is_single: bool,
    grant: Option<String>,
}

impl SpawnTexts {
    fn new(of: Spawned) -> Self {
        let (session, grant) = (of.session.to_text(), of.grant.map(|id| id.to_text()));
        let day = (ms(of.day.0), of.day.1.into());
        let (children_max, is_single) = (of.children_max.into(), of.is_single);
        Self { session, children_max, day, is_single, grant }
    }

    fn steps<'v>(&'v self, workspace: Value<'v>, parent: Value<'v>) -> Vec<Step<'v>> {
        let session = Value::Text(&self.session);
        // First step: another creator of a child of this session waits here.
        let mut steps = vec![sessions::lives(workspace, session)];
        let values = vec![workspace, parent, session, Value::Integer(self.children_max)];
        steps.push(Step::must_change(CHILDREN_FIT, values));
        if let Some(grant) = &self.grant {
            steps.extend(grants::consume(workspace, Value::Text(grant), parent));
        }
        steps
    }

    /// The step that checks for another child of the agent, while no other creator can add one.
    fn single_step<'v>(
        &'v self,
        workspace: Value<'v>,
        parent: Value<'v>,
        (agent, new): (&'v str, &'v str),
    ) -> Option<Step<'v>> {
        let values = vec![
            workspace,
            parent,
            Value::Text(&self.session),
            Value::Text(agent),
            Value::Text(new),
        ];
        self.is_single.then(|| Step::must_change(IS_SINGLE, values))
    }

    /// The step that checks the day's limit, while no other creator in the workspace can add a
    /// session.
    fn day_step<'v>(&'v self, workspace: Value<'v>, parent: Value<'v>) -> Step<'v> {
        let (since, most) = self.day;
        let values = vec![workspace, parent, Value::Integer(since), Value::Integer(most)];
        Step::must_change(DAY_FITS, values)
    }
}

/// The step that ends all runs of a session, by workspace, session and time.
pub(super) fn end_all(mut values: Vec<Value<'_>>, how: RunEnd) -> Step<'_> {
    values.push(Value::Text(how.as_str()));
    Step::new(END_ALL, values)
}
