//! `narthex up --detach`: the daemon as a process of its own session, which no terminal and no
//! client can end.
//!
//! This process starts the second one and ends when that one listens. So the daemon belongs to no
//! client: a client that ends all processes below itself does not reach it.

use std::{
    ffi::OsString,
    path::Path,
    process::{Command, ExitCode, ExitStatus, Stdio},
};

use fs_err as fs;
use narthex_client::{
    commands::{service::tell_chosen, waiting::waiting},
    data_dir::DAEMON_LOG,
    listeners::USUAL_PORT,
    starting::{LISTENING, listening},
};
use narthex_model::{ErrorKind, command::narthex};
use serde_json::json;

use crate::{
    Failure,
    cli::Context,
    config,
    data_dir::{DaemonState, DataDir},
    output::{self, harmless},
};

/// Number of bytes of a log that is written on.
const LOG_MAX: u64 = 10 << 20;
/// Number of the log's lines that a failure shows.
const SHOWN: usize = 10;

/// Starts the daemon in the background, and returns once it listens.
///
/// # Errors
/// When the daemon ends before it listens. A daemon that runs already is none.
pub(super) async fn start(data: &DataDir, context: &Context) -> Result<ExitCode, Failure> {
    let log = data.path().join(DAEMON_LOG);
    if let Some(state) = data.running()? {
        return told(&state, false, &log, context);
    }
    let is_named = context.settings.listen.is_some() || data.port()?.is_some();
    let file = open_log(data, &log)?;
    let earlier = file.metadata()?.len();
    let mut command = Command::new(config::program());
    command.args(arguments()).stdin(Stdio::null()).stdout(Stdio::null());
    command.stderr(file.into_parts().0);
    let mut child = command.spawn()?;
    let pid = child.id();
    let plain = context.client();
    // A daemon that another command started at the same time will do.
    let check = async || match child.try_wait()? {
        Some(status) if !data.is_locked()? => {
            let text = fs::read(&log).unwrap_or_default();
            let own = text.get(usize::try_from(earlier).unwrap_or(0)..).unwrap_or(&text);
            Err(failed(status, &String::from_utf8_lossy(own)))
        }
        Some(_) | None => Ok(()),
    };
    let started = listening(data, LISTENING, check);
    let state = waiting("starting the daemon", &plain, started).await?;
    let is_started = state.pid == pid;
    if is_started
        && !is_named
        && let Some(port) = data.port()?.filter(|port| *port != USUAL_PORT)
    {
        tell_chosen(port);
    }
    told(&state, is_started, &log, context)
}

fn told(
    state: &DaemonState,
    is_started: bool,
    log: &Path,
    context: &Context,
) -> Result<ExitCode, Failure> {
    let DaemonState { pid, url, fingerprints, .. } = state;
    let fingerprint = fingerprints.first();
    if context.format.is_json() {
        output::done(&json!({
            "is_started": is_started,
            "pid": pid,
            "url": url,
            "fingerprint": fingerprint,
            "log": log,
        }))?;
    } else if context.format.is_quiet() {
        output::line(url)?;
    } else {
        let verb = if is_started { "listens" } else { "listened already" };
        output::sentence(&format!("The daemon, process {pid}, {verb} at {url}."))?;
        if let Some(fingerprint) = fingerprint {
            output::sentence(&format!(
                "Its certificate has the SHA-256 fingerprint {fingerprint}."
            ))?;
        }
        output::sentence(&format!("Log: {}", log.display()))?;
        let setup = narthex("setup", &[]);
        let (open, stop) = (narthex("open", &[]), narthex("daemon stop", &[]));
        output::sentence(&format!("Connect the MCP clients of this machine with `{setup}`."))?;
        output::sentence(&format!("Open the console in your browser with `{open}`."))?;
        output::sentence(&format!("Stop it with `{stop}`."))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The log, to be written on. One that has grown long begins anew, and the old one stays beside it.
fn open_log(data: &DataDir, log: &Path) -> Result<fs::File, Failure> {
    if fs::metadata(log).is_ok_and(|found| found.len() > LOG_MAX) {
        let old = data.path().join(format!("{DAEMON_LOG}.old"));
        fs::rename(log, old).map_err(|error| data.unwritable(error.into()))?;
    }
    narthex_private::open_to_append(log).map_err(|error| data.unwritable(error))
}

/// Makes this process the first of a session without a terminal.
///
/// # Errors
/// When the process leads a group of processes already.
pub(super) fn leave_session() -> Result<(), Failure> {
    rustix::process::setsid().map(drop).map_err(|error| {
        let text = format!("cannot begin a session: {error}; use --detach instead");
        Failure::new(ErrorKind::Invalid, text)
    })
}

/// The arguments of the process in the background. Its standard output is nowhere, and only texts
/// for people are on standard error, which is the log.
fn arguments() -> impl Iterator<Item = OsString> {
    let own = std::env::args_os().skip(1).filter(|one| one != "--json" && one != "--quiet");
    own.map(|one| if one == "--detach" { "--background".into() } else { one })
}

fn failed(status: ExitStatus, log: &str) -> Failure {
    let lines: Vec<_> = log.lines().map(harmless).collect();
    let last = lines[lines.len().saturating_sub(SHOWN)..].join("\n");
    let text = format!("the daemon failed to start ({status}); its last log lines are:\n{last}");
    Failure::new(ErrorKind::Unavailable, text)
}
