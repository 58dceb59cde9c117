//! Shapes of MCP over HTTP, of this document, and of the sign-in of browsers.

use std::time::Duration;

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

/// The client id metadata document of narthex, for authorization servers.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(extend("additionalProperties" = true))]
pub(crate) struct ClientMetadata {
    /// The address of the document.
    pub(crate) client_id: String,
    pub(crate) client_name: String,
    pub(crate) redirect_uris: Vec<String>,
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

/// The start of a ceremony with a passkey, as browsers take it.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Ceremony {
    pub(crate) ceremony: String,
    /// The options for the browser's `navigator.credentials`.
    #[schemars(with = "Map<String, Value>")]
    pub(crate) options: Value,
}

/// The browser's answer to a ceremony.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CeremonyAnswer {
    pub(crate) ceremony: String,
    #[schemars(with = "Map<String, Value>")]
    pub(crate) credential: Box<RawValue>,
    #[schemars(default, with = "String", extend("maxLength" = 200))]
    pub(crate) label: Option<String>,
}

/// Path of the page that the browser opens next.
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

/// Decision of a human.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub(crate) enum Decision {
    Approve,
    Deny,
}

/// Maximum life of a grant, which a human chooses on the page of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[schemars(inline)]
pub(crate) enum GrantLife {
    #[serde(rename = "1h")]
    OneHour,
    #[serde(rename = "8h")]
    EightHours,
    #[serde(rename = "1d")]
    OneDay,
    #[serde(rename = "7d")]
    SevenDays,
    #[serde(rename = "30d")]
    ThirtyDays,
}

impl GrantLife {
    /// All lives, the shortest first.
    pub(crate) const ALL: [Self; 5] =
        [Self::OneHour, Self::EightHours, Self::OneDay, Self::SevenDays, Self::ThirtyDays];

    /// The word in forms.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::OneHour => "1h",
            Self::EightHours => "8h",
            Self::OneDay => "1d",
            Self::SevenDays => "7d",
            Self::ThirtyDays => "30d",
        }
    }

    /// The life in words.
    pub(crate) const fn label(self) -> &'static str {
        match self {
            Self::OneHour => "one hour",
            Self::EightHours => "eight hours",
            Self::OneDay => "one day",
            Self::SevenDays => "seven days",
            Self::ThirtyDays => "thirty days",
        }
    }

    /// The length of the life.
    pub(crate) const fn length(self) -> Duration {
        const HOUR: u64 = 60 * 60;
        Duration::from_secs(match self {
            Self::OneHour => HOUR,
            Self::EightHours => 8 * HOUR,
            Self::OneDay => 24 * HOUR,
            Self::SevenDays => 7 * 24 * HOUR,
            Self::ThirtyDays => 30 * 24 * HOUR,
        })
    }
}

/// Decision of a human on the request of a run, as the page of the request sends it.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct DecisionForm {
    /// CSRF token of the page.
    pub(crate) csrf: String,
    /// Token of the page for one decision. A page that shows a pending request has a new one each
    /// time.
    pub(crate) consent: String,
    pub(crate) decision: Decision,
    /// Duration of the grant. The default is the duration that the run asks for.
    #[schemars(default, with = "String")]
    #[schemars(extend("enum" = narthex_model::GrantDuration::WORDS))]
    pub(crate) scope: Option<String>,
    /// Time after the decision at which the grant ends in any case. Without it, only `scope` ends
    /// the grant.
    #[schemars(default, with = "GrantLife")]
    pub(crate) within: Option<GrantLife>,
    /// Reason of the decision, which the agent reads.
    #[schemars(default, with = "String", extend("maxLength" = 500))]
    pub(crate) reason: Option<String>,
}

/// The human for whom a sign-in link is created.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct LinkForm {
    /// CSRF token of the page.
    pub(crate) csrf: String,
    /// Name of the human.
    pub(crate) name: String,
}

/// A form that has only the CSRF token of its page.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CsrfForm {
    pub(crate) csrf: String,
}

/// A form without fields: the path is the proof.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct EmptyForm {}
