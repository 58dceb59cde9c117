//! Counts of a run's calls while a reader counts: their number, failures and durations.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

/// Number of steps of each doubling of a duration: 12 % at most are lost.
const STEPS: usize = 8;
/// Up to 2^32 µs, which is over an hour.
const DOUBLINGS: usize = 33;
const BUCKETS: usize = STEPS * DOUBLINGS;

/// The counters of one run.
#[derive(Debug)]
pub(crate) struct Tally {
    calls: AtomicU64,
    errors: AtomicU64,
    /// The numbers of calls by duration.
    took: [AtomicU64; BUCKETS],
}

/// The counts up to one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counted {
    calls: u64,
    errors: u64,
    took: Box<[u64]>,
}

/// The counts between two moments.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Rates {
    /// Calls that ended.
    pub calls: u64,
    /// Of these, those that failed.
    pub errors: u64,
    /// The median duration; `None` if there was no call.
    pub p50: Option<Duration>,
}

impl Tally {
    pub(crate) fn new() -> Self {
        let took = std::array::from_fn(|_| AtomicU64::new(0));
        Self { calls: AtomicU64::new(0), errors: AtomicU64::new(0), took }
    }

    pub(crate) fn count(&self, took: Duration, is_error: bool) {
        self.calls.fetch_add(1, Ordering::Relaxed);
        self.errors.fetch_add(u64::from(is_error), Ordering::Relaxed);
        self.took[bucket(took)].fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn counted(&self) -> Counted {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let (calls, errors) = (read(&self.calls), read(&self.errors));
        Counted { calls, errors, took: self.took.iter().map(read).collect() }
    }
}

impl Counted {
    /// Counts of zero.
    #[must_use]
    pub fn nothing() -> Self {
        Self { calls: 0, errors: 0, took: vec![0; BUCKETS].into() }
    }

    /// The counts since an earlier moment.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Rates {
        let took = self.took.iter().zip(&earlier.took);
        let took: Vec<_> = took.map(|(now, then)| now.saturating_sub(*then)).collect();
        let calls = self.calls.saturating_sub(earlier.calls);
        let errors = self.errors.saturating_sub(earlier.errors);
        Rates { calls, errors, p50: median(&took) }
    }
}

/// The median of durations.
fn median(took: &[u64]) -> Option<Duration> {
    let half = took.iter().sum::<u64>().div_ceil(2);
    let mut so_far = 0;
    let at = took.iter().position(|count| {
        so_far += count;
        half > 0 && so_far >= half
    });
    at.map(|at| Duration::from_micros(limit(at)))
}

/// The bucket of a duration.
fn bucket(took: Duration) -> usize {
    let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
    let steps = STEPS as u64;
    if micros < steps {
        return usize::try_from(micros).unwrap_or_default();
    }
    let doubling = micros.ilog2() - steps.ilog2();
    let step = (micros >> doubling) - steps;
    let at = (u64::from(doubling) + 1) * steps + step;
    usize::try_from(at).unwrap_or(BUCKETS).min(BUCKETS - 1)
}

/// The longest duration of a bucket, in µs.
fn limit(bucket: usize) -> u64 {
    let (doubling, step) = (bucket / STEPS, (bucket % STEPS) as u64);
    match doubling.checked_sub(1) {
        None => step,
        Some(doubling) => ((STEPS as u64 + step + 1) << doubling) - 1,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_duration_is_counted_with_an_error_of_at_most_an_eighth(micros in 0_u64..1 << 32) {
            let at = bucket(Duration::from_micros(micros));
            prop_assert!(limit(at) >= micros && limit(at) - micros <= micros / 8);
            prop_assert!(at == 0 || limit(at - 1) < micros);
        }
    }

    #[test]
    fn half_of_the_calls_take_no_longer() {
        let tally = Tally::new();
        assert_eq!(tally.counted().since(&Counted::nothing()), Rates::default());
        for micros in [1, 2, 3, 4, 5, 6, 7] {
            tally.count(Duration::from_micros(micros), micros > 5);
        }
        let rates = tally.counted().since(&Counted::nothing());
        let p50 = Some(Duration::from_micros(4));
        assert_eq!(rates, Rates { calls: 7, errors: 2, p50 });
        let before = tally.counted();
        tally.count(Duration::MAX, true);
        let rates = tally.counted().since(&before);
        assert_eq!((rates.calls, rates.errors), (1, 1), "only what came since");
        assert!(rates.p50 >= Some(Duration::from_secs(3600)), "{rates:?}");
    }
}
