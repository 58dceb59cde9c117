//! The specs of the console in a browser: `e2e/console`, by the test runner of the pinned Node.

use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use fs_err as fs;

use crate::peers::{BrowserTools, Peers};
use crate::process;
use crate::tally::Tally;
use crate::workspace;

/// Longest time for all specs, each of which starts a daemon and a browser.
const DONE: Duration = Duration::from_secs(900);
/// The folder of the specs.
const SPECS: &str = "e2e/console";

/// Runs all specs. Their pictures stay in the build folder, for the eye.
pub(crate) fn run(peers: &Peers) -> Result<Tally> {
    let tools = BrowserTools::install()?;
    let folder = workspace::target().join("e2e/console");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    let mut command = Command::new(peers.node());
    command.args(["--test", "--test-reporter=tap", "--test-concurrency=2"]);
    command.args(specs()?);
    command.env("CONSOLE_NARTHEX", workspace::built("narthex"));
    command.env("CONSOLE_MODULES", tools.dir());
    command.env("CONSOLE_PEERS", peers.node_dir());
    command.env("CONSOLE_CHROMIUM", tools.chromium());
    command.env("CONSOLE_FOLDER", &folder);
    let done = process::capture(command.current_dir(workspace::root()), DONE)?;
    let (passed, failed) = (count(&done.stdout, "pass")?, count(&done.stdout, "fail")?);
    if failed > 0 || !done.status.success() {
        println!("{}{}", done.stdout, done.stderr);
    }
    println!("  pictures of the pages are in {}", folder.join("pictures").display());
    if passed == 0 {
        bail!("no spec of {SPECS} has run");
    }
    Ok(Tally { passed, failed })
}

fn specs() -> Result<Vec<String>> {
    let mut all = Vec::new();
    for entry in fs::read_dir(workspace::root().join(SPECS))? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name.ends_with(".spec.mjs") {
            all.push(format!("{SPECS}/{name}"));
        }
    }
    all.sort();
    Ok(all)
}

/// The number behind a word in the summary of the runner.
fn count(report: &str, word: &str) -> Result<u64> {
    let line = report.lines().rev().find_map(|line| line.strip_prefix(&format!("# {word} ")));
    let line =
        line.with_context(|| format!("the runner printed no number of `{word}`: {report}"))?;
    line.trim().parse().with_context(|| format!("`{line}` is no number"))
}

#[cfg(test)]
mod tests {
    use super::count;

    #[test]
    fn reads_the_numbers_of_the_runners_summary() {
        let report = "TAP version 13\n# pass 1\nok 1 - x\n# tests 9\n# pass 7\n# fail 2\n";
        assert_eq!(count(report, "pass").unwrap(), 7);
        assert_eq!(count(report, "fail").unwrap(), 2);
        assert!(count("nothing", "pass").is_err());
    }
}
