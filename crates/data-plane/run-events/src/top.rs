//! The activity of runs, as a table for people.

use std::cmp::Reverse;

use serde::Deserialize;

/// The activity of the runs of a workspace.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Top {
    /// The runs.
    pub runs: Vec<TopRun>,
    /// True if the workspace has more runs.
    pub has_more: bool,
}

/// The activity of a run. `None` stands for an unknown number.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct TopRun {
    /// The run's pid.
    pub pid: u64,
    /// True if the run is the daemon's own.
    pub is_local: bool,
    /// The run's agent, if it has one.
    pub agent_name: Option<String>,
    /// The run's session.
    pub session_id: Option<String>,
    /// Ended calls per second.
    pub calls_per_second: Option<f64>,
    /// Number of failed calls since the last table.
    pub errors: Option<u64>,
    /// The median duration of calls, in µs.
    pub p50_us: Option<u64>,
    /// Number of open calls.
    pub open_calls: u64,
    /// Memory of the processes of its servers, in bytes.
    pub memory_bytes: Option<u64>,
    /// Processor use of these processes, in percent of one processor.
    pub cpu_percent: Option<f64>,
    /// The run's servers.
    pub servers: Vec<TopServer>,
}

/// A server of a run.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct TopServer {
    /// The run's alias for the server.
    pub alias: Option<String>,
    /// The server's state, one of five.
    pub state: String,
    /// True if the server is stopped until the next call.
    pub is_asleep: bool,
}

/// The column by which a table is sorted: the largest number is first, but the smallest pid.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Sort {
    /// Calls per second.
    #[default]
    Calls,
    /// Failed calls.
    Errors,
    /// Median duration of calls.
    P50,
    /// Open calls.
    Open,
    /// Memory use.
    Memory,
    /// Processor use.
    Cpu,
    /// Pid of the run.
    Pid,
}

/// The names of the columns.
pub const HEADER: [&str; 9] =
    ["pid", "agent/session", "calls/s", "errors", "p50", "open", "memory", "cpu", "servers"];

impl Sort {
    /// All columns by their names.
    pub const ALL: [(&'static str, Self); 7] = [
        ("calls", Self::Calls),
        ("errors", Self::Errors),
        ("p50", Self::P50),
        ("open", Self::Open),
        ("memory", Self::Memory),
        ("cpu", Self::Cpu),
        ("pid", Self::Pid),
    ];

    /// The column of a name; `None` if there is none.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|(known, _)| *known == name).map(|(_, sort)| sort)
    }
}

impl Top {
    /// Sorts the table by a column; equal runs are in the order of pids.
    #[must_use]
    pub fn sorted(mut self, by: Sort) -> Self {
        let tenths = |number: Option<f64>| (number.unwrap_or(-1.0) * 10.0).round();
        self.runs.sort_by_key(|run| run.pid);
        match by {
            Sort::Calls => {
                self.runs.sort_by(|one, other| {
                    tenths(other.calls_per_second).total_cmp(&tenths(one.calls_per_second))
                });
            }
            Sort::Cpu => self.runs.sort_by(|one, other| {
                tenths(other.cpu_percent).total_cmp(&tenths(one.cpu_percent))
            }),
            Sort::Errors => self.runs.sort_by_key(|run| Reverse(run.errors)),
            Sort::P50 => self.runs.sort_by_key(|run| Reverse(run.p50_us)),
            Sort::Open => self.runs.sort_by_key(|run| Reverse(run.open_calls)),
            Sort::Memory => self.runs.sort_by_key(|run| Reverse(run.memory_bytes)),
            Sort::Pid => {}
        }
        self
    }

