//! Events of sessions, as a durable stream in order (X-E98).
//!
//! * [`Events`] adds events and reads them by their numbers. Numbers grow by one, even if several
//!   daemons write to one store.
//! * A [`Follower`] waits for further events. It has no queue: it reads from the store, at its own
//!   pace, and events of this process wake it.
//! * A message stays unread until the client that carries its session out acknowledges it.
//!   Meanwhile reminders are sent (X-E93).
//! * The newest events of each session are stored, within limits of number and size.
//!
//! Independent of runs and interfaces. No forwarded call waits for this crate.

mod adding;
mod appended;
mod delivery;
mod event;
mod follow;
mod inbox;
mod kind;
#[cfg(test)]
mod tests;
mod upkeep;
mod wake;

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use narthex_model::{ErrorKind, SessionId, WorkspaceId};
use narthex_store::{EventFilter, EventsOf, StatementError, Store};
use tokio::sync::Notify;

pub use self::{
    appended::{Along, Appended},
    event::{EventPlace, EventRow},
    follow::Follower,
    inbox::Unread,
    kind::EventKind,
};
use self::{
    delivery::Waits,
    follow::Followed,
    upkeep::Bounds,
    wake::{Key, Wakers},
};

/// The longest payload, as JSON, in bytes.
pub const PAYLOAD_MAX: usize = 256 * 1024;
/// The longest id of a message, in bytes.
pub const MESSAGE_ID_MAX: usize = 200;
/// Number of a session's events that are stored (X-D10), and most events of one page.
pub const WINDOW: u64 = 5_000;
/// Longest time until a follower sees events of other daemons.
pub const POLL: Duration = Duration::from_secs(2);

/// The events of all sessions. Clones are handles to the same ones.
#[derive(Debug, Clone)]
pub struct Events {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    store: Store,
    poll: Duration,
    bounds: Bounds,
    wakers: Wakers,
    waits: Waits,
    /// A message may be due earlier than the awaited one.
    earlier: Notify,
    unwritten: AtomicU64,
}

/// Selects events of a session.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'w> {
    /// The number after which the events come.
    pub after: u64,
    /// Most events to return, from 1 to [`WINDOW`]; a number beyond counts as the nearest of these.
    pub limit: u64,
    /// The kinds; all if this is empty.
    pub kinds: &'w [EventKind],
}

/// Events of a session in their order.
#[derive(Debug, Clone, PartialEq)]
pub struct EventPage {
    /// The selected events.
    pub events: Vec<EventRow>,
    /// The first event that is stored; one more than the last if none is. A reader that has read
    /// less far than the one before it has missed some.
    pub oldest: u64,
    /// The last event that there is; 0 before the first.
    pub last: u64,
    /// The number after which the next page comes.
    pub next: u64,
    /// True if the session has ended.
    pub has_ended: bool,
}

/// Events of a workspace in their order.
#[derive(Debug, Clone, PartialEq)]
pub struct EventFeed {
    /// The selected events.
    pub events: Vec<EventRow>,
    /// The number after which the next part comes.
    pub next: u64,
}

/// An error of adding or reading events.
#[derive(Debug, thiserror::Error)]
pub enum EventsError {
    /// The payload is longer than [`PAYLOAD_MAX`].
    #[error("the payload of an event has {0} bytes; the limit is {PAYLOAD_MAX}")]
    TooLong(usize),
    /// The id of a message is none.
    #[error("a message id has 1 to {MESSAGE_ID_MAX} bytes and no control characters")]
    MessageId,
    /// The workspace has no such session.
    #[error("there is no session `{0}`")]
    NoSession(SessionId),
    /// There is no such event yet, which could be acknowledged.
    #[error(
        "event {seq} cannot be acknowledged: the session's last event is {last}; name that event, \
         or an earlier one"
    )]
    NotYet {
        /// The number that the caller acknowledged.
        seq: u64,
        /// The number of the last event.
        last: u64,
    },
    /// A stored event cannot be read.
    #[error("the stored event {seq} of the session `{session}` cannot be read")]
    Damaged {
        /// The session.
        session: SessionId,
        /// The number of the event.
        seq: u64,
    },
    /// The store failed.
    #[error(transparent)]
    Store(StatementError),
}

impl EventsError {
    /// Returns the error's kind.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::TooLong(_) | Self::MessageId | Self::NotYet { .. } => ErrorKind::Invalid,
            Self::NoSession(_) => ErrorKind::NotFound,
            Self::Damaged { .. } => ErrorKind::Unavailable,
            Self::Store(error) => error.kind(),
        }
    }
}

impl Events {
    /// The events of this store.
    #[must_use]
    pub fn new(store: Store) -> Self {
        Self::with(store, POLL, Bounds::default(), Waits::default())
    }

