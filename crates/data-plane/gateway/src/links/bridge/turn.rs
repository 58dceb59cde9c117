//! The calls that are open on a bridged link.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use narthex_wire::Message;
use tokio::sync::mpsc;

use super::Bridge;

/// Number of messages that wait for one call at most.
const QUEUE: usize = 64;

/// The open calls of a link.
#[derive(Debug, Default)]
pub(in crate::links) struct Turns(Mutex<Open>);

#[derive(Debug, Default)]
struct Open {
    next: u64,
    calls: HashMap<u64, mpsc::Sender<Message>>,
}

/// The place of one call on a link, until it is dropped.
#[derive(Debug)]
pub(crate) struct Turn {
    bridge: Arc<Bridge>,
    number: u64,
    /// The server's messages outside of the call's stream.
    heard: mpsc::Receiver<Message>,
}

impl Turns {
    fn open(&self) -> MutexGuard<'_, Open> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn len(&self) -> usize {
        self.open().calls.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Gives a message to the only open call. `false` if several calls or none are open, or if too
    /// many messages wait for the call.
    pub(super) fn give(&self, message: &Message) -> bool {
        let open = self.open();
        let mut calls = open.calls.values();
        let (Some(call), None) = (calls.next(), calls.next()) else { return false };
        call.try_send(message.clone()).is_ok()
    }
}

impl Turn {
    /// The next turn on a link.
    pub(in crate::links) fn of(bridge: &Arc<Bridge>) -> Self {
        let (sender, heard) = mpsc::channel(QUEUE);
        let mut open = bridge.turns.open();
        let number = open.next;
        open.next += 1;
        open.calls.insert(number, sender);
        drop(open);
        Self { bridge: bridge.clone(), number, heard }
    }

    pub(crate) fn bridge(&self) -> &Arc<Bridge> {
        &self.bridge
    }

    /// The next message outside of the call's stream; waits for ever after the last one. Safe to
    /// drop and call again.
    pub(crate) async fn heard(&mut self) -> Message {
        match self.heard.recv().await {
            Some(message) => message,
            None => std::future::pending().await,
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.bridge.turns.open().calls.remove(&self.number);
        self.bridge.group.changed.notify_waiters();
    }
}