    /// A summary of all runs in one line.
    #[must_use]
    pub fn summary(&self) -> String {
        // The sum of none would be -0.0.
        let calls = self.runs.iter().filter_map(|run| run.calls_per_second);
        let calls = calls.fold(0.0, |all, calls| all + calls);
        let errors: u64 = self.runs.iter().filter_map(|run| run.errors).sum();
        let open: u64 = self.runs.iter().map(|run| run.open_calls).sum();
        let runs = match (self.runs.len(), self.has_more) {
            (1, false) => "1 run".to_owned(),
            (count, false) => format!("{count} runs"),
            (count, true) => format!("{count} runs of more"),
        };
        let errors = if errors == 1 { "1 error".to_owned() } else { format!("{errors} errors") };
        format!("{runs}, {calls:.1} calls/s, {errors}, {open} open")
    }

    /// The lines above a table, for a terminal with `columns`: the sums, the order of the table,
    /// and the key that leaves it. If one line is too short, they take more, the keys first.
    #[must_use]
    pub fn heading(&self, by: &str, columns: usize) -> Vec<String> {
        let (summary, keys) = (self.summary(), format!("by {by}, q leaves"));
        let fits = |line: &String| line.chars().count() <= columns;
        let titled = format!("narthex top: {summary}");
        let one = format!("{titled}    {keys}");
        if fits(&one) {
            return vec![one];
        }
        if let Some(line) = [titled, summary.clone()].into_iter().find(fits).filter(|_| fits(&keys))
        {
            return vec![line, keys];
        }
        let parts = ["q leaves".to_owned(), format!("by {by}")];
        wrapped(parts.into_iter().chain(summary.split(", ").map(str::to_owned)), columns)
    }

    /// The cells of each run; see [`HEADER`].
    #[must_use]
    pub fn rows(&self) -> Vec<Vec<String>> {
        self.runs.iter().map(TopRun::cells).collect()
    }
}

impl TopRun {
    fn cells(&self) -> Vec<String> {
        let none = || "-".to_owned();
        let whose = match (&self.agent_name, &self.session_id) {
            (Some(agent), _) => agent.clone(),
            (None, _) if self.is_local => "local".to_owned(),
            (None, session) => session.clone().unwrap_or_else(none),
        };
        vec![
            self.pid.to_string(),
            whose,
            self.calls_per_second.map_or_else(none, |calls| format!("{calls:.1}")),
            self.errors.map_or_else(none, |errors| errors.to_string()),
            self.p50_us.map_or_else(none, duration),
            self.open_calls.to_string(),
            self.memory_bytes.map_or_else(none, memory),
            self.cpu_percent.map_or_else(none, |cpu| format!("{cpu:.1}%")),
            self.states(),
        ]
    }

    /// The number of working servers, and the states of the others.
    fn states(&self) -> String {
        let state = |server: &TopServer| match (server.is_asleep, server.state.as_str()) {
            (true, "ready") => "asleep".to_owned(),
            (_, state) => state.to_owned(),
        };
        let working = |server: &&TopServer| server.state == "ready" && !server.is_asleep;
        let ready = self.servers.iter().filter(working).count();
        let others = self.servers.iter().filter(|server| !working(server));
        let others = others
            .map(|server| format!("{} {}", server.alias.as_deref().unwrap_or("-"), state(server)));
        let all: Vec<_> = [format!("{ready} ready")].into_iter().chain(others).collect();
        if self.servers.is_empty() { "-".to_owned() } else { all.join(", ") }
    }
}

/// Parts of a line in as many lines as they need, apart by commas.
fn wrapped(parts: impl Iterator<Item = String>, columns: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for part in parts {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 2 + part.chars().count() <= columns => {
                line.push_str(", ");
                line.push_str(&part);
            }
            _ => lines.push(part),
        }
    }
    lines
}

/// A duration in µs, ms or s, with three digits at most.
fn duration(micros: u64) -> String {
    match micros {
        0..1000 => format!("{micros}us"),
        1000..10_000 => format!("{:.1}ms", micros as f64 / 1000.0),
        10_000..1_000_000 => format!("{}ms", micros / 1000),
        _ => format!("{:.1}s", micros as f64 / 1_000_000.0),
    }
}

