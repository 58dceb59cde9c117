//! `narthex mcp`: lists, tests and changes the daemon's servers.

mod add;
mod list;
mod logs;
mod test;
mod verbs;

use std::{collections::BTreeSet, process::ExitCode};

use crate::cli::McpCommand;
use narthex_model::{
    ErrorKind,
    command::{CommandLine, narthex},
};
use serde_json::Value;

use crate::{Context, Failure, daemon_client::DaemonClient, output::harmless};

/// The servers that the files of this folder and of the user configure.
#[derive(Debug, Default)]
pub struct Configured {
    /// Names of the servers.
    pub names: BTreeSet<String>,
    /// Set if the file of this folder exists and does not count (D27).
    pub unapproved: Option<Unapproved>,
}

/// A file that does not count until its user approves it.
#[derive(Debug)]
pub struct Unapproved {
    /// The reason why the file does not count, as the end of a sentence.
    pub why: &'static str,
    /// The command that approves the file.
    pub approve: CommandLine,
}

/// Runs the command. `configured` reads the files that a daemon in this folder would follow.
///
/// # Errors
/// When the daemon cannot be reached, or refuses.
pub async fn run(
    command: McpCommand,
    context: Context,
    configured: impl AsyncFn() -> Configured,
) -> Result<ExitCode, Failure> {
    match command {
        McpCommand::List => list::run(&context, configured).await,
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

/// The failure for an unknown name, with the known names. For a server of a run alone, the failure
/// names the run's end as the only way to start the server again.
async fn with_names(name: &str, failure: Failure, client: &DaemonClient) -> Failure {
    if !is_not_found(&failure) {
        return failure;
    }
    let mounts = list::mounts_of_runs(name, client).await.unwrap_or_default();
    if let Some(mount) = mounts.last() {
        let end = narthex("runs end {}", &[&mount.run_id]).in_workspace(&mount.workspace);
        let message = format!(
            "`{}` is a server of a run of workspace `{}`, not of the configuration; to start it \
             again, end the run with `{end}` and create another",
            harmless(&mount.name),
            harmless(&mount.workspace)
        );
        return Failure { message, ..failure };
    }
    let Ok(rows) = client.api_all("/api/servers").await else { return failure };
    let counting = rows.iter().filter(|row| row["is_overridden"] != true);
    let names: Vec<_> = counting.map(|row| text(row, "name")).collect();
    let known = match names.is_empty() {
        true => "there is no such server in the configuration or in any active run".to_owned(),
        false => format!("available: {}", names.join(", ")),
    };
    Failure { message: format!("{}; {known}", failure.message), ..failure }
}
