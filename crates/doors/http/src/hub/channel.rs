//! One stream: it stores events, and at most one connection reads them. Events stay stored after
//! they are read.

use std::{
    fmt::Write,
    sync::{Arc, Mutex},
    task::{Context, Poll, Waker},
};

use narthex_wire::Payload;
use tokio::sync::{Notify, mpsc};

use super::{RunRoom, lock};
use crate::{
    ReplayLimits,
    replay::{Event, Replay},
    sending::Sending,
};

/// One stream of a session.
#[derive(Debug)]
pub(crate) struct Channel {
    /// The prefix of the stream's event ids, up to the number.
    prefix: String,
    /// The shared buffer's part for the run that owns the stream.
    room: Arc<RunRoom>,
    state: Mutex<State>,
    /// Notified when a reader has read an event, or has gone.
    moved: Notify,
}

#[derive(Debug)]
struct State {
    replay: Replay,
    /// The source from which a reader takes further events. Streams of calls have none: calls push
    /// their events.
    source: Option<mpsc::Receiver<Payload>>,
    reader: Option<Waker>,
    /// Number of readers so far. Only the newest reader gets events.
    readers: u64,
    is_read: bool,
    /// The number of the first event that no reader was given.
    unread: u64,
    has_ended: bool,
    /// True if the run's list has this stream, so that its oldest events can be dropped.
    is_listed: bool,
}

/// The oldest event of a stream, after a request to drop one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Oldest {
    /// The stream stores no event now.
    None,
    /// The oldest event now has this count among the events of the run.
    Now(u64),
    /// The oldest event stays, since a present reader has not read it yet.
    Unread,
}

/// One connection's view of a stream.
#[derive(Debug)]
pub(crate) struct Reader {
    channel: Arc<Channel>,
    own: u64,
    next: u64,
    /// Breaks with a lower number were acted on before, and do not end this connection.
    live_from: u64,
    is_primed: bool,
    has_ended: bool,
    /// The id of the event that was sent last.
    id: String,
}

impl Channel {
    pub(super) fn new(
        prefix: String,
        (limits, room): (ReplayLimits, Arc<RunRoom>),
        source: Option<mpsc::Receiver<Payload>>,
    ) -> Self {
        let state = State {
            replay: Replay::new(limits, room.clone()),
            source,
            reader: None,
            readers: 0,
            is_read: false,
            unread: 1,
            has_ended: false,
            is_listed: false,
        };
        Self { prefix, room, state: Mutex::new(state), moved: Notify::new() }
    }

    /// Adds an event. Waits while a present reader has not read the event that this one would push
    /// out. Also waits while a present reader has unread events and the run's part of the buffer is
    /// full.
    pub(crate) async fn push(self: &Arc<Self>, event: Event) {
        loop {
            let moved = self.moved.notified();
            let is_full = {
                let mut state = lock(&self.state);
                let is_full = state.is_read && state.replay.is_full_for(&event, state.unread);
                let is_behind = state.is_read && state.unread < state.replay.next();
                if !is_full && (!is_behind || self.room.has_room(event.len())) {
                    state.replay.push(event);
                    let unlisted = state.unlisted();
                    state.wake();
                    drop(state);
                    return self.settle(unlisted);
                }
                is_full
            };
            if is_full || !self.room.make_room(event.len()) {
                moved.await;
            }
        }
    }

    /// Runs after an event was added. Adds the stream to the run's list if it is not there yet, and
    /// drops old events if there are too many bytes.
    fn settle(self: &Arc<Self>, unlisted: Option<u64>) {
        if let Some(oldest) = unlisted {
            self.room.list(self, oldest);
        }
        if !self.room.has_room(0) {
            self.room.make_room(0);
        }
    }

    /// Drops the oldest event if it has this count. An event that a present reader has not read yet
    /// stays.
    pub(super) fn drop_oldest(&self, count: u64) -> Oldest {
        let mut state = lock(&self.state);
        if let Some((number, oldest)) = state.replay.oldest()
            && oldest == count
        {
            if state.is_read && number >= state.unread {
                return Oldest::Unread;
            }
            state.replay.pop();
        }
        let oldest = state.replay.oldest();
        state.is_listed = oldest.is_some();
        oldest.map_or(Oldest::None, |(_, count)| Oldest::Now(count))
    }

    /// Marks the stream as complete: no event will follow. Returns the number of stored bytes.
    pub(super) fn end(&self) -> usize {
        let mut state = lock(&self.state);
        state.has_ended = true;
        state.wake();
        state.replay.bytes()
    }

    /// Starts to read after the event with number `last`, or with the first event that no reader
    /// was given. An earlier reader ends. `None` if there never was an event `last`, or if all
    /// later events were dropped.
    pub(crate) fn read(self: &Arc<Self>, last: Option<u64>, is_primed: bool) -> Option<Reader> {
        let mut state = lock(&self.state);
        let live_from = state.replay.next();
        if last.is_some_and(|last| last >= live_from) {
            return None;
        }
        // All events that would follow were dropped, and the answer with them.
        let is_gone = state.has_ended && state.replay.oldest().is_none();
        if is_gone && last.is_some_and(|last| last + 1 < live_from) {
            return None;
        }
        let next = last.map_or(state.unread, |last| last + 1);
        state.readers += 1;
        state.is_read = true;
        // Events that this reader will read again count as unread again.
        state.unread = next;
        state.wake();
        let own = state.readers;
        drop(state);
        self.moved.notify_one();
        let (channel, id) = (self.clone(), self.prefix.clone());
        // A first reader has seen no break yet; a reader that comes back has.
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

    /// Returns the count of the oldest event if the run's list lacks this stream, and marks the
    /// stream as listed.
    fn unlisted(&mut self) -> Option<u64> {
        let (_, oldest) = self.replay.oldest().filter(|_| !self.is_listed)?;
        self.is_listed = true;
        Some(oldest)
    }

    /// Takes one event from the source. Called only when no stored event is left to read.
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
    /// Adds the next event to the data to send; `None` when this connection ends.
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
        let mut unlisted = None;
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
                unlisted = unlisted.or_else(|| state.unlisted());
            }
        };
        self.channel.settle(unlisted);
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
        // Writing into a `String` never fails.
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
