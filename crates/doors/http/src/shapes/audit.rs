//! Shapes of the audit.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::{
    ids::{ActorKind, Digest, WorkspaceId},
    page::{Listed, Page},
};

/// The principal of an event.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(example = json!({ "id": "admin", "kind": "local_admin" }))]
pub(crate) struct AuditActor {
    pub(crate) id: String,
    pub(crate) kind: ActorKind,
}

/// The object of an event.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(example = json!({ "id": "DOCS_KEY", "kind": "secret" }))]
pub(crate) struct AuditResource {
    pub(crate) id: String,
    pub(crate) kind: String,
}

/// An event of the audit. See audit.md.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct AuditEvent {
    pub(crate) id: String,
    /// Value of `after` that lists the events after this one.
    pub(crate) place: String,
    /// The event as it was written: its hash is of this text.
    #[serde(flatten)]
    #[schemars(with = "AuditWritten")]
    pub(crate) written: Value,
}

impl Listed for AuditEvent {
    const PAGE: &str = "AuditEventPage";
    const ABOUT: &str = "Events of the audit.";
}

/// The members of an event as the audit writes them.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct AuditWritten {
    time: String,
    kind: String,
    actor: AuditActor,
    outcome: String,
    writer: String,
    seq: u64,
    prev: Digest,
    hash: Digest,
    /// Version of the format.
    v: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    workspace: Option<WorkspaceId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    resource: Option<AuditResource>,
    #[serde(skip_serializing_if = "Option::is_none")]
    run: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    server: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("minimum" = 0))]
    duration_ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    granted_via: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fields: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<Map<String, Value>>,
}

/// Events of the audit.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct AuditPage {
    #[serde(flatten)]
    pub(crate) page: Page<AuditEvent>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) waiting: Option<AuditWaiting>,
}

/// Recorded events that are not in the store yet. No list has them.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct AuditWaiting {
    /// The workspace of the events. Empty for the installation.
    pub(crate) workspace: String,
    pub(crate) events: u64,
    /// True if there may be more events than `events`.
    pub(crate) is_more: bool,
    /// Time of the oldest event.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "date-time"))]
    pub(crate) since: Option<String>,
    /// True if the events cannot be moved into the store.
    pub(crate) is_stuck: bool,
}

/// The limits of stored events. 0 means no limit.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(example = json!({ "kept_days": 365, "kept_events": 0 }))]
pub(crate) struct AuditSettings {
    pub(crate) kept_days: u64,
    pub(crate) kept_events: u64,
}
