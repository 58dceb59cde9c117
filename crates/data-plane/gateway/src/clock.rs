//! The time that a call may take, from its acceptance to its answer (D30).

use std::time::Duration;

use tokio::time::Instant;

/// The time when a call was accepted. Waiting for a server, connecting and listing count as well.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CallClock(Instant);

/// The deadline of a call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CallLimit {
    /// The configured limit, which is also the length of each extension.
    pub(crate) each: Duration,
    pub(crate) deadline: Instant,
    /// The latest time to which progress may extend the call; `None` if progress extends nothing.
    extends_until: Option<Instant>,
}

impl CallClock {
    /// The clock of a call that is accepted now.
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    /// The time when a call with this limit ends.
    pub(crate) fn deadline(self, limit: Duration) -> Instant {
        self.0 + limit
    }

    /// The time that is left of a limit.
    pub(crate) fn left(self, limit: Duration) -> Duration {
        limit.saturating_sub(self.0.elapsed())
    }

    /// The limit of a call: `each` from its acceptance on. Progress extends the call, up to `most`
    /// in all.
    pub(crate) fn limit(self, each: Duration, most: Option<Duration>) -> CallLimit {
        let extends_until = most.map(|most| self.0 + most);
        CallLimit { each, deadline: self.0 + each, extends_until }
    }
}

impl CallLimit {
    /// True if the call takes too long.
    pub(crate) fn is_over(&self) -> bool {
        self.deadline <= Instant::now()
    }

    /// Extends the call after progress, where progress may do so.
    pub(crate) fn progressed(&mut self) {
        if let Some(until) = self.extends_until {
            self.deadline = self.deadline.max((Instant::now() + self.each).min(until));
        }
    }

    /// Extends the call by the time for which a person was asked.
    pub(crate) fn paused(&mut self, duration: Duration) {
        self.deadline += duration;
        self.extends_until = self.extends_until.map(|until| until + duration);
    }

    /// Stops the clock of the call, while a person is asked.
    pub(crate) fn stand_still(&mut self) {
        self.deadline = Instant::now() + self.each.min(STEP);
    }

    /// Continues after the person's answer: the time of the person does not count.
    pub(crate) fn answered(&mut self) {
        self.deadline = self.deadline.max(Instant::now() + self.each.min(STEP));
    }
}

/// Longest time of a call after the person who was asked has answered.
const STEP: Duration = Duration::from_secs(30);

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// D30: progress extends a call only where the entry asks, and up to the maximum.
    #[tokio::test(start_paused = true)]
    async fn d30_progress_extends_a_call_up_to_the_maximum() {
        let clock = CallClock::start();
        let mut fixed = clock.limit(SECOND * 4, None);
        let mut extended = clock.limit(SECOND * 4, Some(SECOND * 6));
        tokio::time::advance(SECOND).await;
        assert_eq!(clock.left(SECOND * 4), SECOND * 3);
        fixed.progressed();
        extended.progressed();
        assert_eq!(fixed.deadline, clock.deadline(SECOND * 4));
        assert_eq!(extended.deadline, clock.deadline(SECOND * 5));
        tokio::time::advance(SECOND * 3).await;
        extended.progressed();
        assert_eq!(extended.deadline, clock.deadline(SECOND * 6));
        // A maximum below the limit shortens nothing.
        let mut short = clock.limit(SECOND * 4, Some(SECOND));
        short.progressed();
        assert_eq!(short.deadline, clock.deadline(SECOND * 4));
    }
}
