//! `narthex daemon restart`: the present program takes the place of the running one.

use std::{
    process::ExitCode,
    time::{Duration, SystemTime},
};

use narthex_model::{ErrorKind, command::narthex};
use rustix::process::Signal;
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::process::{open, send};
use crate::{
    Context, Failure,
    cli::RestartArgs,
    commands::waiting::waiting,
    data_dir::{DaemonState, DataDir},
    output,
};

const PAUSE: Duration = Duration::from_millis(50);

pub(super) async fn run(args: &RestartArgs, context: &Context) -> Result<ExitCode, Failure> {
    let data = DataDir::at(&context.daemon.data);
    let state = data.daemon()?;
    let pid = state.pid;
    if !state.can_restart {
        let text = format!(
            "process {pid} cannot be restarted: it restarts already, or it is an older daemon; \
             stop it with `{}`, and start the new one with `{}`",
            narthex("daemon stop", &[]),
            narthex("up", &[])
        );
        return Err(Failure::new(ErrorKind::Conflict, text));
    }
    let before = data.published();
    let Some(process) = open(pid)? else { return Err(ended(pid)) };
    if data.holder()? != Some(pid) {
        return Err(ended(pid));
    }
    send(&process, pid, Signal::USR2)?;
    let replaced = replaced(&data, &state, before, args.timeout);
    let state = waiting(&format!("restarting process {pid}"), context, replaced).await?;
    let DaemonState { pid, url, .. } = &state;
    let sentence = format!("The daemon, process {pid}, has restarted, and listens at {url}.");
    output::told(&json!({ "pid": pid, "url": url }), &sentence, context.format)
}

/// Waits for the state that the new program publishes.
async fn replaced(
    data: &DataDir,
    old: &DaemonState,
    before: Option<SystemTime>,
    within: Duration,
) -> Result<DaemonState, Failure> {
    let end = Instant::now() + within;
    loop {
        if data.published() != before
            && let Some(state) = data.running()?.filter(|state| state.can_restart)
        {
            return Ok(state);
        }
        if data.holder()? != Some(old.pid) {
            return Err(ended(old.pid));
        }
        if Instant::now() >= end {
            let text = format!(
                "process {} was not replaced within {} s: it finishes its open calls, or the \
                 present program does not start; its log says which: `{}`",
                old.pid,
                within.as_secs_f64(),
                narthex("service logs", &[])
            );
            return Err(Failure::new(ErrorKind::Timeout, text));
        }
        sleep(PAUSE).await;
    }
}

fn ended(pid: u32) -> Failure {
    let text = format!("process {pid} has ended; start the daemon with `{}`", narthex("up", &[]));
    Failure::new(ErrorKind::Unavailable, text)
}
