//! Shapes of configuration files, of their entries, and of the verbs of servers.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{
    ids::{Provenance, StageName, Time, Transport},
    page::Listed,
    servers::{CallError, ServerRow},
};

/// A configuration file that is watched.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct File {
    pub(crate) file: String,
    pub(crate) provenance: Provenance,
    /// True if a content of the file is in use.
    pub(crate) is_present: bool,
    /// Fault of the present content.
    pub(crate) error: Option<String>,
    /// Time when the content in use was read. Null while none is in use.
    pub(crate) applied_at: Option<Time>,
    /// Time when the present content was first found, while it is not in use.
    pub(crate) refused_since: Option<Time>,
    /// Time when the file was first missing, if it was there before. Null while it is there.
    pub(crate) gone_since: Option<Time>,
    pub(crate) last_read: Option<Time>,
}

impl Listed for File {
    const PAGE: &str = "FilePage";
    const ABOUT: &str = "Configuration files that are watched, by layer and path.";
}

/// The result of reading the configuration files again.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Reloaded {
    pub(crate) server_count: usize,
    pub(crate) servers: Vec<String>,
    pub(crate) files: Vec<File>,
}

/// An entry as in an `mcp.json`: `transport` with `url`, or with `command` and `args`, and its
/// settings. See configuration.md.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(extend("additionalProperties" = true))]
#[schemars(example = json!({
    "transport": "http",
    "url": "https://docs.example/mcp",
    "disabled": true
}))]
pub(crate) struct FileEntry {
    #[schemars(default, with = "Transport")]
    pub(crate) transport: Option<Transport>,
    #[schemars(default, with = "String")]
    pub(crate) url: Option<String>,
    #[schemars(default, with = "String")]
    pub(crate) command: Option<String>,
    #[schemars(default, with = "Vec<String>")]
    pub(crate) args: Option<Vec<String>>,
    #[schemars(default, with = "BTreeMap<String, String>")]
    pub(crate) env: Option<BTreeMap<String, String>>,
    #[schemars(default, with = "BTreeMap<String, String>")]
    pub(crate) headers: Option<BTreeMap<String, String>>,
    #[schemars(default, with = "bool")]
    pub(crate) disabled: Option<bool>,
}

/// A JSON Merge Patch (RFC 7396) of an entry: a member replaces that of the entry, and null removes
/// it.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(example = json!({ "timeoutMs": 30000 }))]
pub(crate) struct FileEntryChange(Map<String, Value>);

/// An entry that was stored in the user's settings.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct FileEntrySaved {
    pub(crate) name: String,
    /// True if the settings had no entry of this name.
    pub(crate) created: bool,
    pub(crate) warnings: Vec<String>,
    /// The present row.
    pub(crate) server: Option<ServerRow>,
}

/// The outcome of an action on a server.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(tag = "status", rename_all = "snake_case", rename_all_fields = "camelCase")]
#[schemars(example = json!({ "status": "ready", "id": "docs", "toolCount": 3 }))]
pub(crate) enum ServerResult {
    /// The server can be called.
    Ready { id: String, tool_count: usize },
    /// A human must sign in first.
    Authenticating { id: String, auth_url: String },
    /// The server cannot be called.
    Error { id: String, error: CallError },
}

/// The outcome of an action on a server, and the server's present row.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct VerbDone {
    pub(crate) result: Option<ServerResult>,
    pub(crate) server: Option<ServerRow>,
}

/// A stage of a test.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub(crate) enum Stage {
    /// The stage succeeded.
    Ok {
        name: StageName,
        /// Number of entries of the list. Null for the connection.
        count: Option<usize>,
        duration_ms: u64,
    },
    /// The stage failed.
    Failed { name: StageName, reason: String, duration_ms: u64 },
    /// The server does not have this list.
    NotSupported { name: StageName, duration_ms: u64 },
    /// The server did not answer in time.
    Timeout { name: StageName, after_ms: u64, duration_ms: u64 },
}

/// The test of a server.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(example = json!({
    "name": "docs",
    "ok": true,
    "needs_sign_in": false,
    "stages": [{ "name": "connect", "outcome": "ok", "count": null, "duration_ms": 12 }],
    "server_name": "docs",
    "server_version": "1",
    "revision": "2025-11-25"
}))]
pub(crate) struct Probe {
    pub(crate) name: String,
    /// True if each list that the server has could be read.
    pub(crate) ok: bool,
    /// True if the connection failed since a human must sign in first.
    pub(crate) needs_sign_in: bool,
    pub(crate) stages: Vec<Stage>,
    /// The name that the server gives itself.
    pub(crate) server_name: Option<String>,
    pub(crate) server_version: Option<String>,
    pub(crate) revision: Option<String>,
}

/// An event of the stream of a test.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ProbeEvent {
    Stage(Stage),
    Result(Probe),
}

/// The last lines that a server wrote to standard error.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(example = json!({ "name": "docs", "lines": ["listening"] }))]
pub(crate) struct Logs {
    pub(crate) name: String,
    pub(crate) lines: Vec<String>,
    /// True if the lines are from a failed start for a run. Otherwise absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) is_failed_start: Option<bool>,
}

/// An event of the stream of a server's log.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum LogEvent {
    Line(String),
    /// Number of lines that the stream left out.
    Missed(u64),
}
