//! The measurements, and their medians.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::console::ConsoleCost;
use super::load::Sample;
use super::plan::{Case, Era, Way, Work};

/// All results of one run.
#[derive(Serialize)]
pub(super) struct Results {
    /// Lines on the machine and the programs.
    pub(super) machine: Vec<String>,
    pub(super) rounds: usize,
    pub(super) rows: Vec<Row>,
    pub(super) stdio: Vec<StdioRow>,
    pub(super) registry: Option<RegistryCost>,
    pub(super) decisions: Vec<DecisionCost>,
    pub(super) idle: Vec<Idle>,
    pub(super) runs: Option<RunsCost>,
    pub(super) mounts: Option<MountCost>,
    pub(super) console: Option<ConsoleCost>,
    pub(super) profiles: Vec<Profile>,
    pub(super) nginx_config: String,
}

/// One way's samples of one case.
#[derive(Serialize)]
pub(super) struct Row {
    pub(super) case: Case,
    pub(super) way: Way,
    pub(super) samples: Vec<Sample>,
}

/// Calls to one process, directly and through narthex.
#[derive(Serialize)]
pub(super) struct StdioRow {
    pub(super) era: Era,
    pub(super) callers: usize,
    pub(super) direct: Vec<Sample>,
    pub(super) narthex: Vec<Sample>,
}

/// The cost of one decision of policy.
#[derive(Serialize, Deserialize)]
pub(super) struct DecisionCost {
    pub(super) name: String,
    pub(super) grants: u32,
    pub(super) rules: u32,
    pub(super) decision_ns: f64,
}

/// The cost of servers as files.
#[derive(Serialize, Deserialize)]
pub(super) struct MountCost {
    /// One call after the other, on the machine as it is.
    pub(super) call: FileCallCost,
    /// One call after the other at a folder that keeps processors awake, where that is possible.
    #[serde(default)]
    pub(super) awake: Option<FileCallCost>,
    pub(super) tools: usize,
    /// The median of listing so many tools.
    pub(super) ls_ms: f64,
    /// The rates of parallel calls.
    pub(super) rates: Vec<MountRate>,
}

/// Medians of one call.
#[derive(Serialize, Deserialize)]
pub(super) struct FileCallCost {
    /// Over HTTP, on a connection that is kept.
    pub(super) http_us: f64,
    /// At a folder: open, write, read, close.
    pub(super) file_us: f64,
    /// The time of a call whose result is read to its end.
    pub(super) to_end_us: f64,
}

impl fmt::Display for FileCallCost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { http_us, file_us, to_end_us } = self;
        write!(f, "{http_us:.1} µs over HTTP, {file_us:.1} µs as a file, ")?;
        write!(f, "{to_end_us:.1} µs read to its end")
    }
}

/// Calls a second by so many at once.
#[derive(Serialize, Deserialize)]
pub(super) struct MountRate {
    pub(super) at_once: usize,
    /// The tool's own time; 0 for one that answers at once.
    pub(super) tool_ms: u32,
    /// The rate of readers of a file.
    pub(super) files: f64,
    /// The rate over as many connections.
    pub(super) http: f64,
}

impl MountRate {
    /// The most that there can be, where the tool takes its time.
    pub(super) fn most(&self) -> Option<f64> {
        #[expect(clippy::cast_precision_loss, reason = "some readers")]
        let at_once = self.at_once as f64;
        (self.tool_ms > 0).then(|| at_once * 1e3 / f64::from(self.tool_ms))
    }
}

impl fmt::Display for MountRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { files, http, .. } = self;
        write!(f, "{files:.0} calls/s as a file, {http:.0} over HTTP")?;
        match self.most() {
            Some(most) => write!(f, " (of {most:.0})"),
            None => Ok(()),
        }
    }
}

/// The cost of a registry.
#[derive(Serialize, Deserialize)]
pub(super) struct RegistryCost {
    pub(super) rows: Vec<RegistryRow>,
    pub(super) start: RegistryStart,
}

/// The start time of programs that start side by side.
#[derive(Serialize, Deserialize)]
pub(super) struct RegistryStart {
    pub(super) servers: u32,
    pub(super) start_up_ms: u32,
    pub(super) ready_ms: f64,
}

/// The cost of a registry with many rows of one kind.
#[derive(Serialize, Deserialize)]
pub(super) struct RegistryRow {
    pub(super) kind: String,
    pub(super) rows: u32,
    pub(super) bytes_per_row: f64,
    pub(super) apply_us: f64,
    pub(super) same_us: f64,
    pub(super) snapshot_ns: f64,
    pub(super) switch_us: f64,
}

/// The memory that one idle session adds to the gateway.
#[derive(Serialize)]
pub(super) struct Idle {
    pub(super) way: Way,
    pub(super) has_streams: bool,
    pub(super) sessions: u64,
    pub(super) bytes_per_session: f64,
    /// The gateway's memory before the sessions.
    pub(super) daemon_bytes: f64,
}

