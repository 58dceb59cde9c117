//! Unacknowledged messages: read, acknowledged, and hidden once they have expired (X-E93).

use std::time::{Duration, SystemTime};

use narthex_model::{SessionId, Timestamp, WorkspaceId};
use narthex_store::{EventsOf, GivenAt, InboxCount, NewUnread};
use serde_json::{Value, json};

use crate::{EventKind, EventRow, Events, EventsError, Wanted, adding::of_store, read};

/// Time in which a reader is to acknowledge messages: until then no reminders of them are sent.
const GIVEN: Duration = Duration::from_secs(30);
/// The members of a message's payload that are its text.
const SAID: [&str; 3] = ["text", "body", "comment"];

/// The oldest unacknowledged messages of a session.
#[derive(Debug, Clone, PartialEq)]
pub struct Unread {
    /// Some of the messages, in their order; none has expired.
    pub messages: Vec<EventRow>,
    /// The number up to which all messages are acknowledged; 0 if none is.
    pub acknowledged: u64,
    /// Number of all unacknowledged messages, with these.
    pub count: u64,
    /// Number of the session's last event before this reading; 0 if there was none.
    pub last: u64,
}

impl Events {
    /// Returns at most `limit` of the oldest unacknowledged messages of a session, for the client
    /// that carries the session out. Their payloads have at most `bytes` in total, not counting the
    /// first. From now on reminders of messages are sent until they are acknowledged; reminders of
    /// these come after 30 seconds at the earliest. A second reading before a reminder does not
    /// delay it further.
    ///
    /// # Errors
    /// When the session does not exist, a message cannot be read, or the store fails.
    pub async fn unread(
        &self,
        workspace: &WorkspaceId,
        session: SessionId,
        (limit, bytes): (u32, usize),
    ) -> Result<Unread, EventsError> {
        let of = EventsOf { workspace: workspace.clone(), session };
        let last = self.last_of(&of).await?;
        let (inboxes, now) = (self.shared.store.inboxes(), SystemTime::now());
        let mut rows = inboxes.unread(&of, now, limit).await.map_err(EventsError::Store)?;
        rows.truncate(fitting(&rows, bytes));
        let given = rows.last().map(|row| row.seq);
        let at = GivenAt { now, given_again: now + GIVEN, again: now + self.shared.waits.first() };
        inboxes.give(&of, given, at).await.map_err(|error| of_store(error, &of))?;
        self.shared.earlier.notify_one();
        let messages = rows.into_iter().map(read).collect::<Result<Vec<_>, _>>()?;
        let InboxCount { unread: count, acknowledged } =
            inboxes.count(&of, now).await.map_err(EventsError::Store)?;
        Ok(Unread { messages, acknowledged, count, last })
    }

    /// Acknowledges all messages of a session up to an event, for the client that carries the
    /// session out. Returns the number up to which all messages are acknowledged, and the number of
    /// remaining ones.
    ///
    /// # Errors
    /// When the session or the event does not exist, or the store fails.
    pub async fn acknowledge(
        &self,
        workspace: &WorkspaceId,
        session: SessionId,
        seq: u64,
    ) -> Result<(u64, u64), EventsError> {
        let of = EventsOf { workspace: workspace.clone(), session };
        let last = self.last_of(&of).await?;
        if seq > last {
            return Err(EventsError::NotYet { seq, last });
        }
        let (inboxes, now) = (self.shared.store.inboxes(), SystemTime::now());
        let due = (now, now + self.shared.waits.first());
        inboxes.acknowledge(&of, seq, due).await.map_err(|error| of_store(error, &of))?;
        self.shared.earlier.notify_one();
        let counted = inboxes.count(&of, now).await.map_err(EventsError::Store)?;
        Ok((counted.acknowledged, counted.unread))
    }

    /// Restarts reminders of unacknowledged messages, since a client carries the session out again.
    /// A failure is logged; the next reading restarts them as well.
    pub async fn attended(&self, workspace: &WorkspaceId, session: SessionId) {
        let of = EventsOf { workspace: workspace.clone(), session };
        let now = SystemTime::now();
        let due = (now, now + self.shared.waits.first());
        match self.shared.store.inboxes().begin(&of, due).await {
            Ok(()) => self.shared.earlier.notify_one(),
            Err(error) => {
                tracing::warn!(
                    session.id = %session,
                    "messages could not be sent again yet: {error}"
                );
            }
        }
    }

    /// Does the follow-up work for an event that was added.
    pub(crate) async fn added(&self, of: &EventsOf, kind: EventKind) {
        match kind {
            EventKind::UserMessage => self.shared.earlier.notify_one(),
            EventKind::SessionCreated | EventKind::SessionResumed => {
                self.attended(&of.workspace, of.session).await;
            }
            _ => {}
        }
    }

    /// The data to store until a message is acknowledged; `None` for all other events.
    pub(crate) fn new_unread(
        &self,
        kind: EventKind,
        payload: &Value,
        now: SystemTime,
    ) -> Option<NewUnread> {
        (kind == EventKind::UserMessage).then(|| NewUnread {
            sender: payload["from_session_id"].as_str().and_then(SessionId::parse),
            expires_at: expires_at(payload),
            due_at: now + self.shared.waits.first(),
        })
    }

    /// Removes the texts of messages that expired without an acknowledgement.
    pub(crate) async fn hide_expired(&self, events: &mut [EventRow]) -> Result<(), EventsError> {
        let now = SystemTime::now();
        let is_over = |event: &EventRow| {
            event.kind == EventKind::UserMessage.as_str()
                && expires_at(&event.payload).is_some_and(|end| end <= now)
        };
        let mut over: Vec<_> = events.iter_mut().filter(|event| is_over(event)).collect();
        while let Some(first) = over.first() {
            let of = first.place.stream();
            let (its, others): (Vec<_>, Vec<_>) =
                over.into_iter().partition(|event| event.place.stream() == of);
            over = others;
            let numbers = its.iter().map(|event| event.seq);
            let (least, most) = (numbers.clone().min(), numbers.max());
            let range = (least.unwrap_or_default(), most.unwrap_or_default());
            let expired = self.shared.store.inboxes().expired(&of, range, now).await;
            let expired = expired.map_err(EventsError::Store)?;
            for event in its.into_iter().filter(|event| expired.contains(&event.seq)) {
                hide(&mut event.payload);
            }
        }
        Ok(())
    }

    async fn last_of(&self, of: &EventsOf) -> Result<u64, EventsError> {
        let wanted = Wanted { after: u64::MAX, limit: 1, kinds: &[] };
        Ok(self.page(of, wanted).await?.last)
    }
}

/// Number of the first of these messages whose payloads fit into so many bytes; at least one.
fn fitting(rows: &[narthex_store::EventRow], bytes: usize) -> usize {
    let mut taken = 0_usize;
    let fits = rows.iter().take_while(|row| {
        taken = taken.saturating_add(row.payload.len());
        taken <= bytes
    });
    fits.count().max(1)
}

fn hide(payload: &mut Value) {
    if let Value::Object(payload) = payload {
        for name in SAID {
            payload.remove(name);
        }
        payload.insert("expired".to_owned(), json!(true));
    }
}

/// The time from which no reader gets a message any more.
fn expires_at(payload: &Value) -> Option<SystemTime> {
    payload["expires_at"].as_str().and_then(Timestamp::parse)
}
