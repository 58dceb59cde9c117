//! Runs that could not be started: the pause grows with each attempt, and finally the run is given
//! up.

use std::{collections::HashMap, time::Duration};

use narthex_model::RunId;
use tokio::time::Instant;

/// Most attempts to start a run.
pub(crate) const TRIES_MAX: u32 = 5;
/// Time until the second attempt, before it is varied by a quarter; each time twice as long.
const FIRST: Duration = Duration::from_millis(500);
/// The longest such time.
const LONGEST: Duration = Duration::from_secs(60);
/// Time after its pause for which a failure is remembered without another look at the run: another
/// daemon has the run.
const REMEMBERED: Duration = Duration::from_secs(10 * 60);

/// Failed runs, with the numbers of their failures and the ends of their pauses.
#[derive(Debug, Default)]
pub(crate) struct Failures {
    of: HashMap<RunId, Failure>,
}

#[derive(Debug, Clone, Copy)]
struct Failure {
    times: u32,
    until: Instant,
}

impl Failures {
    /// Notes that a run could not be started, and returns the number of failures. `jitter` varies
    /// its pause.
    pub(crate) fn note(&mut self, run: RunId, now: Instant, jitter: u8) -> u32 {
        self.of.retain(|_, failure| now < failure.until + REMEMBERED);
        let times = self.of.get(&run).map_or(1, |failure| failure.times.saturating_add(1));
        self.of.insert(run, Failure { times, until: now + pause(times, jitter) });
        times
    }

    /// True if a run is left alone.
    pub(crate) fn is_paused(&self, run: RunId, now: Instant) -> bool {
        self.of.get(&run).is_some_and(|failure| now < failure.until)
    }

    /// The time at which the next pause ends.
    pub(crate) fn next(&self, now: Instant) -> Option<Instant> {
        self.of.values().map(|failure| failure.until).filter(|until| now < *until).min()
    }

    /// Number of remembered runs.
    pub(crate) fn len(&self) -> usize {
        self.of.len()
    }

    pub(crate) fn forget(&mut self, run: RunId) {
        self.of.remove(&run);
    }
}

/// The pause after `times` failures: it doubles each time, and `jitter` varies it by a quarter.
pub(crate) fn pause(times: u32, jitter: u8) -> Duration {
    let whole = FIRST.saturating_mul(2_u32.saturating_pow(times.saturating_sub(1))).min(LONGEST);
    whole * 3 / 4 + whole / 2 * u32::from(jitter) / u32::from(u8::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pauses grow up to a bound, and are varied by a quarter at most.
    #[test]
    fn pauses_grow_and_are_varied() {
        let millis = |times, jitter| pause(times, jitter).as_millis();
        assert_eq!([1, 2, 3, 4].map(|times| millis(times, 0)), [375, 750, 1500, 3000]);
        assert_eq!([1, 2, 3, 4].map(|times| millis(times, 255)), [625, 1250, 2500, 5000]);
        assert_eq!((millis(40, 0), millis(u32::MAX, 255)), (45_000, 75_000));
    }

    /// A run that failed is left alone until its pause is over, and others are not; a run without
    /// further looks is forgotten.
    #[tokio::test(start_paused = true)]
    async fn a_failed_run_is_paused_for_a_while() {
        let [one, two] = [1, 2].map(|number| RunId::new([number; 6]));
        let (mut failures, now) = (Failures::default(), Instant::now());
        assert_eq!([(); 3].map(|()| failures.note(one, now, 0)), [1, 2, 3]);
        let end = now + pause(3, 0);
        assert!(failures.is_paused(one, now) && !failures.is_paused(two, now));
        assert_eq!((failures.next(now), failures.next(end)), (Some(end), None));
        assert!(!failures.is_paused(one, end));
        assert_eq!((failures.note(two, end + REMEMBERED, 0), failures.len()), (1, 1));
        failures.forget(two);
        assert_eq!(failures.len(), 0);
    }
}
