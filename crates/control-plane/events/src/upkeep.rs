//! Removes the oldest events to keep streams within their limits.

use std::time::{Duration, SystemTime};

use narthex_store::{EventStream, EventsOf, StatementError};

use crate::{Events, EventsError, WINDOW, delivery::Why};

/// Most events that are removed in one transaction.
const BATCH: u64 = 1_000;
/// Number of streams per search.
const STREAMS: u32 = 100;
const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// Time until a failed sweep is tried again.
const AGAIN: Duration = Duration::from_secs(60 * 60);

/// Bounds of streams.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    /// Events of a session.
    pub(crate) window: u64,
    /// Number of events beyond the window before they are removed together.
    pub(crate) slack: u64,
    /// Bytes of a session.
    pub(crate) session: u64,
    /// Bytes of a workspace.
    pub(crate) workspace: u64,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { window: WINDOW, slack: 250, session: 16 << 20, workspace: 1 << 30 }
    }
}

impl Events {
    /// Removes events beyond the bounds after an event was added. A failure is logged: the next
    /// event tries again.
    pub(crate) async fn keep_within_bounds(&self, of: &EventsOf, stream: EventStream) {
        if let Err(error) = self.shorten(of, stream).await {
            tracing::warn!(
                session.id = %of.session,
                "old events could not be removed yet: {error}"
            );
        }
    }

    async fn shorten(&self, of: &EventsOf, stream: EventStream) -> Result<(), StatementError> {
        let Bounds { window, slack, session, workspace } = self.shared.bounds;
        let count = (stream.last + 1).saturating_sub(stream.oldest);
        if count > window + slack {
            self.remove_to(of, stream.oldest, stream.last + 1 - window).await?;
        }
        if stream.bytes > session {
            // Somewhat more, so that not every event has one removed.
            self.lighten(of, stream, stream.bytes - session + session / 8).await?;
        }
        if stream.workspace_bytes > workspace {
            let mut beyond = stream.workspace_bytes - workspace;
            while beyond > 0 {
                let Some((spare, its)) = self.shared.store.events().spare(of).await? else { break };
                self.remove_to(&spare, its.oldest, its.last + 1).await?;
                beyond = beyond.saturating_sub(its.bytes);
            }
        }
        Ok(())
    }

    /// Removes the oldest events of a session until `bytes` bytes are free; never removes the last
    /// event.
    async fn lighten(
        &self,
        of: &EventsOf,
        stream: EventStream,
        mut bytes: u64,
    ) -> Result<(), StatementError> {
        while bytes > 0 {
            let limit = u32::try_from(BATCH).unwrap_or(u32::MAX);
            let sizes = self.shared.store.events().sizes(of, limit).await?;
            let mut oldest = None;
            for (seq, size) in sizes.into_iter().filter(|(seq, _)| *seq < stream.last) {
                if bytes == 0 {
                    break;
                }
                bytes = bytes.saturating_sub(size);
                oldest = Some(seq + 1);
            }
            let Some(oldest) = oldest else { break };
            self.trim(of, oldest).await?;
        }
        Ok(())
    }

    /// Removes the events of a session up to the one before `oldest`. First it reports the
    /// unacknowledged messages among them to their senders; if that fails, no event is removed yet.
    async fn trim(&self, of: &EventsOf, oldest: u64) -> Result<(), StatementError> {
        for message in self.shared.store.inboxes().before(of, oldest).await? {
            if let Err(error) = self.give_up(&message, Why::Removed).await {
                tracing::warn!(
                    session.id = %of.session,
                    "old events could not be removed yet: {error}"
                );
                return Ok(());
            }
        }
        self.shared.store.events().trim(of, oldest).await.map(drop)
    }

    /// Removes events from the oldest on up to the one before `to`.
    async fn remove_to(&self, of: &EventsOf, oldest: u64, to: u64) -> Result<(), StatementError> {
        let mut at = oldest;
        while at < to {
            at = to.min(at + BATCH);
            // Other daemons may be removing events as well, and may have removed more.
            self.trim(of, at).await?;
        }
        Ok(())
    }

    /// Removes the events of ended sessions beyond their workspace's retention; returns their
    /// number.
    ///
    /// # Errors
    /// When the store fails; removed events stay removed.
    pub async fn sweep(&self, now: SystemTime) -> Result<u64, EventsError> {
        let mut removed = 0;
        loop {
            let found = self.shared.store.events().overdue(now, STREAMS).await;
            let found = found.map_err(EventsError::Store)?;
            let before = removed;
            for (of, stream) in found {
                let to = stream.last + 1;
                self.remove_to(&of, stream.oldest, to).await.map_err(EventsError::Store)?;
                removed += to - stream.oldest;
            }
            if removed == before {
                return Ok(removed);
            }
        }
    }

    /// Sweeps now and then daily, for as long as the future is polled.
    pub async fn sweep_daily(&self) {
        loop {
            let pause = match self.sweep(SystemTime::now()).await {
                Ok(removed) => {
                    if removed > 0 {
                        tracing::info!(
                            removed,
                            "events of sessions that ended long ago were removed"
                        );
                    }
                    DAY
                }
                Err(error) => {
                    tracing::warn!("old events could not be removed: {error}");
                    AGAIN
                }
            };
            tokio::time::sleep(pause).await;
        }
    }
}
