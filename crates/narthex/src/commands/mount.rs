//! `narthex mount`: the files of a run at a folder, until something ends it.

use std::process::ExitCode;

use narthex_cli::MountArgs;

use crate::{Failure, cli::Context};

#[cfg(not(target_os = "linux"))]
pub(crate) async fn run(_args: MountArgs, _context: Context) -> Result<ExitCode, Failure> {
    let text = "folders can be mounted on Linux alone; `narthex vfs` has the same files here";
    Err(Failure::new(narthex_model::ErrorKind::Unavailable, text))
}

#[cfg(target_os = "linux")]
pub(crate) async fn run(args: MountArgs, context: Context) -> Result<ExitCode, Failure> {
    linux::run(args, context).await
}

#[cfg(target_os = "linux")]
mod linux {
    use std::process::ExitCode;

    use narthex_cli::MountArgs;
    use narthex_model::{ErrorKind, Pid, with_causes};
    use narthex_mount::Limits;
    use narthex_mounter::{Daemon, Ended, Mounting, MountingError, MountingOptions};
    use serde_json::json;

    use crate::{
        Failure,
        cli::Context,
        commands::up::stop_signal,
        daemon_client::DaemonClient,
        output::{self, Format, counted},
    };

    pub(super) async fn run(args: MountArgs, context: Context) -> Result<ExitCode, Failure> {
        let client = DaemonClient::of_run(&context.settings)?;
        let daemon = Daemon::new(&client.state.url, client.token());
        let daemon = daemon.map_err(|error| Failure::new(error.kind(), with_causes(&error)))?;
        // From before anything is mounted: a signal must find somebody who unmounts.
        let mut stops = stop_signal()?;
        let options = MountingOptions {
            folder: args.folder,
            pid: args.pid.map(Pid::new),
            watcher: Some(std::env::current_exe()?.into_os_string()),
            limits: Limits::default(),
        };
        let mut mounting = tokio::select! {
            biased;
            // What is half mounted by then is taken away again.
            () = &mut stops => return Ok(ExitCode::SUCCESS),
            begun = Mounting::begin(daemon, options) => begun.map_err(|error| failed(&error))?,
        };
        told(&mounting, &context)?;
        let ended = tokio::select! {
            biased;
            () = &mut stops => None,
            ended = mounting.ended() => Some(ended),
        };
        mounting.unmount().await.map_err(|error| failed(&error))?;
        match ended {
            None | Some(Ended::Folder) => Ok(ExitCode::SUCCESS),
            Some(Ended::Run) => {
                output::notice("the run has ended, and its files are gone");
                Ok(ExitCode::SUCCESS)
            }
            Some(Ended::Daemon { why }) => {
                let text = format!("{why}; the folder is unmounted. Mount it again when it is up");
                Err(Failure::daemon_down(text))
            }
        }
    }

    fn told(mounting: &Mounting, context: &Context) -> Result<(), Failure> {
        let (pid, servers) = (mounting.pid(), mounting.servers());
        let folder = mounting.folder().display().to_string();
        match context.format {
            Format::Json => {
                output::done(&json!({ "folder": folder, "pid": pid.get(), "servers": servers }))
            }
            Format::Quiet => Ok(()),
            Format::Text => {
                let count = counted(servers.len() as u64, "server");
                output::line(&format!("Run {pid} has {count} at {folder}. Ctrl-C unmounts it."))
            }
        }
    }

    fn failed(error: &MountingError) -> Failure {
        match error.kind() {
            ErrorKind::Unauthenticated => {
                let text = "the token opens nothing here; has its run ended?";
                Failure::new(ErrorKind::Unauthenticated, text)
            }
            kind => Failure::new(kind, with_causes(error)),
        }
    }
}
