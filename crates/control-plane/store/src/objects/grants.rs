//! Grants of humans: created, used up and revoked.

mod reading;
mod search;

use std::time::SystemTime;

use narthex_model::{Grant, GrantId, GrantSubject, RunId, SessionId, WorkspaceId};

pub use self::reading::GrantChanges;
pub(super) use self::reading::maybe;
pub use self::search::{GrantPlace, GrantSearch};
use super::{ms, now_ms};
use crate::{
    StatementError,
    database::{Database, Step},
    statement::{Statement, Value},
};

/// Before each change of a row, which gets the new number.
const COUNT: Statement =
    Statement { name: "grants.count", sql: "UPDATE grant_changes SET n = n + 1 WHERE id = 1" };
/// Creates a grant only if its agent exists, and its run and session are active.
const CREATE: Statement = Statement {
    name: "grants.create",
    sql: "INSERT INTO grants (id, workspace, user_subject, agent_subject, grant_type, details, \
          duration, run, session, expires_at, reason, granted_at, granted_by, is_advisory, \
          consumed_at, consumed_by, revoked_at, revoked_by, change) \
          SELECT $2, $1, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, 0, '', 0, '', n \
          FROM grant_changes WHERE id = 1 \
          AND ($4 = '' OR EXISTS (SELECT 1 FROM agents WHERE workspace = $1 AND id = $4)) \
          AND ($8 = '' OR EXISTS \
          (SELECT 1 FROM runs WHERE workspace = $1 AND id = $8 AND ended_at = 0)) \
          AND ($9 = '' OR EXISTS \
          (SELECT 1 FROM sessions WHERE workspace = $1 AND id = $9 AND ended_at = 0))",
};
const ANY: Statement = Statement {
    name: "grants.any",
    sql: "SELECT id FROM grants UNION ALL SELECT id FROM grant_requests LIMIT 1",
};
const REVOKE: Statement = Statement {
    name: "grants.revoke",
    sql: "UPDATE grants SET revoked_at = $3, revoked_by = $4, \
          change = (SELECT n FROM grant_changes WHERE id = 1) \
          WHERE workspace = $1 AND id = $2 AND revoked_at = 0",
};
const CONSUME: Statement = Statement {
    name: "grants.consume",
    sql: "UPDATE grants SET consumed_at = $3, consumed_by = $4, \
          change = (SELECT n FROM grant_changes WHERE id = 1) \
          WHERE workspace = $1 AND id = $2 AND duration = 'once' AND consumed_at = 0 \
          AND revoked_at = 0 AND (expires_at = 0 OR expires_at > $3)",
};
const END_OF_RUN: Statement = Statement {
    name: "grants.end_of_run",
    sql: "UPDATE grants SET revoked_at = $3, revoked_by = 'narthex', \
          change = (SELECT n FROM grant_changes WHERE id = 1) \
          WHERE workspace = $1 AND run = $2 AND revoked_at = 0",
};
const END_OF_RUNS_OF: Statement = Statement {
    name: "grants.end_of_runs_of",
    sql: "UPDATE grants SET revoked_at = $3, revoked_by = 'narthex', \
          change = (SELECT n FROM grant_changes WHERE id = 1) \
          WHERE workspace = $1 AND revoked_at = 0 AND run IN \
          (SELECT id FROM runs WHERE workspace = $1 AND session = $2 AND ended_at = 0)",
};
const END_OF_SESSION: Statement = Statement {
    name: "grants.end_of_session",
    sql: "UPDATE grants SET revoked_at = $3, revoked_by = 'narthex', \
          change = (SELECT n FROM grant_changes WHERE id = 1) \
          WHERE workspace = $1 AND revoked_at = 0 AND (session = $2 OR run IN \
          (SELECT id FROM runs WHERE workspace = $1 AND session = $2))",
};
const END_OF_AGENT: Statement = Statement {
    name: "grants.end_of_agent",
    sql: "UPDATE grants SET revoked_at = $3, revoked_by = 'narthex', \
          change = (SELECT n FROM grant_changes WHERE id = 1) \
          WHERE workspace = $1 AND agent_subject = $2 AND revoked_at = 0",
};
const END_OF_USER: Statement = Statement {
    name: "grants.end_of_user",
    sql: "UPDATE grants SET revoked_at = $3, revoked_by = 'narthex', \
          change = (SELECT n FROM grant_changes WHERE id = 1) \
          WHERE workspace = $1 AND user_subject = $2 AND revoked_at = 0",
};

/// A stored grant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrantRow {
    /// The grant itself.
    pub grant: Grant,
    /// The workspace that owns the grant.
    pub workspace: WorkspaceId,
    /// The reason, for people.
    pub reason: String,
    /// Time of creation.
    pub granted_at: SystemTime,
    /// The human who granted it.
    pub granted_by: String,
    /// True if the grantor was not proved to be human (D15).
    pub is_advisory: bool,
    /// Time when a call used the grant up, and the id of its run.
    pub consumed: Option<(SystemTime, String)>,
    /// Time of the revocation, and the principal who revoked the grant.
    pub revoked: Option<(SystemTime, String)>,
}

/// Access to grants.
#[derive(Debug, Clone, Copy)]
pub struct GrantRows<'a> {
    database: &'a Database,
}

impl<'a> GrantRows<'a> {
    pub(crate) fn new(database: &'a Database) -> Self {
        Self { database }
    }

