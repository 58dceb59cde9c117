//! Changes that are noted before they are made, and completed in the record before the answer.

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

/// The outcome of a change without a reported end.
const FAILED: &str = "failed";
const DONE: &str = "ok";

/// A change that may be made, as the note of it is on the disk.
///
/// Dropped without [`Noted::done`], the change is recorded as `failed`. If the process is killed
/// before that, the next process records it as `interrupted`.
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
    /// Notes a change before it is made, and waits until the note is on the disk.
    ///
    /// # Errors
    /// When the note cannot be stored: the change must not be made then (D25).
    pub async fn begin(&self, event: AuditEvent<'static>) -> Result<Noted, AuditFull> {
        let mut all = self.begin_all(Vec::from([event])).await?;
        Ok(all.pop().unwrap_or(Noted { change: None }))
    }

    /// Notes several changes that are made together, in their order, and waits once until the notes
    /// are on the disk.
    ///
    /// # Errors
    /// When the notes cannot be stored: none of the changes must be made then (D25).
    pub async fn begin_all(
        &self,
        events: Vec<AuditEvent<'static>>,
    ) -> Result<Vec<Noted>, AuditFull> {
        let Some(queue) = self.queue.clone() else {
            return Ok(events.iter().map(|_| Noted { change: None }).collect());
        };
        // For each of these, and for its end.
        queue.take_room(events.len().saturating_mul(2))?;
        let noted: Vec<Noted> = events.into_iter().map(|event| queue.begin(event)).collect();
        self.flush().await;
        if queue.state.has_failed.load(Ordering::SeqCst) {
            return Err(AuditFull::Failed);
        }
        Ok(noted)
    }
}

impl Queue {
    /// Notes a change, for which there is room.
    fn begin(self: &Arc<Self>, event: AuditEvent<'static>) -> Noted {
        let number = self.state.changes.fetch_add(1, Ordering::Relaxed);
        let writer = self.place.as_ref().map_or("none", |(_, writer)| writer);
        let id = format!("{writer}.{number}");
        let intent = Intent { id: id.clone(), event: event.clone() };
        self.push(Written::Intent(Box::new(intent)));
        let change = Change { id, event, queue: self.clone(), started: Instant::now() };
        Noted { change: Some(change) }
    }
}

impl Noted {
    /// Changes the event before it is recorded, to add facts that became known meanwhile.
    pub fn update(&mut self, change: impl FnOnce(AuditEvent<'static>) -> AuditEvent<'static>) {
        if let Some(noted) = &mut self.change {
            noted.event = change(noted.event.clone());
        }
    }

    /// Records that the change was made, and waits until the record is on the disk.
    pub async fn done(self) {
        self.ended(DONE).await;
    }

    /// Records that all these changes were made, and waits once until the records are on the disk.
    pub async fn all_done(all: Vec<Self>) {
        let mut audit = None;
        for change in all.into_iter().filter_map(|mut noted| noted.change.take()) {
            audit = Some(Audit { queue: Some(change.queue.clone()) });
            change.end(DONE);
        }
        if let Some(audit) = audit {
            audit.flush().await;
        }
    }

    /// Records this outcome, and waits until the record is on the disk.
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
