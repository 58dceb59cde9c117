//! Capabilities and agents of the catalog, and their attachments.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::server::NameRules;
use crate::shapes::{
    ids::{AgentType, ObjectName},
    limits::{TrafficLimits, TrafficLimitsNew},
    part::As,
    runs::BuiltInTools,
};

/// The attachment of a server to an agent or a capability.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(example = json!({
    "ref": "docs",
    "config": { "context_id": "${scope.context_id}" }
}))]
pub(crate) struct Attached {
    /// Id of the server.
    #[serde(rename = "ref")]
    pub(crate) server: As<String>,
    /// Values by key, which may contain placeholders. A secret is `${NAME}` or
    /// `{"$secret": "NAME"}`. Null removes the key.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, with = "Map<String, Value>")]
    pub(crate) config: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, with = "bool")]
    pub(crate) optional: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, with = "NameRules")]
    pub(crate) tools: Option<Value>,
}

/// Attachments by alias.
type Attachments = BTreeMap<String, Attached>;

impl Attached {
    /// The part for callers that may not read the values of configurations (D39).
    fn without_values(self) -> Self {
        let Self { server, config: _, optional, tools } = self;
        Self { server, config: None, optional, tools }
    }
}

fn without_values(attached: Option<Attachments>) -> Option<Attachments> {
    let one = |(alias, one): (String, Attached)| (alias, one.without_values());
    attached.map(|all| all.into_iter().map(one).collect())
}

raw! {
    /// Content of a capability.
    CapabilityType = {
        "type": "string",
        "enum": spelled!(narthex_catalog::CapabilityKind: Text, Script, Mcp),
    };
}

/// The members of a capability that answers and bodies have alike.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct CapabilityMembers {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) description: Option<As<String>>,
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub(crate) content: Option<As<CapabilityType>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) text: Option<As<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) script: Option<As<String>>,
    #[serde(rename = "mcpServers", skip_serializing_if = "Option::is_none")]
    pub(crate) attached: Option<Attachments>,
}

/// A named bundle of attached servers, or of text.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(example = json!({
    "name": "papers",
    "description": "Papers to read",
    "mcpServers": {
        "library": { "ref": "docs", "config": { "context_id": "archive" }, "optional": true }
    }
}))]
pub(crate) struct Capability {
    pub(crate) name: As<ObjectName>,
    #[serde(flatten)]
    pub(crate) members: CapabilityMembers,
}

impl Capability {
    /// The part for callers that may not read the values of configurations (D39).
    pub(crate) fn without_values(self) -> Self {
        let Self { name, members } = self;
        let CapabilityMembers { description, content, text, script, attached } = members;
        let attached = without_values(attached);
        Self { name, members: CapabilityMembers { description, content, text, script, attached } }
    }
}

/// A capability. The body may leave out the `name` of the path.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(example = json!({
    "name": "papers",
    "description": "Papers to read",
    "mcpServers": {
        "library": { "ref": "docs", "config": { "context_id": "archive" }, "optional": true }
    }
}))]
pub(crate) struct CapabilityNew {
    pub(crate) name: Option<ObjectName>,
    /// Read as `name`.
    pub(crate) id: Option<ObjectName>,
    #[serde(flatten)]
    pub(crate) members: CapabilityMembers,
    pub(crate) mcp_servers: Option<Attachments>,
}

/// An empty object: it marks an agent that has no servers on purpose.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline, extend("additionalProperties" = false))]
pub(crate) struct NoServers {}

/// The members of an agent that answers and bodies have alike.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct AgentMembers {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = narthex_model::AgentType::default().as_str()))]
    pub(crate) agent_type: Option<As<AgentType>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) description: Option<As<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) system_prompt: Option<As<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) capabilities: Option<As<Vec<ObjectName>>>,
    #[serde(rename = "mcpServers", skip_serializing_if = "Option::is_none")]
    pub(crate) attached: Option<Attachments>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) params_schema: Option<As<Map<String, Value>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) spawnable_agents: Option<As<Vec<ObjectName>>>,
    /// The executor of the agent's runs, by its name in the settings of the daemon.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) executor: Option<As<ObjectName>>,
    /// Minutes without a new event after which a session of this orchestrator is woken. Without
    /// this member the session is never woken.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("minimum" = 1, "maximum" = 1440))]
    pub(crate) heartbeat_minutes: Option<As<u64>>,
    /// The tools of the built-in server.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, with = "BuiltInTools")]
    pub(crate) builtin: Option<As<BuiltInTools>>,
}

raw! {
    /// Answer to runs that call `end_session`.
    EndSession = {
        "type": "string",
        "enum": spelled!(narthex_catalog::EndSession: Accept, Reject),
    };
}

