//! The task that follows one file.

use std::{path::PathBuf, sync::Arc, time::Duration};

use tokio::{
    sync::Notify,
    time::{Instant, timeout},
};

use super::{
    WatchMode, Watching,
    state::{Examined, Shared},
    system_events::SystemEvents,
};

/// Multiple of the quiet time after which a file that keeps changing is read all the same.
const RESTLESS_FACTOR: u32 = 10;
/// Number of readings of a doubtful content, if the file does not come to rest.
const DOUBTS_MAX: usize = 5;

/// Follows one file until it is dropped.
#[derive(Debug)]
pub(super) struct Follower {
    shared: Arc<Shared>,
    index: usize,
    wake: Arc<Notify>,
    /// The system's events; `None` when the file is polled instead.
    sight: Option<SystemEvents>,
    paths: Vec<PathBuf>,
}

/// Removes the mark "is followed" when the task ends, for whatever reason.
#[derive(Debug)]
struct Unmark<'a>(&'a Shared, usize);

impl Drop for Unmark<'_> {
    fn drop(&mut self) {
        self.0.set_watching(self.1, None);
    }
}

impl Follower {
    pub(super) fn new(shared: Arc<Shared>, index: usize) -> Self {
        let wake = Arc::new(Notify::new());
        let sight = Some(SystemEvents::new(wake.clone()));
        Self::with(shared, index, wake, sight)
    }

    pub(super) fn with(
        shared: Arc<Shared>,
        index: usize,
        wake: Arc<Notify>,
        sight: Option<SystemEvents>,
    ) -> Self {
        let paths = shared.sources[index].paths();
        Self { shared, index, wake, sight, paths }
    }

    /// Follows the file until the task is stopped, at any await: a result that is not applied by
    /// then never is.
    pub(super) async fn run(mut self) {
        let shared = self.shared.clone();
        let _unmark = Unmark(&shared, self.index);
        if shared.options.mode == WatchMode::Polling {
            self.poll("polling is set in the options".to_owned());
        }
        loop {
            // The path is watched first and the file is read then: changes in between cause another
            // reading.
            self.refresh().await;
            self.examine().await;
            self.wait().await;
        }
    }

    /// Watches the way to the file as it is now.
    async fn refresh(&mut self) {
        let Some(mut sight) = self.sight.take() else { return };
        let paths = self.paths.clone();
        let refresh = self.shared.tasks.spawn_blocking(move || {
            let refreshed = sight.refresh(&paths);
            (sight, refreshed)
        });
        match refresh.await {
            Ok((sight, Ok(()))) => {
                self.sight = Some(sight);
                self.shared.set_watching(self.index, Some(Watching::Events));
            }
            Ok((_, Err(reason))) => self.poll_instead(reason),
            Err(error) => self.poll_instead(format!("watching ended: {error}")),
        }
    }

    fn poll_instead(&mut self, reason: String) {
        tracing::warn!(
            file = %self.shared.sources[self.index].file.display(),
            interval_ms = self.shared.options.poll_interval.as_millis(),
            %reason,
            "changes of a configuration are only found by polling",
        );
        self.poll(reason);
    }

    fn poll(&mut self, reason: String) {
        self.sight = None;
        self.shared.set_watching(self.index, Some(Watching::Polling { reason }));
    }

    /// Reads the file. A content that would remove entries counts only when it is found again after
    /// the file was quiet. So a save that removes the file before it writes it anew never empties
    /// the set (E124), and a half-written text is not reported as a failure.
    async fn examine(&mut self) {
        for _ in 0..DOUBTS_MAX {
            if self.shared.examine(self.index, true).await == Examined::Done {
                return;
            }
            let debounce = self.shared.options.debounce;
            if timeout(debounce, self.wake.notified()).await.is_err() {
                break;
            }
            settle(&self.wake, debounce).await;
            self.refresh().await;
        }
        self.shared.examine(self.index, false).await;
    }

    /// Waits until there is a reason to read again.
    async fn wait(&mut self) {
        if self.sight.is_none() {
            return tokio::time::sleep(self.shared.options.poll_interval).await;
        }
        self.wake.notified().await;
        settle(&self.wake, self.shared.options.debounce).await;
    }
}

/// Waits until no event has come for as long as `quiet`, but not forever if events always come
/// (E121).
async fn settle(wake: &Notify, quiet: Duration) {
    let end = Instant::now() + quiet * RESTLESS_FACTOR;
    loop {
        let limit = quiet.min(end.saturating_duration_since(Instant::now()));
        if timeout(limit, wake.notified()).await.is_err() || Instant::now() >= end {
            return;
        }
    }
}

#[cfg(test)]
mod tests;
