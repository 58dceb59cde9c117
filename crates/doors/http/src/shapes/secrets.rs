//! Shapes of secrets, and of their bindings to the environment of agents.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use super::{
    ids::{Alias, EnvBindingId, EnvScope, ObjectName, RunId, SecretName, SessionId, Time},
    page::Listed,
};

/// A stored version of a secret.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SecretVersion {
    pub(crate) version: u64,
    pub(crate) created_at: Time,
    /// Id of the master key that seals the version.
    pub(crate) key: Option<String>,
}

/// A secret without its values.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(example = json!({
    "name": "DOCS_KEY",
    "is_set": true,
    "created_at": "2026-11-22T13:00:00.000Z",
    "updated_at": "2026-11-22T13:00:00.000Z",
    "updated_by": "admin",
    "versions": [
        {
            "version": 1,
            "created_at": "2026-11-22T13:00:00.000Z",
            "key": "k1"
        }
    ],
    "used_by": [
        "agents.reader.mcpServers.docs.config.api_key"
    ]
}))]
pub(crate) struct SecretSummary {
    pub(crate) name: SecretName,
    pub(crate) is_set: bool,
    pub(crate) created_at: Time,
    pub(crate) updated_at: Time,
    pub(crate) updated_by: String,
    pub(crate) versions: Vec<SecretVersion>,
    /// The places in the catalog, channels and webhooks that name the secret. Only callers that may
    /// read the catalog get this member.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) used_by: Option<Vec<String>>,
}

impl SecretSummary {
    /// The part for callers that may not read the catalog.
    pub(crate) fn without_catalog(self) -> Self {
        let Self { name, is_set, created_at, updated_at, updated_by, versions, used_by: _ } = self;
        Self { name, is_set, created_at, updated_at, updated_by, versions, used_by: None }
    }
}

impl Listed for SecretSummary {
    const PAGE: &str = "SecretPage";
    const ABOUT: &str = "The secrets of a workspace.";
}

/// The value of a secret: text of 1 to 65536 bytes without a zero byte.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(example = json!({
    "value": "a key"
}))]
pub(crate) struct SecretValue {
    #[schemars(extend("minLength" = 1, "maxLength" = 65536, "writeOnly" = true))]
    pub(crate) value: String,
}

/// A secret that a request has set.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(example = json!({
    "name": "DOCS_KEY",
    "version": 1,
    "replaced": false,
    "is_redactable": true
}))]
pub(crate) struct SecretStored {
    pub(crate) name: SecretName,
    pub(crate) version: u64,
    /// True if the secret was set before.
    pub(crate) replaced: bool,
    /// True if the value is removed from results, logs and the audit. A value of fewer
    /// than 6 bytes, or a number of fewer than 8 digits, stays: it occurs in too many texts.
    pub(crate) is_redactable: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) warning: Option<String>,
}

/// A change of the master key.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct KeyRotation {
    /// Id of the new master key.
    pub(crate) key: String,
    /// Number of versions that are sealed anew.
    pub(crate) resealed: u64,
    /// True if an earlier request had started the change.
    pub(crate) resumed: bool,
    /// Ids of the old master keys that are forgotten.
    pub(crate) dropped: Vec<String>,
    /// Ids of the unused master keys that a person has to remove from a keychain, file or variable.
    pub(crate) unused: Vec<String>,
}

/// A secret that a request has cleared, its users, and the live runs that held it.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(example = json!({
    "name": "DOCS_KEY",
    "used_by": [
        "agents.reader.mcpServers.docs.config.api_key"
    ],
    "runs": [
        {
            "run_id": "run_0a1b2c3d4e5f",
            "pid": 3,
            "session_id": "ses_0a1b2c3d4e5f",
            "agent_name": "reader",
            "servers": [
                "docs"
            ],
            "agent_env_names": []
        }
    ],
    "env_bindings": [
        "agent:reader:DOCS_TOKEN"
    ],
    "warning": "agents keep the value"
}))]
pub(crate) struct SecretCleared {
    pub(crate) name: SecretName,
    /// The places in the catalog, channels and webhooks that name the secret.
    pub(crate) used_by: Vec<String>,
    /// The live runs that held the secret.
    pub(crate) runs: Vec<SecretRun>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("minItems" = 1))]
    pub(crate) env_bindings: Option<Vec<EnvBindingId>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) warning: Option<String>,
}

/// A secret that agents get in their own environment.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(example = json!({
    "id": "agent:reader:DOCS_TOKEN",
    "scope": "agent",
    "scope_id": "reader",
    "name": "DOCS_TOKEN",
    "secret": "DOCS_KEY",
    "created_at": "2026-11-22T13:00:00.000Z",
    "updated_at": "2026-11-22T13:00:00.000Z",
    "updated_by": "admin"
}))]
pub(crate) struct EnvBinding {
    pub(crate) id: EnvBindingId,
    pub(crate) scope: EnvScope,
    pub(crate) scope_id: String,
    pub(crate) name: String,
    pub(crate) secret: SecretName,
    pub(crate) created_at: Time,
    pub(crate) updated_at: Time,
    pub(crate) updated_by: String,
}

impl Listed for EnvBinding {
    const PAGE: &str = "EnvBindingPage";
    const ABOUT: &str = "The bindings of a workspace.";
}

/// The binding to create. The scope `workspace` needs no `scope_id`.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(example = json!({
    "scope": "agent",
    "scope_id": "reader",
    "name": "DOCS_TOKEN",
    "secret": "DOCS_KEY"
}))]
pub(crate) struct EnvBindingNew {
    pub(crate) scope: EnvScope,
    #[schemars(extend("minLength" = 1))]
    pub(crate) name: String,
    pub(crate) secret: SecretName,
    pub(crate) scope_id: Option<String>,
}

/// The secret of a binding.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(example = json!({
    "secret": "DOCS_KEY"
}))]
pub(crate) struct EnvBindingSecret {
    pub(crate) secret: SecretName,
}

/// A live run that held the cleared secret.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(example = json!({
    "run_id": "run_0a1b2c3d4e5f",
    "pid": 3,
    "session_id": "ses_0a1b2c3d4e5f",
    "agent_name": "reader",
    "servers": [
        "docs"
    ],
    "agent_env_names": []
}))]
pub(crate) struct SecretRun {
    pub(crate) run_id: RunId,
    /// Number of the run in the workspace.
    pub(crate) pid: u64,
    pub(crate) session_id: SessionId,
    pub(crate) agent_name: ObjectName,
    /// The servers of the run that held the value. All of them have ended.
    pub(crate) servers: Vec<Alias>,
    /// The variables of the run's agent that keep the value.
    pub(crate) agent_env_names: Vec<String>,
}
