//! Where the gateway's processor time goes, by samples of `perf`.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Result, ensure};

use super::load::Load;
use super::plan::{Case, Way, Work};
use super::results::Profile;
use super::stage::Stage;
use crate::process::{Service, answers, capture};

const CONNECTIONS: usize = 8;
/// How long the load goes on, and how much of that is recorded.
const LOAD_MS: (u64, u64) = (1000, 9000);
const RECORDED_SECONDS: &str = "6";
const DONE: Duration = Duration::from_secs(60);
/// Functions with a smaller part are left out.
const LEAST_PERCENT: &str = "0.7";

/// Records both endpoints under small calls. The programs keep their symbols for it.
pub(super) fn record(stage: &Stage, dir: &Path) -> Result<Vec<Profile>> {
    ensure!(answers("perf", &["--version"]), "perf is needed (Debian: package linux-perf)");
    let mut profiles = Vec::new();
    for way in [Way::Transparent, Way::Aggregated] {
        let text = record_way(stage, way, dir)?;
        let title = format!("Profile: small call, {}, {}", stage.era.name(), way.title());
        profiles.push(Profile { title, text });
    }
    Ok(profiles)
}

fn record_way(stage: &Stage, way: Way, dir: &Path) -> Result<String> {
    let case = Case { era: stage.era, work: Work::Echo, connections: CONNECTIONS };
    let mut load = Load::lasting(stage, &case, way, LOAD_MS).into_command();
    let load = Service::start("narthex-load", &mut load, &dir.join("load.log"))?;
    let file = dir.join(format!("perf-{}-{}.data", stage.era.name(), way.name()));
    let mut perf = Command::new("perf");
    perf.args(["record", "-q", "-F", "1999", "-e", "cpu-clock", "-g", "-o"]).arg(&file);
    for process in stage.processes(way) {
        perf.args(["-p", &process.to_string()]);
    }
    perf.args(["--", "sleep", RECORDED_SECONDS]);
    let recorded = capture(&mut perf, DONE)?;
    ensure!(recorded.status.success(), "perf cannot record: {}", recorded.stderr);
    load.wait_for("result", DONE, |line| line.starts_with('{').then_some(()))?;
    let mut report = Command::new("perf");
    report.args(["report", "--stdio", "--no-children", "-g", "none", "--sort", "symbol", "-i"]);
    report.arg(&file).args(["--percent-limit", LEAST_PERCENT]);
    let lines = capture(&mut report, DONE)?.stdout;
    let lines = lines.lines().map(str::trim_end);
    let lines: Vec<&str> =
        lines.filter(|line| !line.is_empty() && !line.starts_with('#')).collect();
    Ok(lines.join("\n"))
}
