//! Child sessions, which parent runs have created: silent ones, ones without an active run, and
//! ones with a cancelled parent.

use std::time::SystemTime;

use narthex_model::{AgentType, RunEnd, RunId, SessionId, WorkspaceId};

use super::{events::whole, id, ms, optional_time, sessions::SessionRows, time};
use crate::{
    StatementError,
    database::Step,
    statement::{Row, Statement, Value},
};

/// Active runs of child sessions. `unread` is the first message that the daemon reported six times
/// without an acknowledgement, and gave up; 0 if there is none.
const CHILDREN: Statement = Statement {
    name: "sessions.children",
    sql: "SELECT sessions.id AS session, sessions.agent AS agent, above.session AS above, \
          own.id AS run, own.claimable AS claimable, own.claimed_until AS claimed_until, \
          sessions.created_at AS created_at, sessions.acted_at AS acted_at, \
          COALESCE(event_streams.own_at, 0) AS own_at, sessions.quiet_until AS quiet_until, \
          sessions.agent_type AS agent_type, \
          COALESCE((SELECT MIN(seq) FROM unread_messages \
          WHERE unread_messages.workspace = sessions.workspace \
          AND unread_messages.session = sessions.id AND tellings >= 6 \
          AND (unread_messages.expires_at = 0 OR unread_messages.expires_at > $4)), 0) AS unread \
          FROM sessions \
          JOIN runs above ON above.workspace = sessions.workspace AND above.id = sessions.parent \
          JOIN runs own ON own.workspace = sessions.workspace AND own.session = sessions.id \
          AND own.ended_at = 0 \
          LEFT JOIN event_streams ON event_streams.workspace = sessions.workspace \
          AND event_streams.session = sessions.id \
          WHERE sessions.workspace = $1 AND sessions.ended_at = 0 AND own.id > $2 \
          ORDER BY own.id LIMIT $3",
};
/// Child sessions without an active run that also do not resume by themselves.
pub(super) const STILL: Statement = Statement {
    name: "sessions.still",
    sql: "SELECT sessions.id AS session, sessions.agent AS agent, \
          sessions.agent_type AS agent_type, above.session AS above, last.id AS run, \
          last.outcome AS outcome, last.expires_at AS expires_at, \
          (SELECT COUNT(*) FROM sessions child JOIN runs own ON own.workspace = child.workspace \
          AND own.id = child.parent WHERE child.workspace = sessions.workspace \
          AND own.session = sessions.id AND child.ended_at = 0) AS children FROM sessions \
          JOIN runs above ON above.workspace = sessions.workspace AND above.id = sessions.parent \
          JOIN runs last ON last.workspace = sessions.workspace AND last.session = sessions.id \
          AND last.pid = (SELECT MAX(pid) FROM runs newest WHERE \
          newest.workspace = sessions.workspace AND newest.session = sessions.id) \
          WHERE sessions.workspace = $1 AND sessions.ended_at = 0 AND sessions.id > $2 \
          AND sessions.parent <> '' \
          AND NOT EXISTS (SELECT 1 FROM runs own WHERE own.workspace = sessions.workspace \
          AND own.session = sessions.id AND own.ended_at = 0) \
          AND NOT EXISTS (SELECT 1 FROM suspended_sessions aside WHERE \
          aside.workspace = sessions.workspace AND aside.session = sessions.id) \
          AND NOT EXISTS (SELECT 1 FROM resting_sessions owed WHERE \
          owed.workspace = sessions.workspace AND owed.session = sessions.id) \
          ORDER BY sessions.id LIMIT $3",
};
/// Active child sessions of a session that its own parent has cancelled.
const LEFT: Statement = Statement {
    name: "sessions.left",
    sql: "SELECT sessions.id AS session, above.session AS above, above.id AS run FROM sessions \
          JOIN runs above ON above.workspace = sessions.workspace AND above.id = sessions.parent \
          JOIN sessions gone ON gone.workspace = above.workspace AND gone.id = above.session \
          AND gone.outcome = 'cancelled' \
          WHERE sessions.workspace = $1 AND sessions.ended_at = 0 ORDER BY sessions.id LIMIT $2",
};
const ACTED: Statement = Statement {
    name: "sessions.acted",
    sql: "UPDATE sessions SET acted_at = $3 WHERE workspace = $1 AND id = $2 AND acted_at < $3",
};
const CLAIMED: Statement = Statement {
    name: "sessions.claimed",
    sql: "UPDATE sessions SET acted_at = $3 WHERE workspace = $1 AND acted_at < $3 \
          AND id = (SELECT session FROM runs WHERE runs.workspace = $1 AND runs.id = $2)",
};
const QUIET: Statement = Statement {
    name: "sessions.quiet",
    sql: "UPDATE sessions SET quiet_until = $3 WHERE workspace = $1 AND id = $2",
};