    /// True if any grant was ever created or requested, in any workspace.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn are_used(&self) -> Result<bool, StatementError> {
        Ok(!self.database.read(ANY, &[]).await?.is_empty())
    }

    /// Stores a new grant, which counts at once. Returns `false` and changes nothing if its agent
    /// does not exist, or its run or session is not active.
    ///
    /// # Errors
    /// `Exists` if the id is taken, `OwnerMissing` if there is no such workspace, or when a
    /// statement fails.
    pub async fn create(&self, row: &GrantRow) -> Result<bool, StatementError> {
        self.database.write_steps(&create(row, &texts(row))).await
    }

    /// Revokes a grant. Returns `false` and changes nothing if the grant no longer counts, or the
    /// id is unknown.
    ///
    /// # Errors
    /// When a statement fails.
    pub async fn revoke(
        &self,
        workspace: &WorkspaceId,
        id: GrantId,
        by: &str,
    ) -> Result<bool, StatementError> {
        let id = id.to_text();
        let values = vec![
            Value::Text(workspace.as_str()),
            Value::Text(&id),
            Value::Integer(now_ms()),
            Value::Text(by),
        ];
        let steps = [Step::new(COUNT, Vec::new()), Step::must_change(REVOKE, values)];
        self.database.write_steps(&steps).await
    }

    /// Uses up these grants for one call of a run, all or none. Returns the grants that no longer
    /// count and so prevent this; empty on success.
    ///
    /// # Errors
    /// When a statement fails.
    pub async fn consume(
        &self,
        workspace: &WorkspaceId,
        grants: &[GrantId],
        run: RunId,
    ) -> Result<Vec<GrantId>, StatementError> {
        let (now, run) = (now_ms(), run.to_text());
        let ids: Vec<_> = grants.iter().map(|id| id.to_text()).collect();
        let (here, run) = (Value::Text(workspace.as_str()), Value::Text(&run));
        let steps: Vec<_> = ids.iter().flat_map(|id| consume(here, Value::Text(id), run)).collect();
        if self.database.write_steps(&steps).await? {
            return Ok(Vec::new());
        }
        let mut gone = Vec::new();
        for id in grants {
            let found = self.find(workspace, *id).await?;
            if !found.is_some_and(|row| row.is_open(now)) {
                gone.push(*id);
            }
        }
        // A grant that is listed twice is stored once.
        Ok(if gone.is_empty() { grants.to_vec() } else { gone })
    }

    /// Ends the grants of a user in a workspace.
    ///
    /// # Errors
    /// When a statement fails.
    pub async fn end_of_user(
        &self,
        workspace: &WorkspaceId,
        user: &str,
    ) -> Result<(), StatementError> {
        let steps = end(END_OF_USER, Value::Text(workspace.as_str()), Value::Text(user));
        self.database.write_steps(&steps).await.map(drop)
    }
}

/// Id, details, run and session of a grant, as stored.
pub(super) fn texts(row: &GrantRow) -> [String; 4] {
    let (run, session) = row.grant.duration.places();
    let run = run.map(RunId::to_text).unwrap_or_default();
    let session = session.map(SessionId::to_text).unwrap_or_default();
    [row.grant.id.to_text(), row.grant.of.details().to_string(), run, session]
}

/// The steps that store a grant, with its [`texts`].
pub(super) fn create<'v>(row: &'v GrantRow, texts: &'v [String; 4]) -> [Step<'v>; 2] {
    let GrantRow { grant, workspace, reason, granted_at, granted_by, is_advisory, .. } = row;
    let [id, details, run, session] = texts;
    let (user, agent) = match &grant.subject {
        GrantSubject::User(user) => (user.as_str(), ""),
        GrantSubject::Agent(agent) => ("", agent.as_str()),
    };
    let values = vec![
        Value::Text(workspace.as_str()),
        Value::Text(id),
        Value::Text(user),
        Value::Text(agent),
        Value::Text(grant.of.word()),
        Value::Text(details),
        Value::Text(grant.duration.word()),
        Value::Text(run),
        Value::Text(session),
        Value::Integer(grant.expires_at.map_or(0, ms)),
        Value::Text(reason),
        Value::Integer(ms(*granted_at)),
        Value::Text(granted_by),
        Value::Integer((*is_advisory).into()),
    ];
    [Step::new(COUNT, Vec::new()), Step::must_change(CREATE, values)]
}

/// The steps that use up a grant for a single call, of a run.
pub(super) fn consume<'v>(workspace: Value<'v>, id: Value<'v>, run: Value<'v>) -> [Step<'v>; 2] {
    let values = vec![workspace, id, Value::Integer(now_ms()), run];
    [Step::new(COUNT, Vec::new()), Step::must_change(CONSUME, values)]
}

/// The steps that end the grants of a run.
pub(super) fn end_of_run<'v>(workspace: Value<'v>, run: Value<'v>) -> [Step<'v>; 2] {
    end(END_OF_RUN, workspace, run)
}

/// The steps that end the grants of all active runs of a session.
pub(super) fn end_of_runs_of<'v>(workspace: Value<'v>, session: Value<'v>) -> [Step<'v>; 2] {
    end(END_OF_RUNS_OF, workspace, session)
}

/// The steps that end the grants of a session and its runs.
pub(super) fn end_of_session<'v>(workspace: Value<'v>, session: Value<'v>) -> [Step<'v>; 2] {
    end(END_OF_SESSION, workspace, session)
}

/// The steps that end the grants of an agent: another one of its name does not inherit them.
pub(super) fn end_of_agent<'v>(workspace: Value<'v>, agent: Value<'v>) -> [Step<'v>; 2] {
    end(END_OF_AGENT, workspace, agent)
}

fn end<'v>(statement: Statement, workspace: Value<'v>, of: Value<'v>) -> [Step<'v>; 2] {
    let values = vec![workspace, of, Value::Integer(now_ms())];
    [Step::new(COUNT, Vec::new()), Step::new(statement, values)]
}
