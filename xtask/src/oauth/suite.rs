//! One scenario of the suite: how it is run, and how its checks are read.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use fs_err as fs;
use serde::Deserialize;

use super::scenarios::Revision;
use crate::peers::Peers;
use crate::process;
use crate::workspace;

/// The suite ends a client after 30 s, and the driver itself after 25 s.
const DONE: Duration = Duration::from_secs(60);
/// The npm package, by its alias in `e2e/peers/node/package.json`.
const PACKAGE: &str = "conformance-next";
const DRIVER: &str = "e2e/clients/conformance.mjs";
/// Lines of the driver's output that a failure quotes.
const QUOTED: usize = 20;

/// One check, as the suite records it.
#[derive(Deserialize)]
struct Check {
    id: String,
    name: String,
    status: String,
    #[serde(default)]
    description: String,
    #[serde(rename = "errorMessage")]
    error: Option<String>,
}

/// Runs a scenario with narthex as the client. Gives the number of different checks that pass.
pub(super) fn run(peers: &Peers, logs: &Path, revision: &Revision, scenario: &str) -> Result<u64> {
    let name = format!("auth/{scenario}");
    let details = logs.join(revision.name).join(scenario);
    let mut command = Command::new(peers.node());
    command.arg(peers.module(PACKAGE).join("dist/index.js"));
    command.args(["client", "--scenario", &name, "--command", &driver(peers)]);
    command.args(revision.version.iter().flat_map(|version| ["--spec-version", *version]));
    command.arg("-o").arg(&details);
    let done = process::capture(&mut command, DONE)?;
    let output = format!("{}{}", done.stdout, done.stderr);
    let folder = results(&details, &name).with_context(|| format!("no results\n{output}"))?;
    fs::write(details.join("suite.log"), &output)?;
    let checks: Vec<Check> = serde_json::from_slice(&fs::read(folder.join("checks.json"))?)?;
    let said = fs::read_to_string(folder.join("stderr.txt")).unwrap_or_default();
    ensure!(
        done.status.success(),
        "the suite ended with {}{}{}",
        done.status,
        refused(&checks),
        end_of(&said)
    );
    Ok(passed(&checks))
}

/// The command line of the driver. The suite gives it to a shell.
fn driver(peers: &Peers) -> String {
    let script = workspace::root().join(DRIVER);
    let words = [peers.node(), script, peers.node_dir(), workspace::built("narthex")];
    let quoted = words.map(|word| format!("'{}'", word.display()));
    quoted.join(" ")
}

/// The folder with the results of a scenario, which the suite names by the time.
fn results(details: &Path, name: &str) -> Result<PathBuf> {
    let prefix = details.join(name);
    let parent = prefix.parent().context("a scenario has a suite")?;
    let entry = fs::read_dir(parent)?.next().context("the suite has written nothing")?;
    Ok(entry?.path())
}

/// Number of different checks that pass each time.
fn passed(checks: &[Check]) -> u64 {
    let good = ids(checks, |status| status == "SUCCESS");
    let bad = ids(checks, is_bad);
    good.difference(&bad).map(|_| 1).sum()
}

/// The checks with a status, each once.
fn ids(checks: &[Check], is_wanted: fn(&str) -> bool) -> BTreeSet<&str> {
    let wanted = checks.iter().filter(|check| is_wanted(&check.status));
    wanted.map(|check| check.id.as_str()).collect()
}

/// True for the status of a check that is not as it should be. A warning fails a scenario, too.
fn is_bad(status: &str) -> bool {
    status == "FAILURE" || status == "WARNING"
}

/// The checks that do not pass, a line each.
fn refused(checks: &[Check]) -> String {
    let bad = checks.iter().filter(|check| is_bad(&check.status));
    let line = |check: &Check| {
        let why = check.error.as_deref().unwrap_or(&check.description);
        format!("\n    {} {}: {why}", check.status, check.name)
    };
    bad.map(line).collect()
}

/// The end of the driver's output.
fn end_of(said: &str) -> String {
    let lines: Vec<&str> = said.lines().collect();
    let end = lines.iter().skip(lines.len().saturating_sub(QUOTED));
    end.map(|line| format!("\n    | {line}")).collect()
}

#[cfg(test)]
mod tests {
    use fs_err as fs;

    use super::{Check, end_of, passed, refused, results};

    const CHECKS: &str = r#"[
        { "id": "token-request", "name": "A", "status": "SUCCESS", "description": "a" },
        { "id": "token-request", "name": "A", "status": "SUCCESS", "description": "a" },
        { "id": "request", "name": "B", "status": "INFO", "description": "b" },
        { "id": "scope", "name": "C", "status": "SUCCESS", "description": "c" },
        { "id": "scope", "name": "C", "status": "WARNING", "description": "c",
          "errorMessage": "dropped" },
        { "id": "pkce", "name": "D", "status": "FAILURE" }
    ]"#;

    #[test]
    fn different_checks_count_once_and_only_if_none_of_them_fails() {
        let checks: Vec<Check> = serde_json::from_str(CHECKS).unwrap();
        assert_eq!(passed(&checks), 1);
        assert_eq!(refused(&checks), "\n    WARNING C: dropped\n    FAILURE D: ");
        assert_eq!(passed(&[]), 0);
    }

    #[test]
    fn a_failure_quotes_the_end_of_the_output() {
        let said: String = (0..30).map(|number| format!("{number}\n")).collect();
        let quoted = end_of(&said);
        assert!(quoted.starts_with("\n    | 10\n") && quoted.ends_with("| 29"), "{quoted}");
        assert_eq!(end_of(""), "");
    }

    #[test]
    fn results_are_found_whatever_the_time() {
        let dir = tempfile::tempdir().unwrap();
        assert!(results(dir.path(), "auth/basic-cimd").is_err());
        let made = dir.path().join("auth/basic-cimd-2026-11-27T19-53-38-971Z");
        fs::create_dir_all(&made).unwrap();
        assert_eq!(results(dir.path(), "auth/basic-cimd").unwrap(), made);
    }
}
