//! The cost of one decision of policy, with many grants and with rules.

use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::Options;
use super::results::DecisionCost;
use crate::process::{capture, run};
use crate::workspace;

const DONE: Duration = Duration::from_secs(300);
/// The program, which is an example of the crate so that no release holds it.
const EXAMPLE: &str = "decision_bench";

pub(super) fn measure(options: &Options) -> Result<Vec<DecisionCost>> {
    if !options.no_build {
        let what = ["-p", "narthex-cedar", "--example", EXAMPLE];
        run(workspace::cargo(&["build", "--profile", &options.profile]).args(what))?;
    }
    let program = workspace::built_as(&options.profile, "examples").join(EXAMPLE);
    let decisions = if options.quick { "500" } else { "20000" };
    let done = capture(Command::new(program).arg(decisions), DONE)?;
    ensure!(done.status.success(), "the measurement failed: {}", done.stderr);
    let costs = serde_json::from_str(&done.stdout);
    let costs: Vec<DecisionCost> = costs.context("the measurement printed no result")?;
    for cost in &costs {
        eprintln!("decision, {}: {:.2} µs", cost.name, cost.decision_ns / 1e3);
    }
    Ok(costs)
}
