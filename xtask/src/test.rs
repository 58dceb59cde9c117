//! `cargo xtask test`: the steps that CI runs, each timed, with one summary at the end.
#![expect(clippy::disallowed_types, reason = "measures real time: nothing here can be paused")]

mod counts;
mod files;
mod keychain;
mod postgres;
mod runners;

use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};

use crate::peers::Peers;
use crate::tally::Tally;
use crate::{check, conformance, peers, schemathesis};

#[derive(Args)]
pub(crate) struct Options {
    /// Run only these steps and what they need.
    #[arg(long, value_name = "STEP")]
    only: Vec<Step>,
    /// Leave these steps out.
    #[arg(long, value_name = "STEP")]
    skip: Vec<Step>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Step {
    /// Formatting, tidy, clippy, documentation.
    Check,
    /// Real clients, servers and conformance suites, pinned.
    Install,
    /// Tests of all crates.
    Unit,
    /// Examples in the documentation.
    Doc,
    /// The daemon and the test servers.
    Build,
    /// The conformance suites, directly and through the gateway.
    Conformance,
    /// Real clients and servers through the gateway.
    Peers,
    /// What the OpenAPI document allows and what it does not, sent by schemathesis.
    Openapi,
}

impl Step {
    fn needs(self) -> &'static [Self] {
        match self {
            Self::Conformance | Self::Peers | Self::Openapi => &[Self::Install, Self::Build],
            Self::Check | Self::Install | Self::Unit | Self::Doc | Self::Build => &[],
        }
    }

    fn name(self) -> String {
        format!("{self:?}").to_lowercase()
    }

    fn run(self) -> Result<Tally> {
        match self {
            Self::Check if check::run()? => Ok(Tally::default()),
            Self::Check => bail!("there are findings, see above"),
            Self::Install => Peers::install().map(|_| Tally::default()),
            Self::Unit => runners::unit(),
            Self::Doc => runners::doc(),
            Self::Build => runners::build(),
            Self::Conformance => conformance::run(&Peers::install()?),
            Self::Peers => peers::run(&Peers::install()?),
            Self::Openapi => schemathesis::run(&Peers::install()?),
        }
    }
}

/// How one step ended.
struct Report {
    step: Step,
    took: Duration,
    tally: Tally,
    /// Why the step could not run, or failed without a count.
    fault: Option<String>,
}

impl Report {
    fn is_good(&self) -> bool {
        self.tally.failed == 0
    }
}

/// Runs the chosen steps, also after one has failed. False if any has.
pub(crate) fn run(options: &Options) -> Result<bool> {
    let steps = chosen(options);
    if steps.is_empty() {
        bail!("no step is left to run");
    }
    let mut reports: Vec<Report> = Vec::new();
    for (index, step) in steps.iter().enumerate() {
        println!("\n=== {}/{} {}", index + 1, steps.len(), step.name());
        let broken = step
            .needs()
            .iter()
            .find(|need| reports.iter().any(|report| report.step == **need && !report.is_good()));
        let report = match broken {
            Some(need) => {
                let why = format!("cannot run since {} failed", need.name());
                report(*step, Duration::ZERO, Err(anyhow::anyhow!(why)))
            }
            None => {
                let start = Instant::now();
                let result = step.run();
                report(*step, start.elapsed(), result)
            }
        };
        println!("=== {}", line(&report));
        reports.push(report);
    }
    Ok(summary(&reports))
}

fn chosen(options: &Options) -> Vec<Step> {
    let is_wanted = |step: &Step| {
        options.only.is_empty()
            || options.only.iter().any(|only| only == step || only.needs().contains(step))
    };
    let all = Step::value_variants().iter().copied();
    all.filter(is_wanted).filter(|step| !options.skip.contains(step)).collect()
}

/// A step that fails without having counted a failure counts as one.
fn report(step: Step, took: Duration, result: Result<Tally>) -> Report {
    let (mut tally, fault) = match result {
        Ok(tally) => (tally, None),
        Err(error) => (Tally::default(), Some(format!("{error:#}"))),
    };
    if fault.is_some() {
        tally.failed = 1;
    }
    Report { step, took, tally, fault }
}

fn line(report: &Report) -> String {
    let outcome = if report.is_good() { "ok" } else { "FAILED" };
    let seconds = report.took.as_secs_f64();
    let mut line = format!("{:<12} {outcome:<6} {seconds:>7.1} s", report.step.name());
    if report.tally != Tally::default() && report.fault.is_none() {
        line.push_str(&format!("  {}", report.tally));
    }
    if let Some(fault) = &report.fault {
        line.push_str(&format!("  {fault}"));
    }
    line
}

/// Prints all reports; the last line is the sum alone, for programs that read it.
fn summary(reports: &[Report]) -> bool {
    let mut total = Tally::default();
    let mut took = Duration::ZERO;
    println!("\n=== summary");
    for report in reports {
        println!("{}", line(report));
        total += report.tally;
        took += report.took;
    }
    println!("{:<12} {:<6} {:>7.1} s", "all", "", took.as_secs_f64());
    println!("\n{total}");
    total.failed == 0
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Options, Step, chosen, line, report};
    use crate::tally::Tally;

    #[test]
    fn only_brings_along_what_is_needed_and_skip_wins() {
        let options =
            |only: &[Step], skip: &[Step]| Options { only: only.into(), skip: skip.into() };
        assert_eq!(chosen(&options(&[], &[])).len(), 8);
        let peers = [Step::Install, Step::Build, Step::Peers];
        assert_eq!(chosen(&options(&[Step::Peers], &[])), peers);
        assert_eq!(chosen(&options(&[Step::Peers], &[Step::Install])), peers[1..]);
    }

    #[test]
    fn a_step_that_cannot_run_counts_as_a_failure() {
        let failed = report(Step::Build, Duration::ZERO, Err(anyhow::anyhow!("no compiler")));
        assert_eq!(failed.tally, Tally { passed: 0, failed: 1 });
        assert!(line(&failed).contains("FAILED") && line(&failed).ends_with("no compiler"));
        let good = report(Step::Unit, Duration::ZERO, Ok(Tally { passed: 3, failed: 0 }));
        assert!(line(&good).ends_with("3 passed, 0 failed"));
    }
}
