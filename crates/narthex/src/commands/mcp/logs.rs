//! `narthex mcp logs`: what a server wrote to its standard error.

use std::process::ExitCode;

use http::Method;
use narthex_cli::LogsArgs;
use serde_json::{Value, json};

use super::{text, with_names};
use crate::{
    Failure,
    cli::Context,
    daemon_client::{DaemonClient, server_path},
    output::{self, harmless},
};

pub(super) async fn run(args: &LogsArgs, context: &Context) -> Result<ExitCode, Failure> {
    let Some(client) = DaemonClient::operator_if_up(&context.settings)? else {
        let name = harmless(&args.name);
        show(&[], &format!("No daemon runs, so there are no lines of {name}."), context)?;
        return Ok(ExitCode::SUCCESS);
    };
    match args.follow {
        true => follow(&args.name, &client, context).await?,
        false => last(&args.name, &client, context).await?,
    }
    Ok(ExitCode::SUCCESS)
}

async fn last(name: &str, client: &DaemonClient, context: &Context) -> Result<(), Failure> {
    let logs = match client.api_get(server_path(name, "/logs")).await {
        Ok(logs) => logs,
        Err(failure) => return Err(with_names(failure, client).await),
    };
    let lines = logs["lines"].as_array().map(Vec::as_slice).unwrap_or_default();
    let lines: Vec<_> = lines.iter().filter_map(Value::as_str).collect();
    let none = format!("{} has written nothing to stderr.", harmless(text(&logs, "name")));
    show(&lines, &none, context)
}

fn show(lines: &[&str], none: &str, context: &Context) -> Result<(), Failure> {
    if context.format.is_json() {
        return output::done(&json!({ "lines": lines }));
    }
    if lines.is_empty() && !context.format.is_quiet() {
        return output::line(none);
    }
    lines.iter().try_for_each(|line| show_line(line, context))
}

fn show_line(line: &str, context: &Context) -> Result<(), Failure> {
    // On a terminal nobody else's text may move the cursor.
    match context.format.is_quiet() {
        true => output::line(&harmless(line)),
        false => output::line(&format!("[stderr] {}", harmless(line))),
    }
}

async fn follow(name: &str, client: &DaemonClient, context: &Context) -> Result<(), Failure> {
    let mut events = match client.api_events(Method::GET, server_path(name, "/logs")).await {
        Ok(events) => events,
        Err(failure) => return Err(with_names(failure, client).await),
    };
    while let Some(event) = events.next().await? {
        match (event["line"].as_str(), context.format.is_json()) {
            (Some(_), true) => output::json(&event)?,
            (Some(line), false) => show_line(line, context)?,
            (None, true) => output::json(&event)?,
            (None, false) => {
                let missed = event["missed"].as_u64().unwrap_or(0);
                output::notice(&format!("{missed} lines came too fast and are missing here"));
            }
        }
    }
    if !context.format.is_quiet() {
        output::notice("the server is gone, its run has ended, or the daemon was stopped");
    }
    Ok(())
}
