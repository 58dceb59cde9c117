//! `narthex mcp logs`: what a server wrote to its standard error.

use std::process::ExitCode;

use http::Method;
use narthex_cli::LogsArgs;
use narthex_model::ErrorKind;
use serde_json::{Value, json};

use super::{text, with_names};
use crate::{
    Failure,
    cli::Context,
    daemon_client::{DaemonClient, EventReader, server_path},
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
    let mut asked = client.api_get(server_path(name, "/logs")).await;
    if let (Err(failure), Some(name)) = (&asked, server_of_mount(name))
        && is_not_found(failure)
    {
        asked = client.api_get(server_path(name, "/logs")).await;
    }
    let logs = match asked {
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
    let mut events = match open(name, client).await {
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
        output::notice("the server is gone, or the daemon was stopped");
    }
    Ok(())
}

async fn open(name: &str, client: &DaemonClient) -> Result<EventReader, Failure> {
    let opened = client.api_events(Method::GET, server_path(name, "/logs")).await;
    match (opened, server_of_mount(name)) {
        (Err(failure), Some(name)) if is_not_found(&failure) => {
            client.api_events(Method::GET, server_path(name, "/logs")).await
        }
        (opened, _) => opened,
    }
}

fn is_not_found(failure: &Failure) -> bool {
    failure.kind.as_str() == ErrorKind::NotFound.as_str()
}

/// The server of a mount's name, which is `<pid>-<server>` (R-C2).
fn server_of_mount(name: &str) -> Option<&str> {
    let (pid, server) = name.split_once('-')?;
    let is_pid = !pid.is_empty() && pid.bytes().all(|byte| byte.is_ascii_digit());
    (is_pid && !server.is_empty()).then_some(server)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// R-C2, R-D10: the name of a mount names its server; it is cut at the first dash.
    #[test]
    fn r_c2_a_mount_names_its_server() {
        assert_eq!(server_of_mount("7-files"), Some("files"));
        assert_eq!(server_of_mount("7-my-files"), Some("my-files"));
        for other in ["files", "my-files", "7", "7-", "-files", "7a-files", ""] {
            assert_eq!(server_of_mount(other), None, "{other}");
        }
    }
}
