//! Changes that are noted before they are made, and ended in the record before they are answered.

use std::{
    sync::{Arc, atomic::Ordering},
    time::SystemTime,
};

use tokio::time::Instant;

use super::{Audit, AuditFull, Queue, Written};
use crate::{
    AuditEvent,
    spool::{CHANGE, Intent},
};

/// How a change came out that nobody said more of.
const FAILED: &str = "failed";

/// A change that may be made: that it is about to be is on the disk.
///
/// Dropped without [`Noted::done`], it is recorded as `failed`. If the process is killed before
/// either, the next one records it as `interrupted`.
#[derive(Debug)]
#[must_use = "what is about to be done needs its end in the record"]
pub struct Noted {
    change: Option<Change>,
}

#[derive(Debug)]
struct Change {
    id: String,
    event: AuditEvent<'static>,
    queue: Arc<Queue>,
    started: Instant,
}

impl Audit {
    /// Notes what is about to be done, and waits until that is on the disk.
    ///
    /// # Errors
    /// When the record cannot be kept: it must not be done then (D25).
    pub async fn begin(&self, event: AuditEvent<'static>) -> Result<Noted, AuditFull> {
        let Some(queue) = self.queue.clone() else { return Ok(Noted { change: None }) };
        // For this, and for its end.
        queue.take_room()?;
        if let Err(full) = queue.take_room() {
            queue.state.free.fetch_add(1, Ordering::Relaxed);
            return Err(full);
        }
        let number = queue.state.changes.fetch_add(1, Ordering::Relaxed);
        let writer = queue.place.as_ref().map_or("none", |(_, writer)| writer);
        let id = format!("{writer}.{number}");
        let intent = Intent { id: id.clone(), event: event.clone() };
        queue.push(Written::Intent(Box::new(intent)));
        let started = Instant::now();
        let change = Change { id, event, queue, started };
        let noted = Noted { change: Some(change) };
        self.flush().await;
        match &noted.change {
            Some(change) if change.queue.state.has_failed.load(Ordering::SeqCst) => {
                Err(AuditFull::Failed)
            }
            _ => Ok(noted),
        }
    }
}

impl Noted {
    /// What will be recorded, to add what only becomes known meanwhile.
    pub fn update(&mut self, change: impl FnOnce(AuditEvent<'static>) -> AuditEvent<'static>) {
        if let Some(noted) = &mut self.change {
            noted.event = change(noted.event.clone());
        }
    }

    /// Records that it was done, and waits until that is on the disk.
    pub async fn done(self) {
        self.ended("ok").await;
    }

    /// Records how it came out, and waits until that is on the disk.
    pub async fn ended(mut self, outcome: &'static str) {
        let Some(change) = self.change.take() else { return };
        let audit = Audit { queue: Some(change.queue.clone()) };
        change.end(outcome);
        audit.flush().await;
    }
}

impl Change {
    fn end(self, outcome: &'static str) {
        let Self { id, mut event, queue, started } = self;
        event.outcome = outcome.into();
        event.time = SystemTime::now();
        let took = started.elapsed().as_micros();
        event.duration_us = Some(u64::try_from(took).unwrap_or(u64::MAX >> 12));
        let event = event.with(CHANGE, id.clone());
        queue.push(Written::Done(id, Box::new(event)));
    }
}

impl Drop for Noted {
    fn drop(&mut self) {
        if let Some(change) = self.change.take() {
            change.end(FAILED);
        }
    }
}
