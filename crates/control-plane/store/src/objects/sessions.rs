//! Sessions of workspaces: the work of agents, over all their runs.

use std::time::SystemTime;

use narthex_model::{AgentType, RunEnd, RunId, SessionId, WorkspaceId};

use super::{
    children::agent_type,
    grant_requests, grants, id, ms, now_ms, optional_time,
    resting::{self, NewRest, RestTexts},
    runs, suspended, time, workspace,
};
use crate::{
    StatementError,
    database::{Database, Step},
    statement::{Row, Statement, Value},
};

const CREATE: Statement = Statement {
    name: "sessions.create",
    sql: "INSERT INTO sessions \
          (workspace, id, agent, parent, depth, sealed, created_at, created_by, ended_at) \
          VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 0)",
};
const LIVES: Statement = Statement {
    name: "sessions.lives",
    sql: "UPDATE sessions SET ended_at = 0 WHERE workspace = $1 AND id = $2 AND ended_at = 0 \
          AND NOT EXISTS (SELECT 1 FROM suspended_sessions WHERE \
          suspended_sessions.workspace = $1 AND suspended_sessions.session = $2)",
};
/// The type of the session's agent, as its newest run is frozen with.
const IS_OF_TYPE: Statement = Statement {
    name: "sessions.is_of_type",
    sql: "UPDATE sessions SET agent_type = $3 WHERE workspace = $1 AND id = $2",
};
const END: Statement = Statement {
    name: "sessions.end",
    sql: "UPDATE sessions SET ended_at = $3, outcome = $4, sealed = '' \
          WHERE workspace = $1 AND id = $2 AND ended_at = 0",
};
const FIND: Statement = Statement {
    name: "sessions.find",
    sql: "SELECT workspace, id, agent, parent, depth, sealed, created_at, created_by, ended_at, \
          agent_type, outcome FROM sessions WHERE workspace = $1 AND id = $2",
};
/// Active sessions without a stored run.
const LIVE_ALONE: Statement = Statement {
    name: "sessions.live_alone",
    sql: "SELECT id FROM sessions WHERE workspace = $1 AND ended_at = 0 AND created_by = $2 \
          AND parent = '' AND NOT EXISTS (SELECT 1 FROM runs WHERE \
          runs.workspace = sessions.workspace AND runs.session = sessions.id) ORDER BY id",
};
/// Active sessions that runs of a session have created.
const LIVE_CHILDREN: Statement = Statement {
    name: "sessions.live_children",
    sql: "SELECT COUNT(*) AS children FROM sessions WHERE workspace = $1 AND ended_at = 0 \
          AND parent IN (SELECT id FROM runs WHERE workspace = $1 AND session = $2)",
};
const LIVE_CHILD_OF: Statement = Statement {
    name: "sessions.live_child_of",
    sql: "SELECT id FROM sessions WHERE workspace = $1 AND ended_at = 0 AND agent = $3 \
          AND agent_type IN ('', 'orchestrator') AND parent IN \
          (SELECT id FROM runs WHERE workspace = $1 AND session = $2) \
          ORDER BY created_at, id LIMIT 1",
};
const CHILDREN_SINCE: Statement = Statement {
    name: "sessions.children_since",
    sql: "SELECT COUNT(*) AS children FROM sessions WHERE workspace = $1 AND parent <> '' \
          AND created_at >= $2",
};
const PAGE: Statement = Statement {
    name: "sessions.page",
    sql: "SELECT workspace, id, agent, parent, depth, sealed, created_at, created_by, ended_at, \
          agent_type, outcome FROM sessions WHERE workspace = $1 AND id > $2 ORDER BY id LIMIT $3",
};

/// Access to sessions.
#[derive(Debug, Clone, Copy)]
pub struct SessionRows<'a> {
    pub(super) database: &'a Database,
}

