//! Everything of a workspace at once, and agents with all levels merged.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use super::{
    agent::{Agent, AgentManifest, Capability, CapabilityNew, NoServers},
    server::{CatalogServer, CatalogServerNew},
};
use crate::shapes::{
    ids::SecretName,
    part::As,
    problem::{ConfigFault, FieldWarning},
};

raw! {
    /// Version of the format.
    FormatVersion = { "const": 1 };
}

/// A secret that the export names, without its value.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(example = json!({ "name": "DOCS_KEY", "is_set": true }))]
pub(crate) struct ExportedSecret {
    pub(crate) name: SecretName,
    pub(crate) is_set: bool,
}

/// All objects of a workspace, without the values of secrets.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Export {
    pub(crate) version: FormatVersion,
    pub(crate) servers: Vec<CatalogServer>,
    pub(crate) capabilities: Vec<Capability>,
    pub(crate) agents: Vec<Agent>,
    pub(crate) secrets: Vec<ExportedSecret>,
}

/// A secret that is expected to be set.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(example = json!({ "name": "DOCS_KEY" }))]
pub(crate) struct NamedSecret {
    pub(crate) name: SecretName,
    #[schemars(default, with = "bool")]
    pub(crate) is_set: Option<bool>,
}

/// The objects to store: all of them, or none. Up to 1,000 objects.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(example = json!({
    "version": 1,
    "capabilities": [{ "name": "advice", "text": "Read first." }]
}))]
pub(crate) struct ImportDocument {
    #[schemars(default, with = "FormatVersion")]
    pub(crate) version: Option<FormatVersion>,
    pub(crate) servers: Option<Vec<CatalogServerNew>>,
    pub(crate) capabilities: Option<Vec<CapabilityNew>>,
    pub(crate) agents: Option<Vec<AgentManifest>>,
    pub(crate) secrets: Option<Vec<NamedSecret>>,
}

/// Kind of the change. `deleted` occurs only with `prune`: an earlier manifest made the server, and
/// no agent attaches it any more.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub(crate) enum ChangeKind {
    Created,
    Updated,
    Unchanged,
    Deleted,
}

/// The change of one object.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ImportChange {
    #[schemars(extend("enum" = narthex_model::CatalogKind::ALL.map(|kind| kind.to_string())))]
    pub(crate) kind: String,
    pub(crate) id: String,
    pub(crate) change: ChangeKind,
    /// The object before the change. Null for a new one.
    pub(crate) before: Value,
    /// The object after the change. Null for a deleted one.
    pub(crate) after: Value,
}

/// The changes that an import made, or would make.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Imported {
    pub(crate) dry_run: bool,
    pub(crate) changes: Vec<ImportChange>,
    pub(crate) warnings: Vec<As<FieldWarning>>,
}

raw! {
    /// Level of a value.
    OriginLevel = {
        "type": "string",
        "enum": ["schema_default", "default_config", "capability", "agent"],
    };
}

/// The level that a value comes from.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(example = json!({ "level": "agent", "name": "reader" }))]
pub(crate) struct Origin {
    pub(crate) level: OriginLevel,
    pub(crate) name: String,
}

/// A value and its origin.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SaidValue {
    pub(crate) origin: Origin,
    /// The value.
    pub(crate) value: Value,
}

/// A key of a server's configuration with all levels merged.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct MergedKey {
    /// The value in use.
    pub(crate) value: Value,
    pub(crate) origin: Origin,
    pub(crate) overrides: Vec<SaidValue>,
    pub(crate) conflicts: Vec<SaidValue>,
    pub(crate) required: bool,
    pub(crate) hidden: bool,
    pub(crate) removed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) header: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) env: Option<String>,
}

/// A notice about a configuration.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ConfigWarning {
    pub(crate) path: String,
    pub(crate) message: String,
}

/// A server of an agent with all levels merged.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct MergedServer {
    #[serde(rename = "ref")]
    pub(crate) reference: String,
    pub(crate) optional: bool,
    pub(crate) config: BTreeMap<String, MergedKey>,
    /// The filter for the server's tools.
    pub(crate) tools: Value,
    pub(crate) errors: Vec<ConfigFault>,
    pub(crate) warnings: Vec<ConfigWarning>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) auth: Option<String>,
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub(crate) transport: Option<String>,
}

/// An agent's servers with all levels merged.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Merged {
    pub(crate) agent: String,
    #[serde(rename = "mcpServers")]
    pub(crate) servers: BTreeMap<String, MergedServer>,
    /// An empty object: it marks an agent that has no servers on purpose.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) mcp: Option<NoServers>,
    pub(crate) errors: Vec<ConfigFault>,
}
