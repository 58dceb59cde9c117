//! Opening of a run's Unix sockets.

use std::sync::Arc;

use narthex_gateway::RunView;
use narthex_model::{ErrorKind, RunId};

use crate::{OpenSockets, RunError, Runs, SocketsError};

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

    /// Restarts runs with sockets, one after the other. Clients at a socket show no token, which
    /// would restart their run.
    pub(crate) fn open_again(&self, with_sockets: Vec<RunId>) {
        if with_sockets.is_empty() {
            return;
        }
        let (runs, closing) = (self.clone(), self.control().closing());
        self.control().spawn(async move {
            for id in with_sockets {
                let beginning = Box::pin(runs.restart_by_id(id));
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
