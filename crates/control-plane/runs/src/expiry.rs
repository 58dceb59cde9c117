//! The times at which runs end by themselves: one timer for all of them.

use std::{
    cmp::Reverse,
    collections::BinaryHeap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use narthex_control::{By, ControlError};
use narthex_model::{RunEnd, RunId, SessionId, WorkspaceId};
use tokio::{sync::Notify, time::Instant};

use crate::{RunError, Runs, seen::Ending};

/// Pause before the end of a run is tried again that could not be stored.
const END_AGAIN: Duration = Duration::from_secs(60);

/// The times at which runs end. A run that has ended before may still be in it.
#[derive(Debug, Default)]
pub(crate) struct Expiries {
    waiting: Mutex<BinaryHeap<Reverse<(Instant, RunId)>>>,
    /// Notified when a time is earlier than the awaited one.
    earlier: Notify,
}

impl Expiries {
    /// Ends a run at this time.
    pub(crate) fn add(&self, at: Instant, run: RunId) {
        let mut waiting = self.waiting();
        let is_first = waiting.peek().is_none_or(|Reverse((first, _))| at < *first);
        waiting.push(Reverse((at, run)));
        drop(waiting);
        if is_first {
            self.earlier.notify_one();
        }
    }

    /// Waits for the next run whose time is over.
    pub(crate) async fn next(&self) -> RunId {
        loop {
            let first = self.waiting().peek().map(|Reverse((at, _))| *at);
            let due = async {
                match first {
                    Some(at) => tokio::time::sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = due => {}
                () = self.earlier.notified() => continue,
            }
            let mut waiting = self.waiting();
            let is_due = |Reverse((at, _)): &Reverse<(Instant, RunId)>| *at <= Instant::now();
            if waiting.peek().is_some_and(is_due)
                && let Some(Reverse((_, run))) = waiting.pop()
            {
                return run;
            }
        }
    }

    fn waiting(&self) -> MutexGuard<'_, BinaryHeap<Reverse<(Instant, RunId)>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Runs {
    /// Ends runs whose time is over, for as long as it is polled.
    pub(crate) async fn end_in_time(&self) {
        loop {
            let id = self.shared.expiries.next().await;
            if let Err(error) = self.expire(id).await {
                tracing::warn!(run.id = %id, "a run could not be ended in time: {error}");
                // Its time is over, even if that cannot be stored: its token opens nothing here any
                // more.
                self.end_view(id).await;
                self.shared.expiries.add(Instant::now() + END_AGAIN, id);
            }
        }
    }

    async fn expire(&self, id: RunId) -> Result<(), RunError> {
        let store = self.store()?;
        let found = store.runs().find(id).await.map_err(ControlError::Store)?;
        let Some(run) = found.filter(|run| run.ended.is_none()) else {
            // Another daemon has ended it in the store alone.
            self.end_view(id).await;
            return Ok(());
        };
        let (workspace, session) = (&run.workspace, run.session);
        let of = store.sessions().find(workspace, session).await.map_err(ControlError::Store)?;
        let is_child = of.is_some_and(|of| of.parent.is_some() && of.ended_at.is_none());
        // A child's session ends with its run: nothing would ever resume it.
        if is_child && self.expire_session(workspace, session, Some(id)).await? {
            return Ok(());
        }
        self.end_stored(workspace, id, RunEnd::Expired, By::system(), None).await.map(drop)
    }

    /// Ends a session whose time is over, unless another run of it is active; `false` if one is, or
    /// it had ended before.
    pub(crate) async fn expire_session(
        &self,
        workspace: &WorkspaceId,
        session: SessionId,
        besides: Option<RunId>,
    ) -> Result<bool, RunError> {
        if self.has_living_run(workspace, session, besides).await? {
            return Ok(false);
        }
        let ending = Ending { by: By::system(), how: RunEnd::Expired, first: None };
        Box::pin(self.end_session(workspace, session, ending)).await
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio_util::task::TaskTracker;

    use super::*;

    fn run(number: u8) -> RunId {
        RunId::new([number; 6])
    }

    /// Runs end in the order of their times, each when it is due and not before, also those that
    /// are added while others are waited for.
    #[tokio::test(start_paused = true)]
    async fn runs_end_when_their_time_is_over() {
        let (expiries, begin) = (Arc::new(Expiries::default()), Instant::now());
        let at = |seconds| begin + Duration::from_secs(seconds);
        for number in [9, 2, 5] {
            expiries.add(at(number.into()), run(number));
        }
        assert_eq!((expiries.next().await, Instant::now()), (run(2), at(2)));
        let waiting = TaskTracker::new().spawn({
            let expiries = expiries.clone();
            async move { (expiries.next().await, Instant::now()) }
        });
        tokio::task::yield_now().await;
        expiries.add(at(3), run(3));
        assert_eq!(waiting.await.unwrap(), (run(3), at(3)));
        // A run whose time was over before it was added.
        expiries.add(begin, run(1));
        assert_eq!((expiries.next().await, Instant::now()), (run(1), at(3)));
        assert_eq!((expiries.next().await, Instant::now()), (run(5), at(5)));
        assert_eq!((expiries.next().await, Instant::now()), (run(9), at(9)));
        let none = tokio::time::timeout(Duration::from_secs(1000), expiries.next()).await;
        assert!(none.is_err());
    }
}
