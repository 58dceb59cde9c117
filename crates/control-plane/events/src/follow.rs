//! Waits for further events of a session or a workspace.

use narthex_model::WorkspaceId;
use narthex_store::EventsOf;
use tokio::{
    sync::watch,
    time::{Instant, sleep},
};

use crate::{EventKind, EventRow, Events, EventsError, Key, Wanted};

/// Most events that a follower holds at a time.
const IN_HAND: u32 = 32;

/// The stream that is followed.
#[derive(Debug)]
pub(crate) enum Followed {
    Session(EventsOf),
    Workspace(WorkspaceId),
}

/// A follower of a session or a workspace.
#[derive(Debug)]
pub struct Follower {
    events: Events,
    of: Followed,
    /// Number of the last returned event, or of a later one that the follower does not want.
    after: u64,
    kinds: Vec<EventKind>,
    key: Key,
    woken: watch::Receiver<()>,
    end: End,
}

/// The progress of the session's end.
#[derive(Debug, Clone, Copy)]
enum End {
    No,
    /// The session has ended, but its last event may not have arrived yet.
    Since(Instant),
    /// The event of the end was returned.
    Told,
}

/// The result of one look.
struct Found {
    events: Vec<EventRow>,
    next: u64,
    has_ended: bool,
}

impl Follower {
    pub(crate) fn new(events: Events, of: Followed, after: u64, kinds: Vec<EventKind>) -> Self {
        let key = match &of {
            Followed::Session(of) => Key::Session(of.clone()),
            Followed::Workspace(workspace) => Key::Workspace(workspace.clone()),
        };
        let woken = events.shared.wakers.wait(key.clone());
        Self { events, of, after, kinds, key, woken, end: End::No }
    }

    /// Waits for the next events: at least one, and further ones that are available. `None` when
    /// the session has ended and all its events were returned, or it was deleted. Cancel safe.
    ///
    /// # Errors
    /// When an event cannot be read, or the store fails; the caller may try again.
    pub async fn next(&mut self) -> Result<Option<Vec<EventRow>>, EventsError> {
        loop {
            // Before the look: later events wake the follower.
            self.woken.mark_unchanged();
            let found = match self.look().await {
                Ok(found) => found,
                Err(EventsError::NoSession(_)) => return Ok(None),
                Err(error) => return Err(error),
            };
            self.after = found.next;
            if !found.events.is_empty() {
                let is_end = |event: &EventRow| event.kind == EventKind::SessionEnded.as_str();
                if found.events.iter().any(is_end) {
                    self.end = End::Told;
                }
                return Ok(Some(found.events));
            }
            if found.has_ended && self.is_over() {
                return Ok(None);
            }
            // The sender is there for as long as a receiver is.
            tokio::select! {
                _ = self.woken.changed() => {}
                () = sleep(self.events.shared.poll) => {}
            }
        }
    }

    /// True if no further events of an ended session will come.
    fn is_over(&mut self) -> bool {
        match self.end {
            End::Told => true,
            End::Since(since) => since.elapsed() >= self.events.shared.poll,
            End::No => {
                self.end = End::Since(Instant::now());
                false
            }
        }
    }

    async fn look(&self) -> Result<Found, EventsError> {
        match &self.of {
            Followed::Session(of) => {
                let (after, kinds) = (self.after, &self.kinds[..]);
                let wanted = Wanted { after, limit: IN_HAND.into(), kinds };
                let page = self.events.page(of, wanted).await?;
                Ok(Found { events: page.events, next: page.next, has_ended: page.has_ended })
            }
            Followed::Workspace(workspace) => {
                let feed = self.events.feed(workspace, self.after, &self.kinds, IN_HAND).await?;
                Ok(Found { events: feed.events, next: feed.next, has_ended: false })
            }
        }
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        let woken = std::mem::replace(&mut self.woken, watch::channel(()).1);
        self.events.shared.wakers.leave(&self.key, woken);
    }
}
