//! One event, in the form for readers.

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
    /// The session's run of the event; `None` for an action from outside.
    pub run: Option<RunId>,
}

/// An event of a session.
#[derive(Debug, Clone, PartialEq)]
pub struct EventRow {
    /// The place of the event.
    pub place: EventPlace,
    /// Number of the event in the session, from 1, without gaps.
    pub seq: u64,
    /// Number of the event in the workspace, from 1, without gaps.
    pub number: u64,
    /// Time of the event; never before the previous event.
    pub at: SystemTime,
    /// Name of an [`EventKind`], or a word that only a newer program knows.
    pub kind: String,
    /// The id by which a repeated event of its kind is recognised.
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
    /// The event in the form for documents (X-E98).
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

    /// The event in the form for models. Of a fault that only humans can correct, a model gets the
    /// kind. It gets no name of a secret, a key or a place, and no text of a program (D28).
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
