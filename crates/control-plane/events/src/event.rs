//! One event, as a reader sees it.

use std::time::SystemTime;

use narthex_model::{RunId, SessionId, Timestamp, WorkspaceId};
use narthex_store::EventsOf;
use serde_json::{Value, json};

use crate::EventKind;

/// The place of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventPlace {
    /// The workspace that owns the session.
    pub workspace: WorkspaceId,
    /// The session.
    pub session: SessionId,
    /// The run of that session in which it happens; `None` for an action from outside.
    pub run: Option<RunId>,
}

/// An event of a session.
#[derive(Debug, Clone, PartialEq)]
pub struct EventRow {
    /// The place of the event.
    pub place: EventPlace,
    /// Its number in the session, from 1 on, without gaps.
    pub seq: u64,
    /// Its number in the workspace, from 1 on, without gaps.
    pub number: u64,
    /// When it happened; never before the event in front of it.
    pub at: SystemTime,
    /// One of [`EventKind`], or a word that only a newer program knows.
    pub kind: String,
    /// The id by which a second event of its kind is recognised as the same.
    pub message_id: Option<String>,
    /// The payload.
    pub payload: Value,
}

impl EventPlace {
    pub(crate) fn stream(&self) -> EventsOf {
        EventsOf { workspace: self.workspace.clone(), session: self.session }
    }
}

impl EventRow {
    /// The event as documents have it (X-E98).
    #[must_use]
    pub fn envelope(&self) -> Value {
        let mut envelope = json!({
            "session_id": self.place.session.to_text(),
            "timestamp": Timestamp::new(self.at).to_string(),
            "sequence": self.seq,
            "type": self.kind,
            "payload": self.payload,
        });
        if let Some(run) = self.place.run {
            envelope["run_id"] = json!(run.to_text());
        }
        if let Some(message) = &self.message_id {
            envelope["message_id"] = json!(message);
        }
        envelope
    }

    /// The event as models read it. Of a fault that only humans mend they read its kind. They read
    /// no name of a secret, a key or a place, and no word of a program (D28).
    #[must_use]
    pub fn for_models(mut self) -> Self {
        let refused = EventKind::SessionRunRefused.as_str();
        let failed = EventKind::McpError.as_str();
        if self.kind == refused {
            for fault in self.payload["faults"].as_array_mut().into_iter().flatten() {
                *fault = json!({ "code": fault["code"] });
            }
        } else if self.kind == failed
            && let Some(members) = self.payload.as_object_mut()
        {
            members.remove("reason");
        }
        self
    }

    /// `None` if the stored payload is no JSON.
    pub(crate) fn read(row: narthex_store::EventRow) -> Option<Self> {
        let narthex_store::EventRow { of, seq, number, happened_at, kind, .. } = row;
        let payload = row.payload.parse().ok()?;
        Some(Self {
            place: EventPlace { workspace: of.workspace, session: of.session, run: row.run },
            seq,
            number,
            at: happened_at,
            kind,
            message_id: row.message_id,
            payload,
        })
    }
}
