//! Shapes of claims of runs by executors.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{
    ids::Time,
    runs::{RunEndpoints, RunEntries, RunHead, RunLive, RunStored},
};

/// The claim to make or to extend.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(example = json!({ "lease_seconds": 600 }))]
pub(crate) struct ClaimNew {
    /// Id of the claim to extend. Without this member, the request makes a new claim.
    #[schemars(default, with = "String")]
    pub(crate) claim: Option<String>,
    /// Seconds from now in which no other caller can claim the run.
    #[schemars(default, with = "u64")]
    #[schemars(extend("minimum" = 1, "maximum" = 86400, "default" = 300))]
    pub(crate) lease_seconds: Option<u64>,
    /// True to get the servers with all values, for a claimant that starts servers itself. Only for
    /// a new claim.
    #[schemars(default, with = "bool", extend("default" = false))]
    pub(crate) direct: Option<bool>,
}

/// A claim. The answer to a new claim has the run with its token, which no later answer has.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct RunClaimed {
    #[schemars(extend("pattern" = "^clm_"))]
    pub(crate) claim: String,
    pub(crate) claimed_until: Time,
    #[serde(flatten)]
    pub(crate) new: Option<RunBrief>,
}

/// The members of a new claim.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct RunBrief {
    /// The prompt for the model.
    #[schemars(extend("x-nullable" = true))]
    pub(crate) prompt: Option<String>,
    /// The parameters of the agent, which its model sees.
    pub(crate) params: Map<String, Value>,
    /// The text of the agent that its model sees, as it was when the run was created.
    #[schemars(extend("x-nullable" = true))]
    pub(crate) system_prompt: Option<String>,
    /// The requested model. Null if the claimant chooses.
    #[schemars(extend("x-nullable" = true))]
    pub(crate) model: Option<String>,
    /// The requested runtime.
    #[schemars(extend("x-nullable" = true))]
    pub(crate) runtime_type: Option<String>,
    /// The servers with all values. Only in direct mode.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) resolved_mcp_servers: Option<Map<String, Value>>,
    pub(crate) run: ClaimedRun,
}

/// The run, with the entries for its client.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
pub(crate) struct ClaimedRun {
    #[serde(flatten)]
    pub(crate) head: RunHead,
    #[serde(flatten)]
    pub(crate) stored: RunStored,
    #[serde(flatten)]
    pub(crate) live: RunLive,
    #[serde(flatten)]
    pub(crate) entries: RunEntries<RunEndpoints>,
}
