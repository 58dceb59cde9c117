//! Shapes of refusals, and of notices that refuse nothing.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{ids::ErrorKind, part::As, schema::one_of};

/// The fault of one field. Never contains the value of a secret.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(example = json!({
    "field": "limit",
    "code": "value_invalid",
    "message": "it is not a possible length of a page",
    "remedy": "write one from 1 to 100"
}))]
pub(crate) struct FieldError {
    /// Place of the fault in the body, such as `default_config.api_key`. A place in another object
    /// begins with the name of that object. `body` means the whole body.
    pub(crate) field: String,
    /// Kind of the fault, for programs.
    #[schemars(extend("pattern" = "^[a-z_]+$"))]
    pub(crate) code: String,
    /// The fault.
    pub(crate) message: String,
    /// The way to mend the fault.
    pub(crate) remedy: String,
}

/// A fault in the configuration of a run.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(example = json!({
    "path": "agents.reader.mcpServers.library.config.token",
    "code": "missing_required_mcp_config",
    "message": "it has no value",
    "remedy": "set it",
    "server_name": "library",
    "field": "token"
}))]
pub(crate) struct ConfigFault {
    /// Place of the fault, which begins with the faulty object.
    pub(crate) path: String,
    #[schemars(extend("pattern" = "^[a-z_]+$"))]
    pub(crate) code: String,
    pub(crate) message: String,
    pub(crate) remedy: String,
    /// Alias of the faulty server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) server_name: Option<String>,
    /// The faulty key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) field: Option<String>,
    /// The server of the faulty reference.
    #[serde(rename = "ref", skip_serializing_if = "Option::is_none")]
    pub(crate) reference: Option<String>,
    /// The secret that is not set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) secret: Option<String>,
}

/// The fault of a server of a run.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(example = json!({
    "server": "docs",
    "kind": "transport_error",
    "message": "it did not start"
}))]
pub(crate) struct ServerFault {
    pub(crate) server: String,
    #[schemars(extend("pattern" = "^[a-z_]+$"))]
    pub(crate) kind: String,
    pub(crate) message: String,
    /// Details for programs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) details: Option<Value>,
}

/// A notice for a person about a request that succeeds.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(example = json!({ "field": "servers.docs", "message": "nothing uses it" }))]
pub(crate) struct FieldWarning {
    pub(crate) field: String,
    pub(crate) message: String,
}

/// A fault of a request.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline, transform = one_of)]
pub(crate) enum Fault {
    Field(As<FieldError>),
    Config(As<ConfigFault>),
    Server(As<ServerFault>),
}

/// A failure among the files of a run.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
pub(crate) struct FileFailure {
    pub(crate) code: String,
    /// `DRIVER` for every failure of a server, otherwise the same as `code`.
    pub(crate) family: String,
    pub(crate) kind: String,
    pub(crate) message: String,
    /// Details for programs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) details: Option<Value>,
}

/// The members of a problem beside those of RFC 9457 and its kind. A member without a value is
/// absent.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub(crate) struct ProblemMembers {
    /// All faults. With 400, 403 and 422 there is at least one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("minItems" = 1))]
    pub(crate) errors: Option<Vec<Fault>>,
    /// Place of the object that an earlier request with the same idempotency key created.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) location: Option<String>,
    /// The first fault of a refused run, for clients that read only one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<String>,
    /// Code of the first fault, for programs. For files, a code such as `NOT_FOUND`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("pattern" = "^[A-Za-z_]+$"))]
    pub(crate) code: Option<String>,
    /// Details for programs, for a run that its parent run may not start: the missing `scopes` and
    /// the way to `ask` for them, or the `rule` that forbids it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) details: Option<As<Map<String, Value>>>,
    /// The failed operation on a file, such as `Open`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) operation: Option<String>,
    /// The failure of the operation on a file, as in the run's `ctl/error`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) failure: Option<FileFailure>,
    /// The faulty server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) server_name: Option<String>,
    /// The server of the faulty reference.
    #[serde(rename = "ref", skip_serializing_if = "Option::is_none")]
    pub(crate) reference: Option<String>,
    /// The field that the caller may not set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) field: Option<String>,
    /// The required values that are missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) missing_fields: Option<Vec<String>>,
}

/// The members that every problem has.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ProblemHead {
    #[serde(rename = "type")]
    #[schemars(extend("const" = "about:blank"))]
    pub(crate) about: &'static str,
    /// Standard text of the HTTP status.
    pub(crate) title: &'static str,
    #[schemars(extend("minimum" = 400, "maximum" = 599))]
    pub(crate) status: u16,
    /// The fault and the remedy.
    pub(crate) detail: String,
    pub(crate) kind: ErrorKind,
}

/// The refusal of a request (RFC 9457).
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(example = json!({
    "type": "about:blank",
    "title": "Not Found",
    "status": 404,
    "detail": "there is no server `docs`",
    "kind": "not_found"
}))]
pub(crate) struct Problem {
    #[serde(flatten)]
    pub(crate) head: ProblemHead,
    #[serde(flatten)]
    pub(crate) members: As<ProblemMembers>,
}

/// An error of JSON-RPC.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ProtocolMembers {
    /// Code of the JSON-RPC error that answers the call. Absent if the request was refused before
    /// the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) code: Option<i64>,
    /// Data of the JSON-RPC error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) data: Option<Value>,
}

/// The refusal of a tool call (RFC 9457): the request was refused, or a JSON-RPC error answers the
/// call. A call that fails in the tool has a result with `isError` instead.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(example = json!({
    "type": "about:blank",
    "title": "Bad Request",
    "status": 400,
    "detail": "there is no such file",
    "kind": "invalid",
    "errors": [{
        "field": "body",
        "code": "invalid",
        "message": "there is no such file",
        "remedy": "see `/api/openapi.json` for what this request takes"
    }],
    "code": -32602
}))]
pub(crate) struct ToolCallProblem<'p> {
    #[serde(flatten)]
    pub(crate) head: ProblemHead,
    /// All faults. With 400, 403 and 422 there is at least one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("minItems" = 1))]
    pub(crate) errors: Option<Vec<Fault>>,
    #[serde(flatten)]
    pub(crate) protocol: &'p ProtocolMembers,
}
