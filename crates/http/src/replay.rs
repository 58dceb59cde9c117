//! What is kept of one legacy stream: its newest events, numbered from 1.
//!
//! Limits count events and bytes. Past a limit the oldest go; the newest stays however long it is,
//! since it may be the answer. A reader that asks for what is gone starts at the oldest that is
//! left: a client that lost some progress still wants its answer.

use std::collections::VecDeque;

use narthex_wire::Payload;

use crate::ReplayLimits;

/// One event of a stream.
#[derive(Debug, Clone)]
pub(crate) enum Event {
    /// A message.
    Message(Payload),
    /// The client shall close, and come back for the rest after this many milliseconds.
    Break(Option<u64>),
}

/// The newest events of a stream.
#[derive(Debug)]
pub(crate) struct Replay {
    limits: ReplayLimits,
    /// The number of the oldest event that is kept, or of the next one if there is none.
    first: u64,
    events: VecDeque<Event>,
    bytes: usize,
}

impl Event {
    fn len(&self) -> usize {
        match self {
            Self::Message(payload) => payload.len(),
            Self::Break(_) => 0,
        }
    }
}

impl Replay {
    pub(crate) fn new(limits: ReplayLimits) -> Self {
        Self { limits, first: 1, events: VecDeque::new(), bytes: 0 }
    }

    /// The number that the next event gets.
    pub(crate) fn next(&self) -> u64 {
        self.first + self.events.len() as u64
    }

    /// How many bytes of messages are kept.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether this event would push out `unread` or a newer one.
    pub(crate) fn is_full_for(&self, event: &Event, unread: u64) -> bool {
        let (mut count, mut bytes) = (self.events.len() + 1, self.bytes + event.len());
        for (number, oldest) in (self.first..).zip(&self.events) {
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

    /// Adds an event and drops old ones past the limits.
    pub(crate) fn push(&mut self, event: Event) {
        self.bytes += event.len();
        self.events.push_back(event);
        while self.events.len() > 1
            && (self.events.len() > self.limits.events || self.bytes > self.limits.bytes)
        {
            self.bytes -= self.events.pop_front().map_or(0, |event| event.len());
            self.first += 1;
        }
    }

    /// The event with this number or, if it is gone, the oldest; with its number.
    pub(crate) fn at(&self, number: u64) -> Option<(u64, &Event)> {
        let number = number.max(self.first);
        let index = usize::try_from(number - self.first).ok()?;
        Some((number, self.events.get(index)?))
    }
}

#[cfg(test)]
mod tests;
