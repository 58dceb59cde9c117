//! One stream: events come in, at most one connection reads them, and what it read is kept.

use std::{
    fmt::Write,
    sync::{Arc, Mutex},
    task::{Context, Poll, Waker},
};

use narthex_wire::Payload;
use tokio::sync::{Notify, mpsc};

use super::lock;
use crate::{
    ReplayLimits,
    replay::{Event, Replay},
    sending::Sending,
};

/// One stream of a session.
#[derive(Debug)]
pub(crate) struct Channel {
    /// What its event ids begin with, up to the number.
    prefix: String,
    state: Mutex<State>,
    /// A reader has moved on or gone.
    moved: Notify,
}

#[derive(Debug)]
struct State {
    replay: Replay,
    /// Where further events come from while somebody reads; calls push theirs instead.
    source: Option<mpsc::Receiver<Payload>>,
    reader: Option<Waker>,
    /// Rises with every reader; only the newest one gets anything.
    readers: u64,
    is_read: bool,
    /// The first event that no reader was given.
    unread: u64,
    has_ended: bool,
}

/// One connection's view of a stream.
#[derive(Debug)]
pub(crate) struct Reader {
    channel: Arc<Channel>,
    own: u64,
    next: u64,
    /// Breaks before this one are over.
    live_from: u64,
    is_primed: bool,
    has_ended: bool,
    /// The id of the event that was sent last.
    id: String,
}

impl Channel {
    pub(super) fn new(
        prefix: String,
        limits: ReplayLimits,
        source: Option<mpsc::Receiver<Payload>>,
    ) -> Self {
        let state = State {
            replay: Replay::new(limits),
            source,
            reader: None,
            readers: 0,
            is_read: false,
            unread: 1,
            has_ended: false,
        };
        Self { prefix, state: Mutex::new(state), moved: Notify::new() }
    }

    /// Adds an event. Waits while a reader is there that has not read what would be pushed out.
    pub(crate) async fn push(&self, event: Event) {
        loop {
            let moved = self.moved.notified();
            {
                let mut state = lock(&self.state);
                if !state.is_read || !state.replay.is_full_for(&event, state.unread) {
                    state.replay.push(event);
                    state.wake();
                    return;
                }
            }
            moved.await;
        }
    }

    /// Says that no event will follow; gives how many bytes are kept.
    pub(super) fn end(&self) -> usize {
        let mut state = lock(&self.state);
        state.has_ended = true;
        state.wake();
        state.replay.bytes()
    }

    /// Starts to read after the event with number `last`, or with the first that nobody was given.
    /// A reader that was there before ends. `None` if there never was such an event.
    pub(crate) fn read(self: &Arc<Self>, last: Option<u64>, is_primed: bool) -> Option<Reader> {
        let mut state = lock(&self.state);
        let live_from = state.replay.next();
        if last.is_some_and(|last| last >= live_from) {
            return None;
        }
        let next = last.map_or(state.unread, |last| last + 1);
        state.readers += 1;
        state.is_read = true;
        // What is to be read again counts as unread again.
        state.unread = next;
        state.wake();
        let own = state.readers;
        drop(state);
        self.moved.notify_one();
        let (channel, id) = (self.clone(), self.prefix.clone());
        // A first reader has seen no break yet; one that comes back has.
        let live_from = if last.is_some() { live_from } else { next };
        Some(Reader { channel, own, next, live_from, is_primed, has_ended: false, id })
    }
}

impl State {
    fn wake(&mut self) {
        if let Some(waker) = self.reader.take() {
            waker.wake();
        }
    }

    /// Takes one event from the source, if nothing else is to be read.
    fn poll_source(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(source) = &mut self.source else { return Poll::Pending };
        match source.poll_recv(cx) {
            Poll::Ready(Some(payload)) => self.replay.push(Event::Message(payload)),
            Poll::Ready(None) => {
                self.source = None;
                self.has_ended = true;
            }
            Poll::Pending => return Poll::Pending,
        }
        Poll::Ready(())
    }
}

impl Reader {
    /// Adds the next event to what is being sent; `None` where this connection ends.
    pub(crate) fn poll_event(
        &mut self,
        cx: &mut Context<'_>,
        sending: &mut Sending,
    ) -> Poll<Option<()>> {
        if self.is_primed {
            self.is_primed = false;
            self.send(sending, self.next - 1, None, &Payload::default());
            return Poll::Ready(Some(()));
        }
        let event = {
            let mut state = lock(&self.channel.state);
            if self.has_ended || state.readers != self.own {
                return Poll::Ready(None);
            }
            loop {
                if let Some((number, event)) = state.replay.at(self.next) {
                    let event = event.clone();
                    self.next = number + 1;
                    state.unread = self.next;
                    break event;
                }
                if state.has_ended {
                    return Poll::Ready(None);
                }
                if state.poll_source(cx).is_pending() {
                    state.reader = Some(cx.waker().clone());
                    return Poll::Pending;
                }
            }
        };
        self.channel.moved.notify_one();
        let number = self.next - 1;
        match event {
            Event::Message(payload) => self.send(sending, number, None, &payload),
            Event::Break(retry_ms) => {
                self.has_ended = number >= self.live_from;
                self.send(sending, number, retry_ms, &Payload::default());
            }
        }
        Poll::Ready(Some(()))
    }

    fn send(&mut self, sending: &mut Sending, number: u64, retry_ms: Option<u64>, data: &Payload) {
        self.id.truncate(self.channel.prefix.len());
        // Text in memory takes whatever it is given.
        write!(self.id, "{number}").unwrap_or_default();
        sending.push(Some(&self.id), retry_ms, data);
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let mut state = lock(&self.channel.state);
        if state.readers == self.own {
            state.is_read = false;
            state.reader = None;
            self.channel.moved.notify_one();
        }
    }
}

#[cfg(test)]
mod tests;
