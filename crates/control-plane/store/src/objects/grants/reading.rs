//! Reads grants.

use std::time::Duration;

use narthex_model::{
    AgentName, Grant, GrantDuration, GrantId, GrantOf, GrantSubject, PrincipalId, RunId, SessionId,
    WorkspaceId,
};

use super::{GrantRow, GrantRows};
use crate::{
    StatementError,
    objects::{id, ms, now_ms, optional_time, time, workspace},
    statement::{Row, Statement, Value},
};

/// All columns, in front of a condition.
macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT id, workspace, user_subject, agent_subject, grant_type, details, duration, ",
            "run, session, expires_at, reason, granted_at, granted_by, is_advisory, consumed_at, ",
            "consumed_by, revoked_at, revoked_by, change FROM grants ",
            $rest
        )
    };
}

pub(super) use select;

const FIND: Statement =
    Statement { name: "grants.find", sql: select!("WHERE workspace = $1 AND id = $2") };
const PAGE: Statement = Statement {
    name: "grants.page",
    sql: select!(
        "WHERE workspace = $1 AND id > $2 AND (revoked_at = 0 OR $4 = 1) ORDER BY id LIMIT $3"
    ),
};
const LIVE: Statement = Statement {
    name: "grants.live",
    sql: select!(
        "WHERE revoked_at = 0 AND (expires_at = 0 OR expires_at > $1) \
         AND (consumed_at = 0 OR consumed_at > $2)"
    ),
};
const SINCE: Statement =
    Statement { name: "grants.since", sql: select!("WHERE change > $1 ORDER BY change") };
const LAST: Statement =
    Statement { name: "grants.last", sql: "SELECT n FROM grant_changes WHERE id = 1" };

/// For how long later rounds of a call may come that has used a grant up.
const ROUNDS: Duration = Duration::from_secs(24 * 60 * 60);

/// Changed grants of all workspaces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrantChanges {
    /// The grants in their present state.
    pub rows: Vec<GrantRow>,
    /// The number of the last change, for the next call.
    pub last: i64,
}

impl GrantRow {
    /// True if a run may use it for the first time, at this time as it is stored.
    pub(super) fn is_open(&self, now: i64) -> bool {
        let has_time = self.grant.expires_at.is_none_or(|end| ms(end) > now);
        self.consumed.is_none() && self.revoked.is_none() && has_time
    }
}

impl GrantRows<'_> {
    /// The grant of this id, if the workspace has it.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn find(
        &self,
        workspace: &WorkspaceId,
        id: GrantId,
    ) -> Result<Option<GrantRow>, StatementError> {
        let id = id.to_text();
        let values = [Value::Text(workspace.as_str()), Value::Text(&id)];
        self.database.read(FIND, &values).await?.first().map(grant).transpose()
    }

    /// The first `limit` grants of a workspace whose ids come after `after`; revoked ones only if
    /// `with_revoked`.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn page(
        &self,
        workspace: &WorkspaceId,
        after: &str,
        limit: u32,
        with_revoked: bool,
    ) -> Result<Vec<GrantRow>, StatementError> {
        let values = [
            Value::Text(workspace.as_str()),
            Value::Text(after),
            Value::Integer(limit.into()),
            Value::Integer(with_revoked.into()),
        ];
        self.database.read(PAGE, &values).await?.iter().map(grant).collect()
    }

    /// All grants of all workspaces that may still count, also for later rounds of a call.
    ///
    /// # Errors
    /// When a statement fails.
    pub async fn live(&self) -> Result<GrantChanges, StatementError> {
        // Reads the number first: the next call returns later changes again.
        let last = self.database.read(LAST, &[]).await?;
        let last = last.first().map(|row| row.integer("n")).transpose()?.unwrap_or_default();
        let now = now_ms();
        let rounds = i64::try_from(ROUNDS.as_millis()).unwrap_or(i64::MAX);
        let values = [Value::Integer(now), Value::Integer(now.saturating_sub(rounds))];
        let rows = self.database.read(LIVE, &values).await?;
        Ok(GrantChanges { rows: rows.iter().map(grant).collect::<Result<_, _>>()?, last })
    }

    /// All grants of all workspaces that changed after the change of this number.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn since(&self, last: i64) -> Result<GrantChanges, StatementError> {
        let rows = self.database.read(SINCE, &[Value::Integer(last)]).await?;
        let newest = rows.last().map(|row| row.integer("change")).transpose()?;
        let rows = rows.iter().map(grant).collect::<Result<_, _>>()?;
        Ok(GrantChanges { rows, last: newest.unwrap_or(last) })
    }
}

pub(super) fn grant(row: &Row) -> Result<GrantRow, StatementError> {
    let run = maybe(row, "run", RunId::parse)?;
    let session = maybe(row, "session", SessionId::parse)?;
    let principal = |text: &str| PrincipalId::new(text).ok();
    let agent = |text: &str| AgentName::new(text).ok();
    let subject = match maybe(row, "user_subject", principal)? {
        Some(user) => GrantSubject::User(user),
        None => {
            let agent = maybe(row, "agent_subject", agent)?;
            GrantSubject::Agent(agent.ok_or_else(|| row.damaged())?)
        }
    };
    let details =
        row.text("details")?.parse::<serde_json::Value>().map_err(|_no_json| row.damaged())?;
    let of = GrantOf::read(&row.text("grant_type")?, &details);
    let duration = GrantDuration::read(&row.text("duration")?, run, session);
    let dated = |at, by| Ok(optional_time(row, at)?.zip(Some(row.text(by)?)));
    Ok(GrantRow {
        grant: Grant {
            id: id(row, "id", GrantId::parse)?,
            subject,
            of: of.ok_or_else(|| row.damaged())?,
            duration: duration.ok_or_else(|| row.damaged())?,
            expires_at: optional_time(row, "expires_at")?,
        },
        workspace: workspace(row)?,
        reason: row.text("reason")?,
        granted_at: time(row, "granted_at")?,
        granted_by: row.text("granted_by")?,
        is_advisory: row.integer("is_advisory")? != 0,
        consumed: dated("consumed_at", "consumed_by")?,
        revoked: dated("revoked_at", "revoked_by")?,
    })
}

/// The value of a text; `None` if the text is empty.
pub(in crate::objects) fn maybe<T>(
    row: &Row,
    column: &'static str,
    parse: impl FnOnce(&str) -> Option<T>,
) -> Result<Option<T>, StatementError> {
    match row.text(column)?.as_str() {
        "" => Ok(None),
        text => parse(text).map(Some).ok_or_else(|| row.damaged()),
    }
}