/// The cost of runs.
#[derive(Serialize)]
pub(super) struct RunsCost {
    /// Number of runs in the measurements with many.
    pub(super) runs: u64,
    /// Number of runs and servers beside which instructions are counted.
    pub(super) counted_runs: usize,
    pub(super) counted_servers: usize,
    pub(super) create_p50_us: f64,
    pub(super) create_p99_us: f64,
    pub(super) end_p50_us: f64,
    pub(super) end_p99_us: f64,
    /// The time of the disk for one write.
    pub(super) sync_us: f64,
    pub(super) bytes_per_run: f64,
    /// Empty if instructions could not be counted.
    pub(super) calls: Vec<CallCost>,
}

/// Instructions of one call, beside one run and one server and beside many.
#[derive(Serialize)]
pub(super) struct CallCost {
    pub(super) caller: String,
    pub(super) one: f64,
    pub(super) many: f64,
}

impl CallCost {
    /// The growth with many, as part of the whole.
    pub(super) fn growth(&self) -> f64 {
        self.many / self.one - 1.0
    }
}

/// The distribution of processor time.
#[derive(Serialize)]
pub(super) struct Profile {
    pub(super) title: String,
    pub(super) text: String,
}

/// A median and what it lies between.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Spread {
    pub(super) median: f64,
    pub(super) min: f64,
    pub(super) max: f64,
}

impl Spread {
    fn of(values: impl Iterator<Item = f64>) -> Self {
        let mut sorted: Vec<f64> = values.collect();
        sorted.sort_by(f64::total_cmp);
        let at = |index: usize| sorted.get(index).copied().unwrap_or(f64::NAN);
        let (length, middle) = (sorted.len(), sorted.len() / 2);
        let median = if length % 2 == 1 {
            at(middle)
        } else {
            f64::midpoint(at(middle.wrapping_sub(1)), at(middle))
        };
        Self { median, min: at(0), max: at(length.wrapping_sub(1)) }
    }
}

impl Row {
    pub(super) fn new(case: Case, way: Way) -> Self {
        Self { case, way, samples: Vec::new() }
    }

    pub(super) fn spread(&self, value: impl Fn(&Sample) -> f64) -> Spread {
        Spread::of(self.samples.iter().map(value))
    }

    pub(super) fn per_second(&self) -> f64 {
        self.spread(|sample| sample.per_second).median
    }

    pub(super) fn p50_us(&self) -> f64 {
        self.spread(|sample| sample.p50_us).median
    }

    pub(super) fn p99_us(&self) -> f64 {
        self.spread(|sample| sample.p99_us).median
    }

    pub(super) fn memory_bytes(&self) -> f64 {
        self.spread(|sample| super::report::bytes(sample.memory_bytes)).median
    }

    pub(super) fn cpu_us(&self) -> f64 {
        self.spread(|sample| sample.cpu_us_per_call).median
    }

    pub(super) fn sent(&self) -> u64 {
        self.samples.iter().map(|sample| sample.sent).sum()
    }

    pub(super) fn faults(&self) -> u64 {
        self.samples.iter().map(Sample::faults).sum()
    }
}

impl StdioRow {
    pub(super) fn spread(samples: &[Sample], value: impl Fn(&Sample) -> f64) -> Spread {
        Spread::of(samples.iter().map(value))
    }

    pub(super) fn faults(&self) -> u64 {
        self.direct.iter().chain(&self.narthex).map(Sample::faults).sum()
    }
}

impl Results {
    pub(super) fn new(machine: Vec<String>, rounds: usize) -> Self {
        Self {
            machine,
            rounds,
            rows: Vec::new(),
            stdio: Vec::new(),
            registry: None,
            decisions: Vec::new(),
            idle: Vec::new(),
            runs: None,
            mounts: None,
            console: None,
            profiles: Vec::new(),
            nginx_config: String::new(),
        }
    }

    pub(super) fn row(&self, case: Case, way: Way) -> Option<&Row> {
        self.rows.iter().find(|row| row.case == case && row.way == way)
    }

    pub(super) fn rows_of(&self, era: Era, work: Work) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(move |row| row.case.era == era && row.case.work == work)
    }
}

#[cfg(test)]
mod tests {
    use super::Spread;

    #[test]
    fn the_median_is_in_the_middle() {
        let odd = Spread::of([3.0, 1.0, 2.0].into_iter());
        assert_eq!(odd, Spread { median: 2.0, min: 1.0, max: 3.0 });
        assert_eq!(Spread::of([4.0, 1.0].into_iter()).median.to_bits(), 2.5_f64.to_bits());
        assert!(Spread::of([].into_iter()).median.is_nan());
    }
}
