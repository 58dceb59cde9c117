//! Shapes of the whole installation: the daemon, the use of workspaces, and the master keys.

use schemars::JsonSchema;
use serde::Serialize;

use super::{
    ids::{Time, WorkspaceId},
    page::Listed,
};

/// The daemon.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Daemon {
    pub(crate) version: &'static str,
    /// The operating system.
    pub(crate) system: &'static str,
    pub(crate) architecture: &'static str,
    /// Id of the process.
    pub(crate) process: u32,
    /// Id of the node, by which other daemons on the store know this one.
    pub(crate) node: String,
    pub(crate) started_at: Time,
    /// The address of the listener.
    pub(crate) listens_at: String,
    /// The origin at which browsers sign in. Null if sign-in is off.
    pub(crate) public_origin: Option<String>,
    /// Null for a daemon that stores nothing.
    pub(crate) store: Option<DaemonStore>,
    pub(crate) open: DaemonOpen,
    /// Null on systems that do not count these.
    pub(crate) process_use: Option<DaemonProcess>,
    /// The audit between the disk and the store. Null without an audit.
    pub(crate) audit_waiting: Option<DaemonAudit>,
    /// The path of the metrics for Prometheus.
    pub(crate) metrics: &'static str,
}

/// The store of the daemon.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct DaemonStore {
    #[schemars(extend("enum" = ["SQLite", "PostgreSQL"]))]
    pub(crate) engine: &'static str,
    /// The path of the file, or the host, port and database. Never a password.
    pub(crate) place: String,
    /// The version of the schema.
    pub(crate) schema: i64,
}

/// Numbers of open objects.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct DaemonOpen {
    /// Sessions of legacy MCP clients.
    pub(crate) sessions: u64,
    /// Streams to clients, with those of pages.
    pub(crate) streams: u64,
    /// Streams of pages of the console.
    pub(crate) page_streams: u64,
    /// Calls that wait for an answer of their client.
    pub(crate) parked_calls: u64,
}

/// The resources that the process uses, without the servers that it has started.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct DaemonProcess {
    pub(crate) resident_bytes: u64,
    pub(crate) threads: u64,
    pub(crate) open_files: u64,
}

/// Events of the audit that are on the disk and not in the store.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct DaemonAudit {
    pub(crate) bytes: u64,
    /// True if the last attempt to move them into the store failed.
    pub(crate) is_stuck: bool,
}

/// A workspace, and the numbers of its objects.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct WorkspaceUse {
    pub(crate) id: WorkspaceId,
    pub(crate) name: String,
    /// Number of principals with roles.
    pub(crate) members: u64,
    /// Number of servers of the catalog.
    pub(crate) servers: u64,
    /// Number of servers of configuration files.
    pub(crate) file_servers: u64,
    /// Number of active runs, at all daemons on the store.
    pub(crate) runs: u64,
    /// Number of calls today, in UTC.
    pub(crate) calls: u64,
}

impl Listed for WorkspaceUse {
    const PAGE: &str = "WorkspaceUsePage";
    const ABOUT: &str = "All workspaces, each with the numbers of its objects.";
}

/// The master keys, without their bytes.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct MasterKeys {
    /// The place of the keys, for people.
    pub(crate) place: String,
    /// True if the daemon can change the key by itself.
    pub(crate) is_ours: bool,
    /// The keys, that which seals first.
    pub(crate) keys: Vec<MasterKey>,
}

/// A master key, without its bytes.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct MasterKey {
    pub(crate) id: String,
    /// True for the key that seals new values, and marks the audit.
    pub(crate) is_current: bool,
    /// Number of stored values that the key seals.
    pub(crate) values: u64,
    /// Time of the change that made the key. Null if the audit has none.
    pub(crate) made_at: Option<Time>,
}
