//! The times at which a daemon reads changes by other daemons on the store.

use tokio::time::{Interval, MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use crate::live::POLL;

/// The times at which a follower reads the store: at once, and then each [`POLL`], until `closing`.
/// A slow reading delays the next one.
#[derive(Debug)]
pub(crate) struct Polls {
    ticks: Interval,
    closing: CancellationToken,
}

impl Polls {
    /// Polls until `closing` is cancelled.
    ///
    /// # Panics
    /// Outside of a runtime.
    #[must_use]
    pub(crate) fn until(closing: CancellationToken) -> Self {
        let mut ticks = interval(POLL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self { ticks, closing }
    }

    /// Waits for the next poll; `false` when the daemon stops.
    pub(crate) async fn next(&mut self) -> bool {
        tokio::select! {
            biased;
            () = self.closing.cancelled() => false,
            _ = self.ticks.tick() => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::{Instant, advance};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn polls_keep_their_interval_until_closing() {
        let (closing, begun) = (CancellationToken::new(), Instant::now());
        let mut polls = Polls::until(closing.clone());
        assert!(polls.next().await);
        assert!(begun.elapsed().is_zero());
        assert!(polls.next().await);
        assert_eq!(begun.elapsed(), POLL);
        // A slow reading is followed by a pause, and missed polls are left out.
        advance(POLL * 3).await;
        assert!(polls.next().await);
        let late = Instant::now();
        assert!(polls.next().await);
        assert_eq!(late.elapsed(), POLL);
        closing.cancel();
        assert!(!polls.next().await);
    }
}
