//! Attachments of an agent, one by one, and its sign-ins at servers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::server::NameRules;
use crate::shapes::{page::Listed, part::As, problem::FieldWarning, servers::ServerSignIn};

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

/// The connection of a human to a server of the catalog. It shows no token.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct McpToken {
    pub(crate) workspace: String,
    /// Id of the server.
    pub(crate) server: String,
    /// Name of the server for people; null if the server is gone, or hidden from the caller.
    pub(crate) display_name: Option<String>,
    /// True if the human's runs have a token, or get one without the human.
    pub(crate) connected: bool,
    /// True if the token can be renewed without the human.
    pub(crate) has_refresh_token: bool,
    /// The facts of the sign-in; null without tokens.
    pub(crate) sign_in: Option<ServerSignIn>,
    /// Address of the page on which the human connects; null if no human signs in to narthex.
    pub(crate) page: Option<String>,
}

impl Listed for McpToken {
    const PAGE: &str = "McpTokenPage";
    const ABOUT: &str = "The connections of a human to servers of the catalog.";
}

/// Change of a connection, as the page of the connection sends it.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ConnectionForm {
    /// CSRF token of the page.
    pub(crate) csrf: String,
    pub(crate) verb: ConnectionVerb,
}

/// Change of a connection.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ConnectionVerb {
    Connect,
    Disconnect,
}
