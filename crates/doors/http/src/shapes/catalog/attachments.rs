//! Attachments of an agent, one by one, and its sign-ins at servers.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::server::NameRules;
use crate::shapes::{page::Listed, part::As, problem::FieldWarning};

/// The members of an attachment.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct AttachmentMembers {
    pub(crate) alias: String,
    /// Id of the server.
    pub(crate) name: String,
    pub(crate) env: Map<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) optional: Option<bool>,
    /// The filter for the server's tools.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tools: Option<Value>,
}

/// An attachment of an agent: references as they are written, and an empty text for each literal.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(example = json!({
    "alias": "archive",
    "name": "docs",
    "env": { "api_key": "${DOCS_KEY}", "context_id": "" }
}))]
pub(crate) struct Attachment {
    #[serde(flatten)]
    pub(crate) members: AttachmentMembers,
}

impl Listed for Attachment {
    const PAGE: &str = "AttachmentPage";
    const ABOUT: &str = "The attachments of an agent itself.";
}

/// An attachment that was just written.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct AttachmentWritten {
    #[serde(flatten)]
    pub(crate) members: AttachmentMembers,
    pub(crate) warnings: Vec<As<FieldWarning>>,
}

/// The server to attach: one of `name`, `ref` and `catalog_entry_id`, and at most one of `env`,
/// `config` and `env_json`.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(example = json!({
    "name": "docs",
    "alias": "archive",
    "env": { "context_id": "archive" },
    "optional": true
}))]
pub(crate) struct AttachmentNew {
    pub(crate) name: Option<String>,
    #[serde(rename = "ref")]
    pub(crate) reference: Option<String>,
    pub(crate) catalog_entry_id: Option<String>,
    pub(crate) alias: Option<String>,
    /// Values by key, which may contain placeholders. A secret is `${NAME}` or
    /// `{"$secret": "NAME"}`. Null removes the key.
    pub(crate) env: Option<Map<String, Value>>,
    /// Values by key, which may contain placeholders. A secret is `${NAME}` or
    /// `{"$secret": "NAME"}`. Null removes the key.
    pub(crate) config: Option<Map<String, Value>>,
    /// For each key `{"kind": "value", "value": …}` or `{"kind": "secret", "ref": "NAME"}`.
    pub(crate) env_json: Option<Map<String, Value>>,
    pub(crate) optional: Option<bool>,
    pub(crate) tools: Option<NameRules>,
    #[schemars(extend("maxItems" = 0))]
    pub(crate) tool_scopes_granted: Option<Vec<String>>,
}

/// A server that a human has to sign in to.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Connection {
    pub(crate) catalog_entry_id: String,
    pub(crate) name: String,
    pub(crate) display_name: String,
    pub(crate) connected: bool,
}

impl Listed for Connection {
    const PAGE: &str = "ConnectionPage";
    const ABOUT: &str = "The servers that a human has to sign in to.";
}
