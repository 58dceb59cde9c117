//! Objects of all workspaces that a token may see, for commands that show all workspaces.

use narthex_model::{ErrorKind, command::CommandLine};
use serde_json::{Value, json};

use crate::{
    Failure,
    daemon_client::{DaemonClient, workspace_path},
    output::harmless,
};

/// The workspace of the daemon's own servers.
pub(super) const HOME: &str = "default";
/// Said where the daemon's own servers are left out.
pub(super) const OWN_HIDDEN: &str =
    "Only operators see the daemon's own servers, and this is not an operator's token.";
/// Number of other workspaces that are named.
const NAMED: usize = 5;

/// The ids of the workspaces that the token may see.
pub async fn workspaces(client: &DaemonClient) -> Result<Vec<String>, Failure> {
    let all = unless_hidden(client.api_all("/api/workspaces").await)?;
    Ok(all.iter().filter_map(|one| one["id"].as_str().map(str::to_owned)).collect())
}

/// The active runs of a workspace, each with the workspace, without the daemon's own run.
pub async fn active_runs(client: &DaemonClient, workspace: &str) -> Result<Vec<Value>, Failure> {
    let mut runs = Vec::new();
    for status in ["running", "pending"] {
        let path = workspace_path(workspace, &format!("/runs?status={status}"));
        runs.extend(unless_hidden(client.api_all(&path).await)?);
    }
    runs.retain(|run| run["pid"] != 0);
    for run in &mut runs {
        run["workspace"] = json!(workspace);
    }
    Ok(runs)
}

/// The active runs of all workspaces.
pub(super) async fn all_active_runs(client: &DaemonClient) -> Result<Vec<Value>, Failure> {
    let mut runs = Vec::new();
    for workspace in workspaces(client).await? {
        runs.extend(active_runs(client, &workspace).await?);
    }
    Ok(runs)
}

/// A hint at other workspaces with objects that a command did not find in one, each with the
/// command that shows them. `has` returns the number of objects in a workspace. Empty if none has
/// any.
pub async fn elsewhere(
    client: &DaemonClient,
    here: &str,
    command: &CommandLine,
    has: impl AsyncFn(&str) -> Result<usize, Failure>,
) -> Result<String, Failure> {
    let mut told = Vec::new();
    for workspace in workspaces(client).await?.iter().filter(|one| *one != here) {
        let count = match has(workspace).await {
            Err(failure) if is_hidden(&failure) => 0,
            count => count?,
        };
        if count > 0 && told.len() < NAMED {
            let show = command.clone().in_workspace(workspace);
            told.push(format!("workspace {} has {count}: `{show}`", harmless(workspace)));
        }
    }
    Ok(told.join("; "))
}

/// No rows if the token may not see them.
pub(super) fn unless_hidden(found: Result<Vec<Value>, Failure>) -> Result<Vec<Value>, Failure> {
    match found {
        Err(failure) if is_hidden(&failure) => Ok(Vec::new()),
        found => found,
    }
}

/// The daemon's own servers, as they are listed; `None` where the token may not see them, such as
/// the token of a member.
pub(super) fn if_operator<T>(listed: Result<T, Failure>) -> Result<Option<T>, Failure> {
    match listed {
        Err(failure) if failure.kind.as_str() == ErrorKind::Denied.as_str() => Ok(None),
        listed => listed.map(Some),
    }
}

fn is_hidden(failure: &Failure) -> bool {
    let hidden = [ErrorKind::Denied, ErrorKind::NotFound, ErrorKind::Conflict];
    hidden.iter().any(|kind| kind.as_str() == failure.kind.as_str())
}
