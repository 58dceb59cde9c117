//! The cost of a registry with a thousand rows, measured in a process of its own.

use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::Options;
use super::results::RegistryCost;
use crate::process::{capture, run};
use crate::workspace;

const ROWS: &str = "1000";
const DONE: Duration = Duration::from_secs(300);
/// The program, which is an example of the crate so that no release holds it.
const EXAMPLE: &str = "registry_bench";

pub(super) fn measure(options: &Options) -> Result<Option<RegistryCost>> {
    if !options.no_build {
        let what = ["-p", "narthex-registry", "--example", EXAMPLE];
        run(workspace::cargo(&["build", "--profile", &options.profile]).args(what))?;
    }
    let program = workspace::built_as(&options.profile, "examples").join(EXAMPLE);
    let repeats = if options.quick { "10" } else { "100" };
    let done = capture(Command::new(program).args([ROWS, repeats]), DONE)?;
    ensure!(done.status.success(), "the measurement failed: {}", done.stderr);
    let cost = serde_json::from_str(&done.stdout);
    let cost: RegistryCost = cost.context("the measurement printed no result")?;
    for row in &cost.rows {
        eprintln!(
            "registry, {} rows {}: {:.0} B each, apply {:.0} µs",
            row.rows, row.kind, row.bytes_per_row, row.apply_us
        );
    }
    eprintln!(
        "registry, {} programs: ready after {:.0} ms",
        cost.start.servers, cost.start.ready_ms
    );
    Ok(Some(cost))
}
