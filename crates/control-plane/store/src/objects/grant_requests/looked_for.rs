//! Requests in the order of time, as people look for them.

use std::time::SystemTime;

use narthex_model::{AgentName, GrantRequestId, WorkspaceId};

use super::{GrantRequestRow, GrantRequestStatus, GrantRequests, request};
use crate::{
    StatementError,
    objects::{ms, now_ms},
    statement::{Statement, Value},
};

/// The open requests, the oldest first.
const OPEN: Statement = Statement {
    name: "grant_requests.open_by_time",
    sql: select!(
        "$3",
        "WHERE workspace = $1 AND status = 'pending' AND expires_at > $3 \
         AND ($2 = '' OR agent_subject = $2) \
         AND (requested_at > $4 OR (requested_at = $4 AND id > $5)) \
         ORDER BY requested_at, id LIMIT $6"
    ),
};
/// The other requests, the newest first.
const CLOSED: Statement = Statement {
    name: "grant_requests.closed_by_time",
    sql: select!(
        "$3",
        "WHERE workspace = $1 AND (status <> 'pending' OR expires_at <= $3) \
         AND ($2 = '' OR agent_subject = $2) \
         AND ($7 = 'all' OR $7 = CASE WHEN status = 'pending' THEN 'expired' ELSE status END) \
         AND (requested_at < $4 OR (requested_at = $4 AND id < $5)) \
         ORDER BY requested_at DESC, id DESC LIMIT $6"
    ),
};

/// The requests that a person looks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestSearch {
    /// The state of the requests, which also gives their order.
    pub state: RequestState,
    /// The agent that asks; `None` for all.
    pub agent: Option<AgentName>,
    /// The last request of the page before.
    pub after: Option<RequestPlace>,
    /// Largest number of requests.
    pub limit: u32,
}

/// The state of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestState {
    /// The requests wait for a decision. The oldest is the first.
    Open,
    /// The requests wait no longer, and have this status if there is one. The newest is the first.
    Closed(Option<GrantRequestStatus>),
}

/// The place of a request in the order of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestPlace {
    /// The time of the request.
    pub requested_at: SystemTime,
    /// The request's id.
    pub id: GrantRequestId,
}

impl GrantRequests<'_> {
    /// The requests of a workspace that a person looks for.
    ///
    /// # Errors
    /// When a statement fails.
    pub async fn search(
        &self,
        workspace: &WorkspaceId,
        search: &RequestSearch,
    ) -> Result<Vec<GrantRequestRow>, StatementError> {
        let RequestSearch { state, agent, after, limit } = search;
        let id = after.map(|place| place.id.to_text()).unwrap_or_default();
        let (statement, first, status) = match state {
            RequestState::Open => (OPEN, i64::MIN, None),
            RequestState::Closed(None) => (CLOSED, i64::MAX, Some("all")),
            RequestState::Closed(Some(status)) => (CLOSED, i64::MAX, Some(status.as_str())),
        };
        let mut values = vec![
            Value::Text(workspace.as_str()),
            Value::Text(agent.as_ref().map_or("", AgentName::as_str)),
            Value::Integer(now_ms()),
            Value::Integer(after.map_or(first, |place| ms(place.requested_at))),
            Value::Text(&id),
            Value::Integer((*limit).into()),
        ];
        values.extend(status.map(Value::Text));
        self.database.read(statement, &values).await?.iter().map(request).collect()
    }
}
