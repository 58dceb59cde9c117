//! Warnings of servers, if a daemon runs: gates without a match, and failing parts of servers.

use narthex_model::{GATE_FIELDS, command::narthex, unmatched_in};
use serde_json::Value;

use super::Check;
use crate::{
    Failure,
    commands::catalog::text,
    daemon_client::{DaemonClient, segment, workspace_path},
};

/// Number of servers of the catalog that are looked at one by one.
const SERVERS_MAX: usize = 200;

/// Warns of a gate that gates nothing.
fn check(server: &str, told: &str) -> Check {
    let hint = "correct the name: until then runs that have the server need no grant for it";
    Check::warn("GATES", format!("`{server}`: {told}"), hint)
}

/// Checks gates of the live servers, as the daemon has found them: no workspace owns them alone.
pub(super) async fn of_live(client: &DaemonClient) -> Result<Vec<Check>, Failure> {
    let mut checks = Vec::new();
    for row in client.api_all("/api/servers").await? {
        let name = text(&row, "name");
        for warning in row["warnings"].as_array().into_iter().flatten() {
            let told = text(warning, "message");
            checks.push(match text(warning, "kind") {
                "gate_unmatched" => check(name, told),
                _ => {
                    let logs = narthex("mcp logs {}", &[&name]);
                    let hint = format!("see `{logs}`, or report it to the maker of the server");
                    Check::warn("SERVER", format!("`{name}`: {told}"), hint)
                }
            });
        }
    }
    Ok(checks)
}

/// Checks the gates of servers of a workspace's catalog against the definitions that the servers
/// have listed in any run.
pub(super) async fn of_catalog(
    client: &DaemonClient,
    workspace: &str,
    servers: &[Value],
) -> Result<Vec<Check>, Failure> {
    let mut checks = Vec::new();
    let is_gated =
        |one: &&Value| GATE_FIELDS.iter().any(|field| one["definition"][*field].is_object());
    for server in servers.iter().filter(is_gated).take(SERVERS_MAX) {
        let id = text(server, "id");
        let path = format!("/mcp-servers/{}/definitions?source=catalog", segment(id));
        let seen = client.api_all(&workspace_path(workspace, &path)).await?;
        let seen: Vec<_> = seen.iter().map(|one| (text(one, "kind"), text(one, "name"))).collect();
        let found = unmatched_in(&server["definition"], &seen);
        checks.extend(found.iter().map(|gate| check(id, &gate.to_string())));
    }
    Ok(checks)
}
