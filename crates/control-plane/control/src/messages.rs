//! Messages of people to agents.

use std::time::SystemTime;

use narthex_audit::{AuditEvent, kind};
use narthex_catalog::fields::Fields;
use narthex_events::{Along, EventKind, EventPlace, EventRow, Events, EventsError};
use narthex_model::{
    ErrorKind, SessionId, Timestamp, WorkspaceId,
    json::{Node, shortened},
};
use narthex_store::NewRest;
use serde_json::{Value, json};

use crate::live::Speaker;
use crate::{By, CatalogError, Control, ControlError, FieldError};

/// The longest message, in bytes.
const TEXT_MAX: usize = 64 * 1024;

/// Reasons why a message is not delivered.
#[derive(Debug, thiserror::Error)]
pub enum MessageError {
    /// The workspace has no such session.
    #[error("there is no session `{0}`")]
    UnknownSession(String),
    /// The session has ended, so no agent can read the message.
    #[error("the session `{0}` has ended; create a new one")]
    Ended(SessionId),
    /// Another message has the same id.
    #[error("the session has another message with the id `{0}`; choose another id")]
    IdTaken(String),
    /// The speaker may not name another user.
    #[error("only a service can name another `user`; leave it out")]
    NotYourself,
    /// The event cannot be stored or read.
    #[error(transparent)]
    Events(EventsError),
}

impl MessageError {
    /// The kind of failure (D24).
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::UnknownSession(_) => ErrorKind::NotFound,
            Self::Ended(_) | Self::IdTaken(_) => ErrorKind::Conflict,
            Self::NotYourself => ErrorKind::Denied,
            Self::Events(error) => error.kind(),
        }
    }
}

impl Control {
    /// Adds a message for the agent of a session, from `{"text": …, "request_id": …, "message_id":
    /// …, "expires_at": …, "user": …}`. The speaker, or the named user, takes the turn of the
    /// session (X-E81). A second message with the same `message_id` is not added: the call returns
    /// the event of the first, and the turn does not change.
    ///
    /// # Errors
    /// When a field is wrong, the speaker may not name another user, the session does not exist or
    /// has ended, or it has another message of this id; when there is no such workspace or no
    /// store, or the store fails.
    pub async fn session_message(
        &self,
        workspace: &WorkspaceId,
        id: &str,
        text: &[u8],
        (by, speaker): (&By, Speaker),
    ) -> Result<EventRow, ControlError> {
        let unknown = || MessageError::UnknownSession(shortened(id));
        self.catalog_store(workspace).await?;
        let session = SessionId::parse(id).ok_or_else(unknown)?;
        let (said, named) = Message::read(text)?;
        let speaker = match named {
            None => speaker,
            Some(who) => {
                let found = self.driver(workspace, &who).map_err(|error| {
                    let remedy = "name a human who is a member of the workspace";
                    let fault = FieldError::invalid("user", error.to_string(), remedy);
                    CatalogError::Refused(vec![fault])
                })?;
                speaker.naming(found).ok_or(MessageError::NotYourself)?
            }
        };
        self.session_tell(workspace, session, said, (by, &speaker)).await
    }

    /// Adds a message that is already parsed.
    ///
    /// # Errors
    /// As [`session_message`](Self::session_message).
    pub async fn session_tell(
        &self,
        workspace: &WorkspaceId,
        session: SessionId,
        said: Message,
        (by, speaker): (&By, &Speaker),
    ) -> Result<EventRow, ControlError> {
        let Message { text, request_id, message_id, expires_at, more, owed } = said;
        let (workspace, by, turn) = (workspace.clone(), by.clone(), speaker.turn().cloned());
        let send = async move |this: Self| {
            let store = this.catalog_store(&workspace).await?;
            let found = store.sessions().find(&workspace, session).await;
            let found = found.map_err(ControlError::Store)?;
            let found = found.ok_or_else(|| MessageError::UnknownSession(session.to_text()))?;
            if found.ended_at.is_some() {
                return Err(MessageError::Ended(session).into());
            }
            let events = this.events().ok_or(CatalogError::NoStore)?;
            // The audit records no text of the message; this holds for all events.
            let event = AuditEvent::new(kind::SESSION_MESSAGE_SENT, by.clone());
            let mut event = event.in_workspace(&workspace).of_session(session.to_text());
            if let Some(turn) = &turn {
                event = event.with("turn", turn.as_str());
            }
            let noted = this.note(event.on("session", session.to_text())).await?;
            let mut payload = json!({ "text": text, "by": { "kind": by.kind, "id": by.id } });
            if let Some(request) = request_id {
                payload["request_id"] = json!(request);
            }
            for (name, value) in more {
                payload[name] = value;
            }
            if let Some(turn) = &turn {
                payload["user"] = json!(turn.user());
            }
            // A repeated message counts as the same even if its expiry differs.
            let same = as_sent(&payload);
            if let Some(end) = expires_at {
                payload["expires_at"] = json!(Timestamp::new(end).to_string());
            }
            let place = EventPlace { workspace, session, run: None };
            let (turn, owed) = (turn.as_ref(), owed.as_ref());
            let along = Along { message_id: message_id.as_deref(), turn, owed };
            let told = this.told(events, &place, &payload, along).await;
            let row = told.map_err(MessageError::Events)?;
            if as_sent(&row.payload) != same {
                return Err(MessageError::IdTaken(message_id.unwrap_or_default()).into());
            }
            noted.done().await;
            Ok(row)
        };
        self.to_the_end(send).await
    }

