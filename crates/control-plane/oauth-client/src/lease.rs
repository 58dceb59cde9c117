//! The right to renew a row: one process has it at a time (C23).

use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::{
    SignInError,
    fetch::POST_TIME,
    holding::Parts,
    store::{GrantKey, GrantRow, LeaseOutcome},
};

/// Life of a lease, in milliseconds: longer than the two requests that it is for.
const LEASE_MS: u64 = 21_000;
const _: () = assert!(POST_TIME.as_millis() * 2 < LEASE_MS as u128);
/// The usual time limit of a call, and the time in which many authorization servers take a used
/// refresh token once more, in milliseconds. Another process renews within it after a kill.
const GRACE_MS: u64 = 30_000;
const _: () = assert!(LEASE_MS + 10 * PAUSE_MS.1 < GRACE_MS);
/// Longest wait for a process that has the lease.
const LEASE_WAIT: Duration = Duration::from_secs(45);
/// Bounds of the pause before the row is read again, in milliseconds.
const PAUSE_MS: (u64, u64) = (10, 250);

/// A wish to renew one row.
#[derive(Debug)]
pub(crate) struct Wish<'a> {
    pub(crate) key: &'a GrantKey,
    /// The owner of the lease.
    pub(crate) owner: String,
    /// The name of the server, for messages.
    pub(crate) server: &'a str,
}

/// The right to renew.
#[derive(Debug)]
pub(crate) enum Right {
    Mine,
    /// Another process has written this row since.
    Written(GrantRow),
    /// The row is gone.
    Gone,
}

impl Wish<'_> {
    /// Waits for the right to renew. `is_known` is true for the row that is to be renewed.
    ///
    /// # Errors
    /// When the store fails, or another process renews for too long.
    pub(crate) async fn right(
        self,
        parts: &Parts,
        is_known: impl Fn(&GrantRow) -> bool + Send,
    ) -> Result<Right, SignInError> {
        let Self { key, owner, server } = self;
        let store = &parts.options.store;
        let until = Instant::now() + LEASE_WAIT;
        loop {
            match store.lease(key.clone(), owner.clone(), LEASE_MS).await? {
                LeaseOutcome::Absent => return Ok(Right::Gone),
                LeaseOutcome::Taken(row) if is_known(&row) => return Ok(Right::Mine),
                LeaseOutcome::Taken(row) => {
                    // Another process has renewed. With its own facts, this ends the lease alone.
                    let (generation, facts) = (row.generation, row.facts.clone());
                    store.note_failure(key.clone(), generation, facts).await?;
                    return Ok(Right::Written(row));
                }
                LeaseOutcome::Held { wait_ms } => {
                    if Instant::now() >= until {
                        return Err(SignInError::Busy { server: server.to_owned() });
                    }
                    let (least, most) = PAUSE_MS;
                    let pause = sleep(Duration::from_millis(wait_ms.clamp(least, most)));
                    tokio::select! {
                        () = pause => {}
                        () = parts.stop.cancelled() => return Err(SignInError::Stopped),
                    }
                    let row = store.grant(key.clone()).await?;
                    if let Some(row) = row.filter(|row| !is_known(row)) {
                        return Ok(Right::Written(row));
                    }
                }
            }
        }
    }
}
