//! `narthex mcp`: the servers of the daemon, seen, tried and changed.

mod add;
mod list;
mod logs;
mod test;
mod verbs;

use std::process::ExitCode;

use narthex_cli::McpCommand;
use narthex_model::ErrorKind;
use serde_json::Value;

use crate::{Failure, cli::Context, daemon_client::DaemonClient};

pub(crate) async fn run(command: McpCommand, context: Context) -> Result<ExitCode, Failure> {
    match command {
        McpCommand::List => list::run(&context).await,
        McpCommand::Test { name } => test::run(&name, &context).await,
        McpCommand::Logs(args) => logs::run(&args, &context).await,
        McpCommand::Reload => verbs::reload(&context).await,
        McpCommand::Add(args) => add::run(args, &context).await,
        McpCommand::Remove { name } => verbs::remove(&name, &context).await,
        McpCommand::Enable { name } => verbs::enable(&name, &context).await,
        McpCommand::Disable { name } => verbs::disable(&name, &context).await,
        McpCommand::Reconnect { name } => verbs::reconnect(&name, &context).await,
        McpCommand::Reauthorize { name } => verbs::reauthorize(&name, &context).await,
    }
}

/// The text of a member, or nothing.
fn text<'v>(value: &'v Value, member: &str) -> &'v str {
    value[member].as_str().unwrap_or_default()
}

fn is_not_found(failure: &Failure) -> bool {
    failure.kind.as_str() == ErrorKind::NotFound.as_str()
}

/// What was not found, with what there is.
async fn with_names(failure: Failure, client: &DaemonClient) -> Failure {
    if !is_not_found(&failure) {
        return failure;
    }
    let Ok(rows) = client.api_all("/api/servers").await else { return failure };
    let counting = rows.iter().filter(|row| row["is_overridden"] != true);
    let names: Vec<_> = counting.map(|row| text(row, "name")).collect();
    let known = match names.is_empty() {
        true => "there is none at all".to_owned(),
        false => format!("available: {}", names.join(", ")),
    };
    Failure { message: format!("{}; {known}", failure.message), ..failure }
}
