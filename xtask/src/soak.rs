//! `cargo xtask soak`: the tests that take too long for every change.
//!
//! Each step looks for faults that a short run seldom shows: rare orders of events, leaks under
//! load, costs that grow with numbers, and tests that no fault makes fail. It is run whole before a
//! release, and its last line counts what passed.

mod load;
mod mutants;
mod scale;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::Result;
use clap::{Args, ValueEnum};
use fs_err as fs;
use serde_json::Value;

use crate::process::Service;
use crate::steps::{self, Ran};
use crate::tally::Tally;
use crate::{dist, test, workspace};

/// Longest time until a server listens.
const LISTENING: Duration = Duration::from_secs(60);

#[derive(Args)]
pub(crate) struct Options {
    /// Run only these steps.
    #[arg(long, value_name = "STEP")]
    only: Vec<Step>,
    /// Leave these steps out.
    #[arg(long, value_name = "STEP")]
    skip: Vec<Step>,
    /// Multiply the rounds of simulations, properties and fuzz targets.
    #[arg(long, value_name = "N", default_value_t = 10)]
    rounds: u32,
    /// Kill a daemon during a renewal by this many seeds.
    #[arg(long, value_name = "N", default_value_t = 200)]
    kills: u64,
    /// Repeat one seed of `kills` alone.
    #[arg(long, value_name = "SEED")]
    seed: Option<u64>,
    /// Keep the daemon under load for this long.
    #[arg(long, value_name = "MINUTES", default_value_t = 10)]
    minutes: u32,
    /// Mutate only these parts of the code.
    #[arg(long, value_name = "PART", value_parser = mutants::target)]
    mutate: Vec<mutants::Target>,
    /// Try this share of the mutants [default: one of 16, another one each day].
    #[arg(long, value_name = "K/N", value_parser = mutants::share)]
    share: Option<mutants::Share>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Step {
    /// All tests of all crates, with many more rounds, and none run a second time.
    Rounds,
    /// Two daemons on one PostgreSQL, one of them killed during a renewal of tokens, by many seeds.
    Kills,
    /// A daemon under load for minutes: calls in both eras, reloads, sessions that come and go.
    Load,
    /// Thousands of tools, runs and servers at one daemon.
    Scale,
    /// Faults put into the code one by one: a test must notice each.
    Mutants,
    /// The packages of a release, each installed in a clean place and tried there.
    Packages,
}

/// Runs the chosen steps, also after one has failed. False if any has.
pub(crate) fn run(options: &Options) -> Result<bool> {
    let all = Step::value_variants().iter().copied();
    let is_wanted = |step: &Step| options.only.is_empty() || options.only.contains(step);
    let chosen: Vec<Step> =
        all.filter(is_wanted).filter(|step| !options.skip.contains(step)).collect();
    anyhow::ensure!(!chosen.is_empty(), "no step is left to run");
    let mut ran = Vec::new();
    for (index, step) in chosen.iter().enumerate() {
        let name = format!("{step:?}").to_lowercase();
        println!("\n=== {}/{} {name}", index + 1, chosen.len());
        ran.push(Ran::of(name, || step.run(options)));
    }
    Ok(steps::summary(&ran))
}

impl Step {
    fn run(self, options: &Options) -> Result<Tally> {
        match self {
            Self::Rounds => test::long_unit(options.rounds),
            Self::Kills => test::kills(options.kills, options.seed),
            Self::Load => load::run(Duration::from_secs(60 * u64::from(options.minutes))),
            Self::Scale => scale::run(),
            Self::Mutants => mutants::run(&options.mutate, options.share.unwrap_or_default()),
            Self::Packages => dist::check_all(),
        }
    }
}

/// Builds the daemon and its test servers, and gives the folder for logs of a step.
fn prepare(step: &str) -> Result<PathBuf> {
    test::build_programs()?;
    let logs = workspace::target().join("soak").join(step);
    fs::create_dir_all(&logs)?;
    Ok(logs)
}

/// A test server over HTTP.
struct Fixture {
    url: String,
    _service: Service,
}

impl Fixture {
    /// Starts one that speaks `eras` and has `tools` generated tools besides its own.
    fn start(eras: &str, tools: usize, log: &Path) -> Result<Self> {
        let mut command = Command::new(workspace::built("narthex-fixture"));
        command.args(["--http", "127.0.0.1:0", "--eras", eras, "--tools", &tools.to_string()]);
        let service = Service::start("narthex-fixture", &mut command, log)?;
        let url = service.wait_for("line with its url", LISTENING, |line| {
            let value: Value = serde_json::from_str(line).ok()?;
            value["url"].as_str().map(str::to_owned)
        })?;
        Ok(Self { url, _service: service })
    }
}
