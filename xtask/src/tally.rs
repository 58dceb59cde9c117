//! Counts of passed and failed checks, and the lines that announce them.
#![expect(clippy::disallowed_types, reason = "measures real time: nothing here can be paused")]

use std::fmt;
use std::ops::AddAssign;
use std::time::Instant;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
}

impl Tally {
    /// Makes one check, counts it and prints how it ended.
    pub(crate) fn check(&mut self, name: &str, check: impl FnOnce() -> anyhow::Result<()>) {
        let start = Instant::now();
        let outcome = check();
        let seconds = start.elapsed().as_secs_f64();
        match outcome {
            Ok(()) => {
                self.passed += 1;
                println!("  ok   {seconds:>5.1} s  {name}");
            }
            Err(error) => {
                self.failed += 1;
                println!("  FAIL {seconds:>5.1} s  {name}: {error:#}");
            }
        }
    }
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed", self.passed, self.failed)
    }
}

#[cfg(test)]
mod tests {
    use super::Tally;

    #[test]
    fn a_failed_check_is_counted_as_failed() {
        let mut tally = Tally::default();
        tally.check("good", || Ok(()));
        tally.check("bad", || anyhow::bail!("wrong"));
        assert_eq!(tally, Tally { passed: 1, failed: 1 });
        assert_eq!(tally.to_string(), "1 passed, 1 failed");
    }
}
