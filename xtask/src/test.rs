//! `cargo xtask test`: the steps that CI runs, each timed, with one summary at the end.

mod counts;
mod files;
mod keychain;
mod postgres;
mod runners;
mod units;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};

use crate::peers::Peers;
use crate::steps::{self, Ran};
use crate::tally::Tally;
use crate::{bench, check, conformance, console, oauth, peers, schemathesis};

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
    /// Instructions of a call and memory of an idle daemon, against limits; calls with a token of
    /// OAuth, against those with an API key.
    Cost,
    /// The conformance suites, directly and through the gateway.
    Conformance,
    /// Sign-ins by OAuth, at real authorization servers and at the door, and the suite's scenarios.
    Oauth,
    /// Real clients and servers through the gateway.
    Peers,
    /// Requests that schemathesis makes from the OpenAPI document, allowed ones and others.
    Openapi,
    /// The pages of the console in a browser.
    Console,
}

/// Number of steps at one time, where steps can run side by side.
const AT_ONCE: usize = 1;

impl Step {
    /// The first step of those that run side by side. They need nothing of each other, and some of
    /// them wait: for downloads, for answers, and for programs to start.
    fn beside(self) -> Self {
        match self {
            Self::Install => Self::Check,
            Self::Oauth | Self::Peers | Self::Openapi | Self::Console => Self::Conformance,
            Self::Check | Self::Unit | Self::Doc | Self::Build | Self::Cost | Self::Conformance => {
                self
            }
        }
    }

    fn needs(self) -> &'static [Self] {
        match self {
            Self::Conformance | Self::Oauth | Self::Peers | Self::Openapi | Self::Console => {
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
            Self::Console => console::run(&Peers::install()?),
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
    for group in steps.chunk_by(|first, second| first.beside() == second.beside()) {
        let names: Vec<String> = group.iter().map(|step| step.name()).collect();
        let (first, last) = (ran.len() + 1, ran.len() + group.len());
        println!("\n=== {first} to {last} of {}: {}", steps.len(), names.join(", "));
        let reports = side_by_side(group, |step| {
            let is_broken =
                |need: &Step| ran.iter().any(|(step, ran)| step == need && !ran.is_good());
            let broken = step.needs().iter().find(|need| is_broken(need));
            Ran::of(step.name(), || match broken {
                Some(need) => bail!("cannot run since {} failed", need.name()),
                None => step.run(),
            })
        });
        ran.extend(group.iter().copied().zip(reports));
    }
    let ran: Vec<Ran> = ran.into_iter().map(|(_, ran)| ran).collect();
    Ok(steps::summary(&ran))
}

/// Does the work for all of these, [`AT_ONCE`] at one time. Gives the results in the same order.
fn side_by_side<T: Copy + Sync, R: Send>(all: &[T], work: impl Fn(T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let worker = || {
        let mut done = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(one) = all.get(index) else { return done };
            done.push((index, work(*one)));
        }
    };
    let mut done: Vec<(usize, R)> = thread::scope(|scope| {
        let workers: Vec<_> = (0..AT_ONCE).map(|_| scope.spawn(worker)).collect();
        let done = |running: thread::ScopedJoinHandle<'_, Vec<(usize, R)>>| {
            running.join().expect("a step does not panic")
        };
        workers.into_iter().flat_map(done).collect()
    });
    done.sort_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, result)| result).collect()
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

/// Kills daemons during renewals of tokens: by so many seeds, or by one seed again.
pub(crate) fn kills(seeds: u64, seed: Option<u64>) -> Result<Tally> {
    runners::kills(seeds, seed)
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum as _;

    use super::{Options, Step, chosen, side_by_side};

    #[test]
    fn only_includes_needed_steps_and_skip_wins() {
        let options =
            |only: &[Step], skip: &[Step]| Options { only: only.into(), skip: skip.into() };
        assert_eq!(chosen(&options(&[], &[])).len(), Step::value_variants().len());
        let peers = [Step::Install, Step::Build, Step::Peers];
        assert_eq!(chosen(&options(&[Step::Peers], &[])), peers);
        assert_eq!(chosen(&options(&[Step::Peers], &[Step::Install])), peers[1..]);
    }

    #[test]
    fn steps_side_by_side_each_run_once_and_report_in_order() {
        let all: Vec<u32> = (0..50).collect();
        let doubled: Vec<u32> = all.iter().map(|one| one * 2).collect();
        assert_eq!(side_by_side(&all, |one| one * 2), doubled);
        assert!(side_by_side(&[], |one: u32| one).is_empty());
    }

    #[test]
    fn no_step_runs_beside_one_that_it_needs() {
        for step in Step::value_variants() {
            for need in step.needs() {
                assert_ne!(step.beside(), need.beside(), "{step:?} needs {need:?}");
            }
        }
    }
}
