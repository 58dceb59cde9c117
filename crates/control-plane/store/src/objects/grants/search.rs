//! Grants in the order of time, as people look for them.

use std::time::SystemTime;

use narthex_model::{AgentName, GrantId, PrincipalId, ToolScope, WorkspaceId};

use super::{
    GrantRow, GrantRows,
    reading::{grant, select},
};
use crate::{
    StatementError,
    objects::{ms, now_ms},
    statement::{Statement, Value},
};

/// The newest first. Details are JSON in one spelling, so that a scope is found as text.
const SEARCH: Statement = Statement {
    name: "grants.search",
    sql: select!(
        "WHERE workspace = $1 AND ($2 = '' OR agent_subject = $2) \
         AND ($3 = '' OR user_subject = $3) AND ($4 = '' OR details LIKE $4 ESCAPE '!') \
         AND ($5 = 1 OR (revoked_at = 0 AND consumed_at = 0 \
         AND (expires_at = 0 OR expires_at > $6))) \
         AND (granted_at < $7 OR (granted_at = $7 AND id < $8)) \
         ORDER BY granted_at DESC, id DESC LIMIT $9"
    ),
};

/// The grants that a person looks for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GrantSearch {
    /// The agent that has the grants; `None` for all.
    pub agent: Option<AgentName>,
    /// The human who has the grants; `None` for all.
    pub user: Option<PrincipalId>,
    /// The tool scope; `None` for all.
    pub scope: Option<ToolScope>,
    /// True for also those that are used up, revoked or expired.
    pub with_ended: bool,
    /// The last grant of the page before.
    pub after: Option<GrantPlace>,
    /// Largest number of grants.
    pub limit: u32,
}

/// The place of a grant in the order of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GrantPlace {
    /// The time of the grant.
    pub granted_at: SystemTime,
    /// The grant's id.
    pub id: GrantId,
}

impl GrantRows<'_> {
    /// The grants of a workspace that a person looks for, the newest first.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn search(
        &self,
        workspace: &WorkspaceId,
        search: &GrantSearch,
    ) -> Result<Vec<GrantRow>, StatementError> {
        let GrantSearch { agent, user, scope, with_ended, after, limit } = search;
        let id = after.map(|place| place.id.to_text()).unwrap_or_default();
        let scope = scope.as_ref().map(pattern).unwrap_or_default();
        let values = [
            Value::Text(workspace.as_str()),
            Value::Text(agent.as_ref().map_or("", AgentName::as_str)),
            Value::Text(user.as_ref().map_or("", PrincipalId::as_str)),
            Value::Text(&scope),
            Value::Integer((*with_ended).into()),
            Value::Integer(now_ms()),
            Value::Integer(after.map_or(i64::MAX, |place| ms(place.granted_at))),
            Value::Text(&id),
            Value::Integer((*limit).into()),
        ];
        self.database.read(SEARCH, &values).await?.iter().map(grant).collect()
    }
}

/// The details of a grant of this scope. Of the letters of a scope, `_` has a meaning in patterns.
fn pattern(scope: &ToolScope) -> String {
    format!("%\"scope\":\"{}\"%", scope.as_str().replace('_', "!_"))
}
