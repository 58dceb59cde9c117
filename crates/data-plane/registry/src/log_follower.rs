//! Follows the standard error of one server, line after line, over all its starts.

use std::sync::Arc;

use narthex_supervisor::{LogPart, LogRing};
use tokio::sync::{broadcast, watch};

use crate::Registry;

/// Follows one server's log. A slow follower delays no server and no other follower, and counts the
/// lines that it missed.
#[derive(Debug)]
pub struct LogFollower {
    registry: Registry,
    name: String,
    log: LogRing,
    /// Number of the next line.
    next: u64,
    added: broadcast::Receiver<Arc<str>>,
    changes: watch::Receiver<u64>,
}

impl Registry {
    /// Follows the log of a server, from the oldest stored line. `None` if there is no such server.
    #[must_use]
    pub fn follow_log(&self, name: &str) -> Option<LogFollower> {
        let (registry, name) = (self.clone(), name.to_owned());
        let changes = self.changes();
        let log = self.get(&name)?.log.clone();
        let added = log.subscribe();
        Some(LogFollower { registry, name, log, next: 0, added, changes })
    }
}

impl LogFollower {
    /// Waits for the next lines. `None` once the server has been removed.
    pub async fn next(&mut self) -> Option<LogPart> {
        loop {
            self.changes.borrow_and_update();
            let part = self.log.read_from(self.next);
            self.next = part.next;
            if !part.lines.is_empty() {
                return Some(part);
            }
            if !self.registry.get(&self.name)?.log.is_same(&self.log) {
                return None;
            }
            tokio::select! {
                // The message only signals that there are lines: missed lines are in the ring, or
                // counted.
                _line = self.added.recv() => {}
                changed = self.changes.changed() => changed.ok()?,
            }
        }
    }
}