/// A stored session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionRow {
    /// The workspace that owns the session.
    pub workspace: WorkspaceId,
    /// The session's id.
    pub id: SessionId,
    /// Name of the session's agent; empty for a run with its own servers.
    pub agent: String,
    /// The run that created the session, if one did.
    pub parent: Option<RunId>,
    /// Number of ancestor sessions.
    pub depth: u32,
    /// The parameters of the session, sealed; empty once it has ended.
    pub sealed: String,
    /// Time of creation.
    pub created_at: SystemTime,
    /// The principal or run that created the session.
    pub created_by: String,
    /// Time of the end; `None` while the session is active.
    pub ended_at: Option<SystemTime>,
    /// The outcome; `None` while the session is active.
    pub how: Option<RunEnd>,
    /// The agent's type in the newest run's frozen data; `None` if no run has recorded it.
    pub agent_type: Option<AgentType>,
}

impl<'a> SessionRows<'a> {
    pub(crate) fn new(database: &'a Database) -> Self {
        Self { database }
    }

    /// The session of this id, if the workspace has it.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn find(
        &self,
        workspace: &WorkspaceId,
        id: SessionId,
    ) -> Result<Option<SessionRow>, StatementError> {
        let id = id.to_text();
        let values = [Value::Text(workspace.as_str()), Value::Text(&id)];
        let rows = self.database.read(FIND, &values).await?;
        rows.first().map(session).transpose()
    }

    /// Stores a session without a stored run.
    ///
    /// # Errors
    /// `Exists` if the id is taken, `OwnerMissing` if there is no such workspace, or when a
    /// statement fails.
    pub async fn begin_alone(&self, row: &SessionRow) -> Result<(), StatementError> {
        let (id, parent) = (row.id.to_text(), parent(row));
        self.database.write_steps(&[create(row, &id, &parent)]).await.map(drop)
    }

    /// The active sessions of a creator that have no stored run.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn live_alone(
        &self,
        workspace: &WorkspaceId,
        created_by: &str,
    ) -> Result<Vec<SessionId>, StatementError> {
        let values = [Value::Text(workspace.as_str()), Value::Text(created_by)];
        let rows = self.database.read(LIVE_ALONE, &values).await?;
        rows.iter().map(|row| id(row, "id", SessionId::parse)).collect()
    }

    /// The first `limit` sessions of a workspace whose ids come after `after`.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn page(
        &self,
        workspace: &WorkspaceId,
        after: &str,
        limit: u32,
    ) -> Result<Vec<SessionRow>, StatementError> {
        let values =
            [Value::Text(workspace.as_str()), Value::Text(after), Value::Integer(limit.into())];
        let rows = self.database.read(PAGE, &values).await?;
        rows.iter().map(session).collect()
    }

    /// Number of active sessions that runs of this session have created.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn live_children(
        &self,
        workspace: &WorkspaceId,
        of: SessionId,
    ) -> Result<u64, StatementError> {
        let of = of.to_text();
        let values = [Value::Text(workspace.as_str()), Value::Text(&of)];
        let rows = self.database.read(LIVE_CHILDREN, &values).await?;
        let count = rows.first().map(|row| row.integer("children")).transpose()?;
        Ok(u64::try_from(count.unwrap_or_default()).unwrap_or_default())
    }

    /// The oldest active session of an agent that runs of another session have created.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn live_child_of(
        &self,
        workspace: &WorkspaceId,
        of: SessionId,
        agent: &str,
    ) -> Result<Option<SessionId>, StatementError> {
        let of = of.to_text();
        let values = [Value::Text(workspace.as_str()), Value::Text(&of), Value::Text(agent)];
        let rows = self.database.read(LIVE_CHILD_OF, &values).await?;
        rows.first().map(|row| id(row, "id", SessionId::parse)).transpose()
    }

    /// Number of sessions that runs of a workspace have created since a time.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn children_since(
        &self,
        workspace: &WorkspaceId,
        since: SystemTime,
    ) -> Result<u64, StatementError> {
        let values = [Value::Text(workspace.as_str()), Value::Integer(ms(since))];
        let rows = self.database.read(CHILDREN_SINCE, &values).await?;
        let count = rows.first().map(|row| row.integer("children")).transpose()?;
        Ok(u64::try_from(count.unwrap_or_default()).unwrap_or_default())
    }

    /// Ends a session and all its runs, with one outcome and at one time, and removes its
    /// parameters and their frozen data. No run can be created in it any more. Returns `false` and
    /// changes nothing if the session had ended before, or the id is unknown.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn end(
        &self,
        workspace: &WorkspaceId,
        id: SessionId,
        how: RunEnd,
    ) -> Result<bool, StatementError> {
        self.end_owing(workspace, id, how, None).await
    }

    /// Ends a session, and marks the parent session as due to resume in the same step, unless that
    /// one has an active run.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn end_owing(
        &self,
        workspace: &WorkspaceId,
        id: SessionId,
        how: RunEnd,
        owed: Option<&NewRest>,
    ) -> Result<bool, StatementError> {
        let id = id.to_text();
        let mut values =
            vec![Value::Text(workspace.as_str()), Value::Text(&id), Value::Integer(now_ms())];
        let granted = grants::end_of_session(values[0], values[1]);
        let runs = runs::end_all(values.clone(), how);
        values.push(Value::Text(how.as_str()));
        let rests = resting::forget(values[0], values[1], false);
        let owed = owed.map(RestTexts::new);
        let kept = suspended::forget(values[0], values[1]);
        let asked = grant_requests::end_of_session(values[0], values[1]);
        let mut steps = vec![Step::must_change(END, values), runs, rests, kept, asked];
        steps.extend(granted);
        steps.extend(owed.as_ref().map(RestTexts::step));
        self.database.write_steps(&steps).await
    }
}

