//! Delivers events to webhooks, while the daemon runs.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex, PoisonError, atomic::Ordering},
    time::{Duration, SystemTime},
};

use narthex_control::{ControlError, MessageError};
use narthex_events::{EventKind, EventRow};
use narthex_model::{ChannelName, WorkspaceId};
use narthex_store::{Store, Told, WebhookRow};
use serde_json::json;
use tokio::time::{Instant, sleep};

use crate::{Outbound, post::PostFailure, provider::signed};

/// Time that one attempt may take.
const WITHIN: Duration = Duration::from_secs(10);
/// Time in which no other process tries: longer than an attempt with all that is stored around it.
const CLAIMED: Duration = Duration::from_secs(60);
/// After how long it is tried again at first; then twice as long each time, up to the longest.
const PAUSE: Duration = Duration::from_secs(5);
const PAUSE_MAX: Duration = Duration::from_secs(60 * 60);
/// Largest number of attempts for one event, over about three hours.
const ATTEMPTS_MAX: u32 = 12;

/// The webhooks with a delivery under way.
type Busy = Arc<Mutex<HashSet<(WorkspaceId, ChannelName)>>>;

impl Outbound {
    /// Starts the deliveries, and looks for due ones every `poll`. Call this once.
    pub fn start(&self, poll: Duration) {
        let (outbound, closing) = (self.clone(), self.control().closing());
        self.control().spawn(async move {
            closing.run_until_cancelled(Box::pin(outbound.tell_on(poll))).await;
        });
    }

    async fn tell_on(&self, poll: Duration) {
        let busy = Busy::default();
        loop {
            if let Err(error) = self.tell_due(&busy).await {
                tracing::warn!("due events cannot be sent to webhooks yet: {error}");
            }
            sleep(poll).await;
        }
    }

    /// Starts the deliveries that are due, each by itself: a slow webhook holds up no other.
    async fn tell_due(&self, busy: &Busy) -> Result<(), ControlError> {
        let Some(store) = self.control().store() else { return Ok(()) };
        for row in store.webhooks().due(SystemTime::now()).await.map_err(ControlError::Store)? {
            let key = (row.workspace.clone(), row.name.clone());
            if !lock(busy).insert(key.clone()) {
                continue;
            }
            let (outbound, busy, closing) = (self.clone(), busy.clone(), self.control().closing());
            self.control().spawn(async move {
                let telling = Box::pin(outbound.tell(&key));
                if let Some(Err(error)) = closing.run_until_cancelled(telling).await {
                    tracing::warn!(
                        webhook = %key.1,
                        "due events cannot be sent to a webhook yet: {error}"
                    );
                }
                lock(&busy).remove(&key);
            });
        }
        Ok(())
    }

    /// Delivers events to one webhook, until there is no more or an attempt fails. The row is read
    /// anew before each event: its settings may have changed by then, or it may be deleted.
    async fn tell(
        &self,
        (workspace, name): &(WorkspaceId, ChannelName),
    ) -> Result<(), ControlError> {
        let store = self.control().catalog_store(workspace).await?.clone();
        loop {
            let found = store.webhooks().find(workspace, name).await;
            let Some(row) = found.map_err(ControlError::Store)? else { return Ok(()) };
            if row.due_at > SystemTime::now() || !self.tell_next(&store, &row).await? {
                return Ok(());
            }
        }
    }

    /// Delivers the next event to one webhook. `false` if there is no event, another daemon
    /// delivers it, or the delivery has failed.
    async fn tell_next(&self, store: &Store, row: &WebhookRow) -> Result<bool, ControlError> {
        let kinds: Vec<_> = row.kinds.iter().filter_map(|kind| EventKind::parse(kind)).collect();
        let feed = self.events()?.feed(&row.workspace, row.position, &kinds, 1).await;
        let feed = feed.map_err(|error| ControlError::from(MessageError::Events(error)))?;
        let Some(event) = feed.events.first() else {
            // Moves past events of other kinds, so that they are not read again and again.
            let moved = store.webhooks().advance(row, feed.next, None).await;
            moved.map_err(ControlError::Store)?;
            return Ok(false);
        };
        let until = SystemTime::now() + CLAIMED;
        if !store.webhooks().claim(row, until).await.map_err(ControlError::Store)? {
            return Ok(false);
        }
        let attempts = row.attempts + 1;
        let Err(failure) = self.attempt(row, event).await? else {
            self.shared.counts.delivered.fetch_add(1, Ordering::Relaxed);
            let told = told(event, "delivered", attempts, "");
            let moved = store.webhooks().advance(row, event.number, Some(told)).await;
            return moved.map_err(ControlError::Store);
        };
        self.shared.counts.failed.fetch_add(1, Ordering::Relaxed);
        let why = failure.to_string();
        tracing::warn!(webhook = %row.name, workspace.id = %row.workspace, attempts, "{why}");
        if attempts < ATTEMPTS_MAX {
            let until = SystemTime::now() + pause(attempts);
            let put_off = store.webhooks().put_off(row, attempts, until).await;
            put_off.map_err(ControlError::Store)?;
            return Ok(false);
        }
        let told = told(event, "given_up", attempts, &why);
        if store.webhooks().give_up(row, told).await.map_err(ControlError::Store)? {
            self.shared.counts.given_up.fetch_add(1, Ordering::Relaxed);
        }
        Ok(false)
    }

    async fn attempt(
        &self,
        row: &WebhookRow,
        event: &EventRow,
    ) -> Result<Result<(), PostFailure>, ControlError> {
        let url = self.secret(&row.workspace, &row.url).await?;
        let key = self.secret(&row.workspace, &row.signing_key).await?;
        let (Some(url), Some(key)) = (url, key) else {
            return Ok(Err(PostFailure::Unfit("a secret of its configuration is not set")));
        };
        let mut document = event.envelope();
        document["workspace"] = json!(row.workspace.as_str());
        document["number"] = json!(event.number);
        // The id is the same for each attempt, so that a receiver recognizes duplicates.
        let id = format!("evt_{}_{}", row.workspace, event.number);
        let letter = signed(&key, &id, &document);
        Ok(self.shared.poster.post(&url, &letter, Instant::now() + WITHIN).await)
    }
}

fn told<'t>(event: &'t EventRow, outcome: &'t str, attempts: u32, detail: &'t str) -> Told<'t> {
    Told { number: event.number, kind: &event.kind, outcome, attempts, detail }
}

/// Pause after an attempt that failed.
fn pause(attempts: u32) -> Duration {
    let factor = 1_u32.checked_shl(attempts - 1).unwrap_or(u32::MAX);
    PAUSE.saturating_mul(factor).min(PAUSE_MAX)
}

fn lock(busy: &Busy) -> std::sync::MutexGuard<'_, HashSet<(WorkspaceId, ChannelName)>> {
    busy.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_an_hour() {
        let all: Vec<_> = (1..ATTEMPTS_MAX).map(|attempts| pause(attempts).as_secs()).collect();
        assert_eq!(all, [5, 10, 20, 40, 80, 160, 320, 640, 1280, 2560, 3600]);
    }
}
