//! `narthex mcp`: lists, tests and changes the daemon's servers.

mod add;
mod authorize;
mod browser;
mod list;
mod logs;
pub(super) mod test;
mod verbs;

use std::{collections::BTreeSet, process::ExitCode};

use crate::cli::McpDaemonCommand;
use narthex_model::{
    ErrorKind, Provenance,
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
    command: McpDaemonCommand,
    context: Context,
    configured: impl AsyncFn() -> Configured,
) -> Result<ExitCode, Failure> {
    match command {
        McpDaemonCommand::List { workspace } => {
            list::run(workspace.as_deref(), &context, configured).await
        }
        McpDaemonCommand::Test(args) => test::run(&args, &context).await,
        McpDaemonCommand::Logs(args) => logs::run(&args, &context).await,
        McpDaemonCommand::Reload => verbs::reload(&context).await,
        McpDaemonCommand::Add(args) => add::run(*args, &context).await,
        McpDaemonCommand::Remove { name } => verbs::remove(&name, &context).await,
        McpDaemonCommand::Enable { name } => verbs::enable(&name, &context).await,
        McpDaemonCommand::Disable { name } => verbs::disable(&name, &context).await,
        McpDaemonCommand::Reconnect { name } => verbs::reconnect(&name, &context).await,
        McpDaemonCommand::Authorize(args) => {
            let client = DaemonClient::operator(&context.daemon)?;
            match authorize::run(&args, &client, &context).await {
                Err(failure) => Err(with_names(&args.name, Whose::Daemon, failure, &client).await),
                done => done,
            }
        }
        McpDaemonCommand::Reauthorize(args) => verbs::reauthorize(&args, &context).await,
        McpDaemonCommand::SignOut { name } => verbs::sign_out(&name, &context).await,
    }
}

/// The text of a member, or nothing.
fn text<'v>(value: &'v Value, member: &str) -> &'v str {
    value[member].as_str().unwrap_or_default()
}

fn is_not_found(failure: &Failure) -> bool {
    failure.kind.as_str() == ErrorKind::NotFound.as_str()
}

/// The servers that a verb can change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Whose {
    /// All servers of the daemon.
    Daemon,
    /// Servers in the user's settings, the only file that narthex edits (E139).
    Settings,
}

/// The failure for an unknown name, with the known names. For a server of a run alone, the failure
/// names the run's end as the only way to start the server again.
async fn with_names(name: &str, whose: Whose, failure: Failure, client: &DaemonClient) -> Failure {
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
    Failure { message: format!("{}; {}", failure.message, known(&rows, whose)), ..failure }
}

/// The names that a verb takes, as the end of a sentence. An entry of the settings can be removed
/// even if an entry of the project is used instead.
fn known(rows: &[Value], whose: Whose) -> String {
    let is_taken = |row: &&Value| match whose {
        Whose::Daemon => row["is_overridden"] != true,
        Whose::Settings => row["provenance"] == Provenance::Settings.as_str(),
    };
    let names: Vec<_> = rows.iter().filter(is_taken).map(|row| text(row, "name")).collect();
    let list = narthex("mcp list", &[]);
    match (whose, names.as_slice()) {
        (Whose::Daemon, []) => {
            let add = narthex("mcp add NAME -- COMMAND", &[]);
            format!("neither the configuration nor an active run has one; add one with `{add}`")
        }
        (Whose::Daemon, names) => {
            format!("available: {}; `{list}` shows them with their states", names.join(", "))
        }
        (Whose::Settings, []) => {
            format!("your settings have no servers; `{list}` lists those of other files")
        }
        (Whose::Settings, names) => {
            let names = names.join(", ");
            format!("your settings have: {names}; `{list}` lists those of other files as well")
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// E139: the names after a failed removal are those of the file that the command edits.
    #[test]
    fn e139_an_unknown_name_is_told_the_names_that_the_verb_takes() {
        let row = |name, provenance, is_overridden: bool| {
            let mut row = json!({ "name": name, "provenance": provenance });
            row["is_overridden"] = is_overridden.into();
            row
        };
        let rows = [
            row("git", "workspace", false),
            row("mine", "settings", false),
            row("git", "settings", true),
        ];
        let told = "available: git, mine; `narthex mcp list` shows them with their states";
        assert_eq!(known(&rows, Whose::Daemon), told);
        let told = known(&rows, Whose::Settings);
        let expected = "your settings have: mine, git; `narthex mcp list` lists those of other \
                        files as well";
        assert_eq!(told, expected);
        let none = known(&rows[..1], Whose::Settings);
        assert!(none.contains("no servers; `narthex mcp list`"), "{none}");
        assert!(known(&[], Whose::Daemon).starts_with("neither the configuration"));
    }
}
