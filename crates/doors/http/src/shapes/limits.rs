//! Shapes of the limits of a workspace, and of its usage.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use super::page::{Listed, Page};

/// Limits of traffic. An absent member sets no limit. There is one rate at most.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(extend("allOf" = [
    { "not": { "required": ["calls_per_second", "calls_per_minute"] } },
    {
        "if": { "required": ["burst"] },
        "then": {
            "anyOf": [
                { "required": ["calls_per_second"] },
                { "required": ["calls_per_minute"] },
            ]
        }
    },
]))]
#[schemars(example = json!({ "calls_per_second": 20, "burst": 40, "calls_per_day": 100_000 }))]
pub(crate) struct TrafficLimits {
    /// The most calls per second, on average.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("minimum" = 1, "maximum" = 1_000_000))]
    pub(crate) calls_per_second: Option<u64>,
    /// The most calls per minute, on average.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("minimum" = 1, "maximum" = 1_000_000))]
    pub(crate) calls_per_minute: Option<u64>,
    /// The most calls that may come at once after a pause. Needs a rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("minimum" = 1, "maximum" = 1_000_000))]
    pub(crate) burst: Option<u64>,
    /// The most calls that are open at one time.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("minimum" = 1, "maximum" = 1_000_000))]
    pub(crate) concurrent_calls: Option<u64>,
    /// The most calls of one day, in UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("minimum" = 1, "maximum" = 1_000_000_000_000_u64))]
    pub(crate) calls_per_day: Option<u64>,
}

/// Limits of a workspace: its traffic, and the servers and children of its runs. An absent member
/// sets no limit. There is one rate at most.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(example = json!({ "calls_per_second": 20, "burst": 40, "calls_per_day": 100_000 }))]
pub(crate) struct WorkspaceLimits {
    #[serde(flatten)]
    pub(crate) traffic: TrafficLimits,
    /// The most servers of a run.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("minimum" = 1, "maximum" = 1_000_000))]
    pub(crate) servers_per_run: Option<u64>,
    /// The most memory of all programs of a run together, in MiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("minimum" = 1, "maximum" = 1_000_000_000))]
    pub(crate) memory_mb_per_run: Option<u64>,
    /// The most active children of a session. The default is 32.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("minimum" = 1, "maximum" = 1_000))]
    pub(crate) children_per_session: Option<u64>,
    /// The most ancestors of a session that an agent started. The default is 8.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("minimum" = 1, "maximum" = 32))]
    pub(crate) child_depth: Option<u64>,
    /// The most children that all sessions start on a day, in UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("minimum" = 1, "maximum" = 1_000_000))]
    pub(crate) children_per_day: Option<u64>,
    /// Minutes of silence after which a child ends. The default is 30.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("minimum" = 1, "maximum" = 1_440))]
    pub(crate) child_silence_minutes: Option<u64>,
}

/// Usage of a workspace, an agent or a server today.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct UsageRow {
    #[schemars(extend("pattern" = "^[a-z_]+$"))]
    pub(crate) kind: &'static str,
    pub(crate) name: String,
    pub(crate) calls_today: u64,
    pub(crate) open_calls: u64,
    #[schemars(with = "TrafficLimits")]
    pub(crate) limits: narthex_model::TrafficLimits,
}

impl Listed for UsageRow {
    const PAGE: &str = "UsageRowPage";
    const ABOUT: &str = "A page of the usage of a workspace.";
}

/// Usage of a workspace today, and its limits, by kind and name.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct UsagePage {
    /// Milliseconds until the usage of the next day begins.
    pub(crate) resets_in_ms: u64,
    #[serde(flatten)]
    pub(crate) page: Page<UsageRow>,
}

/// Limits of traffic. An absent member or null sets no limit. There is one rate at most.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(example = json!({ "calls_per_second": 20, "burst": 40, "calls_per_day": 100_000 }))]
pub(crate) struct TrafficLimitsNew {
    /// The most calls per second, on average.
    #[schemars(extend("minimum" = 1, "maximum" = 1_000_000))]
    pub(crate) calls_per_second: Option<u64>,
    /// The most calls per minute, on average.
    #[schemars(extend("minimum" = 1, "maximum" = 1_000_000))]
    pub(crate) calls_per_minute: Option<u64>,
    /// The most calls that may come at once after a pause. Needs a rate.
    #[schemars(extend("minimum" = 1, "maximum" = 1_000_000))]
    pub(crate) burst: Option<u64>,
    /// The most calls that are open at one time.
    #[schemars(extend("minimum" = 1, "maximum" = 1_000_000))]
    pub(crate) concurrent_calls: Option<u64>,
    /// The most calls of one day, in UTC.
    #[schemars(extend("minimum" = 1, "maximum" = 1_000_000_000_000_u64))]
    pub(crate) calls_per_day: Option<u64>,
}

/// Limits of a workspace: its traffic, and the servers and children of its runs. An absent member
/// or null sets no limit. There is one rate at most.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(example = json!({ "calls_per_second": 20, "burst": 40, "calls_per_day": 100_000 }))]
pub(crate) struct WorkspaceLimitsNew {
    #[serde(flatten)]
    pub(crate) traffic: TrafficLimitsNew,
    /// The most servers of a run.
    #[schemars(extend("minimum" = 1, "maximum" = 1_000_000))]
    pub(crate) servers_per_run: Option<u64>,
    /// The most memory of all programs of a run together, in MiB.
    #[schemars(extend("minimum" = 1, "maximum" = 1_000_000_000))]
    pub(crate) memory_mb_per_run: Option<u64>,
    /// The most active children of a session. The default is 32.
    #[schemars(extend("minimum" = 1, "maximum" = 1_000))]
    pub(crate) children_per_session: Option<u64>,
    /// The most ancestors of a session that an agent started. The default is 8.
    #[schemars(extend("minimum" = 1, "maximum" = 32))]
    pub(crate) child_depth: Option<u64>,
    /// The most children that all sessions start on a day, in UTC.
    #[schemars(extend("minimum" = 1, "maximum" = 1_000_000))]
    pub(crate) children_per_day: Option<u64>,
    /// Minutes of silence after which a child ends. The default is 30.
    #[schemars(extend("minimum" = 1, "maximum" = 1_440))]
    pub(crate) child_silence_minutes: Option<u64>,
}
