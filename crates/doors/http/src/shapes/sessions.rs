//! Shapes of sessions, and of their usage.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use super::{
    ids::{ObjectName, RunId, SessionId, Time},
    page::Listed,
    runs::RunRow,
};

/// The most units of a report of usage.
const USAGE_MAX: u64 = 900_000_000_000;

/// The members of a session that lists have.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(description = "A session.")]
pub(crate) struct SessionRow {
    pub(crate) session_id: SessionId,
    pub(crate) agent_name: Option<ObjectName>,
    /// The variables that an operator has bound to secrets for the session's agent.
    pub(crate) agent_env_names: Vec<String>,
    pub(crate) parent_run_id: Option<RunId>,
    pub(crate) status: SessionStatus,
    /// The time of the suspension, of a suspended session.
    pub(crate) suspended_at: Option<Time>,
    pub(crate) suspended_by: Option<String>,
    pub(crate) created_at: Time,
    pub(crate) created_by: String,
    pub(crate) ended_at: Option<Time>,
}

impl Listed for SessionRow {
    const PAGE: &str = "SessionPage";
    const ABOUT: &str = "The sessions of a workspace.";
}

/// Status of a session. A session with the status `running` may have no active run.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SessionStatus {
    Running,
    Suspended,
    Ended,
}

/// A session with its runs.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Session {
    #[serde(flatten)]
    pub(crate) row: SessionRow,
    pub(crate) pids: Vec<u64>,
    pub(crate) runs: Vec<RunRow>,
}

/// A report of the usage of a session.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(example = json!({
    "id": "turn-7",
    "model": "small",
    "input_tokens": 1200,
    "output_tokens": 80,
    "cost_micros": 4100,
    "currency": "EUR"
}))]
pub(crate) struct SessionUsage {
    /// Id of the report, which the reporter chooses. A repeated id is the same report.
    #[schemars(extend("minLength" = 1, "maxLength" = 200))]
    pub(crate) id: String,
    #[schemars(extend("minLength" = 1, "maxLength" = 200))]
    pub(crate) model: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, with = "u64", extend("maximum" = USAGE_MAX, "default" = 0))]
    pub(crate) input_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, with = "u64", extend("maximum" = USAGE_MAX, "default" = 0))]
    pub(crate) output_tokens: Option<u64>,
    /// The cost in millionths of the currency.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, with = "u64", extend("maximum" = USAGE_MAX, "default" = 0))]
    pub(crate) cost_micros: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, with = "String", extend("pattern" = "^[A-Z]{3}$", "default" = "USD"))]
    pub(crate) currency: Option<String>,
}
