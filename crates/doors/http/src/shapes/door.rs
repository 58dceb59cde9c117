//! Shapes of MCP over HTTP, of this document, and of the sign-in of browsers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json, value::RawValue};

/// An OpenAPI document.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(extend("additionalProperties" = true))]
pub(crate) struct OpenApi {
    #[schemars(extend("const" = "3.1.0"))]
    pub(crate) openapi: String,
    pub(crate) info: Map<String, Value>,
    pub(crate) paths: Map<String, Value>,
    pub(crate) components: Map<String, Value>,
}

/// An error of JSON-RPC 2.0.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(extend("additionalProperties" = true))]
pub(crate) struct McpError {
    #[schemars(extend("const" = "2.0"))]
    pub(crate) jsonrpc: String,
    pub(crate) error: Map<String, Value>,
}

/// A message of JSON-RPC 2.0, as MCP defines it. Legacy clients may send several in a list.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(extend("additionalProperties" = true))]
#[schemars(example = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" }))]
pub(crate) struct McpMessage {
    #[schemars(extend("const" = "2.0"))]
    pub(crate) jsonrpc: String,
    #[schemars(default, with = "String")]
    pub(crate) method: Option<String>,
}

/// The arguments of a tool, as its schema defines them.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(example = json!({ "message": "hello" }))]
pub(crate) struct ToolArguments(Map<String, Value>);

/// The result of a tool, as MCP defines it. For a call that failed, `isError` is true.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("additionalProperties" = true))]
pub(crate) struct ToolResult {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) content: Option<Vec<Map<String, Value>>>,
    /// The result for programs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) structured_content: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) is_error: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) result_type: Option<String>,
}

/// The start of a ceremony with a passkey.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Ceremony {
    pub(crate) ceremony: String,
    /// The options for the browser's `navigator.credentials`.
    #[schemars(with = "Map<String, Value>")]
    pub(crate) options: Value,
}

/// The answer of the browser.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CeremonyAnswer {
    pub(crate) ceremony: String,
    #[schemars(with = "Map<String, Value>")]
    pub(crate) credential: Box<RawValue>,
    #[schemars(default, with = "String", extend("maxLength" = 200))]
    pub(crate) label: Option<String>,
}

/// The next page.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SignedIn {
    pub(crate) location: String,
}

/// A passkey that was added.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct PasskeyAdded {
    pub(crate) location: &'static str,
    pub(crate) id: String,
    pub(crate) label: String,
}

raw! {
    /// Decision of a human.
    Decision = { "type": "string", "enum": ["approve", "deny"] };
}

/// The decision of a human on the request of a run.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct DecisionForm {
    pub(crate) csrf: String,
    pub(crate) decision: Decision,
    #[schemars(default, with = "String")]
    #[schemars(extend("enum" = narthex_model::GrantDuration::WORDS))]
    pub(crate) scope: Option<String>,
    #[schemars(default, with = "String", extend("maxLength" = 500))]
    pub(crate) reason: Option<String>,
}

/// The human whom a link signs in.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct LinkForm {
    pub(crate) csrf: String,
    pub(crate) name: String,
}

/// The form of a page.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct CsrfForm {
    #[schemars(default, with = "String")]
    pub(crate) csrf: Option<String>,
}
