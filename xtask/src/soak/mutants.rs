//! Faults put into the code one by one, by cargo-mutants. One that no test notices is a failure.
//!
//! `.cargo/mutants.toml` lists the faults that are left out, each with its reason.

use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result, bail};
use fs_err as fs;
use serde_json::Value;

use crate::process;
use crate::tally::Tally;
use crate::workspace::{self, cargo};

/// A part of the workspace whose tests must notice each fault.
#[derive(Clone, Copy, Debug)]
pub(super) struct Target {
    name: &'static str,
    /// The crate, without `narthex-`.
    package: &'static str,
    /// Globs of the mutated files, from the root of the workspace; empty for the whole crate.
    files: &'static [&'static str],
}

/// All parts, the quickest first.
const TARGETS: [Target; 5] = [
    Target {
        name: "translation",
        package: "wire",
        files: &[
            "crates/words/wire/src/era.rs",
            "crates/words/wire/src/translate.rs",
            "crates/words/wire/src/translate/**/*.rs",
        ],
    },
    Target {
        name: "verifier",
        package: "audit",
        files: &[
            "crates/control-plane/audit/src/canonical.rs",
            "crates/control-plane/audit/src/chain.rs",
            "crates/control-plane/audit/src/verify.rs",
            "crates/control-plane/audit/src/verify/**/*.rs",
        ],
    },
    Target { name: "policy", package: "policy", files: &[] },
    Target { name: "vault", package: "vault", files: &[] },
    Target {
        name: "redaction",
        package: "wire",
        files: &["crates/words/wire/src/redact.rs", "crates/words/wire/src/redact/**/*.rs"],
    },
];

/// The part with this name, for `--mutate`.
///
/// # Errors
///
/// Names the parts if none has this name.
pub(super) fn target(name: &str) -> Result<Target, String> {
    let target = TARGETS.into_iter().find(|target| target.name == name);
    target.ok_or_else(|| {
        let names: Vec<_> = TARGETS.iter().map(|target| target.name).collect();
        format!("the parts are {}", names.join(", "))
    })
}

/// A share of the mutants: all of them take a night.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Share {
    /// From 0.
    number: u64,
    /// Number of shares.
    of: u64,
}

/// Number of shares, which successive days try one after the other.
const SHARES: u64 = 16;
const SECONDS_OF_DAY: u64 = 24 * 60 * 60;

impl Default for Share {
    /// The share of this day.
    fn default() -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { number: now.as_secs() / SECONDS_OF_DAY % SHARES, of: SHARES }
    }
}

/// Reads a share, such as `3/16` or `0/1`, for `--share`.
///
/// # Errors
///
/// Names the form.
pub(super) fn share(text: &str) -> Result<Share, String> {
    let numbers = text.split_once('/').and_then(|(number, of)| {
        Some(Share { number: number.parse().ok()?, of: of.parse().ok()? })
    });
    numbers.filter(|share| share.number < share.of).ok_or_else(|| {
        "a share is a number from 0 and the number of shares, such as 3/16; 0/1 is all".to_owned()
    })
}

/// Mutates the chosen parts one after the other, or all of them if none is chosen.
pub(super) fn run(chosen: &[Target], share: Share) -> Result<Tally> {
    let Share { number, of } = share;
    println!("share {number} of {of}: `--share 0/1` tries all mutants");
    if !process::answers("cargo", &["mutants", "--version"]) {
        process::run(&mut cargo(&["install", "--locked", "cargo-mutants"]))?;
    }
    let mut tally = Tally::default();
    for target in if chosen.is_empty() { &TARGETS[..] } else { chosen } {
        tally += target.mutate(share)?;
    }
    Ok(tally)
}

impl Target {
    /// Mutates this part and runs the tests of its crate. The outcomes are read from the report of
    /// cargo-mutants, so a run that broke off is an error and not a success.
    fn mutate(&self, share: Share) -> Result<Tally> {
        let out = workspace::target().join("soak/mutants").join(self.name);
        if out.exists() {
            fs::remove_dir_all(&out)?;
        }
        fs::create_dir_all(&out)?;
        let package = format!("narthex-{}", self.package);
        let mut command = cargo(&["mutants", "--package", &package, "--no-shuffle", "--in-place"]);
        for glob in self.files {
            command.args(["--file", glob]);
        }
        // Every n-th mutant, so that each share has some of each file.
        let number = format!("{}/{}", share.number, share.of);
        command.args(["--sharding", "round-robin", "--shard", &number]);
        command.arg("--output").arg(&out);
        // A stored counterexample would make the tests notice later mutants by luck.
        command.env("PROPTEST_DISABLE_FAILURE_PERSISTENCE", "true");
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
            bail!("cargo-mutants failed for {}, see above", self.name);
        }
        if caught + timed_out + missed == 0 {
            bail!("cargo-mutants found nothing to mutate in {}", self.name);
        }
        // A mutant that hangs its tests was noticed: the run would never have been green.
        Ok(Tally { passed: caught + timed_out, failed: missed })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file that moves would leave its part, and cargo-mutants says nothing of a glob without a
    /// file as long as another glob has one.
    #[test]
    fn every_mutated_part_names_a_crate_and_files_that_exist() {
        let workspace = fs::read_to_string(workspace::root().join("Cargo.toml")).unwrap();
        for target in TARGETS {
            let package = format!("\nnarthex-{} = {{ path", target.package);
            assert!(workspace.contains(&package), "{target:?}: {package:?}");
            for glob in target.files {
                let (path, is_folder) = match glob.strip_suffix("/**/*.rs") {
                    Some(folder) => (folder, true),
                    None => (*glob, false),
                };
                let path = workspace::root().join(path);
                assert!(if is_folder { path.is_dir() } else { path.is_file() }, "{glob}");
            }
        }
    }

    #[test]
    fn a_share_is_a_number_below_the_number_of_shares() {
        assert_eq!(share("3/16").unwrap(), Share { number: 3, of: 16 });
        assert_eq!(share("0/1").unwrap(), Share { number: 0, of: 1 });
        for other in ["16/16", "3", "/", "-1/2", "0/0", ""] {
            assert!(share(other).unwrap_err().contains("such as 3/16"), "{other}");
        }
        assert!(Share::default().number < Share::default().of);
    }

    #[test]
    fn every_fault_that_is_left_out_has_a_reason() {
        let text = fs::read_to_string(workspace::root().join(".cargo/mutants.toml")).unwrap();
        let (_, list) = text.split_once("exclude_re = [").expect("a list of faults");
        let mut before = "";
        let lines = list.lines().map(str::trim).filter(|line| !line.is_empty());
        for line in lines.take_while(|line| *line != "]") {
            assert!(line.starts_with('#') || before.starts_with('#'), "no reason: {line}");
            before = line;
        }
        assert_ne!(before, "", "the list was read");
    }

    #[test]
    fn a_part_without_this_name_is_refused_with_the_names() {
        assert_eq!(target("vault").unwrap().package, "vault");
        assert_eq!(
            target("wire").unwrap_err(),
            "the parts are translation, verifier, policy, vault, redaction"
        );
    }
}
