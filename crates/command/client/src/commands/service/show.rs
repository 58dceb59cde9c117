//! `narthex service status` and `narthex service logs`.

use std::process::{ExitCode, Stdio};

use narthex_model::{
    ErrorKind,
    command::{narthex, quoted},
};
use serde_json::json;
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::Command,
};

use super::place::{About, Place};
use crate::{
    Context, Failure,
    cli::ServiceLogsArgs,
    data_dir::DAEMON_LOG,
    output::{self, harmless},
    service::{self, Words, is_ours, tail},
};

pub(super) async fn status(place: &Place, context: &Context) -> Result<ExitCode, Failure> {
    let text = place.text()?;
    let is_own = text.as_deref().is_some_and(|text| {
        is_ours(text) && service::is_about(text, place.manager, place.data.path())
    });
    let (state, unreachable) = match place.manager.reached().await {
        Ok(state) => (Some(state), None),
        Err(why) => (None, Some(format!("there is no service manager: {why}"))),
    };
    // The directory of the machine's service can be read by its user alone.
    let daemon = if place.is_system() { None } else { place.data.running()? };
    let is_active = is_own && state.as_ref().is_some_and(|state| state.is_active);
    let pid = state.as_ref().and_then(|state| state.pid);
    let url = daemon.as_ref().map(|daemon| &daemon.url);
    let data = json!({
        "manager": place.manager.name(),
        "file": place.file,
        "is_installed": is_own,
        "is_enabled": state.as_ref().is_some_and(|state| state.is_enabled),
        "is_active": is_active,
        "state": state.as_ref().map(|state| &state.word),
        "pid": pid,
        "daemon": daemon.as_ref().map(|daemon| json!({ "pid": daemon.pid, "url": daemon.url })),
        "error": unreachable,
    });
    let mut lines: Vec<_> = match &text {
        // Nothing can be installed without the manager.
        None if unreachable.is_some() => Vec::new(),
        text => vec![installed(place, text.as_deref(), is_own)],
    };
    if let (Some(state), true) = (&state, is_own) {
        let process = pid.map(|pid| format!(", process {pid}")).unwrap_or_default();
        let enabled =
            if state.is_enabled { "starts by itself" } else { "does not start by itself" };
        lines.push(format!("State: {}{process}; {enabled}", state.word));
        if !state.is_active {
            let start = service::shown(&place.manager.start());
            let logs = place.command(About::Logs);
            lines.push(format!("Start it with `{start}`; `{logs}` shows why it has stopped."));
        }
    }
    let has_manager = unreachable.is_none();
    lines.extend(unreachable);
    match (&daemon, url) {
        (Some(daemon), Some(url)) if pid != Some(daemon.pid) => lines.push(format!(
            "A daemon that is not the service runs: process {}, at {url}",
            daemon.pid
        )),
        (_, Some(url)) => lines.push(format!("The daemon listens at {url}")),
        (_, None) if has_manager || place.is_system() => {}
        (_, None) => {
            lines.push(format!("No daemon runs; start one with `{}`", narthex("up --detach", &[])));
        }
    }
    output::told_lines(&data, &lines, context.format)?;
    Ok(if is_active { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The line about the file of the service, with the way to have a service of this directory.
fn installed(place: &Place, text: Option<&str>, is_own: bool) -> String {
    let (file, install) = (place.file.display(), place.command(About::Install));
    let Some(text) = text else {
        return format!("No service is installed. Install it with `{install}`");
    };
    if is_own {
        return format!("The service is installed: {file}");
    }
    let rest = match is_ours(text) {
        true => "narthex wrote it for another one; name that one with --data".to_owned(),
        false => format!(
            "narthex did not write it; move it away with `mv {} {}`, then install one with \
             `{install}`",
            quoted(&place.file.to_string_lossy()),
            quoted(&narthex_private::aside(&place.file).to_string_lossy())
        ),
    };
    let data = place.data.path().display();
    format!("{file} exists, and is not the service of this data directory, {data}: {rest}")
}

pub(super) async fn logs(args: &ServiceLogsArgs, context: &Context) -> Result<ExitCode, Failure> {
    let place = Place::of(&args.of, context)?;
    let log = place.data.path().join(DAEMON_LOG);
    let command = match place.text()? {
        Some(_) if log.exists() && runs_beside(&place).await? => {
            let text = format!(
                "the running daemon is not the service: these are lines of {}",
                log.display()
            );
            output::notice(&text);
            tail(&log, &args.lines.to_string(), args.follow)
        }
        Some(_) => place.manager.logs(&log, args.lines, args.follow),
        // A daemon in the background has a log of its own.
        None if log.exists() => tail(&log, &args.lines.to_string(), args.follow),
        None => {
            let text = format!(
                "there is no log: no service is installed, and no daemon in the background has \
                 written {}; a daemon in a terminal logs in that terminal; start one in the \
                 background with `{}`, or as a service with `{}`",
                log.display(),
                narthex("up --detach", &[]),
                narthex("service install", &[])
            );
            return Err(Failure::new(ErrorKind::NotFound, text));
        }
    };
    let lines = printed(&command, args.follow, context).await?;
    if context.format.is_json() && !args.follow {
        output::done(&json!({ "lines": lines }))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// True if a daemon of the data directory runs that is not the process of the installed service.
async fn runs_beside(place: &Place) -> Result<bool, Failure> {
    if place.is_system() {
        return Ok(false);
    }
    let Some(daemon) = place.data.running()? else { return Ok(false) };
    Ok(place.manager.reached().await.is_ok_and(|state| state.pid != Some(daemon.pid)))
}

/// Prints the lines of a command as they come. One document of JSON has them all, so they are
/// given back for it.
async fn printed(
    command: &Words,
    is_followed: bool,
    context: &Context,
) -> Result<Vec<String>, Failure> {
    let Some((program, arguments)) = command.split_first() else { return Ok(Vec::new()) };
    let failed = |why: String| {
        let text = format!("the log cannot be read by {program}: {why}");
        Failure::new(ErrorKind::Unavailable, text)
    };
    let mut process = Command::new(program);
    process.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).kill_on_drop(true);
    let mut child = process.spawn().map_err(|error| failed(error.to_string()))?;
    let mut lines = Vec::new();
    if let Some(stdout) = child.stdout.take() {
        let mut reader = BufReader::new(stdout);
        let mut bytes = Vec::new();
        while reader.read_until(b'\n', &mut bytes).await? > 0 {
            let line = String::from_utf8_lossy(&bytes).trim_end_matches('\n').to_owned();
            bytes.clear();
            match (context.format.is_json(), is_followed) {
                (true, true) => output::json(&json!({ "line": line }))?,
                (true, false) => lines.push(line),
                (false, _) => output::line(&harmless(&line))?,
            }
        }
    }
    let status = child.wait().await?;
    if status.success() { Ok(lines) } else { Err(failed(status.to_string())) }
}