/// An agent.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(example = json!({
    "active": true,
    "name": "reader",
    "system_prompt": "You read.",
    "capabilities": ["papers"]
}))]
pub(crate) struct Agent {
    pub(crate) name: As<ObjectName>,
    pub(crate) active: As<bool>,
    #[serde(flatten)]
    pub(crate) members: AgentMembers,
    /// An empty object: it marks an agent that has no servers on purpose.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) mcp: Option<As<NoServers>>,
    /// Answer to runs that call `end_session`. The default is `accept`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) end_session: Option<As<EndSession>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) limits: Option<As<TrafficLimits>>,
}

impl Agent {
    /// The part for callers that may not read the values of configurations (D39).
    pub(crate) fn without_values(self) -> Self {
        let Self { name, active, members, mcp, end_session, limits } = self;
        let AgentMembers {
            agent_type,
            description,
            system_prompt,
            capabilities,
            attached,
            params_schema,
            spawnable_agents,
            executor,
            heartbeat_minutes,
            builtin,
        } = members;
        let members = AgentMembers {
            agent_type,
            description,
            system_prompt,
            capabilities,
            attached: without_values(attached),
            params_schema,
            spawnable_agents,
            executor,
            heartbeat_minutes,
            builtin,
        };
        Self { name, active, members, mcp, end_session, limits }
    }
}

/// The members that all bodies of agents have.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct AgentNewMembers {
    pub(crate) name: Option<ObjectName>,
    /// Read as `name`.
    pub(crate) id: Option<ObjectName>,
    pub(crate) active: Option<bool>,
    #[serde(flatten)]
    pub(crate) members: AgentMembers,
    pub(crate) mcp_servers: Option<Attachments>,
    /// Answer to runs that call `end_session`. The default is `accept`.
    #[schemars(default, with = "Value", extend("enum" = ["accept", "reject", null]))]
    pub(crate) end_session: Option<EndSession>,
    pub(crate) limits: Option<TrafficLimitsNew>,
}

/// An agent. The body may leave out the `name` of the path.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(example = json!({
    "name": "reader",
    "system_prompt": "You read.",
    "capabilities": ["papers"]
}))]
pub(crate) struct AgentNew {
    #[serde(flatten)]
    pub(crate) agent: AgentNewMembers,
    /// An empty object: it marks an agent that has no servers on purpose.
    pub(crate) mcp: Option<NoServers>,
}

raw! {
    /// A text, a number or a flag.
    Scalar = { "type": ["string", "number", "boolean"] };

    /// A time such as 500ms, 30s or 2m, or a number of seconds.
    ManifestTime = { "type": ["string", "integer"] };
}

/// A server inside a manifest. `${NAME}` is a secret of the workspace, and `${env:NAME}` a variable
/// of the daemon.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ManifestServer {
    pub(crate) command: Option<String>,
    pub(crate) args: Option<Vec<Scalar>>,
    pub(crate) env: Option<BTreeMap<String, Scalar>>,
    pub(crate) url: Option<String>,
    pub(crate) headers: Option<BTreeMap<String, Scalar>>,
    /// `stdio`, `http` or `sse`, in any case. Used instead of `type`.
    pub(crate) transport_type: Option<String>,
    #[serde(rename = "type")]
    pub(crate) transport: Option<String>,
    /// A time such as 500ms, 30s or 2m, or a number of seconds. Zero and less mean the default.
    pub(crate) timeout: Option<ManifestTime>,
    /// A time such as 500ms, 30s or 2m, or a number of seconds. Zero and less mean the default.
    pub(crate) request_timeout: Option<ManifestTime>,
    /// A time such as 500ms, 30s or 2m, or a number of seconds. Zero and less mean the default.
    pub(crate) mount_timeout: Option<ManifestTime>,
    #[schemars(extend("minimum" = 1))]
    pub(crate) max_output_tokens: Option<u64>,
    #[schemars(extend("minimum" = 1))]
    pub(crate) max_output_bytes: Option<u64>,
    pub(crate) optional: Option<bool>,
    pub(crate) disabled: Option<bool>,
    /// Accepted and ignored.
    #[schemars(default, with = "Value")]
    pub(crate) instructions: Option<Value>,
}

/// Servers by name, or names.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
#[expect(dead_code, reason = "only its schema is used")]
pub(crate) enum ManifestServers {
    Named(BTreeMap<String, ManifestServer>),
    Names(Vec<String>),
}

/// Names of servers, or servers.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
#[expect(dead_code, reason = "only its schema is used")]
pub(crate) enum ManifestMcp {
    Names(Vec<String>),
    Servers { servers: Option<ManifestServers>, names: Option<Vec<String>> },
}

/// An agent in the form of an `agent.yaml`, which may describe its servers inside.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(example = json!({
    "name": "helper",
    "mcp": {
        "servers": {
            "papers": { "url": "https://papers.example/mcp", "timeout": "15s", "optional": true }
        }
    }
}))]
pub(crate) struct AgentManifest {
    #[serde(flatten)]
    pub(crate) agent: AgentNewMembers,
    /// Read as `capabilities`.
    pub(crate) skills: Option<Vec<ObjectName>>,
    /// Servers that the import adds to the catalog, and names of servers in the catalog.
    pub(crate) mcp: Option<ManifestMcp>,
}
