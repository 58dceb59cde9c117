//! The outlet for a server's own messages and for a link's end, which is sent once and never lost.

use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError,
    atomic::{AtomicU64, Ordering},
};

use narthex_model::Alias;
use narthex_wire::{Message, Redactor};
use tokio::sync::mpsc::{self, error::TrySendError};
use tokio_util::sync::CancellationToken;

use crate::{Aside, Health, LinkError, LinkEvent, redaction::Redaction};

/// The receiver of one link's events.
#[derive(Debug)]
pub(crate) struct Outlet {
    server: Alias,
    events: mpsc::Sender<LinkEvent>,
    /// Number of messages dropped since the queue last had room.
    dropped: AtomicU64,
    redaction: Redaction,
    closed: CancellationToken,
    state: Mutex<State>,
    health: Arc<Health>,
    aside: Aside,
}

/// The state of the link's end.
#[derive(Debug, Default)]
struct State {
    end: Option<LinkError>,
    /// The reserved place in the queue for the end, so that a full queue cannot lose it.
    place: Option<mpsc::OwnedPermit<LinkEvent>>,
    /// True once the link was returned to its owner. Only then is the link's end an event; an
    /// earlier failure is an error.
    is_established: bool,
}

impl Outlet {
    pub(crate) fn new(
        server: Alias,
        events: mpsc::Sender<LinkEvent>,
        redaction: Redaction,
        health: Arc<Health>,
    ) -> Self {
        let state = State { place: events.clone().try_reserve_owned().ok(), ..State::default() };
        let (closed, state) = (CancellationToken::new(), Mutex::new(state));
        let (dropped, aside) = (AtomicU64::new(0), Aside::default());
        Self { server, events, dropped, redaction, closed, state, health, aside }
    }

    /// The worker that reads large messages of the server, one at a time.
    pub(crate) fn aside(&self) -> &Aside {
        &self.aside
    }

    /// The state of the server's health.
    pub(crate) fn health(&self) -> &Health {
        &self.health
    }

    /// Notes a failure of a request. After the end of the link, further failures prove nothing
    /// more.
    pub(crate) fn blame(&self, error: &LinkError) {
        if !self.closed.is_cancelled() {
            self.health.failed_by(&self.redacted(error.clone()));
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Cancelled when the link has ended.
    pub(crate) fn closed(&self) -> &CancellationToken {
        &self.closed
    }

    /// The reason of the link's end, as the error of a caller that still uses the link.
    pub(crate) fn end(&self) -> LinkError {
        self.state().end.clone().unwrap_or_else(|| LinkError::Closed("it was closed".into()))
    }

    /// Reports the link's end as an event from now on; at once if the link has already ended.
    pub(crate) fn establish(&self) {
        let mut state = self.state();
        state.is_established = true;
        if let Some(end) = state.end.clone() {
            self.announce(&mut state, &end);
        }
    }

    /// An error without known secrets, which may be logged.
    pub(crate) fn redacted(&self, error: impl Into<LinkError>) -> LinkError {
        let error = error.into();
        self.redaction.with(|redactor| match redactor {
            Some(redactor) => error.redacted(redactor),
            None => error,
        })
    }

    /// Ends the link. Returns `false` if the link had ended before; the earlier reason stays.
    pub(crate) fn close(&self, end: LinkError) -> bool {
        let end = self.redacted(end);
        let mut state = self.state();
        if state.end.is_some() {
            return false;
        }
        state.end = Some(end.clone());
        if state.is_established {
            self.announce(&mut state, &end);
        }
        drop(state);
        self.closed.cancel();
        true
    }

    fn announce(&self, state: &mut State, end: &LinkError) {
        let why = match end {
            LinkError::Closed(why) => why.clone(),
            other => other.to_string().into(),
        };
        let event = LinkEvent::Closed(why);
        match state.place.take() {
            Some(place) => drop(place.send(event)),
            None => drop(self.offer(event)),
        }
    }

    /// Sends the receiver a message of the server; `false` if too many messages are waiting.
    pub(crate) fn event(&self, event: LinkEvent) -> bool {
        let clean = |message: Message| self.redaction.with(|redactor| clean(redactor, message));
        self.offer(match event {
            LinkEvent::Notification(message) => LinkEvent::Notification(clean(message)),
            LinkEvent::Request(message) => LinkEvent::Request(clean(message)),
            LinkEvent::Closed(why) => LinkEvent::Closed(why),
        })
    }

    /// Puts an event into the queue. If the queue has no room, a burst of dropped messages is
    /// logged twice: at its start, and after its end with their number. An owner that reads no
    /// longer needs no message, so those are not logged.
    fn offer(&self, event: LinkEvent) -> bool {
        let sent = self.events.try_send(event);
        match &sent {
            Err(TrySendError::Full(_)) if self.dropped.fetch_add(1, Ordering::Relaxed) == 0 => {
                tracing::warn!(
                    server.name = %self.server,
                    "dropping messages of the server: they are not read fast enough"
                );
            }
            Ok(()) if self.dropped.load(Ordering::Relaxed) > 0 => {
                let dropped = self.dropped.swap(0, Ordering::Relaxed);
                tracing::warn!(server.name = %self.server, "dropped {dropped} messages");
            }
            Ok(()) | Err(_) => {}
        }
        sent.is_ok()
    }
}

/// The message without known secrets.
pub(crate) fn clean(redactor: Option<&Redactor>, message: Message) -> Message {
    redactor.and_then(|redactor| redactor.message(&message)).unwrap_or(message)
}
