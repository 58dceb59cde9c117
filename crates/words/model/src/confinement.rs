//! The limits of a server's program on the machine, where its configuration sets some.

mod entry;

use std::path::PathBuf;

pub use entry::{ConfinementProblem, EntryConfinement};
use serde::{Deserialize, Serialize};

/// The confinement of a program. Each part limits one thing; by default nothing is limited.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Confinement {
    /// The files that the program reaches; `None`: all that its user does.
    pub files: Option<FileAccess>,
    /// The network that the program reaches.
    pub network: NetworkAccess,
    /// True if the program loses the system calls and privileges that no server needs.
    pub filters_system_calls: bool,
    /// The resources that the program may use.
    pub limits: ProcessLimits,
    /// True if the program runs in namespaces of its own, by `bwrap`.
    pub has_namespaces: bool,
}

impl Confinement {
    /// The confinement of the word `strict`: files below `read` to read, no network, the filter,
    /// and limits that an honest server does not meet.
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

    /// True if nothing is limited.
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

/// The network that a program reaches.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum NetworkAccess {
    /// The whole network that its user reaches.
    #[default]
    All,
    /// No network: the program cannot open a socket of any kind.
    None,
    /// TCP connections to these ports, and UDP, by which names are looked up. It cannot listen.
    Connect(Vec<u16>),
}

/// The resources that a program may use. The system counts them for each process alone.
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
