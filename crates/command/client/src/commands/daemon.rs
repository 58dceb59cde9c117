//! `narthex daemon`: the status and the facts of the daemon, and stopping or restarting it.

mod info;
mod process;
mod restart;

use std::{io, process::ExitCode, sync::Arc, time::Duration};

use crate::cli::{DaemonCommand, StopArgs};
use narthex_model::{ErrorKind, command::narthex};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
    process::Signal,
};
use serde_json::json;
use tokio::time::Instant;

use self::process::Process;
use super::waiting::waiting;
use crate::{Context, Failure, data_dir::DataDir, output};

/// The time in which a killed process has to be gone.
const KILLED: Duration = Duration::from_secs(5);

pub async fn run(command: DaemonCommand, context: Context) -> Result<ExitCode, Failure> {
    match command {
        DaemonCommand::Stop(args) => stop(&args, &context).await,
        DaemonCommand::Restart(args) => restart::run(&args, &context).await,
        DaemonCommand::Status => status(&context),
        DaemonCommand::Info => info::run(&context).await,
    }
}

fn status(context: &Context) -> Result<ExitCode, Failure> {
    let data = DataDir::at(&context.daemon.data);
    let pid = data.holder()?;
    let state = data.running()?;
    let url = state.as_ref().map(|state| &state.url);
    if context.format.is_json() {
        let config = state.as_ref().map(|state| &state.config);
        let socket_dir = state.as_ref().and_then(|state| state.socket_dir.as_ref());
        let store = state.as_ref().and_then(|state| state.store.as_ref());
        output::done(&json!({
            "is_running": pid.is_some(),
            "pid": pid,
            "url": url,
            "config": config,
            "socket_dir": socket_dir,
            "store": store,
        }))?;
    } else if !context.format.is_quiet() {
        let place = data.path().display();
        output::sentence(&match (pid, url) {
            (Some(pid), Some(url)) => format!("The daemon of {place} is process {pid}, at {url}."),
            (Some(pid), None) => {
                format!("The daemon of {place}, process {pid}, is starting or stopping.")
            }
            (None, _) => format!(
                "No daemon runs with {place}. Start one with `{}`.",
                narthex("up --detach", &[])
            ),
        })?;
    }
    Ok(if pid.is_some() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn stop(args: &StopArgs, context: &Context) -> Result<ExitCode, Failure> {
    let stopped = stop_daemon(args.timeout, args.force, context).await?;
    let data = DataDir::at(&context.daemon.data);
    told(stopped.pid, stopped.is_killed, &data, context)
}

/// The result of stopping a daemon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stopped {
    /// The process that has ended; `None` if no daemon ran.
    pub pid: Option<u32>,
    /// True if it had to be killed.
    pub is_killed: bool,
}

/// Stops the daemon of the data directory, if one runs, and prints no result. A daemon that has
/// not ended in this time is killed if `is_forced`.
///
/// # Errors
/// When the daemon does not end in time, another one starts meanwhile, or it runs in another
/// container.
pub async fn stop_daemon(
    within: Duration,
    is_forced: bool,
    context: &Context,
) -> Result<Stopped, Failure> {
    let none = Stopped { pid: None, is_killed: false };
    let data = DataDir::at(&context.daemon.data);
    let Some(process) = Process::of_daemon(&data)? else { return Ok(none) };
    let pid = process.pid;
    process.send(Signal::TERM)?;
    let process = Arc::new(process);
    let ending = has_ended(process.clone(), within);
    let mut is_killed = false;
    if !waiting(&format!("stopping process {pid}"), context, ending).await? {
        if !is_forced {
            let text = format!(
                "process {pid} has not ended within {} s: it still ends open calls and servers, or \
                 it hangs; wait for it, or kill it with `{}`",
                within.as_secs_f64(),
                narthex("daemon stop --force", &[])
            );
            return Err(Failure::new(ErrorKind::Timeout, text));
        }
        process.send(Signal::KILL)?;
        is_killed = true;
        if !has_ended(process, KILLED).await? {
            let text = format!("process {pid} is still running after SIGKILL");
            return Err(Failure::new(ErrorKind::Timeout, text));
        }
    }
    if is_killed {
        // The files that the daemon would have removed itself.
        data.retract();
    }
    if data.is_locked()? {
        let text = format!(
            "process {pid} has ended, but another daemon holds {} already",
            data.path().display()
        );
        return Err(Failure::new(ErrorKind::Conflict, text));
    }
    Ok(Stopped { pid: Some(pid), is_killed })
}

fn told(
    pid: Option<u32>,
    is_killed: bool,
    data: &DataDir,
    context: &Context,
) -> Result<ExitCode, Failure> {
    if context.format.is_json() {
        output::done(&json!({ "was_running": pid.is_some(), "pid": pid, "killed": is_killed }))?;
    } else if !context.format.is_quiet() {
        output::sentence(&match (pid, is_killed) {
            (Some(pid), false) => format!("The daemon, process {pid}, has stopped."),
            (Some(pid), true) => format!("The daemon, process {pid}, was killed."),
            (None, _) => format!("No daemon runs with {}.", data.path().display()),
        })?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Waits for a process to end; `false` if it has not within this time.
async fn has_ended(process: Arc<Process>, within: Duration) -> Result<bool, Failure> {
    let wait = move || {
        let deadline = Instant::now() + within;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let left = Timespec::try_from(left).ok();
            match poll(&mut [PollFd::new(&process.handle, PollFlags::IN)], left.as_ref()) {
                Ok(0) => return Ok(false),
                Ok(_) => return Ok(true),
                Err(Errno::INTR) => {}
                Err(error) => return Err(io::Error::from(error).into()),
            }
        }
    };
    let waited = tokio::task::spawn_blocking(wait).await;
    waited.unwrap_or_else(|error| Err(Failure::new(ErrorKind::Bug, error.to_string())))
}
