//! Counts of passed and failed checks, and the lines that announce them.

use std::fmt;
use std::ops::AddAssign;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
}

impl Tally {
    /// Counts one check and prints how it ended.
    pub(crate) fn record(&mut self, name: &str, outcome: anyhow::Result<()>) {
        match outcome {
            Ok(()) => {
                self.passed += 1;
                println!("  ok    {name}");
            }
            Err(error) => {
                self.failed += 1;
                println!("  FAIL  {name}: {error:#}");
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
        tally.record("good", Ok(()));
        tally.record("bad", Err(anyhow::anyhow!("wrong")));
        assert_eq!(tally, Tally { passed: 1, failed: 1 });
        assert_eq!(tally.to_string(), "1 passed, 1 failed");
    }
}
