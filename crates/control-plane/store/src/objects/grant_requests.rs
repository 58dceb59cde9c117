//! Requests of runs for grants, and the decisions on them.

use std::time::SystemTime;

use narthex_model::{
    AgentName, GrantDuration, GrantId, GrantOf, GrantRequestId, PrincipalId, RunId, SessionId,
    WorkspaceId,
};

use super::{
    grants::{self, GrantRow, maybe},
    id, ms, now_ms, optional_time, time, workspace,
};
use crate::{
    StatementError,
    database::{Database, Step},
    statement::{Row, Statement, Value},
};

/// Maximum number of open requests of one run.
pub const OPEN_MAX: i64 = 100;

/// All columns, in front of a condition. A request without a decision in time counts as expired.
macro_rules! select {
    ($now:literal, $rest:literal) => {
        concat!(
            "SELECT id, workspace, run, session, user_subject, agent_subject, grant_type, ",
            "details, duration, reason, requested_at, expires_at, CASE WHEN status = 'pending' ",
            "AND expires_at <= ",
            $now,
            " THEN 'expired' ELSE status END AS state, decided_at, decided_by, decision_reason, ",
            "grant_id, asked_as, arguments FROM grant_requests ",
            $rest
        )
    };
}

mod looked_for;
mod waiting;

pub use self::looked_for::{RequestPlace, RequestSearch, RequestState};
pub(super) use self::waiting::end_of_session;

/// Skips a request that is open already, for the agent or for the same human, and one too many.
const ASK: Statement = Statement {
    name: "grant_requests.ask",
    sql: "INSERT INTO grant_requests (id, workspace, run, session, user_subject, agent_subject, \
          grant_type, details, duration, reason, requested_at, expires_at, status, decided_at, \
          decided_by, decision_reason, grant_id, asked_as, arguments) SELECT \
          $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, 'pending', 0, '', '', '', $14, $15 \
          FROM workspaces WHERE id = $2 AND NOT EXISTS (SELECT 1 FROM grant_requests WHERE \
          run = $3 AND grant_type = $7 AND details = $8 AND status = 'pending' \
          AND expires_at > $11 AND (agent_subject <> '' OR user_subject = $5)) \
          AND (SELECT count(*) FROM grant_requests \
          WHERE run = $3 AND status = 'pending' AND expires_at > $11) < $13",
};
const SAME: Statement = Statement {
    name: "grant_requests.same",
    sql: select!(
        "$4",
        "WHERE run = $1 AND grant_type = $2 AND details = $3 AND status = 'pending' \
         AND expires_at > $4 AND (agent_subject <> '' OR user_subject = $5)"
    ),
};
/// The last request of a run for this thing under this name.
const ASKED: Statement = Statement {
    name: "grant_requests.asked",
    sql: select!(
        "$5",
        "WHERE run = $1 AND asked_as = $2 AND grant_type = $3 AND details = $4 \
         AND (agent_subject <> '' OR user_subject = $6) \
         ORDER BY requested_at DESC, id DESC LIMIT 1"
    ),
};
const FIND: Statement = Statement {
    name: "grant_requests.find",
    sql: select!("$3", "WHERE workspace = $1 AND id = $2"),
};
const PAGE: Statement = Statement {
    name: "grant_requests.page",
    sql: select!(
        "$5",
        "WHERE workspace = $1 AND id > $2 AND ($4 = 'all' OR $4 = CASE WHEN status = 'pending' \
         AND expires_at <= $5 THEN 'expired' ELSE status END) ORDER BY id LIMIT $3"
    ),
};
const DECIDE: Statement = Statement {
    name: "grant_requests.decide",
    sql: "UPDATE grant_requests SET status = $4, decided_at = $3, decided_by = $5, \
          decision_reason = $6, grant_id = $7 \
          WHERE workspace = $1 AND id = $2 AND status = 'pending' AND expires_at > $3 \
          AND NOT EXISTS (SELECT 1 FROM sessions WHERE sessions.workspace = $1 \
          AND sessions.id = grant_requests.session AND sessions.ended_at <> 0)",
};
/// The status of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GrantRequestStatus {
    /// The request waits for a decision.
    Pending,
    /// A human has granted the request.
    Approved,
    /// A human has denied the request.
    Denied,
    /// The request's time has passed without a decision.
    Expired,
}

