//! The Unix sockets of a run, which an implementation outside of this crate opens (D2).

use std::{collections::BTreeMap, fmt, path::PathBuf, sync::Arc};

use narthex_gateway::RunView;
use narthex_model::{Alias, ErrorKind};

/// Opens sockets for runs.
pub trait RunSockets: Send + Sync + fmt::Debug {
    /// Opens the sockets of a run, in a folder that is the run's alone. The sockets close when the
    /// run ends.
    ///
    /// # Errors
    /// When the folder cannot be used, or the system refuses.
    fn open(&self, run: &Arc<RunView>) -> Result<OpenSockets, SocketsError>;
}

/// The sockets of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenSockets {
    /// The folder of the sockets. A process that may enter it acts for the run.
    pub folder: PathBuf,
    /// The socket of the aggregated endpoint.
    pub aggregated: PathBuf,
    /// The socket of each server.
    pub servers: BTreeMap<Alias, PathBuf>,
}

/// The reason why a run has no sockets, with the remedy.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
pub struct SocketsError {
    /// The kind of failure.
    pub kind: ErrorKind,
    /// The message for a person.
    pub message: String,
}