/// Number of sessions that are changed at a time.
const TOGETHER: usize = 500;

/// An active run of a child session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuietChild {
    /// The run's session.
    pub session: SessionId,
    /// The agent.
    pub agent: String,
    /// The parent session, which created it.
    pub above: SessionId,
    /// The run.
    pub run: RunId,
    /// True if an executor has to claim the run.
    pub is_claimable: bool,
    /// The end of the current claim, if an executor has claimed the run.
    pub claimed_until: Option<SystemTime>,
    /// The latest of three times: the session's creation, its own last report, and its last act.
    pub own_at: SystemTime,
    /// End of the silence that the session has announced; `None` if it has announced none.
    pub quiet_until: Option<SystemTime>,
    /// The agent's type in the newest run's frozen data; `None` if no run has recorded it.
    pub agent_type: Option<AgentType>,
    /// Number of the oldest message that was sent repeatedly without an acknowledgement.
    pub unread: Option<u64>,
}

impl QuietChild {
    /// Time since which the session is silent, without an announcement.
    #[must_use]
    pub fn since(&self) -> SystemTime {
        self.quiet_until.map_or(self.own_at, |until| until.max(self.own_at))
    }

    /// True if the run waits for a claim.
    #[must_use]
    pub fn is_waiting(&self, now: SystemTime) -> bool {
        self.is_claimable && self.claimed_until.is_none_or(|until| until <= now)
    }
}

/// An active child session without an active run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StillChild {
    /// The session.
    pub session: SessionId,
    /// The agent.
    pub agent: String,
    /// The agent's type in the newest run's frozen data; `None` if no run has recorded it.
    pub agent_type: Option<AgentType>,
    /// The parent session, which created it.
    pub above: SessionId,
    /// The session's newest run.
    pub run: RunId,
    /// The outcome of that run.
    pub how: RunEnd,
    /// Time limit of that run, which may be past.
    pub expires_at: SystemTime,
    /// Number of active sessions that the session's runs have created.
    pub children: u64,
}

/// An active session whose parent session was cancelled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftChild {
    /// The session.
    pub session: SessionId,
    /// The parent session, which created it.
    pub above: SessionId,
    /// The run of the parent session that created it.
    pub run: RunId,
}

