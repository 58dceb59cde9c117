//! `narthex mcp logs`: a server's standard error.

use std::process::ExitCode;

use crate::cli::LogsArgs;
use http::Method;
use serde_json::{Value, json};

use super::{Whose, is_not_found, list, text, with_names};
use crate::{
    Context, Failure,
    commands::across::HOME,
    daemon_client::{DaemonClient, segment, server_path},
    output::{self, harmless},
};

pub(super) async fn run(args: &LogsArgs, context: &Context) -> Result<ExitCode, Failure> {
    let Some(client) = DaemonClient::operator_if_up(&context.daemon)? else {
        let name = harmless(&args.name);
        let none = format!("No daemon runs, so there are no lines of {name}.");
        show(&args.name, &[], &none, context)?;
        return Ok(ExitCode::SUCCESS);
    };
    match args.follow {
        true => follow(args, &client, context).await?,
        false => last(args, &client, context).await?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Asks for the log of a server of the daemon's own, of the mount of this name, or else of the
/// newest run that has a server of this name (R-C2). With a workspace only its runs are asked.
async fn found<T>(
    args: &LogsArgs,
    client: &DaemonClient,
    context: &Context,
    ask: impl AsyncFn(String) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let LogsArgs { name, workspace, .. } = args;
    if let Some(workspace) = workspace {
        return ask(server_path(name, &format!("/logs?workspace={}", segment(workspace)))).await;
    }
    let failure = match ask(server_path(name, "/logs")).await {
        Err(failure) if is_not_found(&failure) => failure,
        asked => return asked,
    };
    let mut mounts = list::mounts_of_runs(name, client).await?;
    // A run may have ended since.
    while let Some(newest) = mounts.pop() {
        let path = server_path(&newest.name, "/logs");
        let path = match newest.workspace.as_str() {
            HOME => path,
            workspace => format!("{path}?workspace={}", segment(workspace)),
        };
        let asked = match ask(path).await {
            Err(failure) if is_not_found(&failure) => continue,
            asked => asked?,
        };
        if !context.format.is_quiet() {
            let called = |mount: &list::MountOfRun| match mount.workspace.as_str() {
                HOME => mount.name.clone(),
                workspace => format!("{} of workspace {workspace}", mount.name),
            };
            let also = match &mounts[..] {
                [] => String::new(),
                others => {
                    let others: Vec<_> = others.iter().map(called).collect();
                    format!("; there are also those of {}", others.join(", "))
                }
            };
            let text = format!("these are the lines of {}{also}", called(&newest));
            output::notice(&harmless(&text));
        }
        return Ok(asked);
    }
    Err(with_names(name, Whose::Daemon, failure, client).await)
}

async fn last(args: &LogsArgs, client: &DaemonClient, context: &Context) -> Result<(), Failure> {
    let logs = found(args, client, context, async |path| client.api_get(path).await).await?;
    let lines = logs["lines"].as_array().map(Vec::as_slice).unwrap_or_default();
    let lines: Vec<_> = lines.iter().filter_map(Value::as_str).collect();
    let name = text(&logs, "name");
    let none = format!("{} has written nothing to stderr.", harmless(name));
    if logs["is_failed_start"] == true && !context.format.is_quiet() {
        let text = format!("these are the lines of {name} from its last start, which failed");
        output::notice(&harmless(&text));
    }
    show(name, &lines, &none, context)
}

fn show(name: &str, lines: &[&str], none: &str, context: &Context) -> Result<(), Failure> {
    if context.format.is_json() {
        return output::done(&json!({ "name": name, "lines": lines }));
    }
    if lines.is_empty() && !context.format.is_quiet() {
        return output::line(none);
    }
    lines.iter().try_for_each(|line| show_line(line, context))
}

fn show_line(line: &str, context: &Context) -> Result<(), Failure> {
    // On a terminal no text of a server may move the cursor.
    match context.format.is_quiet() {
        true => output::line(&harmless(line)),
        false => output::line(&format!("[stderr] {}", harmless(line))),
    }
}

async fn follow(args: &LogsArgs, client: &DaemonClient, context: &Context) -> Result<(), Failure> {
    let asked = async |path| client.api_events(Method::GET, path).await;
    let mut events = found(args, client, context, asked).await?;
    while let Some(event) = events.next().await? {
        match (event["line"].as_str(), context.format.is_json()) {
            (Some(_), true) => output::json(&event)?,
            (Some(line), false) => show_line(line, context)?,
            (None, true) => output::json(&event)?,
            (None, false) => {
                let missed = event["missed"].as_u64().unwrap_or(0);
                output::notice(&format!(
                    "{missed} lines are missing here, because they came too fast"
                ));
            }
        }
    }
    if !context.format.is_quiet() {
        output::notice(
            "the log ended: the server was removed, its run has ended, or the daemon was stopped",
        );
    }
    Ok(())
}
