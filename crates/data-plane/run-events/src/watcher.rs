//! A watcher of a run: a queue with a limit, and the number of operations that it has lost.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use narthex_model::{Alias, RunId};
use tokio::sync::mpsc::{self, Receiver, Sender};

use crate::{Operation, Tap};

/// The reporting side of a watcher.
#[derive(Debug)]
pub(crate) struct Queue {
    /// The servers to report; empty for all.
    aliases: Vec<Alias>,
    sender: Sender<Operation>,
    lost: Arc<AtomicU64>,
}

/// Receives the operations of one run, in the order of their ends. Dropping it ends the watching.
#[derive(Debug)]
pub struct Watcher {
    tap: Tap,
    run: RunId,
    operations: Receiver<Operation>,
    lost: Arc<AtomicU64>,
}

/// An operation, for a watcher.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// Number of operations lost since the last one, as the queue was full.
    pub lost: u64,
    /// The operation.
    pub operation: Operation,
}

impl Queue {
    pub(crate) fn new(aliases: Vec<Alias>, room: usize) -> (Self, Receiver<Operation>) {
        let (sender, receiver) = mpsc::channel(room);
        (Self { aliases, sender, lost: Arc::default() }, receiver)
    }

    pub(crate) fn lost(&self) -> Arc<AtomicU64> {
        self.lost.clone()
    }

    /// True if it is the queue of this watcher.
    pub(crate) fn is_of(&self, watcher: &Watcher) -> bool {
        Arc::ptr_eq(&self.lost, &watcher.lost)
    }

    /// True if operations of a server are reported; `None` is of all, or of none.
    pub(crate) fn wants(&self, alias: Option<&Alias>) -> bool {
        self.aliases.is_empty() || alias.is_some_and(|alias| self.aliases.contains(alias))
    }

    /// Never waits.
    pub(crate) fn tell(&self, operation: Operation) {
        if self.sender.try_send(operation).is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Watcher {
    pub(crate) fn new(
        tap: Tap,
        run: RunId,
        operations: Receiver<Operation>,
        lost: Arc<AtomicU64>,
    ) -> Self {
        Self { tap, run, operations, lost }
    }

    /// Waits for the next operation; `None` when the run has ended and all operations were
    /// received.
    pub async fn next(&mut self) -> Option<Seen> {
        let operation = self.operations.recv().await?;
        Some(Seen { lost: self.lost.swap(0, Ordering::Relaxed), operation })
    }

    /// The watched run.
    #[must_use]
    pub fn run(&self) -> RunId {
        self.run
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        let tap = self.tap.clone();
        tap.forget(self);
    }
}