/// Bytes in units of 1024.
fn memory(bytes: u64) -> String {
    let kib = bytes / 1024;
    match kib {
        0..1024 => format!("{kib}K"),
        1024..1_048_576 => format!("{}M", kib / 1024),
        _ => format!("{:.1}G", kib as f64 / 1_048_576.0),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn top() -> Top {
        let run = |pid: u64, calls: Option<f64>, p50: Option<u64>| {
            json!({ "pid": pid, "run_id": "run_1", "is_local": pid == 0, "agent_name": null,
                "session_id": null, "calls_per_second": calls, "errors": 0, "p50_us": p50,
                "open_calls": pid, "memory_bytes": null, "cpu_percent": null, "servers": [] })
        };
        let mut runs = [run(0, None, None), run(2, Some(0.5), Some(999)), run(3, Some(12.0), None)];
        runs[1]["agent_name"] = "reader".into();
        runs[1]["memory_bytes"] = (300_u64 << 20).into();
        runs[1]["cpu_percent"] = 12.34.into();
        runs[1]["servers"] = json!([
            { "alias": "git", "state": "ready", "is_asleep": false },
            { "alias": "docs", "state": "ready", "is_asleep": true },
            { "alias": "chat", "state": "error", "is_asleep": false },
        ]);
        serde_json::from_value(json!({ "runs": runs, "has_more": false })).unwrap()
    }

    #[test]
    fn a_row_shows_counts_durations_and_servers_of_a_run() {
        let rows = top().rows();
        let local = ["0", "local", "-", "0", "-", "0", "-", "-", "-"];
        assert_eq!(rows[0], local);
        assert_eq!(
            rows[1],
            [
                "2",
                "reader",
                "0.5",
                "0",
                "999us",
                "2",
                "300M",
                "12.3%",
                "1 ready, docs asleep, chat error"
            ]
        );
        assert_eq!(rows[0].len(), HEADER.len());
        let none = Top { runs: Vec::new(), has_more: false };
        assert_eq!(none.summary(), "0 runs, 0.0 calls/s, 0 errors, 0 open");
        assert_eq!(top().summary(), "3 runs, 12.5 calls/s, 0 errors, 5 open");
    }

    #[test]
    fn a_heading_has_room_on_narrow_terminals() {
        let heading = |columns| top().heading("calls", columns);
        let summary = "3 runs, 12.5 calls/s, 0 errors, 5 open";
        let titled = format!("narthex top: {summary}");
        assert_eq!(heading(80), [format!("{titled}    by calls, q leaves")]);
        assert_eq!(heading(60), [titled.as_str(), "by calls, q leaves"]);
        assert_eq!(heading(40), [summary, "by calls, q leaves"]);
        let narrow = ["q leaves, by calls", "3 runs, 12.5 calls/s", "0 errors, 5 open"];
        assert_eq!(heading(20), narrow);
        for columns in 12..120 {
            let lines = heading(columns);
            assert!(lines.iter().all(|line| line.chars().count() <= columns), "{lines:?}");
            assert!(lines.iter().any(|line| line.contains("q leaves")), "{lines:?}");
        }
    }

    #[test]
    fn rows_are_in_the_order_that_is_asked_for() {
        let pids = |by| top().sorted(by).runs.iter().map(|run| run.pid).collect::<Vec<_>>();
        assert_eq!(pids(Sort::Calls), [3, 2, 0]);
        assert_eq!(pids(Sort::P50), [2, 0, 3]);
        assert_eq!(pids(Sort::Open), [3, 2, 0]);
        assert_eq!(pids(Sort::Memory), [2, 0, 3]);
        assert_eq!(pids(Sort::Cpu), [2, 0, 3]);
        assert_eq!(pids(Sort::Pid), [0, 2, 3]);
        assert_eq!(Sort::parse("memory"), Some(Sort::Memory));
        assert_eq!(Sort::parse("size"), None);
    }

    #[test]
    fn numbers_are_short() {
        let all = [5, 1500, 15_000, 1_500_000].map(duration);
        assert_eq!(all, ["5us", "1.5ms", "15ms", "1.5s"]);
        assert_eq!([1 << 10, 5 << 20, 3 << 30].map(memory), ["1K", "5M", "3.0G"]);
    }
}
