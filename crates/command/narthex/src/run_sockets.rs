//! The Unix sockets of runs that request them: a folder per run, for as long as the run is active.

use std::{path::PathBuf, sync::Arc};

use narthex_gateway::{Gateway, RunView};
use narthex_model::{ErrorKind, RunId};
use narthex_runs::{OpenSockets, RunSockets, SocketsError};
use narthex_socket::{SocketDoor, SocketError, SocketOptions};
use tokio::runtime::Handle;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use narthex_model::with_causes;

/// Opens the sockets of runs in folders beside those of the process.
#[derive(Debug)]
pub(crate) struct RunFolders {
    gateway: Gateway,
    /// Parents of the runs' folders: the first one whose paths are short enough is used.
    bases: Vec<PathBuf>,
    /// The runtime that serves the sockets, whichever task opens them.
    home: Handle,
    /// Cancelled to close all sockets.
    closing: CancellationToken,
    tasks: TaskTracker,
}

impl RunFolders {
    /// Must be called inside the runtime that is to serve them. Folders left by a crash go at once.
    pub(crate) fn new(
        gateway: Gateway,
        bases: Vec<PathBuf>,
        closing: CancellationToken,
        tasks: TaskTracker,
    ) -> Self {
        for base in &bases {
            SocketDoor::sweep(base, is_of_run);
        }
        Self { gateway, bases, home: Handle::current(), closing, tasks }
    }

    fn bind(&self, run: &Arc<RunView>) -> Result<SocketDoor, SocketsError> {
        let name = folder_name(run.id);
        let mut refusal = None;
        for base in &self.bases {
            let (run, gateway) = (run.clone(), self.gateway.clone());
            match SocketDoor::bind_passing(base, &name, run, gateway, SocketOptions::default()) {
                Ok(door) => return Ok(door),
                Err(error) => {
                    let is_too_long = matches!(error, SocketError::PathTooLong { .. });
                    let message = with_causes(&error);
                    refusal = Some(SocketsError { kind: error.kind(), message });
                    if !is_too_long {
                        break;
                    }
                }
            }
        }
        Err(refusal.unwrap_or_else(|| SocketsError {
            kind: ErrorKind::Conflict,
            message: "the daemon has no folder for sockets; use HTTP".to_owned(),
        }))
    }
}

impl RunSockets for RunFolders {
    fn open(&self, run: &Arc<RunView>) -> Result<OpenSockets, SocketsError> {
        let _home = self.home.enter();
        let door = self.bind(run)?;
        let servers = door.servers().map(|(alias, path)| (alias.clone(), path.to_owned()));
        let opened = OpenSockets {
            folder: door.folder().to_owned(),
            aggregated: door.aggregated().to_owned(),
            servers: servers.collect(),
        };
        let (run, stop) = (run.clone(), self.closing.child_token());
        let serving = async move {
            let served = door.serve(stop.clone());
            let ending = async {
                run.ended().await;
                stop.cancel();
            };
            tokio::join!(served, stop.run_until_cancelled(ending));
        };
        self.tasks.spawn_on(serving, &self.home);
        Ok(opened)
    }
}

/// The part of a run's id that distinguishes it: addresses of sockets are short.
fn folder_name(run: RunId) -> String {
    let text = run.to_text();
    text.strip_prefix("run_").unwrap_or(&text).to_owned()
}

fn is_of_run(name: &str) -> bool {
    RunId::parse(&format!("run_{name}")).is_some()
}
