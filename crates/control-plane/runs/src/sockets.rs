//! The Unix sockets of a run, which an implementation outside of this crate opens (D2).

use std::{collections::BTreeMap, fmt, path::PathBuf, sync::Arc};

use narthex_gateway::RunView;
use narthex_model::{Alias, ErrorKind, RunId};

use crate::{RunError, Runs};

/// Opens sockets for runs.
pub trait RunSockets: Send + Sync + fmt::Debug {
    /// Opens the sockets of a run, in a folder that is the run's alone, and has them closed when it
    /// ends.
    ///
    /// # Errors
    /// When the folder is not fit, or the system refuses.
    fn open(&self, run: &Arc<RunView>) -> Result<OpenSockets, SocketsError>;
}

/// The sockets of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenSockets {
    /// Their folder. A process that may enter it acts for the run.
    pub folder: PathBuf,
    /// The socket of the aggregated endpoint.
    pub aggregated: PathBuf,
    /// The socket of each server.
    pub servers: BTreeMap<Alias, PathBuf>,
}

/// The reason why there are no sockets, with the remedy.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
pub struct SocketsError {
    /// The kind of failure.
    pub kind: ErrorKind,
    /// The message for a person.
    pub message: String,
}

impl Runs {
    /// Opens the sockets of a run that asks for them.
    pub(crate) fn open_sockets(
        &self,
        run: &Arc<RunView>,
        is_wanted: bool,
    ) -> Result<Option<OpenSockets>, RunError> {
        if !is_wanted {
            return Ok(None);
        }
        let sockets = self.shared.options.sockets.as_ref().ok_or_else(|| SocketsError {
            kind: ErrorKind::Conflict,
            message: "this process has no Unix sockets; leave `sockets` out, and use HTTP".into(),
        });
        let opened = sockets.and_then(|sockets| sockets.open(run));
        opened.map(Some).map_err(RunError::Sockets)
    }

    /// Has runs begin again, one after the other, whose clients show no token: they come in by the
    /// run's sockets.
    pub(crate) fn open_again(&self, with_sockets: Vec<RunId>) {
        if with_sockets.is_empty() {
            return;
        }
        let (runs, closing) = (self.clone(), self.control().closing());
        self.control().spawn(async move {
            for id in with_sockets {
                let beginning = Box::pin(runs.again_by_id(id));
                match closing.run_until_cancelled(beginning).await {
                    None => return,
                    Some(Ok(_)) => {}
                    Some(Err(error)) => {
                        tracing::warn!(
                            run.id = %id,
                            "a run could not be continued after a restart: {error}"
                        );
                    }
                }
            }
        });
    }
}