/// A stored request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrantRequestRow {
    /// The request's id.
    pub id: GrantRequestId,
    /// The run's own name for the request; empty without a name.
    pub asked_as: String,
    /// The workspace that owns the request.
    pub workspace: WorkspaceId,
    /// The run that asks.
    pub run: RunId,
    /// The run's session, if the run has one.
    pub session: Option<SessionId>,
    /// The user who drives the run.
    pub user: Option<PrincipalId>,
    /// The run's agent.
    pub agent: Option<AgentName>,
    /// The requested permission.
    pub of: GrantOf,
    /// The arguments to which the request is limited, for people; empty without a limit.
    pub arguments: String,
    /// The duration of the grant: one of [`GrantDuration::WORDS`].
    pub duration: &'static str,
    /// The reason, in the run's words.
    pub reason: String,
    /// The time of the request.
    pub requested_at: SystemTime,
    /// The time until which a human may decide.
    pub expires_at: SystemTime,
    /// The status.
    pub status: GrantRequestStatus,
    /// The time of the decision, and the human who made it.
    pub decided: Option<(SystemTime, String)>,
    /// The reason of the decision, in the human's words.
    pub decision_reason: String,
    /// The grant that the decision created.
    pub grant: Option<GrantId>,
}

/// Access to requests.
#[derive(Debug, Clone, Copy)]
pub struct GrantRequests<'a> {
    database: &'a Database,
}

/// A human's decision.
#[derive(Debug, Clone, Copy)]
pub struct GrantDecision<'a> {
    /// The human who decided.
    pub by: &'a str,
    /// The reason.
    pub reason: &'a str,
    /// The grant to create; `None` if the human has denied the request.
    pub grant: Option<&'a GrantRow>,
}

impl GrantRequestStatus {
    /// All states.
    pub const ALL: [Self; 4] = narthex_model::every![Pending, Approved, Denied, Expired];

    /// The word in tables and documents.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Approved => "approved",
            Self::Denied => "denied",
            Self::Expired => "expired",
        }
    }
}

impl<'a> GrantRequests<'a> {
    pub(crate) fn new(database: &'a Database) -> Self {
        Self { database }
    }

    /// Stores a request, unless an equal one of its run is open. Returns the open request, and true
    /// if it is new. `None` if the run has [`OPEN_MAX`] open requests.
    ///
    /// # Errors
    /// When a statement fails.
    pub async fn ask(
        &self,
        new: &GrantRequestRow,
    ) -> Result<Option<(GrantRequestRow, bool)>, StatementError> {
        let (id, run) = (new.id.to_text(), new.run.to_text());
        let session = new.session.map(SessionId::to_text).unwrap_or_default();
        let details = new.of.details().to_string();
        let now = ms(new.requested_at);
        let values = vec![
            Value::Text(&id),
            Value::Text(new.workspace.as_str()),
            Value::Text(&run),
            Value::Text(&session),
            Value::Text(new.user.as_ref().map_or("", PrincipalId::as_str)),
            Value::Text(new.agent.as_ref().map_or("", AgentName::as_str)),
            Value::Text(new.of.word()),
            Value::Text(&details),
            Value::Text(new.duration),
            Value::Text(&new.reason),
            Value::Integer(now),
            Value::Integer(ms(new.expires_at)),
            Value::Integer(OPEN_MAX),
            Value::Text(&new.asked_as),
            Value::Text(&new.arguments),
        ];
        let is_new = self.database.write_steps(&[Step::must_change(ASK, values)]).await?;
        if is_new {
            return Ok(self.find(&new.workspace, new.id).await?.map(|row| (row, true)));
        }
        let values = [
            Value::Text(&run),
            Value::Text(new.of.word()),
            Value::Text(&details),
            Value::Integer(now),
            Value::Text(new.user.as_ref().map_or("", PrincipalId::as_str)),
        ];
        let same = self.database.read(SAME, &values).await?;
        Ok(same.first().map(request).transpose()?.map(|row| (row, false)))
    }

