//! Runs of the load generator.

use std::fmt;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};

use super::plan::{Case, Way, Work};
use super::program;
use super::stage::Stage;
use crate::process::capture;

/// Far beyond any window, for a target that hangs.
const DONE: Duration = Duration::from_secs(180);

/// The measurements of one run. Counts are of the whole run, the rest is of its window.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Sample {
    pub(super) per_second: f64,
    pub(super) p50_us: f64,
    pub(super) p99_us: f64,
    pub(super) cpu_us_per_call: f64,
    pub(super) memory_bytes: u64,
    pub(super) sent: u64,
    pub(super) right: u64,
    pub(super) failed: u64,
    pub(super) wrong: u64,
    pub(super) doubled: u64,
    pub(super) reconnected: u64,
    pub(super) received: Option<u64>,
    pub(super) first_problem: Option<String>,
}

impl Sample {
    /// Calls that failed, were wrong, were answered twice, or did not arrive exactly once.
    pub(super) fn faults(&self) -> u64 {
        let misplaced = self.received.map_or(0, |received| received.abs_diff(self.sent));
        self.failed + self.wrong + self.doubled + misplaced
    }
}

impl fmt::Display for Sample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:>7.0}/s  p50 {:>7.0} µs  p99 {:>7.0} µs  cpu {:>6.1} µs",
            self.per_second, self.p50_us, self.p99_us, self.cpu_us_per_call
        )?;
        match (self.faults(), &self.first_problem) {
            (0, _) => Ok(()),
            (faults, None) => write!(f, "  {faults} FAULTS, {:?} received", self.received),
            (faults, Some(problem)) => write!(f, "  {faults} FAULTS: {problem}"),
        }
    }
}

/// One run to be made.
pub(super) struct Load(Command);

impl Load {
    pub(super) fn new(stage: &Stage, case: &Case, way: Way, is_quick: bool) -> Self {
        let (warm_up_ms, window_ms) = match (is_quick, case.work) {
            (true, _) => (200, 500),
            (false, Work::Blob5m) => (500, 3000),
            (false, _) => (500, 2000),
        };
        Self::lasting(stage, case, way, (warm_up_ms, window_ms))
    }

    pub(super) fn lasting(stage: &Stage, case: &Case, way: Way, ms: (u64, u64)) -> Self {
        let (work, size) = case.work.for_load();
        let mut command = target(stage, "run", way);
        command.args(["--work", work, "--size", &size.to_string()]);
        command.args(["--connections", &case.connections.to_string()]);
        command.args(["--warm-up-ms", &ms.0.to_string(), "--window-ms", &ms.1.to_string()]);
        for prefix in Stage::prefixes(way) {
            command.args(["--prefix", &prefix]);
        }
        for url in stage.fixture_urls() {
            command.args(["--fixture", url]);
        }
        Self(command)
    }

    pub(super) fn run(mut self) -> Result<Sample> {
        read(&mut self.0)
    }

    /// The command, for a caller that waits for something else meanwhile.
    pub(super) fn into_command(self) -> Command {
        self.0
    }
}

/// The memory of the processes in between, before and after sessions were opened.
#[derive(Debug, Deserialize)]
pub(super) struct Opened {
    pub(super) sessions: u64,
    pub(super) before_bytes: u64,
    pub(super) after_bytes: u64,
}

pub(super) fn open_sessions(
    stage: &Stage,
    way: Way,
    sessions: usize,
    has_streams: bool,
) -> Result<Opened> {
    let mut command = target(stage, "idle", way);
    command.args(["--sessions", &sessions.to_string()]);
    if has_streams {
        command.arg("--streams");
    }
    read(&mut command)
}

fn target(stage: &Stage, kind: &str, way: Way) -> Command {
    let mut command = program("narthex-load", &stage.profile);
    command.args([kind, "--url", &stage.url(way), "--era", stage.era.name()]);
    command.arg("--bearer-file").arg(stage.token_file());
    for process in stage.processes(way) {
        command.args(["--watch", &process.to_string()]);
    }
    command
}

pub(super) fn read<T: for<'de> Deserialize<'de>>(command: &mut Command) -> Result<T> {
    read_within(command, DONE)
}

pub(super) fn read_within<T: for<'de> Deserialize<'de>>(
    command: &mut Command,
    within: Duration,
) -> Result<T> {
    let done = capture(command, within)?;
    ensure!(done.status.success(), "the load generator failed: {}", done.stderr);
    serde_json::from_str(&done.stdout).context("the load generator printed no result")
}
