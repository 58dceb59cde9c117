//! The stored events of one legacy stream: the newest ones, numbered from 1.
//!
//! Limits count events and bytes. When a limit is exceeded, the oldest events are dropped. The
//! newest event always stays, since it may be the answer. A reader that asks for a dropped event
//! starts at the oldest one left: a client that lost some progress still wants its answer. If the
//! run, its workspace or all runs store too many bytes, their shared buffer may drop any event
//! (`hub::room`).

use std::{collections::VecDeque, sync::Arc};

use narthex_wire::Payload;

use crate::{ReplayLimits, hub::RunRoom};

/// One event of a stream.
#[derive(Debug, Clone)]
pub(crate) enum Event {
    /// A message for the client.
    Message(Payload),
    /// A request to the client to close the connection, and to resume after this many milliseconds.
    Break(Option<u64>),
}

/// The newest events of a stream.
#[derive(Debug)]
pub(crate) struct Replay {
    limits: ReplayLimits,
    /// The number of the oldest stored event, or of the next event if none is stored.
    first: u64,
    /// The events, each with its count among all events of the run.
    events: VecDeque<(u64, Event)>,
    bytes: usize,
    room: Arc<RunRoom>,
}

impl Event {
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Message(payload) => payload.len(),
            Self::Break(_) => 0,
        }
    }
}

impl Replay {
    pub(crate) fn new(limits: ReplayLimits, room: Arc<RunRoom>) -> Self {
        room.opened();
        Self { limits, first: 1, events: VecDeque::new(), bytes: 0, room }
    }

    /// The number of the next event.
    pub(crate) fn next(&self) -> u64 {
        self.first + self.events.len() as u64
    }

    /// Number of bytes of stored messages.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// True if adding this event would push out the event with the number `unread` or a newer one.
    pub(crate) fn is_full_for(&self, event: &Event, unread: u64) -> bool {
        let (mut count, mut bytes) = (self.events.len() + 1, self.bytes + event.len());
        for (number, (_, oldest)) in (self.first..).zip(&self.events) {
            if count <= self.limits.events && bytes <= self.limits.bytes {
                return false;
            }
            if number >= unread {
                return true;
            }
            count -= 1;
            bytes -= oldest.len();
        }
        false
    }

    /// Adds an event, and drops old events beyond the limits.
    pub(crate) fn push(&mut self, event: Event) {
        let bytes = event.len();
        self.bytes += bytes;
        self.room.add(bytes);
        self.events.push_back((self.room.next_event(), event));
        while self.events.len() > 1
            && (self.events.len() > self.limits.events || self.bytes > self.limits.bytes)
        {
            self.pop();
        }
    }

    /// Drops the oldest event.
    pub(crate) fn pop(&mut self) {
        let Some((_, event)) = self.events.pop_front() else { return };
        let bytes = event.len();
        self.bytes -= bytes;
        self.room.give_back(bytes);
        self.first += 1;
    }

    /// The oldest event's number in the stream, and its count among all events of the run.
    pub(crate) fn oldest(&self) -> Option<(u64, u64)> {
        self.events.front().map(|(count, _)| (self.first, *count))
    }

    /// The event with this number, or the oldest event if that one was dropped. Returns it with its
    /// number.
    pub(crate) fn at(&self, number: u64) -> Option<(u64, &Event)> {
        let number = number.max(self.first);
        let index = usize::try_from(number - self.first).ok()?;
        Some((number, &self.events.get(index)?.1))
    }
}

impl Drop for Replay {
    fn drop(&mut self) {
        self.room.give_back(self.bytes);
        self.room.closed();
    }
}

#[cfg(test)]
mod tests;
