//! Shapes of the events of sessions, and of messages for their agents.

use narthex_events::EventKind;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use super::{
    ids::{RunId, SessionId, Time},
    schema::one_of,
};

/// The most events of a page.
pub(crate) const EVENTS_MAX: u64 = narthex_events::WINDOW;

/// Type of an event.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(extend("enum" = EventKind::ALL.iter().map(|kind| kind.as_str()).collect::<Vec<_>>()))]
pub(crate) struct SessionEventType(pub(crate) String);

/// An event of a session.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(example = json!({
    "session_id": "ses_0a1b2c3d4e5f",
    "timestamp": "2026-11-23T10:00:00.000Z",
    "sequence": 3,
    "type": "user.message",
    "payload": {
        "text": "Take the second one.",
        "by": { "kind": "human", "id": "prn_00000000000000aa" },
        "request_id": "q1",
        "user": "prn_00000000000000aa"
    },
    "message_id": "m1"
}))]
pub(crate) struct SessionEvent {
    pub(crate) session_id: SessionId,
    pub(crate) timestamp: Time,
    /// Number of the event in the session, without gaps.
    #[schemars(extend("minimum" = 1))]
    pub(crate) sequence: u64,
    #[serde(rename = "type")]
    pub(crate) event_type: SessionEventType,
    /// The content. The type decides its form.
    pub(crate) payload: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) run_id: Option<RunId>,
    /// The id by which a second event of the type is recognised as the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("minLength" = 1, "maxLength" = 200))]
    pub(crate) message_id: Option<String>,
}

/// Events of a session in their order.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SessionEventPage {
    #[schemars(extend("maxItems" = EVENTS_MAX))]
    pub(crate) items: Vec<SessionEvent>,
    /// Number of the oldest stored event; one more than `last` if none is stored.
    #[schemars(extend("minimum" = 1))]
    pub(crate) oldest: u64,
    /// Number of the last event. 0 if there was none.
    pub(crate) last: u64,
    /// The `after` of the next page. Null if there is no further event yet.
    pub(crate) next: Option<String>,
}

/// The session has ended. No further event follows, so do not connect again.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct SessionStreamEnd {
    #[serde(rename = "type")]
    #[schemars(extend("const" = Self::TYPE))]
    pub(crate) frame: &'static str,
    pub(crate) session_id: SessionId,
}

impl SessionStreamEnd {
    const TYPE: &str = "stream.end";

    pub(crate) fn new(session_id: SessionId) -> Self {
        Self { frame: Self::TYPE, session_id }
    }
}

/// An event, whose id is its sequence, or the end of the stream, which has no id.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
#[schemars(transform = one_of)]
pub(crate) enum SessionStreamed {
    Event(SessionEvent),
    End(SessionStreamEnd),
}

/// The first frame of the stream.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct WorkspaceStreamBegin {
    #[serde(rename = "type")]
    #[schemars(extend("const" = Self::TYPE))]
    pub(crate) frame: &'static str,
}

impl WorkspaceStreamBegin {
    const TYPE: &str = "stream.begin";

    pub(crate) fn new() -> Self {
        Self { frame: Self::TYPE }
    }
}

/// The first frame of the stream, or an event. The id of the first frame is the number before the
/// first event. The id of an event is its number in the workspace.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
#[schemars(transform = one_of)]
pub(crate) enum WorkspaceStreamed {
    Event(SessionEvent),
    Begin(WorkspaceStreamBegin),
}

/// The messages that a run has read.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(example = json!({ "sequence": 2 }))]
pub(crate) struct MessageAcknowledgement {
    /// Number of an event of the session. All messages up to it are acknowledged.
    #[schemars(extend("minimum" = 1))]
    pub(crate) sequence: u64,
}

/// The acknowledged messages of a session.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct MessagesAcknowledged {
    /// Number of the event up to which all messages are acknowledged.
    pub(crate) acknowledged: u64,
    /// Number of the remaining messages that have not expired.
    pub(crate) unread: u64,
}

/// The message for an agent.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(example = json!({
    "text": "Take the second one.",
    "request_id": "q1",
    "message_id": "m1",
    "expires_at": "2100-01-31T12:00:00Z"
}))]
pub(crate) struct SessionMessage {
    /// Text of the message, at most 64 KiB.
    #[schemars(extend("minLength" = 1, "maxLength" = 65536))]
    pub(crate) text: String,
    /// Id of the agent's question that the message answers.
    #[schemars(default, with = "String")]
    #[schemars(extend("minLength" = 1, "maxLength" = 200))]
    pub(crate) request_id: Option<String>,
    /// The id by which a repeated message is recognised.
    #[schemars(default, with = "String")]
    #[schemars(extend("minLength" = 1, "maxLength" = 200))]
    pub(crate) message_id: Option<String>,
    /// The future time from which an unacknowledged message is no longer delivered. Without it, the
    /// message does not expire.
    #[schemars(default, with = "String")]
    #[schemars(extend("format" = "date-time"))]
    pub(crate) expires_at: Option<String>,
    /// The human for whom a service sends the message, by name or id: a member of the workspace,
    /// whose turn begins. A human sends only for themselves.
    #[schemars(default, with = "String")]
    #[schemars(extend("minLength" = 1, "maxLength" = 200))]
    pub(crate) user: Option<String>,
}
