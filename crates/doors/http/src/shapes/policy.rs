//! Shapes of the rules of a workspace.

use narthex_model::AgentType;
use narthex_policy::CallOrigin;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::ids::Time;

/// The rules of a workspace, in Cedar. See policy.md.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(example = json!({
    "rules": "forbid(principal, action, resource in Server::\"linear\");",
    "ids": ["rule-1"],
    "faults": [],
    "revision": 1,
    "updated_at": "2026-11-22T12:00:00.000Z",
    "updated_by": "ada"
}))]
pub(crate) struct Rules {
    /// The text as written. Empty if there are no rules.
    pub(crate) rules: String,
    /// The ids of the rules, in the order of the text. Empty if the text has faults.
    pub(crate) ids: Vec<String>,
    /// The faults of stored rules, such as rules of another version. While there is a fault, all
    /// calls of the workspace's runs are refused.
    pub(crate) faults: Vec<RuleFault>,
    /// Number of writes of rules. 0 if there was none.
    pub(crate) revision: u64,
    pub(crate) updated_at: Option<Time>,
    pub(crate) updated_by: Option<String>,
    /// Names in the rules of no known object, each with the probable name. Only the answer to a
    /// write has this member.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) warnings: Option<Vec<String>>,
}

/// A fault of rules.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct RuleFault {
    /// The first line of the fault, from 1. Null if the fault concerns the whole text.
    #[schemars(with = "Option<i64>")]
    pub(crate) line: Option<u64>,
    /// The id of the rule, if it is known.
    pub(crate) rule: Option<String>,
    /// The fault.
    pub(crate) message: String,
    /// The way to correct the fault.
    pub(crate) remedy: String,
}

/// The rules that replace those of the workspace.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(example = json!({
    "rules": "forbid(principal, action, resource in Server::\"linear\");"
}))]
pub(crate) struct RulesNew {
    /// The whole text, at most 262144 bytes and 1000 rules.
    pub(crate) rules: String,
}

/// A call to check. The call is not made.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(example = json!({
    "agent": "reader",
    "server": "linear",
    "tool": "create_issue",
    "arguments": {
        "team": "ops"
    }
}))]
pub(crate) struct RulesQuestion {
    /// The run's agent. Without it, the run has none.
    pub(crate) agent: Option<String>,
    /// Type of the agent. The default is the type in the catalog.
    #[schemars(extend("enum" = or_null(AgentType::ALL.map(AgentType::as_str))))]
    pub(crate) agent_type: Option<String>,
    /// The server's id in the catalog, or its alias in the live configuration.
    pub(crate) server: String,
    /// The run's alias of the server. The default is `server`.
    pub(crate) alias: Option<String>,
    /// The tool, by the server's own name. A question needs exactly one of tool, prompt and
    /// resource, or a method.
    pub(crate) tool: Option<String>,
    /// The prompt, by the server's own name.
    pub(crate) prompt: Option<String>,
    /// The resource's URI.
    pub(crate) resource: Option<String>,
    /// Origin of the request: `call`, which is the default, or `task` for a task that an earlier
    /// call of the tool created.
    #[schemars(extend("enum" = or_null(CallOrigin::ALL.map(CallOrigin::as_str))))]
    pub(crate) origin: Option<String>,
    /// The arguments. The default is none.
    pub(crate) arguments: Option<Map<String, Value>>,
    /// The annotations that the server declares for the tool. The default is none.
    pub(crate) annotations: Option<Map<String, Value>>,
    /// The human who drives the run, by name or id. The default is none.
    pub(crate) user: Option<String>,
    /// True if another run created the run. The default is false.
    pub(crate) is_child: Option<bool>,
    /// The method of the message. The default is the usual method. Without tool, prompt and
    /// resource, the question is about the server itself, which rules address by `Method::`.
    pub(crate) method: Option<String>,
    /// The endpoint of the call. The default is `aggregated`.
    #[schemars(extend("enum" = or_null(["aggregated", "transparent"])))]
    pub(crate) endpoint: Option<String>,
    /// The protocol era of the caller. The default is `modern`.
    #[schemars(extend("enum" = or_null(["legacy", "modern"])))]
    pub(crate) era: Option<String>,
    /// Time of the call. The default is now.
    pub(crate) at: Option<Time>,
    /// The rules to ask instead of the stored rules. They are not stored.
    pub(crate) rules: Option<String>,
}

/// The ruling on a call.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(example = json!({
    "decision": "approval_required",
    "rule": null,
    "reason": null,
    "scopes": ["linear.write"],
    "matched": ["writes"],
    "failed": [],
    "warnings": []
}))]
pub(crate) struct RulesChecked {
    /// The decision of the rules alone. A call also needs an exposed tool, and the grants that are
    /// required.
    #[schemars(extend("enum" = ["allowed", "approval_required", "forbidden"]))]
    pub(crate) decision: &'static str,
    /// The rule that forbids the call, the first of several.
    pub(crate) rule: Option<String>,
    /// The reason for the caller. Empty if the rule has none.
    pub(crate) reason: Option<String>,
    /// The tool scopes that rules require.
    pub(crate) scopes: Vec<String>,
    /// The ids of all rules that match.
    pub(crate) matched: Vec<String>,
    /// The ids of the matching rules that could not be evaluated, and so count as matching.
    pub(crate) failed: Vec<String>,
    /// Names in the question of no known agent, server or tool, each with the probable name.
    pub(crate) warnings: Vec<String>,
}

/// Words, or null.
fn or_null<const N: usize>(words: [&str; N]) -> Value {
    words.into_iter().map(Value::from).chain([Value::Null]).collect()
}
