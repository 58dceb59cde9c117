//! The steps that cargo carries out: tests of the crates, of the documentation, and the build.

use std::collections::BTreeSet;
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::{counts, files, keychain, postgres::Postgres, units};
use crate::process;
use crate::tally::Tally;
use crate::workspace::cargo;

/// The effort of the tests of the crates.
pub(super) enum Effort {
    /// The effort for every change.
    Short,
    /// Simulations, properties and fuzz targets take this many times as many rounds, and no test
    /// has a second chance.
    Long { rounds: u32 },
}

impl Effort {
    fn tell(&self, command: &mut Command) {
        if let Self::Long { rounds } = self {
            command.env(ROUNDS, rounds.to_string());
            command.env("PROPTEST_CASES", (rounds * PROPTEST_CASES).to_string());
        }
    }

    fn retries(&self) -> &'static str {
        match self {
            Self::Short => "1",
            Self::Long { .. } => "0",
        }
    }
}

/// Multiplies rounds. Has to be what `narthex_testkit::rounds` asks for.
const ROUNDS: &str = "NARTHEX_TEST_ROUNDS";
/// Tests, by binary and name, that may pass only when run once more, each with the reason. Aim for
/// none.
const FLAKY: [(&str, &str); 0] = [];
/// The test that kills daemons during renewals, and the variables with the number of its seeds and
/// with the one to be repeated. Have to be those of `crates/command/narthex/tests/it`.
const KILLED: &str = "killed_renewals::c23_a_killed_renewal_ends_no_call";
const KILLS: &str = "NARTHEX_TEST_KILLS";
const SEED: &str = "NARTHEX_TEST_SEED";
/// The number of cases of proptest without a setting.
const PROPTEST_CASES: u32 = 256;

/// All tests of all crates, with cargo-nextest if it is there, one PostgreSQL for all of them, and
/// the programs of a keychain. Where these cannot be had, what needs none is tested all the same,
/// and the step has a failure for each.
///
/// In a short run, one that fails is run once more, which tells a race from a plain fault. A test
/// that passes only then counts as failed, unless it is listed in [`FLAKY`].
pub(super) fn unit(effort: &Effort) -> Result<Tally> {
    // With the features of the tests: the program of PostgreSQL alone would have others, and most
    // dependencies would be compiled a second time.
    let postgres = build().and_then(|_built| Postgres::start());
    if let Err(why) = &postgres {
        println!("=== no PostgreSQL: {why:#}");
    }
    let keychain = keychain::provide();
    let confinement = units::provide_confinement();
    let (files, units) = (files::provide(), units::provide());
    let mut tally = every_crate(effort, postgres.as_ref().ok(), keychain.is_ok())?;
    let missing = [
        ("the store on PostgreSQL", postgres.err()),
        ("the Secret Service", keychain.err()),
        ("confined servers", confinement.err()),
        ("servers as files", files.err()),
        ("units of systemd", units.err()),
    ];
    for (tested, why) in missing {
        let Some(why) = why else { continue };
        println!("=== SKIPPED: {tested}, which counts as 1 failed: {why:#}");
        tally.failed += 1;
    }
    Ok(tally)
}

fn every_crate(effort: &Effort, postgres: Option<&Postgres>, has_keychain: bool) -> Result<Tally> {
    let told = |args: &[&str]| {
        let mut command = cargo(args);
        effort.tell(&mut command);
        if let Some(postgres) = postgres {
            postgres.tell(&mut command);
        }
        if has_keychain {
            keychain::tell(&mut command);
        }
        command
    };
    if !process::answers("cargo", &["nextest", "--version"]) {
        println!("cargo-nextest is not installed, `cargo test` runs the same tests, less fast");
        let run = ["test", "--workspace", "--lib", "--bins", "--tests", "--no-fail-fast"];
        return libtest(&mut told(&run));
    }
    let run = ["nextest", "run", "--workspace", "--no-fail-fast", "--no-tests", "pass"];
    let quiet = ["--status-level", "slow", "--final-status-level", "flaky"];
    let threads = threads().to_string();
    let how = ["--retries", effort.retries(), "--test-threads", &threads];
    let quiet = [quiet.as_slice(), &how].concat();
    let shown = process::show(&mut told(&[run.as_slice(), quiet.as_slice()].concat()))?;
    let tally = counts::nextest(&shown.output).context("the tests did not run, see above")?;
    judge(shown.is_success, without_flaky(tally, &counts::flaky(&shown.output)))
}

/// Number of tests at one time: three for two cores, since most of their time tests wait.
fn threads() -> usize {
    std::thread::available_parallelism().map_or(2, std::num::NonZero::get) * 3 / 2
}

/// Counts a test that passed only when it was run once more as failed, unless it is listed.
fn without_flaky(mut tally: Tally, flaky: &BTreeSet<String>) -> Tally {
    for name in flaky {
        match FLAKY.iter().find(|(known, _)| known == name) {
            Some((_, reason)) => println!("=== FLAKY, as is known ({reason}): {name}"),
            None => {
                println!("=== FLAKY, which counts as 1 failed: {name}: a race to be found");
                tally.passed = tally.passed.saturating_sub(1);
                tally.failed += 1;
            }
        }
    }
    tally
}

/// Kills daemons during renewals of tokens. Each seed counts, and prints its outcome.
pub(super) fn kills(seeds: u64, seed: Option<u64>) -> Result<Tally> {
    build()?;
    let postgres = Postgres::start()?;
    // All crates, so that they have the features of the other steps.
    let mut command = cargo(&["test", "--workspace", "--test", "it", "--no-fail-fast", "--"]);
    command.args(["--exact", KILLED, "--nocapture"]);
    postgres.tell(&mut command);
    command.env(KILLS, seeds.to_string());
    if let Some(seed) = seed {
        command.env(SEED, seed.to_string());
    }
    let shown = process::show(&mut command)?;
    let planned = if seed.is_some() { 1 } else { seeds };
    judge(shown.is_success, counts::seeds(&shown.output, planned))
}

/// The examples in the documentation, which cargo-nextest cannot run.
pub(super) fn doc() -> Result<Tally> {
    libtest(&mut cargo(&["test", "--workspace", "--doc", "--no-fail-fast"]))
}

/// The programs that the steps after this one start.
///
/// They have the features of the tests: examples make cargo count the dependencies of tests too.
/// Programs with features of their own would need every crate to be compiled a second time.
pub(super) fn build() -> Result<Tally> {
    let args = ["build", "--workspace", "--bins", "--examples"];
    process::run(&mut cargo(&args))?;
    Ok(Tally::default())
}

fn libtest(command: &mut Command) -> Result<Tally> {
    let shown = process::show(command)?;
    judge(shown.is_success, counts::libtest(&shown.output))
}

/// A runner that fails without a failed test has not run them all.
fn judge(is_success: bool, tally: Tally) -> Result<Tally> {
    if !is_success && tally.failed == 0 {
        bail!("the tests did not all run, see above ({tally})");
    }
    Ok(tally)
}

#[cfg(test)]
mod tests {
    use super::without_flaky;
    use crate::tally::Tally;

    #[test]
    fn a_test_that_passes_only_the_second_time_has_failed() {
        let tally = Tally { passed: 4, failed: 1 };
        let counted = without_flaky(tally, &["narthex-a x".to_owned()].into());
        assert_eq!((counted.passed, counted.failed), (3, 2));
    }
}
