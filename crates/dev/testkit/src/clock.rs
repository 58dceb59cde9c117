//! A clock for tests in which timers matter while bytes are on their way.

#![expect(clippy::disallowed_types, reason = "between two steps the real time counts")]

use std::time::{Duration, Instant};

use tokio::task::{JoinHandle, yield_now};

/// Least real time between two steps.
const REAL: Duration = Duration::from_millis(1);
/// Least number of turns that all tasks get between two steps.
const TURNS: usize = 16;

/// The clock of tokio, which proceeds by small steps for as long as this lives.
///
/// A paused clock leaps to the next deadline while an answer is still on its way through a socket
/// or a pipe. This one does not: all tasks get their turns, and the kernel a millisecond, before
/// each step. A thread that is not scheduled for long takes one step all the same. So a large step
/// hastens the clock, and a small one slows it down. It can also be put forward by
/// `tokio::time::advance`.
#[derive(Debug)]
#[must_use = "the clock runs as usual when this is dropped"]
pub struct SteppedClock(JoinHandle<()>);

impl SteppedClock {
    /// Pauses the clock, and has it proceed by `step` about every millisecond.
    ///
    /// # Panics
    /// When the clock is paused already, or the runtime has more than one thread.
    pub fn by(step: Duration) -> Self {
        tokio::time::pause();
        Self(crate::spawn(async move {
            loop {
                let (began, mut turns) = (Instant::now(), 0);
                while turns < TURNS || began.elapsed() < REAL {
                    yield_now().await;
                    turns += 1;
                }
                tokio::time::advance(step).await;
            }
        }))
    }
}

impl Drop for SteppedClock {
    fn drop(&mut self) {
        self.0.abort();
        if !std::thread::panicking() {
            tokio::time::resume();
        }
    }
}
