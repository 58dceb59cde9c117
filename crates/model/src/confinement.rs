//! What a server's program may reach of the machine, where its configuration limits that.

mod entry;

use std::path::PathBuf;

pub use entry::{ConfinementProblem, EntryConfinement};
use serde::{Deserialize, Serialize};

/// How a program is confined. Each part limits one thing; by default nothing is limited.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Confinement {
    /// Which files it reaches; `None`: all that its user does.
    pub files: Option<FileAccess>,
    /// Which network it reaches.
    pub network: NetworkAccess,
    /// Whether system calls and privileges are taken away that no server needs.
    pub filters_system_calls: bool,
    /// What it may use up.
    pub limits: ProcessLimits,
    /// Whether it runs in namespaces of its own, by `bwrap`.
    pub has_namespaces: bool,
}

impl Confinement {
    /// What the word `strict` stands for: files below `read` to read, no network, the filter, and
    /// limits that an honest server does not meet.
    #[must_use]
    pub fn strict(read: Option<PathBuf>) -> Self {
        Self {
            files: Some(FileAccess { read: read.into_iter().collect(), write: Vec::new() }),
            network: NetworkAccess::None,
            filters_system_calls: true,
            limits: ProcessLimits {
                memory_mb: Some(2048),
                processes: None,
                open_files: Some(1024),
                cpu_seconds: None,
            },
            has_namespaces: false,
        }
    }

    /// Whether nothing is limited.
    #[must_use]
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

/// Files, besides those that any program needs to run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileAccess {
    /// To be read, with everything below.
    pub read: Vec<PathBuf>,
    /// To be read and written, with everything below.
    pub write: Vec<PathBuf>,
}

/// Which network a program reaches.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum NetworkAccess {
    /// All that its user does.
    #[default]
    All,
    /// None: it cannot open a socket of any kind.
    None,
    /// TCP connections to these ports, and UDP, by which names are looked up. It cannot listen.
    Connect(Vec<u16>),
}

/// What a program may use up. The system counts for each process by itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessLimits {
    /// Memory that a process may allocate, in MiB.
    pub memory_mb: Option<u64>,
    /// Processes and threads, more than its user had when it started.
    pub processes: Option<u64>,
    /// Files that a process may have open.
    pub open_files: Option<u64>,
    /// CPU time of a process, over its whole life.
    pub cpu_seconds: Option<u64>,
}