    /// The request of this id, if the workspace has it.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn find(
        &self,
        workspace: &WorkspaceId,
        id: GrantRequestId,
    ) -> Result<Option<GrantRequestRow>, StatementError> {
        let id = id.to_text();
        let values = [Value::Text(workspace.as_str()), Value::Text(&id), Value::Integer(now_ms())];
        self.database.read(FIND, &values).await?.first().map(request).transpose()
    }

    /// The last request of a run for this permission under this name: for its agent, or for this
    /// user.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn last_asked(
        &self,
        run: RunId,
        (asked_as, user): (&str, Option<&PrincipalId>),
        of: &GrantOf,
    ) -> Result<Option<GrantRequestRow>, StatementError> {
        let (run, details) = (run.to_text(), of.details().to_string());
        let values = [
            Value::Text(&run),
            Value::Text(asked_as),
            Value::Text(of.word()),
            Value::Text(&details),
            Value::Integer(now_ms()),
            Value::Text(user.map_or("", PrincipalId::as_str)),
        ];
        self.database.read(ASKED, &values).await?.first().map(request).transpose()
    }

    /// The first `limit` requests of a workspace with this status whose ids come after `after`.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn page(
        &self,
        workspace: &WorkspaceId,
        status: Option<GrantRequestStatus>,
        after: &str,
        limit: u32,
    ) -> Result<Vec<GrantRequestRow>, StatementError> {
        let values = [
            Value::Text(workspace.as_str()),
            Value::Text(after),
            Value::Integer(limit.into()),
            Value::Text(status.map_or("all", GrantRequestStatus::as_str)),
            Value::Integer(now_ms()),
        ];
        self.database.read(PAGE, &values).await?.iter().map(request).collect()
    }

    /// Stores the decision on an open request, together with the grant. Returns `false` and changes
    /// nothing if the request is no longer open, or the grant cannot be stored.
    ///
    /// # Errors
    /// When a statement fails.
    pub async fn decide(
        &self,
        workspace: &WorkspaceId,
        id: GrantRequestId,
        decision: GrantDecision<'_>,
    ) -> Result<bool, StatementError> {
        let GrantDecision { by, reason, grant } = decision;
        let status = match grant {
            Some(_) => GrantRequestStatus::Approved,
            None => GrantRequestStatus::Denied,
        };
        let (id, granted) = (id.to_text(), grant.map(|row| row.grant.id.to_text()));
        let values = vec![
            Value::Text(workspace.as_str()),
            Value::Text(&id),
            Value::Integer(now_ms()),
            Value::Text(status.as_str()),
            Value::Text(by),
            Value::Text(reason),
            Value::Text(granted.as_deref().unwrap_or_default()),
        ];
        let decide = Step::must_change(DECIDE, values);
        let Some(row) = grant else { return self.database.write_steps(&[decide]).await };
        let texts = grants::texts(row);
        let [count, create] = grants::create(row, &texts);
        self.database.write_steps(&[decide, count, create]).await
    }
}

fn request(row: &Row) -> Result<GrantRequestRow, StatementError> {
    let details = row.text("details")?.parse::<serde_json::Value>();
    let details = details.map_err(|_no_json| row.damaged())?;
    let of = GrantOf::read(&row.text("grant_type")?, &details);
    let duration = row.text("duration")?;
    let duration = GrantDuration::WORDS.into_iter().find(|word| *word == duration);
    let status = row.text("state")?;
    let status = GrantRequestStatus::ALL.into_iter().find(|one| one.as_str() == status);
    Ok(GrantRequestRow {
        id: id(row, "id", GrantRequestId::parse)?,
        asked_as: row.text("asked_as")?,
        workspace: workspace(row)?,
        run: id(row, "run", RunId::parse)?,
        session: maybe(row, "session", SessionId::parse)?,
        user: maybe(row, "user_subject", |text| PrincipalId::new(text).ok())?,
        agent: maybe(row, "agent_subject", |text| AgentName::new(text).ok())?,
        of: of.ok_or_else(|| row.damaged())?,
        arguments: row.text("arguments")?,
        duration: duration.ok_or_else(|| row.damaged())?,
        reason: row.text("reason")?,
        requested_at: time(row, "requested_at")?,
        expires_at: time(row, "expires_at")?,
        status: status.ok_or_else(|| row.damaged())?,
        decided: optional_time(row, "decided_at")?.zip(Some(row.text("decided_by")?)),
        decision_reason: row.text("decision_reason")?,
        grant: maybe(row, "grant_id", GrantId::parse)?,
    })
}
