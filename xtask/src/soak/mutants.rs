//! Faults put into the code one by one, by cargo-mutants. One that no test notices is a failure.

use anyhow::{Context as _, Result, bail};
use fs_err as fs;
use serde_json::Value;

use crate::process;
use crate::tally::Tally;
use crate::workspace::{self, cargo};

pub(super) fn run(crates: &[String]) -> Result<Tally> {
    if !process::answers("cargo", &["mutants", "--version"]) {
        process::run(&mut cargo(&["install", "--locked", "cargo-mutants"]))?;
    }
    let mut tally = Tally::default();
    for name in crates {
        tally += mutate(name)?;
    }
    Ok(tally)
}

/// Mutates one crate and runs its own tests. The outcomes are read from cargo-mutants' report, so a
/// run that broke off is an error and not a success.
fn mutate(name: &str) -> Result<Tally> {
    let out = workspace::target().join("soak/mutants").join(name);
    if out.exists() {
        fs::remove_dir_all(&out)?;
    }
    fs::create_dir_all(&out)?;
    let package = format!("narthex-{name}");
    let mut command = cargo(&["mutants", "--package", &package, "--no-shuffle", "--in-place"]);
    command.arg("--output").arg(&out);
    // Exit code 2 means missed mutants, 3 means timed-out tests: both are in the report.
    let shown = process::show(&mut command)?;
    let report = out.join("mutants.out/outcomes.json");
    let report: Value = serde_json::from_str(&fs::read_to_string(&report)?)
        .with_context(|| format!("{} is no report", report.display()))?;
    let count = |what: &str| {
        report[what].as_u64().with_context(|| format!("the report does not count `{what}`"))
    };
    let (caught, timed_out, missed) = (count("caught")?, count("timeout")?, count("missed")?);
    if !shown.is_success && missed + timed_out == 0 {
        bail!("cargo-mutants failed for {package}, see above");
    }
    // A mutant that hangs its tests was noticed: the run would never have been green.
    Ok(Tally { passed: caught + timed_out, failed: missed })
}