impl SessionRows<'_> {
    /// The first `limit` active runs of child sessions of a workspace whose ids come after `after`.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn children(
        &self,
        workspace: &WorkspaceId,
        after: &str,
        (now, limit): (SystemTime, u32),
    ) -> Result<Vec<QuietChild>, StatementError> {
        let values = [
            Value::Text(workspace.as_str()),
            Value::Text(after),
            Value::Integer(limit.into()),
            Value::Integer(ms(now)),
        ];
        let rows = self.database.read(CHILDREN, &values).await?;
        let child = |row: &Row| {
            let told = [time(row, "own_at")?, time(row, "acted_at")?];
            Ok(QuietChild {
                session: id(row, "session", SessionId::parse)?,
                agent: row.text("agent")?,
                above: id(row, "above", SessionId::parse)?,
                run: id(row, "run", RunId::parse)?,
                is_claimable: row.integer("claimable")? != 0,
                claimed_until: optional_time(row, "claimed_until")?,
                own_at: told.into_iter().fold(time(row, "created_at")?, SystemTime::max),
                quiet_until: optional_time(row, "quiet_until")?,
                agent_type: agent_type(row)?,
                unread: Some(whole(row, "unread")?).filter(|seq| *seq > 0),
            })
        };
        rows.iter().map(child).collect()
    }

    /// The first `limit` active child sessions of a workspace whose ids come after `after`, without
    /// an active run. Suspended sessions and those that are due to resume are left out.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn still(
        &self,
        workspace: &WorkspaceId,
        after: &str,
        limit: u32,
    ) -> Result<Vec<StillChild>, StatementError> {
        let values =
            [Value::Text(workspace.as_str()), Value::Text(after), Value::Integer(limit.into())];
        let still = |row: &Row| {
            Ok(StillChild {
                session: id(row, "session", SessionId::parse)?,
                agent: row.text("agent")?,
                agent_type: agent_type(row)?,
                above: id(row, "above", SessionId::parse)?,
                run: id(row, "run", RunId::parse)?,
                how: RunEnd::parse(&row.text("outcome")?).ok_or_else(|| row.damaged())?,
                expires_at: time(row, "expires_at")?,
                children: whole(row, "children")?,
            })
        };
        self.database.read(STILL, &values).await?.iter().map(still).collect()
    }

    /// The first `limit` active sessions of a workspace whose parent session was cancelled.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn left(
        &self,
        workspace: &WorkspaceId,
        limit: u32,
    ) -> Result<Vec<LeftChild>, StatementError> {
        let values = [Value::Text(workspace.as_str()), Value::Integer(limit.into())];
        let left = |row: &Row| {
            Ok(LeftChild {
                session: id(row, "session", SessionId::parse)?,
                above: id(row, "above", SessionId::parse)?,
                run: id(row, "run", RunId::parse)?,
            })
        };
        self.database.read(LEFT, &values).await?.iter().map(left).collect()
    }

    /// Stores the times of sessions' last acts, unless later ones are stored.
    ///
    /// # Errors
    /// When a statement fails: then some times are not stored.
    pub async fn acted(
        &self,
        workspace: &WorkspaceId,
        acts: impl IntoIterator<Item = (SessionId, SystemTime)>,
    ) -> Result<(), StatementError> {
        let mut acts: Vec<_> =
            acts.into_iter().map(|(session, at)| (session.to_text(), ms(at))).collect();
        // All daemons use one order, so that they do not wait for each other.
        acts.sort();
        let workspace = Value::Text(workspace.as_str());
        for some in acts.chunks(TOGETHER) {
            let mut steps = Vec::with_capacity(some.len());
            for (session, at) in some {
                let values = vec![workspace, Value::Text(session), Value::Integer(*at)];
                steps.push(Step::new(ACTED, values));
            }
            self.database.write_steps(&steps).await?;
        }
        Ok(())
    }

    /// Stores the end of a silence that a session announces; `None` removes the announcement.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn expects_quiet(
        &self,
        workspace: &WorkspaceId,
        session: SessionId,
        until: Option<SystemTime>,
    ) -> Result<(), StatementError> {
        let session = session.to_text();
        let until = Value::Integer(until.map_or(0, ms));
        let values = vec![Value::Text(workspace.as_str()), Value::Text(&session), until];
        self.database.write_steps(&[Step::new(QUIET, values)]).await.map(drop)
    }
}

/// The step that notes an act of a run's session: a claim of the run is one.
pub(super) fn claimed<'v>(workspace: Value<'v>, run: Value<'v>, now: Value<'v>) -> Step<'v> {
    Step::new(CLAIMED, vec![workspace, run, now])
}

/// The type of a session's agent, as a run has recorded it.
pub(super) fn agent_type(row: &Row) -> Result<Option<AgentType>, StatementError> {
    let word = row.text("agent_type")?;
    Ok(AgentType::ALL.into_iter().find(|kind| kind.as_str() == word))
}
