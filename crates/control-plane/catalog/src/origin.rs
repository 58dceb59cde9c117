//! The level of configuration that a value comes from.

use narthex_model::{AgentName, Alias, CapabilityName, ServerId, json::Place};
use serde::Serialize;

/// The level that set a value, from the lowest to the highest (D6, O32).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(tag = "level", content = "name", rename_all = "snake_case")]
pub enum Origin {
    /// The `default` of the key in the server's schema (O43).
    SchemaDefault(ServerId),
    /// The server's `default_config`.
    DefaultConfig(ServerId),
    /// A capability that the agent includes.
    Capability(CapabilityName),
    /// The agent itself.
    Agent(AgentName),
}

impl Origin {
    /// True if an author of servers wrote it.
    pub(crate) fn is_the_servers(&self) -> bool {
        matches!(self, Self::SchemaDefault(_) | Self::DefaultConfig(_))
    }

    /// The place of a key's value: the object, and the place in its text.
    pub(crate) fn place(&self, alias: &Alias, key: &str) -> Place {
        let attached =
            |place: Place| place.key("mcpServers").key(alias.as_str()).key("config").key(key);
        match self {
            Self::SchemaDefault(id) => server(id).key("config_schema").key(key).key("default"),
            Self::DefaultConfig(id) => server(id).key("default_config").key(key),
            Self::Capability(name) => attached(capability(name)),
            Self::Agent(name) => attached(agent(name)),
        }
    }
}

/// The place of a server's entry.
pub(crate) fn server(id: &ServerId) -> Place {
    Place::root("servers").key(id.as_str())
}

/// The place of a capability.
pub(crate) fn capability(name: &CapabilityName) -> Place {
    Place::root("capabilities").key(name.as_str())
}

/// The place of an agent.
pub(crate) fn agent(name: &AgentName) -> Place {
    Place::root("agents").key(name.as_str())
}

impl std::fmt::Display for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::SchemaDefault(id) => write!(f, "the schema of server `{id}`"),
            Self::DefaultConfig(id) => write!(f, "the default_config of server `{id}`"),
            Self::Capability(name) => write!(f, "capability `{name}`"),
            Self::Agent(name) => write!(f, "agent `{name}`"),
        }
    }
}
