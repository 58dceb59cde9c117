//! Adds events to the streams of sessions.

use std::{sync::atomic::Ordering, time::SystemTime};

use narthex_model::RunId;
use narthex_store::{EventStream, EventsOf, NewEvent, StatementError};
use serde_json::Value;

use crate::{
    Along, Appended, EventKind, EventPlace, EventRow, Events, EventsError, MESSAGE_ID_MAX,
    PAYLOAD_MAX, read,
};

impl Events {
    /// Adds an event at the end of a session's stream; the event is stored when this returns. If a
    /// message of this kind and id is stored already, that event is returned, whatever `payload`
    /// is.
    ///
    /// # Errors
    /// When the payload is too long, the message id is not valid, the session does not exist, or
    /// the store fails: then no event was added.
    pub async fn append(
        &self,
        place: &EventPlace,
        kind: EventKind,
        payload: &Value,
        message_id: Option<&str>,
    ) -> Result<EventRow, EventsError> {
        let along = Along { message_id, ..Along::default() };
        Ok(self.tell(place, kind, payload, along).await?.row)
    }

    /// Adds an event as [`append`](Self::append) does, with accompanying data; the result says
    /// whether the event is new. A message that is stored already changes nothing.
    ///
    /// # Errors
    /// The errors of [`append`](Self::append).
    pub async fn tell(
        &self,
        place: &EventPlace,
        kind: EventKind,
        payload: &Value,
        along: Along<'_>,
    ) -> Result<Appended, EventsError> {
        let (told, stream) = self.add(place, kind, payload, along).await?;
        if let Some(stream) = stream {
            self.keep_within_bounds(&place.stream(), stream).await;
        }
        Ok(told)
    }

    /// Adds an event without shortening its stream; returns the stream's state if the event is new.
    pub(crate) async fn add(
        &self,
        place: &EventPlace,
        kind: EventKind,
        payload: &Value,
        Along { message_id, turn, owed }: Along<'_>,
    ) -> Result<(Appended, Option<EventStream>), EventsError> {
        let happened_at = SystemTime::now();
        let unread = self.new_unread(kind, payload, happened_at);
        let payload = payload.to_string();
        if payload.len() > PAYLOAD_MAX {
            return Err(EventsError::TooLong(payload.len()));
        }
        if message_id.is_some_and(|id| !is_message_id(id)) {
            return Err(EventsError::MessageId);
        }
        let of = place.stream();
        let word = kind.as_str();
        let new = plain((&of, place.run), kind, &payload, happened_at);
        let new = NewEvent { message_id, turn, unread, owed, ..new };
        loop {
            let appended = self.shared.store.events().append(&[new]).await;
            if let Some(appended) = appended.map_err(|error| of_store(error, &of))? {
                self.shared.wakers.wake(&of);
                self.added(&of, kind).await;
                let turn = turn.map(|_| appended.turn);
                let told = Appended { row: read(appended.row)?, is_new: true, turn };
                return Ok((told, Some(appended.stream)));
            }
            let message = message_id.unwrap_or_default();
            let found = self.shared.store.events().message(&of, word, message).await;
            // If the message was removed meanwhile, it is added as a new one.
            if let Some(row) = found.map_err(EventsError::Store)? {
                return Ok((Appended { row: read(row)?, is_new: false, turn: None }, None));
            }
        }
    }

    /// Adds an event about a past action, and returns true if it is new. A failure is logged and
    /// counted; the action stays.
    pub async fn note(
        &self,
        place: &EventPlace,
        kind: EventKind,
        payload: &Value,
        message_id: Option<&str>,
    ) -> bool {
        let along = Along { message_id, ..Along::default() };
        match self.tell(place, kind, payload, along).await {
            Ok(told) => told.is_new,
            Err(error) => {
                self.missed(place, kind, &error);
                false
            }
        }
    }

    /// Adds several consecutive events at the cost of one. No error is logged if the session was
    /// deleted with its workspace.
    pub async fn note_all(&self, place: &EventPlace, told: &[(EventKind, Value)]) {
        let (of, happened_at) = (place.stream(), SystemTime::now());
        let texts: Vec<_> =
            told.iter().map(|(kind, payload)| (*kind, payload.to_string())).collect();
        let (fitting, longer): (Vec<_>, Vec<_>) =
            texts.iter().partition(|(_, payload)| payload.len() <= PAYLOAD_MAX);
        for (kind, payload) in longer {
            self.missed(place, *kind, &EventsError::TooLong(payload.len()));
        }
        let new = fitting
            .iter()
            .map(|(kind, payload)| plain((&of, place.run), *kind, payload, happened_at));
        let new: Vec<_> = new.collect();
        match self.shared.store.events().append(&new).await {
            Ok(appended) => {
                self.shared.wakers.wake(&of);
                for (kind, _) in &fitting {
                    self.added(&of, *kind).await;
                }
                if let Some(appended) = appended {
                    self.keep_within_bounds(&of, appended.stream).await;
                }
            }
            Err(error) => match of_store(error, &of) {
                EventsError::NoSession(_) => {}
                error => fitting.iter().for_each(|(kind, _)| self.missed(place, *kind, &error)),
            },
        }
    }

    /// Logs and counts an event about a past action that could not be added.
    pub fn missed(&self, place: &EventPlace, kind: EventKind, error: &EventsError) {
        self.shared.unwritten.fetch_add(1, Ordering::Relaxed);
        let (session, kind) = (place.session, kind.as_str());
        tracing::error!(
            session.id = %session, event = kind,
            "an event could not be stored: {error}"
        );
    }
}

/// An event that nothing comes along with.
fn plain<'e>(
    (of, run): (&'e EventsOf, Option<RunId>),
    kind: EventKind,
    payload: &'e str,
    happened_at: SystemTime,
) -> NewEvent<'e> {
    NewEvent {
        of,
        run,
        kind: kind.as_str(),
        message_id: None,
        payload,
        happened_at,
        turn: None,
        unread: None,
        owed: None,
        is_own: kind.is_own(),
    }
}

fn is_message_id(id: &str) -> bool {
    (1..=MESSAGE_ID_MAX).contains(&id.len()) && !id.chars().any(char::is_control)
}

pub(crate) fn of_store(error: StatementError, of: &EventsOf) -> EventsError {
    match error {
        StatementError::OwnerMissing { .. } => EventsError::NoSession(of.session),
        error => EventsError::Store(error),
    }
}