/// The step that stores a session.
pub(super) fn create<'v>(row: &'v SessionRow, id: &'v str, parent: &'v str) -> Step<'v> {
    let SessionRow { workspace, agent, depth, sealed, created_at, created_by, .. } = row;
    let values = vec![
        Value::Text(workspace.as_str()),
        Value::Text(id),
        Value::Text(agent),
        Value::Text(parent),
        Value::Integer((*depth).into()),
        Value::Text(sealed),
        Value::Integer(ms(*created_at)),
        Value::Text(created_by),
    ];
    Step::new(CREATE, values)
}

/// The parent as it is stored.
pub(super) fn parent(row: &SessionRow) -> String {
    row.parent.map(RunId::to_text).unwrap_or_default()
}

/// The step that comes to nothing if a session has ended, or is suspended.
pub(super) fn lives<'v>(workspace: Value<'v>, id: Value<'v>) -> Step<'v> {
    Step::must_change(LIVES, vec![workspace, id])
}

/// The step that notes the type of a session's agent.
pub(super) fn is_of_type<'v>(
    workspace: Value<'v>,
    id: Value<'v>,
    agent_type: Option<AgentType>,
) -> Step<'v> {
    let agent_type = Value::Text(agent_type.map_or("", AgentType::as_str));
    Step::new(IS_OF_TYPE, vec![workspace, id, agent_type])
}

fn session(row: &Row) -> Result<SessionRow, StatementError> {
    let parent = match row.text("parent")?.as_str() {
        "" => None,
        _ => Some(id(row, "parent", RunId::parse)?),
    };
    Ok(SessionRow {
        workspace: workspace(row)?,
        id: id(row, "id", SessionId::parse)?,
        agent: row.text("agent")?,
        parent,
        depth: u32::try_from(row.integer("depth")?).map_err(|_unfit| row.damaged())?,
        sealed: row.text("sealed")?,
        created_at: time(row, "created_at")?,
        created_by: row.text("created_by")?,
        ended_at: optional_time(row, "ended_at")?,
        how: RunEnd::parse(&row.text("outcome")?),
        agent_type: agent_type(row)?,
    })
}
