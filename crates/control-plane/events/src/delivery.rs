//! Sends reminders of unacknowledged messages, at growing intervals, and then gives the messages up
//! (X-E93). One task serves the messages of all sessions.
//!
//! The due times are in the store, so that another daemon, or the same one after a restart,
//! continues. Each reminder is an event with its own id: if two daemons add it, it counts once.

use std::time::{Duration, SystemTime};

use narthex_model::{SessionId, Timestamp};
use narthex_store::DueMessage;
use serde_json::json;
use tokio::time::sleep;

use crate::{Along, EventKind, EventPlace, Events, EventsError};

/// Most reminders of a message (X-E93).
const TELLINGS: u32 = 5;
/// Number of reminders that marks a message as given up.
const GIVEN_UP: u32 = TELLINGS + 1;
/// Number of messages per read.
const BATCH: u32 = 100;
/// Longest time until this daemon finds due messages that another one has left behind.
const LOOK: Duration = Duration::from_secs(60);
/// Time until the next attempt after the store has failed.
const AGAIN: Duration = Duration::from_secs(30);

/// Waiting times before each reminder, and after the last one before giving up.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Waits(pub(crate) [Duration; 6]);

impl Default for Waits {
    fn default() -> Self {
        Self([2, 10, 30, 30, 30, 30].map(Duration::from_secs))
    }
}

impl Waits {
    pub(crate) fn first(self) -> Duration {
        self.0[0]
    }

    /// Returns the time to the next step after this number of reminders.
    fn after(self, tellings: u32) -> Duration {
        let [.., last] = self.0;
        let at = usize::try_from(tellings).unwrap_or(usize::MAX);
        self.0.get(at).copied().unwrap_or(last)
    }
}

/// The reason for giving a message up.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Why {
    /// The message's reminders were not answered.
    Unacknowledged,
    /// The message has expired.
    Expired,
    /// The message was removed, as its session has too many newer events.
    Removed,
}

impl Events {
    /// Sends due reminders, for as long as the future is polled.
    pub async fn deliver(&self) {
        loop {
            let wait = match self.deliver_due(SystemTime::now()).await {
                Ok(next) => next.map_or(LOOK, |next| {
                    next.duration_since(SystemTime::now()).unwrap_or_default().min(LOOK)
                }),
                Err(error) => {
                    tracing::warn!("messages could not be sent again yet: {error}");
                    AGAIN
                }
            };
            tokio::select! {
                () = sleep(wait) => {}
                () = self.shared.earlier.notified() => {}
            }
        }
    }

    /// Handles the messages that are due by `now`, and returns the next due time; `None` if there
    /// is none.
    ///
    /// # Errors
    /// When the store fails; earlier messages are handled.
    pub async fn deliver_due(&self, now: SystemTime) -> Result<Option<SystemTime>, EventsError> {
        let inboxes = self.shared.store.inboxes();
        loop {
            let due = inboxes.due(now, BATCH).await.map_err(EventsError::Store)?;
            if due.is_empty() {
                return inboxes.next_due().await.map_err(EventsError::Store);
            }
            for message in due {
                self.deliver_one(&message, now).await?;
            }
        }
    }

    async fn deliver_one(&self, message: &DueMessage, now: SystemTime) -> Result<(), EventsError> {
        let inboxes = self.shared.store.inboxes();
        let done = if message.has_ended {
            inboxes.leave(&message.of).await
        } else if message.expires_at.is_some_and(|end| end <= now) {
            return self.give_up(message, Why::Expired).await;
        } else if !message.is_attended {
            inboxes.hold(&message.of, now).await
        } else if message.tellings >= TELLINGS {
            return self.give_up(message, Why::Unacknowledged).await;
        } else {
            let tellings = message.tellings + 1;
            self.tell_again(message, tellings).await?;
            let next = now + self.shared.waits.after(tellings);
            let next = message.expires_at.map_or(next, |end| end.min(next));
            inboxes.told(message, tellings, Some(next)).await
        };
        done.map_err(EventsError::Store)
    }

    /// Adds a reminder to the session's stream for the client that carries the session out.
    async fn tell_again(&self, message: &DueMessage, tellings: u32) -> Result<(), EventsError> {
        let seq = message.seq;
        let payload = json!({
            "sequence": seq, "message_id": message.message_id, "attempt": tellings,
        });
        let place = place(message, message.of.session);
        let id = format!("unread-{seq}-{tellings}");
        self.append(&place, EventKind::SessionMessageUnread, &payload, Some(&id)).await.map(drop)
    }

    /// Reports to a message's sender, once, that the message was not acknowledged.
    pub(crate) async fn give_up(&self, message: &DueMessage, why: Why) -> Result<(), EventsError> {
        let own = message.of.session;
        let place = place(message, self.hearer(message).await?);
        // The sender knows it by the id that they chose.
        let prefix = message.sender.map(|sender| format!("{sender}-")).unwrap_or_default();
        let message_id = message.message_id.as_ref();
        let message_id = message_id.map(|id| id.strip_prefix(&prefix).unwrap_or(id));
        let reason = match why {
            Why::Unacknowledged => "unacknowledged",
            Why::Expired => "expired",
            Why::Removed => "removed",
        };
        let expires_at = message.expires_at.map(|end| Timestamp::new(end).to_string());
        let payload = json!({
            "session_id": own.to_text(),
            "sequence": message.seq,
            "message_id": message_id,
            "reason": reason,
            "expires_at": expires_at,
        });
        let id = format!("undelivered-{own}-{}", message.seq);
        let kind = EventKind::SessionMessageUndelivered;
        let along = Along { message_id: Some(&id), ..Along::default() };
        // Adds without shortening the stream: the caller may be shortening it.
        match self.add(&place, kind, &payload, along).await {
            // A sender whose session has gone gets no report.
            Ok(_) | Err(EventsError::NoSession(_)) => {}
            Err(error) => return Err(error),
        }
        let given_up = self.shared.store.inboxes().told(message, GIVEN_UP, None).await;
        given_up.map_err(EventsError::Store)
    }

    /// The session that sent a message, while it is active; else the message's own, which people
    /// follow.
    async fn hearer(&self, message: &DueMessage) -> Result<SessionId, EventsError> {
        let Some(sender) = message.sender else { return Ok(message.of.session) };
        let found = self.shared.store.sessions().find(&message.of.workspace, sender).await;
        let found = found.map_err(EventsError::Store)?;
        let goes_on = found.is_some_and(|session| session.ended_at.is_none());
        Ok(if goes_on { sender } else { message.of.session })
    }
}

fn place(message: &DueMessage, session: SessionId) -> EventPlace {
    EventPlace { workspace: message.of.workspace.clone(), session, run: None }
}
