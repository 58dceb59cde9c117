//! Sessions of agents that are woken periodically.

use std::time::SystemTime;

use narthex_model::{SessionId, WorkspaceId};

use super::{events::whole, id, ms, sessions::SessionRows, time};
use crate::{
    StatementError,
    statement::{Row, Statement, Value},
};

/// Leaves out agents whose documents do not mention heartbeats; a document tells which of the
/// others have them.
pub(super) const BEATING: Statement = Statement {
    name: "sessions.beating",
    sql: "SELECT sessions.id AS session, sessions.agent AS agent, agents.document AS document, \
          COALESCE(event_streams.last_at, sessions.created_at) AS last_at, \
          (SELECT COUNT(*) FROM runs WHERE runs.workspace = sessions.workspace \
          AND runs.session = sessions.id AND runs.ended_at = 0) AS runs, \
          (SELECT COUNT(*) FROM runs WHERE runs.workspace = sessions.workspace \
          AND runs.session = sessions.id AND runs.ended_at = 0 \
          AND claimable <> 0 AND claimed_until <= $4) AS waiting FROM sessions \
          JOIN agents ON agents.workspace = sessions.workspace AND agents.id = sessions.agent \
          LEFT JOIN event_streams ON event_streams.workspace = sessions.workspace \
          AND event_streams.session = sessions.id \
          WHERE sessions.workspace = $1 AND sessions.ended_at = 0 AND sessions.id > $2 \
          AND NOT EXISTS (SELECT 1 FROM suspended_sessions aside WHERE \
          aside.workspace = sessions.workspace AND aside.session = sessions.id) \
          AND agents.document LIKE '%\"heartbeat_minutes\"%' ORDER BY sessions.id LIMIT $3",
};
const YOUNGEST_CHILD: Statement = Statement {
    name: "sessions.youngest_child",
    sql: "SELECT id FROM sessions WHERE workspace = $1 AND ended_at = 0 \
          AND parent IN (SELECT id FROM runs WHERE workspace = $1 AND session = $2) \
          ORDER BY created_at DESC, id DESC LIMIT 1",
};

/// An active session of an agent whose document configures heartbeats.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BeatingSession {
    /// The session.
    pub session: SessionId,
    /// The agent.
    pub agent: String,
    /// The agent's current document, as JSON.
    pub document: String,
    /// The time of the session's last event.
    pub last_at: SystemTime,
    /// Number of the session's active runs.
    pub runs: u64,
    /// Number of active runs that wait for a claim.
    pub waiting: u64,
}

impl SessionRows<'_> {
    /// The first `limit` active sessions of a workspace whose agents' documents configure
    /// heartbeats, and whose ids come after `after`.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn beating(
        &self,
        workspace: &WorkspaceId,
        after: &str,
        (now, limit): (SystemTime, u32),
    ) -> Result<Vec<BeatingSession>, StatementError> {
        let values = [
            Value::Text(workspace.as_str()),
            Value::Text(after),
            Value::Integer(limit.into()),
            Value::Integer(ms(now)),
        ];
        let beating = |row: &Row| {
            Ok(BeatingSession {
                session: id(row, "session", SessionId::parse)?,
                agent: row.text("agent")?,
                document: row.text("document")?,
                last_at: time(row, "last_at")?,
                runs: whole(row, "runs")?,
                waiting: whole(row, "waiting")?,
            })
        };
        self.database.read(BEATING, &values).await?.iter().map(beating).collect()
    }

    /// The newest active session that a run of this session has created.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn youngest_child(
        &self,
        workspace: &WorkspaceId,
        of: SessionId,
    ) -> Result<Option<SessionId>, StatementError> {
        let of = of.to_text();
        let values = [Value::Text(workspace.as_str()), Value::Text(&of)];
        let rows = self.database.read(YOUNGEST_CHILD, &values).await?;
        rows.first().map(|row| id(row, "id", SessionId::parse)).transpose()
    }
}
