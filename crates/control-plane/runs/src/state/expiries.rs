//! The times at which runs end by themselves: one timer for all of them.

use std::{
    cmp::Reverse,
    collections::BinaryHeap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use narthex_model::RunId;
use tokio::{sync::Notify, time::Instant};

/// The times at which runs end. A run that has ended before may still be among them.
#[derive(Debug, Default)]
pub(crate) struct Expiries {
    waiting: Mutex<BinaryHeap<Reverse<(Instant, RunId)>>>,
    /// Notified when a time is earlier than the awaited one.
    earlier: Notify,
}

impl Expiries {
    /// Notes the time at which a run is to end.
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

#[cfg(test)]
mod tests {
    use std::{sync::Arc, time::Duration};

    use tokio_util::task::TaskTracker;

    use super::*;

    fn run(number: u8) -> RunId {
        RunId::new([number; 6])
    }

    /// Runs end in the order of their times, each when it is due and not before, also those that
    /// are added while others are waited for.
    #[tokio::test(start_paused = true)]
    async fn runs_expire_in_the_order_of_their_times() {
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
