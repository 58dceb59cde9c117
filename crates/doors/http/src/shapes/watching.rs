//! Shapes of traces of runs, and of the load of runs.

use narthex_vfs::Operation;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use super::{
    ids::{Alias, ObjectName, RunId, RunStatus, ServerState, SessionId, Time},
    schema::one_of,
};

/// The most runs of the load of a workspace: those that are read, and the daemon's own run.
const RUNS_MAX: u32 = 1001;

/// Kind of an operation.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(extend("enum" = Operation::ALL.map(Operation::as_str)))]
pub(crate) struct OperationName(pub(crate) String);

/// An ended operation of a run.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(example = json!({
    "type": "operation",
    "at": "2026-11-23T10:00:00.000Z",
    "after_us": 1_236_000,
    "operation": "Write",
    "path": "/mnt/mcp/1-github/tools/search_repos",
    "fd": null,
    "size": 45,
    "result": 2048,
    "error": null,
    "duration_us": 350_000,
    "source": "call",
    "method": "tools/call",
    "is_inner": false
}))]
pub(crate) struct RunOperation {
    #[serde(rename = "type")]
    #[schemars(extend("const" = Self::TYPE))]
    pub(crate) event: &'static str,
    pub(crate) at: Time,
    /// Microseconds from the start of the stream to the start of the operation. 0 if it started
    /// before.
    pub(crate) after_us: u64,
    pub(crate) operation: OperationName,
    /// The path in a mount, such as `/mnt/mcp/1-github/tools/search`. `*` means all servers of the
    /// run.
    pub(crate) path: String,
    /// The file descriptor, if the operation has one.
    pub(crate) fd: Option<u64>,
    /// Bytes of the arguments, of the written text, or of the requested part at most. A negative
    /// number means all.
    pub(crate) size: Option<i64>,
    /// The result: a descriptor, or the bytes of the answer.
    pub(crate) result: Option<u64>,
    /// The failure: a kind of error, or a code of mounts.
    pub(crate) error: Option<String>,
    pub(crate) duration_us: u64,
    /// `call` for a call by any door, `file` for a file of a mount.
    #[schemars(extend("enum" = ["call", "file"]))]
    pub(crate) source: &'static str,
    /// The MCP method of a call.
    pub(crate) method: Option<String>,
    /// True if the operation served another reported operation.
    pub(crate) is_inner: bool,
}

impl RunOperation {
    pub(crate) const TYPE: &str = "operation";
}

/// The first event. From here on, each operation is reported.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct RunTraceBegin {
    #[serde(rename = "type")]
    #[schemars(extend("const" = Self::TYPE))]
    pub(crate) event: &'static str,
    pub(crate) run_id: RunId,
    /// Number of the run in its paths. 0 is the daemon's own run.
    pub(crate) pid: u64,
    /// True for the daemon's own run.
    pub(crate) is_local: bool,
    pub(crate) agent_name: Option<ObjectName>,
    pub(crate) at: Time,
}

impl RunTraceBegin {
    pub(crate) const TYPE: &str = "begin";
}

/// Number of operations that the stream left out, because its reader was too slow.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct RunTraceLost {
    #[serde(rename = "type")]
    #[schemars(extend("const" = Self::TYPE))]
    pub(crate) event: &'static str,
    #[schemars(extend("minimum" = 1))]
    pub(crate) count: u64,
}

impl RunTraceLost {
    pub(crate) const TYPE: &str = "lost";
}

/// The run has ended. No further event follows, so do not connect again.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct RunTraceEnd {
    #[serde(rename = "type")]
    #[schemars(extend("const" = Self::TYPE))]
    pub(crate) event: &'static str,
    pub(crate) status: RunStatus,
}

impl RunTraceEnd {
    pub(crate) const TYPE: &str = "end";
}

/// An event of the trace of a run.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
#[schemars(transform = one_of)]
pub(crate) enum RunTraced {
    Begin(RunTraceBegin),
    Operation(RunOperation),
    Lost(RunTraceLost),
    End(RunTraceEnd),
}

/// The load of a server of a run.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct RunsTopServer {
    pub(crate) alias: Option<Alias>,
    pub(crate) state: ServerState,
    /// True if the server is stopped until the next call.
    pub(crate) is_asleep: bool,
    /// Number of processes on this machine.
    pub(crate) processes: u64,
    /// Memory of the processes. Null if the server has none, or the memory is unknown.
    pub(crate) memory_bytes: Option<u64>,
}

/// The load of a run. Counts are null in the first document.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct RunsTopRow {
    pub(crate) run_id: RunId,
    /// Number of the run in its paths. 0 is the daemon's own run.
    pub(crate) pid: u64,
    /// True for the daemon's own run.
    pub(crate) is_local: bool,
    pub(crate) agent_name: Option<ObjectName>,
    pub(crate) session_id: Option<SessionId>,
    /// Calls that ended since the previous document.
    pub(crate) calls: Option<u64>,
    /// Ended calls per second.
    #[schemars(extend("minimum" = 0))]
    pub(crate) calls_per_second: Option<f64>,
    /// Number of ended calls that failed.
    pub(crate) errors: Option<u64>,
    /// Median duration of the ended calls. Null if no call ended.
    pub(crate) p50_us: Option<u64>,
    /// Number of open calls.
    pub(crate) open_calls: u64,
    /// Memory of the servers' processes, also of those that other runs share. Null if unknown.
    pub(crate) memory_bytes: Option<u64>,
    /// Percentage of one processor that the servers' processes used since the previous document.
    /// Null if unknown.
    #[schemars(extend("minimum" = 0))]
    pub(crate) cpu_percent: Option<f64>,
    pub(crate) servers: Vec<RunsTopServer>,
}

/// The load of the active runs.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct RunsTop {
    pub(crate) at: Time,
    /// Milliseconds since the previous document. Null in the first.
    pub(crate) interval_ms: Option<u64>,
    #[schemars(extend("maxItems" = RUNS_MAX))]
    pub(crate) runs: Vec<RunsTopRow>,
    /// True if there are more runs than are shown.
    pub(crate) has_more: bool,
}
