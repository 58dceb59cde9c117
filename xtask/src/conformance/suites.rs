//! The suites: how each is run, and how its score is read.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
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
    /// The number of checks that a complete server passes.
    pub(super) floor: u64,
}

pub(super) const SUITES: [Suite; 3] = [
    Suite { name: "0.1.16", package: "conformance-legacy", arguments: &[], floor: 40 },
    Suite {
        name: "0.2.0-alpha.12 for 2025-11-25",
        package: "conformance-next",
        arguments: &["--requirements", "2025-11-25"],
        floor: 84,
    },
    Suite {
        name: "0.2.0-alpha.12 for 2026-07-28",
        package: "conformance-next",
        arguments: &["--requirements", "2026-07-28"],
        floor: 197,
    },
];

/// What a suite says of one target.
#[derive(Debug)]
pub(super) struct Score {
    pub(super) tally: Tally,
    /// The scenarios with a failed check, scored or not.
    pub(super) failed: Vec<String>,
    /// Whether the suite itself is content: no required scenario failed.
    pub(super) is_success: bool,
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
        let tally = total(&done.stdout)
            .with_context(|| format!("no total in the output\n{}{}", done.stdout, done.stderr))?;
        let failed = failed(&done.stdout, how);
        let score = Score { tally, failed, is_success: done.status.success() };
        ensure!(
            score.is_success || tally.failed > 0,
            "the suite ended with {} without a failed check\n{}",
            done.status,
            done.stderr
        );
        Ok(score)
    }
}

/// The line `Total: 40 passed, 0 failed`.
fn total(output: &str) -> Option<Tally> {
    let counts = output.lines().rev().find_map(|line| line.trim().strip_prefix("Total:"))?;
    let (passed, failed) = counts.split_once(',')?;
    let number = |text: &str| text.split_whitespace().next()?.parse().ok();
    Some(Tally { passed: number(passed)?, failed: number(failed)? })
}

/// The lines `✗ scenario: 1 passed, 1 failed` of the summary.
fn failed(output: &str, how: &str) -> Vec<String> {
    let lines = output.lines().filter_map(|line| line.strip_prefix("✗ "));
    lines.map(|line| format!("{how}: {line}")).collect()
}

#[cfg(test)]
mod tests {
    use super::{failed, total};
    use crate::tally::Tally;

    const OUTPUT: &str = "=== SUMMARY ===\n✓ ping: 2 passed, 0 failed\n\
        ✗ caching: 0 passed, 7 failed\n\n\
        Total: 2 passed, 7 failed\n\nNot scored: 1\n  ✗ tasks (extension)\n";

    #[test]
    fn the_total_and_the_failures_are_read() {
        assert_eq!(total(OUTPUT), Some(Tally { passed: 2, failed: 7 }));
        assert_eq!(failed(OUTPUT, "gateway"), ["gateway: caching: 0 passed, 7 failed"]);
        assert_eq!(total("crashed"), None);
    }
}
