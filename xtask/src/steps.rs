//! Steps of a long command: each timed and counted, with one summary at the end.
#![expect(clippy::disallowed_types, reason = "measures real time: nothing here can be paused")]

use std::time::{Duration, Instant};

use anyhow::Result;

use crate::tally::Tally;

/// The outcome of one step.
pub(crate) struct Ran {
    name: String,
    start: Instant,
    took: Duration,
    tally: Tally,
    /// Why the step could not run, or failed without a count.
    fault: Option<String>,
}

impl Ran {
    /// Runs a step and prints how it ended. One that fails without a count counts as one failure.
    pub(crate) fn of(name: String, step: impl FnOnce() -> Result<Tally>) -> Self {
        let start = Instant::now();
        let (mut tally, fault) = match step() {
            Ok(tally) => (tally, None),
            Err(error) => (Tally::default(), Some(format!("{error:#}"))),
        };
        if fault.is_some() {
            tally.failed = 1;
        }
        let ran = Self { name, start, took: start.elapsed(), tally, fault };
        println!("=== {}", ran.line());
        ran
    }

    pub(crate) fn is_good(&self) -> bool {
        self.tally.failed == 0
    }

    fn line(&self) -> String {
        let outcome = if self.is_good() { "ok" } else { "FAILED" };
        let seconds = self.took.as_secs_f64();
        let mut line = format!("{:<12} {outcome:<6} {seconds:>7.1} s", self.name);
        if self.tally != Tally::default() && self.fault.is_none() {
            line.push_str(&format!("  {}", self.tally));
        }
        if let Some(fault) = &self.fault {
            line.push_str(&format!("  {fault}"));
        }
        line
    }
}

/// Prints all steps, and the time from the start of the first to the end of the last: steps can run
/// side by side. The last line is the sum alone, for programs that read it. False if any step has
/// failed.
pub(crate) fn summary(ran: &[Ran]) -> bool {
    let mut total = Tally::default();
    println!("\n=== summary");
    for step in ran {
        println!("{}", step.line());
        total += step.tally;
    }
    println!("{:<12} {:<6} {:>7.1} s", "all", "", span(ran).as_secs_f64());
    println!("\n{total}");
    total.failed == 0
}

/// The time from the first start to the last end.
fn span(ran: &[Ran]) -> Duration {
    let start = ran.iter().map(|step| step.start).min();
    let end = ran.iter().map(|step| step.start + step.took).max();
    start.zip(end).map_or(Duration::ZERO, |(start, end)| end - start)
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::{Ran, span};
    use crate::tally::Tally;

    #[test]
    fn a_step_that_cannot_run_counts_as_a_failure() {
        let failed = Ran::of("build".to_owned(), || anyhow::bail!("no compiler"));
        assert_eq!(failed.tally, Tally { passed: 0, failed: 1 });
        assert!(failed.line().contains("FAILED") && failed.line().ends_with("no compiler"));
        let good = Ran::of("unit".to_owned(), || Ok(Tally { passed: 3, failed: 0 }));
        assert!(good.is_good() && good.line().ends_with("3 passed, 0 failed"));
    }

    #[test]
    fn steps_side_by_side_count_once() {
        let (start, second) = (Instant::now(), Duration::from_secs(1));
        let ran = |after: u32, took: u32| Ran {
            name: String::new(),
            start: start + second * after,
            took: second * took,
            tally: Tally::default(),
            fault: None,
        };
        assert_eq!(span(&[ran(0, 9), ran(1, 3), ran(10, 5)]), second * 15);
        assert_eq!(span(&[]), Duration::ZERO);
    }
}
