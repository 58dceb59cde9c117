//! The suites: how each is run, and how its score is read.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use fs_err as fs;

use crate::peers::Peers;
use crate::process;
use crate::tally::Tally;

const DONE: Duration = Duration::from_secs(300);

pub(super) struct Suite {
    pub(super) name: &'static str,
    /// The npm package, by its alias in `e2e/peers/node/package.json`.
    package: &'static str,
    arguments: &'static [&'static str],
    /// The era that its client speaks.
    pub(super) era: &'static str,
}

pub(super) const SUITES: [Suite; 3] = [
    Suite { name: "0.1.16", package: "conformance-legacy", arguments: &[], era: "legacy" },
    Suite {
        name: "0.2.0-alpha.12 for 2025-11-25",
        package: "conformance-next",
        arguments: &["--requirements", "2025-11-25"],
        era: "legacy",
    },
    Suite {
        name: "0.2.0-alpha.12 for 2026-07-28",
        package: "conformance-next",
        arguments: &["--requirements", "2026-07-28"],
        era: "modern",
    },
];

/// The report of a suite about one target.
#[derive(Debug)]
pub(super) struct Score {
    pub(super) tally: Tally,
    /// The checks of each scenario, scored or not.
    scenarios: BTreeMap<String, Tally>,
    /// True if the suite itself passes: no required scenario failed.
    is_success: bool,
}

impl Suite {
    /// Runs the suite. What it prints is kept beside the details that it writes.
    pub(super) fn run(&self, peers: &Peers, how: &str, url: &str, logs: &Path) -> Result<Score> {
        let name = self.name.replace(' ', "-");
        let details = logs.join(format!("{how}-{name}"));
        let mut command = Command::new(peers.node());
        command.arg(peers.module(self.package).join("dist/index.js"));
        command.args(["server", "--url", url]).args(self.arguments).arg("-o").arg(&details);
        let done = process::capture(&mut command, DONE)?;
        fs::write(logs.join(format!("{how}-{name}.log")), done.stdout.clone() + &done.stderr)?;
        let score = Score::read(&done.stdout, done.status.success())
            .with_context(|| format!("no total in the output\n{}{}", done.stdout, done.stderr))?;
        ensure!(
            score.is_success || score.tally.failed > 0,
            "the suite ended with {} without a failed check\n{}",
            done.status,
            done.stderr
        );
        Ok(score)
    }
}

impl Score {
    /// Reads the summary of a suite.
    pub(super) fn read(output: &str, is_success: bool) -> Option<Self> {
        let total = output.lines().rev().find_map(|line| line.trim().strip_prefix("Total:"))?;
        let scenarios = output.lines().filter_map(scenario).collect();
        Some(Self { tally: counts(total)?, scenarios, is_success })
    }

    /// Checks that each scenario passes as much as in another run.
    pub(super) fn is_no_worse_than(&self, alone: &Self) -> Result<()> {
        let is_worse = |(name, alone): &(&String, &Tally)| {
            self.scenarios
                .get(*name)
                .is_none_or(|behind| behind.passed < alone.passed || behind.failed > alone.failed)
        };
        let shown = |(name, alone): (&String, &Tally)| match self.scenarios.get(name) {
            Some(behind) => format!("{name} ({behind}; alone {alone})"),
            None => format!("{name} (did not run; alone {alone})"),
        };
        let worse: Vec<_> = alone.scenarios.iter().filter(is_worse).map(shown).collect();
        if !worse.is_empty() {
            bail!("these scenarios do worse behind the gateway: {}", worse.join(", "));
        }
        ensure!(self.is_success || !alone.is_success, "a required scenario failed");
        Ok(())
    }
}

/// The line `✗ scenario: 1 passed, 1 failed` of the summary.
fn scenario(line: &str) -> Option<(String, Tally)> {
    let line = line.strip_prefix("✓ ").or_else(|| line.strip_prefix("✗ "))?;
    let (name, tally) = line.split_once(": ")?;
    Some((name.to_owned(), counts(tally)?))
}

/// The text `40 passed, 0 failed`.
fn counts(text: &str) -> Option<Tally> {
    let (passed, failed) = text.split_once(',')?;
    let number = |text: &str| text.split_whitespace().next()?.parse().ok();
    Some(Tally { passed: number(passed)?, failed: number(failed)? })
}

#[cfg(test)]
mod tests {
    use super::Score;
    use crate::tally::Tally;

    const OUTPUT: &str = "=== SUMMARY ===\n✓ ping: 2 passed, 0 failed\n\
        ✗ caching: 0 passed, 7 failed\n\n\
        Total: 2 passed, 7 failed\n\nNot scored: 1\n  ✗ tasks (extension)\n";

    #[test]
    fn the_total_and_the_scenarios_are_read() {
        let score = Score::read(OUTPUT, false).unwrap();
        assert_eq!(score.tally, Tally { passed: 2, failed: 7 });
        let tally = |passed, failed| Tally { passed, failed };
        let scenarios: Vec<_> = score.scenarios.into_iter().collect();
        assert_eq!(
            scenarios,
            [("caching".to_owned(), tally(0, 7)), ("ping".to_owned(), tally(2, 0))]
        );
        assert!(Score::read("crashed", false).is_none());
    }
}
