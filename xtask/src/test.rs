//! `cargo xtask test`: the steps that CI runs, each timed, with one summary at the end.

mod counts;
mod files;
mod keychain;
mod postgres;
mod runners;
mod units;

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};

use crate::peers::Peers;
use crate::steps::{self, Ran};
use crate::tally::Tally;
use crate::{bench, check, conformance, oauth, peers, schemathesis};

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
    /// Instructions of a call and memory of an idle daemon, against limits.
    Cost,
    /// The conformance suites, directly and through the gateway.
    Conformance,
    /// Sign-ins by OAuth, at real authorization servers and at the door, and the suite's scenarios.
    Oauth,
    /// Real clients and servers through the gateway.
    Peers,
    /// Requests that schemathesis makes from the OpenAPI document, allowed ones and others.
    Openapi,
}

impl Step {
    fn needs(self) -> &'static [Self] {
        match self {
            Self::Conformance | Self::Oauth | Self::Peers | Self::Openapi => {
                &[Self::Install, Self::Build]
            }
            Self::Cost => &[Self::Build],
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
            Self::Unit => runners::unit(&runners::Effort::Short),
            Self::Doc => runners::doc(),
            Self::Build => runners::build(),
            Self::Cost => bench::guard::check(),
            Self::Conformance => conformance::run(&Peers::install()?),
            Self::Oauth => oauth::run(&Peers::install()?),
            Self::Peers => peers::run(&Peers::install()?),
            Self::Openapi => schemathesis::run(&Peers::install()?),
        }
    }
}

/// Runs the chosen steps, also after one has failed. False if any has.
pub(crate) fn run(options: &Options) -> Result<bool> {
    let steps = chosen(options);
    if steps.is_empty() {
        bail!("no step is left to run");
    }
    let mut ran: Vec<(Step, Ran)> = Vec::new();
    for (index, step) in steps.iter().enumerate() {
        println!("\n=== {}/{} {}", index + 1, steps.len(), step.name());
        let broken = step
            .needs()
            .iter()
            .find(|need| ran.iter().any(|(step, ran)| step == *need && !ran.is_good()));
        let report = Ran::of(step.name(), || match broken {
            Some(need) => bail!("cannot run since {} failed", need.name()),
            None => step.run(),
        });
        ran.push((*step, report));
    }
    let ran: Vec<Ran> = ran.into_iter().map(|(_, ran)| ran).collect();
    Ok(steps::summary(&ran))
}

fn chosen(options: &Options) -> Vec<Step> {
    let is_wanted = |step: &Step| {
        options.only.is_empty()
            || options.only.iter().any(|only| only == step || only.needs().contains(step))
    };
    let all = Step::value_variants().iter().copied();
    all.filter(is_wanted).filter(|step| !options.skip.contains(step)).collect()
}

/// Builds the programs that tests of whole programs start.
pub(crate) fn build_programs() -> Result<()> {
    runners::build().map(|_| ())
}

/// Runs the tests of all crates with `rounds` times as many rounds, each test once.
pub(crate) fn long_unit(rounds: u32) -> Result<Tally> {
    runners::unit(&runners::Effort::Long { rounds })
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum as _;

    use super::{Options, Step, chosen};

    #[test]
    fn only_includes_needed_steps_and_skip_wins() {
        let options =
            |only: &[Step], skip: &[Step]| Options { only: only.into(), skip: skip.into() };
        assert_eq!(chosen(&options(&[], &[])).len(), Step::value_variants().len());
        let peers = [Step::Install, Step::Build, Step::Peers];
        assert_eq!(chosen(&options(&[Step::Peers], &[])), peers);
        assert_eq!(chosen(&options(&[Step::Peers], &[Step::Install])), peers[1..]);
    }
}
