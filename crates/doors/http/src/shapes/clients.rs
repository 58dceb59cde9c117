//! Shapes of registered MCP clients, and of the entries that clients take.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{
    ids::{
        ClientClosed, ClientOrigin, McpClientId, ObjectName, PrincipalId, PrincipalName,
        ProfileName, RunId, SessionId, Time,
    },
    page::Listed,
    runs::{BuiltInTools, ClientEntry},
};

/// A registered MCP client, without its token, its parameters and its scope.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct McpClient {
    pub(crate) id: McpClientId,
    pub(crate) client: PrincipalName,
    /// The agent of the client's runs. Absent for a client of the live configuration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) agent_name: Option<ObjectName>,
    /// The profile through which the client sees the live configuration. Absent for all servers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) profile: Option<ProfileName>,
    /// The human for whom the client acts, who let it in at the door.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) acts_for: Option<PrincipalId>,
    /// Id of the program at the door: its own address, or one that it got there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) program: Option<String>,
    /// The origins that the client may give to its writes.
    pub(crate) origins: Vec<ClientOrigin>,
    /// True if the client's token opens a run now.
    pub(crate) is_live: bool,
    /// The reason why the client starts no further run. An active run continues without its agent.
    pub(crate) closed_because: Option<ClientClosed>,
    pub(crate) session_id: Option<SessionId>,
    pub(crate) run_id: Option<RunId>,
    pub(crate) created_at: Time,
    pub(crate) created_by: String,
    pub(crate) expires_at: Option<Time>,
    pub(crate) revoked_at: Option<Time>,
}

impl Listed for McpClient {
    const PAGE: &str = "McpClientPage";
    const ABOUT: &str = "All clients that a workspace has or had.";
}

/// The client to register. Each of its runs gets the parameters and the scope, which are stored
/// sealed and never shown.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(example = json!({ "client": "desktop", "agent_name": "reader" }))]
pub(crate) struct McpClientNew {
    #[schemars(extend("pattern" = "^[a-z0-9][a-z0-9._@+-]{0,127}$", "maxLength" = 128))]
    pub(crate) client: String,
    /// The agent of the client's runs. Required without `profile`.
    pub(crate) agent_name: Option<ObjectName>,
    /// The profile that the client sees, in place of an agent. Only an operator may name one.
    pub(crate) profile: Option<ProfileName>,
    pub(crate) params: Option<Map<String, Value>>,
    pub(crate) scope: Option<Map<String, Value>>,
    #[schemars(default, with = "BuiltInTools")]
    pub(crate) builtin: Option<BuiltInTools>,
    /// Origins that the client may give to its writes. The default is only `agent-produced`.
    #[schemars(extend("minItems" = 1))]
    pub(crate) origins: Option<Vec<ClientOrigin>>,
    pub(crate) expires_at: Option<Time>,
}

/// A client that was registered. Only this answer has its token.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct McpClientMade {
    #[serde(flatten)]
    pub(crate) known: McpClient,
    #[schemars(extend("pattern" = "^nxc_"))]
    pub(crate) token: String,
    /// Entries for the client's configuration.
    #[serde(rename = "mcpServers")]
    pub(crate) servers: BTreeMap<&'static str, ClientEntry>,
}
