//! Faults put into the code one by one, by cargo-mutants. One that no test notices is a failure.
//!
//! `.cargo/mutants.toml` lists the faults that are left out, each with its reason.

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

/// Mutates the chosen parts one after the other, or all of them if none is chosen.
pub(super) fn run(chosen: &[Target]) -> Result<Tally> {
    if !process::answers("cargo", &["mutants", "--version"]) {
        process::run(&mut cargo(&["install", "--locked", "cargo-mutants"]))?;
    }
    let mut tally = Tally::default();
    for target in if chosen.is_empty() { &TARGETS[..] } else { chosen } {
        tally += target.mutate()?;
    }
    Ok(tally)
}

impl Target {
    /// Mutates this part and runs the tests of its crate. The outcomes are read from the report of
    /// cargo-mutants, so a run that broke off is an error and not a success.
    fn mutate(&self) -> Result<Tally> {
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
