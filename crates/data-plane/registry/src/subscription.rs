//! Subscriptions to every snapshot, in order, for callers that want to miss none.

use std::sync::Arc;

use tokio::sync::broadcast::{Receiver, error::RecvError, error::TryRecvError};

use crate::Snapshot;

/// Number of snapshots that wait for a slow subscriber before it misses some.
pub(crate) const SNAPSHOT_QUEUE: usize = 1024;

/// One snapshot, for a subscriber.
#[derive(Debug, Clone)]
pub struct Update {
    /// Number of the update: 0 for the first, then rising by one. A larger step means that a slow
    /// subscriber missed some (E65).
    pub seq: u64,
    /// The registry at that moment.
    pub snapshot: Arc<Snapshot>,
}

/// A place in the sequence of snapshots. Slow or forgotten subscriptions delay no other caller
/// (E66); dropping a subscription ends it at once (E67).
#[derive(Debug)]
pub struct Subscription {
    first: Option<Arc<Snapshot>>,
    next: u64,
    snapshots: Receiver<Arc<Snapshot>>,
    is_over: bool,
}

impl Subscription {
    pub(crate) fn new(first: Arc<Snapshot>, snapshots: Receiver<Arc<Snapshot>>) -> Self {
        Self { first: Some(first), next: 0, snapshots, is_over: false }
    }

    /// Waits for the next snapshot; the first one is available at once. `None` after the registry
    /// was closed.
    pub async fn next(&mut self) -> Option<Update> {
        loop {
            if let Some(update) = self.try_next() {
                return Some(update);
            }
            if self.is_over {
                return None;
            }
            match self.snapshots.recv().await {
                Ok(snapshot) => return Some(self.update(snapshot)),
                Err(RecvError::Lagged(missed)) => self.next += missed,
                Err(RecvError::Closed) => self.is_over = true,
            }
        }
    }

    /// The next snapshot, if it is already available.
    pub fn try_next(&mut self) -> Option<Update> {
        if let Some(first) = self.first.take() {
            return Some(self.update(first));
        }
        if self.is_over {
            return None;
        }
        loop {
            match self.snapshots.try_recv() {
                Ok(snapshot) => return Some(self.update(snapshot)),
                Err(TryRecvError::Lagged(missed)) => self.next += missed,
                Err(TryRecvError::Empty) => return None,
                Err(TryRecvError::Closed) => {
                    self.is_over = true;
                    return None;
                }
            }
        }
    }

    fn update(&mut self, snapshot: Arc<Snapshot>) -> Update {
        self.is_over = snapshot.is_last;
        let seq = self.next;
        self.next += 1;
        Update { seq, snapshot }
    }
}