    /// Adds a message to a session. When this returns, the message's turn counts at this daemon.
    /// The caller must run this to its end: a client that disconnects must not leave a turn in the
    /// store that this daemon does not know.
    async fn told(
        &self,
        events: &Events,
        place: &EventPlace,
        payload: &Value,
        along: Along<'_>,
    ) -> Result<EventRow, EventsError> {
        let told = events.tell(place, EventKind::UserMessage, payload, along).await?;
        if let (Some(number), Some(turn)) = (told.turn, along.turn) {
            self.shared.turns.take(&place.workspace, place.session, number, turn);
        }
        Ok(told.row)
    }

    /// Adds a message about a past event to a session. Call this only in work that runs to its end.
    /// A failure is logged and counted.
    pub async fn session_note(&self, place: &EventPlace, mut payload: Value, speaker: &Speaker) {
        let Some(events) = self.events() else { return };
        if let Some(turn) = speaker.turn() {
            payload["user"] = json!(turn.user());
        }
        let along = Along { turn: speaker.turn(), ..Along::default() };
        let told = self.told(events, place, &payload, along).await;
        if let Err(error) = told {
            events.missed(place, EventKind::UserMessage, &error);
        }
    }

    /// Reads whose turn it is in a session (X-E81). Readers of its messages call this before they
    /// pass the messages on.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn session_heard(
        &self,
        workspace: &WorkspaceId,
        session: SessionId,
    ) -> Result<(), ControlError> {
        let Some(store) = self.store() else { return Ok(()) };
        let heard = self.shared.turns.hear(store, workspace, session).await;
        heard.map_err(ControlError::Store)
    }
}

/// The part of a message by which repeated messages are recognised. For a message of an agent, the
/// user who has the turn and the run of its session make no difference.
fn as_sent(payload: &Value) -> Value {
    let mut sent = payload.clone();
    let is_of_run = payload["by"]["kind"] == "run";
    if let Value::Object(sent) = &mut sent {
        let apart: &[&str] =
            if is_of_run { &["expires_at", "user", "by"] } else { &["expires_at"] };
        apart.iter().for_each(|name| drop(sent.remove(*name)));
    }
    sent
}

/// A message to the agent of a session.
#[derive(Debug, Clone, Default)]
pub struct Message {
    /// The text.
    pub text: String,
    /// The request to which the message is an answer.
    pub request_id: Option<String>,
    /// The id by which a repeated message is recognised.
    pub message_id: Option<String>,
    /// Time from which the message is no longer delivered.
    pub expires_at: Option<SystemTime>,
    /// Further members of the payload.
    pub more: Vec<(&'static str, Value)>,
    /// The data for resuming the session, if it has no active run.
    pub owed: Option<NewRest>,
}

impl Message {
    /// Reads a message, with the user for whom it is sent, if one is named.
    fn read(text: &[u8]) -> Result<(Self, Option<String>), CatalogError> {
        let known = ["text", "request_id", "message_id", "expires_at", "user"];
        let mut fields = Fields::read(text, &known)?;
        let (request_id, message_id) = (fields.text("request_id"), fields.text("message_id"));
        for (name, id) in [("request_id", &request_id), ("message_id", &message_id)] {
            if id.as_ref().is_some_and(String::is_empty) {
                fields.fault(name, "it is empty", "write an id, or leave it out");
            }
            if id.as_ref().is_some_and(|id| id.len() > narthex_events::MESSAGE_ID_MAX) {
                let remedy = format!("write at most {} bytes", narthex_events::MESSAGE_ID_MAX);
                fields.fault(name, "it is too long", &remedy);
            }
        }
        let expires_at = fields.text("expires_at").and_then(|text| {
            let end = Timestamp::parse(&text).filter(|end| *end > SystemTime::now());
            if end.is_none() {
                let remedy = "write a future time, such as 2027-01-31T12:00:00Z";
                fields.fault("expires_at", "it is not a time, or it has passed", remedy);
            }
            end
        });
        let text = match fields.take("text") {
            Some(Node::Text(text)) if !text.trim().is_empty() && text.len() <= TEXT_MAX => text,
            found => {
                let message = match found {
                    None => "it is missing".to_owned(),
                    Some(Node::Text(text)) if text.len() > TEXT_MAX => {
                        format!("it has {} bytes", text.len())
                    }
                    Some(Node::Text(_)) => "it is empty".to_owned(),
                    Some(other) => format!("it is {}, not text", other.found()),
                };
                fields.fault("text", message, &format!("write 1 to {TEXT_MAX} bytes of text"));
                String::new()
            }
        };
        let user = fields.text("user");
        fields.done()?;
        let said = Self { text, request_id, message_id, expires_at, ..Self::default() };
        Ok((said, user))
    }
}