    fn with(store: Store, poll: Duration, bounds: Bounds, waits: Waits) -> Self {
        let (wakers, earlier, unwritten) = (Wakers::default(), Notify::new(), AtomicU64::new(0));
        let shared = Shared { store, poll, bounds, wakers, waits, earlier, unwritten };
        Self { shared: Arc::new(shared) }
    }

    /// Number of events that have happened and could not be added.
    #[must_use]
    pub fn unwritten(&self) -> u64 {
        self.shared.unwritten.load(Ordering::Relaxed)
    }

    /// Events of a session by their numbers.
    ///
    /// # Errors
    /// When there is no such session, an event cannot be read, or the store fails.
    pub async fn read(
        &self,
        workspace: &WorkspaceId,
        session: SessionId,
        wanted: Wanted<'_>,
    ) -> Result<EventPage, EventsError> {
        let of = EventsOf { workspace: workspace.clone(), session };
        self.page(&of, wanted).await
    }

    /// The events of a session after a number, as they come, of these kinds; all if there are none
    /// here.
    #[must_use]
    pub fn follow(
        &self,
        workspace: &WorkspaceId,
        session: SessionId,
        after: u64,
        kinds: Vec<EventKind>,
    ) -> Follower {
        let of = EventsOf { workspace: workspace.clone(), session };
        Follower::new(self.clone(), Followed::Session(of), after, kinds)
    }

    /// The events of all sessions of a workspace after a number of [`EventRow::number`].
    #[must_use]
    pub fn follow_workspace(
        &self,
        workspace: &WorkspaceId,
        after: u64,
        kinds: Vec<EventKind>,
    ) -> Follower {
        Follower::new(self.clone(), Followed::Workspace(workspace.clone()), after, kinds)
    }

    /// The first `limit` events of a workspace after a number of [`EventRow::number`], of these
    /// kinds; all if there are none here.
    ///
    /// # Errors
    /// When an event cannot be read, or the store fails.
    pub async fn feed(
        &self,
        workspace: &WorkspaceId,
        after: u64,
        kinds: &[EventKind],
        limit: u32,
    ) -> Result<EventFeed, EventsError> {
        let kinds: Vec<_> = kinds.iter().map(|kind| kind.as_str()).collect();
        let filter = EventFilter { after, kinds: &kinds, limit };
        let feed = self.shared.store.events().feed(workspace, filter).await;
        let feed = feed.map_err(EventsError::Store)?;
        let mut events = feed.events.into_iter().map(read).collect::<Result<Vec<_>, _>>()?;
        self.hide_expired(&mut events).await?;
        let next = match events.last() {
            Some(event) if is_full(&events, limit.into()) => event.number,
            _ => feed.last.max(after),
        };
        Ok(EventFeed { events, next })
    }

    /// The number of the last event of a workspace; 0 before the first.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn last_number(&self, workspace: &WorkspaceId) -> Result<u64, EventsError> {
        let filter = EventFilter { after: u64::MAX, kinds: &[], limit: 1 };
        let feed = self.shared.store.events().feed(workspace, filter).await;
        Ok(feed.map_err(EventsError::Store)?.last)
    }

    async fn page(&self, of: &EventsOf, wanted: Wanted<'_>) -> Result<EventPage, EventsError> {
        let Wanted { after, limit, kinds } = wanted;
        let kinds: Vec<_> = kinds.iter().map(|kind| kind.as_str()).collect();
        let limit = limit.clamp(1, WINDOW);
        let filter = EventFilter { after, kinds: &kinds, limit: narrow(limit) };
        let page = self.shared.store.events().page(of, filter).await;
        let page = page.map_err(EventsError::Store)?;
        let page = page.ok_or(EventsError::NoSession(of.session))?;
        let narthex_store::EventPage { events, oldest, last, has_ended } = page;
        let mut events = events.into_iter().map(read).collect::<Result<Vec<_>, _>>()?;
        self.hide_expired(&mut events).await?;
        let next = match events.last() {
            Some(event) if is_full(&events, limit) => event.seq,
            _ => last.max(after),
        };
        Ok(EventPage { events, oldest, last, next, has_ended })
    }
}

/// True if there may be more behind these.
fn is_full(events: &[EventRow], limit: u64) -> bool {
    u64::try_from(events.len()).is_ok_and(|count| count >= limit)
}

fn narrow(limit: u64) -> u32 {
    u32::try_from(limit).unwrap_or(u32::MAX)
}

fn read(row: narthex_store::EventRow) -> Result<EventRow, EventsError> {
    let (session, seq) = (row.of.session, row.seq);
    EventRow::read(row).ok_or(EventsError::Damaged { session, seq })
}
